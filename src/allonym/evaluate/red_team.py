"""The red team of P2 (section 4.5): people try to identify somebody in a sample of the anonymised conversations.

A seeded sample is drawn, stratified by context; each conversation becomes a form with its text; the team fills in what
it found; the findings are read back and summed up as P2 does: of 200 conversations 181 (90.5 %) fully anonymised, 19
with residual PI, nobody identified. Forms hold no marks of what was missed, as in P2 (footnote 12).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from allonym.errors import DataError, UnknownNameError, UsageError, hide_foreign_errors
from allonym.evaluate.marking import Marked, make_missed_tag, parse_missed_tag
from allonym.evaluate.pairs import group_items, prefix_data_errors, write_rows
from allonym.evaluate.residual import read_groups
from allonym.serial import Serialisable
from allonym.stats import Estimate
from allonym.stats.samples import share

FORMS = ("md", "jsonl", "csv")
"""How forms are written."""
ALL = ""
"""The stratum where there are none."""

_QUESTIONS: Mapping[str, str] = {
    "reviewer": "Reviewer (a code, no name)",
    "residual": "Is any personal information left? (yes/no)",
    "types": "Of which types? (such as PERSON_NAME_PARTIAL, EMAIL; several with commas)",
    "identified": "Could you identify anybody, by any means? (yes/no)",
    "how": "How, or what you tried (no names)",
    "minutes": "Minutes spent",
}
_FIELDS = ("number", "id", "stratum", *_QUESTIONS, "text")
_BEGIN = re.compile(r"^## Conversation (\d+): (\S.*)$", re.MULTILINE)
_YES = frozenset({"yes", "y", "true", "1", "x"})
_NO = frozenset({"no", "n", "false", "0"})


@dataclass(frozen=True, slots=True, repr=False)
class Form:
    """A conversation for the red team.

    Attributes:
        number: from 1, in the order of the sample.
        id, stratum: of the conversation. Hidden from ``repr``, as is ``text``.
    """

    number: int
    id: str
    stratum: str
    text: str = field(repr=False)

    def __repr__(self) -> str:
        return f"Form({self.number}, {len(self.text)} characters)"


@dataclass(frozen=True, slots=True)
class Finding:
    """The findings of one reviewer in one conversation.

    Attributes:
        id, stratum: the conversation's.
        residual: some personal information is left; None: not filled in.
        identified: somebody was identified; None: not filled in.
        types: tags of what is left, without ``MISSED_``.
        minutes: spent; NaN: not filled in.
        reviewer, how: as filled in. Hidden from ``repr``.
    """

    id: str
    stratum: str = ALL
    residual: bool | None = None
    identified: bool | None = None
    types: tuple[str, ...] = ()
    minutes: float = float("nan")
    reviewer: str = field(default="", repr=False)
    how: str = field(default="", repr=False)


class Stratum(Serialisable):
    """The findings of the red team in the conversations of a stratum; shares with Wilson's interval.

    Attributes:
        name: the stratum; ``Total`` for all.
        conversations: reviewed ones.
        clean: share in which no personal information was found (P2: fully anonymised).
        residual: share in which some was. identified: share in which somebody was identified.
    """

    name: str
    conversations: int
    clean: Estimate
    residual: Estimate
    identified: Estimate


class RedTeam(Serialisable):
    """The red team's result. It holds no text and no remark.

    Attributes:
        total, strata: shares over all reviewed conversations, and by stratum.
        open: conversations that nobody has filled in.
        reviewers: how many have filled in a form; twice: conversations with two reviewers and more.
        agreement: of those, the share in which all agree on whether something is left.
        types: (tag, conversations in which it was found), the most frequent first.
        minutes: spent by all.
        identified: ids of conversations in which somebody was identified; residual: those where something is left.
    """

    KEYS = (
        *("total", "strata", "open", "reviewers", "twice", "agreement", "types", "minutes"),
        *("achieved", "identified", "residual"),
    )

    total: Stratum
    strata: tuple[Stratum, ...]
    open: int
    reviewers: int
    twice: int
    agreement: Estimate
    types: tuple[tuple[str, int], ...]
    minutes: Estimate
    identified: tuple[str, ...]
    residual: tuple[str, ...]

    @property
    def achieved(self) -> bool | None:
        """P2's goal: nobody was identified; None where no conversation was reviewed."""
        return not self.identified if self.total.conversations else None


