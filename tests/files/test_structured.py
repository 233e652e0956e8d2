"""XML, YAML, notebooks and RTF: values are treated, and everything else keeps its characters."""

from __future__ import annotations

import json

import pytest
from tests.rows import check_each_row

from allonym.errors import DataError, RefusedContent
from allonym.files import rtf
from allonym.files.record import Chunk, Job
from allonym.policy import Policy

MAIL = "[EMAIL_ADDRESS_1]"


@check_each_row(
    "source, expected",
    [
        ("<a><b>a@example.com</b> x</a>", f"<a><b>{MAIL}</b> x</a>"),
        ("<a mail='a@example.com' n=\"3\"/>", f"<a mail='{MAIL}' n=\"3\"/>"),
        ("<?xml version='1.0'?><!-- a@example.com --><a/>", f"<?xml version='1.0'?><!-- {MAIL} --><a/>"),
        ("<a><![CDATA[<a@example.com>]]></a>", f"<a><![CDATA[<{MAIL}>]]></a>"),
        ("<a b=a@example.com xsi:c='a@example.com'/>", f"<a b={MAIL} xsi:c='{MAIL}'/>"),
        ("<a><price>19.99</price><ok>true</ok>&amp;</a>", "<a><price>19.99</price><ok>true</ok>&amp;</a>"),
    ],
)
def test_xml(run, source, expected):
    assert run("a.xml", source.encode())[0].decode() == expected


def test_xml_with_entities_of_its_own_is_refused(run):
    with pytest.raises(RefusedContent, match="entities"):
        run("a.xml", b"<!DOCTYPE a [<!ENTITY e 'Jane'>]><a>&e;</a>")
    with pytest.raises(RefusedContent, match="entities"):
        run("b.xml", b"<!DOCTYPE a [<!ELEMENT a ANY><!ENTITY e 'Jane'>]><a>&e;</a>")


def test_xml_of_many_levels_is_refused_and_many_document_types_do_not_hang(run):
    with pytest.raises(RefusedContent, match="more than 1000 elements"):
        run("a.xml", b"<a>x" * 30_000)
    assert run("b.xml", b"<!DOCTYPE a>" * 30_000 + b"<a>x</a>")[1].documents == 1


def test_what_stands_for_a_typed_value_of_yaml_is_a_string(run):
    source = b"phone: !!int 4155550132\nn: !!int 3 # a@example.com\n"
    expected = f'phone: !!str "[PHONE_NUMBER_1]"\nn: !!int 3 # {MAIL}\n'
    assert run("a.yaml", source)[0].decode() == expected


def test_yaml_of_many_levels_is_refused(run):
    pytest.importorskip("yaml")
    assert run("a.yaml", b"a: " + b"[" * 100 + b"]" * 100)[0]
    with pytest.raises(RefusedContent, match="brackets"):
        run("b.yaml", b"a: " + b"[" * 20_000)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a: !a@example.com x\nb: !<tag:a%40example.com,2020:y> z\n", f"a: !{MAIL} x\nb: !<tag:{MAIL},2020:y> z\n"),
        ("%TAG ! tag:a@example.com,2000:\n---\na: !x y\n", f"%TAG ! tag:{MAIL},2000:\n---\na: !x y\n"),
        ("a: !Ref 'x'\nb: !!python/name:os.path x\n", "a: !Ref 'x'\nb: !!python/name:os.path x\n"),
    ],
)
def test_tags_of_yaml_keep_no_address(run, source, expected):
    yaml = pytest.importorskip("yaml")
    out = run("a.yaml", source.encode())[0].decode()
    assert out == expected and yaml.compose(out)


def test_values_of_one_element_are_looked_at_together(run):
    rows = "".join(
        f"<c><mail>{n}@example.com</mail><phone>212-555-014{i}</phone><sum>{i}999.99</sum></c>"
        for i, n in enumerate("abcd")
    )
    rows += "".join(f"<t at='=D{n}*E{n}' when='2026-03-0{n}'/>" for n in range(2, 6))  # it looks like code
    out = run("a.xml", f"<l>{rows}</l>".encode())[0].decode()
    assert "example" not in out and "212-" not in out and "2026-03" not in out and out.count("[PHONE_NUMBER_") == 4
    assert all(f"<sum>{i}999.99</sum>" in out for i in range(4))


