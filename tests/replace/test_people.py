"""Pseudonyms of people: every surface follows the same new person, and nothing of the old one is left.

Cases: ``want`` is the text that comes out, with ``{slot}`` for what may differ; a slot that comes twice must be the same
twice. ``{given_f_polish}`` is a Polish woman's given name, ``{family_irish}`` a family name, ``{x:J}`` any letter but
J; ``{i:slot}`` the initial of a slot, ``{u:slot}`` its capitals; see ``made_of``.
"""

import re
import unicodedata
from functools import lru_cache

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.replace.pseudonyms import KEY, MARK, kb, marked, play
from tests.rows import check_each_row

from allonym.document import Document
from allonym.link import link
from allonym.policy import Policy, Rule
from allonym.protocol import Setting, Wanted
from allonym.replace.cast import CorpusBook, make_cast
from allonym.replace.naming import feminise_family_name, parse_name, pluralise_name
from allonym.replace.people import _list_deletion_forms, choose_family_name, make_renderers
from allonym.text.fold import to_ascii_letters
from allonym.text.names import normalize_surface

KEYS = [KEY, b"another key for the tests 32 byte", b"a third key for the tests, 32 byt"]
SLOT = re.compile(r"\{(?:(\w+):)?(\w+)\}")
WORD = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
KINDS = {"low": r"[^\W\d_A-Z]+(?:['-][^\W\d_A-Z]+)*", "CAP": r"[^\W\d_a-z]+(?:['-][^\W\d_a-z]+)*", "num": r"\d{1,3}"}
KINDS |= {"hyphen": r"[^\W\d_]+-[^\W\d_]+", "host": "[a-z]+", "HOST": "[A-Z]+", "core": r"[^\W\d_]+(?:['’][^\W\d_]+)?"}


def made_of(how, value):
    """What a slot's value must look like elsewhere."""
    if how == "i":
        return {to_ascii_letters(value)[0].upper()}
    if how == "j":
        return {to_ascii_letters(value)[0].lower()}
    if how == "ih":
        return {"-".join(to_ascii_letters(p)[0] + "." for p in value.split("-"))}
    if how == "l":
        return {value.lower(), to_ascii_letters(value).lower(), to_ascii_letters(value.replace("'", "")).lower()}
    if how in ("sp", "ss"):
        return {("-" if how == "sp" else " ").join(c for c in value.upper() if c.isalnum())}
    if how == "w":
        return {feminise_family_name(value, f.origin) for f in kb().name_facts(value) if f.part == "last"}
    return {value.upper() if how == "u" else pluralise_name(value)}


def is_kind(name, value):
    """Whether a value is what its slot is called after."""
    part, *rest = [p for p in name.split("_") if not p.isdigit()]
    facts = kb().name_facts(value)
    if part == "given":
        gender, *origin = rest
        facts = [f for f in facts if f.part == "first" and gender in ("any", f.gender)]
    elif part == "family":
        origin, facts = rest, [f for f in facts if f.part == "last"]
    else:
        return True
    if part == "given" and not origin and not facts and "-" in value:
        return True
    return any(not origin or f.origin == origin[0] for f in facts)


def pattern(want, values=None):
    """A regular expression for ``want``: slots only, or with the slots' values, what is made of them."""
    out, at = "", 0
    seen = set()
    for m in SLOT.finditer(want):
        out += re.escape(want[at : m.start()])
        how, name = m[1], m[2]
        at = m.end()
        if how == "x":
            out += f"(?!{name})[{'A-Z' if name.isupper() else 'a-z'}]"
        elif how == "digits":
            out += rf"(?!{name})\d{{{len(name)}}}"
        elif how is None and values is None:
            out += f"(?P={name})" if name in seen else f"(?P<{name}>{KINDS.get(name.split('_')[0], WORD)})"
            seen.add(name)
        elif how is None:
            out += re.escape(values[name])
        elif values is None:
            out += r"[^\d_@]+?"
        else:
            out += "(?:" + "|".join(map(re.escape, sorted(made_of(how, values[name])))) + ")"
    return out + re.escape(want[at:])


def check(case, out):
    """What is wrong with the text that came out; empty if nothing is."""
    match = re.fullmatch(pattern(case["want"]), out)
    if match is None:
        return "does not match"
    found = match.groupdict()
    for name, value in found.items():
        if not is_kind(name, value):
            return f"{value} is no {name}"
    if re.fullmatch(pattern(case["want"], found), out) is None:
        return f"does not agree with itself: {found}"
    given_names = [v for n, v in found.items() if n.startswith("given")]
    families = [v for n, v in found.items() if n.startswith("family")]
    if any(kb().famous(g, f) for g in given_names for f in families):
        return "a famous name"
    return left_over(case["text"], out)


def left_over(text, out):
    """A word of a marked name that is still there; empty if none is."""
    outside = set(re.findall(r"\w+", normalize_surface(MARK.sub(" ", text))))
    words = set(re.findall(r"\w+", normalize_surface(out)))
    for m in MARK.finditer(text):
        if not m[2].startswith("PERSON"):
            continue
        for piece in parse_name(m[1]):
            for word in re.findall(r"\w+", normalize_surface(piece.text)):
                if piece.kind == "name" and len(word) > 2 and word in words - outside - {"user"}:
                    return f"{word} is left"
    return ""


