"""CSV and TSV: quoting, line ends and untouched cells keep their bytes."""

import csv
import io
import json
from datetime import date, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from allonym.errors import DataError, UnknownNameError
from allonym.files import table
from allonym.files.columns import is_header
from allonym.files.encoding import Encoding, cut_stream
from allonym.files.record import Draft, Failure, Job
from allonym.files.restoring import read_plans, restore_files
from allonym.policy import Policy

MAIL = b"[EMAIL_ADDRESS_1]"
JOB = Job(Policy.only([]))


@pytest.mark.parametrize(
    "data",
    [
        b'name,note\r\n"Q","say ""a@example.com"", please"\r\nx,\r\n',
        b'\xef\xbb\xbfname;note\n1;"a\nb a@example.com"\n\n"";x',
        b'size\tnote\nit\'s "5" inch\ta@example.com\n',
        b'size|note\n"x"y|a@example.com\n',
        b"Full Name,E Mail\nx, a@example.com \n",
    ],
)
def test_only_the_changed_cell_changes(run, data):
    assert run("a.csv", data)[0] == data.replace(b"a@example.com", MAIL)


def test_cells_of_a_row_share_their_numbers(run):
    out = run("a.tsv", b"a\tb\nx@example.com\ty@example.com x@example.com\n")[0]
    assert out == b"a\tb\n[EMAIL_ADDRESS_1]\t[EMAIL_ADDRESS_2] [EMAIL_ADDRESS_1]\n"


def test_replacement_is_quoted_where_it_must_be(run, policy):
    comma = policy.with_(style="<{label}, {n}>")
    assert run("a.csv", b"a,b\nx@example.com,1\n", comma)[0] == b'a,b\n"<EMAIL_ADDRESS, 1>",1\n'


def test_column_names_serve_as_context(run):
    out = run("a.csv", b"ssn,visits\n078051121,3\n")[0]
    assert out == b"ssn,visits\n[US_SSN_1],3\n"


def test_policy_may_look_names_up_in_columns(run, policy):
    listed = policy.with_(metadata={"PERSON": ("full_name", "others")})
    out = run("a.csv", b"Full Name,others,text\nPam Beesly,Jim Halpert; Roy,Pam met Jim Halpert and Roy.\n", listed)[0]
    assert out.endswith(b"\n[PERSON_1],[PERSON_2]; [PERSON_3],[PERSON_1] met [PERSON_2] and [PERSON_3].\n")


def test_a_column_that_the_policy_names_is_called_by_its_name(run, untagged):
    named = untagged.with_(metadata={"PERSON": ("ada@example.com",)})
    _, report = run("a.csv", b"ada@example.com,bob@example.com\nx,y\n", named)
    assert set(report.treated) | set(report.left) == {"ada@example.com", "column 2"}


def test_named_columns_only(run):
    data = b"id,mail,note\na@example.com,b@example.com,c@example.com\n"
    out, report = run("a.csv", data, fields=["mail"])
    assert out.count(b"example.com") == 2 and report.treated == {"mail": 1} and set(report.left) == {"id", "note"}
    with pytest.raises(UnknownNameError, match="did you mean: mail"):
        run("a.csv", data, fields=["mial"])


def test_file_without_header_leaks_nothing(run):
    out, report = run("a.csv", b"x,a@example.com\ny,b@example.com\n")
    assert b"example.com" not in out
    assert "a@example.com" not in report.to_json() + report.to_text()


def test_rows_that_cannot_be_read_go_to_quarantine(run, tmp_path, failing):
    data = b"id,a\n1,x\n3,KRACH secret\n4,\xff\n5,a@example.com\n"
    out, report = run("a.csv", data)
    assert out == b"id,a\n1,x\n5," + MAIL + b"\n"
    listed = (tmp_path / "out-a.csv.quarantine.jsonl").read_text()
    assert [(r["id"], r["row"]) for r in map(json.loads, listed.splitlines())] == [("3", 3), ("row 4", 4)]
    assert "secret" not in listed and "KeyError" in listed
    assert (report.documents, report.quarantined) == (4, 2)


def test_rows_of_another_length_are_treated_and_kept(run):
    data = b"id,mail,n,note\n1,a@example.com,3,x\n2,b@example.com\n3,c@example.com,4,x,d@example.com\n4,7,e@example.com,x\n"
    out, report = run("a.csv", data)
    assert b"example.com" not in out and report.quarantined == 0
    assert [line.count(b",") for line in out.splitlines()] == [3, 3, 1, 4, 3]
    assert out.splitlines()[3].startswith(b"3,[EMAIL_ADDRESS_3],4,x,")


