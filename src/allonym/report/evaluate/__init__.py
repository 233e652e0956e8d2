"""The report of an evaluation: sections that are made of a measure's plain values, and the page that holds them."""