YAML_CASES = [
    ("mail: a@example.com # b@example.com\n", f'mail: "{MAIL}" # [EMAIL_ADDRESS_2]\n'),
    ("mail: 'a@example.com'\nport: 8080\non: yes\n", f"mail: '{MAIL}'\nport: 8080\non: yes\n"),
    ("- x: |\n    Write to\n    a@example.com\n  y: 1.5\n", f"- x: |\n    Write to\n    {MAIL}\n  y: 1.5\n"),
    ("x: | # by a@example.com\n  y\n", f"x: | # by {MAIL}\n  y\n"),
    ('a@example.com: {x: [1, "a@example.com"]}\n', f'"{MAIL}": {{x: [1, "{MAIL}"]}}\n'),
]


@check_each_row("source, expected", YAML_CASES)
def test_yaml(run, source, expected):
    yaml = pytest.importorskip("yaml")
    out = run("a.yml", source.encode())[0].decode()
    assert out == expected
    yaml.safe_load(out)


def test_yaml_keys_that_are_names_are_covered(run):
    data = b"Gareth Price:\n  score: 3\nPriya Raman: Priya Raman is ill\nUnit Price: 5 pounds\n"
    out, _ = run("a.yaml", data, Policy.load("default"))
    tag, other = '"[PERSON_1]"', '"[PERSON_2]"'
    assert out.decode() == f'{tag}:\n  score: 3\n{other}: {other[:-1]} is ill"\nUnit Price: 5 pounds\n'


def test_what_is_no_yaml_is_refused_without_quoting_it(run):
    pytest.importorskip("yaml")
    with pytest.raises(DataError, match="not valid YAML") as caught:
        run("a.yaml", b"a: [Jane")
    assert "Jane" not in str(caught.value)


