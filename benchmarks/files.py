"""Files in all formats: how many are treated, open again, keep their cells, and give no original away.

usage: python benchmarks/files.py make FOLDER           writes 170 files, in five languages
       python benchmarks/files.py run FOLDER [--libreoffice] [--policy default] [--largest N]

``run`` anonymises these, or other files in FOLDER, one by one, keeps the results in FOLDER-safe, and prints for each
format: files, encrypted ones (which are refused), damaged ones (which the library of the format does not open either,
before or afterwards), treated, opened by that library (and by LibreOffice), header, number and formula cells of
workbooks that are the same, originals that a plan covered and that can still be read (left), planted ones that no plan
covered (missed), and seconds per MB and per page of PDFs and pictures. In files that others made nothing is planted,
and the first row of texts that has numbers or dates below it is the header. The last line is JSON, with the peak
memory.
"""

from __future__ import annotations

import argparse
import csv
import html
import io
import json
import re
import resource
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
COUNTS = ("files", "encrypted", "damaged", "treated", "opened", "libreoffice", "cells", "cells_same", "left", "missed")
SIZES = ("seconds", "bytes", "pages")


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
        assert ("From" not in mail or mail["From"].addresses) and all(part.items() for part in mail.walk() if len(part))
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


def can_open(path: Path) -> bool:
    """Tell whether a library of the format opens a file."""
    try:
        open_file(path)
    except Exception:
        return False
    return True


def count_pages(path: Path) -> int:
    """Return the number of pages of a PDF or a picture; 0 of other files, which have no fixed ones."""
    if path.suffix == ".pdf":
        import pypdfium2

        return len(pypdfium2.PdfDocument(path))
    return int(path.suffix in (".png", ".jpg", ".jpeg"))


def read_cells(path: Path) -> tuple[list[str], dict[tuple[int, int, int], Any]]:
    """Return the names of the sheets, and the cells of a workbook by sheet, row and column."""
    import openpyxl

    book = openpyxl.load_workbook(path)
    cells = {(n, c.row, c.column): c.value for n, s in enumerate(book.worksheets) for row in s.iter_rows() for c in row}
    shown = {place: getattr(value, "text", value) for place, value in cells.items()}  # an array's formula
    return book.sheetnames, {place: value for place, value in shown.items() if value is not None}


def find_headers(cells: dict[tuple[int, int, int], Any]) -> dict[int, int]:
    """Return the row of the header of each sheet that has one: the first of texts with numbers or dates below one."""
    rows: dict[tuple[int, int], dict[int, Any]] = defaultdict(dict)
    columns: dict[tuple[int, int], list[tuple[int, Any]]] = defaultdict(list)
    for (sheet, row, column), value in sorted(cells.items()):
        rows[sheet, row][column] = value
        columns[sheet, column].append((row, value))
    headers: dict[int, int] = {}
    for (sheet, row), values in sorted(rows.items()):
        if len(values) < 2 or sheet in headers or not all(isinstance(v, str) and v[:1] != "=" for v in values.values()):
            continue
        below = [[v for r, v in columns[sheet, column] if r > row] for column in values]
        if any(len(vs) > 1 and not any(isinstance(v, str) for v in vs) for vs in below):
            headers[sheet] = row
    return headers


def count_same_cells(before: Path, after: Path, is_known: bool) -> tuple[int, int]:
    """Return how many header, number and formula cells there are, and how many of them are the same afterwards.

    ``is_known``: the workbook is one of ours, whose headers are known.
    """
    old_names, old = read_cells(before)
    new_names, new = read_cells(after)
    headers = {0: 1, 1: 1, 3: 1} if is_known else find_headers(old)
    total = same = 0
    for (sheet, row, column), value in old.items():
        if not (row == headers.get(sheet) or isinstance(value, (int, float)) or str(value).startswith("=")):
            continue
        total += 1
        for a, b in zip(old_names, new_names, strict=True) if isinstance(value, str) else ():
            value = value.replace(f"'{a}'!", f"'{b}'!").replace(f"{a}!", f"'{b}'!" if a != b else f"{a}!")
        is_same = new.get((sheet, row, column)) == value
        same += is_same
        if not is_same and not is_known:
            kind = "header" if row == headers.get(sheet) else "cell"
            print(f"  {kind} changed: {before.name}: sheet {sheet + 1}, row {row}, column {column}")
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


