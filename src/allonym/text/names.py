"""Normal forms of names, people and addresses, and how two names compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.resources import files

from allonym.text.fold import Level, fold, spell_out_umlauts

PersonName = tuple[tuple[str, ...], str]
"""The words of a person's name, and the gender of its title (``m``, ``f`` or empty)."""

_M, _F = "m", "f"
_TITLE_WORDS = {
    _M: "mr mister sir lord herr monsieur senor uncle father brother",
    _F: "mrs ms miss madam lady dame frau mme madame sra senora senorita aunt auntie sister",
    "": "dr doctor prof professor mx rev reverend hon judge justice capt captain sgt sergeant lt lieutenant major maj "
    "col colonel gen general senator sen president governor gov officer detective inspector constable dean rabbi imam "
    "pastor nurse cllr councillor pc dc ds fr",
}
TITLES = {title: gender for gender, titles in _TITLE_WORDS.items() for title in titles.split()}
"""Titles before a name, in lower case without full stops, and the gender of who has it; empty: both."""
_GENERATIONS = frozenset({"jr", "sr", "junior", "senior", "ii", "iii", "iv"})
_SUFFIXES = _GENERATIONS | {"phd", "md", "mba", "esq", "cpa", "cfa", "obe", "bey", "hanim"}
PARTICLES = frozenset("van von der den de del della di da dos du la le bin ibn al el ter ten st".split())
GIVEN_PART, FAMILY_PART, SHORT_PART = "given", "family", "short"
TAG_PARTS = (GIVEN_PART, FAMILY_PART, SHORT_PART)
"""Parts of a name that tags tell where they carry the form of the mention, such as ``<PERSON 1.given>``."""

_LEGAL = frozenset(
    "inc ltd limited gmbh plc corp corporation llc llp lp ag company co sa se nv bv spa srl ab oy kg kgaa pty".split()
)


def normalize_surface(surface: str, level: Level = Level.LETTERS, unfolded: str = "") -> str:
    """Return the normal form of a surface: folded, single spaces, no possessive, no outer punctuation.

    Args:
        surface: a name, or any other mention.
        level: how far letters are folded. Keys in vaults of the first versions were folded to ``Level.MARKS``.
        unfolded: letters that are not folded, see :func:`allonym.text.fold.fold`.
    """
    if surface.isascii():
        out = " ".join(surface.lower().split())
    else:
        out = " ".join(fold(surface.replace("’", "'").replace("ʼ", "'"), level, unfolded).split())
    bare = out.strip(" .,;:!?\"'()[]")
    if bare.endswith("'s") and len(bare) > 2:
        bare = bare[:-2]
    return bare or out or surface


def normalize_code(surface: str) -> str:
    """Return the letters and digits of the normal form, for numbers and codes that are grouped in different ways."""
    text = normalize_surface(surface)
    return text if text.isalnum() else "".join(filter(str.isalnum, text)) or text


def normalize_online_address(surface: str) -> str:
    """Return the normal form of an e-mail or web address, even a spoken one (``jane dot doe at example dot com``)."""
    text = normalize_surface(surface)
    if " " in text:
        for word, sign in ((" at ", "@"), (" dot ", "."), (" underscore ", "_"), (" dash ", "-"), (" slash ", "/")):
            text = text.replace(word, sign)
        text = text.replace(" ", "")
    return text.removeprefix("mailto:").rstrip("/.") or text


def join_spelled_letters(text: str, least: int) -> str:
    """Return the letters of a word that is spelled one by one, at least ``least`` of them; else an empty string.

    >>> join_spelled_letters("m-a-r-k", 3), join_spelled_letters("mark", 3)
    ('mark', '')
    """
    if len(text) < 2 * least - 1 or text[1].isalnum():
        return ""
    pieces = text.replace("-", " ").replace(".", " ").replace(",", " ").split()
    return "".join(pieces) if len(pieces) >= least and all(len(p) == 1 for p in pieces) else ""


def normalize_organization(text: str) -> str:
    """Return the normal form of a company's name without its legal form and a leading article."""
    words = text.replace(",", " ").replace(".", "").split()
    while len(words) > 1 and words[-1] in _LEGAL:
        words.pop()
    if len(words) > 1 and words[-1] in ("&", "and"):
        words.pop()
    if len(words) > 1 and words[0] == "the":
        del words[0]
    return " ".join(words) or text


