"""Readers of annotated corpora: every format gives the same shape, and what is broken is told by file and line."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.document import Span
from allonym.errors import DataError, MissingExtra, UnknownNameError
from allonym.train.columns import detokenise, find_entities
from allonym.train.records import (
    SUFFIXES,
    corpus_readers,
    list_spans,
    make_record,
    read_records,
    select_outermost_spans,
    write_jsonl,
)

TEXT = "Ada Brook met Cyd in Elmford."
SPANS = [(0, 9, "PER"), (14, 17, "PER"), (21, 28, "LOC")]


def shown(record):
    return [(record["text"][s["start"] : s["end"]], s["label"]) for s in record["spans"]]


def jsonl(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_our_own_jsonl(tmp_path):
    path = jsonl(
        tmp_path / "notes.jsonl",
        {"id": "a", "doc_id": "d", "text": TEXT, "spans": [{"start": a, "end": b, "label": x} for a, b, x in SPANS]},
        {"text": "nothing", "meta": {"source": "elsewhere"}},
    )
    first, second = read_records(path)
    assert (first["id"], first["doc_id"], first["meta"]) == ("a", "d", {"source": "notes"})
    assert shown(first) == [("Ada Brook", "PER"), ("Cyd", "PER"), ("Elmford", "LOC")]
    assert (second["id"], second["doc_id"], second["spans"], second["meta"]) == (
        "notes-2",
        "notes-2",
        [],
        {"source": "elsewhere"},
    )


def test_parts_of_speech_without_a_text_get_one(tmp_path):
    path = jsonl(tmp_path / "pos.jsonl", {"tokens": ["Ada", "ran", "."], "upos": ["PROPN", "VERB", "PUNCT"]})
    (record,) = read_records(path)
    assert record["text"] == "Ada ran."
    assert record["upos"] == ["PROPN", "VERB", "PUNCT"]


@pytest.mark.parametrize("name", ["all.jsonl", "all.jsonl.gz"])
def test_what_is_written_is_read(tmp_path, name):
    records = [
        make_record("", "1", TEXT, SPANS, meta={"source": "x"}),
        make_record("", "2", "é\u2028\n\ud800", [(0, 1, "X")], doc_id="d", meta={"source": "y"}),
    ]
    path = tmp_path / "new" / name
    assert write_jsonl(path, records) == 2
    before = path.read_bytes()
    assert read_records(path) == records
    write_jsonl(path, records)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (['{"text": "x"}', "{"], ":2: not JSON at column 2"),
        (["[1]"], ":1: an object is required, got list"),
        (['{"text": 1}'], ":1: the text must be a string, got int"),
        (['{"text": "abc", "spans": [{"start": 1, "end": 9, "label": "X"}]}'], ":1, span 1: 0 <= start < end <= 3"),
        (['{"text": "abc", "spans": [{"start": 1, "end": 1, "label": "X"}]}'], "got 1..1"),
        (['{"text": "abc", "spans": [{"start": "1", "end": 2, "label": "X"}]}'], "must be whole numbers"),
        (['{"text": "abc", "spans": [{"start": 0, "end": 2}]}'], "label a name"),
        (['{"text": "abc", "spans": [{"start": 0, "end": 2, "label": "X", "text": "bc"}]}'], "is not the span's text"),
        (['{"text": "abc", "spans": {}}'], "spans must be a list"),
        (['{"tokens": ["a"], "upos": []}'], "as many upos as tokens"),
    ],
)
def test_broken_jsonl_is_told_by_line_without_its_text(tmp_path, lines, told):
    path = tmp_path / "bad.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_records(path)
    assert told in str(caught.value)
    assert "abc" not in str(caught.value)


COLUMNS = """-DOCSTART- -X- O

Ada NNP B-PER
Brook NNP I-PER
met VBD O
Cyd NNP B-PER
. . O

In IN O
Elmford NNP B-LOC
. . O
-DOCSTART- -X- O

