"""Runs a model that rewrites passages, and aligns what it makes of them with the text.

The model has an encoder and a decoder (BART and its kin), or is a causal one after a prompt. For the alignment both
sides are divided into words and signs; difflib (Ratcliff and Obershelp) finds what they share. A change counts for a
place of the source only where it lies in that place and nowhere beside it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import Any

from allonym.document import Interval
from allonym.errors import DataError, UsageError, require_extra
from allonym.text.words import TOKEN

MARK = "\n=>\n"
"""The mark between a passage and its rewriting in the text of a causal model."""
TOKENS = 256
"""Tokens of a passage, and of its rewriting, at most."""
_BATCH = 16  # passages that the model reads at once


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
        self, passages: Sequence[str], *, beams: int = 1, token_limit: int = TOKENS, banned: Sequence[str] = ()
    ) -> list[str]:
        """Return the model's rewriting of each passage: the most likely one, nothing is drawn at random.

        Args:
            passages: texts.
            beams: how many rewritings are followed at once.
            token_limit: tokens of a passage and of its rewriting.
            banned: words whose beginnings the model must not write.
        """
        banned_tokens = self._encode_word_beginnings(banned)
        order = sorted(range(len(passages)), key=lambda i: len(passages[i]))
        out = [""] * len(passages)
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            texts = self._rewrite_batch([passages[i] for i in chosen], beams, token_limit, banned_tokens)
            for i, text in zip(chosen, texts, strict=True):
                out[i] = text
        return out

    def _rewrite_batch(self, texts: Sequence[str], beams: int, token_limit: int, banned: list[list[int]]) -> list[str]:
        import torch

        self.network.eval()
        tokens = [self.encode_passage(text, token_limit) for text in texts]
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
                max_new_tokens=_get_output_token_limit(size, token_limit),
                pad_token_id=self.tokenizer.pad_token_id,
                bad_words_ids=banned or None,
            )
        outputs = outputs[:, size:] if self.causal else outputs
        # Each has as much room as if it had been alone, so that a passage's rewriting is the same in any batch.
        rooms = [_get_output_token_limit(len(row), token_limit) + (not self.causal) for row in tokens]
        cut = [output[:room] for output, room in zip(outputs, rooms, strict=True)]
        return [str(text).strip() for text in self.tokenizer.batch_decode(cut, skip_special_tokens=True)]

    def _encode_word_beginnings(self, words: Sequence[str]) -> list[list[int]]:
        """Return the first tokens of words, with a space in front and without: as many as hold three letters."""
        out: list[list[int]] = []
        for word in dict.fromkeys(words):
            for text in (word, f" {word}"):
                ids = list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
                sizes = (n for n in range(1, len(ids)) if len(self.tokenizer.decode(ids[:n]).strip()) >= 3)
                size = next(sizes, len(ids))
                if ids and ids[:size] not in out:
                    out.append(ids[:size])
        return out

    def encode_passage(self, text: str, token_limit: int = TOKENS) -> list[int]:
        """Return the tokens of a passage as the model reads them."""
        if not self.causal:
            return list(self.tokenizer(text, truncation=True, max_length=token_limit)["input_ids"])
        mark = self.tokenizer(MARK, add_special_tokens=False)["input_ids"]
        body = self.tokenizer(text, add_special_tokens=False, truncation=True, max_length=token_limit - len(mark))
        return [*body["input_ids"], *mark]


def _get_output_token_limit(size: int, token_limit: int) -> int:
    """Return the tokens that the rewriting of a passage of ``size`` tokens may have."""
    return min(token_limit, size + size // 2 + 8)


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
    with require_extra("the operator seq2seq", "seq2seq"):
        import torch  # noqa: F401
        import transformers
    hub: Any = transformers
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


LENGTH = 160
"""Characters that a passage has at most, unless a place that must not be cut is longer."""

_Block = tuple[str, int, int, int, int]
_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|\n+")
_SPACE = re.compile(r"\s+")


def split_passages(text: str, places: Iterable[Interval], length: int = LENGTH) -> list[Interval]:
    """Divide a text into sentences and lines, short ones together, without the space around them.

    Args:
        text: any.
        places: places that no cut may go through, sorted.
        length: of a passage at most, in characters; a longer sentence is cut at a space.
    """
    fixed = list(places)
    ends = _find_cut_offsets(_END, text, fixed)
    spaces: list[int] | None = None
    out: list[Interval] = []
    start = previous = 0
    for end in [*ends, len(text)]:
        if end - start > length and previous > start:
            out.append((start, previous))
            start = previous
        while end - start > length:
            spaces = _find_cut_offsets(_SPACE, text, fixed) if spaces is None else spaces
            first = bisect_right(spaces, start)
            last = bisect_right(spaces, start + length, first) - 1  # the last one that leaves it short enough
            cut = spaces[max(first, last)] if first < len(spaces) else end
            if cut >= end:
                break
            out.append((start, cut))
            start = cut
        previous = end
    out.append((start, len(text)))
    trimmed = ((a + len(t) - len(t.lstrip()), a + len(t.rstrip())) for a, b in out for t in (text[a:b],))
    return [(a, b) for a, b in trimmed if a < b]


def _find_cut_offsets(pattern: re.Pattern[str], text: str, places: Sequence[Interval]) -> list[int]:
    """Return the ends of the pattern's matches that lie inside no place."""
    out: list[int] = []
    i = 0
    for match in pattern.finditer(text):
        end = match.end()
        while i < len(places) and places[i][1] <= end:
            i += 1
        if i == len(places) or places[i][0] >= end:
            out.append(end)
    return out


