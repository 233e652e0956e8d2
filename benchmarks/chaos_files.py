"""Small files in every format, damaged in many ways, and what becomes of them.

Used by ``chaos.py``. A damaged file is refused, or its output holds none of the addresses in it; no message holds one,
and no file is left over. A format's parts are damaged too: entries of ZIP files are packed again, so that the damage
gets past their checksums.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import random
import re
import select
import signal
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from benchmarks.made_files import (
    convert_files,
    make_archive,
    make_book,
    make_form,
    make_letter,
    make_log,
    make_notebook,
    make_odf_letter,
    make_page,
    make_slides,
    make_workbook,
    make_xml,
    make_yaml,
    read_words,
)

from allonym.errors import AllonymError
from allonym.files import anonymize_path, read_documents
from allonym.files.formats import readers
from allonym.policy import Policy

WORDS = read_words()[0]
ADDRESSES = WORDS.mails
_ADDRESS = re.compile(rf"(?<![\w.+-])(?:{'|'.join(map(re.escape, ADDRESSES))})(?![\w-])")
LIMIT = 30.0
"""Seconds of the processor for one small file."""
_BATCH = 20
_SPECIAL = [b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b'"', b"\n", b"\r", b"<", b"&#x0;", b"]]>", b"\\u0000", b"%PDF-", b"{"]
_SPECIAL += [b"PK\x03\x04", b"\xed\xa0\x80", b"A" * 5000, b"[" * 3000, b"=?utf-8?b?", b"-- ", b"\x1a", b"99999999999"]

POLICY = Policy.load("default")
POLICY = POLICY.with_(detectors=tuple(name for name in POLICY.detectors if name != "tagger"))


def _write_lines() -> str:
    return "".join(
        f"{person}: write to {mail}, please.\n" for person, mail in zip(WORDS.people, ADDRESSES, strict=True)
    )


def _write_records() -> list[dict[str, Any]]:
    people = zip(WORDS.people, ADDRESSES, strict=True)
    return [{"id": i, "name": person, "note": f"from {mail}"} for i, (person, mail) in enumerate(people)]


def _make_mail() -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = ADDRESSES[0], f"A <{ADDRESSES[1]}>", f"For {WORDS.people[2]}"
    mail.set_content(_write_lines())
    mail.add_alternative(make_page(WORDS).decode(), subtype="html")
    mail.add_attachment(make_letter(WORDS), maintype="application", subtype="octet-stream", filename="letter.docx")
    return mail.as_bytes()


def _make_pdf() -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pageCompression=0)
    for i, line in enumerate(_write_lines().splitlines()):
        canvas.drawString(72, 700 - 20 * i, line)
    canvas.save()
    return out.getvalue()


def _make_parquet() -> bytes:
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(_write_records()), out)
    return out.getvalue()


def _make_picture(kind: str) -> bytes:
    from PIL import Image, ImageDraw

    out, picture = io.BytesIO(), Image.new("L", (400, 60), 255)
    ImageDraw.Draw(picture).text((10, 20), f"write to {ADDRESSES[0]}", fill=0)
    picture.save(out, kind)
    return out.getvalue()


def _write_calendar() -> str:
    events = "".join(
        f"BEGIN:VEVENT\r\nUID:{i}\r\nDTSTART:20240312T093000Z\r\nSUMMARY:With {person}\r\n"
        f"ATTENDEE;CN={person}:mailto:{mail}\r\nEND:VEVENT\r\n"
        for i, (person, mail) in enumerate(zip(WORDS.people, ADDRESSES, strict=True))
    )
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n{events}END:VCALENDAR\r\n"


def _write_cards() -> str:
    pairs = zip(WORDS.people, ADDRESSES, strict=True)
    return "".join(f"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:{p}\r\nEMAIL:{m}\r\nEND:VCARD\r\n" for p, m in pairs)


def _write_captions(head: str, mark: str) -> str:
    lines = enumerate(_write_lines().splitlines())
    return head + "".join(f"{i}\n00:00:0{i}{mark}000 --> 00:00:0{i}{mark}900\n{line}\n\n" for i, line in lines)


def make_seeds(folder: Path, has_office: bool = True) -> dict[str, bytes]:
    """Return a whole file of each format; of DOC, XLS, PPT, ODS and ODP only where LibreOffice may write them."""
    rows = [f'{r["id"]}{{0}}{r["name"]}{{0}}"{r["note"]}"\n' for r in _write_records()]
    mail = _make_mail()
    seeds = {
        "txt": _write_lines().encode(),
        "md": f"# Notes\n\n- **{WORDS.people[0]}**\n- [mail](mailto:{ADDRESSES[0]})\n\n{_write_lines()}".encode(),
        "jsonl": "".join(f"{json.dumps(r)}\n" for r in _write_records()).encode(),
        "json": json.dumps(_write_records(), indent=1).encode(),
        "csv": "".join(["id,name,note\n", *(row.format(",") for row in rows)]).encode(),
        "tsv": "".join(["id\tname\tnote\n", *(row.format("\t") for row in rows)]).encode(),
        "parquet": _make_parquet(),
        "html": make_page(WORDS),
        "eml": mail,
        "mbox": b"".join(b"From a Thu Jan  1 00:00:00 2026\n" + mail + b"\n" for _ in range(2)),
        "ics": _write_calendar().encode(),
        "vcf": _write_cards().encode(),
        "docx": make_form(WORDS),
        "xlsx": make_workbook(WORDS),
        "pptx": make_slides(WORDS),
        "odt": make_odf_letter(WORDS),
        "pdf": _make_pdf(),
        "png": _make_picture("PNG"),
        "jpg": _make_picture("JPEG"),
        "xml": make_xml(WORDS),
        "yaml": make_yaml(WORDS),
        "ipynb": make_notebook(WORDS),
        "rtf": (r"{\rtf1\ansi " + _write_lines().replace("\n", r"\par ") + "}").encode(),
        "zip": make_archive({"a.txt": _write_lines(), "in/log.log": make_log(WORDS), "b.docx": make_letter(WORDS)}),
        "epub": make_book(WORDS),
        "srt": _write_captions("", ",").encode(),
        "vtt": _write_captions("WEBVTT\n\n", ".").encode(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for made, suffixes in (("docx", ["doc"]), ("xlsx", ["xls", "ods"]), ("pptx", ["ppt", "odp"])) if has_office else ():
        (folder / f"a.{made}").write_bytes(seeds[made])
        for suffix in suffixes:
            convert_files([folder / f"a.{made}"], suffix, folder)
            if (folder / f"a.{suffix}").exists():
                seeds[suffix] = (folder / f"a.{suffix}").read_bytes()
    return seeds


def damage_bytes(data: bytes, draw: random.Random) -> bytes:
    """Return data with one to four damages: flipped, lost, doubled, exchanged, cut or inserted bytes."""
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        size = len(out)
        if not size:
            break
        a = draw.randrange(size)
        b = min(size, a + draw.choice((1, 2, 8, 64, 512)))
        kind = draw.randrange(7)
        if kind == 0:
            out[a] ^= 1 << draw.randrange(8)
        elif kind == 1:
            del out[a:b]
        elif kind == 2:
            out[a:a] = out[a:b]
        elif kind == 3:
            c = draw.randrange(size)
            out[c : c + b - a] = out[a:b]
        elif kind == 4:
            del out[a:]
        elif kind == 5:
            out[a:a] = draw.choice(_SPECIAL)
        else:
            out[a:b] = draw.randbytes(b - a)
    return bytes(out)


def damage_file(data: bytes, draw: random.Random) -> bytes:
    """Return a damaged file: its bytes, or those of an entry of a ZIP file, or of a base64 part."""
    if data.startswith(b"PK\x03\x04") and draw.random() < 0.7:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = {i.filename: archive.read(i) for i in archive.infolist()}
        name = draw.choice(sorted(entries))
        entries[name] = damage_file(entries[name], draw)
        if draw.random() < 0.1:
            del entries[name]
        return make_archive(entries)
    packed = re.search(rb"\r?\n\r?\n((?:[A-Za-z0-9+/=]{60,}\r?\n)+)", data)
    if packed is not None and draw.random() < 0.3:
        inner = damage_file(base64.b64decode(packed[1]), draw)
        return data[: packed.start(1)] + base64.encodebytes(inner) + data[packed.end(1) :]
    return damage_bytes(data, draw)


class TooSlow(BaseException):
    """A small file took more of the processor than :data:`LIMIT`."""


def _raise_too_slow(signal_number: int, frame: object) -> None:
    raise TooSlow


def read_everything(data: bytes, path: Path | None = None) -> str:
    """Return what can be read in a file by simple means, and what our reader reads."""
    texts = [
        data.decode("utf-8", "replace"),
        data.decode("utf-16-le", "replace"),
        data[1:].decode("utf-16-le", "replace"),
    ]
    if data.startswith(b"PK\x03\x04"):
        with suppress(zipfile.BadZipFile, ValueError, OSError), zipfile.ZipFile(io.BytesIO(data)) as archive:
            texts += [read_everything(archive.read(i)) for i in archive.infolist()]
    if path is not None:
        with suppress(AllonymError):
            texts += [document.text for document in read_documents(path, policy=POLICY)]
    return "\n".join(texts).lower()


def judge_file(data: bytes, suffix: str, folder: Path) -> tuple[str, str]:
    """Anonymise one damaged file; return what became of it, and where that is a failure, what happened."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"in.{suffix}"
    source.write_bytes(data)
    target = folder / f"out.{readers.get(suffix).written_as or suffix}"
    message, kind = "", "output"
    signal.signal(signal.SIGPROF, _raise_too_slow)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        anonymize_path(source, target, POLICY)
    except AllonymError as error:
        kind, message = "refused", f"{error!r} {error}\n{traceback.format_exc()}"
    except TooSlow:
        kind, message = "slow", traceback.format_exc()
    except BaseException as error:  # whatever it is, it should have been a refusal
        kind, message = "crash", f"{error!r} {error}\n{traceback.format_exc()}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    source.unlink()
    left = [path for path in folder.rglob("*") if path.is_file()]
    texts = {path.name: read_everything(path.read_bytes(), path) for path in left}
    for name, text in {**texts, "message": message.lower()}.items():
        if _ADDRESS.search(text):
            return "marker", f"in {name}; {kind}; {message[-500:]}"
    if kind == "refused" and any(not name.endswith(".quarantine.jsonl") for name in texts):
        return "wrong", f"refused, and {sorted(texts)} are left"
    return kind, message if kind in ("crash", "slow") else ""


