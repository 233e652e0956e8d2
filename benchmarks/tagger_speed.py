"""How fast the shipped tagger is on one core, beside spaCy's CNN and the same model in torch fp32, in the same run.

usage: python benchmarks/tagger_speed.py FILE [--model FOLDER] [--spacy blank|FOLDER] [--torch] [--rounds 3]
                                         [--characters 200000] [--point NAME|NUMBER] [--heads 12]

FILE is JSONL (field text), plain or gzipped. Each side runs in a process of its own on the same single CPU with one
thread; the sides take turns, and a ratio is the median of the rounds' ratios. Seconds are CPU seconds, so that a busy
machine disturbs less; load times are wall time. Words are those of the tagger that hold a letter or a digit, the same
count for all sides.

tagger    the detector "tagger" alone: words, pieces, windows, the int8 model, decoding
detect    allonym.detect with that detector only, at threshold 0
spacy     nlp.pipe of the model in FOLDER, or of an NER of the size in allonym/train/spacy.cfg with random weights: what
          it finds is nonsense, how fast is not
torch     allonym.train.network of the ONNX model's size with random weights, fp32, windows sorted by length in
          batches of 16; words, pieces and windows included, decoding not

The machine's int8 rate is that of onnxruntime's MatMulInteger on the shapes of the model's weights, one thread, at the
mean length of the windows and at 128 rows, whichever is higher; DynamicQuantizeMatMul, which includes quantising and
scaling, is shown too. Operations of the model are two for each weight of a matrix and each piece, and those of the
attention; the tagger's rate is that number by the seconds of the side "tagger", everything included. Needs the
packages onnx and onnxruntime; torch and spaCy where they are asked for. Prints a table and, last, one line of JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from statistics import mean, median
from typing import Any

ROWS = 128
"""Pieces in the longest window, border marks included."""

MEMORY = """
import json, resource, sys, time
start = time.perf_counter()
import allonym
from allonym import registry
from allonym.policy import Policy
imported = time.perf_counter()
policy = Policy.load("default").with_(detectors=("tagger",), exclude=(), threshold=0.0)
if sys.argv[2]:
    policy = policy.with_(tables={"tagger": {"model": sys.argv[2]}})
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, cpu = time.perf_counter(), time.process_time()
detector = registry.detectors.get("tagger")(policy)
list(detector(allonym.Document("", "Ada Brook of Quill met nobody.")))
loaded, used = time.perf_counter(), time.process_time() - cpu
for text in json.load(open(sys.argv[1], encoding="utf-8")):
    list(detector(allonym.Document("", text)))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