def parse_person(text: str) -> PersonName:
    """Return the words of a person's normalised name without titles, given name first, and the gender of the title.

    Generation marks stand last, as ``+jr``.

    >>> parse_person("mrs ada brook jr.")
    (('ada', 'brook', '+jr'), 'f')
    """
    if text.isalpha():
        return (text,), ""
    if "," in text:
        head, _, tail = text.partition(",")
        rest = tail.replace(".", " ").split()
        if rest and any(w not in _SUFFIXES for w in rest):
            text = f"{tail} {head}"
        else:
            text = text.replace(",", " ")
    words = text.split()
    if not "".join(words).isalpha():
        words = [w for w in (p.strip("'\"()-“”‘") for p in text.replace(".", " ").split()) if w]
    gender = ""
    if len(words) > 1 and words[0] == "the":
        del words[0]
    while len(words) > 1 and words[0] in TITLES:
        gender = TITLES[words.pop(0)] or gender
    suffix: list[str] = []
    while len(words) > 1 and words[-1] in _SUFFIXES:
        suffix.insert(0, words.pop())
    marks = tuple(f"+{s[0]}r" if s[0] in "js" else f"+{s}" for s in suffix if s in _GENERATIONS)
    return (tuple(words) or (text,)) + marks, gender


def parse_person_name(name: str) -> PersonName:
    """Return the words of a name in normal form, without titles, and the gender of its title."""
    return parse_person(normalize_surface(name))


