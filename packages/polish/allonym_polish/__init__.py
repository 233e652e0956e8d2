"""Weights of the tagger of Polish, under the GPL; allonym finds this package where it is installed."""
