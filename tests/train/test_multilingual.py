"""Training of the small taggers: the loss, what a corpus leaves open, and a training that goes on."""

import gzip
import json
import random
from itertools import pairwise, product

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

from allonym.models.wordtagger import WordLists, WordTagger  # noqa: E402
from allonym.train import multilingual  # noqa: E402
from allonym.train.dictionaries import DICTIONARIES  # noqa: E402
from allonym.train.multilingual import (  # noqa: E402
    Batch,
    Batches,
    Network,
    encode_hashed,
    load_parts,
    load_recipe,
    save_network,
    train_network,
)
from allonym.train.multilingual_score import OPEN, choose_tags  # noqa: E402

TINY = {"rows": 256, "width": 16, "layers": [1, 2], "labels": {"PERSON": ["PER"]}, "open": ["MISC"], "rate": 0.02}
TINY |= {"epochs": 60, "train": ["tiny"], "test": [], "lists": False}


def test_the_loss_is_the_share_of_the_sequences_that_a_corpus_allows():
    torch.manual_seed(2)
    network = Network(TINY).eval()
    torch.nn.init.normal_(network.chain)
    rows = torch.randint(0, 256, (2, 4, 13))
    is_word = torch.tensor([[True] * 4, [True, True, True, False]])
    tags = torch.tensor([[0, 1, 2, OPEN], [OPEN, 0, 1, OPEN]])
    batch = Batch(rows, torch.tensor([3, 3]), tags, is_word)
    keep = torch.ones(rows.shape)
    scores, chain = network(batch, keep).detach().numpy(), network.chain.detach().numpy()
    expected = 0.0
    for text in range(2):
        length = int(is_word[text].sum())
        everything = right = 0.0
        for guess in product(range(3), repeat=length):
            weight = sum(scores[text, n, tag] for n, tag in enumerate(guess))
            weight = np.exp(weight + sum(chain[a, b] for a, b in pairwise(guess)))
            everything += weight
            right += weight * all(tags[text, n] in (OPEN, tag) for n, tag in enumerate(guess))
        expected += np.log(everything / right)
    assert network.compute_loss(batch, keep).item() == pytest.approx(expected / 7, rel=1e-4)


def test_a_name_goes_on_only_behind_its_beginning():
    def choose(*rows):
        return choose_tags(np.array(rows)).tolist()

    assert choose([0.9, 0.1, 0, 0, 0], [0.3, 0.3, 0.4, 0, 0]) in ([0, 0], [0, 1])
    assert choose([0.1, 0.5, 0, 0.4, 0], [0.1, 0, 0.3, 0, 0.6]) == [3, 4]  # together likelier than 1, 2
    assert choose([0.4, 0.6, 0, 0, 0], [0.1, 0.0, 0.9, 0, 0], [0.2, 0.0, 0.8, 0, 0]) == [1, 2, 2]
    assert choose([0.0, 0.2, 0.8, 0, 0]) == [1]


@pytest.fixture
def data(tmp_path):
    names = ["Anna", "Jonas", "Lea", "Timo", "Marit", "Ole"]
    rows = []
    for n in range(400):
        text = f"Gestern kam {names[n % 6]} {names[n % 5]} {n} mal"
        spans = [{"start": 12, "end": text.index(f" {n} mal"), "label": "PER"}, {"start": 0, "end": 7, "label": "MISC"}]
        rows.append({"id": f"t{n}", "text": text, "spans": spans, "meta": {"lang": "fi"}})
    with gzip.open(tmp_path / "tiny.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def test_a_training_that_was_cut_off_ends_as_one_that_was_not(data, tmp_path):
    sentences = load_parts(data, TINY)["train"]
    assert sentences[0].tags[:4] == [OPEN, 0, 1, 2]
    encode = encode_hashed(TINY, None)

    def train(checkpoint, report):
        torch.manual_seed(1)
        return train_network(Network(TINY), sentences, TINY, encode, tmp_path / checkpoint, report)

    whole = train("a.pt", lambda line: None)

    def stop(line):
        if "epoch 3" in line:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train("b.pt", stop)
    rest = train("b.pt", lambda line: None)
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), rest.parameters(), strict=True))
    save_network(whole, None, tmp_path, {"layers": TINY["layers"], "labels": ["PERSON"], "gaps": True})
    borders, chances = WordTagger(tmp_path)("Gestern kam Jonas Marit 7 mal", "fi")
    assert len(borders) == 6 and chances[2, 1] > 0.5 and chances[3, 2] > 0.5 and chances[4, 0] > 0.5


def test_swaps_are_names_of_the_language():
    chance, seen = random.Random(1), set()
    for _ in range(200):
        piece = multilingual.Piece(["Herr", "Klingbeil"], ["\n", " "], [0, 1])
        multilingual._swap_names(piece, "de", ("PERSON",), chance)
        seen.add(piece.words[1])
    first, last, _ = multilingual._list_names("de")
    assert "Klingbeil" in seen and len(seen) > 5 and seen - {"Klingbeil"} <= {*first, *last}


def test_findings_are_swapped_whole_for_others_of_their_label():
    recipe = {**TINY, "mentions": 1.0}
    texts = [("Anna Berg kam", [1, 2, 0]), ("Ole kam", [1, 0])]
    sentences = [multilingual.Sentence("fi", "x", t, multilingual.split_words(t), tags) for t, tags in texts]
    batches, seen = Batches(sentences, recipe, encode_hashed(recipe, None)), set()
    for n in range(50):
        piece = batches._swap_mentions(multilingual._cut_piece(sentences[0], 0, 3), random.Random(n))
        assert len(piece.words) == len(piece.gaps) == len(piece.tags)
        seen.add((*piece.words, *piece.tags))
    assert seen == {("Anna", "Berg", "kam", 1, 2, 0), ("Ole", "kam", 1, 0)}


def test_texts_of_one_document_are_read_together():
    recipe = {**TINY, "together": 1.0, "length": 6}
    texts = [("Anna kam", "a"), ("Ole ging mit", "a"), ("Lea blieb da", "a"), ("Timo kam", "b")]
    sentences = [
        multilingual.Sentence("fi", "x", text, multilingual.split_words(text), [0] * len(text.split()), document)
        for text, document in texts
    ]
    batches = Batches(sentences, recipe, lambda pieces, languages: pieces)
    read = [" ".join(piece.words).lower() for batch in batches(random.Random(2)) for piece in batch]
    assert sorted(read) == ["anna kam ole ging mit", "lea blieb da", "timo kam"]


@pytest.mark.parametrize("name", ["languages", "polish", "clinical_spanish"])
def test_recipes_are_whole(name):
    recipe = load_recipe(name)
    network = {"encoder", "frozen", "pieces", "fresh_rate", "dropout"} if "encoder" in recipe else {"rows", "layers"}
    assert {"rate", "epochs", "open", "train", "test", "labels", "licence", *network} <= recipe.keys()


def test_a_dictionary_tells_german_nouns_from_names():
    pytest.importorskip("german_nouns")
    words = DICTIONARIES["de"]()
    assert words["nummer"] == words["nummern"] == WordLists.ORDINARY
    assert words["celle"] & 4 and words["annika"] & 1 and "bgb" not in words
