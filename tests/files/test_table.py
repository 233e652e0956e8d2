"""CSV and TSV: quoting, line ends and untouched cells keep their bytes."""

import csv
import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from allonym.errors import DataError, UnknownNameError
from allonym.files import table
from allonym.files.encoding import Encoding, cut_stream
from allonym.files.record import Draft, Failure, Job
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


def test_rows_that_do_not_fit_go_to_quarantine(run, tmp_path, failing):
    data = b"id,a\n1,x\n2,x,y\n3,KRACH secret\n4,\xff\n5,a@example.com\n"
    out, report = run("a.csv", data)
    assert out == b"id,a\n1,x\n5," + MAIL + b"\n"
    listed = (tmp_path / "out-a.csv.quarantine.jsonl").read_text()
    assert [(r["id"], r["row"]) for r in map(json.loads, listed.splitlines())] == [("row 3", 3), ("3", 4), ("row 5", 5)]
    assert "secret" not in listed and "KeyError" in listed
    assert (report.documents, report.quarantined) == (5, 3)


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
