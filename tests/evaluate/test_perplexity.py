"""Perplexity: placeholders, folds; a causal model from a folder."""

import math
import subprocess
import sys

import pytest

from allonym.errors import DataError, UsageError
from allonym.evaluate.surface_measures import perplexity


def test_placeholders_are_passed_over_and_break_the_history():
    texts = ["the cat sat on the mat"] * 6
    before, after = perplexity(texts, ["[PERSON_1] sat on the mat", *texts[1:]]).values
    assert after[1:] == before[1:] and math.isfinite(after[0])
    only = perplexity(texts, ["[PERSON_1]", *texts[1:]]).values[1]
    assert math.isnan(only[0])


def test_no_text_is_judged_by_a_model_that_saw_it():
    texts = ["common words stand here", "common words stand here", "strange zebra quagga okapi"]
    before, _ = perplexity(texts, texts, folds=3).values
    assert before[2] > 2 * before[0]


def test_one_text_has_no_perplexity():
    found = perplexity(["a b"], ["a b"])
    assert math.isnan(found.before.value) and "only one text" in found.before.method


def test_the_seed_settles_the_folds():
    texts = [f"text {i} of {i * 7 % 5} and {i % 3}" for i in range(12)]
    assert perplexity(texts, texts, seed=3) == perplexity(texts, texts, seed=3)
    assert perplexity(texts, texts, seed=3) != perplexity(texts, texts, seed=4)


def test_refuses(tmp_path):
    with pytest.raises(DataError, match="required"):
        perplexity([], [])
    with pytest.raises(UsageError, match="two folds"):
        perplexity(["a"], ["b"], folds=1)
    with pytest.raises(UsageError, match="no such folder"):
        perplexity(["a"], ["b"], model=tmp_path / "none")


CAUSAL = """
import sys, json, math, warnings
warnings.simplefilter("ignore")
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
import torch
from allonym.evaluate.surface_measures import perplexity
folder = sys.argv[1]
words = ["<s>", "<unk>", "the", "cat", "sat"]
tok = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "<unk>"))
tok.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tok, bos_token="<s>", unk_token="<unk>").save_pretrained(folder)
torch.manual_seed(0)
net = GPT2LMHeadModel(GPT2Config(vocab_size=5, n_positions=8, n_embd=8, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=0))
torch.nn.init.zeros_(net.transformer.wte.weight)
net.save_pretrained(folder)
print(json.dumps(perplexity(["the cat sat " * 9], ["the cat"], model=folder).values))
"""


@pytest.mark.slow
def test_a_causal_model_from_a_folder(tmp_path):
    """One whose embeddings are all zero finds each of its five words equally likely, in windows as in one piece."""
    pytest.importorskip("transformers")
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, "-c", CAUSAL, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-800:]
    values = [float(v) for v in done.stdout.strip().splitlines()[-1].strip("[]").replace("], [", ",").split(",")]
    assert values == pytest.approx([5, 5], rel=1e-4)
