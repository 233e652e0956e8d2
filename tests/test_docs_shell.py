"""The shell examples of the documentation run, line by line, in a folder with the files that they name."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from tests.test_docs import ROOT, WRITTEN, blocks, page_id

pytestmark = pytest.mark.slow

SHELL = """
set -euo pipefail
allonym() {
  if [ "$1" = swap ]; then set -- "$@" --embedder lsa; fi  # in seconds, where the encoder takes minutes
  "$PYTHON" -m allonym "$@"
}
mkdir -p calls interviews
printf 'Pam: This is Pam Quill. Mail pam@example.com\\nJim: Hello Pam.\\n' > calls/one.txt
cp calls/one.txt interviews/one.txt
cp calls/one.txt letter.txt
printf 'id,review\\n1,"Mail ada@example.com"\\n2,Nothing\\n' > reviews.csv
printf '{"text": "Mail ada@example.com"}\\n' > big.jsonl
printf 'Ada Brook\\n' > names.txt
printf 'An answer.\\n' | tee answer.txt > summary.txt
printf 'a key for the tests only, 32 byte' > secret.key
printf 'extends = "default"\\n[default]\\noperator = "encrypt"\\n' > encrypting.toml
printf 'extends = "default"\\n' > mine.toml
mkdir letters
"$PYTHON" - <<END
import csv, json, pathlib
from importlib.resources import files
with open("companies.csv", "w", newline="") as table:
    rows = csv.writer(table)
    rows.writerow(["file", "company", "ticker", "executives", "sector"])
    calls = (files("allonym") / "examples" / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    for call in map(json.loads, calls[:2] + calls[4:6]):  # two of either sector
        pathlib.Path("letters", call["id"] + ".txt").write_text(call["text"], encoding="utf-8")
        rows.writerow(
            [call["id"] + ".txt", call["company"], call["ticker"], "; ".join(call["executives"]), call["industry"]]
        )
END
"""
WITH_SHELL = [page for page in WRITTEN if any(kind == "sh" and "allonym " in text for kind, text in blocks(page))]


@pytest.mark.parametrize("page", WITH_SHELL, ids=page_id)
def test_shell_blocks_run(page, tmp_path):
    lines = [
        line for kind, text in blocks(page) if kind == "sh" for line in text.splitlines() if "pip install" not in line
    ]
    fresh = "rm -rf safe safe.csv safe.jsonl letter-safe.txt big-safe.jsonl plans.jsonl report.html; "
    writes = re.compile(r"allonym (?:anonymize|swap) ")
    script = SHELL + "\n".join(fresh + line if writes.match(line) else line for line in lines)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={
            "PYTHONPATH": str(ROOT / "src"),
            "PATH": "/usr/bin:/bin",
            "PYTHON": sys.executable,
            "OMP_NUM_THREADS": "1",
        },
    )
    assert done.returncode == 0, done.stderr
