"""Whether restoring can be trusted: exact where nobody changed the text, and silent where nothing was replaced.

usage: python benchmarks/restore_trust.py [PATH...] [--letters 300] [--real 200] [--unrelated 2000] [--documents 100]
                                          [--policies reversible,wild-tags,pseudonyms] [--cache FILE] [--failures FILE]

Each PATH is JSONL (field text), also compressed. Letters are made here, about people who meet again in other letters.
``--real`` texts are taken from the PATHs, as many from each; texts of a line or two are joined to 400 characters.

1. *Untouched*: all letters and real texts are anonymised into one scope of one vault, and restored from that vault
   alone. A text counts where it comes back byte for byte.
2. *Edited*: a line is added to each text, another is taken out, and the sentences of a third change places. A text
   counts where all that was kept is as it was; what differs is counted as left (a replacement) or wrong.
3. *Unrelated*: texts that nobody anonymised (the source of Python's library, this repository's documentation, texts
   of the PATHs) are restored with the plan of one letter, another for each text, and from a vault with the first
   ``--documents`` letters. A text counts that is not as it was. Texts that show numbered tags, such as pages about
   them, are counted apart: nothing tells them from an output.

``--cache`` keeps the findings of a run for the next. ``--failures`` writes what went wrong, with texts. Prints a table
and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import json
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from allonym.document import Document, Span
from allonym.pipeline import detect, replace_found
from allonym.plan import Anonymized, digest
from allonym.policy import Policy
from allonym.restoration import restore
from allonym.text.placeholders import find_placeholders
from allonym.vault import Vault

SECRET = b"benchmark of trust in restoring!"
SCOPE = "trust"
LEAST, MOST = 400, 2000
ROOT = Path(__file__).resolve().parents[1]

GIVEN = """Ada Ben Carla Dov Elin Farid Greta Hugo Ines Jonas Katya Luis Mara Nils Olga Pavel Rosa Stefan Tessa
Umar Vera Will Xenia Yusuf Zofia Agnes Boris Chloe Dmitri Esther Frank Gloria Henrik Irena Jakub
Kirsten Leon Marek Nadia Oscar Petra Quentin Renata Sven Tomas Ursula Viktor Wanda Yann Zita Rose
Mark Grace Lance Hope""".split()
FAMILY = """Abbot Baxter Castellan Dorland Eriksen Farrow Grabowski Holm Ibarra Jansen Kabus Lindqvist Moreau Nowak
Okafor Pietrzak Quint Rademacher Santini Thorne Underhill Vogel Wexford Yildiz Zeller Ashdown Bielski Corran Duarte
Ellery Fontana Gerber Hartwig Isaksen Jurek Klein Lorenz Marchetti Novotny Osgood Prentice Rutkowski Sandoval Tanaka
Urban Varga Weller Young Zimmer Baker King Stone Brook Wood""".split()
CITIES = """Hamburg Leeds Lyon Porto Gdynia Malmö Essen Reading Bath Nice Leipzig Bergen Ghent Turin Kraków Utrecht
Seville Bologna Aarhus Halle Graz Cork Dundee Bristol Norwich Rennes Lille Siena Parma Toruń""".split()
COMPANIES = """Harrow & Dale Ltd|Northgate Insurance|Meridian Foods plc|Kestrel Bank|Weller Brothers GmbH|Blue Ridge
Logistics|Hallam University|St Anne's Hospital|Orchard Housing Association|Tidewater Shipping AS""".replace("\n", " ")
JOBS = "welder nurse teacher midwife plumber librarian surveyor baker cook joiner".split()
MONTHS = "January February March April May June July August September October November December".split()
OPENINGS = (
    "Dear {title} {f},",
    "Dear {g},",
    "To {g} {f}",
    "Re: {g} {f}, file {n}\n\nDear colleague,",
    "{g} {f} wrote:",
)
SENTENCES = """I met {g} {f} in {c} on {d}, and {g} told me about the accident.
{title} {f} is {a} years old and works as a {j} at {o}.
We have not heard from {g} since {m} {y}.
Please call {p} or write to {e} before {d}.
{o2} in {c} confirmed that {g2} {f2} is no longer employed there.
{g2} and {g} have known each other since {y}, when both of them lived in {c2}.
The invoice of {n} was paid by {f2} on {d}.
My address is {h} {f2} Street, {c2}; the telephone number is {p}.
{f}'s mother, {a2}, moved from {c2} to {c} in {m}.
As a {j}, {title} {f} travels to {c2} every {w}.
The meeting took place at {o} at the end of {m}.
{g2} {f2} ({a2}) was the only witness; {title} {f2} signed on {d2}.
There were {a} pages in the file, and {a2} of them were missing.
I could not come on {w}, because the train from {c} was late.
It was agreed that {g} will send the documents to {e}.
{o} asks {g2} to return the keys by {d2}.
Nothing else was found, and the case was closed without further questions.
The weather was bad, and the roads were icy for most of the week.
Thank you for your letter and for the time that you took to answer it.""".split("\n")
CLOSINGS = ("Yours sincerely,\n{g3} {f3}", "Best wishes\n{g3}", "Kind regards, {g3} {f3}, {o2}", "{f3}")