def list_name_spellings(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the words of a name in normal form; those of its second spelling too, where it has one."""
    yield parse_person_name(name)[0]
    if (spelled_out := spell_out_umlauts(name)) != name:
        yield parse_person_name(spelled_out)[0]


def format_whole_name(words: Iterable[str]) -> str:
    """Return the form by which a whole name is looked up, which no single word of a longer name has."""
    return "=" + " ".join(words)


def rank_words(words: Sequence[str]) -> tuple[int, int]:
    """Return the sort key of a name's words: names with more full words first, then the longer ones."""
    return -sum(len(word) > 1 for word in words), -sum(map(len, words))


def sort_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names without those that have the same words as one before; the one with most full words comes first."""
    different = list({parse_person_name(name)[0]: name for name in reversed(list(names))}.values())[::-1]
    fullest = min(different, key=lambda name: (rank_words(parse_person_name(name)[0])[0], different.index(name)))
    return (fullest, *(name for name in different if name != fullest))


def find_title_gender(text: str, start: int) -> str:
    """Return the gender of the title right before ``start``; empty where there is no title, or it fits both."""
    if not text[start - 1 : start].isspace():
        return ""
    word = text[max(0, start - 12) : start].split()[-1:]
    title = word[0].lstrip("([{<\"'“‘") if word else ""
    return TITLES.get(title.rstrip(".").lower(), "") if title[:1].isupper() else ""


def split_name(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Split the words of a name into given names, family name, and generation marks."""
    end = len(words)
    while end > 1 and words[end - 1][0] == "+":
        end -= 1
    family = next((i for i in range(1, end - 1) if words[i] in PARTICLES), end - 1)
    return words[:family], words[family:end], words[end:]


def find_name_part(surface: str, full: str) -> str:
    """Return which part of a person's full name a surface is: given or family; empty for any other form.

    >>> find_name_part("Ada", "Brook, Ada"), find_name_part("Brook", "Ada Brook")
    ('given', 'family')
    """
    words = parse_person_name(surface)[0]
    given_names, family, _ = split_name(parse_person_name(full)[0])
    if not given_names or not family:
        return ""
    if words == family or words == family[-1:]:
        return FAMILY_PART
    is_first = words[0] == given_names[0] or are_given_names_alike(words[0], given_names[0])
    return GIVEN_PART if is_first and len(words) <= len(given_names) and len(words[0]) > 1 else ""


def list_singulars(word: str) -> tuple[str, ...]:
    """Return what a plural or genitive in plain form may be one of: ``hart`` for ``harts``."""
    if len(word) < 4 or word[-1] != "s":
        return ()
    return (word[:-1], word[:-2]) if word.endswith("es") else (word[:-1],)


@cache
def _read_nicknames() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    short: dict[str, frozenset[str]] = {}
    full: dict[str, set[str]] = {}
    for line in files("allonym").joinpath("nicknames.tsv").read_text(encoding="utf-8").splitlines():
        if line and line[0] != "#":
            name, _, listed = fold(line).partition("\t")
            short[name] = frozenset(listed.split(","))
            for nickname in short[name]:
                full.setdefault(nickname, set()).add(name)
    return short, {name: frozenset(names) for name, names in full.items()}


def find_given_name_variants(given_name: str) -> frozenset[str]:
    """Return given names that the same person may bear: ``bob`` and ``rob`` for ``robert``, ``robert`` for ``bob``."""
    short, full = _read_nicknames()
    return short.get(given_name, frozenset()) | full.get(given_name, frozenset())


def are_given_names_alike(a: str, b: str) -> bool:
    """Return whether given names fit: a short form of the other, both short forms of one name, or swapped letters."""
    _, full = _read_nicknames()
    if b in find_given_name_variants(a) or full.get(a, frozenset()) & full.get(b, frozenset()):
        return True
    return has_swapped_letters(a, b)


def has_swapped_letters(a: str, b: str, least: int = 5) -> bool:
    """Return whether words of ``least`` letters or more differ only in two neighbouring letters that changed places."""
    if len(a) != len(b) or len(a) < least:
        return False
    i = _count_common_start(a, b)
    return i + 1 < len(a) and (a[i], a[i + 1]) == (b[i + 1], b[i]) and a[i + 2 :] == b[i + 2 :]


def _count_common_start(a: str, b: str) -> int:
    i, end = 0, min(len(a), len(b))
    while i < end and a[i] == b[i]:
        i += 1
    return i


def _are_given_names_compatible(a: str, b: str) -> bool:
    short, long = sorted((a, b), key=len)
    return a == b or (len(short) == 1 and long.startswith(short)) or are_given_names_alike(a, b)


@lru_cache(maxsize=4096)
def list_filing_keys(given_name: str) -> frozenset[str]:
    """Return keys to file a given name under: one that fits it has one of them among its :func:`list_lookup_keys`."""
    _, full = _read_nicknames()
    letters = "".join(sorted(given_name))
    return frozenset((given_name, *full.get(given_name, ()), f"sorted {letters}", f"initial {given_name[0]}"))


def list_lookup_keys(given_name: str) -> frozenset[str]:
    """Return keys to look up a given name by; see :func:`list_filing_keys`."""
    initial = {f"initial {given_name}"} if len(given_name) == 1 else set()
    return list_filing_keys(given_name) - {f"initial {given_name[0]}"} | {given_name[0]} | initial


def can_be_same_person(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Return whether two names of several words can be one person's: no part of one contradicts the other."""
    given_a, last_a, mark_a = split_name(a)
    given_b, last_b, mark_b = split_name(b)
    if last_a != last_b or (mark_a and mark_b and mark_a != mark_b):
        return False
    if not given_a or not given_b or not _are_given_names_compatible(given_a[0], given_b[0]):
        return False
    # Middle names may be missing, but not contradict: those of the shorter must be found in order in the longer.
    short, long = sorted((given_a[1:], given_b[1:]), key=len)
    rest = iter(long)
    return all(any(_are_given_names_compatible(name, other) for other in rest) for name in short)


def list_initials(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the initials of a name of several words: of all of them, and of the first and the last."""
    letters = [w[0] for w in words if w[0] != "+"]
    if len(letters) < 2:
        return ()
    full = "".join(letters)
    return (full,) if len(letters) == 2 else (full, letters[0] + letters[-1])


_PAIRS = "ph:f ck:k ce:se ci:si cy:si ch:č c:k q:k x:ks z:s y:i h:"
_SAME_SOUND = tuple((a, b) for a, _, b in (pair.partition(":") for pair in _PAIRS.split()))


@lru_cache(maxsize=4096)
def make_sound_key(word: str) -> str:
    """Return a key for how a name sounds, roughly; vowels count, so that Anna and Anne differ."""
    for a, b in _SAME_SOUND:
        if a in word:
            word = word.replace(a, b)
    if len(word) > 3 and word[-1] == "e" and word[-2] not in "aeiou":
        word = word[:-1]
    return "".join(c for i, c in enumerate(word) if i == 0 or c != word[i - 1])


def is_within_one_edit(a: str, b: str) -> bool:
    """Return whether words are equal, or one insertion, deletion or substitution makes one of the other."""
    if len(a) > len(b):
        a, b = b, a
    if len(b) - len(a) > 1:
        return False
    i = _count_common_start(a, b)
    return a[i:] == b[i + 1 :] if len(a) < len(b) else a[i + 1 :] == b[i + 1 :]
