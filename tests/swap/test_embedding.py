import json
import os
import re
import stat
import subprocess
import sys
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401

from allonym.errors import DataError, EndpointError, MissingExtra, UnknownNameError, UsageError
from allonym.swap.embedding import Embedder, embedders, open_embedder

WATER = [
    f"The river {word} floods the lower meadows and the old mill {word}" for word in ("Tarn", "Esk", "Wend", "Ouse")
]
MONEY = [
    f"Revenue of {word} rose while costs and margins of {word} fell" for word in ("Quill", "Veldt", "Brook", "Marsh")
]
TEXTS = [*WATER, *MONEY]


class Counting:
    """A method that counts what it is asked to compute."""

    keep = True

    def __init__(self, width=3, identity="counting"):
        self.asked = []
        self.identity = identity
        self._width = width

    def fit(self, texts):
        return self

    def encode(self, texts):
        self.asked += texts
        return np.array([[len(t), t.count("a"), 0][: self._width] for t in texts], float)


def unit(table):
    assert table.dtype == np.float32
    assert np.allclose(np.linalg.norm(table, axis=1), 1, atol=1e-5)
    return table


def groups_apart(table):
    sims = table @ table.T
    within = min(sims[:4, :4].min(), sims[4:, 4:].min())
    return within > sims[:4, 4:].max()


def test_lsa_tells_topics_apart():
    lsa = open_embedder("lsa").fit(TEXTS)
    table = unit(lsa.encode(TEXTS))
    assert table.shape[0] == 8
    assert groups_apart(table)
    near = unit(lsa.encode(["the mill by the river"])) @ table.T
    assert near.argmax() < 4


def test_lsa_has_to_be_fitted_and_fitting_changes_nothing_else():
    bare = open_embedder("lsa")
    with pytest.raises(UsageError, match="fit"):
        bare.encode(["a text"])
    fitted = bare.fit(TEXTS)
    assert bare.identity == "" and fitted.identity != bare.fit(WATER).identity
    assert fitted.identity == open_embedder("lsa").fit(TEXTS).identity


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=60), min_size=1, max_size=12), st.lists(st.text(max_size=40), max_size=4))
def test_lsa_gives_unit_vectors_for_any_texts(corpus, more):
    try:
        lsa = open_embedder("lsa", components=4).fit(corpus)
    except DataError:
        assert not any(re.search(r"\w\w", text) for text in corpus)
        return
    table = unit(lsa.encode([*corpus, *more]))
    assert 2 <= table.shape[1] <= 4
    assert np.array_equal(table, lsa.encode([*corpus, *more]))


def test_lsa_of_texts_that_are_all_the_same():
    table = unit(open_embedder("lsa").fit(["one and the same"] * 5).encode(["one and the same", "", "unseen words"]))
    assert table.shape[1] == 2
    assert np.allclose(table[0], table[1]) and np.allclose(table[0], table[2])


def test_lsa_of_many_texts_goes_by_the_randomised_solver_and_comes_out_the_same():
    rng = np.random.default_rng(3)
    words = [f"word{i:03}" for i in range(300)]
    corpus = [" ".join(rng.choice(words, 20)) for _ in range(200)]
    first, second = (open_embedder("lsa", components=10).fit(corpus).encode(corpus) for _ in range(2))
    assert first.shape == (200, 10)
    assert np.array_equal(first, second)


def test_the_embedded_encoder():
    water = ["The river flooded the meadows.", "Rain filled the stream."]
    money = ["Quarterly revenue grew by ten percent.", "Our profit and margins fell."]
    table = unit(open_embedder("encoder").encode([*water, *money, "", " \n", water[0]]))
    assert table.shape == (7, 384)
    assert min(table[0] @ table[1], table[2] @ table[3]) > (table[:2] @ table[2:4].T).max()
    assert np.array_equal(table[4], table[5]) and np.array_equal(table[0], table[6])
    threaded = open_embedder("encoder", threads=2)
    assert np.array_equal(threaded.encode([*water, *money]), table[:4])
    assert threaded.identity == open_embedder("encoder").identity


