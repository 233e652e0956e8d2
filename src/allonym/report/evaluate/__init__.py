"""The report of an evaluation: one file per section, each made of a measure's plain values."""
