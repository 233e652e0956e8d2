"""Runs a model that rewrites passages: encoder and decoder (BART and its kin), or a causal one after a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from allonym.errors import DataError, MissingExtra, UsageError

MARK = "\n=>\n"
"""The mark between a passage and its rewriting in the text of a causal model."""
TOKENS = 256
"""Tokens of a passage, and of its rewriting, at most."""


@dataclass(frozen=True, slots=True)
class Rewriter:
    """A model with its tokenizer.

    Attributes:
        tokenizer, network: of the library transformers.
        causal: whether the rewriting follows the passage in one text.
        device: where it runs, as PyTorch names it.
    """

    tokenizer: Any = field(repr=False)
    network: Any = field(repr=False)
    causal: bool
    device: str = "cpu"

    def rewrite(
        self, passages: Sequence[str], *, beams: int = 1, most: int = TOKENS, batch: int = 16, never: Sequence[str] = ()
    ) -> list[str]:
        """Return the model's rewriting of each passage: the most likely one, nothing is drawn at random.

        Args:
            passages: texts.
            beams: how many rewritings are followed at once.
            most: tokens of a passage and of its rewriting.
            batch: passages that the model reads at once.
            never: words whose beginnings the model must not write.
        """
        banned = self._encode_beginnings(never)
        order = sorted(range(len(passages)), key=lambda i: len(passages[i]))
        out = [""] * len(passages)
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            texts = self._rewrite_batch([passages[i] for i in chosen], beams, most, banned)
            for i, text in zip(chosen, texts, strict=True):
                out[i] = text
        return out

    def _rewrite_batch(self, texts: Sequence[str], beams: int, most: int, banned: list[list[int]]) -> list[str]:
        import torch

        self.network.eval()
        tokens = [self.encode_passage(text, most) for text in texts]
        size = max(map(len, tokens))

        def pad(row: list[int], fill: int) -> list[int]:
            # A causal model continues where the text ends, so that the padding stands in front.
            padding = [fill] * (size - len(row))
            return padding + row if self.causal else row + padding

        with torch.inference_mode():
            outputs = self.network.generate(
                input_ids=torch.tensor([pad(row, self.tokenizer.pad_token_id) for row in tokens], device=self.device),
                attention_mask=torch.tensor([pad([1] * len(row), 0) for row in tokens], device=self.device),
                num_beams=beams,
                do_sample=False,
                max_new_tokens=_get_output_token_limit(size, most),
                pad_token_id=self.tokenizer.pad_token_id,
                bad_words_ids=banned or None,
            )
        outputs = outputs[:, size:] if self.causal else outputs
        # Each has as much room as if it had been alone, so that a passage's rewriting is the same in any batch.
        rooms = [_get_output_token_limit(len(row), most) + (not self.causal) for row in tokens]
        cut = [output[:room] for output, room in zip(outputs, rooms, strict=True)]
        return [str(text).strip() for text in self.tokenizer.batch_decode(cut, skip_special_tokens=True)]

    def _encode_beginnings(self, words: Sequence[str]) -> list[list[int]]:
        """Return the first tokens of words, with a space in front and without: as many as hold three letters."""
        out: list[list[int]] = []
        for word in dict.fromkeys(words):
            for text in (word, f" {word}"):
                ids = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
                size = next(
                    (n for n in range(1, len(ids)) if len(self.tokenizer.decode(ids[:n]).strip()) >= 3), len(ids)
                )
                if ids and ids[:size] not in out:
                    out.append(ids[:size])
        return out

    def encode_passage(self, text: str, most: int = TOKENS) -> list[int]:
        """Return the tokens of a passage as the model reads them."""
        if not self.causal:
            return list(self.tokenizer(text, truncation=True, max_length=most)["input_ids"])
        mark = self.tokenizer(MARK, add_special_tokens=False)["input_ids"]
        body = self.tokenizer(text, add_special_tokens=False, truncation=True, max_length=most - len(mark))
        return [*body["input_ids"], *mark]


def _get_output_token_limit(size: int, most: int) -> int:
    """Return the tokens that the rewriting of a passage of ``size`` tokens may have."""
    return min(most, size + size // 2 + 8)


def import_libraries() -> Any:
    """Import the library transformers, with torch.

    Raises:
        MissingExtra: one of them is not installed.
    """
    try:
        import torch  # noqa: F401
        import transformers
    except ImportError:
        raise MissingExtra("the operator seq2seq", "seq2seq") from None
    return transformers


@lru_cache(maxsize=2)
def load_rewriter(model: str, device: str = "cpu", allow_download: bool = False) -> Rewriter:
    """Load the model of a folder, or of a name on the hub that is stored here or may be fetched; once per process.

    Raises:
        MissingExtra: transformers or torch is not installed.
        UsageError: no model is named.
        DataError: there is no such model, or it is of another kind.
    """
    if not model:
        raise UsageError("operator 'seq2seq' needs the option model: a folder that 'allonym train seq2seq' made")
    hub = import_libraries()
    local = not allow_download or Path(model).is_dir()
    try:
        config = hub.AutoConfig.from_pretrained(model, local_files_only=local)
        tokenizer = hub.AutoTokenizer.from_pretrained(model, local_files_only=local)
        kind = hub.AutoModelForSeq2SeqLM if config.is_encoder_decoder else hub.AutoModelForCausalLM
        network = kind.from_pretrained(model, local_files_only=local).to(device)
    except Exception as error:  # no text has been read yet, but messages of libraries hold pages of advice
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        hint = "" if allow_download else "; models are fetched only where allow_download says so"
        raise DataError(f"cannot load the model {model!r} ({reason}){hint}") from None
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return Rewriter(tokenizer, network.eval(), not config.is_encoder_decoder, device)
