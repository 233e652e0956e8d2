import pytest

from allonym.detection.slugs import SLUG, find_slug_names, find_slugs, write_slug
from allonym.document import PROSE, TECHNICAL, Document, Span
from allonym.labels import TAXONOMY


def find(name, text, label="PERSON", parts=()):
    """The slugs in a text, or in further parts of a document, that a name before it has."""
    roles = [PROSE, *(TECHNICAL for _ in parts)]
    document = Document.from_parts("", [f"{name}. {text}", *parts], separators=["\n"] * len(parts) + [""], roles=roles)
    spans = find_slugs(document, [Span(0, len(name), label, 0.9, "t")], TAXONOMY)
    return [document.text[s.start : s.end] for s in spans]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Barnaby Osgood", "#barnaby-osgood /people/barnaby_osgood.jpg", ["barnaby-osgood", "barnaby_osgood"]),
        ("Barnaby Osgood", "q=Barnaby+Osgood&x=Barnaby%20Osgood", ["Barnaby+Osgood", "Barnaby%20Osgood"]),
        ("Barnaby Osgood", "profile-of-barnaby-osgood-2021 osgood.barnaby", ["barnaby-osgood", "osgood.barnaby"]),
        ("Barnaby Osgood", "barnabyosgood barnabyosgoods barnaby-osgoods barnaby osgood", ["barnabyosgood", "barnaby"]),
        ("Dr Zoë Faßbender", "zoe-fassbender zoë-faßbender zo%C3%AB-fa%C3%9Fbender", None),
        ("Jürgen Osgood", "juergen-osgood jurgen-osgood", None),
        ("James Tiberius Osgood", "james-osgood james-tiberius-osgood", None),
        ("Art Work", "artwork art-work", ["art-work"]),
        ("Barnaby Osgood", "Raised by (bosgood), also bosgoods", ["bosgood"]),
        ("Seán Mac Giolla", "paused by smacgiolla and sgiolla", ["smacgiolla", "sgiolla"]),
        ("Barnaby Osgood-Clarke", "by oclarke, bosgood and bclarke", ["bosgood", "bclarke"]),
        ("Lindiwe Dube", "issue of ldube2, not of ldube or mdube2", ["ldube2"]),
        ("Barnaby Osgood", "login bosgood07", ["bosgood07"]),
        ("Osgood", "osgood barnaby osgood", []),
        ("Barnaby T. Osgood", "barnaby-t-osgood barnaby-osgood", None),
        ("Barnaby Osgood", "/people/osgood cv_osgood.pdf osgood.pdf C:\\osgood ?by=osgood", ["osgood"] * 5),
        ("Barnaby Osgood", "tags: osgood,failure,hope. An osgood, osgoods/", ["osgood"]),
        ("Elsie", "https://example.com/elsie or elsie", ["elsie"]),
        ("Unicode", "iso/unicode", []),
        ("Will Clark", "will-do/ /will /clark", ["clark"]),
    ],
)
def test_slugs_of_people(name, text, expected):
    assert find(name, text) == (text.split() if expected is None else expected)


def test_slugs_of_companies_have_a_word_of_their_own():
    assert find("Acme Robotics", "acme-robotics", "ORGANIZATION") == ["acme-robotics"]
    assert find("Customer Service", "customer-service", "ORGANIZATION") == []
    assert find("Harrowby", "Harrowby_Standard harrowby_x Harrowby", "ORGANIZATION") == ["Harrowby"]
    assert find("Customer", "Customer_Standard", "ORGANIZATION") == []
    assert find("4 May", "4-may", "DATE") == []


def test_a_word_of_a_name_is_a_slug_where_it_is_all_of_a_field():
    assert find("Barnaby Osgood", "osgood", parts=["osgood", "osgood 2", "house"]) == ["osgood"]
    assert find("Mark House", "", parts=["house"]) == []


def test_a_slug_stands_for_its_name():
    text = "Barnaby Osgood barnaby-osgood ada-brook"
    spans = [Span(0, 14, "PERSON", 0.9, "t"), Span(15, 29, "PERSON", 1.0, SLUG), Span(30, 39, "PERSON", 1.0, SLUG)]
    assert find_slug_names(text, spans, TAXONOMY) == {"barnaby-osgood": "Barnaby Osgood"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ada-brook", "emile-carter"),
        ("ADA_BROOK", "EMILE_CARTER"),
        ("AdaBrook", "EmileCarter"),
        ("Ada%20Brook", "Emile%20Carter"),
    ],
)
def test_a_slug_is_written_like_the_old_one(old, new):
    assert write_slug("Émile Carter", old) == new
