"""Deterministic stand-ins for what a language model does to an anonymised text, so that restoring can be measured.

A text is a row of pieces: what lies outside of mentions, and the mentions (the plan's replacements). A rewriter turns
pieces into pieces and knows for each mention what may stand there after restoring; everything outside has to stay
exactly as the rewriter left it. Randomness is seeded by the caller.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from allonym.plan import Plan

TITLES = ("Mr", "Mrs", "Ms", "Dr", "Prof.", "Pan", "Pani", "Frau", "Herr")
SYNONYMS = dict(
    pair.split("=")
    for pair in (
        "said=stated also=likewise big=large begin=start began=started help=assist show=demonstrate shows=demonstrates "
        "good=fine great=excellent many=numerous think=believe very=highly about=regarding because=since but=yet "
        "get=obtain give=provide important=significant make=create need=require new=recent often=frequently "
        "people=individuals quickly=rapidly small=minor use=utilise want=wish year=twelvemonth years=seasons "
        "film=picture movie=picture well=properly however=still first=initial last=final company=firm question=query "
        "call=conversation jest=bywa był=pozostawał była=pozostawała oraz=i "
        "także=również jako=niczym który=jaki która=jaka które=jakie "
        "został=zostawał wraz=razem między=pomiędzy roku=lata miasto=gród część=fragment duży=wielki"
    ).split()
)
FRAMES = (
    ("Es geht hier um ", " sowie ", ".\n"),
    ("W tym zdaniu mowa o: ", " i ", ".\n"),
    ("Le passage nomme ", " et ", ".\n"),
    ("El texto menciona ", " y ", ".\n"),
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the anonymised text.

    Attributes:
        text: as it stands now.
        edit: index of the plan's edit that it is the replacement of; -1: outside.
        entity: the number of the entity in its document.
        label: topmost label of the mention.
        made: the replacement as the plan made it.
        own: what stood there in the original; empty outside.
        accepted: what may stand there after restoring; outside, what may stand there beside ``text``.
        loose: patterns of further forms that will do, e.g. inflected ones.
    """

    text: str
    edit: int = -1
    entity: int = 0
    label: str = ""
    made: str = ""
    own: str = ""
    accepted: frozenset[str] = frozenset()
    loose: tuple[str, ...] = ()


_TAIL = re.compile(r"\s*(?:['’ʼ][sS]|['’ʼ])?[\s.,;:!?]*")


def parted(replacement: str, original: str) -> tuple[str, str, str, str]:
    """Outer space, replacement, original and tail: what the plan kept around both belongs to neither.

    A space that only the replacement has comes back as ``lead`` or in ``tail`` marked by a leading NUL.
    """
    for size in range(min(len(replacement), len(original)) - 1, 0, -1):
        tail = replacement[-size:]
        if original.endswith(tail) and _TAIL.fullmatch(tail):
            replacement, original = replacement[:-size], original[:-size]
            break
    else:
        tail = ""
        if replacement.rstrip() != replacement and not original[-1:].isspace():
            tail = "\0" + replacement[len(replacement.rstrip()) :]
            replacement = replacement.rstrip()
    lead = replacement[: len(replacement) - len(replacement.lstrip())]
    replacement = replacement.lstrip()
    if lead and original.startswith(lead):
        original = original[len(lead) :]
    elif lead:
        lead = "\0" + lead
    return lead, replacement, original, tail


def pieces_of(text: str, plan: Plan, family: Callable[[str], str]) -> list[Piece]:
    """The anonymised text of a plan that holds its originals, in pieces; ``family`` gives a label's topmost one."""
    out: list[Piece] = []
    surfaces: dict[int, set[str]] = {}
    at = 0
    for i, edit in enumerate(plan.edits):
        out.append(Piece(text[at : edit.start]))
        at = edit.end
        original = edit.original or ""
        if edit.entity == 0 or not edit.replacement.strip():
            out.append(Piece(edit.replacement, accepted=frozenset({original}) if edit.entity == 0 else frozenset()))
            continue
        lead, core, own, tail = parted(edit.replacement, original)
        if core == own:  # a relative date stays as it is
            out.append(Piece(edit.replacement, accepted=frozenset({edit.replacement})))
            continue
        out.append(_outer(lead))
        surfaces.setdefault(edit.entity, set()).add(own)
        out.append(Piece(core, i, edit.entity, family(edit.label), core, own))
        out.append(_outer(tail))
    out.append(Piece(text[at:]))
    return [replace(p, accepted=frozenset(surfaces[p.entity])) if p.edit >= 0 else p for p in out if p.text]