def test_quote_that_never_closes_is_no_row(run, tmp_path):
    out, report = run("a.csv", b'a,b\nx,y\nx,"a@example.com\nz,z\n')
    assert out == b"a,b\nx,y\n" and report.quarantined == 1


def test_quote_that_swallows_a_huge_file_is_refused(monkeypatch):
    monkeypatch.setattr("allonym.files.encoding.MAX_RECORD", 1000)
    stream = io.BytesIO(b'a,b\n"' + b"x,y\n" * 5000)
    with pytest.raises(DataError, match="left open"):
        list(table.CSV.chunks(stream, JOB, 100, 0))


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
def test_chunks_end_where_rows_end(size):
    rows = [["id", "text"], *([str(i), f'a "quoted"\r\nline, {i}'] for i in range(40))]
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    data = text.getvalue().encode()
    chunks = list(table.CSV.chunks(io.BytesIO(data), JOB, size, 0))
    assert b"".join(c.data for c in chunks) == data
    assert [len(list(csv.reader(io.StringIO(c.data.decode(), newline="")))) for c in chunks if c.data] and sum(
        len(list(csv.reader(io.StringIO(c.data.decode(), newline="")))) for c in chunks
    ) == 41
    middle = chunks[len(chunks) // 2].end
    rest = list(table.CSV.chunks(io.BytesIO(data), JOB, size, middle))
    assert [c.data for c in rest] == [c.data for c in chunks if c.end > middle]


cell = st.text(st.characters(exclude_categories=("Cs",)), max_size=6) | st.sampled_from(
    ['"', ",", "\n", "\r\n", '""', " "]
)


@given(
    st.lists(st.lists(cell, min_size=2, max_size=2), min_size=1, max_size=6),
    st.sampled_from(["\r\n", "\n"]),
    st.integers(0, 3),
)
@example([['"', "\n"]], "\r\n", 1)  # Python 3.11.2 reads it as one cell where a group is possessive
def test_reads_what_the_csv_module_writes_and_changes_nothing(rows, end, quoting):
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=(0, 1, 2, 0)[quoting]).writerows([["a", "b"], *rows])
    data = text.getvalue().encode()
    seen, out = [], []
    for chunk in table.CSV.chunks(io.BytesIO(data), JOB, 16, 0):
        for piece in table.CSV.parse(chunk, JOB).pieces:
            assert not isinstance(piece, Failure)
            if isinstance(piece, Draft):
                if piece.counted:
                    seen.append(list(piece.document.part_texts()))
                out.append(piece.render(piece.document.part_texts()))
            else:
                out.append(piece)
    assert b"".join(out) == data
    # The csv module takes a bare carriage return for a line end; here it belongs to its cell.
    if not any("\r" in c.replace("\r\n", "") for row in rows for c in row):
        assert seen == list(csv.reader(io.StringIO(text.getvalue(), newline="")))[1:]


def test_cut_depends_on_bytes_and_size_alone():
    data = b"".join(b"line %d\n" % i for i in range(100))

    class Slow(io.BytesIO):
        def read(self, size=-1):
            return super().read(min(size, 3) if size >= 0 else size)

    pieces = [
        list(cut_stream(s(data), Encoding("utf-8"), 40, lambda t, _: t.rfind("\n") + 1)) for s in (io.BytesIO, Slow)
    ]
    assert pieces[0] == pieces[1] and b"".join(pieces[0]) == data


def test_open_quote_says_what_is_lost(run, tmp_path):
    out, report = run("a.csv", b'id,text\n1,ok\n2,"open\n3,x\n')
    assert out == b"id,text\n1,ok\n" and report.quarantined == 1
    assert "all rows from here on" in (tmp_path / "out-a.csv.quarantine.jsonl").read_text()


def test_a_header_stays_whatever_its_words_mean(run):
    data = b"city,comment\nx,a@example.com\n"
    assert run("a.csv", data, fields=["comment"])[0] == b"city,comment\nx," + MAIL + b"\n"
    assert run("b.csv", data)[0].startswith(b"city,comment\n")
    # A first row that may be data is treated as such.
    assert b"example.com" not in run("c.csv", b"Ada Brook,a@example.com\nx,y\n")[0]


