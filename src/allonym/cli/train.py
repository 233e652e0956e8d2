"""``allonym train``: train taggers from annotated text, split it, and describe it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.corpus_options import FILE, choosing_options, data_options, parse_shares, reading_options
from allonym.cli.seq2seq import seq2seq
from allonym.cli.terminal import print_note, print_table
from allonym.errors import UsageError

if TYPE_CHECKING:
    from allonym.train.backends import Setup
    from allonym.train.records import Record
    from allonym.train.score import Score

BACKENDS = ("tagger", "spacy", "mitie")
PARTS = ("train", "dev", "test")
_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(short_help="Train taggers from annotated text.")
def train() -> None:
    """Train taggers from annotated text, split it, and count its labels.

    \b
    Examples:
      allonym train density corpus.jsonl
      allonym train split corpus.jsonl --out parts
      allonym train ner corpus.jsonl --backend spacy --out model
      allonym train seq2seq mails/ model --key-file secret.key --from-scratch small
    """


train.add_command(seq2seq)


@train.command(short_help="Train a tagger, or several side by side.")
@click.argument("files", nargs=-1, type=FILE, metavar="FILE...")
@click.option("-o", "--out", required=True, type=_FOLDER, metavar="DIR", help="Folder for the models and the report.")
@click.option("--backend", type=click.Choice(BACKENDS), default="tagger", show_default=True, help="Backend to train.")
@click.option(
    "--compare",
    multiple=True,
    type=click.Choice(BACKENDS),
    help="Also train this backend on the same parts, and report both side by side. Repeatable.",
)
@click.option("--recipe", metavar="NAME|FILE", help="tagger: take sources and options from a recipe, instead of FILE.")
@click.option("--data", type=_FOLDER, metavar="DIR", help="With --recipe: folder with the corpora.")
@click.option(
    "--from-reviews",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="tagger: train --base further on reviewed documents, as exported by the server, instead of FILE.",
)
@click.option(
    "--base",
    metavar="NAME|DIR",
    help="With --from-reviews: tagger to start from; by default the shipped tagger, english.",
)
@data_options
@click.option("--epochs", type=click.IntRange(1), help="Number of passes over the text.")
@click.option("--lr", type=float, help="Learning rate.")
@click.option("--batch", type=click.IntRange(1), help="Batch size: in words for spaCy, in word pieces for the tagger.")
@click.option(
    "--patience", type=click.IntRange(0), help="End training after this number of epochs without improvement; 0: never."
)
@choosing_options
@reading_options
@click.option("--resume", is_flag=True, help="Continue an interrupted run of the same command.")
@click.option("--quiet", "-q", is_flag=True, help="Do not print a line per epoch.")
def ner(
    files: tuple[Path, ...],
    out: Path,
    backend: str,
    compare: tuple[str, ...],
    recipe: str | None,
    data: Path | None,
    from_reviews: Path | None,
    base: str | None,
    dev: Path | None,
    test: Path | None,
    parts: tuple[float, float, float],
    seed: int,
    label_map: Path | None,
    own_labels: bool,
    encoder: str,
    language: str,
    settings: dict[str, str],
    epochs: int | None,
    lr: float | None,
    batch: int | None,
    patience: int | None,
    min_ratio: float,
    max_ratio: float,
    min_words: int,
    max_words: int | None,
    first_words: int | None,
    richest: int | None,
    format: str | None,
    columns: tuple[int, int],
    resume: bool,
    quiet: bool,
) -> None:
    """Train a tagger on annotated FILEs: JSON lines, columns (CoNLL, BIO, BIOES), spaCy, brat, TAB, presidio-research.

    The model is written to DIR/BACKEND, ready for [detect.tagger], [detect.spacy] or [detect.mitie]. DIR/report.json
    describes how it was trained and how well it does on unseen text.

    \b
    Examples:
      allonym train ner corpus.jsonl --encoder all-MiniLM-L6-v2 --out model
      allonym train ner corpus.jsonl --backend spacy --language pl --out model
      allonym train ner a.conll b.jsonl --backend spacy --compare mitie --set features=english.dat --out models
      allonym train ner --recipe english --data corpora --encoder all-MiniLM-L6-v2 --out model
      allonym train ner --from-reviews reviews.jsonl --out model
    """
    common = {"epochs": epochs, "lr": lr, "batch": batch, "patience": patience}
    options_given = {name: value for name, value in common.items() if value is not None} | settings
    if recipe is not None:
        if files or compare or backend != "tagger":
            raise click.UsageError(
                "--recipe cannot be combined with FILE, --backend or --compare: it has its own sources"
            )
        _from_recipe(recipe, data, out, encoder, options_given, resume=resume, quiet=quiet)
        return
    if data is not None:
        raise click.UsageError("--data requires --recipe")
    if from_reviews is not None:
        if files or compare or backend != "tagger" or encoder or own_labels:
            raise click.UsageError(
                "--from-reviews trains the tagger of --base with its own file; it cannot be combined with FILE, "
                "--backend, --compare, --encoder or --own-labels"
            )
        files = (from_reviews,)
    elif base is not None:
        raise click.UsageError("--base requires --from-reviews")
    if not files:
        raise click.UsageError("a FILE is required, or --recipe, or --from-reviews")
    names = tuple(dict.fromkeys((backend, *compare)))
    setup = _make_setup(encoder, language, label_map, own_labels)
    options = {} if from_reviews else _make_backend_options(names, options_given, seed, language)
    from allonym.train.select import choose_records

    bounds = (min_ratio, max_ratio, min_words, max_words)
    records = choose_records(_read_files(files, format, columns), *bounds, first_words=first_words, richest=richest)
    record_parts = _split_parts(records, dev, test, parts, seed, format, columns)
    report: dict[str, Any] = {
        "format": 1,
        "files": [path.name for path in files],
        "seed": seed,
        "language": language,
        "parts": {name: _count_records(part) for name, part in zip(PARTS, record_parts, strict=True)},
        "backends": {},
    }
    scores: dict[str, Score] = {}
    if from_reviews is not None:
        from allonym.cli import train_reviews

        report["backends"]["tagger"], scores = train_reviews.train_and_score_reviews(
            record_parts,
            out / "tagger",
            base=base or "english",
            settings=options_given,
            setup=setup,
            seed=seed,
            resume=resume,
            report=lambda row: None if quiet else click.echo(_epoch_line("tagger", row), err=True),
        )
        _write_json(out / "report.json", report)
        _show_scores(scores)
        return
    for name in names:
        summary, scores[name] = _train_backend(
            name, record_parts, out / name, options[name], setup, resume=resume, quiet=quiet
        )
        report["backends"][name] = summary
        _write_json(out / "report.json", report)
    _show_scores(scores)


def _make_setup(encoder: str, language: str, label_map: Path | None, own_labels: bool) -> Setup:
    from allonym.train.backends import Setup
    from allonym.train.labelmap import find_targets, read_map

    meant = find_targets if label_map is None else read_map(label_map).find_targets
    return Setup(encoder, language, meant, own_labels)


def _make_backend_options(
    names: Sequence[str], settings: Mapping[str, Any], seed: int, language: str
) -> dict[str, Any]:
    """Return the options of each backend. An option that no backend has is an error."""
    from dataclasses import fields

    from allonym.errors import UnknownNameError
    from allonym.train.backends import make_options, options_type

    field_names = {name: {f.name for f in fields(options_type(name))} for name in names}
    everywhere = set().union(*field_names.values())
    for option in settings:
        if option not in everywhere:
            raise UnknownNameError(f"option of {' or '.join(names)}", option, everywhere)
    all_given = {"seed": seed, "language": language, **settings}
    return {name: make_options(name, {k: v for k, v in all_given.items() if k in field_names[name]}) for name in names}


def _read_files(files: Sequence[Path], format: str | None, columns: tuple[int, int]) -> list[Record]:
    from allonym.train.records import read_records

    return [record for path in files for record in read_records(path, format, columns)]


def _split_parts(
    records: list[Record],
    dev: Path | None,
    test: Path | None,
    parts: tuple[float, float, float],
    seed: int,
    format: str | None,
    columns: tuple[int, int],
) -> tuple[list[Record], list[Record], list[Record]]:
    """Return the records for train, dev and test. A part with a file of its own is not split off."""
    from allonym.train.select import split_records

    shares = (parts[0], 0.0 if dev else parts[1], 0.0 if test else parts[2])
    record_parts = split_records(records, shares, seed)
    chosen = _read_files([dev], format, columns) if dev else record_parts[1]
    judged = _read_files([test], format, columns) if test else record_parts[2]
    if not record_parts[0]:
        raise UsageError("no documents are left for training; widen --parts or the choice of documents")
    return record_parts[0], chosen, judged


def _count_records(records: Sequence[Record]) -> dict[str, int]:
    from allonym.train.select import group_documents, measure_size

    size = measure_size(records)
    return {
        "documents": len(group_documents(records)),
        "records": len(records),
        "words": size.words,
        "entities": size.entities,
    }


def _train_backend(
    name: str,
    record_parts: tuple[list[Record], list[Record], list[Record]],
    out: Path,
    options: Any,
    setup: Setup,
    *,
    resume: bool,
    quiet: bool,
) -> tuple[dict[str, Any], Score]:
    from dataclasses import asdict

    from allonym.train import backends

    rows: list[dict[str, Any]] = []
    began = time.monotonic()

    def print_step(row: dict[str, Any]) -> None:
        rows.append(row)
        if not quiet:
            click.echo(_epoch_line(name, row), err=True)

    trained_model = backends.train(
        name, record_parts[0], record_parts[1], out, options=options, setup=setup, report=print_step, resume=resume
    )
    trained = time.monotonic() - began
    score = backends.measure(backends.load(name, out), record_parts[2], setup)
    summary = {
        "options": asdict(options),
        "seconds": round(trained, 1),
        "epochs": rows,
        "made": trained_model,
        "test": score.to_dict(),
    }
    return summary, score


def _epoch_line(name: str, row: Mapping[str, Any]) -> str:
    shown = [f"{name}: epoch {row['epoch']} of {row['epochs']}"]
    shown += [f"{k} {v:.4f}" for k, v in row.items() if isinstance(v, float)]
    return "  ".join(shown)


def _show_scores(scores: Mapping[str, Score]) -> None:
    from allonym.train.score import tabulate_scores

    head, rows = tabulate_scores(scores)
    print_table(head, rows, right=tuple(range(1, len(head))))


def _from_recipe(
    name: str, data: Path | None, out: Path, encoder: str, settings: Mapping[str, Any], *, resume: bool, quiet: bool
) -> None:
    from allonym.errors import MissingExtra
    from allonym.train.backends import encoder_folder

    if data is None:
        raise click.UsageError("--recipe needs --data, the folder of the corpora")
    folder = encoder_folder(encoder)
    options = _select_options(settings)
    try:
        from allonym.train.build import from_recipe
        from allonym.train.corpus import Recipe
    except MissingExtra:
        raise
    except ImportError:
        raise MissingExtra("training the tagger", "train") from None
    rows: list[dict[str, Any]] = []

    def print_step(row: dict[str, Any]) -> None:
        rows.append(row)
        if not quiet:
            click.echo(_epoch_line("tagger", row), err=True)

    trained_model = from_recipe(
        Recipe.load(name), data, out, encoder=folder, options=options, report=print_step, resume=resume
    )
    _write_json(out / "report.json", {"format": 1, "recipe": name, "epochs": rows, "made": trained_model})


def _select_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tagger's options from the command line, converted to their types."""
    from dataclasses import asdict

    from allonym.train.backends import make_options

    options = asdict(make_options("tagger", settings))
    return {name: options[name] for name in settings}


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@train.command(short_help="Split annotated text by document.")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("-o", "--out", required=True, type=_FOLDER, metavar="DIR", help="Folder for the parts.")
@click.option(
    "--parts",
    default="80/10/10",
    show_default=True,
    callback=parse_shares,
    metavar="SHARES",
    help="Shares of train, dev and test.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the split.")