def test_notebooks_keep_their_shape_and_lose_their_pictures(run):
    cells = [
        {"cell_type": "markdown", "id": "a1", "metadata": {}, "source": ["Write to a@\n", "example.com"]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "id": "b2",
            "metadata": {"tags": ["x"]},
            "source": ["mail = 'a@example.com'\n", "x = 3\n"],
            "outputs": [
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {"image/png": "QUFB", "text/plain": ["b@example.com"]},
                }
            ],
        },
    ]
    book = {"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}
    out, report = run("a.ipynb", json.dumps(book, indent=1).encode())
    safe = json.loads(out)
    assert safe["cells"][1]["source"] == [f"mail = '{MAIL}'\n", "x = 3\n"]
    assert b"example.com'" not in out and b"b@" not in out and b"QUFB" not in out
    assert {**safe, "cells": 0} == {**book, "cells": 0} and report.treated == {"pictures left out": 1}
    with pytest.raises(DataError, match="not a notebook"):
        run("b.ipynb", b"{}")


def test_no_part_of_a_notebook_is_passed_through_unread(run):
    data = {"application/json": {"name": "a@example.com", "id": "a@example.com", "b@example.com": 4915112345678}}
    html = {"text/html": ["<img src=\"data:image/png;base64,QUFB\" alt='To a@example.com'>"], "audio/wav": "QUFB"}
    files = {"a@example.com": {"image/png": "QUFB"}}
    outputs = [{"output_type": "display_data", "metadata": {"name": "a@example.com"}, "data": {**data, **html}}]
    cell = {"cell_type": "code", "metadata": {"name": "b@example.com"}, "source": "x", "attachments": files}
    book = {"cells": [{**cell, "outputs": outputs}], "metadata": {}, "nbformat": 4, "author": "a@example.com"}
    out, report = run("a.ipynb", json.dumps(book).encode())
    safe = json.loads(out)["cells"][0]
    assert b"@" not in out and b"QUFB" not in out and b"4915112345678" not in out
    assert report.treated == {"pictures left out": 3}
    assert safe["outputs"][0]["data"]["text/html"][0].endswith("\" alt='To [EMAIL_ADDRESS_2]'>")


def make_rtf(body: str) -> bytes:
    return ("{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0 Arial;}}" + body + "}").encode("latin-1")


@check_each_row(
    "body, expected",
    [
        ("\\pard Mail a@\\b example\\b0 .com\\par", f"\\pard Mail {MAIL}\\b \\b0 \\par"),
        ("caf\\'e9 \\u8211?a@example.com", f"caf\\u233? \\u8211?{MAIL}"),
        ("{\\info{\\author Jane}}x", "x"),
        ("{\\*\\revtbl{Unknown;}{Jane;}}x{\\object{\\*\\objdata 00}}", "x"),
        ("{\\*\\annotation a@example.com}", f"{{\\*\\annotation {MAIL}}}"),
        (
            "{\\field{\\*\\fldinst HYPERLINK a@example.com}{\\fldrslt x}}",
            f"{{\\field{{\\*\\fldinst HYPERLINK {MAIL}}}{{\\fldrslt x}}}}",
        ),
        ("x{\\b\\pict 4142}y", "x{\\b}y"),
        ("\\b\\bin5 {Jan}y", "\\b{}y"),
    ],
)
def test_rtf(run, body, expected):
    assert run("a.rtf", make_rtf(body))[0] == make_rtf(expected)


def test_pictures_of_rtf_become_grey(run):
    out, report = run("a.rtf", make_rtf("{\\pict\\jpegblip\\picwgoal300 {\\*\\blipuid 00}ffd8ff}x"))
    assert b"{\\pict\\pngblip\\picwgoal300 89504e47" in out and b"ffd8ff" not in out
    assert report.treated == {"pictures left out": 1}


@pytest.mark.parametrize("data", [b"x", b"{\\rtf1 {\\*\\x"])
def test_what_is_no_rtf_is_refused(run, data):
    with pytest.raises(DataError, match="RTF"):
        run("a.rtf", data)


def test_a_group_of_rtf_may_stay_open(run):
    data = make_rtf("{")[:-1]
    assert run("a.rtf", data)[0] == data


def test_bytes_in_rtf_are_read_by_the_font_that_they_stand_in(run):
    fonts = "{\\fonttbl{\\f0\\fnil\\fcharset0 Arial;}{\\f1\\fnil\\fcharset204 Arial Cyr;}}"
    name = "".join(f"\\'{byte:02x}" for byte in "Мария Иванова".encode("cp1251"))
    data = f"{{\\rtf1\\ansi\\ansicpg1252{fonts}\\f1 {name}\\f0  a@example.com caf\\'e9}}"
    (draft,) = rtf.RTF.parse(Chunk(data.encode("latin-1")), Job(Policy.load("default"))).pieces
    assert draft.document.text == "Мария Иванова a@example.com café"


@pytest.mark.parametrize("number", ["4", "0", "-6"])
def test_binary_data_in_rtf_are_removed(run, number):
    out, _ = run("a.rtf", make_rtf(f"x\\bin{number} Jane a@example.com"))
    assert out == make_rtf(f"x{{}}{' ' if number == '4' else 'Jane'} {MAIL}")


def test_binary_data_without_end_are_refused(run):
    with pytest.raises(DataError, match="no end"):
        run("a.rtf", make_rtf("\\bin999 Jane"))


def test_text_behind_a_character_of_unicode_is_read(run):
    out, _ = run("a.rtf", make_rtf("\\uc99 \\u252 abcdefgh a@example.com"))
    assert b"example" not in out


def test_an_address_in_a_field_that_describes_a_cell_is_read(run):
    cell = {"cell_type": "a@example.com", "id": "a@example.com", "metadata": {}, "source": ["x"]}
    out, _ = run("a.ipynb", json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}).encode())
    assert b"a@example.com" not in out and b'"source": ["x"]' in out


def test_files_and_media_types_in_attributes_of_xml_are_no_words(run):
    source = b'<package><item href="a.xhtml" media-type="application/xhtml+xml"/><by>Ada Brook</by></package>'
    out = run("a.xml", source, Policy.load("default"))[0]
    assert out == source.replace(b"Ada Brook", b"[PERSON_1]")
