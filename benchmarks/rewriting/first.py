"""The rewriters that restoring was built against, the ten edits of common benchmarks among them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from benchmarks.rewriting.pieces import (
    CLOSE,
    OPEN,
    TAG,
    Piece,
    Rewrite,
    change_each_mention,
    change_piece,
    change_some_mentions,
    get_family_name,
    is_name,
    is_only_bearer,
    join_pieces,
    list_given_names,
    rename_piece,
    surround_mentions,
)

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


def last_name(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    if not is_name(piece) or not list_given_names(piece.text) or not is_only_bearer(piece, pieces):
        return piece
    return rename_piece(piece, get_family_name)


def initials(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    """``Emma Joy Tyler`` as ``E. J. Tyler``; particles stay words."""
    if not is_name(piece) or not list_given_names(piece.text) or not is_only_bearer(piece, pieces):
        return piece
    loose = tuple(
        "".join(rf"(?:{re.escape(w[0])}\.?\s?)?" for w in list_given_names(a)[1:]).join(
            (re.escape(list_given_names(a)[0][0]) + r"\.?\s?", r"(?:\w+ )?" + re.escape(get_family_name(a)))
        )
        for a in piece.accepted
        if list_given_names(a)
    )
    return replace(rename_piece(piece, _with_initials), loose=piece.loose + loose)


def _with_initials(name: str) -> str:
    return " ".join([*(w if w.islower() else w[0] + "." for w in list_given_names(name)), get_family_name(name)])


def last_first(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    if not is_name(piece) or not list_given_names(piece.text) or "," in piece.text:
        return piece
    return rename_piece(
        piece, lambda n: f"{get_family_name(n)}, {' '.join(list_given_names(n))}" if list_given_names(n) else n
    )


def titled(pieces: list[Piece], rng: Random) -> list[Piece]:
    out: list[Piece] = []
    for p in pieces:
        before = join_pieces(out[-1:]).rstrip()
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


def unbracketed(pieces: list[Piece], rng: Random) -> list[Piece]:
    """Tags without their brackets; not where the text has brackets around the tag or letters that touch it."""
    out: list[Piece] = []
    for i, p in enumerate(pieces):
        found = TAG.fullmatch(p.text) if p.edit >= 0 else None
        before, after = join_pieces(pieces[max(0, i - 1) : i])[-1:], join_pieces(pieces[i + 1 : i + 2])[:1]
        glued = before.isalnum() or after.isalnum()
        if found and not glued and not (before and before in OPEN) and not (after and after in CLOSE):
            inner = found[2].strip()
            p = replace(p, text=inner.replace('"', "") if rng.random() < 0.5 else inner)
        out.append(p)
    return out


def doubled(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    found = TAG.fullmatch(piece.text)
    if not found:
        return piece
    a, b = found[1][0], found[3][-1]
    return replace(piece, text=a + piece.text + b, accepted=piece.accepted | {a + o + b for o in piece.accepted})


def spaced(piece: Piece, rng: Random, pieces: list[Piece]) -> Piece:
    found = TAG.fullmatch(piece.text)
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
        if named and TAG.fullmatch(p.text):
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
    return text[-1] in CLOSE or bool(re.search(r"[^\W\d_]{3}$", text))


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
            p = change_piece(p, html.escape)
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
    "upper case": change_each_mention(str.upper, str.upper),
    "lower case": change_each_mention(str.lower, str.lower),
    "bold": surround_mentions("**", "**"),
    "Markdown escapes": change_each_mention(escaped_markdown, escaped_markdown),
    "brackets lost": unbracketed,
    "HTML escapes": change_each_mention(html.escape, html.escape),
    "line wrap": wrapped,
    "typo": change_some_mentions(typo),
    "last name": change_some_mentions(last_name),
    "brackets doubled": change_some_mentions(doubled),
    "spaces inserted": change_some_mentions(spaced),
    "typographic quotes": change_each_mention(curly, curly),
    "JSON escapes": change_each_mention(escaped_json, escaped_json),
    "possessive": possessive,
    "plural": with_ending("s", ("PERSON",)),
    "hyphenation": hyphenated,
    "sentences reordered": reordered,
    "synonyms": reworded,
    "quoted": surround_mentions('"', '"'),
    "title": titled,
    "initials": change_some_mentions(initials),
    "last, first": change_some_mentions(last_first),
    "title case": change_each_mention(capitalised, capitalised),
    "no-break spaces": change_each_mention(nbsp, nbsp_after_short),
    "zero width": zero_width,
    "list or table": tabled,
    "XML": in_xml,
    "number format": change_some_mentions(regrouped),
    "Polish endings": polish,
    "German genitive": with_ending("s", ("PERSON", "LOCATION")),
    "foreign sentences": framed,
    "summary": summarised,
}
DROPPING = frozenset({"summary"})
"""Rewriters that lose mentions."""
