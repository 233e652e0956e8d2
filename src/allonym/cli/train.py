"""``allonym train``: taggers from annotated text, and what one wants to know of the text before."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.corpus_options import FILE, choosing_options, data_options, reading_options, shares
from allonym.cli.seq2seq import seq2seq
from allonym.cli.terminal import note, table
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
    """Train taggers from annotated text, split it, and see what it holds.

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
@click.option("-o", "--out", required=True, type=_FOLDER, metavar="DIR", help="Folder for models and report.")
@click.option("--backend", type=click.Choice(BACKENDS), default="tagger", show_default=True, help="What to train.")
@click.option(
    "--compare",
    multiple=True,
    type=click.Choice(BACKENDS),
    help="Train this backend too, on the same parts, and report side by side. Repeatable.",
)
@click.option("--recipe", metavar="NAME|FILE", help="tagger: sources and options from a recipe, in place of FILE.")
@click.option("--data", type=_FOLDER, metavar="DIR", help="With --recipe: folder of the corpora.")
@click.option(
    "--from-reviews",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="tagger: go on with --base from reviewed documents, as the server exports them, in place of FILE.",
)
@click.option(
    "--base", metavar="NAME|DIR", help="With --from-reviews: the tagger to go on from; by default english, ours."
)
@data_options
@click.option("--epochs", type=click.IntRange(1), help="Passes over the text.")
@click.option("--lr", type=float, help="Learning rate.")
@click.option("--batch", type=click.IntRange(1), help="Size of a batch: spaCy in words, tagger in word pieces.")
@click.option("--patience", type=click.IntRange(0), help="Epochs without gain after which training ends; 0: never.")
@choosing_options
@reading_options
@click.option("--resume", is_flag=True, help="Go on where an interrupted run of the same command stopped.")
@click.option("--quiet", "-q", is_flag=True, help="No line for each epoch.")
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

    The model lies in DIR/BACKEND then, ready for [detect.tagger], [detect.spacy] or [detect.mitie]; DIR/report.json
    says how it was made and how well it does on text that it has not seen.

    \b
    Examples:
      allonym train ner corpus.jsonl --encoder all-MiniLM-L6-v2 --out model
      allonym train ner corpus.jsonl --backend spacy --language pl --out model
      allonym train ner a.conll b.jsonl --backend spacy --compare mitie --set features=english.dat --out models
      allonym train ner --recipe english --data corpora --encoder all-MiniLM-L6-v2 --out model
      allonym train ner --from-reviews reviews.jsonl --out model
    """
    common = {"epochs": epochs, "lr": lr, "batch": batch, "patience": patience}
    given = {name: value for name, value in common.items() if value is not None} | settings
    if recipe is not None:
        if files or compare or backend != "tagger":
            raise click.UsageError(
                "--recipe names its own sources and trains the tagger: no FILE, --backend or --compare"
            )
        _from_recipe(recipe, data, out, encoder, given, resume=resume, quiet=quiet)
        return
    if data is not None:
        raise click.UsageError("--data goes with --recipe")
    if from_reviews is not None:
        if files or compare or backend != "tagger" or encoder or own_labels:
            raise click.UsageError(
                "--from-reviews names its own FILE and goes on with the tagger of --base: no FILE, --backend, "
                "--compare, --encoder or --own-labels"
            )
        files = (from_reviews,)
    elif base is not None:
        raise click.UsageError("--base goes with --from-reviews")
    if not files:
        raise click.UsageError("a FILE is required, or --recipe, or --from-reviews")
    names = tuple(dict.fromkeys((backend, *compare)))
    setup = _setup(encoder, language, label_map, own_labels)
    options = {} if from_reviews else _options(names, given, seed, language)
    from allonym.train.select import choose

    bounds = (min_ratio, max_ratio, min_words, max_words)
    records = choose(_read(files, format, columns), *bounds, first_words=first_words, richest=richest)
    held = _parts(records, dev, test, parts, seed, format, columns)
    report: dict[str, Any] = {
        "format": 1,
        "files": [path.name for path in files],
        "seed": seed,
        "language": language,
        "parts": {name: _size(part) for name, part in zip(PARTS, held, strict=True)},
        "backends": {},
    }
    scores: dict[str, Score] = {}
    if from_reviews is not None:
        from allonym.cli import train_reviews

        report["backends"]["tagger"], scores = train_reviews.from_reviews(
            held,
            out / "tagger",
            base=base or "english",
            given=given,
            setup=setup,
            seed=seed,
            resume=resume,
            report=lambda row: None if quiet else click.echo(_epoch_line("tagger", row), err=True),
        )
        _write_json(out / "report.json", report)
        _show_scores(scores)
        return
    for name in names:
        told, scores[name] = _train(name, held, out / name, options[name], setup, resume=resume, quiet=quiet)
        report["backends"][name] = told
        _write_json(out / "report.json", report)
    _show_scores(scores)


def _setup(encoder: str, language: str, label_map: Path | None, own_labels: bool) -> Setup:
    from allonym.train.backends import Setup
    from allonym.train.labelmap import read_map, targets

    meant = targets if label_map is None else read_map(label_map).targets
    return Setup(encoder, language, meant, own_labels)


def _options(names: Sequence[str], given: Mapping[str, Any], seed: int, language: str) -> dict[str, Any]:
    """The options of each backend. What none of them has is an error; what some lack goes to the others."""
    from dataclasses import fields

    from allonym.errors import UnknownNameError
    from allonym.train.backends import make_options, options_type

    known = {name: {f.name for f in fields(options_type(name))} for name in names}
    everywhere = set().union(*known.values())
    for option in given:
        if option not in everywhere:
            raise UnknownNameError(f"option of {' or '.join(names)}", option, everywhere)
    all_given = {"seed": seed, "language": language, **given}
    return {name: make_options(name, {k: v for k, v in all_given.items() if k in known[name]}) for name in names}


def _read(files: Sequence[Path], format: str | None, columns: tuple[int, int]) -> list[Record]:
    from allonym.train.records import read_records

    return [record for path in files for record in read_records(path, format, columns)]


def _parts(
    records: list[Record],
    dev: Path | None,
    test: Path | None,
    parts: tuple[float, float, float],
    seed: int,
    format: str | None,
    columns: tuple[int, int],
) -> tuple[list[Record], list[Record], list[Record]]:
    """What to train on, to choose by and to judge by. A part that has a file of its own is not split off."""
    from allonym.train.select import split

    shares = (parts[0], 0.0 if dev else parts[1], 0.0 if test else parts[2])
    held = split(records, shares, seed)
    chosen = _read([dev], format, columns) if dev else held[1]
    judged = _read([test], format, columns) if test else held[2]
    if not held[0]:
        raise UsageError("nothing is left to train on; widen --parts or what chooses documents")
    return held[0], chosen, judged


def _size(records: Sequence[Record]) -> dict[str, int]:
    from allonym.train.select import documents, size_of

    size = size_of(records)
    return {
        "documents": len(documents(records)),
        "records": len(records),
        "words": size.words,
        "entities": size.entities,
    }


def _train(
    name: str,
    held: tuple[list[Record], list[Record], list[Record]],
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

    def report(row: dict[str, Any]) -> None:
        rows.append(row)
        if not quiet:
            click.echo(_epoch_line(name, row), err=True)

    made = backends.train(name, held[0], held[1], out, options=options, setup=setup, report=report, resume=resume)
    trained = time.monotonic() - began
    score = backends.measure(backends.load(name, out), held[2], setup)
    told = {
        "options": asdict(options),
        "seconds": round(trained, 1),
        "epochs": rows,
        "made": made,
        "test": score.to_dict(),
    }
    return told, score


def _epoch_line(name: str, row: Mapping[str, Any]) -> str:
    shown = [f"{name}: epoch {row['epoch']} of {row['epochs']}"]
    shown += [f"{k} {v:.4f}" for k, v in row.items() if isinstance(v, float)]
    return "  ".join(shown)


def _show_scores(scores: Mapping[str, Score]) -> None:
    from allonym.train.score import side_by_side

    head, rows = side_by_side(scores)
    table(head, rows, right=tuple(range(1, len(head))))


def _from_recipe(
    name: str, data: Path | None, out: Path, encoder: str, given: Mapping[str, Any], *, resume: bool, quiet: bool
) -> None:
    from allonym.errors import MissingExtra
    from allonym.train.backends import encoder_folder

    if data is None:
        raise click.UsageError("--recipe needs --data, the folder of the corpora")
    folder = encoder_folder(encoder)
    options = _given_options(given)
    try:
        from allonym.train.build import from_recipe
        from allonym.train.corpus import Recipe
    except MissingExtra:
        raise
    except ImportError:
        raise MissingExtra("training the tagger", "train") from None
    rows: list[dict[str, Any]] = []

    def report(row: dict[str, Any]) -> None:
        rows.append(row)
        if not quiet:
            click.echo(_epoch_line("tagger", row), err=True)

    made = from_recipe(Recipe.load(name), data, out, encoder=folder, options=options, report=report, resume=resume)
    _write_json(out / "report.json", {"format": 1, "recipe": name, "epochs": rows, "made": made})


def _given_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The tagger's options that the command line names, in their own kinds."""
    from dataclasses import asdict

    from allonym.train.backends import make_options

    made = asdict(make_options("tagger", given))
    return {name: made[name] for name in given}


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
    callback=shares,
    metavar="SHARES",
    help="Shares of train, dev and test.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed draws other parts.")
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
    """Write DIR/train.jsonl, dev.jsonl and test.jsonl. No document is in two parts, and neither are two with one text.

    \b
    Examples:
      allonym train split corpus.jsonl --out parts
      allonym train split corpus.jsonl --out parts --min-words 20 --max-ratio 0.2
    """
    from allonym.train import select
    from allonym.train.records import write_jsonl

    bounds = (min_ratio, max_ratio, min_words, max_words)
    chosen = select.choose(_read(files, format, columns), *bounds, first_words=first_words, richest=richest)
    held = select.split(chosen, parts, seed)
    rows = []
    for name, records in zip(PARTS, held, strict=True):
        write_jsonl(out / f"{name}.jsonl", records)
        rows.append([name, *_size(records).values()])
    table(["part", "documents", "records", "words", "entities"], rows, right=(1, 2, 3, 4))


