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


@pytest.mark.parametrize("suffix", ["srt", "vtt"])
def test_what_stands_behind_times_or_in_angle_brackets_is_read(run, suffix):
    head = "WEBVTT\n\n" if suffix == "vtt" else ""
    cues = [
        "00:00:01.000 --> 00:00:02.000 align:start write to ada@quillfeather.example\n<i>Well</i>",
        "00:00:03.000 --> 00:00:04.000bob@quillfeather.example\nIt is <cy@quillfeather.example>, <font color=red>no</font>",
        "00:00:05.000 --> dan@quillfeather.example\n{\\an8}Up, {\\eve@quillfeather.example}",
        "00:00:07.000 --> 00:00:08.000 line:0 position:20% X1:40\n<v Ann>Yes. <b title='fay@quillfeather.example'>",
    ]
    out, _ = run(f"a.{suffix}", (head + "\n\n".join(cues)).encode())
    assert b"quillfeather" not in out and out.count(b"[EMAIL_ADDRESS_") == 6
    for kept in (
        b"00:00:01.000 --> 00:00:02.000 align:start",
        b"<i>Well</i>",
        b"<font color=red>no</font>",
        b"{\\an8}Up",
    ):
        assert kept in out
    assert b"00:00:07.000 --> 00:00:08.000 line:0 position:20% X1:40\n" in out
