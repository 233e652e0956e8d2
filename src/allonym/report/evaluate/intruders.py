"""Intruders in a report: programs, people, language models and a red team that try to find whom texts are about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from allonym.report.page import Axis, Block, Chart, Guide, Matrix, Point, Series, Square
from allonym.report.panel import draw_panel
from allonym.report.sections import (
    BarChart,
    Folded,
    KeyFigures,
    Paragraph,
    Parts,
    PartsInRow,
    SectionSpec,
    ValueTable,
    Warn,
    draw_parts,
    make_verdict_colour,
)
from allonym.report.values import Plain, Values, format_number, get_missing_reason

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


def _list_groups(result: Values) -> list[Plain]:
    return [{**group, "name": str(group.get("name") or "no group")} for group in result.list_rows("groups")]


def _list_groups_and_all(result: Values) -> list[Plain]:
    return [*_list_groups(result), {**result.get_part("all"), "name": "all texts"}]


def _list_ranks(result: Values) -> list[Plain]:
    names = {"1": "first"}
    return [{**row, "name": names.get(row["name"], f"first {row['name']}")} for row in result.list_rows("ranks")]


def _list_attributes(result: Values) -> list[Plain]:
    lines = [*result.list_rows("attributes"), *filter(None, [result.get_part("all")])]
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

_REWRITING = """
    Something inferred | rates.0.after | share.1 | share of the texts, by the attacker of the rounds
    Unread             | unread        | count   | texts whose attack gave no usable answer; they count as found
    Words generalised  | generalised   | count   | words that became more general ones
    Words removed      | suppressed    | count
    Words              | words         | count   | words of the anonymised texts
    Phrases repaired   | repaired      | count   | phrases for which the model had no usable words
    Answers            | requests      | count   | answers of the endpoint, with those of the cache
    Tokens             | tokens        | count
"""
_REWRITING_LEAD = (
    "A language model infers facts about persons and names its grounds; then it proposes more general words for these, "
    "which are verified. What it infers at the end is a lower bound of the risk: measure the rewritten texts by other "
    "intruders, too."
)


def _list_curve(result: Values) -> list[Plain]:
    values = result.get("curve")
    curve = values if isinstance(values, list) else []
    return [{"name": f"after round {k}" if k else "as anonymised", "found": value} for k, value in enumerate(curve)]


rewriting_section = SectionSpec(
    "Adversarial rewriting",
    "rewriting",
    lambda result: result.get("rates"),
    (
        KeyFigures(_REWRITING, before={"Something inferred": "rates.0.before"}),
        Paragraph(_REWRITING_LEAD),
        ValueTable(
            "What is inferred",
            "rates",
            "What | name \n Before | before | share.1 | As anonymised \n After | after | share.1 | As rewritten",
        ),
        ValueTable("Round by round", _list_curve, "Texts | name \n Something inferred | found | share.1"),
        ValueTable("Refused", "refused", "Kind | name \n Count | count | count", when="refused"),
    ),
)

BEFORE, AFTER = 7, 0
_KNOWS = {
    "original": "original texts",
    "anonymised": "anonymised texts, as they are released,",
    "both": "texts, before and after anonymisation,",
}
_FEATURES = {
    "words": "n-grams of words",
    "characters": "n-grams of characters",
    "both": "n-grams of words and of characters",
    "encoder": "vectors of a sentence encoder",
    "all": "n-grams of words and of characters, and vectors of a sentence encoder",
}
_LINKAGE_RATES = """
    Group     | name
    Texts     | texts            | count    | Texts that were judged
    Subjects  | subjects         | count    | Candidates among whom the intruder chose
    Before    | before           | share.1  | Share of original texts whose subject comes first
    After     | after            | share.1  | The same after anonymisation
    Change    | change           | share.1  | After less before, paired
    Blind     | chance.value     | share.1  | The subject with most texts, guessed for all
"""
_TOP = "First {k} | top.{k}.after | share.1 | Subject among the first {k}, after anonymisation\n"
_RANKS = """
    1 / rank  | reciprocal.after | number.3 | Mean reciprocal rank after anonymisation: 1 where all subjects come first
    McNemar p | test.exact       | p        | Exact: were as many found after as before?
"""
_TERMS = """
    Subject            | subject
    Group              | group
    Where it was found | found  | | Terms that spoke most for the subject, the strongest first
    Where it was not   | missed | | Terms that spoke for the subject, and were not enough
