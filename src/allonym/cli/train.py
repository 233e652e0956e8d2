"""``allonym train``: train taggers from annotated text, split it, and describe it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from allonym.cli.options import JSON, QUIET, RESUME, SEED, declare_output
from allonym.cli.seq2seq import seq2seq
from allonym.cli.signatures import take_options
from allonym.cli.terminal import format_json_line, print_note, print_table
from allonym.cli.train_options import SHARES, Parts, Reading, Selection, Shares, Training
from allonym.errors import require_extra
from allonym.partfile import write_file
from allonym.scratch import open_scratch_folder
from allonym.settings import REQUIRED, SettingGroup, declare_setting

if TYPE_CHECKING:
    from allonym.train.backends import Setup
    from allonym.train.records import Record
    from allonym.train.score import Score

BACKENDS = ("tagger", "spacy", "mitie")
PARTS = ("train", "dev", "test")
FILES = declare_setting(REQUIRED, "annotated text", noun="path", option="<FILE>")
BACKEND = declare_setting("tagger", "backend to train", one_of=BACKENDS)


class Common(SettingGroup):
    """Options that every backend has."""

    epochs: int | None = declare_setting(None, "number of passes over the text", low=1, option="N")
    lr: float | None = declare_setting(None, "learning rate", option="RATE")
    batch: int | None = declare_setting(
        None, "batch size: in words for spaCy, in word pieces for the tagger", low=1, option="N"
    )
    patience: int | None = declare_setting(
        None, "end training after this number of epochs without improvement; 0: never", low=0, option="N"
    )


@click.group(short_help="Train taggers from annotated text.")
def train() -> None:
    """Train taggers from annotated text, split it, and count its labels.

    \b
    Examples:
      allonym train density corpus.jsonl
      allonym train split corpus.jsonl --output parts
      allonym train ner corpus.jsonl --backend spacy --output model
      allonym train seq2seq mails/ model --key-file secret.key --from-scratch small
    """


train.add_command(seq2seq)


@train.command(short_help="Train a tagger, or several side by side.")
@take_options
def ner(
    files: tuple[Path, ...] = declare_setting((), "annotated text", noun="path", option="<FILE>"),
    *,
    output: Path = declare_output(REQUIRED, "new folder"),
    backend: str = BACKEND,
    compare: tuple[str, ...] = declare_setting(
        (), "also train this backend on the same parts, and report both side by side", one_of=BACKENDS
    ),
    recipe: str | None = declare_setting(
        None, "with the tagger: take sources and options from a recipe, instead of FILE", option="NAME|FILE"
    ),
    data: Path | None = declare_setting(
        None, "with --recipe: folder with the corpora", noun="new folder", option="DIR"
    ),
    training: Training,
    common: Common,
    selection: Selection,
    reading: Reading,
    resume: bool = RESUME,
    quiet: bool = QUIET,
) -> None:
    """Train a tagger on annotated FILEs: JSON lines, columns (CoNLL, BIO, BIOES), spaCy, brat, TAB, presidio-research.

    Without --encoder, the tagger that ships with allonym is trained further, in minutes. The model is written to
    OUTPUT/BACKEND, ready for [detect.tagger], [detect.spacy] or [detect.mitie]; OUTPUT/report.json describes how it
    was trained and how well it does on unseen text, of a tagger that was trained further also how well it did before.

    \b
    Examples:
      allonym train ner corpus.jsonl --output model
      allonym train ner corpus.jsonl --encoder all-MiniLM-L6-v2 --output model
      allonym train ner corpus.jsonl --backend spacy --language pl --output model
      allonym train ner a.conll b.jsonl --backend spacy --compare mitie --set features=english.dat --output models
      allonym train ner --recipe english --data corpora --encoder all-MiniLM-L6-v2 --output model
      allonym train ner --recipe english --data corpora --base tagger --output model
    """
    settings = {name: value for name, value in vars(common).items() if value is not None} | dict(training.set)
    if recipe is not None:
        if files or compare or backend != "tagger":
            raise click.UsageError(
                "--recipe cannot be combined with FILE, --backend or --compare: it has its own sources"
            )
        if data is None:
            raise click.UsageError("--recipe needs --data, the folder of the corpora")
        _train_recipe(recipe, data, output, training.make_setup(), settings, resume=resume, quiet=quiet)
        return
    if data is not None:
        raise click.UsageError("--data requires --recipe")
    if not files:
        raise click.UsageError("a FILE is required, or --recipe")
    names = tuple(dict.fromkeys((backend, *compare)))
    if training.base and "tagger" not in names:
        raise click.UsageError("--base requires the backend tagger")
    setup = training.make_setup()
    options = training.make_options(names, settings)
    parts = training.split_records(selection.choose_records(reading.read_records(files)), reading)
    backends: dict[str, Any] = {}
    report: dict[str, Any] = {
        "format": 1,
        "files": [path.name for path in files],
        "seed": training.seed,
        "language": training.language,
        "parts": {name: _count_records(part) for name, part in zip(PARTS, parts, strict=True)},
        "backends": backends,
    }
    scores: dict[str, Score] = {}
    for name in names:
        run = {"options": options[name], "setup": setup, "resume": resume, "quiet": quiet}
        backends[name], scores_by_column = _train_backend(name, parts, output / name, **run)
        scores |= scores_by_column
        _write_json(output / "report.json", report)
    from allonym.train.score import tabulate_scores

    head, rows = tabulate_scores(scores)
    print_table(head, rows, right=range(1, len(head)))


def _train_backend(
    name: str, parts: Parts, out: Path, *, options: Any, setup: Setup, resume: bool, quiet: bool
) -> tuple[dict[str, Any], dict[str, Score]]:
    """Train a backend, and score it on the third part; a tagger that is trained further also as it was before."""
    from allonym.train import backends

    steps = _StepRecorder(name, quiet=quiet)
    model = backends.train(name, *parts[:2], out, options=options, setup=setup, report=steps, resume=resume)
    score = backends.score_predictor(backends.load(name, out), parts[2], setup)
    summary = {**steps.summarise_training(options, model), "test": score.to_dict()}
    if name != "tagger" or setup.encoder:
        return summary, {name: score}
    before = backends.score_predictor(backends.load(name, backends.find_base_folder(setup.base)), parts[2], setup)
    return {**summary, "before": before.to_dict()}, {"tagger before": before, "tagger after": score}


def _train_recipe(
    name: str, data: Path, out: Path, setup: Setup, settings: Mapping[str, Any], *, resume: bool, quiet: bool
) -> None:
    """Train by a recipe from an encoder, or by its last stage from a tagger."""
    from allonym.train.backends import find_base_folder, find_encoder_folder

    folder = find_base_folder(setup.base) if setup.base else find_encoder_folder(setup.encoder)
    options = _convert_options(settings)
    with require_extra("training the tagger", "train"):
        from allonym.train.build import build_models_from_recipe
        from allonym.train.corpus import Recipe
    steps, recipe = _StepRecorder("tagger", quiet=quiet), Recipe.load(name)
    model = build_models_from_recipe(recipe, data, out, folder, options=options, report=steps, resume=resume)
    _write_json(out / "report.json", {"format": 1, "recipe": name, "epochs": steps.rows, "made": model})


@train.command(short_help="Choose a tagger's operating points anew.")
@take_options
def calibrate(
    model: Path = declare_setting(REQUIRED, "folder of a tagger", noun="folder", option="<MODEL>"),
    *,
    data: Path = declare_setting(REQUIRED, "folder with the corpora", noun="new folder", option="DIR"),
    recipe: str = declare_setting("english", "recipe that lists the corpora", option="NAME|FILE"),
) -> None:
    """Choose the temperature and the operating points of MODEL anew, on the documents that a recipe keeps for this.

    MODEL/tagger.json is written anew. Prints which share of names each point covers, and of other text, by kind of
    text.

    \b
    Example:
      allonym train calibrate model --data corpora
    """
    from allonym.cli.policy import print_measured_points

    with require_extra("calibrating a tagger", "train"):
        from allonym.train.build import calibrate_on_recipe
        from allonym.train.corpus import Recipe
    print_measured_points(calibrate_on_recipe(model, Recipe.load(recipe), data)["measured"])


class _StepRecorder:
    """Prints and keeps the rows of the epochs."""

    def __init__(self, name: str, *, quiet: bool) -> None:
        self.name, self.quiet, self.began = name, quiet, time.monotonic()
        self.rows: list[dict[str, Any]] = []

    def __call__(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if not self.quiet:
            numbers = [f"{k} {v:.4f}" for k, v in row.items() if isinstance(v, float)]
            click.echo("  ".join([f"{self.name}: epoch {row['epoch']} of {row['epochs']}", *numbers]), err=True)

    def summarise_training(self, options: Any, model: dict[str, Any]) -> dict[str, Any]:
        seconds = round(time.monotonic() - self.began, 1)
        return {"options": asdict(options), "seconds": seconds, "epochs": self.rows, "made": model}


def _convert_options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the tagger's options on the command line to their types."""
    from allonym.train.backends import make_options

    options = asdict(make_options("tagger", settings))
    return {name: options[name] for name in settings}