def red_team_sample(conversations: Sequence[Marked], n: int = 200, *, by: str = "", seed: int = 0) -> tuple[Form, ...]:
    """Draw a sample for the red team: ``n`` conversations, proportional to the strata (largest remainder).

    Each stratum gets one at least where ``n`` allows that. The order is drawn, too, so that reviewers who stop early
    leave a sample of all strata.

    Args:
        conversations: anonymised; their ids differ.
        n: how many; all where there are fewer.
        by: metadata field of the strata, such as the context (P2: support, meetings, sales ...); empty: one stratum.
        seed: of the draw.

    Raises:
        UsageError: ``n`` is below 1. DataError: no conversations, or two with one id.
        UnknownNameError: no conversation has the field.
    """
    if n < 1:
        raise UsageError(f"n: a number from 1 is required, got {n}")
    if not conversations:
        raise DataError("one conversation at least is required, got 0")
    if len({c.id for c in conversations}) < len(conversations):
        raise DataError(f"{len(conversations)} conversations need as many ids; some stand there twice")
    strata = read_groups(conversations, by)
    members_of = group_items(range(len(strata)), strata.__getitem__)
    sizes = {name: len(members_of[name]) for name in sorted(members_of)}
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    for name, count in _allocate_to_strata(sizes, min(n, len(conversations))).items():
        chosen += sorted(members_of[name][j] for j in rng.permutation(sizes[name])[:count])
    order = [chosen[j] for j in rng.permutation(len(chosen))]
    return tuple(
        Form(number, conversations[i].id, strata[i], conversations[i].text) for number, i in enumerate(order, 1)
    )


def write_forms(forms: Sequence[Form], kind: str = "md") -> str:
    """Write forms to fill in: one Markdown document, or JSON Lines or CSV with a record for each.

    Raises:
        UnknownNameError: no such kind.
    """
    if kind not in FORMS:
        raise UnknownNameError("kind of forms", kind, FORMS)
    rows = [
        {"number": f.number, "id": f.id, "stratum": f.stratum, **dict.fromkeys(_QUESTIONS, ""), "text": f.text}
        for f in forms
    ]
    if kind != "md":
        return write_rows(rows, _FIELDS, kind)
    pieces = [_GUIDE]
    for form in forms:
        if "\n" in form.id or form.id != form.id.strip():
            raise DataError(f"conversation {form.number}: its id does not fit a heading; use jsonl or csv")
        fence = "~" * (3 + max((len(run) for run in re.findall("~+", form.text)), default=0))
        answers = "\n".join(f"- {name}: {question}\n  > " for name, question in _QUESTIONS.items())
        pieces.append(
            f"## Conversation {form.number}: {form.id}\n\nstratum: {form.stratum}\n\n"
            f"{fence}text\n{form.text}\n{fence}\n\n{answers}\n"
        )
    return "\n".join(pieces)


def read_forms(data: str, kind: str = "md", where: str = "") -> tuple[Finding, ...]:
    """Read the findings in filled forms. Forms of several reviewers may follow one another.

    Args:
        data: what :func:`write_forms` wrote, filled in.
        kind: of the forms.
        where: names them in errors.

    Raises:
        DataError: not such forms; an answer is neither yes nor no; a type or a number of minutes is not one; somebody
            is identified where nothing is left. The message tells the conversation, never what was written.
    """
    if kind not in FORMS:
        raise UnknownNameError("kind of forms", kind, FORMS)
    with prefix_data_errors(where):
        rows = {"md": _read_markdown_rows, "jsonl": _read_json_rows, "csv": _read_csv_rows}[kind](data)
        if not rows:
            raise DataError("there is no form in it")
        return tuple(map(_read_finding, rows))


def red_team_summary(findings: Sequence[Finding]) -> RedTeam:
    """Summarise the red team's findings with Wilson's intervals, in all and by stratum (P2: 181 of 200 clean, 0
    identified).

    A conversation with several reviewers counts with the worst that any of them found. Those that nobody has filled in
    do not count; they are told.

    Raises:
        DataError: there are no findings, or a reviewer, by the code filled in, judged a conversation twice.
    """
    if not findings:
        raise DataError("one finding at least is required, got 0")
    signed = Counter((f.id, f.reviewer) for f in findings if f.reviewer and f.residual is not None)
    if twice := sum(n > 1 for n in signed.values()):
        raise DataError(f"{twice} conversations are judged twice by one and the same reviewer; once is required")
    by_id = group_items(findings, lambda finding: finding.id)
    filled = {id: [f for f in findings_of if f.residual is not None] for id, findings_of in by_id.items()}
    reviewed = {id: findings_of for id, findings_of in filled.items() if findings_of}
    strata = group_items(reviewed.values(), lambda findings_of: findings_of[0].stratum)
    types = Counter(t for findings_of in reviewed.values() for t in sorted({t for f in findings_of for t in f.types}))
    several = [findings_of for findings_of in reviewed.values() if len(findings_of) > 1]
    agreed = sum(len({f.residual for f in findings_of}) == 1 for findings_of in several)
    judgements = [f for findings_of in reviewed.values() for f in findings_of]
    minutes = [f.minutes for f in judgements if f.minutes == f.minutes]
    return RedTeam(
        _summarise_stratum("Total", list(reviewed.values())),
        tuple(_summarise_stratum(name, strata[name]) for name in sorted(strata)) if strata.keys() != {ALL} else (),
        len(by_id) - len(reviewed),
        len({f.reviewer for f in judgements if f.reviewer}),
        len(several),
        share(agreed, len(several)),
        tuple(sorted(types.items(), key=lambda pair: (-pair[1], pair[0]))),
        Estimate.exact(float(sum(minutes)), len(minutes)),
        tuple(id for id, findings_of in reviewed.items() if any(f.identified for f in findings_of)),
        tuple(id for id, findings_of in reviewed.items() if any(f.residual for f in findings_of)),
    )