times = {"import_s": imported - start, "load_s": loaded - before, "load_cpu_s": used}
print(json.dumps({**times, "base_mb": base, "resident_mb": peak}))
"""


def cut_texts(path: Path, characters: int, after: int = 0) -> list[str]:
    """Texts of so many characters of the file, from the character number ``after`` on; first and last are cut there."""
    out: list[str] = []
    left = characters
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = str(json.loads(line)["text"])
            text, after = text[after:][:left], max(0, after - len(text))
            left -= len(text)
            out.append(text)
            if left <= 0:
                break
    return [text for text in out if text]


def word_count(texts: list[str]) -> int:
    from allonym.models.words import split_words

    return sum(text[a].isalnum() for text in texts for a, _ in split_words(text))


def make_policy(model: str, point: str) -> Any:
    """The default policy with the tagger alone, at threshold 0: of this folder, at this operating point, if given."""
    from allonym.policy import Policy, check_operating_point

    policy = Policy.load("default").with_(detectors=("tagger",), exclude=(), threshold=0.0)
    if model:
        policy = policy.with_(tables={"tagger": {"model": model}})
    if point:
        value: object = float(point) if point.replace(".", "", 1).isdecimal() else point
        policy = policy.with_(operating_points={"*": check_operating_point(value, "--point")})
    return policy


# The sides, each in a process of its own. A side loads its model and returns what does the work on texts.

Work = Callable[[list[str]], object]


def tagger_side(args: argparse.Namespace, alone: bool) -> Work:
    import allonym
    from allonym import registry

    policy = make_policy(args.model, args.point)
    if not alone:
        return lambda texts: [allonym.detect(text, policy) for text in texts]
    detector: Any = registry.detectors.get("tagger")
    detector = detector(policy)
    return lambda texts: [list(detector(allonym.Document("", text))) for text in texts]


def spacy_side(args: argparse.Namespace) -> Work:
    import spacy
    from thinc.api import Config

    from allonym.models.tags import LABELS

    if args.spacy == "blank":
        size = Config().from_disk(str(files("allonym.train").joinpath("spacy.cfg")), interpolate=False)
        nlp = spacy.blank("en")
        ner: Any = nlp.add_pipe("ner", config={"model": size["components"]["ner"]["model"]})
        for label in LABELS:
            ner.add_label(label)
        nlp.initialize()
    else:
        nlp = spacy.load(args.spacy)
    return lambda texts: [len(doc.ents) for doc in nlp.pipe(texts)]


def torch_side(args: argparse.Namespace) -> Work:
    import torch

    from allonym.models.tags import LABELS, PARTS
    from allonym.models.windows import cut_windows, tokenise_text
    from allonym.train.network import Encoder, Size, Tagger

    torch.set_num_threads(1)
    folder = model_folder(args)
    pieces = read_vocabulary(folder)
    width, inner, layers = find_dimensions(count_matrices(folder))
    rows = len((folder / "vocab.txt").read_text("utf-8").splitlines())
    network = Tagger(Encoder(Size(rows, width, layers, args.heads, inner)), 1 + 2 * len(LABELS), len(PARTS)).eval()

    def work(texts: list[str]) -> None:
        cut = sorted(
            (w for t in texts for w in cut_windows(tokenise_text(t, pieces), pieces)), key=lambda w: len(w.pieces)
        )
        with torch.inference_mode():
            for i in range(0, len(cut), 16):
                batch = cut[i : i + 16]
                longest = max(len(w.pieces) for w in batch)
                ids, shapes = torch.zeros(2, len(batch), longest, dtype=torch.long)
                mask = torch.zeros(len(batch), longest, dtype=torch.bool)
                heads = []
                for k, w in enumerate(batch):
                    ids[k, : len(w.pieces)] = torch.tensor(w.pieces)
                    shapes[k, : len(w.pieces)] = torch.tensor(w.shapes)
                    mask[k, : len(w.pieces)] = True
                    heads += [k * longest + h for h in w.heads]
                network(ids, shapes, torch.tensor(heads), mask)[0].argmax(-1)

    return work


def model_folder(args: argparse.Namespace) -> Path:
    from allonym.models.tagger import ENGLISH

    return Path(args.model) if args.model else ENGLISH


def read_vocabulary(folder: Path) -> Any:
    from allonym.models.words import WordPiece

    return WordPiece.read(folder / "vocab.txt")


def run_side(args: argparse.Namespace) -> None:
    """Do the side's work once and print its seconds. What comes next in the file warms up the caches of words."""
    texts = cut_texts(args.file, args.characters)
    sides: dict[str, Callable[[], Work]] = {
        "tagger": lambda: tagger_side(args, alone=True),
        "detect": lambda: tagger_side(args, alone=False),
        "spacy": lambda: spacy_side(args),
        "torch": lambda: torch_side(args),
    }
    work = sides[args.side]()
    work(cut_texts(args.file, args.characters // 2, args.characters) or [texts[0][:2000]])
    began = time.process_time()
    work(texts)
    print(json.dumps({"seconds": time.process_time() - began}))


# What the model computes, and what the machine could.


def count_matrices(folder: Path) -> Counter[tuple[int, int]]:
    """The weight matrices of ``tagger.onnx``, ``(rows in, columns out)``: how many of each; embeddings left out."""
    import onnx

    graph = onnx.load(str(folder / "tagger.onnx")).graph
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:  # a quantised weight reaches its product through further nodes
        if node.op_type in ("DequantizeLinear", "QuantizeLinear", "Cast", "Identity") and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]]
        elif node.op_type == "Transpose" and node.input[0] in shapes:
            shapes[node.output[0]] = shapes[node.input[0]][::-1]
    out: Counter[tuple[int, int]] = Counter()
    for node in graph.node:
        if "MatMul" in node.op_type or "Gemm" in node.op_type or node.op_type in ("Attention", "QAttention"):
            for name in node.input:
                shape = shapes.get(name, ())
                if len(shape) == 2 and min(shape) > 1:
                    flip = node.op_type in ("Gemm", "QGemm") and any(a.name == "transB" and a.i for a in node.attribute)
                    out[shape[::-1] if flip else shape] += 1
    return out