@dataclass(frozen=True, slots=True)
class Alignment:
    """The changes of a model's output against its source.

    Attributes:
        values: for each place, its text in the output; None where the change reaches beyond the place. Hidden from
            ``repr``.
        rejected: number of changes outside of all places, or reaching beyond one.
        unchanged: number of words and signs outside of all places that are unchanged in the output, and of all of them.
    """

    values: tuple[str | None, ...] = field(repr=False)
    rejected: int
    unchanged: tuple[int, int]


def align_output(source: str, output: str, places: Sequence[Interval]) -> Alignment:
    """Align an output to its source.

    Args:
        source, output: one passage each.
        places: of the source, sorted and disjoint.
    """
    source_tokens, output_tokens = list(TOKEN.finditer(source)), list(TOKEN.finditer(output))
    spans = [_find_token_range(source_tokens, place) for place in places]
    inside = [-1] * len(source_tokens)
    for number, (a, b) in enumerate(spans):
        inside[a:b] = [number] * (b - a)
    matcher = SequenceMatcher(None, [t[0] for t in source_tokens], [t[0] for t in output_tokens], autojunk=False)
    to: list[int | None] = [None] * (len(source_tokens) + 1)  # boundary of the source to that of the output
    broken: set[int] = set()
    rejected = unchanged = 0
    for tag, i1, i2, j1, j2 in _split_blocks(matcher.get_opcodes(), inside):
        if tag == "equal":
            for i in range(i1, i2):
                unchanged += inside[i] < 0
                to[i] = j1 + i - i1
            to[i2] = j2
            continue
        touched = set(inside[i1:i2])
        fits = len(touched) == 1 and -1 not in touched
        if fits:
            to[i1] = j1 if to[i1] is None else to[i1]
            to[i2] = j2
        else:
            rejected += 1
            broken |= touched
            # Words inserted right before or behind a place are no part of it, and no other change of it is certain.
            broken |= {inside[i] for i in (i1 - 1, i2) if tag == "insert" and 0 <= i < len(inside)}
    values: list[str | None] = []
    for number, (a, b) in enumerate(spans):
        start, end = to[a], to[b]
        if number in broken or start is None or end is None or start >= end or a == b:
            values.append(None)
        else:
            values.append(output[output_tokens[start].start() : output_tokens[end - 1].end()])
    outside = sum(n < 0 for n in inside)
    return Alignment(tuple(values), rejected, (unchanged, outside))


def _split_blocks(blocks: Iterable[_Block], inside: Sequence[int]) -> Iterable[_Block]:
    """Yield the blocks; those that replace words by as many others are cut at the bounds of places."""
    for tag, i1, i2, j1, j2 in blocks:
        start = i1
        if tag == "replace" and i2 - i1 == j2 - j1:
            for i in range(i1 + 1, i2):
                if inside[i] != inside[i - 1]:
                    yield tag, start, i, j1 + start - i1, j1 + i - i1
                    start = i
        yield tag, start, i2, j1 + start - i1, j2


def _find_token_range(tokens: Sequence[re.Match[str]], place: Interval) -> Interval:
    """Return the first and the last token of a place, half open."""
    hit = [i for i, t in enumerate(tokens) if t.start() < place[1] and place[0] < t.end()]
    return (hit[0], hit[-1] + 1) if hit else (0, 0)
