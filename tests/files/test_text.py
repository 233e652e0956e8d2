"""Plain text, transcripts and encodings."""

import pytest

from allonym.errors import DataError
from allonym.files import format_of, get_format, read_transcript


def test_bytes_around_edits_stay(run):
    data = b"\xef\xbb\xbfWrite to a@example.com\r\n\r\nbye\t\r\n\x0c"
    assert run("a.txt", data)[0] == data.replace(b"a@example.com", b"[EMAIL_ADDRESS_1]")


def test_utf16_stays_utf16(run):
    data = "\ufeffÉcrire à a@example.com 𝒳\r\n".encode("utf-16-le")
    assert run("a.md", data)[0].decode("utf-16-le") == "\ufeffÉcrire à [EMAIL_ADDRESS_1] 𝒳\r\n"


@pytest.mark.parametrize("data", [b"a@example.com \xff", b"a\x00b", b"\xff\xfe\x00\x00a\x00\x00\x00", b"\xff\xfe\x00"])
def test_other_encodings_are_refused_without_quoting_them(run, tmp_path, data):
    with pytest.raises(DataError) as caught:
        run("a.txt", data)
    assert "example" not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt"]


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Pam: Hi.\nJim: Hello,\n\nPam: Bye.\r\n", [("Pam", "Hi."), ("Jim", "Hello,"), ("Pam", "Bye.")]),
        (
            "Dr. O'Neil (host):  Hi\nand more\nGuest 2:\tyes\n",
            [("Dr. O'Neil (host)", "Hi\nand more"), ("Guest 2", "yes")],
        ),
        ("Pam: Hi.\nThis is prose.\nAnd more.\nJim: x", []),
        ("Note: only one", []),
        ("https://a.example\nhttp://b.example", []),
        ("12:30\n12:45\n", []),
        ("", []),
    ],
)
def test_transcripts(text, turns):
    document = read_transcript(text, "t")
    assert document.text == text and document.id == "t" and not document.parts
    said = [(text[slice(*t.speaker)], text[t.start : t.end]) for t in document.turns if t.speaker]
    assert said == turns


def test_speakers_are_replaced(run):
    out = run("a.txt", b"Pam: Hi.\nJim: Hello Pam.\n")[0]
    assert out == b"[PERSON_1]: Hi.\n[PERSON_2]: Hello [PERSON_1].\n"


def test_empty_file(run):
    out, report = run("a.txt", b"")
    assert out == b"" and report.documents == 1 and report.exit_code == 0


@pytest.mark.parametrize("name", [".env", "a.py", "a.sql", "a.toml.gz", "A.LOG"])
def test_source_code_and_settings_are_text(name):
    assert format_of(name) == (get_format("txt"), name.endswith(".gz"))
