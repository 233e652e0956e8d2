"""``allonym harden``: generalise anonymised texts until intruders do no better than guessing whom they are about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from allonym.cli.evaluate.options import BACKGROUND, GROUP, Output, Source
from allonym.cli.options import ORIGINALS, RESUME, SEED, declare_output, declare_plans
from allonym.cli.outputs import check_outputs, open_stages_folder
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line
from allonym.settings import SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.evaluate.pairs import Pairs
    from allonym.plan import Plan


class Goal(SettingGroup):
    """When a text is hardened enough."""

    rank: int = declare_setting(1, "harden until the subject ranks worse than K", low=1, option="K")
    most_removed: float = declare_setting(
        0.6, "most of a group's content words to remove or generalise, as a share", low=0, high=1, option="SHARE"
    )
    least_similar: float | None = declare_setting(
        None, "least similarity of a text to its original", low=-1, high=1, option="COSINE"
    )
    frontier: bool = declare_setting(False, "measure stricter levels, too, for the table and the plot of the frontier")
    level: int | None = declare_setting(None, "write this level of the table, not the suggested one", low=0, option="N")
    seed: int = SEED


@click.command(short_help="Generalise words that still identify the subject of a text.")
@take_options
def harden(
    *,
    source: Source,
    subject: str | None = declare_setting(
        None, "metadata field with the subject of each text; required without --people", option="KEY"
    ),
    group: str | None = GROUP,
    background: Path | None = BACKGROUND,
    people: int | None = declare_setting(
        None,
        "harden for every person of each text instead: until K people at least fit what is left of each",
        low=2,
        option="K",
    ),
    target: Path | None = declare_output(option="-o, --output, --out PATH"),
    goal: Goal,
    plans: Path | None = declare_plans("new file"),
    originals: bool = ORIGINALS,
    resume: bool = RESUME,
    output: Output,
) -> None:
    """Harden ANONYMISED against intruders who know the tool, and other texts about the same subjects.

    With --people, no subjects are needed: of each person below K, ages, dates, places, occupations, relatives and
    health become more general until K people at least fit what is left, see "allonym evaluate cards".

    Round by round, words that point to the subject, even soft ones such as "ginger", are generalised, and phrases and
    sentences that mostly tell whom they are about are removed. It stops where all intruders do worse than
    guessing, or at --most-removed. Rare words and superlatives always go. For English texts.

    The first figure is what the worst intruder of a panel reaches on the hardened texts: rely on it. The levels form a
    frontier of risk against content kept; --level chooses another one.

    \b
    Examples:
      allonym harden original.jsonl safe.jsonl --subject subject -o hard.jsonl
      allonym harden original.jsonl safe.jsonl --people 5 --report cards.html -o hard.jsonl
      allonym harden original.jsonl safe.jsonl --subject subject --background biographies/ -o hard.jsonl
      allonym harden original/ safe/ --metadata who.csv --subject subject --report hardening.html -o hard/
      allonym harden study.jsonl --anonymised-field safe --subject subject --group class --frontier --report h.html
      allonym harden original.jsonl safe.jsonl --subject subject --frontier --level 7 -o hard.jsonl
    """
    if originals and plans is None:
        raise click.UsageError("--originals requires --plans")
    if (subject is None) == (people is None):
        raise click.UsageError("either --subject or --people is required; run the command twice for both")
    if people is not None and (group or background):
        raise click.UsageError("--group and --background require --subject")
    if target is None and plans is None and not output.paths:
        raise click.UsageError("an output is required: -o OUT, --plans, --report or --json")
    from allonym.files.items import check_targets_free

    outputs = [path for path in (target, plans) if path is not None]
    check_outputs(outputs, [path for path in (*source.paths, background) if path is not None], overwrite=True)
    check_targets_free([path for path in outputs if not path.is_dir()], [], output.overwrite)
    output.check_writable(*source.paths, *outputs, background)
    from allonym.evaluate.hardening import harden as measure
    from allonym.files.output import LinesFile

    pairs = source.read_pairs()
    if subject is None:
        from allonym.evaluate.card_hardening import harden_persons

        assert people is not None
        with output.show_progress("cards") as advance:
            persons = harden_persons(pairs.anonymised, pairs.original, ids=pairs.ids, limit=people, advance=advance)
        edited, key, data = [text.plan for text in persons.texts], "cards", persons.to_dict(output.with_text)
    else:
        subjects, groups = pairs.labels(subject), pairs.labels(group) if group else None
        public = source.read_background(background, subject)
        settings = {"groups": groups, "background": public, **vars(goal)}
        note = "finished rounds are kept in {}; --resume continues from there"
        kept_beside = [*outputs, *output.paths][0]
        with (
            open_stages_folder(kept_beside, "harden", note, resume=resume, overwrite=output.overwrite) as state,
            output.show_progress("hardening") as advance,
        ):
            result = measure(pairs.original, pairs.anonymised, subjects, state=state, advance=advance, **settings)
        edited, key, data = [text.plan for text in result.texts], "hardening", result.to_dict()
    if target is not None:
        rewrite_source(source, pairs, edited, target, output.overwrite)
    if plans is not None:
        lines = LinesFile(plans, private=originals)
        for name, plan in zip(pairs.ids, edited, strict=True):
            lines.write(format_json_line({"id": name, **plan.to_dict(originals=originals)}))
        lines.finish()
    output.write_measure(key, data)


def rewrite_source(source: Source, pairs: Pairs, plans: Sequence[Plan], target: Path, overwrite: bool) -> None:
    """Write the anonymised source again with the plans' edits."""
    from allonym.evaluate.pairs import rewrite_texts

    path, field = source.anonymised or source.original, source.anonymised_field or source.field
    rewrite_texts(path, target, pairs.anonymised, plans, field=field, format=source.format, overwrite=overwrite)