def _outer(text: str) -> Piece:
    return Piece(text[1:], accepted=frozenset({""})) if text[:1] == "\0" else Piece(text)


def joined(pieces: Iterable[Piece]) -> str:
    return "".join(p.text for p in pieces)


Rewrite = Callable[[list[Piece], Random], list[Piece]]
Change = Callable[[str], str]


def each(mention: Change | None, outside: Change | None = None) -> Rewrite:
    """The same change to every mention, whose original may come back changed alike, and one to what lies outside."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        return [_changed(p, mention if p.edit >= 0 else outside) for p in pieces]

    return rewrite


def _changed(piece: Piece, change: Change | None) -> Piece:
    if change is None:
        return piece
    return replace(piece, text=change(piece.text), accepted=piece.accepted | {change(a) for a in piece.accepted})


def some(change: Callable[[Piece, Random, list[Piece]], Piece]) -> Rewrite:
    """A change of single mentions, which may look at the whole text."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        return [change(p, rng, pieces) if p.edit >= 0 else p for p in pieces]

    return rewrite


def around(before: str, after: str, labels: Sequence[str] = ()) -> Rewrite:
    """Text put right before and after mentions; it lies outside."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        out: list[Piece] = []
        for p in pieces:
            here = p.edit >= 0 and (not labels or p.label in labels)
            out += [Piece(before), p, Piece(after)] if here else [p]
        return [p for p in out if p.text]

    return rewrite


# What a name is.


def is_name(piece: Piece) -> bool:
    """Whether the mention is a person's name in words, no tag, and its family name is one: no initial, no number."""
    if piece.label != "PERSON" or not re.fullmatch(r"[^\W\d_][^\d_\[\]<>{}()@/]*", piece.text):
        return False
    word = family(piece.text)
    return len(word) > 2 and word.isalpha() and not re.fullmatch(r"[IVX]+", word)


def family(name: str) -> str:
    """The last word of a name, or what stands before the comma."""
    head, comma, _ = name.partition(",")
    words = (head if comma else name).split()
    return words[-1] if words else name


def given(name: str) -> list[str]:
    head, comma, rest = name.partition(",")
    return rest.split() if comma else head.split()[:-1]


def alone(piece: Piece, pieces: Sequence[Piece]) -> bool:
    """Whether no other entity of the text bears the family name, so that the name alone tells who is meant."""
    word = family(piece.text).casefold()
    return not any(p.entity != piece.entity and word in p.text.casefold() for p in pieces if p.edit >= 0)


def renamed(piece: Piece, form: Change) -> Piece:
    """The mention and what is accepted in another form of name."""
    return replace(piece, text=form(piece.text), accepted=piece.accepted | {form(a) for a in piece.accepted})


