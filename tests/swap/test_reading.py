"""A corpus is read: metadata, sections, chunks that tile them, direct identifiers out, values in, and written again."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.rows import check_each_row

from allonym.document import Document
from allonym.errors import DataError, UnknownNameError, UsageError
from allonym.plan import Plan, apply, apply_parts
from allonym.policy import Policy
from allonym.swap.corpus import Corpus
from allonym.swap.reading import load, rewrite
from allonym.swap.sections import get_metadata, list_text_fields, read_corpus_documents
from allonym.swap.settings import Settings
from allonym.swap.writing import write

POLICY = Policy.load("swap").with_(detectors=("rules", "lexicon"))
"""Finds addresses, numbers and what metadata lists: the same with every model."""

LONG = "The board met in spring and talked about costs, prices and the new plant near the river. " * 18
CALLS = [
    {
        "id": "c1",
        "company": "Brenlor Energy Inc",
        "executives": ["Nora Hale", "Tomas Voss"],
        "text": f"Welcome to Brenlor's second quarter call. Nora Hale leads Brenlor Energy. {LONG}Write to ir@brenlor.example."
        "\nOur first question comes from Ada Quist of Orlo Capital. Why did Brenlor grow?",
    },
    {
        "id": "c2",
        "company": "Quillmar Corp",
        "executives": ["Bo Lindt"],
        "text": f"Thank you for joining Quillmar. Bo Lindt leads it. {LONG}We like Brenlor as well."
        "\nWe will now begin the question and answer session. Who is Ada Quist?",
    },
]


def write_lines(path: Path, rows: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "calls.jsonl", CALLS)


def plans(corpus: Corpus) -> tuple[Plan, ...]:
    """Of a release in which nothing is exchanged."""
    return write(corpus, {}, policy=POLICY).plans


def body(corpus: Corpus, number: int) -> str:
    return max(apply_parts(corpus.documents[number], plans(corpus)[number]), key=len)


def loaded(source: Path, **options: Any) -> Corpus:
    sizes = {f"read.{name}": options.pop(name) for name in ("min_size", "max_size", "threshold") if name in options}
    settings = Settings.load("p1").with_(sizes)
    return load(source, **{"policy": POLICY, "fields": ["text"], "settings": settings, **options})


def text_of(corpus: Corpus, number: int) -> str:
    return "".join(c.text for c in corpus.chunks if c.document == number)


def test_chunks_tile_the_sections(calls: Path) -> None:
    for section in ("all", "presentation", ("quarter", "costs"), lambda d: [(5, 60), (80, 120)]):
        corpus = loaded(calls, section=section, min_size=20, max_size=100)
        for i, document in enumerate(corpus.documents):
            own = [c for c in corpus.chunks if c.document == i]
            assert [document.text[c.start : c.end] for c in own]
            assert "".join(document.text[c.start : c.end] for c in own) == "".join(
                document.text[a:b] for a, b in corpus.sections[i]
            )
            spans = [s for e in corpus.entities[i] for s in e.spans]
            assert not [s for s in spans for c in own if s.start < c.start < s.end]
            edits = corpus.plans[i].edits
            assert not [e for e in edits for c in own if e.start < c.start < e.end]


def test_direct_identifiers_are_taken_out(calls: Path) -> None:
    corpus = loaded(calls)
    first, second = text_of(corpus, 0), text_of(corpus, 1)
    assert "Brenlor" not in first
    assert "Welcome to [Company Name]'s second quarter call. [Executive 1] leads [Company Name]." in first
    assert "Write to [E-mail]." in first
    assert "joining [Company Name]. [Executive 1] leads it." in second
    assert "We like Brenlor as well." in second  # another's name is no direct identifier here
    for i in (0, 1):
        assert body(corpus, i) == text_of(corpus, i)


def test_the_presentation_alone(calls: Path) -> None:
    corpus = loaded(calls, section="presentation")
    assert not corpus.warnings
    assert "question" not in "".join(c.text for c in corpus.chunks)
    assert body(corpus, 0) == text_of(corpus, 0)


def test_the_rest_may_be_anonymised(calls: Path) -> None:
    policy = POLICY.with_(dictionary=())
    corpus = loaded(calls, section="presentation", rest="anonymize", policy=policy)
    text = body(corpus, 0)
    assert text.endswith("Our first question comes from Ada Quist of Orlo Capital. Why did [Company Name] grow?")


def test_what_is_found_in_the_rest_is_replaced_there_only(calls: Path, tmp_path: Path) -> None:
    names = tmp_path / "names.toml"
    names.write_text(
        'extends = "swap"\n[detect]\ndetectors = ["rules", "lexicon"]\n[dictionary]\n'
        'PERSON = ["Ada Quist"]\nORGANIZATION = ["Orlo Capital", "the board"]\n'
    )
    corpus = loaded(calls, section="presentation", rest="anonymize", policy=names)
    text = body(corpus, 0)
    assert "comes from [Person] of [Organization]." in text
    assert "The board met" in text
    assert "The board met" in text_of(corpus, 0)
    assert {v.key for c in corpus.chunks for v in c.values if v.category == "Organization"} == {"board"}


def test_categories_to_change_become_placeholders(calls: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text(
        'extends = "swap"\n[detect]\ndetectors = ["lexicon"]\n[dictionary]\nEVENT = ["new plant"]\nPRODUCT = ["river"]\n'
    )
    corpus = loaded(calls, policy=policy, categories={"Event": "change", "Product": "fixed"})
    assert corpus.categories == {"Event": "change", "Product": "fixed"}
    assert "prices and the [Event] near the river." in text_of(corpus, 0)
    assert {v.category for c in corpus.chunks for v in c.values} == {"Product"}


def test_a_label_that_the_policy_adds_can_be_a_category(calls: Path, tmp_path: Path) -> None:
    policy = tmp_path / "p.toml"
    policy.write_text(
        'extends = "swap"\n[[labels]]\nname = "SITE"\nkind = "quasi"\ndescription = "a site"\n'
        '[detect]\ndetectors = ["lexicon"]\n[dictionary]\nSITE = ["new plant"]\n'
    )
    corpus = loaded(calls, policy=policy, categories=["SITE"])
    assert {v.category for c in corpus.chunks for v in c.values} == {"SITE"}


def test_the_protected_field_is_never_released(calls: Path, tmp_path: Path) -> None:
    corpus = loaded(calls)
    assert corpus.settings["fields"] == ["text", "company", "executives"]
    target = tmp_path / "out.jsonl"
    assert rewrite(corpus, calls, target, plans(corpus), policy=POLICY) == 2
    rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    assert [row["company"] for row in rows] == ["[Company Name]"] * 2
    assert rows[0]["text"] == text_of(corpus, 0)
    assert rows[0]["executives"] == ["[Executive 1]", "[Executive 2]"]
    assert rows[0]["id"] == "c1"
    assert "Brenlor" not in rows[0]["text"]


def test_fields_that_only_later_records_have_are_not_released(tmp_path: Path) -> None:
    rows = [
        {"text": "Brenlor rose.", "company": 17, "meta": {"company": "Brenlor"}, "ticker": None},
        {
            "text": "Quillmar fell.",
            "company": "Quillmar",
            "ticker": "QLMR",
            "alias": "Quill",
            "executives": ["Bo Lindt"],
        },
        {"text": "Orlo stood.", "company": "Orlo", "meta": {"company": "Orlo", "Ticker Symbol": "ORLO"}},
    ]
    source = write_lines(tmp_path / "a.jsonl", rows)
    corpus = loaded(source, min_size=1)
    with pytest.raises(DataError, match="1 documents have their company in a field that is no text"):
        rewrite(corpus, source, tmp_path / "b.jsonl", plans(corpus), policy=POLICY)
    rows[0]["company"] = "Brenlor"
    corpus = loaded(write_lines(source, rows), min_size=1)
    rewrite(corpus, source, tmp_path / "b.jsonl", plans(corpus), policy=POLICY)
    told = (tmp_path / "b.jsonl").read_text()
    assert not [name for name in ("Quill", "QLMR", "Bo Lindt", "Orlo", "ORLO") if name in told]


def test_a_field_that_is_not_read_and_names_the_value_is_told(tmp_path: Path) -> None:
    rows = [{**CALLS[0], "about": {"title": "BRENLOR ENERGY, second quarter"}}, {**CALLS[1], "about": "Second quarter"}]
    source = write_lines(tmp_path / "a.jsonl", rows)
    said = "1 of 2 documents name their company in a field that is not read"
    assert any(said in w for w in loaded(source).warnings)
    assert not any("not read" in w for w in loaded(source, fields=["text", "about"]).warnings)
    assert not any("not read" in w for w in loaded(source, fields=None).warnings)


def test_columns_are_found_as_they_are_spelt(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("text,Company,Ticker Symbol\nBrenlor rose.,Brenlor,\nQuillmar fell.,Quillmar,QLMR\n")
    corpus = loaded(source, min_size=1)
    assert corpus.settings["fields"] == ["text", "Company", "Ticker Symbol"]
    rewrite(corpus, source, tmp_path / "b.csv", plans(corpus), policy=POLICY)
    assert "Quillmar" not in (tmp_path / "b.csv").read_text()
    assert "QLMR" not in (tmp_path / "b.csv").read_text()


def test_rows_of_metadata_that_contradict_each_other(tmp_path: Path) -> None:
    folder = tmp_path / "calls"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text("We grew.")
    table = tmp_path / "meta.csv"
    table.write_text("file,company\na.txt,Brenlor\na.txt,Brenlor\nb.txt,Quillmar\n")
    assert loaded(folder, metadata=table, fields=None, min_size=1).classes == ("Brenlor", "Quillmar")
    table.write_text("file,company\na.txt,Brenlor\na.txt,Quillmar\nb.txt,Quillmar\n")
    with pytest.raises(DataError, match="two rows describe document 1 differently"):
        loaded(folder, metadata=table, fields=None)


def test_all_fields_by_default(calls: Path, tmp_path: Path) -> None:
    corpus = loaded(calls, fields=None, section="presentation")
    rewrite(corpus, calls, tmp_path / "out.jsonl", plans(corpus), policy=POLICY)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[0]["company"] == "[Company Name]"
    assert rows[0]["executives"] == ["[Executive 1]", "[Executive 2]"]
    assert rows[0]["text"] == text_of(corpus, 0)


def test_a_source_that_changed_is_not_written(calls: Path, tmp_path: Path) -> None:
    corpus = loaded(calls)
    write_lines(calls, [CALLS[0], {**CALLS[1], "text": "Other words."}])
    with pytest.raises(DataError, match="document 2 is another one"):
        rewrite(corpus, calls, tmp_path / "out.jsonl", plans(corpus), policy=POLICY)
    assert not (tmp_path / "out.jsonl").exists()
    write_lines(calls, CALLS[:1])
    with pytest.raises(DataError, match="2 documents then, 1 now"):
        rewrite(corpus, calls, tmp_path / "out.jsonl", plans(corpus), policy=POLICY)
    assert not (tmp_path / "out.jsonl").exists()
    with pytest.raises(UsageError, match="2 documents need as many plans, got 1"):
        rewrite(corpus, calls, tmp_path / "out.jsonl", plans(corpus)[:1], policy=POLICY)


def test_nested_metadata_and_other_keys(tmp_path: Path) -> None:
    rows = [
        {"text": "Seen at Saint Orlo in May. Saint Orlo is near.", "meta": {"hospital": "Saint Orlo"}},
        {"text": "Seen at Mount Quill in June.", "meta": {"hospital": "Mount Quill"}},
    ]
    source = write_lines(tmp_path / "notes.jsonl", rows)
    corpus = loaded(source, protect="hospital", min_size=5)
    assert corpus.classes == ("Saint Orlo", "Mount Quill")
    assert corpus.settings["fields"] == ["text", "meta.hospital"]
    assert text_of(corpus, 0) == "Seen at [Hospital] in May. [Hospital] is near."
    rewrite(corpus, source, tmp_path / "out.jsonl", plans(corpus), policy=POLICY)
    row = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert row == {"text": text_of(corpus, 0), "meta": {"hospital": "[Hospital]"}}
    assert loaded(source, protect="meta.hospital").classes == corpus.classes


def test_fields_with_blanks_in_their_names(tmp_path: Path) -> None:
    rows = [{"text": f"{name} rose.", "meta": {"Ticker Symbol": name}} for name in ("BRNL", "QLMR")]
    corpus = loaded(write_lines(tmp_path / "a.jsonl", rows), protect="Ticker Symbol", min_size=1)
    assert corpus.settings["fields"] == ["text", "meta.Ticker Symbol"]
    assert [c.text for c in corpus.chunks] == ["[Company Name] rose."] * 2
    assert apply_parts(corpus.documents[0], plans(corpus)[0]) == ("[Company Name] rose.", "[Company Name]")


def test_numbers_may_be_protected(tmp_path: Path) -> None:
    rows = [{"text": f"In {year} we grew.", "year": year} for year in (1913, 1927)]
    source = write_lines(tmp_path / "a.jsonl", rows)
    corpus = loaded(source, protect="year", min_size=1)
    assert [c.text for c in corpus.chunks] == ["In [Year] we grew."] * 2
    assert any("2 of 2 documents have their year in a field that is no text" in w for w in corpus.warnings)
    with pytest.raises(DataError, match="2 documents have their year in a field that is no text"):
        rewrite(corpus, source, tmp_path / "b.jsonl", plans(corpus), policy=POLICY)
    assert not (tmp_path / "b.jsonl").exists()


def test_tables_with_short_texts(tmp_path: Path) -> None:
    source = tmp_path / "notes.csv"
    with source.open("w", newline="") as out:
        table = csv.writer(out)
        table.writerow(["Company Name", "comment", "stars"])
        table.writerow(["Brenlor", "Brenlor is fine.", "4"])
        table.writerow(["Quillmar", "I like Quillmar.", "5"])
    corpus = loaded(source, protect="company_name", fields=["comment"], min_size=1)
    assert [c.text for c in corpus.chunks] == ["[Company Name] is fine.", "I like [Company Name]."]
    rewrite(corpus, source, tmp_path / "out.csv", plans(corpus), policy=POLICY)
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "Company Name,comment,stars",
        "[Company Name],[Company Name] is fine.,4",
        "[Company Name],I like [Company Name].,5",
    ]


def test_folders_with_a_table_of_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    (folder / "deep").mkdir(parents=True)
    (folder / "one.txt").write_text("At Brenlor we grew. It was a good year.")
    (folder / "deep" / "two.md").write_text("Quillmar fell. FQX is its ticker.")
    table = tmp_path / "meta.csv"
    table.write_text("file,company,ticker\none.txt,Brenlor,\ndeep/two.md,Quillmar,FQX\n")
    corpus = loaded(folder, metadata=table, fields=None, min_size=1)
    assert sorted(corpus.classes) == ["Brenlor", "Quillmar"]
    assert {"".join(c.text for c in corpus.chunks if c.document == i) for i in (0, 1)} == {
        "At [Company Name] we grew. It was a good year.",
        "[Company Name] fell. [Company Name] is its ticker.",
    }
    rewrite(corpus, folder, tmp_path / "out", plans(corpus), policy=POLICY)
    assert (tmp_path / "out" / "deep" / "two.md").read_text().startswith("[Company Name] fell.")
    table.write_text("file,company\nother.txt,Brenlor\n")
    with pytest.raises(DataError, match="no row names any of the 2 documents"):
        loaded(folder, metadata=table, fields=None)
    table.write_text("company\nBrenlor\n")
    with pytest.raises(DataError, match="column id or file"):
        loaded(folder, metadata=table, fields=None)


def test_aliases_of_a_class(calls: Path) -> None:
    corpus = loaded(calls, aliases={"Brenlor Energy Inc": ["Orlo Capital"], "Quillmar Corp": "Ada Quist"})
    assert "from Ada Quist of [Company Name]." in text_of(corpus, 0)
    assert "Who is [Company Name]?" in text_of(corpus, 1)


@pytest.mark.parametrize(
    ("rows", "options", "error", "told"),
    [
        ([{"text": "a", "company": "A"}] * 2, {"protect": "compny"}, UnknownNameError, "did you mean.*company"),
        (
            [
                {"id": "x1", "text": "a", "company": "A"},
                {"id": "x2", "text": "b", "company": " "},
                {"id": "x3", "text": "c"},
            ],
            {},
            DataError,
            "2 of 3 documents have no 'company', the first is number 2",
        ),
        ([{"text": "a", "company": "A"}], {}, DataError, "one document has nobody to exchange with"),
        ([{"text": "a", "company": "A"}] * 3, {}, DataError, "all 3 documents have the same 'company'"),
        ([{"text": " ", "company": "A"}, {"text": "", "company": "B"}], {}, DataError, "no text"),
        ([{"text": "a", "company": "A"}] * 2, {"rest": "keep"}, UnknownNameError, "drop"),
        ([{"text": "a", "company": "A"}] * 2, {"section": "presentations"}, UnknownNameError, "presentation"),
        ([{"text": "a", "company": "A"}] * 2, {"threshold": 200}, UsageError, "read.threshold"),
        ([{"text": "a", "company": "A"}] * 2, {"categories": {"Firm": "swap"}}, UnknownNameError, "category"),
    ],
)
def test_wrong_input_is_told(
    tmp_path: Path, rows: list[object], options: dict[str, Any], error: type[Exception], told: str
) -> None:
    source = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(error, match=told):
        loaded(source, **options)


def test_documents_without_a_section_are_told(tmp_path: Path) -> None:
    rows = [{**CALLS[0]}, {**CALLS[1], "text": "Nothing is said of it here. " * 80}]
    corpus = loaded(write_lines(tmp_path / "a.jsonl", rows), section="presentation")
    assert any("the section was not found in 1 of 2 documents" in w and "number 2" in w for w in corpus.warnings)
    assert any("1 of 2 documents never name their company" in w for w in corpus.warnings)


def test_ids_that_give_the_value_away_are_told(tmp_path: Path) -> None:
    rows = [{**CALLS[0], "id": "Brenlor-2020"}, CALLS[1]]
    corpus = loaded(write_lines(tmp_path / "a.jsonl", rows))
    assert any("1 of 2 documents have an id that holds a word of their company" in w for w in corpus.warnings)


def test_workers_change_nothing(calls: Path) -> None:
    one = loaded(calls, workers=1, categories=["Organization", "Term"])
    told: list[tuple[str, int, int]] = []
    two = loaded(calls, workers=2, categories=["Organization", "Term"], progress=lambda *at: told.append(at))
    assert one == two
    assert told[-1] == ("read", 2, 2)


class Alternate:
    """An embedder whose neighbouring sentences are equal but for the third."""

    def encode(self, texts: Sequence[str]) -> Any:
        rows = np.zeros((len(texts), 2), np.float32)
        rows[:, 0] = 1
        rows[2:] = (0, 1)
        return rows


def test_an_embedder_may_be_given(calls: Path) -> None:
    corpus = loaded(calls, embedder=Alternate(), min_size=1, max_size=5000)
    assert [c.document for c in corpus.chunks] == [0, 0, 1, 1]
    assert corpus.chunks[0].text.endswith("leads [Company Name]. ")


def test_repr_shows_no_text(calls: Path) -> None:
    corpus = loaded(calls, categories=["Organization", "Term"])
    assert "Brenlor" not in repr(corpus)
    assert "Brenlor" not in repr(corpus.chunks) + repr(corpus.plans) + repr(corpus.settings)


def test_the_default_policy_finds_names(tmp_path: Path) -> None:
    rows = [
        {"company": "Brenlor", "text": "At Brenlor, Maria Keller met Goldman Sachs in Chicago last March."},
        {"company": "Quillmar", "text": "Quillmar sold its Berlin office to Deutsche Bank, said John Miller."},
    ]
    corpus = load(write_lines(tmp_path / "a.jsonl", rows), fields=["text"])
    found = {(v.category, v.key) for c in corpus.chunks for v in c.values}
    assert {("Organization", "goldman sachs"), ("Person", "maria keller"), ("Location", "chicago")} <= found
    assert "Maria Keller met Goldman Sachs in Chicago" in corpus.chunks[0].text


@check_each_row(
    "meta, key, value",
    [
        ({"company": " Orlo "}, "company", "Orlo"),
        ({"company_name": "Orlo"}, "Company Name", "Orlo"),
        ({"a": {"b": "Orlo"}}, "a.b", "Orlo"),
        ({"company": ["Orlo"]}, "company", "Orlo"),
        ({"company": ["Orlo", "Bo"]}, "company", ""),
        ({"year": 2020}, "year", "2020"),
        ({"flag": True}, "flag", ""),
        ({}, "company", ""),
    ],
)
def test_values(meta: dict[str, object], key: str, value: str) -> None:
    assert get_metadata(Document("d", "x", meta), key) == value


def test_reading_alone(calls: Path) -> None:
    fields = list_text_fields(calls, "company", ["text"])
    assert fields == ("text", "company")
    documents = read_corpus_documents(calls, "company", fields=fields)
    assert [d.id for d in documents] == ["c1", "c2"]
    assert list_text_fields(calls, "company", None) is None
    corpus = loaded(calls)
    assert apply(corpus.documents[0], corpus.plans[0])
