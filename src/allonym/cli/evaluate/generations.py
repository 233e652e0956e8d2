"""``allonym evaluate generations``: originals in the outputs of a model, found by keyed digests (P2, 5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.evaluate.options import Output, output_options, section_page, show_estimates
from allonym.cli.options import format_option, open_vault, vault_options
from allonym.cli.terminal import print_note, print_table

if TYPE_CHECKING:
    from allonym.evaluate.generations import GenerationLeaks
    from allonym.vault import Digests

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Search a model's outputs for originals, by digests (P2).")
@click.argument("outputs", type=click.Path(exists=True, path_type=Path))
@click.option(
    "--digests", type=_FILE, metavar="FILE", help="File with digests of the originals; see: allonym vault digests."
)
@vault_options
@click.option("--baseline", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="Outputs of a model that never saw the data, to estimate matches by chance.")  # fmt: skip
@click.option("--field", multiple=True, metavar="NAME", help="Column or dotted path of the text. Repeatable.")
@format_option
@click.option("--label", multiple=True, metavar="LABEL",
              help="Only originals with this label or one below it. Repeatable.")  # fmt: skip
@click.option("--common", type=click.FloatRange(3, 9), default=4.0, show_default=True, metavar="ZIPF",
              help="Count words of at least this Zipf frequency separately; 4: ten per million words.")  # fmt: skip
@click.option("--language", default="en", show_default=True, metavar="CODE", help="Language of the word frequencies.")
@click.option("--fail", type=click.FloatRange(0, 1), metavar="SHARE",
              help="Exit with 1 if a larger share of the outputs contains an original; 0: if any does.")  # fmt: skip
@output_options
def generations(
    outputs: Path,
    digests: Path | None,
    vault: str | None,
    scope: str,
    secret_file: Path | None,
    secret_env: str | None,
    secret_keyring: str | None,
    baseline: Path | None,
    field: tuple[str, ...],
    format: str | None,
    label: tuple[str, ...],
    common: float,
    language: str,
    fail: float | None,
    output: Output,
) -> None:
    """Search OUTPUTS of a model for originals, also in other case, in part, shortened or with one letter changed.

    The search needs keyed digests, not the originals, and shows positions, never text. Common words and single
    initials are counted separately. The exit code is 1 only with --fail.

    \b
    Examples:
      allonym evaluate generations outputs.jsonl --field completion --digests calls.digests
      allonym evaluate generations outputs.jsonl --digests calls.digests --baseline before.jsonl --report leaks.html
      allonym evaluate generations outputs.jsonl --vault calls.vault --secret-file calls.key --fail 0
    """
    from allonym.evaluate.generations import generations as look

    if (digests is None) == (vault is None):
        raise click.UsageError("one of --digests and --vault is required")
    if digests is not None and (scope or secret_file or secret_env or secret_keyring):
        raise click.UsageError("--scope and the options for the secret require --vault")
    if output.with_text:
        raise click.UsageError("--with-text is not available: only positions in the outputs are shown")
    output.check([outputs, *(p for p in (baseline, digests) if p is not None)])
    originals = _load_digests(digests, vault, scope, secret_file, secret_env, secret_keyring)
    with output.progress("outputs") as advance:
        result = look(
            _read_texts(outputs, field, format),
            originals,
            baseline=None if baseline is None else (text for _, text in _read_texts(baseline, field, format)),
            labels=[name.upper() for name in label],
            common=common,
            language=language,
            advance=None if advance is None else lambda count: advance(count, count),
        )
    data = result.to_dict()
    show_generations(result)

    def make_page() -> Any:
        from allonym.report.evaluate.generations import generations_section

        return section_page("Originals in generations", [generations_section(data)])

    output.write({"generations": data}, make_page)
    if fail is not None and result.all.outputs.value > fail:
        print_note(
            f"{result.all.outputs.value:.2%} of the outputs contain an original, more than {fail:g} of them",
            label="error:",
        )
        raise click.exceptions.Exit(1)


def _load_digests(
    file: Path | None, vault: str | None, scope: str, secret: Path | None, env: str | None, keyring: str | None
) -> Digests:
    from allonym.vault import read_digests

    if file is not None:
        return read_digests(file)
    assert vault is not None  # checked
    with open_vault(vault, secret, env, keyring) as opened:
        return opened.digests(scope or None)


def _read_texts(source: Path, field: tuple[str, ...], format: str | None) -> Iterator[tuple[str, str]]:
    from allonym.files import read_documents

    for document in read_documents(source, fields=field, format=format):
        yield document.id, "\n".join(document.part_texts())


def show_generations(result: GenerationLeaks) -> None:
    """Print the result by label."""
    head = ["label", "originals", "of them leaked", "outputs with one", "places", "expected by chance", "common words",
            "initials"]  # fmt: skip
    rows = []
    for row in (*(r for r in result.labels if r.occurrences or r.common or r.initials), result.direct, result.all):
        leaked, outputs = (
            f"{e.value:.1%} [{e.low:.1%}, {e.high:.1%}]" if e.n else "-" for e in (row.leaked, row.outputs)
        )
        cells = [f"{row.occurrences:,}", f"{row.chance:,.2f}", f"{row.common:,}", f"{row.initials:,}"]
        rows.append([row.label, f"{row.originals:,}", leaked, outputs, *cells])
    print_table(head, rows, right=(1, 4, 5, 6, 7))
    if result.baseline:
        click.echo()
        show_estimates(
            [("outputs", result.all.outputs, "share"), ("baseline", result.all.baseline, "share"),
             ("difference", result.all.excess, "share")], "with an original"
        )  # fmt: skip
    print_note(f"{result.outputs:,} outputs, {result.words:,} words; direct: labels that identify alone")
