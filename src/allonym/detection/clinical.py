"""Clinical notes: what makes a text one, and words of it that name nobody."""

from __future__ import annotations

import re
from collections.abc import Collection

from allonym.detection.words import read_common_terms, read_word_list
from allonym.text.words import find_words

_ABBREVIATION = re.compile(
    r"\b(?:[PF]M?Hx?|[SD]H|HPC|PC|NKDA|O/E|[cC]/o|[HRDTSI]x|BP|HR|[Oo]bs|NEWS2?|FBC|U[&+]E|T[12]DM|HTN|ETOH|DNACPR|NFR|[CM]SU|NBM|D/W|F/U|sats|prn|bd|tds|od|PRN|BID|ECG|[IC]CU|Hb|SpO2|CXR|USS|Imp|GP|SOB|PHQ-9|DOB|mcg|mg)\b"
)
_DOSES = frozenset("cr duo er forte la mcg mg ml mr mu sr xl xr".split())
_LEAST_DIFFERENT = 4
"""Different abbreviations that make a text a clinical note."""
_CLINICAL = read_word_list("clinical_words")


def is_clinical_note(text: str) -> bool:
    """Whether a text has several of the abbreviations that clinicians write."""
    return len(set(_ABBREVIATION.findall(text))) >= _LEAST_DIFFERENT


def are_clinical_words(words: Collection[str]) -> bool:
    """Whether folded words are a clinician's abbreviations, with numbers or without: "ckd 3b", "hr 76"."""
    return any(word in _CLINICAL for word in words) and all(word in _CLINICAL or word.isdigit() for word in words)


def is_prescription(surface: str) -> bool:
    """Whether a finding is a medicine with its form and dose: "Rx Augmentin Duo Forte", "Ventolin 44 mcg 2"."""
    words = [word for word in find_words(surface.lower()) if not word.isdigit() and word not in _CLINICAL]
    medicines = read_common_terms("medicines")
    return bool(words) and words[0] in medicines and all(word in medicines or word in _DOSES for word in words)
