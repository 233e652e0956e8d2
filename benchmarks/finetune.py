"""What a model remembers: a small causal model is trained on dialogues as they are, with tags, and with pseudonyms.

    python benchmarks/finetune.py DIALOGUES.jsonl.gz     # records with text and summaries; minutes on two cores
    python benchmarks/finetune.py                        # invented dialogues
    python benchmarks/finetune.py --small                # less than a minute; says nothing but that it runs

After P2, section 5. The model is GPT-2's network, small and with random weights, and its tokenizer is trained on the
same texts, so that it knows nothing from elsewhere. It learns whole examples, prompts too: the worst case for secrets.
Sets are made by ``allonym export sft``'s function, with a vault; the same documents are held out in each version.

Measured for each version, on a graphics card if there is one:
- ROUGE (F1) of summaries of held-out dialogues, and accuracy and macro F1 of the heading that goes before them;
- planted canaries (Carlini et al. 2019, arXiv:1802.08232): people with a phone number, repeated in training. Exposure
  is log2 of the candidates less log2 of the canary's rank among them, by how likely the model holds the number to be
  after the name: 9 bits where it is the first of 512, and 1.4 on average where nothing is remembered. Extracted:
  the number is what the model writes by itself (greedily);
- what ``allonym evaluate generations`` finds in texts that the model writes from nothing, and after the canaries'
  beginnings, by the vault's digests. The baseline are texts of a network that has learnt from the other dialogues.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from allonym.evaluate import generations
from allonym.evaluate.summarising import measure_rouge
from allonym.export import Prompts, Split, Task, export_path
from allonym.policy import Policy
from allonym.stats.samples import average, share
from allonym.vault import Vault

SECRET = b"a secret for the benchmark alone"
TASK = Task("note", "Write a note of this talk.", "{heading}: {note}", "{text}")
NOTHING = Policy.load("default").with_(name="as it is", labels=(), every=False)
VERSIONS = {"original": NOTHING, "tags": Policy.load("default"), "pseudonyms": Policy.load("pseudonyms")}
ASKED = f"{TASK.prompt}\n\n"
FIRST = "Marla Corin Tessa Odell Brona Yusra Piet Hanno Selma Ravi Dunja Ilse Tomas Keiko Amadi Greta".split()
LAST = "Wexler Tarnby Quillan Osterly Vandrey Hollis Brackwell Pemberly Sorrento Makande Lindqvist Farrow".split()
TOPICS = {
    "DELIVERY": ("a parcel that has not come", "it would be sent again on {day}"),
    "BILLING": ("an invoice that was paid twice", "the money would be back by {day}"),
    "REPAIR": ("a heater that does not start", "a mechanic would come on {day}"),
    "ACCOUNT": ("a password that does not work", "a new one would be mailed on {day}"),
    "BOOKING": ("a room for two nights", "the room was free from {day}"),
}
DAYS = "Monday Tuesday Wednesday Thursday Friday".split()


@dataclass(frozen=True)
class Size:
    """How much is learnt, and by what."""

    documents: int = 600
    epochs: int = 10
    layers: int = 4
    width: int = 128
    vocabulary: int = 3000
    tokens: int = 288
    candidates: int = 511
    repeats: tuple[int, ...] = (1, 4, 16)
    canaries: int = 6
    samples: int = 200
    written: int = 64
    held_out: float = 0.15
    batch: int = 8
    rate: float = 2e-3


SMALL = Size(24, 2, 1, 32, 400, 160, 15, (1, 4), 2, 4, 16, 0.3)


@dataclass(frozen=True)
class Canary:
    """An invented person with a phone number, planted in so many training examples."""

    start: str
    number: str
    repeats: int


def invent_dialogues(count: int, draw: random.Random) -> Iterator[dict[str, str]]:
    """Dialogues of a help desk, with a heading and a note."""
    for i in range(count):
        heading = draw.choice(sorted(TOPICS))
        about, answer = TOPICS[heading]
        name, agent = (f"{draw.choice(FIRST)} {draw.choice(LAST)}" for _ in range(2))
        answer = answer.format(day=draw.choice(DAYS))
        text = (
            f"Agent: Hello, this is {agent}. How can I help?\nCustomer: I am {name}, and I call about {about}.\n"
            f"Agent: I see, {name.split()[0]}. I looked it up, and {answer}.\nCustomer: Thank you, {agent.split()[0]}."
        )
        yield {"id": f"d{i}", "text": text, "heading": heading, "note": f"{name} called about {about}; {answer}."}


def read_dialogues(path: Path, count: int, draw: random.Random) -> Iterator[dict[str, str]]:
    """Dialogues with summaries of a file, of a size that fits."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    fitting = [r for r in rows if 20 <= len(r["text"].split()) <= 140 and 5 <= len(get_note(r).split()) <= 50]
    draw.shuffle(fitting)
    for i, row in enumerate(fitting[:count]):
        heading = str(row.get("meta", {}).get("section", "NOTE"))
        yield {"id": f"d{i}", "text": row["text"].replace("\r", ""), "heading": heading, "note": get_note(row)}