@choosing_options
@reading_options
def split(
    files: tuple[Path, ...],
    out: Path,
    parts: tuple[float, float, float],
    seed: int,
    min_ratio: float,
    max_ratio: float,
    min_words: int,
    max_words: int | None,
    first_words: int | None,
    richest: int | None,
    format: str | None,
    columns: tuple[int, int],
) -> None:
    """Split annotated text into DIR/train.jsonl, dev.jsonl and test.jsonl.

    All documents with the same text are in the same part.

    \b
    Examples:
      allonym train split corpus.jsonl --out parts
      allonym train split corpus.jsonl --out parts --min-words 20 --max-ratio 0.2
    """
    from allonym.train import select
    from allonym.train.records import write_jsonl

    bounds = (min_ratio, max_ratio, min_words, max_words)
    chosen = select.choose_records(
        _read_files(files, format, columns), *bounds, first_words=first_words, richest=richest
    )
    record_parts = select.split_records(chosen, parts, seed)
    rows = []
    for name, records in zip(PARTS, record_parts, strict=True):
        write_jsonl(out / f"{name}.jsonl", records)
        rows.append([name, *_count_records(records).values()])
    print_table(["part", "documents", "records", "words", "entities"], rows, right=(1, 2, 3, 4))


@train.command(short_help="Count the labelled spans of corpora.")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per corpus.")
@reading_options
def density(files: tuple[Path, ...], as_json: bool, format: str | None, columns: tuple[int, int]) -> None:
    """Show documents, words, and the spans of each label per 1,000 words, with one column per corpus.

    \b
    Examples:
      allonym train density corpus.jsonl
      allonym train density news.conll mails.jsonl --json
    """
    from allonym.cli.terminal import json_line
    from allonym.train.records import read_records
    from allonym.train.select import measure_density as measured

    corpora: dict[str, list[Record]] = {}
    for path in files:
        corpora[path.name if path.name not in corpora else str(path)] = read_records(path, format, columns)
    densities = measured(corpora)
    if as_json:
        for density_row in densities:
            shown = {
                label: {"spans": n, "per_1000": density_row.per_thousand(label)}
                for label, n in sorted(density_row.spans.items())
            }
            click.echo(
                json_line(
                    {
                        "corpus": density_row.corpus,
                        "documents": density_row.documents,
                        "words": density_row.words,
                        "labels": shown,
                    }
                )
            )
        return
    rows: list[list[object]] = [
        ["documents", *(f"{density_row.documents:,}" for density_row in densities)],
        ["words", *(f"{density_row.words:,}" for density_row in densities)],
    ]
    total = {
        label: sum(density_row.spans.get(label, 0) for density_row in densities)
        for density_row in densities
        for label in density_row.spans
    }
    for label in sorted(total, key=lambda name: (-total[name], name)):
        rows.append(
            [
                label,
                *(
                    f"{density_row.per_thousand(label):.2f}" if label in density_row.spans else "-"
                    for density_row in densities
                ),
            ]
        )
    print_table(
        ["spans per 1,000 words", *(density_row.corpus for density_row in densities)],
        rows,
        right=tuple(range(1, len(densities) + 1)),
    )


