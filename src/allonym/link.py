"""From spans to entities: one referent of a document, one entity, whatever its surfaces.

Two mentions are one referent where their normalised texts are equal (case, diacritics, width, spaces, possessives) and
their labels are of one family; identifiers are compared by their letters and digits. Beyond that:

- People: titles and suffixes do not count; a part of a name, initials, ``Last, First``, a missing middle name, letters
  spelled one by one and a spelling that sounds the same join the one person that they fit. ``Mr Hart`` and ``Mrs Hart``
  are two people.
- What fits several people fits none: ``Beckham`` beside Victoria and David Beckham is an entity of its own, and a note
  says so. The nearest is never guessed. In a conversation an introduction (``this is Mark``) means the speaker, and a
  greeting (``hi Mark``) does not; that may settle it, mention by mention.
- ``the Beckhams`` are an entity of their own, unless only one person of the document bears the name.
- Organizations: legal forms do not count; an acronym joins the one name whose words it abbreviates.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from allonym.document import Document, Entity, Span
from allonym.labels import TAXONOMY, Taxonomy


@dataclass(frozen=True, slots=True)
class Linked:
    """Entities in reading order of their first mention, and what stayed ambiguous, as offsets and labels."""

    entities: tuple[Entity, ...]
    notes: tuple[str, ...] = ()


_ROLES = frozenset({"EXECUTIVE", "COMPANY", "ORGANIZATION_SPEAKER", "PRODUCT_SPEAKER"})
_BY_CHARACTERS = frozenset(
    {"PHONE_NUMBER", "GENERIC_ID", "DEVICE_ID", "VEHICLE_ID", "GOVERNMENT_ID", "FINANCIAL_ID", "POSTAL_CODE"}
)
_ADDRESSES = frozenset({"EMAIL_ADDRESS", "ONLINE_ID"})

_M, _F = "m", "f"
_TITLES = {"mr": _M, "mister": _M, "sir": _M, "lord": _M, "mrs": _F, "ms": _F, "miss": _F, "madam": _F, "lady": _F}
_TITLES |= {"dame": _F, "herr": _M, "frau": _F, "mme": _F, "monsieur": _M, "madame": _F, "sra": _F, "señora": _F}
_NEUTRAL = "dr doctor prof professor mx rev reverend hon judge justice capt captain sgt sergeant lt lieutenant major"
_NEUTRAL += " maj col colonel gen general senator sen president governor gov officer detective dean rabbi"
_TITLES |= dict.fromkeys(_NEUTRAL.split(), "")
_GENERATIONS = frozenset({"jr", "sr", "junior", "senior", "ii", "iii", "iv"})
_SUFFIXES = _GENERATIONS | {"phd", "md", "mba", "esq", "cpa", "cfa", "obe"}
_PARTICLES = frozenset("van von der den de del della di da dos du la le bin ibn al el ter ten st".split())  # noqa: SIM905
_LEGAL = frozenset(
    "inc ltd limited gmbh plc corp corporation llc llp lp ag company co sa se nv bv spa srl ab oy kg kgaa pty".split()  # noqa: SIM905
)
_SMALL_WORDS = frozenset({"of", "and", "the", "for", "in", "on", "de", "&"})
_INTRODUCTION = re.compile(r"\b(?:this is|it['’]?s|i['’]?m|i am|my name is|name['’]?s|here is)\s*$", re.I)
_GREETING = re.compile(
    r"(?:\bhi|\bhello|\bhey|\bthanks|\bthank you|\bmorning|\bafternoon|\bevening|\bwelcome|\bbye|\bdear|\bover to)"
    r"[\s,]*(?:there[\s,]*)?$",
    re.I,
)
_WINDOW = 40


class _Group:
    """Mentions known to share a referent. Mutable, and seen by nobody but :func:`link`."""

    __slots__ = ("forms", "gender", "key", "spans")

    def __init__(self, key: str) -> None:
        self.key = key
        self.spans: list[Span] = []
        self.forms: list[tuple[str, ...]] = []
        self.gender = ""


_Form = tuple[tuple[str, ...], str]  # name words and gender by title


def link(document: Document, spans: Sequence[Span], taxonomy: Taxonomy = TAXONOMY) -> Linked:
    """Group the mentions of each referent.

    Args:
        document: the text, with its turns if it is a conversation.
        spans: disjoint mentions in any order.
        taxonomy: tells which labels are of one family.

    Returns:
        Entities that hold each span exactly once. An entity's label is that of a role (``EXECUTIVE``, ``COMPANY``)
        where one of its mentions has it, else its mentions' most frequent one, else the first of those.
    """
    text = document.text
    groups: dict[str, _Group] = {}
    people: dict[_Form, list[Span]] = {}
    spelled: dict[str, list[Span]] = {}
    companies = False
    lineage = taxonomy.lineage
    for span in sorted(spans, key=_start):
        label = span.label
        chain = lineage(label)
        family = chain[-1]
        surface = text[span.start : span.end]
        if family == "PERSON" and label != "TITLE":
            plain = _plain(surface)
            letters = _spelled(plain, 3)
            if letters:
                spelled.setdefault(letters, []).append(span)
            else:
                form = _person(plain)
                people.setdefault(form, []).append(span)
            continue
        if family == "SPELLED_WORD":
            plain = _plain(surface)
            spelled.setdefault(_spelled(plain, 2) or plain, []).append(span)
            continue
        if family == "ORGANIZATION":
            companies = True
            norm = _organization(_plain(surface))
        elif family in _BY_CHARACTERS or "POSTAL_CODE" in chain:
            norm = _characters(surface)
        elif family in _ADDRESSES:
            norm = _address(surface)
        elif family == "SECRET":
            norm = surface
        elif label == "TITLE":
            family, norm = "TITLE", _plain(surface).rstrip(".")
        else:
            norm = _plain(surface)
        key = f"{family}:{norm}"
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group(key)
        group.spans.append(span)
    found = list(groups.values())
    notes: list[str] = []
    if companies and len(found) > 1:
        found = _acronyms(text, found, notes)
    if people or spelled:
        found += _people(document, people, spelled, notes)
    for group in found:
        if len(group.spans) > 1:
            group.spans.sort(key=_start)
    entities = [Entity(g.key, _label(g.spans), tuple(g.spans)) for g in found]
    entities.sort(key=_first)
    return Linked(tuple(entities), tuple(notes))


_start = attrgetter("start")


def _first(entity: Entity) -> int:
    return entity.spans[0].start


def _label(spans: list[Span]) -> str:
    first = spans[0].label
    if len(spans) == 1:
        return first
    for span in spans:
        if span.label != first:
            break
    else:
        return first
    counts = Counter(s.label for s in spans if s.label != "SPELLED_WORD")
    roles = [label for label in counts if label in _ROLES]
    return roles[0] if roles else counts.most_common(1)[0][0]


# Normal forms


def _plain(surface: str) -> str:
    """Folded case, no diacritics, no invisible characters, single spaces, no possessive, no outer punctuation."""
    if surface.isascii():
        out = surface.lower()
    else:
        decomposed = unicodedata.normalize("NFKD", surface.replace("’", "'").replace("ʼ", "'"))
        kept = (c for c in decomposed if unicodedata.category(c) not in ("Mn", "Cf"))
        out = unicodedata.normalize("NFC", "".join(kept).casefold())
    out = " ".join(out.split())
    bare = out.strip(" .,;:!?\"'()[]")
    if bare.endswith("'s") and len(bare) > 2:
        bare = bare[:-2]
    return bare or out or surface


def _characters(surface: str) -> str:
    plain = _plain(surface)
    return "".join(c for c in plain if c.isalnum()) or plain


def _address(surface: str) -> str:
    out = _plain(surface)
    if " " in out:
        for word, sign in ((" at ", "@"), (" dot ", "."), (" underscore ", "_"), (" dash ", "-"), (" slash ", "/")):
            out = out.replace(word, sign)
        out = out.replace(" ", "")
    return out.removeprefix("mailto:").rstrip("/.") or out


def _spelled(plain: str, least: int) -> str:
    if len(plain) < 2 * least - 1 or plain[1].isalnum():
        return ""
    pieces = plain.replace("-", " ").replace(".", " ").replace(",", " ").split()
    return "".join(pieces) if len(pieces) >= least and all(len(p) == 1 for p in pieces) else ""


def _organization(plain: str) -> str:
    words = plain.replace(",", " ").replace(".", "").split()
    while len(words) > 1 and words[-1] in _LEGAL:
        words.pop()
    if len(words) > 1 and words[-1] in ("&", "and"):
        words.pop()
    if len(words) > 1 and words[0] == "the":
        del words[0]
    return " ".join(words) or plain


def _person(plain: str) -> _Form:
    if plain.isalpha():
        return (plain,), ""
    if "," in plain:
        head, _, tail = plain.partition(",")
        rest = tail.replace(".", " ").split()
        if rest and any(w not in _SUFFIXES for w in rest):
            plain = f"{tail} {head}"
        else:
            plain = plain.replace(",", " ")
    words = [w for w in (p.strip("'\"()-") for p in plain.replace(".", " ").split()) if w]
    gender = ""
    if len(words) > 1 and words[0] == "the":
        del words[0]
    while len(words) > 1 and words[0] in _TITLES:
        gender = _TITLES[words.pop(0)] or gender
    suffix: list[str] = []
    while len(words) > 1 and words[-1] in _SUFFIXES:
        suffix.insert(0, words.pop())
    told = [s for s in suffix if s in _GENERATIONS]
    return (tuple(words) or (plain,)) + tuple(f"+{s[0]}r" if s[0] in "js" else f"+{s}" for s in told), gender


# Organizations


def _acronyms(text: str, groups: list[_Group], notes: list[str]) -> list[_Group]:
    by_letters: dict[str, dict[str, _Group]] = {}
    short: list[_Group] = []
    for group in groups:
        if not group.key.startswith("ORGANIZATION:"):
            continue
        words = group.key[13:].replace("-", " ").split()
        if len(words) > 1:
            for letters in {"".join(w[0] for w in words), "".join(w[0] for w in words if w not in _SMALL_WORDS)}:
                by_letters.setdefault(letters, {})[group.key] = group
        elif (
            words
            and 2 <= len(words[0]) <= 8
            and any(text[s.start : s.end].strip("().,").isupper() for s in group.spans)
        ):
            short.append(group)
    joined: set[int] = set()
    for group in short:
        fits = list(by_letters.get(group.key[13:], {}).values())
        if len(fits) == 1:
            fits[0].spans += group.spans
            joined.add(id(group))
        elif fits:
            notes.append(_note(group.spans, [f.spans[0] for f in fits]))
    return [g for g in groups if id(g) not in joined] if joined else groups


# People


def _split(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Given names, family name, and generation marks of a name of several words."""
    end = len(words)
    while end > 1 and words[end - 1][0] == "+":
        end -= 1
    at = end - 1
    for i in range(1, end - 1):
        if words[i] in _PARTICLES:
            at = i
            break
    return words[:at], words[at:end], words[end:]