def _summarise_stratum(name: str, conversations: Sequence[Sequence[Finding]]) -> Stratum:
    n = len(conversations)
    residual = sum(any(f.residual for f in findings) for findings in conversations)
    identified = sum(any(f.identified for f in findings) for findings in conversations)
    return Stratum(name, n, share(n - residual, n), share(residual, n), share(identified, n))


def _allocate_to_strata(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Allocate ``n`` to the strata in proportion, by largest remainder, with at least one each where possible."""
    total = sum(sizes.values())
    exact = {name: n * size / total for name, size in sizes.items()}
    out = {name: int(value) for name, value in exact.items()}
    for name in sorted(sizes, key=lambda s: (out[s] - exact[s], s))[: n - sum(out.values())]:
        out[name] += 1
    for name in [s for s in sizes if not out[s]] if n >= len(sizes) else ():
        richest = max(out, key=lambda s: (out[s], s))
        out[richest] -= 1
        out[name] += 1
    return out


def _read_finding(row: Mapping[str, Any]) -> Finding:
    id = str(row.get("id") or "")
    if not id:
        raise DataError("a form without the id of its conversation")
    with prefix_data_errors(f"conversation {id}"):
        residual, identified = (_parse_yes_no(row.get(name), name) for name in ("residual", "identified"))
        names = re.split(r"[,;\s]+", str(row.get("types") or ""))
        types = tuple(dict.fromkeys(_normalise_missed_tag(name) for name in names if name))
        if residual is None and (types or identified):
            residual = True
        if residual is False and (types or identified):
            raise DataError("something was found or somebody identified, and nothing is said to be left")
        words = str(row.get("minutes") or "").strip().replace(",", ".")
        try:
            minutes = float(words) if words else float("nan")
        except ValueError:
            minutes = -1.0
        if minutes < 0:
            raise DataError("minutes: a number is required")
    reviewer, how = (str(row.get(name) or "").strip() for name in ("reviewer", "how"))
    return Finding(id, str(row.get("stratum") or ALL), residual, identified, types, minutes, reviewer, how)


def _parse_yes_no(value: object, name: str) -> bool | None:
    word = str("" if value is None else value).strip().rstrip(".").lower()
    if word and word not in _YES | _NO:
        raise DataError(f"{name}: yes or no is required")
    return word in _YES if word else None


def _normalise_missed_tag(name: str) -> str:
    try:
        label, partial = parse_missed_tag(name.strip("()[]").upper().removeprefix("MISSED_"))
    except UnknownNameError:
        raise DataError("types: one of them is not known; see: allonym labels --scheme p2") from None
    return make_missed_tag(label, partial=partial)


def _read_json_rows(data: str) -> list[Mapping[str, Any]]:
    out: list[Mapping[str, Any]] = []
    for number, line in enumerate(data.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise DataError(f"line {number}: a JSON object is required")
        out.append(row)
    return out


def _read_csv_rows(data: str) -> list[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(data.removeprefix("\ufeff"), newline=""))
    if lacking := [n for n in ("id", "residual", "identified") if n not in (reader.fieldnames or ())]:
        raise DataError(f"a column {lacking[0]} is required")
    with hide_foreign_errors("not valid CSV, or a text is too long for it: use jsonl", csv.Error):
        return list(reader)


def _read_markdown_rows(data: str) -> list[Mapping[str, Any]]:
    out: list[dict[str, str]] = []
    fence = name = ""
    for line in data.replace("\r\n", "\n").split("\n"):
        if fence:
            fence = "" if line == fence else fence
        elif (heading := _BEGIN.fullmatch(line)) is not None:
            out.append({"id": heading[2].strip(), "stratum": ""})
            name = ""
        elif out and line.startswith("~~~") and line.endswith("text"):
            fence = line.removesuffix("text")
        elif out and line.startswith("stratum: "):
            out[-1]["stratum"] = line.removeprefix("stratum: ").strip()
        elif out and (question := re.match(r"- (\w+):", line)) and question[1] in _QUESTIONS:
            name = question[1]
            if answer := line[question.end() :].strip().removeprefix(_QUESTIONS[name]).strip():
                out[-1][name] = answer
        elif name and line.strip():
            answer = line.strip().removeprefix(">").strip()
            out[-1][name] = f"{out[-1].get(name, '')} {answer}".strip()
    if fence:
        raise DataError(f"conversation {out[-1]['id']}: its text has no end")
    return list(out)


_GUIDE = """# Red team

Act as somebody who wants to know who speaks, or who is spoken of, in these anonymised conversations. Use whatever a
stranger could use: search engines, public registers, inference. Write each answer behind its `>`; do not write down the
names of people whom you find. Leave conversations that you do not get to blank.

"""