@train.command(short_help="Show how densely corpora are labelled.")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per corpus.")
@reading_options
def density(files: tuple[Path, ...], as_json: bool, format: str | None, columns: tuple[int, int]) -> None:
    """Show documents, words, and for each label the spans per 1,000 words, one column a corpus.

    \b
    Examples:
      allonym train density corpus.jsonl
      allonym train density news.conll mails.jsonl --json
    """
    from allonym.cli.terminal import json_line
    from allonym.train.records import read_records
    from allonym.train.select import density as measured

    corpora: dict[str, list[Record]] = {}
    for path in files:
        corpora[path.name if path.name not in corpora else str(path)] = read_records(path, format, columns)
    found = measured(corpora)
    if as_json:
        for one in found:
            shown = {label: {"spans": n, "per_1000": one.per_thousand(label)} for label, n in sorted(one.spans.items())}
            click.echo(
                json_line({"corpus": one.corpus, "documents": one.documents, "words": one.words, "labels": shown})
            )
        return
    rows: list[list[object]] = [
        ["documents", *(f"{one.documents:,}" for one in found)],
        ["words", *(f"{one.words:,}" for one in found)],
    ]
    total = {label: sum(one.spans.get(label, 0) for one in found) for one in found for label in one.spans}
    for label in sorted(total, key=lambda name: (-total[name], name)):
        rows.append([label, *(f"{one.per_thousand(label):.2f}" if label in one.spans else "-" for one in found)])
    table(["spans per 1,000 words", *(one.corpus for one in found)], rows, right=tuple(range(1, len(found) + 1)))


