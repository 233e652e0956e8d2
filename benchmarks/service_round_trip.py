"""P5's experiment through the HTTP API of a real server: anonymise, let something rewrite the text, bring it back.

usage: python benchmarks/service_round_trip.py PATH... [--n 2000] [--operators tag,wild_tag,pseudonym]
                                               [--ways plan,scope] [--held-out] [--seed 1] [--threads 4]
                                               [--workers 2] [--cache FILE] [--failures FILE]

Texts, rewriters and what counts as right are those of ``round_trip.py``; see there for PATH. The server is one of its
own, ``allonym serve`` on a free port with a new data folder, asked over HTTP with an API key. Of English texts the
server finds the mentions, of Polish ones they are given as ``spans``.

Each text goes to ``/v1/anonymize`` once per operator and way, is rewritten, and goes to ``/v1/restore``. Way ``plan``:
nothing is kept, the plan with its originals comes back with the text. Way ``scope``: what stands for what is kept in
the vault, under one scope a text, and nothing else is known when originals are brought back.

Prints a line per operator and way, with P5's shares (right: over what the rewriter kept; as P5 counts: all entities are
back, over rewritings that drop nothing), and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.rewriting.first import DROPPING, REWRITERS
from benchmarks.rewriting.further import FURTHER
from benchmarks.rewriting.held_out import HELD_OUT
from benchmarks.rewriting.pieces import join_pieces, split_pieces
from benchmarks.round_trip import (
    LEFT,
    LIKE,
    OWN,
    WRONG,
    Case,
    Job,
    Tally,
    compare_pieces,
    divide,
    draw_rewriters,
    find_family,
    is_complete,
    read_cache,
    read_cases,
    rewrite_pieces,
    write_cache,
)

from allonym.plan import Plan, apply_edits

PASSWORD = "a password for the benchmark"
POLISH = "polish"
GOAL = 0.99


@contextmanager
def run_server(workers: int, *permissions: str) -> Iterator[tuple[str, str]]:
    """The address of a server that runs, and an API key of it with these permissions."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "allonym", "serve", "--data", folder, "--port", "0", "--rate", "0"]
        command += ["--workers", str(workers), "--no-access-log"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            assert server.stdout is not None
            token = url = ""
            for line in server.stdout:
                token = (re.search(r"token=(\S+)", line) or [token, token])[1]
                if found := re.search(r"serving at (\S+)", line):
                    url = found[1]
                    break
            if not url:
                raise SystemExit("the server did not start")
            yield url, _make_key(url, token, permissions)
        finally:
            server.terminate()
            server.wait(30)
            server.stdout.close()


def _make_key(url: str, token: str, permissions: Sequence[str]) -> str:
    """Make the first account, and the Polish policy and a key with it."""
    with httpx.Client(base_url=url, timeout=60) as client:
        for _ in range(120):
            try:
                if client.get("/readyz").status_code == 200:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.5)
        who = {"name": "benchmark", "password": PASSWORD}
        client.post("/v1/setup", json={**who, "token": token}).raise_for_status()
        csrf = client.post("/v1/session", json=who).raise_for_status().json()["csrf"]
        client.headers["X-CSRF-Token"] = csrf
        toml = 'extends = "default"\nlanguage = "pl"\n'
        client.put(f"/v1/policies/{POLISH}", json={"toml": toml}).raise_for_status()
        asked = {"name": "benchmark", "permissions": list(permissions)}
        return str(client.post("/v1/keys", json=asked).raise_for_status().json()["key"])


def run_case(case: Case, operator: str, way: str, job: Job, client: httpx.Client) -> dict[str, Any]:
    """What became of one text: its tally, and how long the two requests took."""
    row: dict[str, Any] = {"id": case.id, "language": case.language, "tally": Tally(texts=1)}
    tally: Tally = row["tally"]
    scope = f"{operator} {case.id}"
    body: dict[str, Any] = {"text": case.text, "originals": True, "policy": {"operators": {"*": operator}}}
    if case.language == "pl":
        body["policy"]["name"] = POLISH
        body["spans"] = [{"start": s.start, "end": s.end, "label": s.label} for s in case.spans]
    if way == "scope":
        body["scope"] = scope
    begun = time.perf_counter()
    answer = client.post("/v1/anonymize", json=body)
    row["anonymize_ms"] = (time.perf_counter() - begun) * 1000
    if answer.status_code != 200:
        tally.failed, row["class"] = 1, f"anonymize {answer.status_code}"
        return row
    made = answer.json()
    plan = Plan.from_dict(made["plan"])
    if apply_edits(case.text, plan.edits) != made["text"]:
        raise SystemExit("a plan that does not make the text it came with")
    row["complete"] = is_complete(case, plan) if case.language == "pl" else bool(plan.edits)
    pieces = split_pieces(case.text, plan, find_family)
    (names,) = draw_rewriters(case, job, pieces)
    row["names"] = names
    after = rewrite_pieces(pieces, names, f"{job.seed}:{case.id}")
    text = join_pieces(after)
    mentions = [piece for piece in after if piece.edit >= 0]
    tally.rewritten = sum(piece.text != piece.made for piece in mentions)
    begun = time.perf_counter()
    back = client.post(
        "/v1/restore", json={"text": text, **({"scope": scope} if way == "scope" else {"plan": made["plan"]})}
    )
    row["restore_ms"] = (time.perf_counter() - begun) * 1000
    if back.status_code != 200:
        tally.failed, row["class"] = 1, f"restore {back.status_code}"
        return row
    found = compare_pieces(after, back.json()["text"])
    worst = max(found, default=OWN) if found is not None else None
    tally.mentions.update(found if found is not None else [WRONG] * len(mentions))
    tally.right = int(worst is not None and worst <= LIKE)
    tally.left, tally.wrong, tally.corrupted = worst == LEFT, worst == WRONG, worst is None
    known = {piece.entity for piece, outcome in zip(mentions, found or (), strict=False) if outcome in (OWN, LIKE)}
    tally.entities_back = int(bool(tally.right) and known >= {piece.entity for piece in pieces if piece.edit >= 0})
    row["class"] = "corrupted" if worst is None else ("right", "right", "left", "wrong")[worst]
    if row["class"] != "right":
        row["rewritten"], row["restored"] = text, back.json()["text"]
        row["wanted"] = "".join(piece.own or piece.text for piece in after)
    return row


