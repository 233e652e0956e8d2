"""Calendars and address cards: what people wrote is covered, and programs still read them."""

import re

from allonym.files import anonymize_path
from allonym.files.restoring import restore_files
from allonym.policy import Policy
from allonym.vault import Vault

ICS = """BEGIN:VCALENDAR\r
VERSION:2.0\r
METHOD:REQUEST\r
BEGIN:VEVENT\r
UID:20240312-1@fennside.example\r
DTSTART;TZID=Europe/London:20240312T093000\r
DTEND:20240312T103000Z\r
RRULE:FREQ=WEEKLY;UNTIL=20241231;BYDAY=TU\r
SUMMARY:Keys for Adaeze Okafor\\, at noon\r
DESCRIPTION:Bring the keys. Adaeze Oka\r
 for will wait.\\nSee t.lindqvist@fennside.example\r
ORGANIZER;CN="Lindqvist, Tomas":mailto:t.lindqvist@fennside.example\r
ATTENDEE;ROLE=REQ-PARTICIPANT;CN=Adaeze Okafor;RSVP=TRUE:mailto:okafor@fennsi\r
 de.example\r
ATTACH;ENCODING=BASE64;VALUE=BINARY:QWRhZXpl\r
 T2thZm9y\r
END:VEVENT\r
END:VCALENDAR\r
"""
VCF = """BEGIN:VCARD
VERSION:3.0
N:Okafor;Adaeze;;Dr.;
FN:Adaeze Okafor
item1.TEL;TYPE=CELL:+44 20 7946 0958
EMAIL;TYPE=work:okafor@fennside.example
ADR;TYPE=HOME:;;12 Brook Lane;Fennside;;FS1 2AB;UK
BDAY:1980-03-12
PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQ
 SkZJRgAB
NOTE:Adaeze Okafor prefers mail.
END:VCARD
"""


def test_a_calendar_stays_one(run):
    out, report = run("a.ics", ICS.encode())
    text = out.decode()
    for original in ("Okafor", "okafor", "fennside", "2024", "QWRh", "T2th"):
        assert original not in text
    lines = re.sub(r"\r\n[ \t]", "", text).split("\r\n")
    assert lines[:4] == ICS.split("\r\n")[:4] and lines[-3:] == ["END:VEVENT", "END:VCALENDAR", ""]
    assert 'DTSTART;TZID=Europe/London;X-ALLONYM="[DATE_TIME_1]":19700101T000000Z' in lines
    assert 'RRULE;X-ALLONYM="[DATE_TIME_3]":FREQ=WEEKLY;UNTIL=19700101;BYDAY=TU' in lines
    assert "SUMMARY:Keys for [PERSON_1]\\, at noon" in lines
    assert 'ORGANIZER;CN="[PERSON_2]":mailto:EMAIL_ADDRESS_1@redacted.invalid' in lines
    assert "ATTENDEE;ROLE=REQ-PARTICIPANT;CN=[PERSON_1];RSVP=TRUE:mailto:EMAIL_ADDRESS_2@redacted.invalid" in lines
    assert report.treated["attachments left out"] == 1


def test_a_card_stays_one(run):
    text = run("a.vcf", VCF.encode())[0].decode()
    for original in ("Okafor", "okafor", "Adaeze", "7946", "Brook", "FS1", "1980", "PHOTO", "SkZJ"):
        assert original not in text
    assert text.startswith("BEGIN:VCARD\nVERSION:3.0\nN:") and text.endswith("\nEND:VCARD\n")
    assert (
        "EMAIL;TYPE=work:EMAIL_ADDRESS_1@redacted.invalid\n" in text and "item1.TEL;TYPE=CELL:[PHONE_NUMBER_1]" in text
    )


def test_each_component_of_a_card_is_a_text_of_its_own(run):
    card = """BEGIN:VCARD
VERSION:4.0
N:Holloway;Margaret,Ann;;;
FN:Margaret Holloway
ORG:Ashdown\\; Sons plc;Repairs
ADR:;;12 Brook Lane;Fennside;;FS1 2AB;
END:VCARD
"""
    lines = run("a.vcf", card.encode())[0].decode().splitlines()
    assert lines[2].startswith("N:[PERSON_1];[PERSON_") and lines[2].endswith("];;;") and "\\" not in lines[2]
    assert lines[3] == "FN:[PERSON_1]" and lines[4].count(";") - lines[4].count("\\;") == 1
    assert lines[5] == "ADR:;;[STREET_ADDRESS_1];[CITY_1];;[POSTAL_CODE_1];"


def test_a_card_at_a_mail_stays_one(run):
    mail = (
        'From: a@example.com\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="x"\n\n--x\n'
        'Content-Type: application/octet-stream; name="card.vcf"\n'
        'Content-Disposition: attachment; filename="card.vcf"\n\n'
        "BEGIN:VCARD\nVERSION:3.0\nN:Holloway;Margaret;;;\nFN:Margaret Holloway\nEND:VCARD\n\n--x--\n"
    )
    assert b"\nN:[PERSON_1];[PERSON_1];;;\nFN:[PERSON_1]\n" in run("a.eml", mail.encode())[0]


