"""What every part of the package needs to read text: folded letters, words, names, placeholders, lists of terms.

- :mod:`allonym.text.fold` removes differences of case, diacritics, letters and script, level by level.
- :mod:`allonym.text.words` says what a word and a token is.
- :mod:`allonym.text.names` brings names to a normal form and compares them.
- :mod:`allonym.text.placeholders` recognises what operators and other tools put in the place of names.
- :mod:`allonym.text.terms` reads lists of terms.
- :mod:`allonym.text.memory` remembers what was found out about texts.
"""