"""


def _describe_linkage_intruder(result: Values) -> str:
    source = (
        f"other people's {_KNOWS.get(str(result.get('knows')), 'texts')} about the same subjects; it never learns from "
        "a text that it judges, nor from a copy"
        if result.get("folds")
        else "a background of texts about the same subjects, without copies of what it judges"
    )
    name = "the naive intruder" if result.get("knows") == "original" else "an intruder who knows the tool's output"
    features = _FEATURES.get(str(result.get("features")), str(result.get("features")))
    return (
        f"In detail, {name}: it links each text to the subject whose other texts it is most like. It has learnt "
        f"from {source}. It looks at {features}. It knows more than people who guess from the open world, and is no "
        "bound: whoever knows other things may find others."
    )


def _list_linkage_groups(result: Values) -> list[Values]:
    groups = [*result.list_rows("groups"), result.get_part("all")]
    return [Values({**group, "name": str(group.get("name") or "all texts")}) for group in groups]


def _specify_rate_columns(result: Values) -> str:
    """Return the columns of the table of rates, as fields of a section."""
    ks = sorted({int(k) for group in _list_linkage_groups(result) for k in group.get_part("top")} - {1})
    return _LINKAGE_RATES + "".join(_TOP.format(k=k) for k in ks) + _RANKS


def _draw_rank_curve(result: Values) -> Iterator[Block]:
    curve = result.list_rows("all.curve")
    if len(curve) < 2 or not result.has_estimate("all.after"):
        return
    series = []
    for name, slot in (("before", BEFORE), ("after", AFTER)):
        points = (
            Point(
                float(p["k"]),
                p.get_estimate(name).value,
                f"first {p['k']}",
                ((name, p.get_estimate(name)),),
            )
            for p in curve
        )
        series.append(Series(name.capitalize(), tuple(points), slot, "full"))
    most = float(curve[-1]["k"])
    yield Chart(
        "Rank curve: how many subjects must be looked at",
        Axis("First k subjects", "count", 1, most),
        Axis("Texts whose subject is among them", "share", 0, 1),
        tuple(series),
        (Guide("blind order", ((1.0, 1 / most), (most, 1.0))),),
        f"Share of texts whose subject is among the first k, up to all {format_number(most, 'count')} candidates.",
        "lower right",
    )


def _list_found_and_missed_terms(result: Values) -> list[Plain]:
    lists = ("found", "missed")
    return [
        {**row, **{name: [term for term, _ in row.get(name) or ()] for name in lists}}
        for row in result.list_rows("terms")
    ]


def _explain_missing_linkage(result: Values) -> str:
    return get_missing_reason(result.get_value("all.after")).capitalize() + "."


linkage_section = SectionSpec(
    "Intruders: who is identified",
    "linkage",
    "all",
    (
        draw_panel,
        Paragraph(_describe_linkage_intruder),
        BarChart(
            "Texts whose subject comes first",
            Axis("Share of texts", "share", 0, 1),
            _list_linkage_groups,
            f"Before | before | .{BEFORE} \n After | after | .{AFTER}",
            "chance",
            "guessing blindly",
            "Before and after anonymisation, with the rate of guessing blindly.",
            "Whiskers: Wilson, 95 %. The tick is the subject with most texts, guessed for all.",
            when="all.after",
        ),
        ValueTable(
            "Found before and after",
            _list_linkage_groups,
            _specify_rate_columns,
            "Below each value: its 95 % interval.",
            when="all.after",
        ),
        _draw_rank_curve,
        Paragraph(_explain_missing_linkage, "muted", when=lambda result: not result.has_estimate("all.after")),
        Folded(
            "The table that all intruders share, anonymised texts",
            (*RATES, replace(SUBJECTS, texts=True)),
            "results",
            when="results.all",
        ),
        Folded(
            "What gave subjects away",
            (
                ValueTable(
                    "",
                    _list_found_and_missed_terms,
                    _TERMS,
                    "Anonymised texts, from a program; people were asked by Kleinberg et al. 2022.",
                    30,
                ),
            ),
            texts=True,
            when="terms",
        ),
    ),
)


_METHOD = (
    "A guess counts by the cosine of its characters with those of the true name; the judgements of a text are "
    "averaged, and the text counts as identified where that reaches {cut:g}. Whoever names nobody has a similarity of "
    "0."
)
_PEOPLE = "{judges:,} judge{judges:s} made {judgements:,} judgements. " + _METHOD
_MODEL = "A language model made {judgements:,} judgements. " + _METHOD
_FIGURES = """
    Identified           | results.all.identified | share.2 | share of the texts
    Found by any judge   | found_by_any | share.2  | of the texts, by at least one judge, without averaging
    Claims that are true | trusted      | share.1  | of those who said yes
    Judges agree         | alike        | number.2 | Krippendorff's alpha: 1 always, 0 by chance
