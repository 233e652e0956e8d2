"""Lists of terms that a policy finds in every document, or leaves alone; and the files they come from."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from allonym.errors import PolicyError


@dataclass(frozen=True, slots=True, repr=False)
class TermList:
    """Names to find or to leave alone. Its ``repr`` shows the count only: the names may be real."""

    label: str
    terms: tuple[str, ...]

    def __repr__(self) -> str:
        return f"TermList({self.label!r}, {len(self.terms)} terms)"


def read_terms(path: Path, column: str | None = None) -> tuple[str, ...]:
    """Terms from a text file (one a line) or a CSV file's column (by default the first).

    Raises:
        PolicyError: the file cannot be read, or has no such column.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise PolicyError(f"cannot read term list {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise PolicyError(f"cannot read term list {path}: it is not UTF-8") from None
    if path.suffix.lower() not in (".csv", ".tsv"):
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    names = reader.fieldnames or []
    chosen = column or (names[0] if names else "")
    if chosen not in names:
        raise PolicyError(f"{path} has no column {chosen!r}; it has: {', '.join(names)}")
    return tuple(row[chosen].strip() for row in reader if row[chosen] and row[chosen].strip())