def _count_records(records: Sequence[Record]) -> dict[str, int]:
    from allonym.train.select import count_words_and_entities, group_documents

    size = count_words_and_entities(records)
    return {
        "documents": len(group_documents(records)),
        "records": len(records),
        "words": size.words,
        "entities": size.entities,
    }


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, (dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8"))


@train.command(short_help="Split annotated text by document.")
@take_options
def split(
    files: tuple[Path, ...] = FILES,
    *,
    output: Path = declare_output(REQUIRED, "new folder"),
    parts: Shares = SHARES,
    seed: int = SEED,
    selection: Selection,
    reading: Reading,
) -> None:
    """Split annotated text into OUTPUT/train.jsonl, dev.jsonl and test.jsonl.

    All documents with the same text are in the same part.

    \b
    Examples:
      allonym train split corpus.jsonl --output parts
      allonym train split corpus.jsonl --output parts --min-words 20 --max-ratio 0.2
    """
    from allonym.train.records import write_jsonl
    from allonym.train.select import split_records

    rows = []
    record_parts = split_records(selection.choose_records(reading.read_records(files)), parts, seed)
    for name, records in zip(PARTS, record_parts, strict=True):
        write_jsonl(output / f"{name}.jsonl", records)
        rows.append([name, *_count_records(records).values()])
    print_table(["part", "documents", "records", "words", "entities"], rows, right=(1, 2, 3, 4))


@train.command(short_help="Count the labelled spans of corpora.")
@take_options
def density(files: tuple[Path, ...] = FILES, *, json: bool = JSON, reading: Reading) -> None:
    """Show documents, words, and the spans of each label per 1,000 words, with one column per corpus.

    \b
    Examples:
      allonym train density corpus.jsonl
      allonym train density news.conll mails.jsonl --json
    """
    from allonym.train.select import measure_label_density

    corpora: dict[str, list[Record]] = {}
    for path in files:
        corpora[path.name if path.name not in corpora else str(path)] = reading.read_records([path])
    densities = measure_label_density(corpora)
    if json:
        for corpus in densities:
            labels = {
                label: {"spans": n, "per_1000": corpus.per_thousand(label)} for label, n in sorted(corpus.spans.items())
            }
            counts = {"corpus": corpus.corpus, "documents": corpus.documents, "words": corpus.words}
            click.echo(format_json_line({**counts, "labels": labels}))
        return
    rows = [[name, *(f"{getattr(corpus, name):,}" for corpus in densities)] for name in ("documents", "words")]
    totals: Counter[str] = Counter()
    for corpus in densities:
        totals.update(corpus.spans)
    for label in sorted(totals, key=lambda name: (-totals[name], name)):
        shares = (f"{c.per_thousand(label):.2f}" if label in c.spans else "-" for c in densities)
        rows.append([label, *shares])
    head = ["spans per 1,000 words", *(corpus.corpus for corpus in densities)]
    print_table(head, rows, right=range(1, len(head)))


@train.command(short_help="Search for good options of a training backend.")
@take_options
def search(
    files: tuple[Path, ...] = FILES,
    *,
    output: Path = declare_output(REQUIRED, "new folder"),
    backend: str = BACKEND,
    trials: int = declare_setting(20, "number of trainings", low=1, option="N"),
    study: Path | None = declare_setting(
        None,
        "SQLite file of the trials; an existing file continues its search. By default OUTPUT/study.db",
        noun="new file",
        option="FILE",
    ),
    space: Path | None = declare_setting(
        None, "TOML file with a table per option: low and high, or choices", noun="file", option="FILE"
    ),
    training: Training,
    selection: Selection,
    reading: Reading,
    quiet: bool = QUIET,
) -> None:
    """Train repeatedly with different options, and report the best ones and those that matter.

    Each trial is judged by its strict F1 on the dev part; the test part is not used. The search writes trials.csv,
    importance.csv and best.json to OUTPUT, and a plot of the trials in parallel.png and parallel.svg.

    \b
    Example:
      allonym train search corpus.jsonl --backend spacy --trials 30 --set epochs=10 --output search
    """

    from allonym.train import backends
    from allonym.train import search as searching

    searching.import_optuna()
    search_space = searching.read_space(backend, space)
    setup = training.make_setup()
    training.make_options((backend,), dict.fromkeys((p.name for p in search_space), 1) | dict(training.set))
    train, dev, _ = training.split_records(selection.choose_records(reading.read_records(files)), reading)

    def score_trial(drawn: Mapping[str, Any]) -> float:
        options = training.make_options((backend,), {**training.set, **drawn})[backend]
        with open_scratch_folder() as folder:
            backends.train(backend, train, dev, folder, options=options, setup=setup)
            return backends.score_predictor(backends.load(backend, folder), dev, setup).strict.f1

    def print_trial(trial: searching.Trial) -> None:
        if not quiet:
            drawn = "  ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in trial.values.items())
            click.echo(f"trial {trial.number + 1} of {trials}  f1 {trial.score:.4f}  {drawn}", err=True)

    file, seed = study or output / "study.db", training.seed
    results = searching.search_parameters(
        score_trial, search_space, file, trials=trials, seed=seed, name=backend, report=print_trial
    )
    _write_search_report(results, search_space, output, seed)


def _write_search_report(trials: Sequence[Any], space: Sequence[Any], out: Path, seed: int) -> None:
    from allonym.train import search as searching

    out.mkdir(parents=True, exist_ok=True)
    write_file(out / "trials.csv", searching.format_trials(trials, space).encode("utf-8"))
    best = max(trials, key=lambda trial: (trial.score, -trial.number))
    _write_json(out / "best.json", {"score": best.score, "trial": best.number, "options": dict(best.values)})
    for suffix in ("png", "svg"):
        searching.plot_trials(trials, space, out / f"parallel.{suffix}")
    rows = []
    for row in searching.rank_options(trials, space, seed):
        correlation = "-" if row.correlation is None else f"{row.correlation:+.3f}"
        rows.append((row.name, f"{row.share:.3f}", correlation, best.values[row.name]))
    head = ["option", "importance", "correlation", "best"]
    lines = [",".join(map(str, row)) for row in [head, *rows]]
    write_file(out / "importance.csv", ("\n".join(lines) + "\n").encode("utf-8"))
    print_table(head, rows, right=(1, 2, 3))
    print_note(f"best strict F1 on the development part: {best.score:.4f} (trial {best.number + 1})", label="found:")
