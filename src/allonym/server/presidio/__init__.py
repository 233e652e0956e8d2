"""Presidio's REST API, so that its clients switch by changing the address: names, ad hoc recognizers, operators."""
