"""One pseudonym for each person in ten interviews, before and after corrections; and a person erased from 20 files.

    python benchmarks/people_register.py [--detect] [--show] [--vaults N]

Interviews: tests/cases/people_register.jsonl marks 30 people under varied names (in full, given or family name alone,
titles, nicknames, slips of the pen, diacritics). They are anonymised one after another with one vault. A person is
split if there are several replacements for them, joined if they share one with somebody else. Then the register is
corrected by hand, one join or part for each wrong entry, and all interviews are anonymised again. The findings are the
marked ones, or with --detect those of the policy; then mentions that are not found count for nothing. Each vault has a
fresh key, so pseudonyms differ: with --vaults N the runs are repeated, and the vaults are counted in which anybody is
split or joined after the corrections.

Erasure: a person is planted in 20 files (text, CSV, JSON lines, DOCX, HTML, mail) of five subjects. Sources, outputs
and plans are read byte by byte afterwards, those of packages unpacked.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import allonym
from allonym.document import Document, Span
from allonym.files import anonymize_path
from allonym.files.erasing import erase_person
from allonym.pipeline import replace_found
from allonym.plan import Edit
from allonym.policy import Policy
from allonym.text.names import TAG_PARTS, find_given_name_variants, list_name_spellings
from allonym.vault import Vault, new_secret, read_secret
from allonym.vault.people import join_people, list_people, part_name

CASES = Path(__file__).parents[1] / "tests" / "cases" / "people_register.jsonl"
_MARKED = re.compile(r"\{([^|{}]+)\|(\d+)\}")
_TITLE = re.compile(r"^(?:Mr|Mrs|Ms|Miss|Dr|Judge)\b\.? ")
SCOPE = "study"


@dataclass(frozen=True)
class Interview:
    """A document with the people of its mentions, by their places."""

    document: Document
    people: dict[tuple[int, int], int]


def read_interviews() -> list[Interview]:
    """Read the marked interviews."""
    out = []
    for line in CASES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text, people, position = "", {}, 0
        for match in _MARKED.finditer(row["marked"]):
            text += row["marked"][position : match.start()]
            people[len(text), len(text) + len(match[1])] = int(match[2])
            text += match[1]
            position = match.end()
        out.append(Interview(Document(row["id"], text + row["marked"][position:]), people))
    return out


_FORM = re.compile(rf"\.(?:{'|'.join(TAG_PARTS)})(?=>)")
"""What a tag tells of the part of the name that stood there; the tag is the same person's without it."""


def list_replacements(
    interviews: Sequence[Interview], vault: Vault, policy: Policy, *, detects: bool = False
) -> list[tuple[str, int, str, str]]:
    """Anonymise the interviews; return interview, person, surface and replacement of each mention."""
    out = []
    for interview in interviews:
        document, places = interview.document, interview.people
        spans: tuple[Span, ...] = tuple(Span(a, b, "PERSON") for a, b in places)
        if detects:
            spans = allonym.detect(document, policy)
        with vault.book(SCOPE) as book:
            done = replace_found(document, spans, policy, key=vault.operator_key, scope=SCOPE, book=book)
        for edit in done.plan.edits:
            person = find_person(edit, places)
            if person and edit.label.startswith("PERSON"):
                replacement = _FORM.sub("", edit.replacement)
                out.append((document.id, person, document.text[edit.start : edit.end], replacement))
    return out


def find_person(edit: Edit, places: dict[tuple[int, int], int]) -> int:
    """Return the person whom an edit replaces; 0 for anybody else."""
    return next((person for (a, b), person in places.items() if edit.start < b and a < edit.end), 0)