@pytest.mark.parametrize("key", KEYS)
def test_cases(cases, key):
    failed = []
    for case in cases("pseudonyms_people"):
        out = play(case["text"], case.get("options"), (), key, case.get("language", "en"))
        if problem := check(case, out):
            failed.append((case["case"], out, problem))
    assert not failed, "\n".join(map(str, failed))


@lru_cache
def pool(part, origin, gender=""):
    return kb().names(part, origin, gender)


ORIGINS = ("english", "german", "polish", "spanish", "french", "czech", "italian", "turkish", "hindi", "dutch")


@st.composite
def people(draw):
    """A name of the knowledge base in two words, and its gender."""
    origin, gender = draw(st.sampled_from(ORIGINS)), draw(st.sampled_from("fm"))
    first = draw(st.sampled_from(pool("first", origin, gender)))
    last = draw(st.sampled_from([n for n in pool("last", origin, gender) if " " not in n]))
    assume(not {"ı", "İ", "ß"} & set(first + last))  # their capitals are other letters
    return first, last, gender


@given(people(), st.sampled_from(KEYS))
def test_surfaces_of_one_person_agree(person, key):
    first, last, _ = person
    surfaces = [
        f"{first} {last}",
        f"Dr. {last}",
        first,
        f"{last}, {first}",
        f"{first} {last}".upper(),
        f"{first[0]}. {last}",
    ]
    text = " ; ".join(f"{{{s}|PERSON}}" for s in surfaces)
    out = play(text, key=key)
    full, titled, alone, turned, capitals, initial = out.split(" ; ")
    assert titled.startswith("Dr. ")
    family = titled[4:]
    given_name = full[: -len(family) - 1]
    assert full == f"{given_name} {family}"
    assert alone == given_name
    assert turned == f"{family}, {given_name}"
    assert capitals == full.upper()
    assert initial.endswith(f". {family}") and normalize_surface(initial[0]) == normalize_surface(given_name[0])
    assert not {normalize_surface(first), normalize_surface(last)} & set(
        re.findall(r"[\w'’-]+", normalize_surface(out))
    )
    assert not kb().famous(given_name, family)


@given(people(), st.sampled_from("fm"), st.sampled_from(KEYS))
def test_titles_tell_the_gender(person, gender, key):
    first, last, _ = person
    title = {"f": "Mrs", "m": "Mr"}[gender]
    out = play(f"{{{title} {first} {last}|PERSON}} came.", key=key)
    name = out.removeprefix(f"{title} ").partition(" ")[0]
    genders = {f.gender for part in (name, name.split("-")[0]) for f in kb().name_facts(part) if f.part == "first"}
    assert gender in genders or "n" in genders


@given(people(), people())
def test_same_key_and_scope_same_person(one, other):
    text = f"{{{one[0]} {one[1]}|PERSON}}"
    first = play(text, scope="a")
    assert play(text, scope="a") == first
    assert play(f"{text} and nobody else", scope="a").startswith(first)
    rest = [play(text, scope="b"), play(text, key=KEYS[1], scope="a"), play(text, key=KEYS[2], scope="a")]
    assert any(r != first for r in rest)


@given(
    st.lists(people(), min_size=2, max_size=8, unique_by=lambda p: (normalize_surface(p[0]), normalize_surface(p[1])))
)
@example([("Abbey", "Abbott", "f"), ("Adriána", "Janošková", "f")])
def test_no_two_people_share_a_name(some):
    text = "\n".join(f"{{{first} {last}|PERSON}}" for first, last, _ in some)
    bare, spans = marked(text)
    entities = len(link(Document("", bare), spans).entities)
    out = play(text).splitlines()
    assert len({normalize_surface(line) for line in out}) >= entities
    words = [set(re.findall(r"[^\W\d_]{3,}", normalize_surface(line))) for line in out]
    assert not set().union(*words) & set(re.findall(r"[^\W\d_]{3,}", normalize_surface(bare)))


@check_each_row(
    "name",
    [
        "Jack Ma",
        "Jackie Chan",
        "JANE MA",
        "Abiye Şama",
        "Priya Ji",
        "Anna Ba",
        "Wei Nim",
        "Das, Aachal",
        "Maj, Adam",
        "Thi Adam",
    ],
)
def test_no_family_name_is_taken_for_a_suffix(name):
    for key in KEYS:
        assert not set(play(f"{{{name}|PERSON}}", key=key).split()) & set(name.split()), key


def test_neutral_names_are_neutral():
    bare, spans = marked("{Sarah Connor|PERSON} and {Robert Miller|PERSON}, {Petra Nováková|PERSON}")
    document = Document("", bare)
    wanted = [
        Wanted(e, {"names": "neutral"}, i, "PERSON", "", tuple(bare[s.start : s.end] for s in e.spans))
        for i, e in enumerate(link(document, spans).entities)
    ]
    cast = make_cast(Setting(document, Policy(name="p", default=Rule("pseudonym")), KEY), kb(), [])
    players = make_renderers(cast, wanted)
    for one in wanted:
        name = players[one.entity.key](one.surfaces[0])
        assert "n" in {f.gender for f in kb().name_facts(name.split()[0]) if f.part == "first"}