def _fit(a: str, b: str) -> bool:
    return a == b or (len(a) == 1 and b.startswith(a)) or (len(b) == 1 and a.startswith(b))


def _same_person(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    given_a, last_a, mark_a = _split(a)
    given_b, last_b, mark_b = _split(b)
    if last_a != last_b or (mark_a and mark_b and mark_a != mark_b):
        return False
    if not given_a or not given_b or not _fit(given_a[0], given_b[0]):
        return False
    # Middle names may be missing, but not contradict: those of the shorter must be found in order in the longer.
    short, long = sorted((given_a[1:], given_b[1:]), key=len)
    at = 0
    for name in short:
        while at < len(long) and not _fit(name, long[at]):
            at += 1
        if at == len(long):
            return False
        at += 1
    return True


def _weight(form: _Form) -> tuple[int, int, tuple[str, ...], str]:
    words = form[0]
    return -sum(len(w) > 1 for w in words), -sum(map(len, words)), words, form[1]


def _note(spans: Sequence[Span], fits: Sequence[Span]) -> str:
    where = ", ".join(f"{s.start}..{s.end}" for s in sorted(spans)[:5])
    more = f" and {len(spans) - 5} more" if len(spans) > 5 else ""
    whom = ", ".join(f"{s.start}..{s.end}" for s in sorted(fits))
    return f"ambiguous {spans[0].label} at {where}{more}: fits those first named at {whom}; kept apart"


def _people(
    document: Document, people: dict[_Form, list[Span]], spelled: dict[str, list[Span]], notes: list[str]
) -> list[_Group]:
    groups: list[_Group] = []
    singles: list[_Form] = []
    by_last: dict[str, list[_Group]] = {}
    bearers: dict[str, list[_Group]] = {}  # any part of a name -> the people who bear it
    lasts: dict[str, list[_Group]] = {}  # family names only

    def open_group(form: _Form, mentions: list[Span]) -> _Group:
        group = _Group("PERSON:" + " ".join(form[0]))
        group.spans += mentions
        group.forms.append(form[0])
        group.gender = form[1]
        groups.append(group)
        return group

    def bear(group: _Group, table: dict[str, list[_Group]], part: str) -> None:
        if len(part) > 1 and part[0] != "+":
            known = table.setdefault(part, [])
            if group not in known:
                known.append(group)

    full: list[_Form] = []
    for form in people:
        (full if len(form[0]) > 1 else singles).append(form)
    for form in sorted(full, key=_weight) if len(full) > 1 else full:
        words, gender = form
        if all(len(w) == 1 for w in words):
            singles.append(form)
            continue
        given, last, _ = _split(words)
        rivals = by_last.get(last[-1], ())
        fits = [g for g in rivals if all(_same_person(words, f) for f in g.forms)]
        bare = not fits and words[0] in _PARTICLES  # "van den Berg": a family name of several words, perhaps
        if bare:
            fits = lasts.get(" ".join(words), [])
        if gender:
            fits = [g for g in fits if g.gender in ("", gender)]
        if len(fits) == 1:
            group = fits[0]
            group.spans += people[form]
            group.gender = group.gender or gender
            if bare:
                continue
            group.forms.append(words)
        else:
            if fits:
                notes.append(_note(people[form], [min(f.spans) for f in fits]))
                open_group(form, people[form])
                continue
            group = open_group(form, people[form])
            by_last.setdefault(last[-1], []).append(group)
        for part in given:
            bear(group, bearers, part)
        for part in (last[-1], " ".join(last)):
            bear(group, bearers, part)
            bear(group, lasts, part)
            if "-" in part:
                for piece in part.split("-"):
                    bear(group, bearers, piece)
                    bear(group, lasts, piece)

    if singles:
        _singles(document, people, singles, bearers, lasts, open_group, notes)
    if spelled:
        _spelled_out(groups, spelled, notes)
    keys: dict[str, int] = {}
    for group in groups:
        keys[group.key] = seen = keys.get(group.key, 0) + 1
        if seen > 1:
            group.key += f" ({group.gender or seen})"
    return groups


def _singles(
    document: Document,
    people: dict[_Form, list[Span]],
    singles: list[_Form],
    bearers: dict[str, list[_Group]],
    lasts: dict[str, list[_Group]],
    open_group: Callable[[_Form, list[Span]], _Group],
    notes: list[str],
) -> None:
    genders: dict[str, set[str]] = {}
    for words, gender in singles:
        genders.setdefault(words[0], set()).add(gender)
    opened: dict[str, list[_Group]] = {}
    plural: list[_Form] = []
    unknown: list[_Form] = []
    everybody: list[_Group] | None = None
    # Those with a gender first, so that a bare name is held against all of them.
    for form in sorted(singles, key=lambda f: (not f[1], f[0])):
        words, gender = form
        mentions = people[form]
        word = words[0]
        if len(words) > 1 or len(word) == 1:
            if everybody is None:
                everybody = _once([g for table in bearers.values() for g in table])
            fits = [g for g in everybody if any(_initials(words, f) for f in g.forms)]
        else:
            fits = lasts.get(word, []) if gender else []
            fits = fits or bearers.get(word, [])
        if gender and fits:
            fits = [g for g in fits if g.gender in ("", gender)]
            if len(fits) == 1 and not fits[0].gender and len(genders[word] - {""}) > 1:
                notes.append(_note(mentions, [min(f.spans) for f in fits]))
                group = open_group(form, mentions)
                group.key += f" ({gender})"
                opened.setdefault(word, []).append(group)
                continue
        elif len(words) == 1 and not gender:
            fits = fits + [g for g in opened.get(word, ()) if g not in fits]
        if len(fits) == 1:
            fits[0].spans += mentions
            continue
        if len(fits) > 1:
            rest = _settled(document, mentions, fits) if document.turns else mentions
            if rest:
                notes.append(_note(rest, [min(f.spans) for f in fits]))
                group = open_group(form, rest)
                if gender:
                    group.key += f" ({gender})"
                    opened.setdefault(word, []).append(group)
            continue
        if gender:
            group = open_group(form, mentions)
            if len(genders[word] - {""}) > 1:
                group.key += f" ({gender})"
            opened.setdefault(word, []).append(group)
        elif len(word) > 3 and word[-1] == "s":
            plural.append(form)
        else:
            unknown.append(form)
    singular = {form[0][0] for form in unknown}
    for form in plural:
        word = form[0][0]
        names = [n for n in (word[:-1], word[:-2] if word.endswith("es") else "") if n]
        family = next((n for n in names if n in lasts or n in opened), "")
        bearing = lasts.get(family, []) + opened.get(family, []) if family else []
        if len(bearing) == 1:
            bearing[0].spans += people[form]
        elif bearing:
            open_group(form, people[form]).key = f"PERSON:{family} family"
        else:
            unknown.append(form)
    alike: dict[str, list[_Group]] = {}
    for form in sorted(unknown):
        word = form[0][0]
        if word.endswith("s") and word[:-1] in singular and len(word) > 4:
            target = opened.get(word[:-1])
            if target:
                target[0].spans += people[form]
                continue
        sound = _sound(word) if len(word) >= 4 else ""
        if sound:
            if not alike:
                for part, bearing in sorted(bearers.items()):
                    if len(part) >= 4:
                        alike.setdefault(_sound(part), []).extend(g for g in bearing if _near(part, word))
            fits = [g for g in _once(alike.get(sound, [])) if _sounds_alike(g, word)]
            if len(fits) == 1:
                fits[0].spans += people[form]
                fits[0].forms.append(form[0])
                continue
        group = open_group(form, people[form])
        opened.setdefault(word, []).append(group)
        if sound:
            alike.setdefault(sound, []).append(group)


def _once(groups: list[_Group]) -> list[_Group]:
    return list({id(g): g for g in groups}.values())


def _sounds_alike(group: _Group, word: str) -> bool:
    sound = _sound(word)
    return any(len(p) >= 4 and _sound(p) == sound and _near(p, word) for form in group.forms for p in form)


def _initials(words: tuple[str, ...], form: tuple[str, ...]) -> bool:
    letters = [w for w in words if w[0] != "+"]
    parts = [p for p in form if p[0] != "+"]
    if len(letters) < 2 or len(parts) < 2:
        return False
    ends = letters == [parts[0][0], parts[-1][0]]
    return ends or letters == [p[0] for p in parts]


def _settled(document: Document, mentions: list[Span], fits: list[_Group]) -> list[Span]:
    """Give each mention that a turn settles to its group; returns the others."""
    rest: list[Span] = []
    turns = document.turns
    begins = [t.start for t in turns]
    named = sorted(((s.start, s.end, i) for i, g in enumerate(fits) for s in g.spans))
    for span in mentions:
        at = bisect_right(begins, span.start) - 1
        turn = turns[at] if at >= 0 and span.start < turns[at].end else None
        chosen: _Group | None = None
        if turn is not None and turn.speaker is not None:
            a, b = turn.speaker
            next_one = bisect_right(named, (a, b, -1))
            around = named[max(0, next_one - 1) : next_one + 1]
            speaker = next((fits[i] for start, end, i in around if start < b and a < end), None)
            before = document.text[max(turn.start, span.start - _WINDOW) : span.start]
            if speaker is not None and _INTRODUCTION.search(before):
                chosen = speaker
            elif speaker is not None and _GREETING.search(before):
                others = [g for g in fits if g is not speaker]
                chosen = others[0] if len(others) == 1 else None
        if chosen is None:
            rest.append(span)
        else:
            chosen.spans.append(span)
    return rest


def _spelled_out(groups: list[_Group], spelled: dict[str, list[Span]], notes: list[str]) -> None:
    bearing: dict[str, list[_Group]] = {}
    for group in groups:
        for form in group.forms:
            for part in {*form, "".join(form)}:
                known = bearing.setdefault(part, [])
                if group not in known:
                    known.append(group)
    for letters, mentions in spelled.items():
        fits = bearing.get(letters, [])
        if len(fits) == 1:
            fits[0].spans += mentions
            continue
        if fits:
            notes.append(_note(mentions, [min(f.spans) for f in fits]))
        group = _Group(("PERSON:" if any(m.label != "SPELLED_WORD" for m in mentions) else "SPELLED_WORD:") + letters)
        group.spans += mentions
        groups.append(group)


_PAIRS = "ph:f ck:k ce:se ci:si cy:si ch:č c:k q:k x:ks z:s y:i h:"
_SAME_SOUND = tuple((a, b) for a, _, b in (pair.partition(":") for pair in _PAIRS.split()))


def _sound(word: str) -> str:
    """How a name sounds, roughly: vowels are kept, so that Anna and Anne stay apart."""
    for a, b in _SAME_SOUND:
        if a in word:
            word = word.replace(a, b)
    if len(word) > 3 and word[-1] == "e" and word[-2] not in "aeiou":
        word = word[:-1]
    return "".join(c for i, c in enumerate(word) if i == 0 or c != word[i - 1])


def _near(a: str, b: str) -> bool:
    """Whether one insertion, deletion or substitution makes one of the other, or none at all."""
    if len(a) > len(b):
        a, b = b, a
    if len(b) - len(a) > 1:
        return False
    at = 0
    while at < len(a) and a[at] == b[at]:
        at += 1
    return a[at:] == b[at + 1 :] if len(a) < len(b) else a[at + 1 :] == b[at + 1 :]