def _judge_batch(rows: list[tuple[int, bytes]], suffix: str, folder: Path, pipe: int) -> None:
    for number, data in rows:
        kind, message = judge_file(data, suffix, folder / str(number))
        line = pickle.dumps((number, kind, message[-3000:]))
        os.write(pipe, len(line).to_bytes(4, "big") + line)


def _run_batch(rows: list[tuple[int, bytes]], suffix: str, folder: Path) -> Iterator[tuple[int, str, str]]:
    """Judge files in a process, which may crash or hang; the rest of its batch is then judged in another."""
    while rows:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                _judge_batch(rows, suffix, folder, writing)
            finally:
                os._exit(0)
        os.close(writing)
        judged: list[tuple[int, str, str]] = []
        buffer, deadline = b"", time.monotonic() + 10 * LIMIT
        while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
            block = os.read(reading, 1 << 16)
            if not block:
                break
            buffer, deadline = buffer + block, time.monotonic() + 10 * LIMIT
            while len(buffer) >= 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
                judged.append(pickle.loads(buffer[4 : 4 + size]))
                buffer = buffer[4 + size :]
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(reading)
        yield from judged
        rows = rows[len(judged) :]
        if rows:
            yield rows[0][0], "crash", f"the process ended or hung, status {status}"
            rows = rows[1:]


