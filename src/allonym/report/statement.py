"""A statement on a run for people who decide: an ethics board, a data-protection officer, an archive.

Two pages in plain words say what was done, what was found, what was not read, what an intruder finds and who decides.
What was not measured is said to be so. The appendix holds the certificate of the run and what the figures come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from allonym.detection.languages import describe_unread
from allonym.files.runreport import is_beside_text
from allonym.labels import TAXONOMY, UNREAD_TEXT
from allonym.report.evaluate.page import describe_intruders
from allonym.report.page import Block, Column, Notice, Page, Row, Section, Settings, Table, Text
from allonym.report.values import Plain, Values
from allonym.text.words import count_nouns

_MOST_EXAMPLES = 8
"""People whose cards the statement shows; the cards' own report has all."""
_OPERATIONS = {
    "tag": "a numbered tag, such as [PERSON_1]",
    "wild-tags": "a code in place of the words",
    "wild": "a code in place of the words",
    "pseudonym": "an invented name, place, number or date of the same kind",
    "llm": "an invented name, place, number or date of the same kind, proposed by a language model",
    "suppress": "nothing: the words were taken out",
    "mask": "stars in place of the letters",
    "generalise": "a more general word, a range or a year",
    "shift_dates": "a date moved by a secret number of days",
    "hash": "a code that only the holder of the key can compute",
    "encrypt": "the same words in encrypted form",
    "constant": "one fixed word",
    "keep": "the words themselves: the policy keeps them",
}
_NOT_GUARANTEED = (
    "No program finds everything. A story, a style or a rare event can still identify a person whose name is gone. "
    "Somebody who knows the people or the places has to read a sample before the files are shared. This is no legal "
    "assessment. Whether the files are anonymous in the sense of a law is for the people below to decide."
)
_NOT_MEASURED = "Not measured."
_HOW_INTRUDERS = "To measure it: allonym evaluate all ORIGINAL ANONYMISED --subject KEY --json evaluation.json"
_HOW_CARDS = "To measure it: allonym evaluate cards ORIGINAL ANONYMISED --json cards.json"
_LOG = (
    "A log of every replacement with its original is not part of this statement. Where one was kept, it lies encrypted "
    "in the vault, or in the plans of the run. Whoever keeps the originals protects it; allonym restore reads it."
)


def statement_page(
    run: Plain,
    *,
    evaluation: Plain | None = None,
    cards: Plain | None = None,
    reviews: Plain | None = None,
    files: int | None = None,
) -> Page:
    """The statement on a run.

    Args:
        run: the run's report, as ``RunReport.to_dict()`` gives it.
        evaluation: of originals and anonymised texts, as ``evaluate all --json`` writes it; None: not measured.
        cards: of persons, as ``evaluate cards --json`` writes them; None: not measured.
        reviews: how people read the texts, as a release's report has it; None: nobody told.
        files: number of files that were written, where the run's report is about others.
    """
    values = Values(run)
    people = _get_cards(cards)
    intrusion = tuple(describe_intruders(Values(evaluation))) if evaluation else ()
    missing = [] if intrusion else ["what intruders find"]
    missing += ["what is left about each person"] if people is None else []
    return Page(
        "Statement on an anonymisation",
        (
            Section("What was done", tuple(_describe_run(values, files)), "done"),
            Section("What was found and replaced", (_draw_findings(values),), "found"),
            Section("What was not read", tuple(_describe_unread_parts(values)), "unread"),
            Section("What could still identify somebody", tuple(_describe_people(people)), "people"),
            Section("What an intruder finds", (_describe_intrusion(intrusion),), "intruders"),
            Section("Who read the result", tuple(_describe_reviews(reviews)), "reviews"),
            Section("Decision", tuple(_draw_decision()), "decision"),
            Section("Methods, to paste into a paper", (Text(_write_methods(values)),), "methods"),
            Section("Appendix: certificate of the run", tuple(_draw_certificate(values)), "certificate"),
        ),
        lead=(Text(_write_summary(values, missing), "lead"), Notice(_NOT_GUARANTEED, "warning")),
    )


def _get_cards(cards: Plain | None) -> Values | None:
    """Return the numbers of cards of persons; None where there are none."""
    result = Values(cards or {})
    part = result.get_part("cards") if isinstance(result.get("cards"), Mapping) else result
    return part if "persons" in part else None


