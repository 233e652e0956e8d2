"""The result table of an intruder: rates over all texts, per group and per subject (P3 Tables 3, 4 and 7)."""

from __future__ import annotations

from allonym.report.plots import Axis
from allonym.report.sections import BarChart, Folded, Paragraph, Parts, SectionSpec, ValueTable
from allonym.report.values import Plain, list_rows, read_part, read_rows

_RATES = """
    Texts      | texts      | count
    Similarity | similarity | number.2 | Mean similarity of the guess with the truth, 0 to 1, over the texts
    SD         | spread     | number.2 | Standard deviation of the similarity over the texts
    Identified | identified | share.2  | Share of texts whose subject was found, with Wilson's interval
    SE         | error      | share.2  | Standard error of that share: SD (n - 1) / √n
"""
_ATTRIBUTES = """
    Attribute                    | name
    Texts                        | texts      | count
    Guessed                      | guessed    | share.1 | Share of texts with a guess at all
    First right                  | first      | share.1 | Share whose first guess is right
    First right or less precise  | first_less | share.1 | Such as the country of a city
    Any right                    | any        | share.1 | Share with a right guess among all
    Any right or less precise    | any_less   | share.1
"""
_ATTRIBUTES_LEAD = (
    "What can be inferred about people whom nobody names: guesses for each attribute, scored by rules (Staab et al. "
    "2023). Compare with the same on the original texts, and with guessing the most frequent value."
)


def _list_groups(result: Plain) -> list[Plain]:
    return [{**group, "name": str(group.get("name") or "no group")} for group in list_rows(result, "groups")]


def _list_groups_and_all(result: Plain) -> list[Plain]:
    return [*_list_groups(result), {**read_part(result, "all"), "name": "all texts"}]


def _list_ranks(result: Plain) -> list[Plain]:
    names = {"1": "first"}
    return [{**row, "name": names.get(row["name"], f"first {row['name']}")} for row in read_rows(result, "ranks")]


def _list_attributes(result: Plain) -> list[Plain]:
    lines = [*list_rows(result, "attributes"), *filter(None, [read_part(result, "all")])]
    return [{**row, "name": str(row.get("attribute") or "all")} for row in lines]


RATES: Parts = (
    ValueTable("How often the subject was found", _list_groups_and_all, f"Group | name \n {_RATES}"),
    BarChart(
        "Texts whose subject was found",
        Axis("Identified", "share", 0),
        _list_groups,
        "Identified | identified",
        description="Whiskers: Wilson, 95 %.",
        when="groups",
    ),
    ValueTable("Within how many guesses", _list_ranks, "Guesses | name \n Found | value | share.2", when="ranks"),
)
"""The table of all texts and groups, a chart of it, and top-k where guesses are ranked."""

_BY_SUBJECT = ValueTable(
    "Subject by subject", "subjects", f"Subject | name \n Group | group | | | subjects.0.group \n {_RATES}", shown=20
)
SUBJECTS = Folded("Every subject", (_BY_SUBJECT,), when="subjects")
"""The same table by subject, folded away."""

attributes_section = SectionSpec(
    "Attributes",
    "attributes",
    _list_attributes,
    (
        Paragraph(_ATTRIBUTES_LEAD),
        ValueTable("How often attributes were inferred", _list_attributes, _ATTRIBUTES),
    ),
)
