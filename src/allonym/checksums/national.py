"""Check digits and formats of national identifiers that python-stdnum does not cover."""
