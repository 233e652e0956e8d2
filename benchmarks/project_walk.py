"""From 20 files (DOCX, CSV, TXT, PDF) to a verified release, by command line alone: steps, seconds, originals left.

    python benchmarks/project_walk.py [FOLDER]

Two walks of the same files: alone (``--unreviewed``), and with two reviewers who fill in sheets, one of whom marks what
was missed, and somebody who decides. Every command is a process of its own. Afterwards the outputs are opened by other
readers (python-docx, pdfminer), each planted original is looked for in them and in every byte of the folder,
and the release is verified. FOLDER keeps everything; by default a temporary folder is used.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

PEOPLE = (
    *("Margaret Whitcombe", "Tobias Okonjo", "Priya Ramanathan", "Elias Bergström", "Noor Haddad"),
    *("Callum Fraser", "Ingrid Sørensen", "Mateo Villalba", "Hannah Goldfarb", "Yusuf Demir"),
)
TOWNS = ("Ashbourne", "Hexham", "Kirkwall", "Ludlow", "Whitby")
RARE = "I am the only blind piano tuner in the county, so they know me."


def make_letter(number: int) -> str:
    """Return a letter of three paragraphs about two people."""
    first, second = PEOPLE[number % 10], PEOPLE[(number + 3) % 10]
    mail = first.lower().replace(" ", ".").encode("ascii", "ignore").decode()
    return (
        f"Dear {first},\n\nthank you for talking to us in {TOWNS[number % 5]} on 12 March 2024. {second} told us that "
        f"{first.split()[0]} has lived there since 1987.\n\nPlease write to {mail}@example.org or call "
        f"+44 7700 900{number:03}. {RARE if number % 5 == 0 else 'The weather was fine.'}\n\nYours, {second}\n"
    )


def make_table(number: int) -> str:
    """Return a table of complaints."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["id", "name", "complaint"])
    for row in range(4):
        name = PEOPLE[(number + row) % 10]
        text = RARE if row == 3 else f"{name.split()[0]} waited for two hours, and nobody came."
        writer.writerow([f"{number}-{row}", name, text])
    return out.getvalue()


def make_files(folder: Path) -> None:
    """Write the 20 files."""
    from docx import Document
    from reportlab.pdfgen.canvas import Canvas

    folder.mkdir(parents=True)
    for number in range(5):
        document = Document()
        for paragraph in make_letter(number).split("\n\n"):
            document.add_paragraph(paragraph)
        document.save(str(folder / f"interview {PEOPLE[number]}.docx"))
        (folder / f"complaints-{number}.csv").write_text(make_table(number), encoding="utf-8")
        (folder / f"note {PEOPLE[number + 5]}.txt").write_text(make_letter(number + 5), encoding="utf-8")
        canvas = Canvas(str(folder / f"letter-{number}.pdf"), invariant=1)
        for line, text in enumerate(make_letter(number + 10).replace(". ", ".\n").splitlines()):
            canvas.drawString(72, 760 - 18 * line, text.encode("latin-1", "replace").decode("latin-1"))
        canvas.save()


class Walk:
    """Runs commands, and keeps the seconds of each step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[tuple[str, float]] = []

    def run(self, title: str, *args: str, expected: int = 0) -> str:
        """Run ``allonym project`` and return what it printed."""
        began = time.monotonic()
        env = {**os.environ, "NO_COLOR": "1"}
        command = [sys.executable, "-m", "allonym", "project", *args]
        result = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=False)
        self.steps.append((title, time.monotonic() - began))
        if result.returncode != expected:
            raise SystemExit(f"{title}: exit code {result.returncode}\n{result.stderr}")
        return result.stdout + result.stderr


def fill_sheet(path: Path, *, is_thorough: bool) -> None:
    """Fill in a sheet: ok everywhere; a thorough reader also marks what was missed."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        row["verdict"] = "ok"
        if is_thorough and row["row"] == "passage" and "only blind" in row["text"]:
            row["missed"] = "the only blind=OTHER_IDENTIFYING_ATTRIBUTE"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def read_release(path: Path) -> dict[str, str]:
    """Return the texts of a release's documents, by other readers than those that wrote them."""
    from docx import Document
    from pdfminer.high_level import extract_text

    texts = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = io.BytesIO(archive.read(name))
            if name.endswith(".docx"):
                texts[name] = "\n".join(p.text for p in Document(data).paragraphs)
            elif name.endswith(".pdf"):
                texts[name] = extract_text(data)
            elif name.endswith((".csv", ".txt")):
                texts[name] = data.read().decode("utf-8")
    return texts