def get_note(row: dict[str, Any]) -> str:
    """The summary of a record."""
    found = row.get("summaries") or row.get("summary") or ""
    return " ".join((found[0] if isinstance(found, list) else found).split())


def draw_phone_number(draw: random.Random) -> str:
    """A number that is kept for examples: 62,500 there are."""
    return f"({draw.randrange(2, 10)}{draw.randrange(0, 100):02d}) 555-01{draw.randrange(0, 100):02d}"


def plant_canaries(rows: list[dict[str, str]], size: Size, split: Split, draw: random.Random) -> list[Canary]:
    """Canaries, written into dialogues that will be trained on, as the second turn; never two in one."""
    training = [row for row in rows if split.choose_split(row["id"]) == "train"]
    draw.shuffle(training)
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    draw.shuffle(names)
    out = []
    for repeats in size.repeats:
        for _ in range(size.canaries):
            some = [training.pop() for _ in range(repeats)]
            said = f"My name is {names.pop()} and you can call me on"
            canary = Canary(said, draw_phone_number(draw), repeats)
            for row in some:
                first, _, rest = row["text"].partition("\n")
                who = rest.partition(":")[0] if ":" in rest[:40] else "Caller"
                row["text"] = f"{first}\n{who}: {said} {canary.number}.\n{rest}"
            out.append(canary)
    return out


