"""What every part of the package needs to read text: folded letters, words, names of people, lists of terms.

- :mod:`allonym.text.fold` removes differences of case, diacritics, letters and script, level by level.
- :mod:`allonym.text.words` finds words, tokens and the borders of sentences and lines.
- :mod:`allonym.text.names` brings names to a normal form and compares them.
- :mod:`allonym.text.terms` reads lists of terms.
"""