def test_a_row_tells_whom_it_is_about(run, policy):
    from allonym.policy import Rule

    strict = policy.with_(subject="who", consistent="subject", default=Rule("wild_tag"))
    data = b"who,text\np1,a@example.com\np2,a@example.com\np1,a@example.com\n"
    out, report = run("a.csv", data, strict, key=b"k" * 16, fields=["text"])
    first, second, third = out.decode().splitlines()[1:]
    assert first == third and first.split(",")[1] != second.split(",")[1] and report.quarantined == 0


def test_dates_of_one_participant_keep_their_distance(run):
    data = b"participant,date\nP01,2024-03-12\nP02,2024-03-12\nP01,2024-04-02\n"
    out = run("a.csv", data, Policy.load("pseudonyms"), key=b"k" * 16)[0].decode()
    codes, dates = zip(*(line.split(",") for line in out.splitlines()[1:]), strict=True)
    first, other, later = map(date.fromisoformat, dates)
    assert codes[0] == codes[2] != codes[1] and "P01" not in out
    assert later - first == timedelta(21) and other != first != date(2024, 3, 12)


def test_codes_in_a_column_of_people_are_no_dates(run, policy):
    data = b"participant,score\nP01,3\nP02,4\nP01,5\n"
    assert run("a.csv", data, policy)[0] == b"participant,score\n[GENERIC_ID_1],3\n[GENERIC_ID_2],4\n[GENERIC_ID_1],5\n"


def test_a_value_has_one_replacement_in_all_rows_and_another_value_another_one(run):
    data = b"customer,mail,total\nx,a@example.com,1\nx,b@example.com,1999.99\nx,a@example.com,3\n"
    expected = b"customer,mail,total\nx,[EMAIL_ADDRESS_1],1\nx,[EMAIL_ADDRESS_2],1999.99\nx,[EMAIL_ADDRESS_1],3\n"
    for options in ({}, {"batch_size": 1}, {"workers": 2}):
        assert run("a.csv", data, **options)[0] == expected


def test_a_column_that_identifies_is_covered_in_each_row(run):
    phones = ["415-555-0132", "none", "555 0199 ext. 3", "(212) 555-0188", "ask 5550", ""]
    data = "phone,stars\n" + "".join(f"{phone},{i}\n" for i, phone in enumerate(phones))
    rows = run("a.csv", data.encode())[0].decode().splitlines()[1:]
    assert [row.partition(",")[0][:14] for row in rows] == [*["[PHONE_NUMBER_", "none", *["[PHONE_NUMBER_"] * 3], ""]
    assert [row.rpartition(",")[2] for row in rows] == list("012345")


def test_a_kept_column_still_loses_what_identifies_and_what_it_never_held_before(run, policy):
    data = b"amount,state\n" + b"12.5,open\n7,closed\n" * 20
    out, report = run("a.csv", data + b"b@example.com,ask a@example.com\n")
    assert out == data + b"[EMAIL_ADDRESS_1],ask [EMAIL_ADDRESS_2]\n"
    card = b"4111111111111111"
    out, report = run("b.csv", b"weight,n\n" + b"1234567,1\n" * 20 + card + b",2\n")
    assert card not in out and out.startswith(b"weight,n\n") and report.exceptions == 1
    assert "1 cell covered" in report.to_text()


@pytest.mark.parametrize(
    ("data", "header"),
    [
        (b"# made by x\nid,mail\n1,a@example.com\n# end a@example.com\n", b"# made by x\nid,mail\n"),
        (b"Accounts\n\nName,Total\nAda Brook,5\nCyd Dale,6\n", b"Accounts\n\nName,Total\n"),
        (b"name,score\n1,Ada Brook,5\n2,Cyd Dale,6\n", b"name,score\n1,["),
        (b",name,score\n0,Ada Brook,5\n1,Cyd Dale,6\n", b",name,score\n0,["),
        (b"Country,2019,2020\nNorway,1.5,2.5\nChile,3,4\n", b"Country,2019,2020\n"),
        (b"Kunde;Umsatz\nx;1.234,50\ny;99,90\n", b"Kunde;Umsatz\n"),
    ],
)
def test_headers_comments_and_index_columns(run, data, header):
    out, report = run("a.csv", data)
    assert out.startswith(header) and b"example.com" not in out and b"Brook" not in out
    assert report.quarantined == 0 and out.count(b"\n") == data.count(b"\n")