class Learner:
    """A network and its tokenizer, both made from texts."""

    def __init__(self, texts: Sequence[str], size: Size, seed: int) -> None:
        import torch
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
        from transformers import GPT2Config, GPT2LMHeadModel
        from transformers.utils import logging

        logging.set_verbosity(logging.CRITICAL)
        self.torch, self.size = torch, size
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.tokenizer = Tokenizer(models.BPE())
        # Digits one by one, so that a number costs as many steps whichever numbers the texts have.
        cut = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        self.tokenizer.pre_tokenizer = pre_tokenizers.Sequence(cut)
        self.tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=size.vocabulary, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False
        )
        self.tokenizer.train_from_iterator(texts, trainer)
        torch.manual_seed(seed)
        config = GPT2Config(
            vocab_size=self.tokenizer.get_vocab_size(), n_positions=size.tokens + size.written, n_embd=size.width,
            n_layer=size.layers, n_head=max(1, size.width // 32), bos_token_id=0, eos_token_id=0, pad_token_id=0,
        )  # fmt: skip
        self.network = GPT2LMHeadModel(config).to(self.device)

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def example(self, prompt: str, completion: str) -> list[int]:
        """Between two ends; of a long prompt the beginning is kept."""
        answer = self.ids(completion)[: self.size.written]
        return [0, *self.ids(prompt)[: self.size.tokens - len(answer) - 2], *answer, 0]

    def learn(self, examples: Sequence[tuple[str, str]], seed: int) -> float:
        """Train on all of every example; the mean loss of the last epoch."""
        torch, size = self.torch, self.size
        rows = [self.example(*one) for one in examples]
        steps = size.epochs * math.ceil(len(rows) / size.batch)
        best = torch.optim.AdamW(self.network.parameters(), lr=size.rate, weight_decay=0.01)
        plan = torch.optim.lr_scheduler.OneCycleLR(best, size.rate, total_steps=steps, pct_start=0.1)
        draw = random.Random(seed)
        self.network.train()
        losses: list[float] = []
        for _ in range(size.epochs):
            order = sorted(range(len(rows)), key=lambda i: (len(rows[i]) // 32, draw.random()))
            batches = [order[at : at + size.batch] for at in range(0, len(order), size.batch)]
            draw.shuffle(batches)
            losses = []
            for chosen in batches:
                ids, seen = self.filled([rows[i] for i in chosen])
                loss = self.network(input_ids=ids, attention_mask=seen, labels=ids.masked_fill(seen == 0, -100)).loss
                best.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                best.step()
                plan.step()
                losses.append(float(loss.detach()))
        self.network.eval()
        return statistics.fmean(losses)

    def filled(self, rows: Sequence[list[int]], *, left: bool = False) -> tuple[Any, Any]:
        """Rows of one length, and which of it counts."""
        most = max(map(len, rows))
        pads = [[0] * (most - len(row)) for row in rows]
        ids = [[*pad, *row] if left else [*row, *pad] for row, pad in zip(rows, pads, strict=True)]
        ones = [[1] * len(row) for row in rows]
        seen = [[*pad, *one] if left else [*one, *pad] for one, pad in zip(ones, pads, strict=True)]
        return self.torch.tensor(ids, device=self.device), self.torch.tensor(seen, device=self.device)

    def write(self, prompts: Sequence[str], *, drawn: bool = False, most: int = 0) -> list[str]:
        """What the network writes after prompts: the likeliest words, or drawn ones."""
        out = []
        room = self.size.tokens
        for at in range(0, len(prompts), 32):
            rows = [[0, *self.ids(prompt)[: room - 1]] for prompt in prompts[at : at + 32]]
            ids, seen = self.filled(rows, left=True)
            with self.torch.inference_mode():
                made = self.network.generate(
                    input_ids=ids, attention_mask=seen, do_sample=drawn, top_k=0, num_beams=1, pad_token_id=0,
                    eos_token_id=0, max_new_tokens=most or self.size.written,
                )  # fmt: skip
            out += [self.tokenizer.decode([t for t in row if t]) for row in made[:, ids.shape[1] :].tolist()]
        return out

    def costs(self, start: str, ends: Sequence[str]) -> list[float]:
        """Bits that the network needs for each end after a start."""
        torch = self.torch
        head = [0, *self.ids(start)]
        out: list[float] = []
        for at in range(0, len(ends), 128):
            rows = [[*head, *self.ids(end)] for end in ends[at : at + 128]]
            ids, seen = self.filled(rows)
            with torch.inference_mode():
                scores = self.network(input_ids=ids, attention_mask=seen).logits[:, len(head) - 1 : -1].float()
            said = ids[:, len(head) :, None]
            each = torch.log_softmax(scores, -1).gather(-1, said)[..., 0] * seen[:, len(head) :]
            out += (-each.sum(-1) / math.log(2)).tolist()
        return out


def format_estimate(estimate: Any, digits: int = 3) -> str:
    """An estimate for the table."""
    return f"{estimate.value:.{digits}f} [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"


def measure_usefulness(model: Learner, held: Sequence[dict[str, str]]) -> dict[str, Any]:
    """ROUGE of the notes, and how often the heading is right."""
    said = model.write([one["prompt"] for one in held])
    pairs = [(s.partition(": "), one["completion"].partition(": ")) for s, one in zip(said, held, strict=True)]
    scores = [measure_rouge(own[2], [right[2]]) for own, right in pairs]
    hits = [own[0].strip() == right[0] for own, right in pairs]
    out = {f"rouge{n}": average([s[i] for s in scores]) for i, n in enumerate(("1", "2", "L"))}
    return {**out, "heading": share(sum(hits), len(hits)), "f1": macro_f1([(o[0].strip(), r[0]) for o, r in pairs])}


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """The mean of the F1 of the classes that there are."""
    right, said, hit = (
        Counter(r for _, r in pairs),
        Counter(s for s, _ in pairs),
        Counter(r for s, r in pairs if s == r),
    )
    return statistics.fmean(2 * hit[c] / (right[c] + said[c]) for c in right)


def measure_memory(model: Learner, canaries: Sequence[Canary], size: Size, seed: int) -> dict[int, dict[str, Any]]:
    """Exposure and extraction by how often a canary stood in the training set."""
    draw = random.Random(seed)
    others = [f" {draw_phone_number(draw)}" for _ in range(size.candidates)]
    exposures: dict[int, list[float]] = {r: [] for r in size.repeats}
    hits: Counter[int] = Counter()
    written = model.write([f"{ASKED}Caller: {c.start}" for c in canaries], most=20)
    for canary, text in zip(canaries, written, strict=True):
        costs = model.costs(f"{ASKED}Caller: {canary.start}", [f" {canary.number}", *others])
        rank = 1 + sum(cost < costs[0] for cost in costs[1:])
        exposures[canary.repeats].append(math.log2(size.candidates + 1) - math.log2(rank))
        hits[canary.repeats] += canary.number in text
    return {r: {"exposure": average(e), "extracted": share(hits[r], len(e))} for r, e in exposures.items()}


def compare_versions(data: Path | None, size: Size, seed: int) -> dict[str, Any]:
    """All versions; the numbers."""
    draw = random.Random(seed)
    rows = list(read_dialogues(data, size.documents, draw) if data else invent_dialogues(size.documents, draw))
    split = Split((1 - size.held_out, 0.0, size.held_out), seed)
    canaries = plant_canaries(rows, size, split, draw)
    result: dict[str, Any] = {"documents": len(rows), "canaries": len(canaries), "seed": seed, "size": vars(size)}
    writings: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "talks.jsonl")
        source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        with Vault.create(Path(folder, "vault"), SECRET) as vault:
            for name, policy in VERSIONS.items():
                began = time.perf_counter()
                out = Path(folder, name)
                kept = None if policy is NOTHING else vault
                made = export_path(
                    source, out, Prompts((TASK,)), policy, vault=kept, scope=name, split=split, group="id"
                )
                sets = {n: [*map(json.loads, (out / f"{n}.jsonl").read_text().splitlines())] for n in ("train", "test")}
                examples = [(one["prompt"], one["completion"]) for one in sets["train"]]
                model = Learner([p + c for p, c in examples], size, seed)
                loss = model.learn(examples, seed)
                whole = "".join(p + c for p, c in examples)
                left = share(sum(c.number in whole for c in canaries), len(canaries))
                texts = model.write([ASKED] * size.samples, drawn=True)
                texts += model.write([f"{ASKED}Caller: {c.start}" for c in canaries])
                writings[name] = texts
                result[name] = {
                    "examples": len(examples), "held_out": len(sets["test"]), "loss": loss, "canaries_left": left,
                    "parameters": model.network.num_parameters(), "device": model.device,
                    **measure_usefulness(model, sets["test"]), "canaries": measure_memory(model, canaries, size, seed),
                    "edits": sum(made.operators.values()), "seconds": round(time.perf_counter() - began, 1),
                }  # fmt: skip
                print(f"{name}: loss {loss:.2f} in {result[name]['seconds']} s", file=sys.stderr)
            digests = vault.digests("tags")
            for name, texts in writings.items():
                found = generations(((str(i), t) for i, t in enumerate(texts)), digests, baseline=writings["tags"])
                result[name]["leaks"] = {
                    "outputs": found.direct.outputs, "originals": found.direct.leaked, "common": found.direct.common,
                    "occurrences": found.direct.occurrences, "excess": found.direct.excess,
                }  # fmt: skip
    return result


def format_table(result: dict[str, Any], size: Size) -> Iterator[str]:
    """The lines to print."""
    yield "| | " + " | ".join(VERSIONS) + " |"
    yield "|---|" + "---|" * len(VERSIONS)
    names = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "heading": "headings right"}
    for key, said in names.items():
        yield f"| {said} | " + " | ".join(format_estimate(result[v][key]) for v in VERSIONS) + " |"
    yield "| headings, macro F1 | " + " | ".join(f"{result[v]['f1']:.3f}" for v in VERSIONS) + " |"
    for r in size.repeats:
        cells = [result[v]["canaries"][r] for v in VERSIONS]
        yield (
            f"| exposure of canaries seen {r} times, bits | "
            + " | ".join(format_estimate(c["exposure"], 1) for c in cells)
            + " |"
        )
        yield "| of them extracted | " + " | ".join(format_estimate(c["extracted"], 2) for c in cells) + " |"
    yield (
        "| canaries left in the training set | "
        + " | ".join(format_estimate(result[v]["canaries_left"], 2) for v in VERSIONS)
        + " |"
    )
    for key, said in (
        ("outputs", "outputs with a direct identifier"),
        ("originals", "direct identifiers that turn up"),
    ):
        yield f"| {said} | " + " | ".join(format_estimate(result[v]["leaks"][key]) for v in VERSIONS) + " |"


def main() -> None:
    """Read the arguments and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", type=Path, help="dialogues with summaries, as JSON lines; default: invented")
    parser.add_argument("--small", action="store_true", help="a run that only shows that it runs")
    parser.add_argument("--seed", type=int, default=0)
    for name in ("documents", "epochs", "layers", "width"):
        parser.add_argument(f"--{name}", type=int)
    given = parser.parse_args()
    size = SMALL if given.small else Size()
    asked = {n: v for n in ("documents", "epochs", "layers", "width") if (v := getattr(given, n)) is not None}
    size = Size(**{**vars(size), **asked})
    warnings.simplefilter("ignore")
    result = compare_versions(given.data, size, given.seed)
    print("\n".join(format_table(result, size)))
    print(json.dumps(result, default=lambda o: o.to_dict()))


if __name__ == "__main__":
    main()