def write_letter(rng: Random) -> str:
    """Return a letter about people, places and dates, many of which occur in other letters too."""

    def pick_date() -> str:
        day, month, year = rng.randint(1, 28), rng.randrange(12), rng.randint(2005, 2024)
        styles = (f"{day} {MONTHS[month]} {year}", f"{MONTHS[month]} {day}, {year}", f"{year}-{month + 1:02}-{day:02}")
        return rng.choice((*styles, f"{day:02}/{month + 1:02}/{year}", f"{day} {MONTHS[month]}"))

    values = {"title": rng.choice(("Mr", "Ms", "Mrs", "Dr")), "a": rng.randint(18, 90), "a2": rng.randint(18, 90)}
    values |= {f"g{i}": rng.choice(GIVEN) for i in ("", 2, 3)} | {f"f{i}": rng.choice(FAMILY) for i in ("", 2, 3)}
    values |= {"c": rng.choice(CITIES), "c2": rng.choice(CITIES), "j": rng.choice(JOBS), "d": pick_date()}
    values |= {"o": rng.choice(COMPANIES.split("|")), "o2": rng.choice(COMPANIES.split("|")), "d2": pick_date()}
    values |= {"m": rng.choice(MONTHS), "y": rng.randint(1985, 2020), "w": rng.choice(("Monday", "Friday", "Sunday"))}
    values |= {
        "p": f"0{rng.randint(20, 99)} {rng.randint(1000, 9999)} {rng.randint(100, 999)}",
        "h": rng.randint(1, 99),
    }
    values |= {"n": rng.randint(100_000, 999_999), "e": f"{values['g']}.{values['f']}@example.org".lower()}
    body = rng.sample(SENTENCES, rng.randint(5, 9))
    paragraphs = [" ".join(body[:3]), " ".join(body[3:6]), " ".join(body[6:])]
    parts = [rng.choice(OPENINGS), *filter(None, paragraphs), rng.choice(CLOSINGS)]
    return "\n\n".join(parts).format(**values) + "\n"


# Texts that nobody anonymised.


def read_texts(path: Path) -> Iterator[str]:
    """Yield the texts of a file, short ones joined, long ones cut."""
    opener = gzip.open if path.suffix == ".gz" else open
    waiting = ""
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            waiting += ("\n" if waiting else "") + json.loads(line)["text"]
            if len(waiting) >= LEAST:
                yield waiting[:MOST]
                waiting = ""


def read_file_texts(folder: Path, pattern: str) -> Iterator[str]:
    for path in sorted(folder.rglob(pattern)):
        if "site-packages" not in path.parts:
            text = path.read_text("utf-8", "replace")
            yield from (text[i : i + MOST] for i in range(0, len(text), MOST))


def take_evenly(sources: Sequence[Iterator[str]], count: int) -> list[str]:
    """Return ``count`` texts, as many from each source while it has any; every seventh, so that files mix."""
    out: list[str] = []
    left = list(sources)
    while left and len(out) < count:
        for source in list(left):
            text = next(source, None)
            if text is None:
                left.remove(source)
            elif len(out) < count:
                out.append(text)
            for _ in range(6):
                next(source, None)
    return out


