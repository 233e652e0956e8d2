"""The texts that ``panel.py`` measures, and every way of anonymising them, made or taken from a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from masking import compute_share_gone, list_content_words, mask_at_random, mask_until_unattributed, mask_words
from peers import PEERS, restore_edited
from readers import read_marked_texts

import allonym
from allonym.evaluate.hardening import harden
from allonym.train.corpus import assign_train_dev_test
from allonym.train.records import read_json_lines

KEY = b"a key only for this benchmark, 32"
MARKS = Path(__file__).parent / "gold" / "textwash_50.jsonl"
PETRE, RANDOM = "masked like PETRE", "masked at random like "
OURS = ("default", "textwash", "hardened", "pseudonyms")
VERSIONS = (
    *("original", "Textwash", *OURS),
    *(name for name in PEERS if name not in OURS),
    *(PETRE, RANDOM + "default", RANDOM + "hardened"),
)
DESCRIPTIONS, READERS = "descriptions", "marked texts"

Row = dict[str, Any]


class MarkedText(NamedTuple):
    """A text in which places are marked.

    Attributes:
        id: of the text; text: itself.
        places: half-open code points and the label of what must be covered.
        optional: what may be covered or not.
    """

    id: str
    text: str
    places: Sequence[tuple[int, int, str]]
    optional: Sequence[tuple[int, int]] = ()


class Texts(NamedTuple):
    """What is measured.

    Attributes:
        records: the descriptions that the intruders judge.
        others: the marked descriptions that are not among them.
        marked: name of a set to its texts.
    """

    records: list[Row]
    others: list[Row]
    marked: dict[str, list[MarkedText]]

    def list_all(self) -> dict[str, str]:
        """Every text by its id."""
        texts = {record["id"]: record["text"] for record in self.records}
        return texts | {text.id: text.text for rows in self.marked.values() for text in rows}


class Version(NamedTuple):
    """One way of anonymising the texts.

    Attributes:
        head: what ``peers.py`` tells about the run, as far as there was one.
        rows: id of a text to its output, as ``peers.py`` writes them.
    """

    head: Row
    rows: dict[str, Row]


class Absent(Exception):
    """A version cannot be made; the message says what is missing."""


def read_texts(path: Path, every: int, gold: Sequence[Path], most: int) -> Texts:
    """Read every set; raises SystemExit where a description is another one than was marked."""
    records = [record for _, record in read_json_lines(path)]
    by_id = {record["id"]: record for record in records}
    sample = records[::every]
    marked: dict[str, list[MarkedText]] = {DESCRIPTIONS: [], READERS: []}
    for _, row in read_json_lines(MARKS):
        text = by_id[row["id"]]["text"] if row["id"] in by_id else ""
        if sha256(text.encode()).hexdigest() != row["sha256"]:
            raise SystemExit(f"{path}: {row['id']} is another text than the one that was marked")
        marked[DESCRIPTIONS].append(MarkedText(row["id"], text, [(a, b, label) for a, b, label in row["spans"]]))
    for one in read_marked_texts():
        places = [(p.start, p.end, "identifying") for p in one.places if p.referent]
        optional = [(p.start, p.end) for p in one.places if not p.referent]
        marked[READERS].append(MarkedText(f"readers-{one.id}", one.text, places, optional))
    for file in gold:
        rows = [row for _, row in read_json_lines(file)]
        parts = assign_train_dev_test(rows)
        unseen = [row for i, row in enumerate(rows) if parts[str(row.get("id", i))] != "train" and row["text"]]
        marked[file.name.partition(".")[0]] = [
            MarkedText(row["id"], row["text"], [(s["start"], s["end"], s["label"]) for s in row["spans"]])
            for row in unseen[:: -(-len(unseen) // most)]
        ]
    judged = {record["id"] for record in sample}
    others = [by_id[text.id] for text in marked[DESCRIPTIONS] if text.id not in judged]
    return Texts(sample, others, marked)


def load_version(name: str, texts: Texts, folder: Path, interpreters: Mapping[str, str]) -> Version:
    """Take a version from the folder where it was kept for the same texts; else make and keep it.

    Args:
        name: one of :data:`VERSIONS`.
        texts: what is anonymised.
        folder: where the outputs are kept, one file for each version.
        interpreters: name of an environment of ``peers.py`` to its interpreter.

    Raises:
        Absent: the tool is not there, or failed.
    """
    path = folder / ("".join(c if c.isalnum() else "-" for c in name) + ".jsonl")
    digest = sha256(json.dumps(texts.list_all()).encode()).hexdigest()[:16]
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            head = json.loads(next(lines))
            if head["texts"] == digest:
                return Version(head, {row["id"]: row for row in map(json.loads, lines)})
    if name in PEERS:
        head, *rows = _run_peer(name, texts, interpreters)
    else:
        began = time.process_time()
        rows = _make_rows(name, texts, lambda other: load_version(other, texts, folder, interpreters))
        seconds = time.process_time() - began
        is_work = name in ("hardened", PETRE)
        head = {"characters": sum(len(r["text"]) for r in texts.records), "processor_s": seconds if is_work else None}
    head = {"texts": digest, **head}
    draft = path.with_suffix(".part")
    draft.write_text("".join(json.dumps(row) + "\n" for row in (head, *rows)), encoding="utf-8")
    draft.replace(path)
    return Version(head, {row["id"]: row for row in rows})


def _run_peer(name: str, texts: Texts, interpreters: Mapping[str, str]) -> list[Row]:
    peer = PEERS[name]
    python = interpreters.get(peer.environment, "") if peer.environment else sys.executable
    if not python:
        raise Absent(f"pip install {peer.packages}, then --peer {peer.environment}=PYTHON")
    restored = {text.id for name in (DESCRIPTIONS, READERS) for text in texts.marked[name]}
    asked = [{"id": i, "text": text, "restore": i in restored} for i, text in texts.list_all().items()]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if peer.environment:
        environment.pop("PYTHONPATH", None)
    run = subprocess.run(
        [python, str(Path(__file__).with_name("peers.py")), name],
        input="".join(json.dumps(row) + "\n" for row in asked),
        capture_output=True,
        text=True,
        env=environment,
    )
    if run.returncode:
        raise Absent(f"it failed: {(run.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def _make_rows(name: str, texts: Texts, load: Callable[[str], Version]) -> list[Row]:
    if name == "original":
        return [{"id": i, "text": text, "spans": []} for i, text in texts.list_all().items()]
    if name == "Textwash":
        rows = []
        for record in (*texts.records, *texts.others):
            spans = [(span["start"], span["end"]) for span in record["textwash_spans"]]
            rows.append({"id": record["id"], "text": record["textwash_anonymised"], "spans": spans})
        return rows
    original = [record["text"] for record in texts.records]
    subjects, groups = ([r["meta"][key] for r in texts.records] for key in ("subject", "category"))
    if name == "hardened":
        return _harden_texts(texts, original, subjects, groups)
    if name == PETRE:
        spans = mask_until_unattributed(original, subjects, groups)
    else:
        like = load(name.removeprefix(RANDOM)).rows
        contents = [list_content_words(text) for text in original]
        shares = [
            compute_share_gone(record["text"], words, like[record["id"]]["text"])
            for record, words in zip(texts.records, contents, strict=True)
        ]
        spans = mask_at_random(contents, shares)
    return [
        {"id": record["id"], "text": mask_words(record["text"], places), "spans": places}
        for record, places in zip(texts.records, spans, strict=True)
    ]


def _harden_texts(texts: Texts, original: list[str], subjects: list[str], groups: list[str]) -> list[Row]:
    outputs = list(allonym.anonymize_many(original, policy="textwash", key=KEY))
    first = [output.text for output in outputs]
    result = harden(original, first, subjects, groups=groups, plans=[output.plan for output in outputs])
    rows: list[Row] = []
    for record, text in zip(texts.records, result.texts, strict=True):
        row = {"id": record["id"], "text": text.text, "spans": text.plan.covered_intervals}
        if len(rows) < len(texts.marked[DESCRIPTIONS]):
            row["restored"] = restore_edited(text.text, lambda t, plan=text.plan: allonym.restore(t, plan=plan).text)
        rows.append(row)
    return rows
