"""What people, or a language model in their place, made of anonymised texts (P3 3.2.3, Tables 3 to 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from allonym.report.evaluate.intruders import results_blocks
from allonym.report.page import (
    Beside,
    Block,
    Column,
    Details,
    Figure,
    Figures,
    Matrix,
    Notice,
    Row,
    Section,
    Square,
    Table,
    Text,
)
from allonym.report.swap.given import Plain, estimate, part


def people_section(result: Plain, *, texts: bool = False) -> Section | None:
    """Rates, agreement and, where ``texts`` says so, the n-grams of the reasons.

    Args:
        result: what :meth:`allonym.evaluate.people.PeopleStudy.to_dict` gives.
        texts: whether words that people wrote may show; they are there only if ``result`` has them.
    """
    results = part(result, "results")
    whole = part(results, "all")
    if not whole:
        return None
    judges, judgements = int(result.get("judges") or 0), int(result.get("judgements") or 0)
    unread = int(result.get("unread") or 0)
    people = results.get("intruder") == "people"
    who = f"{judges:,} judge{'s' * (judges != 1)}" if people else "A language model"
    blocks: list[Block] = [
        Text(
            f"{who} made {judgements:,} judgements. A guess counts by the cosine of its characters with those of the "
            "true name; the judgements of a text are averaged, and the text counts as identified where that reaches "
            f"{float(result.get('cut') or 0):g}. Whoever names nobody has a similarity of 0."
        ),
        Figures(
            (
                Figure("Identified", estimate(whole.get("identified")), "share of the texts", "share", 2),
                Figure(
                    "Found by any judge",
                    estimate(result.get("found_by_any")),
                    "share of the texts that at least one judge found, without averaging",
                    "share",
                    2,
                ),
                Figure("Claims that are true", estimate(result.get("trusted")), "of those who said yes", "share", 1),
                Figure(
                    "Judges agree",
                    estimate(result.get("alike")),
                    "Krippendorff's alpha: 1 always, 0 by chance",
                    "number",
                    2,
                ),
            )
        ),
    ]
    if unread:
        blocks.append(Notice(f"{unread:,} texts have no judgement and are in no rate.", "warning"))
    blocks += [*results_blocks(results), *_claims(result)]
    if texts:
        blocks += _terms(part(result, "terms"))
    title = "People who tried to identify" if people else "A language model that tried to identify"
    return Section(title, tuple(blocks), "people" if people else "language-model")


def _claims(result: Plain) -> list[Block]:
    claims = part(result, "claims")
    total = sum(int(n) for n in claims.values())
    if not total:
        return []

    def square(name: str) -> Square:
        n = int(claims.get(name) or 0)
        return Square(n, n / total)

    return [
        Beside(
            (
                Matrix(
                    "What judges said of themselves",
                    ("found", "not found"),
                    (
                        ("said yes", (square("claimed_right"), square("claimed_wrong"))),
                        ("said no", (square("denied_right"), square("denied_wrong"))),
                    ),
                    "judgements",
                    "count",
                ),
                Table(
                    "Said and true",
                    (Column("What"), Column("Value", "number", 3)),
                    (
                        Row(("judgements a text, mean and SD", estimate(result.get("per_text")))),
                        Row(("share of judgements that agree", estimate(result.get("agreement")))),
                        Row(("Cohen's kappa", estimate(result.get("chance_corrected")))),
                        Row(("right by mere likeness of names", estimate(result.get("by_chance")))),
                    ),
                    "P3 reports the share; where few are found it is high by chance, kappa is not. The last line says "
                    "how often a guess passes for another subject, since only the characters of names are counted.",
                ),
            )
        )
    ]


def _terms(terms: Plain) -> list[Block]:
    if not terms:
        return []
    out: list[Block] = [
        Notice("The following words are from what people wrote, and may identify somebody.", "sensitive"),
        Beside(
            (
                _top("What revealed the person", terms.get("revealed_all")),
                _top("What was learnt where nobody was found", terms.get("kept_all")),
            )
        ),
    ]
    for name, title in (("revealed", "What revealed each subject"), ("kept", "What was learnt of each subject")):
        of = terms.get(name)
        if isinstance(of, Mapping) and of:
            lines = tuple(Row((str(subject), ", ".join(t for t, _ in _pairs(found)))) for subject, found in of.items())
            table = Table(title, (Column("Subject"), Column("Most frequent n-grams")), lines)
            out.append(Details(title, (table,)))
    return out


def _top(title: str, found: object) -> Table:
    lines = tuple(Row((term, count)) for term, count in _pairs(found))
    return Table(title, (Column("N-gram"), Column("Times", "count")), lines)


def _pairs(found: object) -> list[tuple[str, int]]:
    if not isinstance(found, Sequence):
        return []
    return [(str(pair[0]), int(pair[1])) for pair in found if isinstance(pair, Sequence) and len(pair) == 2]