@train.command(short_help="Search for good options of a training backend.")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("-o", "--out", required=True, type=_FOLDER, metavar="DIR", help="Folder for the tables and plots.")
@click.option("--backend", type=click.Choice(BACKENDS), default="tagger", show_default=True, help="Backend to train.")
@click.option("--trials", type=click.IntRange(1), default=20, show_default=True, help="Number of trainings.")
@click.option(
    "--study",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="SQLite file of the trials; an existing file continues its search. By default DIR/study.db.",
)
@click.option(
    "--space",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML file with a table per option: low and high, or choices.",
)
@data_options
@choosing_options
@reading_options
@click.option("--quiet", "-q", is_flag=True, help="Do not print a line per trial.")
def search(
    files: tuple[Path, ...],
    out: Path,
    backend: str,
    trials: int,
    study: Path | None,
    space: Path | None,
    dev: Path | None,
    test: Path | None,
    parts: tuple[float, float, float],
    seed: int,
    label_map: Path | None,
    own_labels: bool,
    encoder: str,
    language: str,
    settings: dict[str, str],
    min_ratio: float,
    max_ratio: float,
    min_words: int,
    max_words: int | None,
    first_words: int | None,
    richest: int | None,
    format: str | None,
    columns: tuple[int, int],
    quiet: bool,
) -> None:
    """Train repeatedly with different options, and report the best ones and those that matter.

    Each trial is judged by its strict F1 on the dev part; the test part is not used. The search writes trials.csv,
    importance.csv and best.json to DIR, and a plot of the trials in parallel.png and parallel.svg.

    \b
    Example:
      allonym train search corpus.jsonl --backend spacy --trials 30 --set epochs=10 --out search
    """
    import tempfile

    from allonym.train import backends
    from allonym.train import search as searching
    from allonym.train.select import choose_records

    searching.import_optuna()
    search_space = searching.read_space(backend, space)
    setup = _make_setup(encoder, language, label_map, own_labels)
    _make_backend_options((backend,), dict.fromkeys((p.name for p in search_space), 1) | settings, seed, language)
    bounds = (min_ratio, max_ratio, min_words, max_words)
    records = choose_records(_read_files(files, format, columns), *bounds, first_words=first_words, richest=richest)
    record_parts = _split_parts(records, dev, test, parts, seed, format, columns)

    def score_trial(drawn: Mapping[str, Any]) -> float:
        options = _make_backend_options((backend,), {**settings, **drawn}, seed, language)[backend]
        with tempfile.TemporaryDirectory(prefix="allonym-") as folder:
            backends.train(backend, record_parts[0], record_parts[1], Path(folder), options=options, setup=setup)
            return backends.measure(backends.load(backend, Path(folder)), record_parts[1], setup).strict.f1

    def print_trial(trial: searching.Trial) -> None:
        if not quiet:
            drawn = "  ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in trial.values.items())
            click.echo(f"trial {trial.number + 1} of {trials}  f1 {trial.score:.4f}  {drawn}", err=True)

    file = study or out / "study.db"
    trials_done = searching.search_parameters(
        score_trial, search_space, file, trials=trials, seed=seed, name=backend, report=print_trial
    )
    _write_search(trials_done, search_space, out, seed)


def _write_search(trials: Sequence[Any], space: Sequence[Any], out: Path, seed: int) -> None:
    from allonym.train import search as searching

    out.mkdir(parents=True, exist_ok=True)
    (out / "trials.csv").write_text(searching.trial_table(trials, space), encoding="utf-8")
    best = max(trials, key=lambda trial: (trial.score, -trial.number))
    _write_json(out / "best.json", {"score": best.score, "trial": best.number, "options": dict(best.values)})
    for suffix in ("png", "svg"):
        searching.plot_trials(trials, space, out / f"parallel.{suffix}")
    rows = [
        (
            row.name,
            f"{row.share:.3f}",
            "-" if row.correlation is None else f"{row.correlation:+.3f}",
            best.values[row.name],
        )
        for row in searching.rank_importance(trials, space, seed)
    ]
    head = ["option", "importance", "correlation", "best"]
    lines = [",".join(map(str, row)) for row in [head, *rows]]
    (out / "importance.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print_table(head, rows, right=(1, 2, 3))
    print_note(f"best strict F1 on the development part: {best.score:.4f} (trial {best.number + 1})", label="found:")


def _format_signed(number: float | None) -> str:
    return "-" if number is None else f"{number:+.3f}"
