"""Check digits and formats of identifiers that belong to no country."""