def read_unrelated(paths: Sequence[Path], count: int) -> list[tuple[str, str]]:
    """Return (kind, text) of texts: a fifth each from code and documentation, the rest from the paths."""
    fifth = count // 5
    code = take_evenly([read_file_texts(Path(sysconfig.get_path("stdlib")), "*.py")], fifth)
    docs = take_evenly([read_file_texts(ROOT / "docs", "*.md"), read_file_texts(ROOT / "docs", "*.ipynb")], fifth)
    docs += take_evenly([read_file_texts(ROOT / "src", "*.py")], fifth - len(docs))
    others = take_evenly([read_texts(path) for path in paths], count - len(code) - len(docs))
    kinds = (("code", code), ("documentation", docs), ("texts", others))
    return [(name_kind(kind, text), text) for kind, texts in kinds for text in texts]


def name_kind(kind: str, text: str) -> str:
    """Return the kind of a text; one that shows numbered tags cannot be told from an output, and is counted apart."""
    return (
        "shows tags" if any(map(str.isdigit, "".join(text[p.start : p.end] for p in find_placeholders(text)))) else kind
    )


# Measuring.


def edit_texts(original: str, made: str, rng: Random) -> tuple[str, str] | None:
    """Return both texts after the same changes: a line added, one taken out, two sentences swapped.

    None where the lines of the two do not correspond, since a replacement went over a line.
    """
    pairs = [list(pair) for pair in zip(original.split("\n"), made.split("\n"), strict=False)]
    if original.count("\n") != made.count("\n"):
        return None
    long = [pair for pair in pairs if pair[0].count(". ") == pair[1].count(". ") > 1]
    if long:
        pair = rng.choice(long)
        for i, line in enumerate(pair):
            first, second, rest = line.split(". ", 2)
            pair[i] = f"{second}. {first}. {rest}"
    pairs.insert(rng.randrange(len(pairs) + 1), ["Checked by the office; nothing to add."] * 2)
    full = [i for i, pair in enumerate(pairs) if pair[0].strip()]
    if len(full) > 3:
        del pairs[rng.choice(full)]
    return "\n".join(pair[0] for pair in pairs), "\n".join(pair[1] for pair in pairs)


def compare_words(expected: str, result: str, made: str) -> Counter[str]:
    """Count the words that differ: left where the anonymised text has them, else wrong."""
    a, b, was = expected.split(), result.split(), set(made.split())
    out: Counter[str] = Counter(words=len(a))
    for code, _, _, start, end in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if code != "equal":
            out.update("left" if word in was else "wrong" for word in b[start:end])
    return out


def find_names(documents: Sequence[Document], cache: Path | None) -> list[tuple[Document, tuple[Span, ...]]]:
    """Return the documents with their findings, from the cache where it has them, and write the others into it."""
    known: dict[str, list[Any]] = {}
    if cache is not None and cache.exists():
        known = dict(map(json.loads, cache.read_text("utf-8").splitlines()))
    out = []
    for document in documents:
        name = digest(document.text)
        if name not in known:
            spans = detect(document, "reversible")
            known[name] = [[s.start, s.end, s.label, s.score, s.source] for s in spans]
        out.append((document, tuple(Span(*values) for values in known[name])))
    if cache is not None:
        cache.write_text("".join(json.dumps(item) + "\n" for item in known.items()), "utf-8")
    return out


