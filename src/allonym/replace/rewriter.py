"""Running a model that rewrites passages: encoder and decoder (BART and its kin), or a causal one after a prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from allonym.errors import DataError, MissingExtra, UsageError

MARK = "\n=>\n"
"""What stands between a passage and its rewriting in the text of a causal model."""
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
        """What the model makes of each passage, the most likely words first; nothing is drawn at random.

        Args:
            passages: texts.
            beams: how many rewritings are followed at once.
            most: tokens of a passage and of its rewriting.
            batch: passages that the model reads at once.
            never: words whose beginnings the model must not write.
        """
        banned = self._beginnings(never)
        order = sorted(range(len(passages)), key=lambda i: len(passages[i]))
        out = [""] * len(passages)
        for at in range(0, len(order), batch):
            chosen = order[at : at + batch]
            for i, text in zip(chosen, self._written([passages[i] for i in chosen], beams, most, banned), strict=True):
                out[i] = text
        return out

    def _written(self, texts: Sequence[str], beams: int, most: int, banned: list[list[int]]) -> list[str]:
        import torch

        self.network.eval()
        asked = [self.asked(text, most) for text in texts]
        size = max(len(ids) for ids in asked)
        pad = self.tokenizer.pad_token_id
        # A causal model goes on where the text ends, so that what fills up stands in front.
        fill = [[pad] * (size - len(ids)) for ids in asked]
        ids = [f + a if self.causal else a + f for f, a in zip(fill, asked, strict=True)]
        seen = [
            [0] * len(f) + [1] * len(a) if self.causal else [1] * len(a) + [0] * len(f)
            for f, a in zip(fill, asked, strict=True)
        ]
        with torch.inference_mode():
            made = self.network.generate(
                input_ids=torch.tensor(ids, device=self.device),
                attention_mask=torch.tensor(seen, device=self.device),
                num_beams=beams,
                do_sample=False,
                max_new_tokens=_room(size, most),
                pad_token_id=pad,
                bad_words_ids=banned or None,
            )
        new = made[:, size:] if self.causal else made
        # Each has as much room as if it had been alone, so that a passage's rewriting is the same in any batch.
        own = [row[: _room(len(a), most) + (not self.causal)] for row, a in zip(new, asked, strict=True)]
        return [str(text).strip() for text in self.tokenizer.batch_decode(own, skip_special_tokens=True)]

    def _beginnings(self, words: Sequence[str]) -> list[list[int]]:
        """Tokens with which the words begin, with a space in front and without: as many as hold three letters."""
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

    def asked(self, text: str, most: int = TOKENS) -> list[int]:
        """The tokens that the model is given for a passage."""
        if not self.causal:
            return list(self.tokenizer(text, truncation=True, max_length=most)["input_ids"])
        mark = self.tokenizer(MARK, add_special_tokens=False)["input_ids"]
        body = self.tokenizer(text, add_special_tokens=False, truncation=True, max_length=most - len(mark))
        return [*body["input_ids"], *mark]


def _room(size: int, most: int) -> int:
    """Tokens that the rewriting of a passage of ``size`` tokens may have."""
    return min(most, size + size // 2 + 8)


def libraries() -> Any:
    """The library transformers, with torch under it.

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
def load(model: str, device: str = "cpu", allow_download: bool = False) -> Rewriter:
    """The model of a folder, or of a name on the hub that is stored here or may be fetched. Kept per process.

    Raises:
        MissingExtra: transformers or torch is not installed.
        UsageError: no model is named.
        DataError: there is no such model, or it is of another kind.
    """
    if not model:
        raise UsageError("operator 'seq2seq' needs the option model: a folder that 'allonym train seq2seq' made")
    hub = libraries()
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