def _write_summary(run: Values, missing: Sequence[str]) -> str:
    documents, edits = _count_treated(run), _count_replaced(run)
    parts = [f"{count_nouns(documents, 'document')} went through allonym; {_count_places(edits)} replaced."]
    if lost := _count_lost(run):
        lost_items = count_nouns(lost, "file or record", "files and records")
        parts.append(f"Left out, because they could not be treated: {lost_items}.")
    if missing:
        parts.append(f"Not measured: {' and '.join(missing)}.")
    return " ".join(parts)


def _count_lost(run: Values) -> int:
    return int(run.get("quarantined") or 0) + len(run.get("refused") or ())


def _count_treated(run: Values) -> int:
    """Count the documents without the records that were left out, which the run counts as well."""
    return max(0, int(run.get("documents") or 0) - int(run.get("quarantined") or 0))


def _count_replaced(run: Values) -> int:
    """Count the places in which other words stand; what the policy keeps has a label, too."""
    return sum(number for name, number in _count_operations(run) if name != "keep")


def _count_operations(run: Values) -> list[tuple[str, int]]:
    """Count the places by operator, most first; an adapted article or quotation mark is no place."""
    return [row for row in _sort_counts(run.get_part("operators")) if row[0] not in ("article", "quote")]


def _count_places(number: int) -> str:
    return f"{count_nouns(number, 'place')} {'was' if number == 1 else 'were'}"


def _describe_run(run: Values, files: int | None) -> Iterator[Block]:
    settings = run.get_part("settings")
    written = count_nouns(int(run.get("files") or 0) if files is None else files, "file")
    yield Text(
        f"The policy {settings.get('policy')} decided what counts as identifying and what stands in its place. "
        f"The result is {written} with {int(run.get('characters') or 0):,} characters of text. The originals were not "
        "changed."
    )
    rows = tuple(Row((_OPERATIONS.get(name, name), number)) for name, number in _count_operations(run))
    if rows:
        yield Table("What stands there now", (Column("Instead of the words"), Column("Times", "count")), rows)
    if fields := [name for name in run.get_part("treated") if not is_beside_text(name)]:
        yield Text(
            f"In tables and records these fields were read: {', '.join(sorted(fields))}. Others stay as they are."
        )


def _draw_findings(run: Values) -> Block:
    rows = tuple(
        Row((TAXONOMY.get(name).description if name in TAXONOMY else name, number))
        for name, number in _sort_counts(run.get_part("labels"))
    )
    if not rows:
        return Notice(
            "Nothing was found, so nothing was replaced. Check that the right files and fields were read.", "warning"
        )
    return Table("", (Column("What it is"), Column("Times", "count")), rows)


def _sort_counts(counts: Mapping[str, Any]) -> list[tuple[str, int]]:
    return sorted(((name, int(number)) for name, number in counts.items()), key=lambda item: (-item[1], item[0]))


def _describe_unread_parts(run: Values) -> Iterator[Block]:
    items = []
    if refused := run.get("refused") or ():
        reasons = sorted({str(row["reason"]) for row in refused})
        items.append(
            f"Left out, because they could not be read: {count_nouns(len(refused), 'file')} ({'; '.join(reasons)})."
        )
    if number := int(run.get("quarantined") or 0):
        items.append(f"Put aside, because they could not be read: {count_nouns(number, 'record')}.")
    for name, number in _sort_counts(run.get_part("treated")):
        if is_beside_text(name):
            items.append(f"Beside the text: {name} ({number:,}).")
    if left := _sort_counts(run.get_part("left")):
        parts = ", ".join(f"{name} ({number:,})" for name, number in left)
        items.append(f"Not read, kept or dropped as the policy says, with the number of cells or parts: {parts}.")
    if unread := run.get_part("unread"):
        covered = UNREAD_TEXT in run.get_part("labels")
        sentence = describe_unread(unread, int(run.get("characters") or 0), is_covered=covered)
        items.insert(0, f"{sentence[0].upper()}{sentence[1:]}.")
    if number := int(run.get("exceptions") or 0):
        items.append(f"Covered all the same, in columns that stay: {count_nouns(number, 'cell')} with an identifier.")
    counts = {
        "Names of files": int(run.get("identifying_names") or 0),
        "Ids of records": int(run.get("identifying_ids") or 0),
        "Names of columns": len(run.get_part("identifying_headers")),
    }
    items += [f"{noun} that may identify somebody: {number:,}." for noun, number in counts.items() if number]
    yield (
        Notice("Look at these before you share the files.", "warning", tuple(items))
        if items
        else Text("Every part of the text was read.")
    )