def find_dimensions(weights: Counter[tuple[int, int]]) -> tuple[int, int, int]:
    """Width, inner width and layers: each layer has one matrix from the width to the inner width and one back."""
    layers = {(k, n): c for (k, n), c in weights.items() if n > k and weights[n, k] == c}
    if not layers:
        sys.exit("the model's matrices are not those of a BERT")
    (width, inner), count = max(layers.items(), key=lambda item: item[1])
    return width, inner, count


def count_operations(folder: Path, texts: list[str]) -> dict[str, float]:
    """Operations that the texts need, and their pieces and windows."""
    from allonym.models.windows import cut_windows, tokenise_text

    pieces = read_vocabulary(folder)
    weights = count_matrices(folder)
    width, _, layers = find_dimensions(weights)
    lengths = [len(w.pieces) for text in texts for w in cut_windows(tokenise_text(text, pieces), pieces)]
    linear = 2 * sum(lengths) * sum(k * n * c for (k, n), c in weights.items())
    attention = 4 * width * layers * sum(length * length for length in lengths)
    return {
        "operations": linear + attention,
        "pieces": sum(lengths),
        "windows": len(lengths),
        "mean_window": mean(lengths),
    }


def gemm_rates(weights: Counter[tuple[int, int]], rows: int) -> dict[str, float]:
    """Operations per second of onnxruntime's int8 products over all matrices of the model."""
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto as T
    from onnx import helper as h

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    draw = np.random.default_rng(0)
    out: dict[str, float] = {}
    for op, domain in (("MatMulInteger", ""), ("DynamicQuantizeMatMul", "com.microsoft")):
        seconds = done = 0.0
        for (k, n), count in weights.items():
            weight = draw.integers(-127, 127, (k, n), dtype=np.int8)
            fixed = [h.make_tensor("w", T.INT8, (k, n), weight.tobytes(), raw=True)]
            if domain:
                fixed.append(h.make_tensor("s", T.FLOAT, (n,), np.full(n, 0.01, np.float32).tobytes(), raw=True))
            node = h.make_node(op, ["x", "w", *(["s"] if domain else [])], ["y"], domain=domain)
            given = h.make_tensor_value_info("x", T.FLOAT if domain else T.UINT8, (rows, k))
            got = h.make_tensor_value_info("y", T.FLOAT if domain else T.INT32, (rows, n))
            sets = [h.make_opsetid("", 17), h.make_opsetid("com.microsoft", 1)]
            model = h.make_model(h.make_graph([node], "g", [given], [got], fixed), opset_imports=sets, ir_version=9)
            onnx.checker.check_model(model)
            session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            x = draw.integers(0, 255, (rows, k), dtype=np.uint8)
            feed = {"x": draw.random((rows, k), dtype=np.float32) if domain else x}
            session.run(None, feed)
            times = []
            for _ in range(30):
                began = time.process_time()
                session.run(None, feed)
                times.append(time.process_time() - began)
            seconds += median(times) * count
            done += 2.0 * rows * k * n * count
        out[op] = done / seconds
    return out


# The run


