"""Reasons that people gave for an identification: their most frequent 1- to 3-grams (P3 Tables 5, 6 and 8).

As P3 has it: stop words are taken out before n-grams are formed, so that "in line to the throne" gives ``line_throne``;
small letters, no apostrophes (``womens_rights``), nothing is stemmed. P3 does not name its list of stop words; this is
Snowball's for English (https://snowballstem.org/algorithms/english/stop.txt, BSD).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from allonym.text.words import compile_words

STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself it
    its itself they them their theirs themselves what which who whom this that these those am is are was were be been
    being have has had having do does did doing would should could ought im youre hes shes its were theyre ive youve
    weve theyve id youd hed shed wed theyd ill youll hell shell theyll isnt arent wasnt werent hasnt havent hadnt
    doesnt dont didnt wont wouldnt shant shouldnt cant cannot couldnt mustnt lets thats whos whats heres theres whens
    wheres whys hows a an the and but if or because as until while of at by for with about against between into through
    during before after above below to from up down in out on off over under again further then once here there when
    where why how all any both each few more most other some such no nor not only own same so than too very
    """.split()
)
LONGEST = 3
"""Words of the longest n-gram."""
_WORD = compile_words("-.")

Terms = tuple[tuple[str, int], ...]
"""N-gram, its words joined by ``_``, and how often it occurs."""


def list_words(text: str) -> list[str]:
    """List the words of a reason in small letters, without apostrophes and stop words."""
    flat = text.casefold().replace("'", "").replace("’", "")
    return [w for w in _WORD.findall(flat) if w not in STOP_WORDS]


def select_top_terms(texts: Iterable[str], top: int = 10) -> Terms:
    """Select the most frequent n-grams of 1 to 3 words; of equal ones the shorter, then the first by the alphabet.

    Args:
        texts: reasons; n-grams do not reach from one into the next.
        top: how many are kept.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        words = list_words(text)
        for n in range(1, LONGEST + 1):
            counts.update("_".join(words[i : i + n]) for i in range(len(words) - n + 1))
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0].count("_"), pair[0]))[:top])