def test_a_vault_keeps_people_apart_and_alike():
    # More people than the pool of given names has names.
    book = CorpusBook()
    names = [f"{first} {last}" for first in pool("first", "korean", "f")[:12] for last in pool("last", "korean")[:10]]

    def played(name):
        return play(f"{{{name}|PERSON}}", book=book)

    first = [played(name) for name in names]
    assert len(set(first)) == len(names) == 120
    assert not any("[" in name for name in first)
    assert [played(name) for name in names] == first


def test_family_names_agree_with_people():
    bare, spans = marked("{Sarah Connor|PERSON}")
    document = Document("", bare)
    assert link(document, spans).entities
    cast = make_cast(Setting(document, Policy(name="p", default=Rule("pseudonym")), KEY), kb(), [])
    name = choose_family_name(cast, "Connor")
    assert name is not None
    assert play("{Sarah Connor|PERSON}").endswith(f" {name}")
    assert choose_family_name(cast, "Connor") == name
    assert choose_family_name(cast, "123") is None


def test_a_name_of_many_bearers_stays_apart():
    text = "\n".join(f"{{{first} Hartwell|PERSON}}" for first in pool("first", "american", "f")[:300:5])
    bare, spans = marked(text)
    out = play(text).splitlines()
    assert len({line.rpartition(" ")[2] for line in out}) == 1
    assert len(set(out)) >= len(link(Document("", bare), spans).entities) > 50


@given(
    st.lists(
        st.text(max_size=25).filter(lambda t: not set("{}|") & set(t) and t.strip()),
        min_size=1,
        max_size=3,
        unique=True,
    )
)
def test_whatever_is_found_something_else_comes_out(surfaces):
    text = " ; ".join(f"{{{s}|PERSON}}" for s in surfaces)
    out = play(text)
    assert out.strip()
    for surface in surfaces:
        letters = re.findall(r"[^\W\d_]{4,}", normalize_surface(surface))
        kept = {p.kind for p in parse_name(surface)} & {"title", "suffix", "particle"}
        assert kept or not any(re.search(rf"(?<!\w){re.escape(w)}(?!\w)", normalize_surface(out)) for w in letters)


@pytest.mark.parametrize("text", ["Sarah_Connor_77", "Sarah Connor (1984)", "Sarah Connor 7-7", "Sarah Connor ٣٤"])
def test_digits_at_a_name_become_others(text):
    out = play(f"{{{text}|PERSON}}")
    assert out == play(f"{{{text}|PERSON}}")
    old, new = re.findall(r"\d+", text), re.findall(r"\d+", out)
    assert [len(n) for n in new] == [len(n) for n in old]
    assert all(n != o for n, o in zip(new, old, strict=True))


def test_as_many_digits_as_a_code_has_become_a_tag():
    assert play("{Sarah Connor 078-05-1120|PERSON}") == "[PERSON_1]"


def test_accents_that_stand_apart_are_read_with_their_letters():
    for name in ("Jose\u0301 Rui\u0301z", "S\u0301arah Connor", "Anton Dvor\u030ca\u0301k"):
        out = play(f"{{{name}|PERSON}}")
        assert out == play(f"{{{unicodedata.normalize('NFC', name)}|PERSON}}")
        assert not set(out) & set("\u0301\u030c")


def test_korean_names_in_ji_are_names_and_honorifics_are_none():
    assert [p.text for p in parse_name("Kim Min-ji") if p.kind == "name"] == ["Kim", "Min-ji"]
    assert [p.text for p in parse_name("Gandhi-ji") if p.kind == "name"] == ["Gandhi"]
    assert [p.text for p in parse_name("Min-san") if p.kind == "name"] == ["Min"]
    out = play("{Kim Min-ji|PERSON}, {Min-ji|PERSON}")
    assert "Min" not in out and out.split(", ")[0].endswith(out.split(", ")[1])


def test_a_long_word_has_few_near_forms():
    assert _list_deletion_forms("Connor") >= {"connor", "onnor", "conno"}
    assert _list_deletion_forms("c" * 5000) == {"c" * 5000}


def test_initials_that_are_another_persons_get_a_second_letter():
    text = "{Bea Fox|PERSON} ({BF|PERSON}), {Cal Moss|PERSON} ({CM|PERSON}), {Dee Nash|PERSON} ({DN|PERSON}) met."
    for number in range(60):
        out = play(text, key=number.to_bytes(32, "big"))
        initials = re.findall(r"\((.*?)\)", out)
        assert len(set(initials)) == 3 and all(re.fullmatch("[A-Z][a-z]?[A-Z]", letters) for letters in initials)


def test_initials_that_are_a_given_name_too_are_initials():
    out = play("{Brenda Oakes|PERSON} spoke. {BO|PERSON} to write, {Brenda|PERSON} to pay.")
    given_name, family = out.split()[:2]
    assert f" {given_name[0]}{family[0]} to write" in out