class Run:
    """The measures of one policy; ``failures`` collects what went wrong."""

    def __init__(self, name: str, failures: list[dict[str, Any]]) -> None:
        self.name = name
        self.policy = Policy.load(name)
        self.failures = failures
        self.figures: dict[str, Any] = {}

    def anonymize(self, documents: Sequence[tuple[Document, Any]], vault: Vault) -> list[Anonymized]:
        out = []
        for document, spans in documents:
            with vault.book(SCOPE) as book:
                out.append(replace_found(document, spans, self.policy, key=vault.operator_key, scope=SCOPE, book=book))
        return out

    def note(self, measure: str, wanted: str, result: str, **more: str) -> None:
        self.failures.append({"policy": self.name, "measure": measure, **more, "wanted": wanted, "result": result})

    def measure_untouched(
        self, documents: Sequence[tuple[Document, Any]], made: list[Anonymized], vault: Vault
    ) -> None:
        counts: Counter[str] = Counter()
        start = time.process_time()
        for (document, _), result in zip(documents, made, strict=True):
            kind = document.id.partition("-")[0]
            back = restore(result.text, vault=vault, scope=SCOPE).text
            counts[kind] += 1
            counts[f"{kind} exact"] += back == document.text
            if back != document.text:
                self.note("untouched", document.text, back, id=document.id)
        self.figures["untouched"] = {**counts, "seconds_each": round((time.process_time() - start) / len(made), 4)}

    def measure_edited(self, documents: Sequence[tuple[Document, Any]], made: list[Anonymized], vault: Vault) -> None:
        counts: Counter[str] = Counter()
        for (document, _), result in zip(documents, made, strict=True):
            pair = edit_texts(document.text, result.text, Random(document.id))
            if pair is None:
                continue
            wanted, edited = pair
            back = restore(edited, vault=vault, scope=SCOPE).text
            counts.update(texts=1, exact=int(back == wanted))
            counts += compare_words(wanted, back, edited)
            if back != wanted:
                self.note("edited", wanted, back, id=document.id)
        self.figures["edited"] = dict(counts)

    def measure_unrelated(self, texts: Sequence[tuple[str, str]], how: str, bring: Callable[[int, str], str]) -> None:
        counts: Counter[str] = Counter()
        for i, (kind, text) in enumerate(texts):
            back = bring(i, text)
            counts.update([kind, f"{kind} changed"] if back != text else [kind])
            if back != text:
                blocks = difflib.SequenceMatcher(None, text.split(), back.split(), autojunk=False).get_opcodes()
                changes = [
                    f"{' '.join(text.split()[max(0, a - 2) : b + 2])} => {' '.join(back.split()[c:d])}"
                    for op, a, b, c, d in blocks
                    if op != "equal"
                ]
                self.failures.append({"policy": self.name, "measure": how, "kind": kind, "changes": changes})
        counts["changed"] = sum(n for kind, n in counts.items() if kind.endswith(" changed"))
        self.figures[how] = dict(sorted(counts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--letters", type=int, default=300)
    parser.add_argument("--real", type=int, default=200)
    parser.add_argument("--unrelated", type=int, default=2000)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--policies", default="reversible,wild-tags,pseudonyms")
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--failures", type=Path)
    args = parser.parse_args()
    rng = Random(22)
    letters = [Document(f"letter-{i}", write_letter(rng)) for i in range(args.letters)]
    real = take_evenly([read_texts(path) for path in args.paths], args.real)
    documents = letters + [Document(f"real-{i}", text) for i, text in enumerate(real)]
    found = find_names(documents, args.cache)
    unrelated = read_unrelated(args.paths, args.unrelated + len(real))
    unrelated = [one for one in unrelated if one[1] not in set(real)][: args.unrelated]
    print(f"{len(documents)} documents, {len(unrelated)} unrelated texts", file=sys.stderr)
    failures: list[dict[str, Any]] = []
    figures: dict[str, Any] = {}
    for name in args.policies.split(","):
        run = Run(name, failures)
        with tempfile.TemporaryDirectory() as folder:
            with Vault.create(Path(folder) / "all.vault", SECRET) as vault:
                made = run.anonymize(found, vault)
                run.measure_untouched(found, made, vault)
                run.measure_edited(found, made, vault)
                known = len(vault.known(SCOPE))
                with vault._store.connect_outside_transaction() as connection:
                    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            size = (Path(folder) / "all.vault").stat().st_size
            run.figures["vault"] = {"documents": len(made), "originals": known, "bytes": size}
            plans = [one.plan for one in made[: len(letters)]]
            if unrelated:
                run.measure_unrelated(
                    unrelated, "unrelated, plan", lambda i, t, plans=plans: restore(t, plan=plans[i % len(plans)]).text
                )
                with Vault.create(Path(folder) / "some.vault", SECRET) as vault:
                    run.anonymize(found[: args.documents], vault)
                    run.measure_unrelated(
                        unrelated, "unrelated, vault", lambda _, t: restore(t, vault=vault, scope=SCOPE).text
                    )
        figures[name] = run.figures
        print(f"\n=== {name} ===")
        for measure, values in run.figures.items():
            print(f"{measure:18}", ", ".join(f"{key} {value:,}" for key, value in values.items()))
    if args.failures is not None:
        args.failures.write_text("".join(json.dumps(f, ensure_ascii=False) + "\n" for f in failures), "utf-8")
    print(json.dumps({"benchmark": "restore_trust", **figures}))


if __name__ == "__main__":
    main()