def compute_figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The shares of one operator and way."""
    total, keeping = Tally(), Tally()
    for row in rows:
        total.add(row["tally"])
        if not DROPPING.intersection(row.get("names", ())):
            keeping.add(row["tally"])
    by_language = {}
    for language in sorted({row["language"] for row in rows}):
        some = [row["tally"] for row in rows if row["language"] == language]
        by_language[language] = divide(sum(tally.right for tally in some), len(some))
    return {
        "complete": divide(sum(bool(row.get("complete")) for row in rows), len(rows)),
        "as_p5": divide(keeping.entities_back, keeping.texts),
        **total.figures(),
        "right_by_language": by_language,
        "anonymize_ms_p50": round(median(row["anonymize_ms"] for row in rows), 1),
        "restore_ms_p50": round(median(row["restore_ms"] for row in rows if "restore_ms" in row), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--n", type=int, default=2_000)
    parser.add_argument("--operators", default="tag,wild_tag,pseudonym")
    parser.add_argument("--ways", default="plan,scope")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--failures", type=Path)
    args = parser.parse_args()
    operators, ways = tuple(args.operators.split(",")), tuple(args.ways.split(","))
    if args.cache is not None and args.cache.exists():
        texts = read_cache(args.cache)[: args.n]
    elif args.paths:
        texts = read_cases(args.paths, args.n, args.workers)
        if args.cache is not None:
            write_cache(args.cache, texts)
    else:
        parser.error("PATH is required where --cache names no file that is there")
    pool = tuple(HELD_OUT if args.held_out else {**REWRITERS, **FURTHER})
    job = Job(operators, pool, args.seed, False, args.held_out, False)
    out: dict[str, Any] = {}
    bad: list[dict[str, Any]] = []
    print(f"{len(texts)} texts, {sum(c.language == 'pl' for c in texts)} Polish; P5 reported 93.23 %, decoding 98.58 %")
    print(
        f"{'operator':10}{'way':>7}{'right':>9}{'as P5':>9}{'mentions':>10}{'back':>9}{'left':>6}{'wrong':>6}", end=""
    )
    print(f"{'corrupted':>10}{'failed':>7}{'anonymise':>11}{'restore':>9}")
    with run_server(args.workers, "anonymize", "restore") as (url, key):
        headers = {"Authorization": f"Bearer {key}"}
        with (
            httpx.Client(base_url=url, headers=headers, timeout=120) as client,
            ThreadPoolExecutor(args.threads) as threads,
        ):
            for operator in operators:
                for way in ways:
                    ask = partial(run_case, operator=operator, way=way, job=job, client=client)
                    rows = list(threads.map(ask, texts))
                    got = out[f"{operator} {way}"] = compute_figures(rows)
                    bad += [{"operator": operator, "way": way, **r} for r in rows if r["class"] != "right"]
                    print(f"{operator:10}{way:>7}{got['right']:9.2%}{got['as_p5']:9.2%}{got['mentions']:10}", end="")
                    print(f"{got['restored']:9.2%}{got['texts_left']:6}{got['texts_wrong']:6}", end="")
                    print(f"{got['texts_corrupted']:10}{got['texts_failed']:7}", end="")
                    print(f"{got['anonymize_ms_p50']:8.1f} ms{got['restore_ms_p50']:6.1f} ms", flush=True)
    if args.failures is not None:
        kept = [{k: v for k, v in row.items() if k != "tally"} for row in bad]
        args.failures.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in kept), "utf-8")
    print("classes of what is not right:", dict(Counter(f"{r['operator']} {r['way']} {r['class']}" for r in bad)))
    head = {"benchmark": "service_round_trip", "texts": len(texts), "seed": args.seed, "held_out": args.held_out}
    met = {name: got["right"] >= GOAL for name, got in out.items()}
    print(json.dumps({**head, "goal": GOAL, "met": met, **out}))


if __name__ == "__main__":
    main()
