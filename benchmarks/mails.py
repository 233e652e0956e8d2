"""Mails: how many are treated, parse with all their headers, and give away none of the listed originals.

usage: python benchmarks/mails.py [FILE.eml...] [--original TEXT]...

Without FILEs: the mails of tests/mails.py and the originals there. Prints which fall short, counts and, last, JSON.

treated   not refused
parsed    Python's parser finds no defect in parts and headers that it did not find before
headers   every header is there but signatures and digests, which are left out on purpose
left      an original can be read in a header or a part, with Office files unpacked
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.files import read_texts
from tests.mails import ORIGINALS, list_mails

from allonym.errors import AllonymError
from allonym.files import anonymize_path
from allonym.files.mailheaders import SEALS


def list_texts(mail: Any) -> Iterator[str]:
    """Yield all that can be read in a mail."""
    for part in mail.walk():
        yield from (f"{name}: {value}" for name, value in part.items())
        data = part.get_payload(decode=True) or b""
        yield read_texts(data, (part.get_filename() or "").rpartition(".")[2])
        yield from (data.decode(charset, "ignore") for charset in ("latin-1", "utf-16", "koi8-r"))


def list_defects(mail: Any) -> Counter[str]:
    return Counter(type(d).__name__ for part in mail.walk() for thing in (part, *part.values()) for d in thing.defects)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE.eml")
    parser.add_argument("--original", action="append", metavar="TEXT")
    options = parser.parse_args()
    mails = [(path.name, path.read_bytes()) for path in options.files] or list(list_mails())
    originals = options.original or (() if options.files else ORIGINALS)
    counts = Counter(mails=len(mails))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.eml"), Path(folder, "b.eml")
        for name, data in mails:
            source.write_bytes(data)
            try:
                anonymize_path(source, target, "default", overwrite=True)
            except AllonymError as error:
                print(f"  refused: {name}: {error}")
                continue
            before, after = (message_from_bytes(p.read_bytes(), policy=policy.default) for p in (source, target))
            defects = list_defects(after) - list_defects(before)
            lost = {key for key in map(str.lower, before) if not SEALS.fullmatch(key)} - set(map(str.lower, after))
            texts = "\n".join(list_texts(after))
            left = [original for original in originals if original in texts]
            counts += Counter(treated=1, parsed=not defects, headers=not lost, left=bool(left))
            if defects or lost or left:
                print(f"  {name}: defects {list(defects)}, headers lost {sorted(lost)}, left {left}")
    figures = {what: counts[what] for what in ("mails", "treated", "parsed", "headers", "left")}
    print(", ".join(f"{what} {count}" for what, count in figures.items()))
    print(json.dumps({"benchmark": "mails", **figures}))


if __name__ == "__main__":
    main()
