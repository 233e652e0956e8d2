"""The trainer on a toy: it learns, it repeats itself, and it goes on as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("safetensors", reason="reading encoders needs safetensors")

from tests.models.make_tiny import VOCABULARY, write_encoder  # noqa: E402

from allonym.errors import DataError, UnknownNameError, UsageError  # noqa: E402
from allonym.models.tags import LABELS, PARTS  # noqa: E402
from allonym.models.windows import LENGTH, cut_windows, tokenise_text  # noqa: E402
from allonym.models.words import WordPiece  # noqa: E402
from allonym.train.examples import ALL, Example, Lists, make_example  # noqa: E402
from allonym.train.fit import Options, fit, make_windows, measure_tagger  # noqa: E402
from allonym.train.network import Encoder, Tagger  # noqa: E402

pytestmark = pytest.mark.slow

OPTIONS = Options(epochs=2, lr=3e-3, head_lr=1e-2, batch=64, average=0.0, bf16=False, dropout=0.1, swap=0.5, spell=0.1)
LISTS = Lists(frozenset({"ann", "bob"}), frozenset({"lee", "smith"}))
CITIES = ("London", "York", "Bonn", "Rome")


def made(i: int) -> Example:
    city, name = CITIES[i % 4], ("Ann", "Lee", "Bob")[i % 3]
    text = f"{name} works in {city} at number {i}."
    spans = [
        {"start": 0, "end": len(name), "label": "PERSON_FIRSTNAME"},
        {"start": text.index(city), "end": text.index(city) + len(city), "label": "CITY"},
    ]
    return make_example(
        {"id": str(i), "text": text, "spans": spans},
        "toy",
        frozenset(LABELS),
        lambda label, _: frozenset([label]),
        LISTS,
    )


TRAIN, DEV = [made(i) for i in range(48)], [made(i) for i in range(48, 60)]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Threads wait for each other longer than so small a network takes."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp("encoder"))


def run(encoder: Path, out: Path, options: Options = OPTIONS, **more: Any) -> tuple[Any, list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    model = fit(
        [(1, TRAIN)], DEV, out, encoder=encoder, options=options, lists=LISTS, **{"report": rows.append, **more}
    )
    return model, rows


def same(one: Any, other: Any) -> bool:
    a, b = one.state_dict(), other.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_two_epochs_lower_the_loss(encoder: Path, tmp_path: Path) -> None:
    model, rows = run(encoder, tmp_path)
    assert [row["epoch"] for row in rows] == [1, 2]
    assert rows[1]["loss"] < 0.7 * rows[0]["loss"]
    assert not model.training
    measured = measure_tagger(model, DEV, WordPiece(VOCABULARY))
    assert measured["f1"] == max(row["f1"] for row in rows)
    assert [json.loads(line) for line in (tmp_path / "epochs.jsonl").read_text().splitlines()] == rows


class Stopped(Exception):
    pass


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_resumed_training_ends_where_uninterrupted_training_does(encoder: Path, tmp_path: Path, average: float) -> None:
    options = Options.of(
        {**{f: getattr(OPTIONS, f) for f in Options.__dataclass_fields__}, "epochs": 3, "average": average}
    )
    whole, rows = run(encoder, tmp_path / "a", options)

    def stop(row: dict[str, Any]) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        run(encoder, tmp_path / "b", options, report=stop)
    torch.rand(7)  # what happens between does not matter
    resumed, left = run(encoder, tmp_path / "b", options, resume=True)
    assert left == rows[1:]
    assert same(whole, resumed)


def test_training_repeats_itself_and_its_seed_matters(encoder: Path, tmp_path: Path) -> None:
    short = Options(epochs=1, batch=64, bf16=False, lr=1e-3)
    one, two = (run(encoder, tmp_path / name, short)[0] for name in "ab")
    other = run(encoder, tmp_path / "c", Options(epochs=1, batch=64, bf16=False, lr=1e-3, seed=2))[0]
    assert same(one, two)
    assert not same(one, other)


def test_frozen_layers_stay_as_they_are(encoder: Path, tmp_path: Path) -> None:
    start = Tagger(Encoder.read(encoder), 1 + 2 * len(LABELS), len(PARTS))
    before = {name: value.clone() for name, value in start.state_dict().items()}
    after = run(encoder, tmp_path, replace(OPTIONS, frozen=1, average=0.9), start=start)[0].state_dict()
    changed = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert {"tags.weight", "encoder.layers.1.up.weight"} <= changed
    assert not any(name.startswith(("encoder.layers.0.", "encoder.shapes", "encoder.norm")) for name in changed)


def test_training_ends_when_patience_does(encoder: Path, tmp_path: Path) -> None:
    _, rows = run(encoder, tmp_path, Options(epochs=9, lr=0.0, head_lr=0.0, patience=2, batch=64, bf16=False))
    assert len(rows) == 3


def test_a_checkpoint_of_other_options_is_refused(encoder: Path, tmp_path: Path) -> None:
    short = Options(epochs=1, batch=64, bf16=False)
    run(encoder, tmp_path, short)
    with pytest.raises(UsageError, match="other options"):
        run(encoder, tmp_path, Options(epochs=1, batch=64, bf16=False, seed=9), resume=True)


def test_nothing_to_train_on(encoder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no training data"):
        fit([(1, [])], [], tmp_path, encoder=encoder, options=OPTIONS)


def test_options_of_a_recipe() -> None:
    assert Options.of({"epochs": 7, "lr": 0.1}) == Options(epochs=7, lr=0.1)
    with pytest.raises(UnknownNameError, match="unknown training option 'epoch'; did you mean: epochs"):
        Options.of({"epoch": 7})


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_folder_that_is_no_encoder(tmp_path: Path, name: str) -> None:
    folder = write_encoder(tmp_path / "encoder")
    (folder / name).unlink()
    with pytest.raises(DataError, match="not a BERT encoder"):
        run(folder, tmp_path / "out")


def test_windows_are_cut_as_in_use() -> None:
    text = ("Ann Lee works in London.\n" * 40) + "Ann and Bob " * 90
    pieces = WordPiece(VOCABULARY)
    given = make_example({"id": "1", "text": text, "spans": []}, "toy", frozenset(LABELS), lambda *_: None, LISTS)
    used, trained = cut_windows(tokenise_text(text, pieces), pieces), make_windows(given, pieces)
    assert used == [t.window for t in trained]
    told = [i for w, t in zip(used, trained, strict=True) for i, m in enumerate(t.allowed, w.first) if m != ALL]
    assert told == list(range(len(given.words)))  # each word is learnt from once
    assert max(len(t.window.pieces) for t in trained) <= LENGTH + 2
