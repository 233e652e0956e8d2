"""A tagger small enough to lie beside the tests, with drawn weights: ``python -m tests.models.make_tiny`` writes it.

It says nothing about language. It is there because everything that must hold for any tagger (offsets, independence of
batches, order and threads, bars) can be tested with it where neither torch nor a trained model is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TINY = Path(__file__).parent / "tiny"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ß"
VOCABULARY = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *".,;:!?'\"()[]-_/@#$%&*+=€£’“”…–",
    *LETTERS,
    *(f"##{c}" for c in LETTERS),
    *"the a of in at works and mr ann lee smith london ##son ##er ##ing new york bank may acme is from year old 日 本".split(),
)
WIDTH, HEADS, LAYERS, INNER, POSITIONS = 16, 2, 2, 32, 160
POINTS = {
    "high-recall": {"*": 0.25, "CITY": 0.125},
    "balanced": {"*": 0.5},
    "high-precision": {"*": 0.75, "CITY": 0.875},
}


def weights(seed: int = 1) -> dict[str, Any]:
    """Drawn weights of a BERT, under the names of its files."""
    import torch

    draw = torch.Generator().manual_seed(seed)

    def drawn(*shape: int, by: float = 0.25) -> Any:
        return torch.randn(*shape, generator=draw) * by

    out = {
        "embeddings.word_embeddings.weight": drawn(len(VOCABULARY), WIDTH, by=1.0),
        "embeddings.position_embeddings.weight": drawn(POSITIONS, WIDTH, by=0.2),
        "embeddings.token_type_embeddings.weight": drawn(2, WIDTH, by=0.1),
        "embeddings.LayerNorm.weight": 1 + drawn(WIDTH, by=0.1),
        "embeddings.LayerNorm.bias": drawn(WIDTH, by=0.1),
    }
    for i in range(LAYERS):
        at = f"encoder.layer.{i}."
        linear = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")} | {
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }
        for name, (rows, columns) in linear.items():
            out[f"{at}{name}.weight"] = drawn(rows, columns)
            out[f"{at}{name}.bias"] = drawn(rows, by=0.1)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            out[f"{at}{name}.weight"] = 1 + drawn(WIDTH, by=0.1)
            out[f"{at}{name}.bias"] = drawn(WIDTH, by=0.1)
    return out


def write_encoder(folder: Path, seed: int = 1) -> Path:
    """``config.json``, ``model.safetensors`` and ``vocab.txt`` as Hugging Face writes them; returns the folder."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "model_type": "bert",
        "vocab_size": len(VOCABULARY),
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
    }
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    save_file(weights(seed), folder / "model.safetensors")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    return folder


def drawn_tagger(encoder: Path, seed: int = 18) -> Any:
    """A :class:`allonym.train.network.Tagger` on that encoder whose other weights are drawn too, in eval mode."""
    import torch

    from allonym.models.tags import LABELS, PARTS, list_tag_names
    from allonym.train.network import Encoder, Tagger

    torch.manual_seed(seed)
    model = Tagger(Encoder.read(encoder, dropout=0.0), len(list_tag_names(LABELS)), len(PARTS), dropout=0.0)
    with torch.no_grad():
        model.encoder.shapes.weight.normal_(std=0.5)
        model.tags.weight.normal_(std=1.0)
        model.tags.bias.normal_(std=0.2)
        model.tags.bias[1:5] += 6  # names are frequent,
        model.tags.bias[7:19] += 3  # so are places,
        model.tags.bias[0] += 8  # and about half of the words are nothing
        model.parts.weight.normal_(std=0.5)
    return model.eval()


def write(folder: Path = TINY, *, int8: bool = True) -> Path:
    """The tagger's folder, as ``allonym.train.export`` writes it."""
    from tempfile import TemporaryDirectory

    from allonym.models.tags import LABELS
    from allonym.train.export import write_tagger

    with TemporaryDirectory() as made:
        encoder = write_encoder(Path(made))
        about = {"name": "tiny", "language": "en", "temperature": 1.0, "points": POINTS}
        write_tagger(drawn_tagger(encoder), LABELS, encoder / "vocab.txt", folder, about, int8=int8)
    return folder


if __name__ == "__main__":
    write()