def test_a_policy_decides_about_columns(run, policy):
    decided = policy.changed({"columns": {"code": "GENERIC_ID", "mail": "keep", "n": "text"}}, "test")
    out, report = run("a.csv", b"code,mail,n\nx1,a@example.com,5\nx2,b,6\n", decided)
    # A column that the user keeps still loses what a rule finds in it.
    assert out == b"code,mail,n\n[GENERIC_ID_1],[EMAIL_ADDRESS_1],5\n[GENERIC_ID_2],b,6\n"
    assert report.exceptions == 1 and set(report.left) == {"mail"}


@pytest.mark.parametrize(
    ("column", "cells", "kept"),
    [
        ("x", ["5952086565", "4412086566", "7712086567"], False),  # long numbers of one length are codes
        ("x", ["1700000000", "1700000360", "1710000000"], True),  # but seconds since 1970 are not
        ("x", ["5952086565", "12", "77120"], True),
        ("pos", ["GK", "DF", "MF"] * 3, True),
        ("Bemerkung", ["n/a", "-", "k.A."], True),
    ],
)
def test_numbers_and_abbreviations_stay_and_codes_do_not(run, column, cells, kept):
    data = "n;" + column + "\n" + "".join(f"1;{cell}\n" for cell in cells)
    out = run("a.csv", data.encode(), Policy.load("default"))[0].decode()
    assert (out == data) is kept and (kept or not any(cell in out for cell in cells))


def test_a_header_that_is_a_person_stays_and_is_told_by_its_number(run, policy):
    data = b"When,Margaret Holloway,Gareth Price,Unit Price\nlate,3,4,5\nearly,2,3,3\nnoon,3,3,3\n"
    out, report = run("a.csv", data, policy)
    assert out == data and report.identifying_headers == {"column 2": 1, "column 3": 1}
    shown = report.to_text() + report.to_json()
    assert "headers of column 2, column 3 may" in shown and "Unit Price" in shown
    assert not any(name in shown for name in ("Margaret", "Gareth"))


@pytest.mark.parametrize("column", ["email", "address", "phone"])
def test_letters_below_the_name_of_an_identifier_are_prose(run, policy, column):
    letter = "Dear Ms Okafor: write to mary@example.com or call 020 7946 0958." + " The parcel came late again." * 8
    out = run("a.csv", f"n,{column}\r\n1,{letter} Hello.\r\n2,{letter} Thanks.\r\n".encode(), policy)[0].decode()
    assert out.count("The parcel came late again.") == 16
    assert not any(original in out for original in ("Okafor", "mary@", "7946"))


def test_sort_codes_and_pins_are_known_by_their_column(run, policy):
    out = run("a.csv", b"sort_code,pin,stars\n20-41-12,4411,5\n20-41-13,4412,4\n", policy)[0]
    assert out == b"sort_code,pin,stars\n[BANK_ACCOUNT_1],[PIN_1],5\n[BANK_ACCOUNT_2],[PIN_2],4\n"


def test_ids_that_people_bear_are_covered_as_in_text(run, policy):
    data = b"id,Comment\nP-0147,fine\nP-0148,late after ID P-0147\n"
    assert (
        run("a.csv", data, policy)[0]
        == b"id,Comment\n[GENERIC_ID_1],fine\n[GENERIC_ID_2],late after ID [GENERIC_ID_1]\n"
    )
    assert run("a.csv", data, policy.with_(columns={"id": "keep"}))[0].startswith(b"id,Comment\nP-0147,fine\nP-0148,")
    assert run("a.csv", data, Policy.only(["PERSON"]))[0] == data
    for ids in (("1", "2"), ("doc-17", "doc-18"), ("P-0147", "P-0147"), ("3f2a9c01", "3f2a9c02")):
        data = "id,Comment\n{},fine\n{},late\n".format(*ids).encode()
        assert run("a.csv", data, policy)[0] == data


FORMULAS = (
    "name,+1 year,note\n"
    "=cmd|' /C calc'!A0,-5,say a@example.com\n"
    '@SUM(A1),+49 30 1234567,"=HYPERLINK(""x"", 2)"\n'
    '\'=kept,-,"\ttab"\n'
    "# a comment,=A1\n"
    "plain,1e5,--\n"
)
NEUTRAL = (
    "name,'+1 year,note\n"
    "'=cmd|' /C calc'!A0,-5,say [EMAIL_ADDRESS_1]\n"
    '\'@SUM(A1),\'+49 30 1234567,"\'=HYPERLINK(""x"", 2)"\n'
    "''=kept,-,\"'\ttab\"\n"
    "# a comment,'=A1\n"
    "plain,1e5,--\n"
)
ADDRESSES = Policy.only(["EMAIL_ADDRESS"])


