"""A person whose name is in two columns of a table is the person whom texts name in full."""

import pytest

from allonym.document import Document
from allonym.files import anonymize_path
from allonym.link.name_columns import find_row_names
from allonym.vault import Vault

SECRET = b"a secret of the tests, long enough"
ROWS = "id,first_name,last_name,comment\n1,Margaret,Holloway,likes tea\n2,Nkechi,Okonkwo-Bright,Knows Margaret well\n"
REPLY = "Thanks Nkechi, I will ask Margaret.\n"
TEXT = "Margaret Holloway came.\nNkechi Okonkwo-Bright called.\n"


@pytest.mark.parametrize("order", [("a.csv", "b.txt"), ("b.txt", "a.csv")])
def test_a_row_and_a_text_give_one_pseudonym(tmp_path, order):
    (tmp_path / "a.csv").write_text(ROWS)
    (tmp_path / "b.txt").write_text(TEXT)
    with Vault.create(tmp_path / "v", SECRET) as vault:
        (tmp_path / "c.txt").write_text(REPLY)
        for name in (*order, "c.txt"):
            anonymize_path(tmp_path / name, tmp_path / f"safe-{name}", "pseudonyms", vault=vault)
    rows = [line.split(",") for line in (tmp_path / "safe-a.csv").read_text().splitlines()[1:]]
    names = [line.rpartition(" ")[0] for line in (tmp_path / "safe-b.txt").read_text().splitlines()]
    assert [f"{given} {family}" for _, given, family, _ in rows] == names
    assert (tmp_path / "safe-c.txt").read_text() == f"Thanks {rows[1][1]}, I will ask {rows[0][1]}.\n"
    assert rows[1][3] == f"Knows {rows[0][1]} well"


def test_both_cells_of_a_row_are_one_person(run):
    out, _ = run("a.csv", ROWS.encode())
    assert out.splitlines()[1] == b"1,[PERSON_1],[PERSON_1],likes tea"


@pytest.mark.parametrize(
    ("cells", "full"),
    [
        ({"Vorname": "Käthe", "Name": " Müller "}, "Käthe Müller"),
        ({"lastName": "Hart", "firstName": "Anna", "name": "Anna Hart"}, "Anna Hart"),
        ({"patient first name": "Anna", "Patient_Last_Name": "Hart", "surname": "Ellery"}, "Anna Hart"),
        ({"first name": "Anna", "name": "Anna Hart"}, None),
        ({"first name": "Anna", "forename": "Ada", "surname": "Hart"}, None),
        ({"first name": "Anna", "company name": "Hart"}, None),
        ({"first name": "Anna", "surname": " "}, None),
    ],
)
def test_the_parts_of_one_name_are_told_by_their_columns(cells, full):
    document = Document.from_parts("", list(cells.values()))
    named = Document("", document.text, parts=document.parts, fields=tuple(cells))
    assert set(find_row_names(named).values()) == ({full} if full else set())


@pytest.mark.parametrize(
    ("name", "text", "left"),
    [
        (
            "a.csv",
            "Anrede,Ansprechpartner,Betrag\nFrau,West,1\nHerr,Post,2\nHerr,Gross,3\nFrau,Karin Berger,4\n",
            "Anrede",
        ),
        ("b.html", "<table><tr><td>Last name</td><td>West</td></tr></table><p>Paid by Tom West.</p>", "Last name"),
        ("c.xml", '<p><person name="J.Gross" rel="Tom.West"/><t>Tom West met J. Gross</t></p>', "met"),
    ],
)
def test_people_called_like_a_state_a_sum_or_a_code_are_covered(tmp_path, name, text, left):
    (tmp_path / name).write_text(text)
    anonymize_path(tmp_path / name, tmp_path / f"safe-{name}")
    out = (tmp_path / f"safe-{name}").read_text()
    assert left in out
    assert not [word for word in ("West", "Post", "Gross") if word in out]


def test_points_of_the_compass_are_a_category_and_one_alone_is_not(tmp_path):
    (tmp_path / "a.csv").write_text("area,amount\nWest,1\nSouth,2\nWest,3\n")
    anonymize_path(tmp_path / "a.csv", tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text() == (tmp_path / "a.csv").read_text()