def measure_people(mentions: Sequence[tuple[str, int, str, str]]) -> dict[str, object]:
    """Count the people with several replacements, and those who share one with somebody else."""
    by_person: defaultdict[int, list[str]] = defaultdict(list)
    for _, person, _, replacement in mentions:
        by_person[person].append(replacement)
    bare = {person: [_TITLE.sub("", text) for text in listed] for person, listed in by_person.items()}
    fullest = {person: max(listed, key=lambda t: (len(t.split()), len(t))) for person, listed in bare.items()}
    words = {person: set(re.findall(r"\w+", text)) for person, text in fullest.items()}
    split = sorted(
        person for person, listed in bare.items() if any(not is_form_of(text, words[person]) for text in listed)
    )
    owners: defaultdict[str, set[int]] = defaultdict(set)
    for person, text in fullest.items():
        owners[text].add(person)
    joined = sorted(person for shared in owners.values() if len(shared) > 1 for person in shared)
    return {"people": len(by_person), "mentions": len(mentions), "split": split, "joined": joined}


def is_form_of(text: str, words: set[str]) -> bool:
    """Tell whether a replacement is the fullest one, or a part, initial or short form of it."""
    short = {variant for word in words for variant in find_given_name_variants(word.lower())}
    rest = [w for w in re.findall(r"\w+", text) if w not in words and w.lower() not in short]
    return not [w for w in rest if not (len(w) == 1 and any(word.startswith(w) for word in words))]


def correct_register(vault: Vault, interviews: Sequence[Interview]) -> int:
    """Join and part the people of the register as the marks say; return the number of corrections."""
    people_by_words: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for interview in interviews:
        for (a, b), person in interview.people.items():
            for words in list_name_spellings(interview.document.text[a:b]):
                people_by_words[words].add(person)
    count = 0
    for entry in list_people(vault, SCOPE):  # a name of somebody else
        owner = get_person(entry.names[0], people_by_words)
        for name in entry.names[1:]:
            if (other := get_person(name, people_by_words)) and owner and other != owner:
                part_name(vault, SCOPE, entry.number, name)
                count += 1
    first: dict[int, int] = {}
    for entry in list_people(vault, SCOPE):  # two entries of one person
        owner = next(filter(None, (get_person(name, people_by_words) for name in entry.names)), 0)
        if owner in first:
            join_people(vault, SCOPE, first[owner], entry.number)
            count += 1
        elif owner:
            first[owner] = entry.number
    return count


def get_person(name: str, people_by_words: dict[tuple[str, ...], set[int]]) -> int:
    """Return the only person whom a name means; 0 if it means several."""
    people = {person for words in list_name_spellings(name) for person in people_by_words.get(words, ())}
    return people.pop() if len(people) == 1 else 0


# Erasure

NAME, OTHER = "Philippa Marchbanks", "Rupert Amberly"
SENTENCES = (
    "We spoke to Philippa Marchbanks on Monday. Philippa was calm.",
    "Ms Marchbanks wrote to Rupert Amberly; he answered.",
    "Send it to philippa.marchbanks@example.com or call P. Marchbanks.",
    "Marchbanks, Philippa: absent. Rupert Amberly: present.",
)


def plant_person(folder: Path) -> list[Path]:
    """Write 20 files about five subjects, each of which names the person."""
    files = []
    for number in range(20):
        subject, text = folder / f"subject-{number % 5}", SENTENCES[number % 4]
        subject.mkdir(parents=True, exist_ok=True)
        kind = ("txt", "csv", "jsonl", "docx", "html", "eml")[number % 6]
        file = subject / f"note-{number:02}.{kind}"
        if kind == "csv":
            file.write_text(f'case,note\n{number},"{text}"\n', encoding="utf-8")
        elif kind == "jsonl":
            file.write_text(json.dumps({"case": number, "note": text}) + "\n", encoding="utf-8")
        elif kind == "html":
            file.write_text(f"<html><body><p>{text}</p></body></html>\n", encoding="utf-8")
        elif kind == "eml":
            head = f"From: {OTHER} <rupert@example.com>\nTo: {NAME} <pm@example.com>\nSubject: Note\n\n"
            file.write_text(head + text + "\n", encoding="utf-8")
        elif kind == "docx":
            import docx

            written = docx.Document()
            written.core_properties.author = NAME
            written.add_paragraph(text)
            written.save(str(file))
        else:
            file.write_text(text + "\n", encoding="utf-8")
        files.append(file)
    return files