def test_nothing_found_means_the_same_bytes(run, nothing):
    data = ICS.replace("ATTACH;ENCODING=BASE64;VALUE=BINARY", "X-A").encode()
    assert run("a.ics", data, nothing)[0] == data


def test_no_part_of_a_card_is_passed_through_unread(run):
    card = """BEGIN:VCARD\r
VERSION:2.1\r
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:=4F=6B=61=66=6F=72;=41daeze\r
NOTE;ENCODING=QUOTED-PRINTABLE:Key for =\r
Adaeze Okafor, written=\r
 by okafor@fennside.example\r
FN;SORT-AS="Okafor","Adaeze";X-OLD="Adaeze Okafor":Adaeze Okafor\r
ADR;LABEL="12 Brook Lane, Fennside":;;12 Brook Lane;Fennside;;FS1 2AB;UK\r
X-KEY1:Adaeze Okafor\r
X-BAR:20240101 by okafor@fennside.example\r
RELATED;VALUE=text:Adaeze Okafor\r
MEMBER;X-A="mailto:a.okafor@fennside.example","mailto:b.okafor@fennside.example":x\r
a stray line about Adaeze Okafor\r
NOTE;ENCODING=BASE64:QWRhZXplIE9r\r
YWZvcg==\r
END:VCARD\r
"""
    out, _ = run("a.vcf", card.encode())
    text = out.decode()
    for original in ("Okafor", "Adaeze", "okafor", "Brook", "=4F", "QWRh", "YWZv", "QUOTED"):
        assert original not in text
    assert ":19700101 by " in text and text.startswith("BEGIN:VCARD") and text.endswith("END:VCARD\r\n")


def test_times_of_a_calendar_come_back(tmp_path):
    calendar = (
        'BEGIN:VEVENT\r\nDTSTART;TZID="Europe/London":20240312T093000\r\nEXDATE:20240319T093000Z,20240326T093000Z\r\n'
        "RRULE:FREQ=WEEKLY;UNTIL=20241231;BYDAY=TU\r\nSUMMARY:x\r\nEND:VEVENT\r\n"
    )
    safe, back = tmp_path / "safe.ics", tmp_path / "back.ics"
    for preset in ("reversible", "wild-tags"):
        (tmp_path / "a.ics").write_bytes(calendar.encode())
        with Vault.create(tmp_path / preset, b"a secret of the tests, long enough") as vault:
            anonymize_path(tmp_path / "a.ics", safe, preset, vault=vault, key=vault.operator_key, overwrite=True)
            assert b"2024" not in safe.read_bytes() and b"\0" not in safe.read_bytes()
            restore_files([(safe, back)], vault=vault)
            assert back.read_bytes() == calendar.encode()
            safe.write_bytes(safe.read_bytes().replace(b"BYDAY=TU", b"BYDAY=WE"))
            restore_files([(safe, back)], vault=vault)
            assert back.read_bytes() == calendar.replace("=TU", "=WE").encode()


def test_a_parameter_of_another_program_keeps_no_name(tmp_path):
    names = ("DTSTART", "SUMMARY", "TRIGGER", "X-ONE")
    lines = [f'{name};X-ALLONYM="Ada Brook":19700101T000000Z' for name in names]
    source, target, policy = (tmp_path / name for name in ("a.ics", "b.ics", "p.toml"))
    source.write_text("\n".join(["BEGIN:VEVENT", *lines, "END:VEVENT", ""]))
    policy.write_text('extends = "default"\n[rules.DATE_TIME]\noperator = "keep"\n')
    anonymize_path(source, target, policy)
    assert "Ada" not in target.read_text() and target.read_text().count(":19700101T000000Z") == 4


def test_text_in_a_property_or_parameter_that_only_describes_others_is_read(run):
    lines = [
        "BEGIN:VCARD",
        "VERSION:3.0 ada@example.com",
        "PRODID:-//Example Ltd//Cards 2.0 (x)//EN",
        "TZID:W. Europe Standard Time",
        "TEL;HOME;bob@example.com;VOICE:x",
        "NOTE;TYPE=cy@example.com;TYPE=HOME:y",
        "END:VCARD;CN=dan@example.com",
    ]
    out, _ = run("a.vcf", "\r\n".join([*lines, ""]).encode())
    assert b"example.com" not in out
    for kept in (lines[2], lines[3], "TEL;HOME;", ";VOICE:", ";TYPE=HOME:y"):
        assert kept.encode() in out


def test_a_long_line_that_is_no_property_does_not_hang(run):
    assert run("a.ics", b"-" * 100_000)[0] == b"-" * 100_000


def test_only_what_is_encoded_is_an_embedded_file(run):
    card = b"BEGIN:VCARD\r\nFN:X\r\na;b;;;\r\nTEL;b;HOME:1\r\nEND:VCARD\r\n"
    assert run("a.vcf", card, Policy.only(["EMAIL_ADDRESS"]))[0] == card


def test_every_part_of_an_address_has_a_label(run):
    card = b"BEGIN:VCARD\r\nFN:Ada Brook\r\nADR:;;9 Mill Lane;Anytown;CA;91921;USA\r\nEND:VCARD\r\n"
    out = run("a.vcf", card, Policy.load("default"))[0].decode()
    assert all(value not in out for value in ("Mill", "Anytown", ";CA;", "91921"))
