"""``allonym evaluate syntheticity``: can a classifier tell pseudonymised texts from originals?"""

from __future__ import annotations

from typing import Any

import click

from allonym.cli.evaluate.options import (
    Output,
    Source,
    output_options,
    section_page,
    seed_option,
    show_estimates,
    source_options,
)
from allonym.cli.terminal import print_heading, print_table


@click.command(short_help="Measure whether a classifier tells pseudonymised texts from originals.")
@source_options
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="Folds of the cross-validation.")
@seed_option
@output_options
def syntheticity(source: Source, folds: int, seed: int, output: Output) -> None:
    """Measure how well a classifier tells ANONYMISED texts from ORIGINAL ones; lower is better.

    Both versions of a text are classified by models that saw neither of them. Guessing reaches an accuracy of 50 %.
    Revealing features are listed by kind; --with-text shows the features themselves, which are words of the texts.

    \b
    Examples:
      allonym evaluate syntheticity mails.jsonl mails_pseudonymised.jsonl
      allonym evaluate syntheticity mails/ pseudonymised/ --report syntheticity.html --with-text
    """
    output.check(source.paths)
    from allonym.evaluate.syntheticity import syntheticity as measure

    pairs = source.read()
    with output.progress("judging") as advance:
        result = measure(pairs.original, pairs.anonymised, folds=folds, seed=seed, advance=advance)
    values = result.to_dict(texts=output.with_text)

    def make_page() -> Any:
        from allonym.report.evaluate.syntheticity import syntheticity_section

        section = syntheticity_section(values, texts=output.with_text)
        return section_page("Syntheticity", (section,), f"{len(pairs):,} texts, seed {seed}")

    output.write({"syntheticity": values}, make_page)
    show_estimates(
        [
            ("precision", result.precision, "share"),
            ("recall", result.recall, "share"),
            ("F1", result.f1, "share"),
            ("accuracy", result.accuracy, "share"),
            ("told apart", result.told_apart, "share"),
        ],
        "of “pseudonymised”",
    )
    if result.unchanged:
        click.echo(f"{result.unchanged:,} of {len(pairs):,} texts are unchanged and left out")
    if result.kinds:
        print_heading("revealing features")
        kinds = sorted(result.kinds, key=lambda k: -k[1])
        print_table(["kind of feature", "share"], [[k, f"{100 * v:.0f} %"] for k, v in kinds], right=(1,))
    if output.with_text and result.signs:
        print_heading("features")
        rows = [[s.term, s.side, f"{s.weight:.3f}", s.pairs] for s in result.signs[:20]]
        print_table(["feature", "speaks for", "weight", "pairs"], rows, right=(2, 3))