def test_each_text_is_computed_once():
    method = Counting()
    table = unit(Embedder("x", method).encode(["aa", "b", "aa", "", "b"]))
    assert method.asked == ["aa", "b", ""]
    assert np.array_equal(table[0], table[2])
    assert np.allclose(table[3], 3**-0.5)


def test_no_texts():
    assert Embedder("x", Counting()).encode([]).shape[0] == 0


def test_what_is_kept_is_not_computed_again(tmp_path):
    first, second = Counting(), Counting()
    folder = tmp_path / "made" / "here"
    before = Embedder("x", first, folder).encode(["aa", "b\ud800", ""])
    seen = []
    after = Embedder("x", second, folder).encode(["", "aa", "new", "b\ud800"], progress=seen.append)
    assert second.asked == ["new"] and seen == [4]
    assert np.array_equal(before, after[[1, 3, 0]])
    other = Counting(identity="other")
    Embedder("x", other, folder).encode(["aa"])
    assert other.asked == ["aa"]


def test_the_file_of_vectors_holds_no_text_and_is_for_its_owner_only(tmp_path):
    Embedder("x", Counting(), tmp_path).encode(["Zaphrandel said so"])
    path = tmp_path / "vectors.sqlite"
    assert b"Zaphrandel" not in path.read_bytes()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_lsa_writes_no_file(tmp_path):
    open_embedder("lsa", cache=tmp_path).fit(TEXTS).encode(TEXTS)
    assert not list(tmp_path.iterdir())


def test_two_processes_share_a_folder(tmp_path):
    code = """
import sys
import numpy as np
from pathlib import Path
from tests.swap.test_embedding import Counting
from allonym.swap.embedding import Embedder
Embedder("x", Counting(), Path(sys.argv[1])).encode([f"text {i}" for i in range(700)])
"""
    running = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=os.getcwd()) for _ in range(2)]
    assert [p.wait() for p in running] == [0, 0]
    method = Counting()
    Embedder("x", method, tmp_path).encode([f"text {i}" for i in range(700)])
    assert not method.asked


def test_a_folder_that_is_no_cache(tmp_path):
    (tmp_path / "vectors.sqlite").write_text("something else, long enough to be no database of any kind" * 20)
    with pytest.raises(DataError, match="cannot be used"):
        Embedder("x", Counting(), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be used"):
        Embedder("x", Counting(), tmp_path / "file")


def test_vectors_of_another_width_in_the_cache(tmp_path):
    Embedder("x", Counting(), tmp_path).encode(["aa"])
    with pytest.raises(DataError, match="different lengths"):
        Embedder("x", Counting(width=2), tmp_path).encode(["aa", "b"])


@pytest.mark.parametrize("made", [[[1.0, float("nan")]], [1.0], [[1.0], [2.0]], [[]]], ids=range(4))
def test_a_method_that_gives_something_else(made):
    method = Counting()
    method.encode = lambda texts: np.array(made)
    with pytest.raises(DataError, match="1 finite vectors are required"):
        Embedder("x", method).encode(["aa"])


def test_names_and_options():
    assert {"lsa", "encoder", "sentence-transformers", "openai"} <= set(embedders.names())
    with pytest.raises(UnknownNameError, match="did you mean: encoder"):
        open_embedder("encodr")
    with pytest.raises(UsageError, match="takes components, seed; got threads"):
        open_embedder("lsa", threads=2, components=None)
    assert "encoder" in repr(open_embedder("encoder"))


def test_a_registered_embedder(monkeypatch):
    monkeypatch.setattr(embedders, "_table", dict(embedders._table))
    embedders.register("mine", lambda **options: Counting(**options))
    assert open_embedder("mine", width=2).encode(["aa"]).shape == (1, 2)


# sentence-transformers


@pytest.fixture
def library(monkeypatch):
    module = types.ModuleType("sentence_transformers")
    module.made = []

    class SentenceTransformer:
        def __init__(self, model, device, local_files_only):
            if model == "nowhere":
                raise OSError("no such model " + "x" * 900)
            module.made.append((model, device, local_files_only, os.environ.get("HF_HUB_OFFLINE")))

        def encode(self, texts, batch_size, **more):
            assert more["normalize_embeddings"] and not more["show_progress_bar"]
            return np.array([[3.0, 4.0 + len(t)] for t in texts], np.float32)

    module.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return module


def test_sentence_transformers_load_what_is_here(library):
    embedder = open_embedder("sentence-transformers", model="/models/mine")
    table = unit(embedder.encode(["a", "..."]))
    assert table.shape == (2, 2)
    assert np.allclose(table[1], 0.5**0.5)  # says nothing
    open_embedder("sentence-transformers", model="m", device="cuda", allow_download=True)
    assert library.made == [("/models/mine", "cpu", True, "1"), ("m", "cuda", False, None)]
    assert embedder.fit(["a"]).identity == "sentence-transformers /models/mine"


def test_sentence_transformers_that_cannot_be_had(library, monkeypatch):
    with pytest.raises(DataError, match=r"embed\.sentence-transformers: cannot load the model 'nowhere'"):
        open_embedder("sentence-transformers", model="nowhere")
    with pytest.raises(UsageError, match="model is required"):
        open_embedder("sentence-transformers")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra, match=r"\[sentence-transformers\]"):
        open_embedder("sentence-transformers", model="m")


