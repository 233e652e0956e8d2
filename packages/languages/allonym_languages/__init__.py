"""Weights of the tagger of many languages; allonym finds this package where it is installed."""
