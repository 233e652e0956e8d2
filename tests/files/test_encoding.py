"""Encodings: told by marks, declarations and letters, kept when a file is written, and named in the report."""

import pytest

from allonym.errors import DataError
from allonym.files.encoding import decode_file, detect_encoding

LETTER = "Dear Jane, write to a@example.com about the keys, please. "
TEXTS = {
    "cp1252": "José Müller’s friend lives in the Straße “Am Döbel” – 12 €. Write to a@example.com\n",
    "cp1250": "Łukasz Żółkiewski mieszka w Łodzi przy ulicy Świętokrzyskiej\n",
    "iso8859-2": "Łukasz Żółkiewski mieszka w Łodzi przy ulicy Świętokrzyskiej\n",
    "cp1254": "Ayşe Yılmaz İstanbul'da yaşıyor ve çalışıyor\n",
    "cp1257": "Jānis Bērziņš dzīvo Rīgā, Šiauliai\n",
    "cp850": "José Müller wohnt in der Straße Am Döbel\n",
    "mac_roman": "José Müller wohnt in der Straße “Am Döbel” – 12 €\n",
    "cp1251": "Иван Петров живёт в Москве на улице Ленина.\n",
    "koi8_r": "Иван Петров живёт в Москве на улице Ленина.\n",
    "cp1253": "Ο Γιώργος Παπαδόπουλος μένει στην Αθήνα\n",
    "cp1255": "שלום דני כהן גר בתל אביב\n",
    "cp932": "山田太郎は東京に住んでいます。\n",
    "iso2022_jp": "山田太郎は東京に住んでいます。\n",
    "gb18030": "张伟住在北京市朝阳区。\n",
    "utf-16-le": "Jane Doe\n",
    "utf-16-be": "Jane Doe\n",
    "utf-8": "José Müller, Иван Петров\n",
}


@pytest.mark.parametrize("codec", TEXTS)
def test_an_encoding_is_told_by_its_letters(codec):
    text, encoding = decode_file(TEXTS[codec].encode(codec))
    assert text == TEXTS[codec] and encoding.codec == codec


def test_declarations_count_where_they_fit():
    head = '<html><head><meta charset="%s"></head>'
    assert detect_encoding((head % "windows-1251" + "Ж").encode("cp1251")).codec == "cp1251"
    assert detect_encoding((head % "iso-8859-1").encode()).codec == "iso8859-1"
    assert detect_encoding((head % "iso-8859-1" + "Ж").encode()).codec == "utf-8"
    assert detect_encoding(
        b'<?xml version="1.0" encoding="ISO-8859-2"?>' + "<n>Łukasz</n>".encode("iso-8859-2")
    ).codec == ("iso8859-2")
    assert detect_encoding("“Grüße”".encode("cp1252"), "iso-8859-1").codec == "cp1252"
    for useless in ("cp037", "punycode", "klingon", "utf-16", "hex", "us-ascii", ""):
        assert detect_encoding(b"abc", useless).codec == "utf-8"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", TEXTS["cp1252"]),
        ("a.html", f"<p>{TEXTS['cp1252']}</p>"),
        ("a.csv", f"name;text\nJosé;{TEXTS['cp1252']}"),
        ("a.tsv", f"name\ttext\nJosé\t{TEXTS['cp1252']}"),
        ("a.jsonl", f'{{"text": "{TEXTS["cp1252"].strip()}"}}\n'),
        ("a.json", f'[{{"text": "{TEXTS["cp1252"].strip()}"}}]'),
        ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{TEXTS['cp1252']}"),
    ],
)
def test_files_keep_their_encoding(run, name, text):
    out, report = run(name, text.encode("cp1252"))
    assert "Straße “Am Döbel” – 12 €" in out.decode("cp1252") and b"example" not in out
    assert report.encodings == {"CP1252": 1} and "CP1252 (1 file)" in report.to_text()


def test_letters_that_an_encoding_lacks_are_written_as_the_nearest(run, policy):
    zofia = policy.with_(dictionary=policy.dictionary, style="[Łódź‑{label}]")
    assert b"[L\xf3dz?EMAIL_ADDRESS]" in run("a.txt", TEXTS["cp1252"].encode("cp1252"), zofia)[0]
    assert b"[&#321;\xf3d&#378;&#8209;EMAIL_ADDRESS]" in run("a.html", TEXTS["cp1252"].encode("cp1252"), zofia)[0]


def test_rows_of_a_damaged_file_do_not_change_its_encoding(run):
    rows = "".join(f"{n},Zoë at a@example.com\n" for n in range(9)).encode()
    out, report = run("a.csv", b"id,text\n" + rows + b"10,caf\xe9\n")
    assert report.quarantined == 1 and not report.encodings and "Zoë".encode() in out


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe" + LETTER.encode(),
        b"\xfe\xff" + LETTER.encode(),
        LETTER.encode("utf-16")[:20] + LETTER.encode("utf-16")[21:] + b"\0",
        b"\xfe\xff" + LETTER.encode("utf-16-be")[1:] + b"\0",
    ],
)
def test_what_only_begins_like_utf16_is_refused(run, data):
    with pytest.raises(DataError, match="a byte is missing, or it is another encoding"):
        run("a.txt", data)


@pytest.mark.parametrize(
    "text", [LETTER, "我们今天在北京开会，讨论了新的项目计划。", "一" * 40, "Привет, Ада", "यह एक परीक्षण है"]
)
def test_utf16_of_any_script_is_read(text):
    assert decode_file(text.encode("utf-16"))[0] == text


@pytest.mark.parametrize("name", ["unicode_escape", "raw_unicode_escape", "punycode", "idna"])
def test_codecs_that_are_no_encodings_of_files_are_not_taken_for_them(run, name):
    page = b'<meta charset="' + name.encode() + b'"><p>\\x41 b\na@example.com</p>\n'
    assert run("a.html", page)[0] == page.replace(b"a@example.com", b"[EMAIL_ADDRESS_1]")
