"""Originals looked for by digests alone: what is found, what is found by chance, what it costs.

    python benchmarks/generations.py TEXTS.jsonl[.gz] [--people 2000]

People are drawn from the knowledge base's English names, a phone number each; they are written into a vault. Then:
- planted: sentences with one variant of one of them; the share of each variant that is found;
- by chance: the same search in the texts as they are, of which none ever saw these people; by kind, in 10,000 words;
- cost: bytes of the vault and of the file of digests for an original, time of writing the vault and of
  computing its digests, words a second.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from allonym.evaluate import generations
from allonym.kb import KnowledgeBase
from allonym.stats.samples import share
from allonym.vault import Vault

SECRET = b"a secret for the benchmark alone"


def one_edit(text: str, draw: random.Random) -> str:
    """One letter too many, too few or another, within a word of five letters or more."""
    long = [i for i, word in enumerate(text.split()) if len(word) >= 5]
    words = text.split()
    at = draw.choice(long or [0])
    place, letter = draw.randrange(1, len(words[at])), draw.choice("aeioulnrst")
    word = words[at]
    words[at] = draw.choice([word[:place] + letter + word[place:], word[:place] + word[place + 1 :],
                             word[:place] + letter + word[place + 1 :]])  # fmt: skip
    return " ".join(words)


VARIANTS: dict[str, Callable[[str, str, random.Random], str]] = {
    "as it was": lambda name, _, __: name,
    "other case": lambda name, _, __: name.upper(),
    "family name first": lambda name, _, __: ", ".join(reversed(name.split(" ", 1))),
    "family name": lambda name, _, __: name.split()[-1],
    "given name": lambda name, _, __: name.split()[0],
    "initial and family name": lambda name, _, __: f"{name[0]}. {name.split()[-1]}",
    "one letter another": lambda name, _, draw: one_edit(name, draw),
    "phone number": lambda _, phone, __: phone,
    "phone number, grouped otherwise": lambda _, phone, __: "".join(c for c in phone if c.isdigit()),
    "phone number, one digit another": lambda _, phone, draw: (
        f"{phone[:-1]}{(int(phone[-1]) + draw.randint(1, 9)) % 10}"
    ),
}


def read_texts(path: Path) -> Iterator[str]:
    """The field ``text`` of each record."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def invent_people(count: int, draw: random.Random) -> list[tuple[str, str]]:
    """Names and phone numbers, no name twice."""
    kb = KnowledgeBase.open()
    given, family = kb.names("first", "english"), kb.names("last", "english")
    out: dict[str, str] = {}
    while len(out) < count:
        name = f"{draw.choice(given)} {draw.choice(family)}"
        out.setdefault(name, f"({draw.randrange(200, 1000)}) {draw.randrange(200, 1000)}-{draw.randrange(10000):04d}")
    return list(out.items())


def write_vault(path: Path, who: list[tuple[str, str]]) -> tuple[Vault, float]:
    """A vault of these people, and the seconds that it took."""
    vault = Vault.create(path, SECRET)
    began = time.perf_counter()
    for at in range(0, len(who), 50):
        with vault.book("people") as book:
            for i, (name, phone) in enumerate(who[at : at + 50], at):
                book.remember(f"[PERSON_{i}]", name, "PERSON", "tag@1", name.lower())
                book.remember(f"[PHONE_NUMBER_{i}]", phone, "PHONE_NUMBER", "tag@1", phone)
    took = time.perf_counter() - began
    vault.rotate(SECRET)  # empties the journal into the file
    return vault, took


def main() -> None:
    """Read the arguments and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    who = invent_people(given.people, draw)
    texts = list(read_texts(given.texts))
    result: dict[str, object] = {"people": len(who), "texts": len(texts)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vault")
        vault, took = write_vault(path, who)
        with vault:
            began = time.perf_counter()
            count = vault.write_digests(Path(folder, "digests"))
            computed = time.perf_counter() - began
            digests = vault.digests()
        times = {"written": took, "digests": computed}
        result["microseconds_an_original"] = {kind: round(seconds / count * 1e6) for kind, seconds in times.items()}
        result["vault_bytes_an_original"] = round(path.stat().st_size / count)
        result["file_bytes_an_original"] = round(Path(folder, "digests").stat().st_size / count)
    began = time.perf_counter()
    plain = generations([(str(i), text) for i, text in enumerate(texts)], digests)
    result["words_a_second"] = round(plain.words / (time.perf_counter() - began))
    counted = Counter("common words" if p.common else p.kind for p in plain.places)
    if plain.found <= len(plain.places):
        result["by_chance_in_10000_words"] = {k: round(n / plain.words * 1e4, 3) for k, n in sorted(counted.items())}
    result["outputs_with_one_by_chance"] = plain.all.outputs.to_dict()
    found = {}
    for name, make in VARIANTS.items():
        chosen = draw.sample(who, min(400, len(who)))
        outputs = [(str(i), f"It was {make(*person, draw)}, they said.") for i, person in enumerate(chosen)]
        looked = generations(outputs, digests)
        aside = len({p.output for p in looked.places if p.common} - {p.output for p in looked.places if not p.common})
        hits = share(round(looked.all.outputs.value * len(chosen)), len(chosen))
        found[name] = {**hits.to_dict(), "common": aside}
        told = f"{hits.value:.1%} [{hits.low:.1%}, {hits.high:.1%}]"
        print(f"| {name} | {told} | as a common word: {aside} of {len(chosen)} |")
    result["planted"] = found
    print(json.dumps(result))


if __name__ == "__main__":
    main()
