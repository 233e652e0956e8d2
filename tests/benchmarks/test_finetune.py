"""The benchmark of what a model remembers: it runs, and its exposure tells what was learnt from what was not."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("tokenizers")
pytest.importorskip("rouge_score")

from benchmarks import finetune

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def one_thread():
    """More get into each other's way with networks as small as these."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_number_that_was_learnt_is_exposed_and_written():
    size = finetune.Size(1, 60, 1, 32, 300, 64, 63, (1,), 1, 1, 16, 0.5, 4, 1e-2)
    canary = finetune.Canary("You can call Odell Tarnby on", "(206) 555-0147", 1)
    examples = [(f"{finetune.ASKED}Caller: {canary.start} {canary.number}.", "ok")] * 4
    model = finetune.Learner([p + c for p, c in examples], size, 0)
    before = finetune.measure_memory(model, [canary], size, 1)[1]
    model.learn(examples, 0)
    after = finetune.measure_memory(model, [canary], size, 1)[1]
    assert after["exposure"].value == 6 > before["exposure"].value  # the first of 64
    assert (before["extracted"].value, after["extracted"].value) == (0, 1)


def test_all_versions_run_and_anonymising_takes_the_canaries_out():
    result = finetune.compare_versions(None, finetune.SMALL, 0)
    left = {name: result[name]["canaries_left"].value for name in finetune.VERSIONS}
    assert left == {"original": 1, "tags": 0, "pseudonyms": 0}
    assert {result[name]["examples"] for name in finetune.VERSIONS} == {result["original"]["examples"]}
    assert result["tags"]["edits"] > 0 == result["original"]["edits"]
    lines = list(finetune.format_table(result, finetune.SMALL))
    assert all(line.count("|") == len(finetune.VERSIONS) + 2 for line in lines)


def test_macro_f1_is_the_mean_over_the_classes():
    pairs = [("a", "a"), ("a", "b"), ("b", "b"), ("x", "b")]
    assert finetune.macro_f1(pairs) == pytest.approx((2 * 1 / (1 + 2) + 2 * 1 / (3 + 1)) / 2)