def pin_process() -> dict[str, str]:
    """This process and its children on one CPU, with one thread; returns the environment for the children."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
    os.environ.update(dict.fromkeys(names, "1"))
    return {**os.environ, "PYTHONWARNINGS": "ignore"}


def last_json(command: list[str], env: dict[str, str]) -> dict[str, float]:
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode:
        sys.exit(f"{' '.join(command[1:4])} ... failed:\n{done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def measure_fresh_processes(texts: list[str], model: str, env: dict[str, str], rounds: int) -> dict[str, float]:
    """Load time and memory in processes that do nothing else."""
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(texts, file)
        file.flush()
        command = [sys.executable, "-c", MEMORY, file.name, model]
        runs = [last_json(command, env) for _ in range(rounds)]
    return {key: median(run[key] for run in runs) for key in runs[0]}


def format_rows(figures: dict[str, Any]) -> Iterator[str]:
    for side, one in figures["sides"].items():
        ratio = one.get("tagger_is_faster_by")
        yield (
            f"{side:12}{one['words_per_s']:14,.0f}{one['characters_per_s']:14,.0f}"
            + (f"{ratio:18.2f}" if ratio else "")
        )
    yield (
        f"{'load and first result, s':32}{figures['load_s']:8.3f}   of the CPU {figures['load_cpu_s']:.3f}; "
        f"import of allonym before: {figures['import_s']:.3f}"
    )
    yield f"{'resident memory, MB':32}{figures['resident_mb']:8.0f}   {figures['base_mb']:.0f} before"
    for name, size in figures["artefacts_mb"].items():
        yield f"{name[-60:] + ', MB':64}{size:8.2f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path, metavar="FILE")
    options.add_argument("--model", default="", metavar="FOLDER", help="another tagger than the shipped one")
    options.add_argument("--spacy", metavar="blank|FOLDER", help="run spaCy's CNN too")
    options.add_argument("--torch", action="store_true", help="run the model in torch fp32 too")
    options.add_argument("--heads", type=int, default=12, help="attention heads of the model, for torch")
    options.add_argument("--point", default="", help="operating point of the tagger")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--characters", type=int, default=200_000)
    options.add_argument("--side", choices=("tagger", "detect", "spacy", "torch"), help="measure one side, here")
    args = options.parse_args()
    env = pin_process()
    if args.side:
        return run_side(args)
    texts = cut_texts(args.file, args.characters)
    words, characters = word_count(texts), sum(map(len, texts))
    folder = model_folder(args)
    sides = ["tagger", "detect", *(["spacy"] if args.spacy else []), *(["torch"] if args.torch else [])]
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(args.rounds):
        for side in sides:
            command = [sys.executable, *sys.argv, "--side", side]
            seconds[side].append(last_json(command, env)["seconds"])
    figures: dict[str, Any] = {"benchmark": "tagger_speed", "file": args.file.name, "words": words}
    figures |= {"characters": characters, "rounds": args.rounds, "sides": {}}
    for side, spent in seconds.items():
        one = {"words_per_s": words / median(spent), "characters_per_s": characters / median(spent)}
        if side != "tagger":
            one["tagger_is_faster_by"] = median(b / a for a, b in zip(seconds["tagger"], spent, strict=True))
        figures["sides"][side] = {key: round(value, 3) for key, value in one.items()}
    figures |= {
        key: round(value, 4) for key, value in measure_fresh_processes(texts, args.model, env, args.rounds).items()
    }
    figures["artefacts_mb"] = {
        str(p.relative_to(folder)): round(p.stat().st_size / 1e6, 3) for p in sorted(folder.rglob("*")) if p.is_file()
    }
    figures["artefacts_mb"]["all files"] = round(sum(figures["artefacts_mb"].values()), 3)
    print(f"{'':12}{'words/s':>14}{'characters/s':>14}{'tagger is x times':>18}")
    print(*format_rows(figures), sep="\n")
    needed = count_operations(folder, texts)
    rate = needed["operations"] / median(seconds["tagger"])
    weights = count_matrices(folder)
    at = {rows: gemm_rates(weights, rows) for rows in sorted({max(2, round(needed["mean_window"])), ROWS})}
    best = max(one["MatMulInteger"] for one in at.values())
    figures |= {key: round(value, 2) for key, value in needed.items()}
    figures["gemm_giga_per_s"] = {rows: {op: round(r / 1e9, 1) for op, r in one.items()} for rows, one in at.items()}
    figures |= {"tagger_giga_per_s": round(rate / 1e9, 1), "share_of_gemm_rate": round(rate / best, 4)}
    for rows, one in at.items():
        for op, r in one.items():
            print(f"{f'{op}, {rows} rows, Gop/s':40}{r / 1e9:10.1f}")
    print(f"{'tagger, all included, Gop/s':40}{rate / 1e9:10.1f}   {rate / best:.1%} of MatMulInteger")
    print(json.dumps(figures))
    return None


if __name__ == "__main__":
    main()