"""
_TRUTH = {
    "per_text": "judgements a text, mean and SD",
    "agreement": "share of judgements that agree",
    "chance_corrected": "Cohen's kappa",
    "by_chance": "right by mere likeness of names",
}
_TRUTH_NOTE = (
    "Kleinberg et al. 2022 report the share; where few are found it is high by chance, kappa is not. The last line "
    "says how often a guess passes for another subject, since only the characters of names are counted."
)
_SENSITIVE = "The following words are from what people wrote, and may identify somebody."


def _are_judges_people(result: Values) -> bool:
    return bool(result.get_value("results.intruder") == "people")


def _draw_judged_rates(result: Values) -> Iterator[Block]:
    yield from draw_parts((*RATES, SUBJECTS), result.get_part("results"))


def _count_claims(result: Values) -> int:
    return sum(int(count) for count in result.get_part("claims").values())


def _draw_claims_matrix(result: Values) -> Iterator[Block]:
    claims, total = result.get_part("claims"), _count_claims(result)

    def draw_line(name: str) -> tuple[Square, ...]:
        counts = (int(claims.get(f"{name}_{truth}") or 0) for truth in ("right", "wrong"))
        return tuple(Square(count, count / total) for count in counts)

    lines = (("said yes", draw_line("claimed")), ("said no", draw_line("denied")))
    yield Matrix("What judges said of themselves", ("found", "not found"), lines, "judgements", "count")


def _list_people_terms(result: Values) -> list[Plain]:
    return [{"name": name, "terms": [term for term, _ in pairs]} for name, pairs in result.items()]


_NGRAMS = "N-gram | 0 \n Times | 1 | count"
people_section = SectionSpec(
    lambda result: f"{'People who' if _are_judges_people(result) else 'A language model that'} tried to identify",
    lambda result: "people" if _are_judges_people(result) else "language-model",
    "results.all",
    (
        Paragraph(_PEOPLE, when=_are_judges_people),
        Paragraph(_MODEL, when=lambda result: not _are_judges_people(result)),
        KeyFigures(_FIGURES),
        Warn("{unread:,} texts have no judgement and are in no rate.", "warning", when="unread"),
        _draw_judged_rates,
        PartsInRow(
            (
                _draw_claims_matrix,
                ValueTable("Said and true", _TRUTH, "What | name \n Value | value | number.3", _TRUTH_NOTE),
            ),
            when=_count_claims,
        ),
        Warn(_SENSITIVE, "sensitive", texts=True, when="terms"),
        PartsInRow(
            (
                ValueTable("What revealed the person", "terms.revealed_all", _NGRAMS),
                ValueTable("What was learnt where nobody was found", "terms.kept_all", _NGRAMS),
            ),
            texts=True,
            when="terms",
        ),
        *(
            Folded(
                title,
                (ValueTable(title, _list_people_terms, "Subject | name \n Most frequent n-grams | terms"),),
                f"terms.{name}",
                texts=True,
                when=f"terms.{name}",
            )
            for name, title in (
                ("revealed", "What revealed each subject"),
                ("kept", "What was learnt of each subject"),
            )
        ),
    ),
)


_RED_TEAM_FIGURES = """
    Fully anonymised    | total.clean      | share.1 | of {total.conversations}
    Something left      | total.residual   | share.1
    Somebody identified | total.identified | share.1 | the goal is none
"""
_STRATA = """
    Stratum             | name
    Reviewed            | conversations | count
    Fully anonymised    | clean         | share.1
    Something left      | residual      | share.1
    Somebody identified | identified    | share.1
"""
_LEAD = "People tried to identify the speakers in a sample of the conversations, as in Gardiner et al. 2024 (4.5)."
_OPEN = "{open:,} conversation{open:s} of the sample {open:was} not reviewed and so not counted."
_READING = (
    "That nobody was identified holds for these people, this sample and this effort. The upper end of the interval is "
    "what the sample cannot rule out."
)
_AGREEMENT = "Agreement | agreement | share.1 | on {twice:,} reviewed twice"

red_team_section = SectionSpec(
    "Red team",
    "red-team",
    "total",
    (
        Paragraph(_LEAD, "lead"),
        KeyFigures(_RED_TEAM_FIGURES, {"Somebody identified": make_verdict_colour("achieved")}),
        Warn(_OPEN, "warning", when="open"),
        ValueTable("By stratum", lambda r: [*r.list_rows("strata"), r.get_part("total")], _STRATA, when="strata"),
        ValueTable("What was found", "types", "Left | 0 \n Conversations | 1 | count", shown=25, when="types"),
        KeyFigures(_AGREEMENT, when="twice"),
        Paragraph(_READING, "muted"),
    ),
)
