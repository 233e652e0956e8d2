"""Training a tagger further: it learns a few documents, keeps its points, and is told what is proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
for needed in ("onnx", "safetensors"):
    pytest.importorskip(needed)

from tests.models.make_tiny import TINY  # noqa: E402

from allonym.detection.tagger import extract_spans  # noqa: E402
from allonym.errors import DataError, UnknownNameError  # noqa: E402
from allonym.models.tagger import ENGLISH, TaggerModel  # noqa: E402
from allonym.train import build  # noqa: E402
from allonym.train.backends import find_base_folder, make_options  # noqa: E402
from allonym.train.build import train_tagger_further  # noqa: E402
from allonym.train.fit import FURTHER  # noqa: E402
from allonym.train.records import make_record  # noqa: E402

pytestmark = pytest.mark.slow

CITIES = ("York", "Bank", "May", "London")
QUICK = {"epochs": 4, "lr": 3e-3, "head_lr": 1e-2, "batch": 256, "bf16": False, "average": 0.0, "dropout": 0.0}


def reviewed(n: int, **meta: Any) -> Any:
    """A sentence whose city a reviewer marked, as the server exports it."""
    city = CITIES[n % 4]
    text = f"Acme is of {city} in the year {n}."
    at = text.index(city)
    return make_record("", f"r{n}", text, [(at, at + len(city), "CITY")], meta={"source": "reviews", **meta})


RECORDS = [reviewed(n) for n in range(40)]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    monkeypatch.setattr(build, "_LEAST_REHEARSED", 10)
    yield
    torch.set_num_threads(before)


def train(out: Path, records: Any = RECORDS, dev: Any = (), **options: Any) -> dict[str, Any]:
    return train_tagger_further(records, dev, out, base=TINY, options=further({**QUICK, **options}))


def further(settings: dict[str, Any]) -> Any:
    return make_options("tagger", settings, further=True)


def covered(folder: Path) -> float:
    """The share of unseen sentences whose city is found."""
    model = TaggerModel(folder)
    hits = 0
    for n in range(40, 60):
        record = reviewed(n)
        (mark,) = record["spans"]
        found = extract_spans(record["text"], model(record["text"]), model.labels, dict.fromkeys(model.labels, 0.5))
        hits += any((s.start, s.end, s.label) == (mark["start"], mark["end"], "CITY") for s in found)
    return hits / 20


def test_it_learns_what_was_reviewed(tmp_path):
    made = train(tmp_path / "new")
    assert covered(TINY) < 0.5 < covered(tmp_path / "new")
    base = json.loads((TINY / "tagger.json").read_text())
    assert (made["name"], made["base"]) == ("new", "tiny")
    assert (made["points"], made["temperature"]) == (base["points"], base["temperature"])
    assert made["trained_on"]["records"] == 40 and made["trained_on"]["rehearsed"] >= 10


def test_training_repeats_itself_and_goes_on_from_its_own_model(tmp_path):
    for name in "ab":
        train(tmp_path / name, epochs=1)
    assert (tmp_path / "a" / "tagger.onnx").read_bytes() == (tmp_path / "b" / "tagger.onnx").read_bytes()
    made = train_tagger_further(
        RECORDS, [], tmp_path / "c", base=tmp_path / "a", options=further({**QUICK, "epochs": 1})
    )
    assert made["base"] == "a"


def test_a_few_documents_do_not_choose_the_epoch(tmp_path):
    dev = [reviewed(n, labels=[]) for n in range(40, 44)]
    misleading = [{**r, "spans": [{"start": 0, "end": 4, "label": "CITY"}]} for r in dev]
    for name, some in (("with", misleading), ("without", ())):
        train(tmp_path / name, dev=some)
    one, other = ((tmp_path / name / "tagger.onnx").read_bytes() for name in ("with", "without"))
    assert one == other


def test_what_was_not_looked_at_is_no_proof():
    mixed = [reviewed(1, labels=["CITY", "PERSON"]), reviewed(2, labels=["PRODUCT"]), reviewed(3)]
    told = [{"CITY", "PERSON_FIRSTNAME", "PERSON_LASTNAME"}, {"PRODUCT"}, {"CITY"}]
    assert build._list_annotated_labels(mixed, mixed, build.find_targets) == told
    assert build._list_annotated_labels([reviewed(4), reviewed(5, labels=[])], mixed[:2], build.find_targets) == [
        set(),
        set(),
    ]
    assert build._list_annotated_labels([{**reviewed(6), "meta": {}}], mixed, build.find_targets) == [{"CITY"}]


def test_what_is_marked_is_learned_though_nothing_is_proof(tmp_path):
    made = train(tmp_path / "new", [reviewed(n, labels=[]) for n in range(4)], epochs=1)
    assert made["trained_on"]["records"] == 4


def test_template_text_is_shown_along():
    few, many = build._generate_rehearsal_examples(0), build._generate_rehearsal_examples(3000)
    assert len(few) == 10
    assert 3000 <= sum(len(e.words) for e in many) < 3500
    assert {e.source for e in many} == {"synthetic"}


def test_what_cannot_be_trained(tmp_path):
    strange = [make_record("", "s", "a chemical", [(2, 10, "CHEMICALELEMENT")], meta={"source": "reviews"})]
    with pytest.raises(DataError, match="no label of the training records maps"):
        train(tmp_path / "x", strange)
    ward = [make_record("", "w", "of York ward", [(3, 7, "WARD")])]
    with pytest.raises(DataError, match=r'has no label WARD; .* as WARD = \["ORGANIZATION"\], or WARD = \[\] to leave'):
        train(tmp_path / "x", RECORDS, ward)
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="not a tagger that can be trained further"):
        train_tagger_further(RECORDS, [], tmp_path / "x", base=tmp_path / "other", options=further(QUICK))


def test_a_label_of_another_detector_is_no_error_in_a_review(tmp_path):
    own = [{**r, "spans": [*r["spans"], {"start": 0, "end": 4, "label": "WARD"}]} for r in RECORDS[:4]]
    for record in own:
        record["meta"]["labels"] = ["CITY", "WARD"]
    assert train(tmp_path / "new", own, epochs=1)["trained_on"]["records"] == 4


def test_a_base_is_a_name_or_a_folder(tmp_path):
    assert find_base_folder("english") == find_base_folder("") == ENGLISH
    assert find_base_folder(str(tmp_path)) == tmp_path
    with pytest.raises(UnknownNameError, match="--base: unknown tagger 'englsh'; did you mean: english"):
        find_base_folder("englsh")


def test_options_are_calmer_than_for_training_anew():
    assert further({}).head_lr == FURTHER["head_lr"] < make_options("tagger", {}).head_lr
    assert further({"epochs": "2", "lr": 1e-3}).epochs == 2
    with pytest.raises(UnknownNameError, match="did you mean: epochs"):
        further({"epoch": 2})