@train.command(short_help="Search for good options of a backend.")
@click.argument("files", nargs=-1, required=True, type=FILE, metavar="FILE...")
@click.option("-o", "--out", required=True, type=_FOLDER, metavar="DIR", help="Folder for tables and plots.")
@click.option("--backend", type=click.Choice(BACKENDS), default="tagger", show_default=True, help="What to train.")
@click.option("--trials", type=click.IntRange(1), default=20, show_default=True, help="Trainings in all.")
@click.option(
    "--study",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="SQLite file of the trials; the same file goes on with the search. By default DIR/study.db.",
)
@click.option(
    "--space",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="TOML with a table per option: low and high, or choices.",
)
@data_options
@choosing_options
@reading_options
@click.option("--quiet", "-q", is_flag=True, help="No line for each trial.")
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
    """Train again and again with other options, and tell which were good and which mattered.

    Each trial is judged by its strict F1 on the development part; the test part is not looked at. DIR holds trials.csv,
    importance.csv, best.json, and the trials as parallel coordinates in parallel.png and parallel.svg then.

    \b
    Example:
      allonym train search corpus.jsonl --backend spacy --trials 30 --set epochs=10 --out search
    """
    import tempfile

    from allonym.train import backends
    from allonym.train import search as searching
    from allonym.train.select import choose

    searching.import_optuna()
    wanted = searching.read_space(backend, space)
    setup = _setup(encoder, language, label_map, own_labels)
    _options((backend,), dict.fromkeys((p.name for p in wanted), 1) | settings, seed, language)
    bounds = (min_ratio, max_ratio, min_words, max_words)
    records = choose(_read(files, format, columns), *bounds, first_words=first_words, richest=richest)
    held = _parts(records, dev, test, parts, seed, format, columns)

    def objective(drawn: Mapping[str, Any]) -> float:
        options = _options((backend,), {**settings, **drawn}, seed, language)[backend]
        with tempfile.TemporaryDirectory(prefix="allonym-") as made:
            backends.train(backend, held[0], held[1], Path(made), options=options, setup=setup)
            return backends.measure(backends.load(backend, Path(made)), held[1], setup).strict.f1

    def report(trial: searching.Trial) -> None:
        if not quiet:
            drawn = "  ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in trial.values.items())
            click.echo(f"trial {trial.number + 1} of {trials}  f1 {trial.score:.4f}  {drawn}", err=True)

    file = study or out / "study.db"
    done = searching.search(objective, wanted, file, trials=trials, seed=seed, name=backend, report=report)
    _write_search(done, wanted, out, seed)


def _write_search(done: Sequence[Any], space: Sequence[Any], out: Path, seed: int) -> None:
    from allonym.train import search as searching

    out.mkdir(parents=True, exist_ok=True)
    (out / "trials.csv").write_text(searching.trial_table(done, space), encoding="utf-8")
    best = max(done, key=lambda trial: (trial.score, -trial.number))
    _write_json(out / "best.json", {"score": best.score, "trial": best.number, "options": dict(best.values)})
    for suffix in ("png", "svg"):
        searching.parallel_plot(done, space, out / f"parallel.{suffix}")
    rows = [
        (
            one.name,
            f"{one.share:.3f}",
            "-" if one.correlation is None else f"{one.correlation:+.3f}",
            best.values[one.name],
        )
        for one in searching.importance(done, space, seed)
    ]
    head = ["option", "importance", "correlation", "best"]
    lines = [",".join(map(str, row)) for row in [head, *rows]]
    (out / "importance.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    table(head, rows, right=(1, 2, 3))
    note(f"best strict F1 on the development part: {best.score:.4f} (trial {best.number + 1})", label="found:")


def _signed(number: float | None) -> str:
    return "-" if number is None else f"{number:+.3f}"