def _describe_people(cards: Values | None) -> Iterator[Block]:
    if cards is None:
        yield Notice(f"{_NOT_MEASURED} {_HOW_CARDS}")
        return
    persons, limit = int(cards.get("persons") or 0), int(cards.get("limit") or 0)
    people = [card for card in cards.get("cards") or () if card.get("below")]
    yield Text(
        f"What is left about each of {count_nouns(persons, 'person')} was listed. {len(people):,} of them could be "
        f"singled out by somebody who knows them or looks them up: fewer than {limit:,} people fit what is left. "
        "Populations are rough estimates."
    )
    rows = tuple(
        Row((str(card["document"]), str(card["sort"]), ", ".join(sorted({str(f["kind"]) for f in card["facts"]}))))
        for card in people[:_MOST_EXAMPLES]
    )
    if rows:
        note = f"{len(people) - len(rows):,} more are in the cards' own report." if len(people) > len(rows) else ""
        heads = (Column("Document"), Column("How the text names the person"), Column("What is left, by kind"))
        yield Table("Who stands out (the words themselves are not shown)", heads, rows, note)


def _describe_intrusion(sentences: Sequence[str]) -> Block:
    return Text(" ".join(sentences)) if sentences else Notice(f"{_NOT_MEASURED} {_HOW_INTRUDERS}")


def _describe_reviews(reviews: Plain | None) -> Iterator[Block]:
    if not reviews:
        yield Notice(
            "Nobody is recorded to have read the result. Have somebody who knows the field read a sample.", "warning"
        )
        return
    result = Values(reviews)
    settled, documents = int(result.get("settled") or 0), int(result.get("documents") or 0)
    yield Text(
        f"Two people read {settled:,} of {count_nouns(documents, 'document')}; differences between them were settled."
    )
    if settled < documents:
        yield Notice(f"{count_nouns(documents - settled, 'document')} were released without that.", "warning")


def _draw_decision() -> Iterator[Block]:
    yield Text("Share with: ( ) nobody  ( ) named people under an agreement  ( ) registered users  ( ) the public")
    yield Text("Conditions, if any:")
    heads = (Column(""), Column("Name"), Column("Date"), Column("Signature"))
    tasks = ("Made by", "Read by", "Decided by")
    yield Table("", heads, tuple(Row((task, "", "", "")) for task in tasks))


def _write_methods(run: Values) -> str:
    settings, versions = run.get_part("settings"), run.get_part("versions")
    how = sorted(
        {
            _OPERATIONS.get(name, name).partition(" of the same kind")[0].partition(", such as")[0].partition(":")[0]
            for name, _ in _count_operations(run)
            if name != "keep"
        }
    )
    has_asked_model = bool(settings.get("endpoint"))
    where = "with a language model behind an address on the network" if has_asked_model else "offline"
    repeats = "" if has_asked_model else " The run can be repeated: the same input and key give the same bytes."
    means = "Rules, lists and a neural network" if "english model" in versions else "Rules and lists"
    return (
        f"We de-identified {count_nouns(_count_treated(run), 'document')} with allonym "
        f"{versions.get('allonym')} under its policy {settings.get('policy')} (fingerprint "
        f"{str(settings.get('fingerprint'))[:12]}), {where}. {means} find what identifies "
        f"people, organisations and places; {_count_places(_count_replaced(run))} replaced by "
        f"{' or '.join(how) or 'nothing'}.{repeats}"
    )


def _draw_certificate(run: Values) -> Iterator[Block]:
    settings, versions = run.get_part("settings"), run.get_part("versions")
    facts = (
        ("policy", str(settings.get("policy"))),
        ("policy's fingerprint", str(settings.get("fingerprint"))),
        ("key or vault", "yes" if settings.get("keyed") or settings.get("vault") else "no"),
        ("digest of what was written (BLAKE2b)", str(run.get("digest"))),
    )
    yield Settings((("Run", facts), ("Versions", tuple((name, str(value)) for name, value in versions.items()))))
    reader = run.get_part("reader")
    if reader.get("words"):
        yield Text(
            f"The originals have {int(reader['words']):,} words. In 100 words, {float(reader['replaced_per_100']):.1f} "
            f"places were replaced; of words in small letters, most of which identify nobody, "
            f"{float(reader['lower_case_per_100']):.1f}."
        )
    yield Text(_LOG)