def damage_files(
    folder: Path,
    count: int,
    seed: int,
    keep: Callable[[str, int, bytes], object] | None = None,
    has_office: bool = True,
    formats: Container[str] = (),
) -> Iterator[tuple[str, dict[str, int], list[str]]]:
    """Yield for each format its counts and failures; ``count`` files are divided among the formats.

    Args:
        folder: to work in.
        count: damaged files.
        seed: of the damage.
        keep: called with the suffix, the number and the bytes of each file that fails.
        has_office: whether LibreOffice may be started, for the formats that it reads and writes.
        formats: the suffixes of those that are tried; empty: all.
    """
    seeds = make_seeds(folder / "seeds", has_office)
    for index, (suffix, whole) in enumerate(seeds.items()):
        if formats and suffix not in formats:
            continue
        draw = random.Random(f"{seed} {suffix}")
        share = count // len(seeds) + (index < count % len(seeds))
        rows = [(number, damage_file(whole, draw)) for number in range(share)]
        counts, failures = Counter(trials=share, faults=share), []
        for first in range(0, share, _BATCH):
            for number, kind, message in _run_batch(rows[first : first + _BATCH], suffix, folder / suffix):
                kind = "crash" if kind == "slow" else kind
                counts[kind] += 1
                if kind not in ("output", "refused"):
                    failures.append(f"{suffix} {number}: {kind}: {message}")
                    if keep:
                        keep(suffix, number, rows[number][1])
        yield suffix, dict(counts), failures