def find_originals(texts: dict[str, str]) -> list[str]:
    """Return the names of documents in which a word of a planted name is left."""
    words = {word for person in PEOPLE for word in person.split()}
    return sorted(name for name, text in texts.items() if any(word in text for word in words))


def find_in_folder(folder: Path) -> list[str]:
    """Return the files of a project, but for its releases, whose bytes or names hold a planted name."""
    words = [word.encode() for person in PEOPLE for word in person.split() if len(word) > 4]
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and "releases" not in path.parts
        and any(word in path.read_bytes() or word in str(path.relative_to(folder)).encode() for word in words)
    ]


def walk(folder: Path, *, with_reviewers: bool) -> dict[str, Any]:
    """Lead the study once, print its steps, and return what was measured."""
    steps, name = Walk(folder), "reviewed" if with_reviewers else "alone"
    secret = ("--secret-file", f"{name}.key")
    steps.run("init", "init", name, "--new-secret-file", f"{name}.key")
    steps.run("add 20 files", "add", name, "files", *secret)
    steps.run("status", "status", name, *secret)
    steps.run("findings", "findings", name, "--label", "PERSON", *secret)
    steps.run("correct once", "correct", name, "piano tuner", "--always", "OCCUPATION", *secret)
    agreement = None
    if with_reviewers:
        for reader in ("ann", "ben"):
            sheet = f"{reader}.csv"
            steps.run(f"sheet of {reader}", "review", name, "--export", sheet, "--reviewer", reader, *secret)
            fill_sheet(folder / sheet, is_thorough=reader == "ann")
            steps.run(f"read {sheet}", "review", name, "--import", sheet, "--reviewer", reader, *secret)
        steps.run("verdict sheet", "review", name, "--export", "v.csv", "--reviewer", "rita", "--verdict", *secret)
        fill_sheet(folder / "v.csv", is_thorough=False)
        steps.run("read v.csv", "review", name, "--import", "v.csv", "--reviewer", "rita", "--verdict", *secret)
        agreement = json.loads(steps.run("agreement", "review", name, "--json", *secret))["agreement"]
    else:
        steps.run("release refused", "release", name, *secret, expected=2)
    options = () if with_reviewers else ("--unreviewed",)
    written = json.loads(steps.run("release", "release", name, f"{name}.zip", "--json", *options, *secret))
    steps.run("verify", "verify", f"{name}.zip", "--public-key", written["public_key"])
    texts = read_release(folder / f"{name}.zip")
    for title, seconds in steps.steps:
        print(f"{name:<10}{title:<18}{seconds:>7.1f} s")
    return {
        "commands": len(steps.steps),
        "seconds": round(sum(seconds for _, seconds in steps.steps), 1),
        "files": written["files"],
        "settled": written["reviewed"],
        "documents": written["documents"],
        "files_with_originals": find_originals(texts),
        "rare_facts_left": sum(text.count("only blind") for text in texts.values()),
        "state_with_originals": find_in_folder(folder / name),
        "kappa": agreement and agreement["spans"]["kappa"]["value"],
        "words_unseen": agreement and agreement["words"]["by_nobody"] + agreement["words"]["by_one"],
    }


def main() -> None:
    """Make the files, walk twice, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="new folder that keeps everything")
    folder = parser.parse_args().folder
    with tempfile.TemporaryDirectory() as scratch:
        place = folder or Path(scratch) / "walk"
        make_files(place / "files")
        results = {name: walk(place, with_reviewers=name == "reviewed") for name in ("alone", "reviewed")}
        print(json.dumps(results))


if __name__ == "__main__":
    main()
