"""Outlook mails: read, anonymised, written as EML. The files are made here, after [MS-CFB] and [MS-OXMSG]."""

from __future__ import annotations

import email
import email.policy
import struct
from collections.abc import Mapping
from itertools import pairwise

import pytest

from allonym.errors import DataError, UsageError
from allonym.files import anonymize_path

pytest.importorskip("oxmsg")

END, FREE = 0xFFFFFFFE, 0xFFFFFFFF
SECTOR, SMALL = 512, 64
Tree = Mapping[str, "bytes | Tree"]


def write_compound_file(tree: Tree) -> bytes:
    """Return a compound file whose streams are all small, and so in the mini stream."""
    entries: list[tuple[str, int, int, int, int]] = []  # name, kind, child, start, size
    siblings: dict[int, int] = {}
    mini = bytearray()
    fat: list[int] = []

    def add(name: str, node: bytes | Tree, kind: int) -> int:
        number = len(entries)
        entries.append((name, kind, FREE, END, 0))
        if isinstance(node, bytes):
            start = len(mini) // SMALL
            count = -(-len(node) // SMALL)
            mini.extend(node.ljust(count * SMALL, b"\0"))
            fat.extend([*range(start + 1, start + count), END] if count else [])
            entries[number] = (name, kind, FREE, start if count else END, len(node))
            return number
        children = [add(n, child, 2 if isinstance(child, bytes) else 1) for n, child in node.items()]
        siblings.update(pairwise(children))
        entries[number] = (name, kind, children[0] if children else FREE, END, 0)
        return number

    add("Root Entry", tree, 5)
    padded = bytes(mini).ljust(-(-len(mini) // SECTOR) * SECTOR, b"\0")
    entry_count = -(-len(entries) // 4) * 4
    sizes = [1, entry_count // 4, -(-len(fat) // 128), len(padded) // SECTOR]  # FAT, entries, mini FAT, mini stream
    starts = [sum(sizes[:n]) for n in range(4)]
    chain = [0xFFFFFFFD]
    for start, size in zip(starts[1:], sizes[1:], strict=True):
        chain += [*range(start + 1, start + size), END]
    entries[0] = (*entries[0][:3], starts[3], len(padded))
    directory = b""
    for number, (name, kind, child, start, size) in enumerate(entries):
        raw = name.encode("utf-16-le") + b"\0\0"
        directory += raw.ljust(64, b"\0") + struct.pack("<HBB", len(raw), kind, 1)
        directory += struct.pack("<III", FREE, siblings.get(number, FREE), child) + bytes(36)
        directory += struct.pack("<IQ", start, size)
    directory += (bytes(66) + bytes(2) + struct.pack("<III", FREE, FREE, FREE) + bytes(48)) * (
        entry_count - len(entries)
    )
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIII", 0, 1, starts[1], 0, 4096, starts[2], sizes[2], END, 0) + struct.pack("<I", 0)
    header = header.ljust(SECTOR, b"\xff")
    tables = b"".join(
        struct.pack(f"<{n}I", *t, *[FREE] * (n - len(t))) for t, n in ((chain, 128), (fat, sizes[2] * 128))
    )
    return header + tables[:SECTOR] + directory + tables[SECTOR:] + padded


def make_storage(
    header: bytes, texts: Mapping[int, str], blobs: Mapping[int, bytes], numbers: Mapping[int, int]
) -> dict:
    """Return the streams of an object with properties."""
    rows = [struct.pack("<HHIII", 3, pid, 6, value, 0) for pid, value in numbers.items()]
    streams: dict = {}
    for kind, values in ((0x001F, {p: t.encode("utf-16-le") for p, t in texts.items()}), (0x0102, blobs)):
        for pid, data in values.items():
            streams[f"__substg1.0_{pid:04X}{kind:04X}"] = data
            rows.append(struct.pack("<HHIII", kind, pid, 6, len(data) + (2 if kind == 0x001F else 0), 0))
    return {"__properties_version1.0": header + b"".join(rows), **streams}


def make_msg(headers: str = "") -> bytes:
    """Return an Outlook mail with a text, a page, two recipients and an attached table."""
    texts = {0x001A: "IPM.Note", 0x0037: "Keys for Adaeze Okafor", 0x1000: "Dear Adaeze Okafor,\r\nsee you.\r\n"}
    texts |= {0x0C1A: "Tomas Lindqvist", 0x0C1F: "t.lindqvist@fennside.example"}
    if headers:
        texts[0x007D] = headers
    head = struct.pack("<8x4I8x", 2, 1, 2, 1)
    tree: dict = make_storage(head, texts, {0x1013: b"<p>Dear Adaeze <b>Okafor</b></p>"}, {0x3FDE: 65001})
    people = (("Adaeze Okafor", "okafor@fennside.example", 1), ("Jim Halpert", "jim@fennside.example", 2))
    for number, (name, address, kind) in enumerate(people):
        tree[f"__recip_version1.0_#{number:08X}"] = make_storage(
            bytes(8), {0x3001: name, 0x3003: address, 0x39FE: address}, {}, {0x0C15: kind}
        )
    table = b"name,visits\nAdaeze Okafor,3\nTomas Lindqvist,5\n"
    tree["__attach_version1.0_#00000000"] = make_storage(
        bytes(8), {0x3707: "okafor.csv", 0x370E: "text/csv"}, {0x3701: table}, {0x3705: 1}
    )
    tree["__nameid_version1.0"] = {"__substg1.0_00020102": b""}
    return write_compound_file(tree)


HEADERS = (
    "From: Tomas Lindqvist <t.lindqvist@fennside.example>\r\nTo: Adaeze Okafor\r\n <okafor@fennside.example>\r\n"
    "Cc: Jim Halpert <jim@fennside.example>\r\nSubject: Keys for Adaeze Okafor\r\nContent-Type: x/y\r\n"
    "Date: Tue, 12 Mar 2024 09:30:00 +0100\r\n\r\n"
)


@pytest.mark.parametrize("headers", ["", HEADERS])
def test_an_outlook_mail_becomes_a_mail(tmp_path, policy, headers):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.msg").write_bytes(make_msg(headers))
    report = anonymize_path(tmp_path / "in", tmp_path / "out", policy)
    assert not report.refused
    mail = email.message_from_bytes((tmp_path / "out" / "a.msg.eml").read_bytes(), policy=email.policy.default)
    assert [part.get_content_type() for part in mail.walk() if not part.is_multipart()] == [
        "text/plain",
        "text/html",
        "text/csv",
    ]
    for field in ("From", "To", "Cc"):
        assert mail[field].addresses[0].domain == "redacted.invalid" and not mail[field].defects
    assert (mail["Date"] is None) == (not headers)
    texts = [str(mail[name]) for name in mail] + [p.get_content() for p in mail.walk() if not p.is_multipart()]
    for original in ("Okafor", "okafor", "Lindqvist", "Halpert", "fennside"):
        assert original not in "\n".join(texts)
    assert "Dear [PERSON_" in texts[-3] and ",3" in texts[-1]


def test_what_is_no_outlook_mail_is_refused(run, tmp_path, policy):
    (tmp_path / "a.msg").write_bytes(b"no mail")
    with pytest.raises(DataError, match="Outlook"):
        anonymize_path(tmp_path / "a.msg", tmp_path / "b.eml", policy)
    with pytest.raises(UsageError, match=r"written as \.eml"):
        anonymize_path(tmp_path / "a.msg", tmp_path / "b.msg", policy)
