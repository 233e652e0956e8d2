"""Files in all formats: how many are treated, open again, keep their cells, and give no original away.

usage: python benchmarks/files.py make FOLDER           writes 170 files, in five languages
       python benchmarks/files.py run FOLDER [--libreoffice] [--policy default] [--largest N]

``run`` anonymises these, or other files in FOLDER, one by one, keeps the results in FOLDER-safe, and prints for each
format: files, encrypted ones (which are refused), treated, opened by a library of the format (and by LibreOffice),
header, number and formula cells that are the same, originals that a plan covered and that can still be read (left), and
planted ones that no plan covered (missed). In files that others made nothing is planted, and no header is known. The
last line is JSON.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import defaultdict
from email import message_from_bytes
from email.policy import default as MODERN
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.made_files import Words, convert_files, read_words, write_files

from allonym.errors import AllonymError
from allonym.files import anonymize_path

OFFICE = ("docx", "docm", "xlsx", "xlsm", "pptx", "odt", "ods", "odp", "rtf", "doc", "xls", "ppt")
_ENCRYPTED = re.compile(r"(?i)encrypt|password")
MACRO_DOCUMENT = "application/vnd.ms-word.document.macroEnabled.main+xml"
COUNTS = ("files", "encrypted", "treated", "opened", "libreoffice", "cells", "cells_same", "left", "missed")


def open_file(path: Path) -> None:
    """Open a file with a library of its format; raises what that raises."""
    suffix, data = path.suffix[1:], path.read_bytes()
    if suffix in ("docx", "docm"):
        import docx
        from docx.parts.document import DocumentPart

        docx.opc.part.PartFactory.part_type_for[MACRO_DOCUMENT] = DocumentPart
        package = docx.package.Package.open(io.BytesIO(data))
        assert package.main_document_part.document.paragraphs is not None
    elif suffix in ("xlsx", "xlsm"):
        import openpyxl

        assert openpyxl.load_workbook(io.BytesIO(data)).sheetnames
    elif suffix == "pptx":
        import pptx

        assert len(pptx.Presentation(io.BytesIO(data)).slides)
    elif suffix in ("odt", "ods", "odp"):
        from odf.opendocument import load

        assert load(io.BytesIO(data)).body
    elif suffix == "xml":
        from lxml import etree

        etree.fromstring(data)
    elif suffix == "yaml":
        import yaml

        assert yaml.safe_load(data)["version"] == 1.5
    elif suffix == "ipynb":
        assert json.loads(data)["cells"]
    elif suffix in ("zip", "epub"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None and archive.namelist()
    elif suffix == "html":
        import lxml.html

        lxml.html.fromstring(data)
    elif suffix == "rtf":
        assert data.startswith(b"{\\rtf") and data.count(b"{") - data.count(b"\\{") == data.count(b"}") - data.count(
            b"\\}"
        )
    elif suffix in ("doc", "xls", "ppt"):
        assert data.startswith(b"\xd0\xcf\x11\xe0")
    elif suffix == "pdf":
        import pypdfium2

        assert len(pypdfium2.PdfDocument(data))
    elif suffix == "eml":
        mail = message_from_bytes(data, policy=MODERN)
        assert mail["From"].addresses and [part.get_content_type() for part in mail.walk()]
    elif suffix == "csv":
        rows = list(csv.reader(io.StringIO(data.decode("cp1252")), delimiter=";"))
        assert len({len(row) for row in rows}) == 1
    elif suffix == "jsonl":
        assert len([json.loads(line) for line in data.splitlines()]) == 15
    elif suffix == "parquet":
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(io.BytesIO(data)).num_rows == 15
    elif suffix in ("vcf", "ics"):
        lines = data.decode().splitlines()
        assert lines.count("BEGIN:VCARD") == lines.count("END:VCARD") and all(":" in x or x[0] == " " for x in lines)


def read_cells(path: Path) -> tuple[list[str], dict[tuple[int, str], Any]]:
    """Return the names of the sheets, and the cells of a workbook by sheet and place."""
    import openpyxl

    book = openpyxl.load_workbook(path)
    cells = {(n, c.coordinate): c.value for n, s in enumerate(book.worksheets) for row in s.iter_rows() for c in row}
    return book.sheetnames, {place: value for place, value in cells.items() if value is not None}


def count_same_cells(before: Path, after: Path) -> tuple[int, int]:
    """Return how many header, number and formula cells there are, and how many of them are the same afterwards."""
    old_names, old = read_cells(before)
    new_names, new = read_cells(after)
    total = same = 0
    for (sheet, place), value in old.items():
        is_header = sheet in (0, 1, 3) and re.fullmatch(r"[A-Z]+1", place) is not None
        if not (is_header or isinstance(value, (int, float)) or str(value).startswith("=")):
            continue
        total += 1
        for a, b in zip(old_names, new_names, strict=True) if isinstance(value, str) else ():
            value = value.replace(f"'{a}'!", f"'{b}'!")
        same += new.get((sheet, place)) == value
    return total, same


def read_texts(data: bytes, suffix: str) -> str:
    """Return all that can be read in a file: packages are unpacked, tags are taken away, escapes are resolved."""
    if data.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [(i.filename, archive.read(i)) for i in archive.infolist()]
        return "\n".join(f"{name}\n{read_texts(d, name.rpartition('.')[2])}" for name, d in entries)
    if suffix in ("png", "jpeg", "jpg", "bin"):
        return ""
    if suffix == "pdf":
        found = subprocess.run(["pdftotext", "-", "-"], input=data, capture_output=True, check=True).stdout.decode()
        return f"{found}\n{' '.join(found.split())}\n{data.decode('latin-1')}"
    if suffix == "parquet":
        import pyarrow.parquet

        return str(pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist())
    if suffix == "eml":
        parts = [part for part in message_from_bytes(data, policy=MODERN).walk() if not part.is_multipart()]
        bodies = [(p.get_payload(decode=True), (p.get_filename() or "x.txt").rpartition(".")[2]) for p in parts]
        return "\n".join((data.decode("utf-8", "replace"), *(read_texts(body, kind) for body, kind in bodies)))
    if suffix in ("doc", "xls", "ppt", "rtf"):
        return "\n".join(
            (data.decode("latin-1"), data.decode("utf-16-le", "ignore"), data[1:].decode("utf-16-le", "ignore"))
        )
    text = data.decode("utf-8", "replace")
    plain = html.unescape(text)
    return f"{text}\n{plain}\n{re.sub(r'<[^>]*>', '', plain)}" if suffix not in ("txt", "log") else text


def run_files(folder: Path, policy: str, with_libreoffice: bool, largest: int) -> dict[str, dict[str, int]]:
    safe = folder.with_name(f"{folder.name}-safe")
    words = {w.language: w for w in read_words()}
    counts: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTS, 0))
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size <= largest):
        count = counts[path.suffix[1:].lower()]
        count["files"] += 1
        target = safe / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            plans = Path(work, "plans.jsonl")
            try:
                report = anonymize_path(path, target, policy, plans=plans, originals=True, overwrite=True)
            except Exception as error:
                count["encrypted"] += isinstance(error, AllonymError) and bool(_ENCRYPTED.search(str(error)))
                outcome = "refused" if isinstance(error, AllonymError) else "crashed"
                print(f"  {outcome}: {path.name}: {error}")
                target.unlink(missing_ok=True)
                continue
            if report.quarantined:
                print(f"  partly: {path.name}: {report.quarantined} left out")
                continue
            covered = _read_covered(plans)
        count["treated"] += 1
        try:
            open_file(target)
            count["opened"] += 1
        except Exception as error:
            print(f"  not opened: {path.name}: {type(error).__name__}: {error}")
        if (planted := words.get(path.name[:2])) is None or path.name[2:3] != "-":
            continue
        _count_originals(count, read_texts(target.read_bytes(), path.suffix[1:]), covered, planted, path.name)
        if path.suffix in (".xlsx", ".xlsm"):
            total, same = count_same_cells(path, target)
            count["cells"] += total
            count["cells_same"] += same
    if with_libreoffice:
        _count_opened_by_libreoffice(safe, counts)
    return dict(counts)


def _read_covered(plans: Path) -> str:
    rows = map(json.loads, plans.read_text(encoding="utf-8").splitlines()) if plans.exists() else ()
    return "\n".join(str(edit.get("original")) for row in rows for edit in row.get("plan", row)["edits"])


def _count_originals(count: dict[str, int], text: str, covered: str, words: Words, name: str) -> None:
    for secret in words.secrets:
        if re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", text):
            outcome = "left" if secret in covered else "missed"
            count[outcome] += 1
            print(f"  {outcome}: {name}: {secret}")


def _count_opened_by_libreoffice(safe: Path, counts: dict[str, dict[str, int]]) -> None:
    for suffix in OFFICE:
        files = sorted(safe.glob(f"*.{suffix}"))
        with tempfile.TemporaryDirectory() as work:
            if files:
                convert_files(files, "pdf", Path(work))
            counts[suffix]["libreoffice"] += len(list(Path(work).glob("*.pdf")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("make", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--policy", default="default")
    parser.add_argument("--libreoffice", action="store_true")
    parser.add_argument("--largest", type=int, default=10**9, help="bytes; larger files are left out")
    options = parser.parse_args()
    if options.what == "make":
        write_files(options.folder)
        print(f"{len(list(options.folder.iterdir()))} files in {options.folder}")
        return
    began = time.monotonic()
    counts = run_files(options.folder, options.policy, options.libreoffice, options.largest)
    total = {name: sum(count[name] for count in counts.values()) for name in COUNTS}
    print(f"{'format':8}" + "".join(f"{name:>12}" for name in COUNTS))
    for name, count in [*sorted(counts.items()), ("all", total)]:
        print(f"{name:8}" + "".join(f"{count[key]:12}" for key in COUNTS))
    print(json.dumps({"seconds": round(time.monotonic() - began), "all": total, **counts}))


if __name__ == "__main__":
    main()