# An endpoint


def vectors(handler, body):
    rows = [{"index": i, "embedding": [float(len(t)), 1.0, 0.5]} for i, t in enumerate(body["input"])]
    data = {"data": rows[::-1], "usage": {"prompt_tokens": 7}}
    at.send(handler, json.dumps(data).encode())


@pytest.fixture
def remote(server):  # noqa: F811
    pytest.importorskip("httpx")
    server.then = vectors
    return lambda **more: open_embedder("openai", url=server.url, model="small", **{"retries": 1, **more})


def test_an_endpoint_is_asked_in_batches(server, remote, monkeypatch):  # noqa: F811
    monkeypatch.setenv("THE_KEY", "sk-test")
    embedder = remote(batch_size=2, key_env="THE_KEY", dimensions=3, concurrency=1)
    table = unit(embedder.encode(["aa", "b", "aa", "ccc", "", "--"]))
    assert [b["input"] for b in server.bodies] == [["aa", "b"], ["ccc"]]
    assert {(b["model"], b["dimensions"]) for b in server.bodies} == {("small", 3)}
    assert server.paths == ["/v1/embeddings"] * 2
    assert server.headers[0]["authorization"] == "Bearer sk-test"
    assert table[0, 0] > table[1, 0]
    assert np.allclose(table[4:], 3**-0.5)


def test_what_may_pass_is_tried_again_and_the_rest_stops(server, remote):  # noqa: F811
    server.first.extend([at.status(503), vectors])
    assert remote().encode(["aa"]).shape == (1, 3)
    server.then = at.status(500)
    with pytest.raises(EndpointError, match="500, asked 2 times"):
        remote().encode(["Zaphrandel"])
    server.then = at.status(400)
    with pytest.raises(EndpointError, match="answered HTTP 400") as caught:
        remote().encode(["Zaphrandel"])
    assert "Zaphrandel" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b"no json", b"{}", b'{"data": []}', b'{"data": [{"index": 0, "embedding": []}]}',
     b'{"data": [{"index": 0, "embedding": [NaN]}]}', b'{"data": [{"index": 1, "embedding": [1.0]}]}',
     b'{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1]}]}'],
    ids=range(7),
)  # fmt: skip
def test_answers_that_are_no_vectors(server, remote, data):  # noqa: F811
    server.then = at.raw(data)
    with pytest.raises(EndpointError, match="none of embeddings"):
        remote().encode(["aa"])


def test_vectors_of_different_lengths(server, remote):  # noqa: F811
    server.first.append(at.raw(b'{"data": [{"index": 0, "embedding": [1.0]}]}'))
    with pytest.raises(DataError, match="different lengths"):
        remote(batch_size=1, concurrency=1).encode(["aa", "b"])


def test_nothing_is_sent_unless_an_endpoint_is_named(server, remote):  # noqa: F811
    for options in ({"url": "", "model": "m"}, {"url": server.url, "model": ""}, {"url": "", "model": ""}):
        with pytest.raises(UsageError, match="nothing is sent"):
            open_embedder("openai", **options)
    with pytest.raises(DataError, match="none of 2 texts"):
        remote().encode(["", "-"])
    assert not server.seen