def test_formulas_stay_unless_the_policy_neutralises_them(run):
    assert run("a.csv", FORMULAS.encode(), ADDRESSES)[0].decode() == FORMULAS.replace("a@example.com", MAIL.decode())
    out, _ = run("a.csv", FORMULAS.encode(), ADDRESSES.with_(formulas="neutralise"))
    assert out.decode() == NEUTRAL
    assert ADDRESSES.with_(formulas="neutralise").fingerprint() != ADDRESSES.fingerprint()


def test_neutralised_cells_are_restored(run, tmp_path):
    plans = tmp_path / "plans.jsonl"
    run("a.csv", FORMULAS.encode(), ADDRESSES.with_(formulas="neutralise"), plans=plans, originals=True)
    files = [(tmp_path / "out-a.csv", tmp_path / "again.csv")]
    result = restore_files(files, plans=read_plans(plans), has_neutralised_cells=True)
    assert (tmp_path / "again.csv").read_text() == FORMULAS and not result.notes


@given(st.text("'=+-@\t1a\",;＝", max_size=12), st.sampled_from(table.DELIMITERS))
@example('=a"b', ",")
@example('"=1"', ",")
def test_neutralising_a_row_can_be_undone(row, delimiter):
    neutral = table.neutralise_row(row, delimiter)
    assert not any(table.is_formula_like(c.value) and c.value[0] != "'" for c in table.split_cells(neutral, delimiter))
    assert table.restore_neutralised_row(neutral, delimiter) == row


def test_long_codes_do_not_hang(run):
    data = b"participant,name\n" + 2 * (b"AB12" + b"A1" * 30 + b"!,x\n")
    assert run("a.csv", data, ADDRESSES)[0] == data


@pytest.mark.parametrize(
    ("cells", "below", "expected"),
    [
        (["Key", "Value", "Value2", "Value"], [["foo", "3", "1", "-1"], ["bar", "4", "2", "0"]], True),
        (["NOM", "PRÉNOM", "SERVICE", "École\n(n° et nom)"], [["ALVAN", "LUCIE", "SAP", ""]], True),
        (["Store#", "Store Name", "Address Line 1", "City or County"], [], True),
        (["Ada Brook", "x", "Ada Brook"], [["Bo Reed", "4", "y"], ["Cy Day", "5", "z"]], False),
        (["Oslo", "Oslo", "Bergen"], [["Narvik", "Oslo", "Bergen"]], False),
        (["Leeds", "none", "Leeds"], [["Hull", "4", "York"], ["Bath", "5", "Ely"]], False),
        (["Ada Brook", "name & city", "status:"], [["Bo Reed", "x", "y"]], False),
        (["A", "B", "C"], [["", "MSP", ""], ["blah", "DEF", ""]], True),
    ],
)
def test_repeated_and_unusual_names_of_columns_are_a_header(cells, below, expected):
    assert is_header(cells, below, Policy.load("default")) is expected


@pytest.mark.parametrize(
    ("header", "states"),
    [
        ("Kunde;Betrag;Status", ["offen", "bezahlt", "überfällig"]),
        ("Client;Montant;Mode", ["Virement", "Chèque", "En attente"]),
        ("Cliente;Importe;Situación", ["Pendiente", "Pagado", "Anulado"]),
        ("Customer;Amount;X", ["paid", "pending", "refunded"]),
    ],
)
def test_states_are_no_names_however_short_the_table(run, header, states):
    names = ("Ada Brook", "Bo Reed", "Cy Day")
    rows = [f"{name};10;{state}" for name, state in zip(names, states, strict=True)]
    out = run("a.csv", "\n".join([header, *rows, ""]).encode(), Policy.load("default"))[0].decode().splitlines()
    assert out[0] == header and [line.rpartition(";")[2] for line in out[1:]] == states
    assert all(line.startswith("[PERSON_") for line in out[1:])


def test_a_person_called_like_a_state_is_covered(run):
    out = run("a.csv", b"Name,Town,Amount\nPaid,Leeds,1\nLate,Hull,2\nAda Brook,York,3\n", Policy.load("default"))[0]
    assert all(line.startswith(b"[PERSON_") for line in out.splitlines()[1:])