def run_files(folder: Path, policy: str, with_libreoffice: bool, largest: int) -> dict[str, dict[str, Any]]:
    safe = folder.with_name(f"{folder.name}-safe")
    words = {w.language: w for w in read_words()}
    counts: dict[str, dict[str, Any]] = defaultdict(lambda: dict.fromkeys((*COUNTS, *SIZES), 0))
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size <= largest):
        count = counts[path.suffix[1:].lower()]
        count["files"] += 1
        target = safe / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as work:
            plans = Path(work, "plans.jsonl")
            began = time.monotonic()
            try:
                report = anonymize_path(path, target, policy, plans=plans, originals=True, overwrite=True)
            except Exception as error:
                is_refused = isinstance(error, AllonymError)
                is_encrypted = is_refused and _ENCRYPTED.search(str(error)) is not None
                is_damaged = is_refused and not is_encrypted and not can_open(path)
                count["encrypted"] += is_encrypted
                count["damaged"] += is_damaged
                outcome = "refused" if is_refused else "crashed"
                print(f"  {outcome}{', damaged' if is_damaged else ''}: {path.name}: {error}")
                target.unlink(missing_ok=True)
                continue
            if report.quarantined:
                print(f"  partly: {path.name}: {report.quarantined} left out")
                continue
            covered = _read_covered(plans)
        count["treated"] += 1
        count["seconds"] += time.monotonic() - began
        count["bytes"] += path.stat().st_size
        count["pages"] += count_pages(path)
        try:
            open_file(target)
            count["opened"] += 1
        except Exception as error:
            is_damaged = not can_open(path)
            count["damaged"] += is_damaged
            count["treated"] -= is_damaged
            print(f"  not opened{', damaged' if is_damaged else ''}: {path.name}: {type(error).__name__}: {error}")
            continue
        is_known = path.name[:2] in words and path.name[2:3] == "-"
        if path.suffix in (".xlsx", ".xlsm"):
            total, same = count_same_cells(path, target, is_known)
            count["cells"] += total
            count["cells_same"] += same
        if is_known:
            text = read_texts(target.read_bytes(), path.suffix[1:])
            _count_originals(count, text, covered, words[path.name[:2]], path.name)
    if with_libreoffice:
        _count_opened_by_libreoffice(safe, counts)
    return dict(counts)


def _read_covered(plans: Path) -> str:
    rows = map(json.loads, plans.read_text(encoding="utf-8").splitlines()) if plans.exists() else ()
    return "\n".join(str(edit.get("original")) for row in rows for edit in row.get("plan", row)["edits"])


def _count_originals(count: dict[str, Any], text: str, covered: str, words: Words, name: str) -> None:
    for secret in words.secrets:
        if re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", text):
            outcome = "left" if secret in covered else "missed"
            count[outcome] += 1
            print(f"  {outcome}: {name}: {secret}")


def _count_opened_by_libreoffice(safe: Path, counts: dict[str, dict[str, Any]]) -> None:
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
    counts["all"] = {name: sum(count[name] for count in counts.values()) for name in (*COUNTS, *SIZES)}
    counts["all"]["pages"] = 0  # of a few formats only
    print(f"{'format':8}" + "".join(f"{name:>12}" for name in (*COUNTS, "s/MB", "s/page")))
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        count["seconds"] = round(count["seconds"], 2)
        per_mb = count["seconds"] / max(count["bytes"] / 1e6, 1e-9)
        per_page = f"{count['seconds'] / count['pages']:.2f}" if count["pages"] else ""
        print(f"{name:8}" + "".join(f"{count[key]:12}" for key in COUNTS) + f"{per_mb:12.2f}{per_page:>12}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": round(time.monotonic() - began), "peak_mb": peak, **counts}))


if __name__ == "__main__":
    main()
