"""Make the lists of words that the detectors take for no names, from openly licensed texts and lists.

usage: python benchmarks/word_lists.py DATA [--check] [--dictionaries FOLDER]

DATA is the folder of the corpora (open2/lexicons, open2/ner_multi, open2/unlabelled, dialogues). Writes the words of
src/allonym/detection/ordinary.txt, ordinary_of_languages.toml (from the training parts of annotated corpora), and the
medicines and conditions of common_terms.toml beside it; also dictionary.txt where FOLDER has the word lists of Debian's
packages wbritish, wbritish-large, wamerican and wamerican-large. Comments and the lists of our own stay. Their sources
stand in the files. ``--check`` writes nothing, and fails where a file
would change.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from allonym.kb import KnowledgeBase
from allonym.text.fold import fold
from allonym.train.corpus import make_training_lists
from allonym.train.ordinary import find_ordinary_words
from allonym.train.records import read_json_lines

HERE = Path(__file__).resolve().parent.parent / "src/allonym/detection"
DICTIONARIES = ("british-english", "american-english", "british-english-large", "american-english-large")
SHARE = 0.75  # of a word's mentions in small letters: headings count as mentions
FREQUENT = 0.004  # per cent of the people in the census that have a name
SHORTEST_WORD, SHORTEST_TERM = 3, 6
LANGUAGES = ("da", "et", "fi", "fr", "hr", "hu", "nl", "no", "pt", "ro", "sk", "sv")
MOST_WORDS, LEAST_COUNT, SMALL = 5000, 3, 0.6  # of a language; of a word; share of it that is in small letters
MEDICINES = ("paracetamol", "penicillin")
"""Everyday names that the sources lack."""
HEADS = frozenset(
    "disease syndrome palsy lymphoma chorea phenomenon sarcoma thyroiditis anemia contracture aphasia encephalopathy "
    "hernia".split()
)
"""Last words of a condition that is named after somebody."""
ADJECTIVES = ("ic", "al", "ous", "ar", "ive", "oid")


def read_rows(path: Path) -> Iterator[list[str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        yield from (line.rstrip("\n").lower().split("\t") for line in lines)


def make_ordinary_words(data: Path) -> list[str]:
    paths = [p for p in sorted((data / "open2/unlabelled").glob("*.jsonl.gz")) if "irc" not in p.name]
    paths += [data / f"dialogues/{name}.jsonl.gz" for name in ("aci_bench", "mts_dialog", "qmsum_meetings")]
    texts = (record["text"] for path in paths for _, record in read_json_lines(path))
    words = find_ordinary_words(texts, make_training_lists(), SHARE)
    census = list(read_rows(data / "open2/lexicons/us_census_1990_names.tsv.gz"))[1:]
    names = {row[0] for row in census if float(row[2]) >= FREQUENT}
    names |= {row[0] for row in read_rows(data / "open2/lexicons/cities_over_15000.tsv.gz")}
    return sorted(w for w in words - names if w.isalpha() and w.isascii() and len(w) >= SHORTEST_WORD)


def make_ordinary_words_of_languages(data: Path) -> dict[str, list[str]]:
    """Words that corpora write in small letters, seldom with a capital within sentences or names; no known names."""
    from allonym.train.multilingual import load_parts, load_recipe

    small, big = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
    for sentence in load_parts(data / "open2/ner_multi", load_recipe("languages"))["train"]:
        last = ""
        for (a, b), tag in zip(sentence.borders, sentence.tags, strict=True):
            word = sentence.text[a:b]
            if word.islower():
                small[sentence.language][word] += 1
            elif word[1:].islower() and (tag > 0 or last.isalnum()):
                big[sentence.language][word.lower()] += 1
            last = word
    kb = KnowledgeBase.open()
    names = {*kb.list_known_names("first"), *kb.list_known_names("last")}
    names |= {fold(item.label) for kind in ("city", "country", "region") for item in kb.pool(kind)}
    return {
        language: sorted(
            word
            for word, count in small[language].most_common(MOST_WORDS)
            if count >= LEAST_COUNT
            and count >= SMALL * (count + big[language][word])
            and word.isalpha()
            and len(word) >= SHORTEST_WORD
            and fold(word) not in names
        )
        for language in LANGUAGES
    }


def make_dictionary(data: Path, folder: Path, ordinary: Iterable[str]) -> list[str]:
    """Words of the middle-sized lists in small letters that no list writes or knows as a name, without the ordinary."""
    listed = {name: set((folder / name).read_text(encoding="utf-8").split()) for name in DICTIONARIES}
    large = listed["british-english-large"] | listed["american-english-large"]
    names = {word.lower() for word in large if word[0].isupper()}
    for name in ("us_census_1990_names.tsv.gz", "given_and_surnames_world.tsv.gz", "cities_over_15000.tsv.gz"):
        names |= {row[0].strip() for row in read_rows(data / "open2/lexicons" / name)}
    words = (listed["british-english"] | listed["american-english"]) - names - set(ordinary)
    return sorted(w for w in words if w.isascii() and w.isalpha() and w.islower() and len(w) >= SHORTEST_WORD)


def make_terms(data: Path, ordinary: Iterable[str]) -> dict[str, list[str]]:
    folder = data / "open2/lexicons"
    lists = ("us_census_1990_names.tsv.gz", "given_and_surnames_world.tsv.gz", "cities_over_15000.tsv.gz")
    names = {row[0].strip() for name in lists for row in read_rows(folder / name)}

    def is_term(word: str) -> bool:
        return word.isascii() and word.isalpha() and len(word) >= SHORTEST_TERM and word not in names

    medicines = {row[0].strip() for name in ("drugs.tsv.gz", "drug_brands.txt") for row in read_rows(folder / name)}
    listed = [row[0] for row in read_rows(folder / "diseases_mesh_variants.tsv.gz")]
    conditions = {term for term in listed if is_term(term)}
    for term in listed:
        if "," in term:
            continue
        if "'s " in term and (
            (term.isascii() and len(term.split()) <= 3 and not term.endswith("s"))
            or (term.endswith(("palsy", "disease")))
        ):
            conditions.add(term)
        words = term.replace("'s", "").split()
        is_eponym = len(words) == 2 and words[1] in HEADS and words[0].isalpha() and words[0] not in ordinary
        if is_eponym and not words[0].endswith(ADJECTIVES):
            conditions |= {f"{words[0]} {words[1]}", f"{words[0]}'s {words[1]}"}
    return {"medicines": sorted({*filter(is_term, medicines), *MEDICINES}), "conditions": sorted(conditions)}


def fill(text: str) -> str:
    return textwrap.fill(text, 118, break_on_hyphens=False, break_long_words=False)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("--dictionaries", type=Path)
    options.add_argument("--check", action="store_true", help="fail where a file would change")
    args = options.parse_args()
    ordinary = make_ordinary_words(args.data)
    lists = {HERE / "ordinary.txt": ordinary}
    if args.dictionaries:
        lists[HERE / "dictionary.txt"] = make_dictionary(args.data, args.dictionaries, ordinary)
    made = {}
    for path, words in lists.items():
        comments = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
        made[path] = "\n".join([*comments, fill(" ".join(words))]) + "\n"
    path = HERE / "common_terms.toml"
    text = path.read_text("utf-8")
    for name, terms in make_terms(args.data, frozenset(ordinary)).items():
        pattern = re.compile(rf'(^{name} = """\n).*?(\n"""$)', re.MULTILINE | re.DOTALL)
        text = pattern.sub(rf"\g<1>{fill('; '.join(terms))}\g<2>", text)
    made[path] = text
    path = HERE / "ordinary_of_languages.toml"
    comments = "".join(line for line in path.read_text("utf-8").splitlines(True) if line.startswith("#"))
    tables = make_ordinary_words_of_languages(args.data).items()
    made[path] = comments + "".join(f'{language} = """\n{fill(" ".join(words))}\n"""\n' for language, words in tables)
    changed = [path.name for path, text in made.items() if path.read_text("utf-8") != text]
    print(f"{len(ordinary):,} ordinary words; changed: {', '.join(changed) or 'nothing'}")
    if args.check:
        sys.exit(bool(changed))
    for path, text in made.items():
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
