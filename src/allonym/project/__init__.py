"""A study project: from files to a release that two people have reviewed."""