def last_name(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    if not is_name(piece) or not given(piece.text) or not alone(piece, pieces):
        return piece
    return renamed(piece, family)


def initials(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Emma Joy Tyler`` as ``E. J. Tyler``; particles stay words."""
    if not is_name(piece) or not given(piece.text) or not alone(piece, pieces):
        return piece
    loose = tuple(
        "".join(rf"(?:{re.escape(w[0])}\.?\s?)?" for w in given(a)[1:]).join(
            (re.escape(given(a)[0][0]) + r"\.?\s?", r"(?:\w+ )?" + re.escape(family(a)))
        )
        for a in piece.accepted
        if given(a)
    )
    return replace(renamed(piece, _with_initials), loose=piece.loose + loose)


def _with_initials(name: str) -> str:
    return " ".join([*(w if w.islower() else w[0] + "." for w in given(name)), family(name)])


def last_first(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    if not is_name(piece) or not given(piece.text) or "," in piece.text:
        return piece
    return renamed(piece, lambda n: f"{family(n)}, {' '.join(given(n))}" if given(n) else n)


def titled(pieces: list[Piece], rng: Random) -> list[Piece]:
    out: list[Piece] = []
    for p in pieces:
        before = joined(out[-1:]).rstrip()
        if p.label == "PERSON" and not before.endswith(TITLES):
            out.append(Piece(rng.choice(TITLES) + " "))
        out.append(p)
    return out


# Letters.


def distant(text: str, others: Iterable[str]) -> bool:
    """Whether the text is no single edit away from any of the others."""
    return not any(_near(text.casefold(), o.casefold()) for o in others)


def _near(a: str, b: str) -> bool:
    if a == b:
        return True
    if abs(len(a) - len(b)) > 1:
        return False
    i = 0
    while i < min(len(a), len(b)) and a[i] == b[i]:
        i += 1
    if len(a) == len(b):
        return a[i + 1 :] == b[i + 1 :] or (a[i : i + 2] == b[i : i + 2][::-1] and a[i + 2 :] == b[i + 2 :])
    return a[i:] == b[i + 1 :] or a[i + 1 :] == b[i:]


def typo(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """One letter of a word of five letters or more: dropped, doubled, swapped with the next or another one."""
    words = [m.span() for m in re.finditer(r"[^\W\d_]{5,}", piece.text)]
    others = [w for p in pieces if p.entity != piece.entity and p.edit >= 0 for w in (p.made, *p.made.split())]
    if not words or rng.random() < 0.5:
        return piece
    for _ in range(8):
        a, b = rng.choice(words)
        i = rng.randrange(a + 1, b - 1)
        text, letter = piece.text, piece.text[i]
        kinds = (
            text[:i] + text[i + 1 :],
            text[:i] + letter + text[i:],
            text[:i] + text[i + 1] + letter + text[i + 2 :],
            text[:i] + rng.choice("aeinorst") + text[i + 1 :],
        )
        new = rng.choice(kinds)
        if new != text and distant(new, others) and all(distant(w, others) for w in new.split() if len(w) > 4):
            return replace(piece, text=new)
    return piece


def hyphenated(pieces: list[Piece], rng: Random) -> list[Piece]:
    def cut(text: str, least: int, chance: float) -> str:
        def broken(m: re.Match[str]) -> str:
            word = m[0]
            if rng.random() >= chance:
                return word
            i = rng.randrange(2, len(word) - 2)
            return f"{word[:i]}-\n{word[i:]}"

        return re.sub(rf"[^\W\d_]{{{least},}}", broken, text)

    return [replace(p, text=cut(p.text, 6, 0.5) if p.edit >= 0 else cut(p.text, 9, 0.1)) for p in pieces]


def wrapped(pieces: list[Piece], rng: Random) -> list[Piece]:
    """Line breaks instead of spaces, within mentions too."""
    width, column = rng.choice((20, 40, 72)), 0
    out: list[Piece] = []
    for p in pieces:
        text = ""
        for char in p.text:
            column = 0 if char == "\n" else column + 1
            if char == " " and column > width:
                char, column = "\n", 0
            text += char
        broken = {re.sub(" ", "\n", a, count=n) for a in p.accepted for n in (0, 1)} if p.edit >= 0 else set()
        out.append(replace(p, text=text, accepted=p.accepted | broken))
    return out


def zero_width(pieces: list[Piece], rng: Random) -> list[Piece]:
    def put(text: str) -> str:
        places = [i for i in range(1, len(text)) if text[i - 1].isalnum() and text[i].isalnum()]
        if not places:
            return text
        i = rng.choice(places)
        return text[:i] + rng.choice("\u200b\u200d\ufeff\u2060") + text[i:]

    return [replace(p, text=put(p.text)) if p.edit >= 0 and rng.random() < 0.7 else p for p in pieces]


def curly(text: str) -> str:
    text = re.sub(r'(^|[\s(\[<])"', "\\1“", text).replace('"', "”")
    return re.sub(r"(^|[\s(\[])'", "\\1‘", text).replace("'", "’")


def nbsp(text: str) -> str:
    return text.replace(" ", "\u00a0")


def nbsp_after_short(text: str) -> str:
    return re.sub(r"(?<=\b\w) ", "\u00a0", text)


# Tags.

_OPEN, _CLOSE = "[(<{⟦«", "])>}⟧»"
_TAG = re.compile(rf"([{re.escape(_OPEN)}]+)(.*?)([{re.escape(_CLOSE)}]+)", re.DOTALL)


def unbracketed(pieces: list[Piece], rng: Random) -> list[Piece]:
    """Tags without their brackets; not where the text has brackets around the tag or letters that touch it."""
    out: list[Piece] = []
    for i, p in enumerate(pieces):
        found = _TAG.fullmatch(p.text) if p.edit >= 0 else None
        before, after = joined(pieces[max(0, i - 1) : i])[-1:], joined(pieces[i + 1 : i + 2])[:1]
        glued = before.isalnum() or after.isalnum()
        if found and not glued and not (before and before in _OPEN) and not (after and after in _CLOSE):
            inner = found[2].strip()
            p = replace(p, text=inner.replace('"', "") if rng.random() < 0.5 else inner)
        out.append(p)
    return out


def doubled(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    found = _TAG.fullmatch(piece.text)
    if not found:
        return piece
    a, b = found[1][0], found[3][-1]
    return replace(piece, text=a + piece.text + b, accepted=piece.accepted | {a + o + b for o in piece.accepted})


def spaced(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    found = _TAG.fullmatch(piece.text)
    if not found:
        return replace(piece, text=piece.text.replace(" ", "  "))
    a, inner, b = found.groups()
    kinds = (f"{a} {inner} {b}", a + inner.replace("_", " ") + b, a + re.sub(r"_(\d+)$", r"_ \1", inner) + b)
    return replace(piece, text=rng.choice(kinds))


# Numbers.

_SEPARATORS = r"[\s.,\-–/()]*"


def regrouped(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """A number written with other separators; no tag, no address, nothing with less than four digits."""
    text = piece.text
    if sum(c.isdigit() for c in text) < 4 or re.search(r"[@\[<{_:]|[^\W\d_]{3}", text):
        return piece
    if re.search(r"\d,\d+\.\d", text):
        new = text.translate(str.maketrans(",.", ".,"))
    elif re.search(r"\d[ .,/-]\d", text):
        sign = rng.choice([s for s in " .-" if s not in text] or ["-"])
        new = re.sub(r"(?<=\d)[ .,/-](?=\d)", sign, text)
    elif re.search(r"\d{5}", text):
        new = re.sub(r"\d{5,}", lambda m: " ".join(re.findall(r"\d{1,3}", m[0])), text)
    else:
        return piece
    loose = tuple(
        _SEPARATORS.join(re.escape(c) for c in re.sub(_SEPARATORS, "", a)) for a in piece.accepted if len(a) < 60
    )
    return replace(piece, text=new, loose=piece.loose + loose)


# Endings.

_POLISH = {
    "ski": ("skiego", "skiemu", "skim"),
    "cki": ("ckiego", "ckiemu", "ckim"),
    "ska": ("skiej", "ską", "skiej"),
    "cka": ("ckiej", "cką", "ckiej"),
    "ek": ("ka", "kowi", "kiem"),
    "eł": ("ła", "łowi", "łem"),
    "ów": ("owa", "owowi", "owem"),
    "ka": ("ki", "kę", "ką"),
    "ga": ("gi", "gę", "gą"),
    "ia": ("ii", "ię", "ią"),
    "a": ("y", "ę", "ą"),
    "y": ("y'ego", "y'emu", "ym"),
    "i": ("i'ego", "i'emu", "im"),
    "e": ("e'a", "e'owi", "e'em"),
    "o": ("o", "o", "o"),
    "u": ("u", "u", "u"),
    "k": ("ka", "kowi", "kiem"),
    "g": ("ga", "gowi", "giem"),
    "": ("a", "owi", "em"),
}


def polish_case(word: str, case: int) -> str:
    """Genitive, dative or instrumental, by the ending alone."""
    for ending, forms in _POLISH.items():
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word[: len(word) - len(ending)] + forms[case]
    return word


def _stem(word: str) -> str:
    """A pattern of all cases of a name: the last letters may change, and up to three are added."""
    kept = max(len(word) - 2, 2) if len(word) > 3 else len(word)
    return re.escape(word[:kept]) + rf"(?:[^\W\d_]|['’]){{0,{len(word) - kept + 3}}}"


def polish(pieces: list[Piece], rng: Random) -> list[Piece]:
    """People, and places of one word that ends like a Polish noun, in another case.

    A tag gets the ending of a name that ends in a consonant; foreign place names stay as they are.
    """
    out: list[Piece] = []
    for p in pieces:
        case = rng.randrange(3)
        named = p.edit >= 0 and p.label in ("PERSON", "LOCATION")
        words = r"[^\W\d_]{3,}(?: [^\W\d_]{3,})*" if p.label == "PERSON" else r"[^\W\d_]{3,}[^\W\d_eiouyéèóúí]"
        if named and _TAG.fullmatch(p.text):
            out += [p, Piece(_POLISH[""][case], accepted=frozenset({""}))]
        elif named and p.text[:1].isupper() and re.fullmatch(words, p.text):
            loose = tuple(r"\s+".join(_stem(w) for w in a.split()) for a in p.accepted)
            new = re.sub(r"[^\W\d_]+", lambda m, case=case: polish_case(m[0], case), p.text)  # type: ignore[misc]
            out.append(replace(p, text=new, loose=p.loose + loose))
        else:
            out.append(p)
    return out


def with_ending(ending: str, labels: Sequence[str]) -> Rewrite:
    """An ending glued to mentions; restoring may keep it or not."""

    def rewrite(pieces: list[Piece], rng: Random) -> list[Piece]:
        out: list[Piece] = []
        for p in pieces:
            out.append(p)
            if p.edit >= 0 and p.label in labels and p.text[-1] not in "sxzß" and _open_ended(p.text):
                out.append(Piece(ending, accepted=frozenset({""})))
        return out

    return rewrite


def _open_ended(text: str) -> bool:
    """Whether an ending can be glued to it: to a tag, or to a word of three letters."""
    return text[-1] in _CLOSE or bool(re.search(r"[^\W\d_]{3}$", text))


def possessive(pieces: list[Piece], rng: Random) -> list[Piece]:
    out: list[Piece] = []
    for i, p in enumerate(pieces):
        out.append(p)
        after = pieces[i + 1].text[:1] if i + 1 < len(pieces) else " "
        if p.edit >= 0 and p.label in ("PERSON", "ORGANIZATION") and not (after.isalnum() or after in "'’ʼ-"):
            out.append(Piece("'s"))
    return out


# Sentences.

_SENTENCE = re.compile(r"[.!?]+[\"'”’)]*\s+|\n+")


def sentences(pieces: Iterable[Piece]) -> list[list[Piece]]:
    """The pieces by sentence; a sentence ends only outside of mentions."""
    out: list[list[Piece]] = [[]]
    for p in pieces:
        if p.edit >= 0 or p.accepted:
            out[-1].append(p)
            continue
        at = 0
        for m in _SENTENCE.finditer(p.text):
            out[-1].append(replace(p, text=p.text[at : m.end()]))
            out.append([])
            at = m.end()
        if at < len(p.text):
            out[-1].append(replace(p, text=p.text[at:]))
    return [s for s in out if s]


def reordered(pieces: list[Piece], rng: Random) -> list[Piece]:
    parts = sentences(pieces)
    rng.shuffle(parts)
    return [p for part in parts for p in (*part, Piece("" if part[-1].text[-1:].isspace() else " ")) if p.text]


def summarised(pieces: list[Piece], rng: Random) -> list[Piece]:
    """Drops about half of the sentences, and the mentions in them."""
    parts = sentences(pieces)
    kept = [part for part in parts if rng.random() < 0.5] or parts[:1]
    return [p for part in kept for p in part]


def framed(pieces: list[Piece], rng: Random) -> list[Piece]:
    """Sentences in another language around the mentions of each sentence."""
    head, link, end = rng.choice(FRAMES)
    out: list[Piece] = []
    for part in sentences(pieces):
        mentions = [p for p in part if p.edit >= 0]
        for i, p in enumerate(mentions):
            out += [Piece(head if i == 0 else link if i == len(mentions) - 1 else ", "), p]
        out += [Piece(end)] if mentions else []
    return out


def reworded(pieces: list[Piece], rng: Random) -> list[Piece]:
    def other(m: re.Match[str]) -> str:
        word = SYNONYMS[m[0].lower()]
        return word.capitalize() if m[0][0].isupper() else word

    pattern = re.compile(r"\b(?:" + "|".join(SYNONYMS) + r")\b", re.IGNORECASE)
    return [p if p.edit >= 0 else replace(p, text=pattern.sub(other, p.text)) for p in pieces]


def tabled(pieces: list[Piece], rng: Random) -> list[Piece]:
    """A Markdown list or table, one row for each sentence."""
    before, after = rng.choice((("- ", "\n"), ("* ", "\n"), ("| ", " |\n"), ("> ", "\n"), ("## ", "\n")))
    out: list[Piece] = []
    for part in sentences(pieces):
        out.append(Piece(before))
        out += [p if p.edit >= 0 else replace(p, text=p.text.replace("\n", " ")) for p in part]
        out.append(Piece(after))
    return out


def in_xml(pieces: list[Piece], rng: Random) -> list[Piece]:
    out: list[Piece] = []
    for n, part in enumerate(sentences(pieces), 1):
        out.append(Piece(f'<s id="{n}">'))
        for p in part:
            p = _changed(p, html.escape)
            out += [Piece(f"<{p.label.lower()}>"), p, Piece(f"</{p.label.lower()}>")] if p.edit >= 0 else [p]
        out.append(Piece("</s>\n"))
    return out


def escaped_markdown(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", text)


def escaped_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def capitalised(text: str) -> str:
    return re.sub(r"(?<![^\W_])(?<![^\W_]['’])[^\W\d_]+", lambda m: m[0][0].upper() + m[0][1:].lower(), text)


def unchanged(pieces: list[Piece], rng: Random) -> list[Piece]:
    return pieces


REWRITERS: dict[str, Rewrite] = {
    "none": unchanged,
    "upper case": each(str.upper, str.upper),
    "lower case": each(str.lower, str.lower),
    "bold": around("**", "**"),
    "Markdown escapes": each(escaped_markdown, escaped_markdown),
    "brackets lost": unbracketed,
    "HTML escapes": each(html.escape, html.escape),
    "line wrap": wrapped,
    "typo": some(typo),
    "last name": some(last_name),
    "brackets doubled": some(doubled),
    "spaces inserted": some(spaced),
    "typographic quotes": each(curly, curly),
    "JSON escapes": each(escaped_json, escaped_json),
    "possessive": possessive,
    "plural": with_ending("s", ("PERSON",)),
    "hyphenation": hyphenated,
    "sentences reordered": reordered,
    "synonyms": reworded,
    "quoted": around('"', '"'),
    "title": titled,
    "initials": some(initials),
    "last, first": some(last_first),
    "title case": each(capitalised, capitalised),
    "no-break spaces": each(nbsp, nbsp_after_short),
    "zero width": zero_width,
    "list or table": tabled,
    "XML": in_xml,
    "number format": some(regrouped),
    "Polish endings": polish,
    "German genitive": with_ending("s", ("PERSON", "LOCATION")),
    "foreign sentences": framed,
    "summary": summarised,
}
DROPPING = frozenset({"summary"})
"""Rewriters that lose mentions."""

_CASE = ("upper case", "lower case", "title case")
_SENTENCES = ("sentences reordered", "foreign sentences", "synonyms")
_NAMES = ("last name", "initials", "last, first", "number format")
_ENDINGS = ("possessive", "plural", "Polish endings", "German genitive")
_LAYOUT = ("hyphenation", "line wrap", "no-break spaces", "zero width")
_ESCAPES = ("Markdown escapes", "HTML escapes", "JSON escapes", "XML")
_ORDER = {
    name: stage
    for stage, names in enumerate((_SENTENCES, _CASE, _NAMES, _ENDINGS, (), _LAYOUT, ("list or table",), _ESCAPES))
    for name in names
}
"""In a composition, names are shortened before words are broken, and escapes come last: nobody capitalises ``&lt;``."""

_APART = tuple(map(frozenset, (_CASE, _ENDINGS, _ESCAPES, (*_CASE, "Polish endings"), (*_ENDINGS, "brackets lost"))))
"""Of each of these, a composition has one at most: the second would undo or mistake what the first did."""


def composable(first: str, second: str) -> bool:
    """Whether the two make sense one after the other, in this order."""
    if first == second or {first, second} & {"none", *DROPPING} or _ORDER.get(first, 4) > _ORDER.get(second, 4):
        return False
    return not any(first in group and second in group for group in _APART)


def composed(names: Sequence[str], rng: Random) -> tuple[str, ...]:
    """Two rewriters to be applied one after the other; none where no two of them go together."""
    pairs = [(first, second) for first in names for second in names if composable(first, second)]
    return rng.choice(pairs) if pairs else ()