Eve NNP B-PER
"""


def test_columns_with_documents(tmp_path):
    path = tmp_path / "news.conll"
    path.write_text(COLUMNS, encoding="utf-8")
    first, second = read_records(path)
    assert first["text"] == "Ada Brook met Cyd.\nIn Elmford."
    assert shown(first) == [("Ada Brook", "PER"), ("Cyd", "PER"), ("Elmford", "LOC")]
    assert first["meta"] == {"source": "news", "detokenized": True, "n_tokens": 8}
    assert (second["id"], second["text"]) == ("news-2", "Eve")


def test_columns_without_documents_are_sentences_of_their_own(tmp_path):
    path = tmp_path / "news.iob"
    path.write_text(COLUMNS.replace("-DOCSTART- -X- O\n", ""), encoding="utf-8")
    assert [r["doc_id"] for r in read_records(path)] == ["news-1", "news-2", "news-3"]


def test_columns_may_be_chosen_and_comments_are_none_of_them(tmp_path):
    path = tmp_path / "uner.txt"
    path.write_text("# sent_id = 1\n# text = x\n1\tAda\tB-PER\t-\n2\tran\tO\t-\n\n", encoding="utf-8")
    (record,) = read_records(path, "conll", (1, 2))
    assert shown(record) == [("Ada", "PER")]


def test_a_text_file_of_columns_is_told_by_its_content(tmp_path):
    path = tmp_path / "tagged.txt"
    path.write_text("Ada B-PER\nran O\n", encoding="utf-8")
    assert len(read_records(path)) == 1
    path.write_text("Ada ran.\nShe did.\n", encoding="utf-8")
    with pytest.raises(DataError, match="the corpus format is not recognised"):
        read_records(path)


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("B-A I-A O", [(0, 1, "A")]),
        ("I-A I-A B-A", [(0, 1, "A"), (2, 2, "A")]),  # IOB1
        ("B-A E-A S-B", [(0, 1, "A"), (2, 2, "B")]),  # BIOES
        ("B-A L-A U-A", [(0, 1, "A"), (2, 2, "A")]),  # BILOU
        ("B-A M-A E-A", [(0, 2, "A")]),  # BMES
        ("A A B O A", [(0, 1, "A"), (2, 2, "B"), (4, 4, "A")]),  # IO
        ("I-A E-A I-A", [(0, 1, "A"), (2, 2, "A")]),
    ],
)
def test_every_scheme_of_tags(tags, found):
    assert find_entities(tags.split()) == found


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Ada B-PER\nran\n", ":2: a token in column 0 and a tag in column -1 are required, got 1 columns"),
        ("Ada B-PER\nran fast\n", ":2: no tag such as O"),
        ("the cat\nsat there\n", ":1: no tag such as O"),
    ],
)
def test_broken_columns_are_told_by_line(tmp_path, text, told):
    path = tmp_path / "bad.conll"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_records(path)
    assert told in str(caught.value)
    assert "fast" not in str(caught.value)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["He", "said", "``", "No", "''", "."], 'He said "No".'),
        (["-LRB-", "Ada", "'s", "-RRB-"], "(Ada's)"),
        (["$", "5", ",", "or", "#", "3"], "$5, or #3"),
        (["don", "'t", "can", "n't"], "don't cann't"),
    ],
)
def test_detokenising(tokens, text):
    assert detokenise(tokens)[0] == text


@given(st.lists(st.text("aA.,('\"", min_size=1), max_size=20))
def test_detokenised_tokens_stand_where_it_says(tokens):
    text, places = detokenise(tokens)
    assert len(places) == len(tokens)
    quotes = {"''": '"'}
    assert [text[a:b] for a, b in places] == [quotes.get(token, token) for token in tokens]
    assert all(a[1] <= b[0] for a, b in pairwise(places))


def test_brat_as_file_and_as_folder(tmp_path):
    (tmp_path / "one.txt").write_text("Ada of\r\nElm Road.", encoding="utf-8", newline="")
    notes = "T1\tPER 0 3\tAda\nR1\tat Arg1:T1 Arg2:T2\nT2\tLOC 8 11;12 16\tElm Road\n"
    (tmp_path / "one.ann").write_text(notes, encoding="utf-8")
    expected = [("Ada", "PER"), ("Elm", "LOC"), ("Road", "LOC")]
    for path in (tmp_path, tmp_path / "one.ann", tmp_path / "one.txt"):
        (record,) = read_records(path)
        assert (record["id"], shown(record)) == ("one", expected)
    (tmp_path / "one.ann").write_text("\nT1\tPER 0 99\tAda\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"one\.ann:2: 0 <= start < end <= 17"):
        read_records(tmp_path)
    (tmp_path / "one.ann").write_text("T1 PER\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"one\.ann:1: 'T1"):
        read_records(tmp_path)


def test_brat_with_a_line_separator_in_a_mention(tmp_path):
    (tmp_path / "one.txt").write_text("Ada\u2028Tom left.", encoding="utf-8")
    (tmp_path / "one.ann").write_text("T1\tPER 0 7\tAda\u2028Tom\r\nT2\tACT 8 12\tleft\r\n", encoding="utf-8")
    (record,) = read_records(tmp_path)
    assert shown(record) == [("Ada\u2028Tom", "PER"), ("left", "ACT")]


def test_a_folder_of_something_else_is_told(tmp_path):
    with pytest.raises(DataError, match=r"has no \.ann"):
        read_records(tmp_path)


def test_tab(tmp_path):
    def mention(a, b, kind):
        return {"start_offset": a, "end_offset": b, "entity_type": kind, "identifier_type": "DIRECT"}

    document = {
        "doc_id": "001-1",
        "text": TEXT,
        "dataset_type": "dev",
        "annotations": {
            "annotator2": {"entity_mentions": []},
            "annotator1": {"entity_mentions": [mention(0, 9, "PERSON")]},
        },
    }
    path = tmp_path / "echr.json"
    path.write_text(json.dumps([document]), encoding="utf-8")
    (record,) = read_records(path)
    assert shown(record) == [("Ada Brook", "PERSON")]
    assert record["meta"] == {"source": "tab", "annotators": 2, "split": "dev"}
    document["annotations"] = {}
    path.write_text(json.dumps([document]), encoding="utf-8")
    with pytest.raises(DataError, match="item 1: annotations by annotator"):
        read_records(path)


def test_tab_tells_entities_identifiers_and_annotators(tmp_path):
    def mention(a, b, id, kind):
        return {"start_offset": a, "end_offset": b, "entity_type": "PERSON", "entity_id": id, "identifier_type": kind}

    marks = {
        "z": [mention(0, 9, "e1", "DIRECT")],
        "b": [mention(14, 17, "e2", "QUASI"), mention(0, 3, "e3", "NO_MASK")],
    }
    document = {"doc_id": "1", "text": TEXT, "annotations": {k: {"entity_mentions": v} for k, v in marks.items()}}
    path = tmp_path / "echr.json"
    path.write_text(json.dumps([document]), encoding="utf-8")
    (record,) = read_records(path)
    told = [[(s["start"], s["entity"], s["kind"]) for s in record["annotations"][who]] for who in ("b", "z")]
    assert told == [[(0, "e3", "none"), (14, "e2", "quasi")], [(0, "e1", "direct")]]
    assert record["spans"] == record["annotations"]["b"]
    write_jsonl(tmp_path / "own.jsonl", [record])
    assert read_records(tmp_path / "own.jsonl") == [record]
    document["annotations"]["z"]["entity_mentions"][0]["identifier_type"] = "SOMETIMES"
    path.write_text(json.dumps([document]), encoding="utf-8")
    with pytest.raises(DataError, match="item 1: identifier_type must be"):
        read_records(path)


def test_our_jsonl_may_tell_entities_kinds_and_annotators(tmp_path):
    def span(a, b, **more):
        return {"start": a, "end": b, "label": "PER", **more}

    path = jsonl(
        tmp_path / "own.jsonl",
        {"text": TEXT, "spans": [span(0, 9, entity_id=7), span(14, 17, entity_ids=["x", "y"], kind="quasi")]},
        {"text": TEXT, "annotations": {"b": [span(0, 9)], "a": [span(14, 17, entity="z")]}},
    )
    first, second = read_records(path)
    assert [(s.get("entity"), s.get("kind")) for s in first["spans"]] == [("7", None), ("x", "quasi")]
    assert "annotations" not in first
    assert shown(second) == [("Cyd", "PER")]
    assert list(second["annotations"]) == ["a", "b"]
    for bad, said in (
        ({"annotations": []}, None),
        ({"annotations": [1]}, "annotations must be an object"),
        ({"annotations": {"a": 1}}, "spans must be a list"),
        ({"annotations": {"a": [span(0, 99)]}, "spans": []}, "annotator 1, span 1: 0 <= start"),
        ({"spans": [span(0, 9, kind="maybe")]}, "span 1: kind must be one of direct, quasi, none"),
    ):
        jsonl(path, {"text": TEXT, **bad})
        if said is None:
            assert read_records(path)[0]["spans"] == []
        else:
            with pytest.raises(DataError, match=said):
                read_records(path)


def test_brat_tells_which_mentions_are_one(tmp_path):
    (tmp_path / "one.txt").write_text(TEXT, encoding="utf-8")
    notes = "T1\tPER 0 9\tAda Brook\nT2\tPER 14 17\tCyd\nT3\tLOC 21 28\tElmford\nR1\tCoref Arg1:T2 Arg2:T1\n"
    (tmp_path / "one.ann").write_text(notes + "R2\tLives Arg1:T1 Arg2:T3\nE1\tMeet:T1\n", encoding="utf-8")
    (record,) = read_records(tmp_path)
    assert [s.get("entity") for s in record["spans"]] == ["T1", "T1", None]
    (tmp_path / "one.ann").write_text(notes + "*\tEquiv T3 T2\n", encoding="utf-8")
    assert [s.get("entity") for s in read_records(tmp_path)[0]["spans"]] == ["T1", "T1", "T1"]


def test_presidio_texts_of_one_template_are_one_document(tmp_path):
    span = {"entity_type": "PERSON", "entity_value": "Ada", "start_position": 0, "end_position": 3}
    items = [{"full_text": "Ada ran", "spans": [span], "template_id": n} for n in (7, 7, 8)]
    path = tmp_path / "made.json"
    path.write_text(json.dumps(items), encoding="utf-8")
    records = read_records(path)
    assert [r["doc_id"] for r in records] == ["made-template-7", "made-template-7", "made-template-8"]
    assert len({r["id"] for r in records}) == 3
    assert shown(records[0]) == [("Ada", "PERSON")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("{}", "a list of documents is required"),
        ("[3]", "item 1: an object is required"),
        ('[{"text": "x"}]', "write them as JSON lines"),
        ('[{"words": 1}]', "the JSON is of no known corpus"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_other_json_is_told(tmp_path, text, told):
    path = tmp_path / "some.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=told):
        read_records(path)


@pytest.mark.slow
def test_docbin(tmp_path):
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import DocBin

    nlp = spacy.blank("en")
    doc = nlp.make_doc(TEXT)
    doc.set_ents([doc.char_span(a, b, label=label) for a, b, label in SPANS])
    path = tmp_path / "train.spacy"
    DocBin(docs=[doc]).to_disk(path)
    (record,) = read_records(path)
    assert record["text"] == TEXT
    assert [(s["start"], s["end"], s["label"]) for s in record["spans"]] == SPANS
    assert not any("entity" in s for s in record["spans"])
    doc.set_ents([doc.char_span(a, b, label=label, span_id=f"e{a}") for a, b, label in SPANS])
    DocBin(docs=[doc]).to_disk(path)
    assert [s["entity"] for s in read_records(path)[0]["spans"]] == ["e0", "e14", "e21"]
    path.write_bytes(b"no such thing")
    with pytest.raises(DataError, match=r"not a \.spacy file"):
        read_records(path)


def test_docbin_without_spacy_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "spacy", None)
    (tmp_path / "train.spacy").write_bytes(b"")
    with pytest.raises(MissingExtra, match=r"\[spacy\]"):
        read_records(tmp_path / "train.spacy")


def test_damaged_and_unknown(tmp_path):
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"text": "x"}\n' * 50)[:-9])
    with pytest.raises(DataError, match="damaged gzip"):
        read_records(path)
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"text": "\xe9"}')
    with pytest.raises(DataError, match="not UTF-8 at byte 10"):
        read_records(path)
    with pytest.raises(UnknownNameError, match="did you mean: jsonl"):
        read_records(path, "json-l")


def test_every_suffix_has_a_reader():
    assert set(SUFFIXES.values()) <= set(corpus_readers.names())
    assert all(callable(corpus_readers.get(name)) for name in corpus_readers.names())


SPAN = st.builds(lambda a, n, x: Span(a, a + n, x), st.integers(0, 30), st.integers(1, 12), st.sampled_from("AB"))


@given(st.lists(SPAN, max_size=12))
def test_outermost_spans_are_disjoint_and_no_shorter_than_what_they_beat(spans):
    kept = select_outermost_spans(spans)
    assert kept == select_outermost_spans(reversed(spans)) == select_outermost_spans(kept)
    assert set(kept) <= set(spans)
    assert all(a.end <= b.start for a, b in pairwise(kept))
    for span in spans:
        assert any(span.overlaps(other) and len(other) >= len(span) for other in kept)


def test_spans_of_a_record_are_sorted():
    record = make_record("", "1", TEXT, reversed(SPANS))
    assert list_spans(record) == [Span(*span) for span in SPANS]