def count_words_in_bytes(paths: Sequence[Path]) -> int:
    """Count how often a word of the name stands in the bytes of files and of the members of packages."""
    count = 0
    for path in paths:
        pieces = [path.read_bytes()]
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as package:
                pieces += [package.read(name) for name in package.namelist()]
        count += sum(len(re.findall(rb"(?i)philippa|marchbanks", piece)) for piece in pieces)
    return count


def measure_erasure(folder: Path, policy: str = "pseudonyms") -> dict[str, object]:
    """Plant a person, anonymise, erase the person, and look for them."""
    source, target = folder / "source", folder / "target"
    planted = plant_person(source)
    vault = Vault.create(folder / "vault", read_secret(new_secret(), "new"))
    for subject in sorted(source.iterdir()):
        plans = folder / f"{subject.name}.jsonl"
        out = target / subject.name
        anonymize_path(subject, out, policy, vault=vault, scope=SCOPE, plans=plans, originals=True)
    listed = [*planted, *target.rglob("*.*"), *folder.glob("*.jsonl")]
    before = count_words_in_bytes(listed)
    former = allonym.anonymize(f"{NAME} called.", policy, vault=vault, scope=SCOPE).text
    erasure = erase_person(vault, NAME, paths=[source, target, *folder.glob("*.jsonl")])
    left = count_words_in_bytes([*source.rglob("*.*"), *target.rglob("*.*"), *folder.glob("*.jsonl"), folder / "vault"])
    known = sum("archbanks" in entry.original for entry in vault.known(SCOPE))
    again = allonym.anonymize(f"{NAME} called.", policy, vault=vault, scope=SCOPE).text
    vault.close()
    return {
        "files": erasure.files.files,
        "words before": before,
        "words left": left,
        "originals left": known,
        "unfinished files": len(erasure.files.leftovers),
        "places": erasure.files.places,
        "rows": erasure.vault.rows,
        "another pseudonym": former != again,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detect", action="store_true", help="find the people, instead of taking the marks")
    parser.add_argument("--show", action="store_true", help="show the mentions of people who are split or joined")
    parser.add_argument("--vaults", type=int, default=1, metavar="N", help="repeat each run with N vaults (default 1)")
    arguments = parser.parse_args()
    interviews = read_interviews()
    for name in ("reversible", "pseudonyms"):
        policy, wrong = Policy.load(name), 0
        for _ in range(arguments.vaults):
            with tempfile.TemporaryDirectory() as folder:
                vault = Vault.create(Path(folder, "vault"), read_secret(new_secret(), "new"))
                mentions = list_replacements(interviews, vault, policy, detects=arguments.detect)
                report(f"{name}, first pass", mentions, arguments.show)
                corrections = correct_register(vault, interviews)
                mentions = list_replacements(interviews, vault, policy, detects=arguments.detect)
                figures = report(f"{name}, after {corrections} corrections", mentions, arguments.show)
                wrong += bool(figures["split"] or figures["joined"])
                if arguments.show:
                    print(*(f"{p.number} {p.names} {p.replacement}" for p in list_people(vault, SCOPE)), sep="\n")
                vault.close()
        print(json.dumps({"benchmark": "people_register", "run": name, "vaults": arguments.vaults, "wrong": wrong}))
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({"benchmark": "erasure", **measure_erasure(Path(folder))}))


def report(title: str, mentions: Sequence[tuple[str, int, str, str]], show: bool) -> dict[str, object]:
    """Print the figures of a run, and if asked the mentions of people who are split or joined."""
    figures = measure_people(mentions)
    print(json.dumps({"benchmark": "people_register", "run": title, **figures}))
    for _, person, surface, replacement in mentions if show else ():
        if person in (*figures["split"], *figures["joined"]):  # type: ignore[misc]
            print(f"  {person:2} {surface} -> {replacement}")
    return figures


if __name__ == "__main__":
    main()
