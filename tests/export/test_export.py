"""Training sets: shapes, roles, splits that keep documents and callers together, a manifest without text."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.errors import AllonymError, DataError, UnknownNameError, UsageError
from allonym.export import Chat, Prompts, Split, Task, export_path, read_tasks
from allonym.export.shapes import Roles
from allonym.files import anonymize_path
from allonym.files.output import PartFile
from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"
SUMMARY = Prompts((Task("summary", "Summarise.", "{summary}"),))
CALL = "Agent: This is Mr. Zaphrandel Quorby.\nCustomer: My name is Elva Tamsin.\nAgent: Thanks, Elva Tamsin.\nCustomer: Bye."


def calls(count: int = 40) -> Iterator[dict[str, object]]:
    """Invented calls: three of each caller, every text its own."""
    for i in range(count):
        yield {
            "id": f"call-{i}",
            "caller": f"c{i // 3}",
            "text": f"Agent: Hello, call {i} here.\nCustomer: My mail is person{i}@example.com.\nAgent: Noted.",
            "summary": f"The customer gave person{i}@example.com.",
        }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "calls.jsonl", calls())


def write(path: Path, rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(folder: Path) -> dict[str, list[dict]]:
    paths = sorted(folder.glob("*.jsonl"))
    return {p.stem: [json.loads(line) for line in p.read_text(encoding="utf-8").splitlines()] for p in paths}


# Chat


def chat(tmp_path: Path, row: dict[str, object], untagged, shape: Chat | None = None, **more) -> list[tuple[str, str]]:
    path = write(tmp_path / "one.jsonl", [row])
    export_path(path, tmp_path / "out", shape or Chat(), untagged, split=Split((1.0,)), **more)
    (example,) = read(tmp_path / "out")["train"]
    assert set(example) == {"messages"}
    return [(m["role"], m["content"]) for m in example["messages"]]


def test_a_transcript_becomes_messages(tmp_path, untagged):
    assert chat(tmp_path, {"text": CALL}, untagged) == [
        ("assistant", "This is Mr. [PERSON_1]."),
        ("user", "My name is [PERSON_2]."),
        ("assistant", "Thanks, [PERSON_2]."),
    ]


def test_a_list_of_turns_becomes_messages_and_turns_in_a_row_one(tmp_path, untagged):
    turns = [("Ms. Eve Dale", "Hello?"), ("Ms. Eve Dale", "Hello."), ("Agent", "Yes, Ms. Dale.")]
    row = {"id": 1, "turns": [{"speaker": who, "text": said} for who, said in turns], "note": "secret@example.com"}
    shape = Chat(system="Be brief.")
    assert chat(tmp_path, row, untagged, shape) == [
        ("system", "Be brief."),
        ("user", "Hello?\nHello."),
        ("assistant", "Yes, Ms. [PERSON_1]."),
    ]


def test_folders_of_transcripts_and_columns_are_read(tmp_path, untagged):
    folder = tmp_path / "calls"
    folder.mkdir()
    (folder / "a.txt").write_text(CALL, encoding="utf-8")
    (folder / "b.txt").write_text(CALL.replace("Elva", "Rosa"), encoding="utf-8")
    made = export_path(folder, tmp_path / "out", Chat(), untagged, split=Split((1.0,)))
    assert made.counts["documents"] == 2
    table = tmp_path / "calls.csv"
    table.write_text('id,said\n1,"Agent: a\nCustomer: b\nAgent: c"\n', encoding="utf-8")
    made = export_path(table, tmp_path / "csv", Chat(), untagged, fields=["said"], split=Split((1.0,)))
    assert [m["role"] for m in read(tmp_path / "csv")["train"][0]["messages"]] == ["assistant", "user", "assistant"]


@check_each_row(
    "given, speakers, roles",
    [
        ({}, ["Agent", "Customer"], ["assistant", "user"]),
        ({}, ["Support Agent", "Ada"], ["assistant", "user"]),
        ({}, ["Ada", "Patient 1"], ["assistant", "user"]),
        ({}, ["Ada", "Bob", "Ada"], ["user", "assistant", "user"]),
        ({}, ["system", "user", "assistant"], ["system", "user", "assistant"]),
        ({"ada": "user", "BOB": "assistant", "x": "-"}, ["Ada", "Bob", "X"], ["user", "assistant", "-"]),
        ({"ada": "user"}, ["Ada", "Bob"], ["user", "assistant"]),
        ({}, ["Bob", "assistant"], ["user", "assistant"]),
        ({"action": "-"}, ["agent", "action", "customer"], ["assistant", "-", "user"]),
    ],
)
def test_roles(given, speakers, roles):
    assert Roles.from_names(given).assign_roles(speakers) == roles


@pytest.mark.parametrize(
    ("given", "speakers"),
    [({}, ["a", "b", "c"]), ({}, ["Agent", "Operator"]), ({}, ["Ada"]), ({"x": "user"}, ["Agent", "Operator", "x"])],
)
def test_who_has_no_role_is_told_without_the_name(given, speakers):
    with pytest.raises(DataError, match=r"speaker \d of \d has no role") as caught:
        Roles.from_names(given).assign_roles(speakers)
    assert "Operator" not in str(caught.value)


def test_no_such_role():
    with pytest.raises(UnknownNameError, match="asistant"):
        Roles.from_names({"agent": "asistant"})


# Prompts


def test_prompts_and_completions_share_their_people(tmp_path, untagged):
    row = {"text": CALL, "summary": "Elva Tamsin spoke with Mr. Quorby.", "topic": "names"}
    task = Task("summary", "About {topic}:", "{summary} ", input="{text}\n--")
    export_path(write(tmp_path / "a.jsonl", [row]), tmp_path / "out", Prompts((task,)), untagged, split=Split((1.0,)))
    (example,) = read(tmp_path / "out")["train"]
    assert set(example) == {"prompt", "completion"}
    assert example["prompt"].startswith("About names:\n\nAgent: This is Mr. [PERSON_1].\nCustomer:")
    assert example["prompt"].endswith("\n--\n\n")
    assert example["completion"] == "[PERSON_2] spoke with Mr. [PERSON_1]. "


def test_the_shape_with_instructions(tmp_path, untagged, source):
    export_path(source, tmp_path / "out", Prompts(SUMMARY.tasks, instruction=True), untagged)
    example = read(tmp_path / "out")["train"][0]
    assert set(example) == {"instruction", "input", "output"}
    assert (example["instruction"], example["output"]) == ("Summarise.", "The customer gave [EMAIL_ADDRESS_1].")


def test_next_turns(tmp_path, untagged):
    path = write(tmp_path / "a.jsonl", [{"text": CALL + "\nAgent: Bye, Elva Tamsin."}])
    export_path(path, tmp_path / "out", Prompts(prompt="Answer.", history=2), untagged, split=Split((1.0,)))
    first, second = read(tmp_path / "out")["train"]
    asked = "Answer.\n\nAgent: This is Mr. [PERSON_1].\nCustomer: My name is [PERSON_2].\n\n"
    assert first == {"prompt": asked, "completion": "Thanks, [PERSON_2]."}
    assert second["prompt"] == "Answer.\n\nAgent: Thanks, [PERSON_2].\nCustomer: Bye.\n\n"


def test_tasks_of_a_file(tmp_path, untagged, source):
    tasks = tmp_path / "tasks.toml"
    tasks.write_text(
        '[[task]]\nname = "summary"\nprompt = "Summarise."\ncompletion = "{summary}"\n'
        '[[task]]\nname = "caller"\nprompt = "Who?"\ncompletion = "{caller}"\ninput = "{summary}"\n'
    )
    made = export_path(source, tmp_path / "out", Prompts(read_tasks(tasks)), untagged)
    assert made.counts["examples"] == {"caller": 40, "summary": 40}


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("x = 1", UsageError, "task"),
        ("[[task]]\nname = 'a'\nprompt = 'b'", UsageError, "completion is required"),
        ("[[task]]\nname = 'a'\nprompt = 'b'\ncompletion = '{c}'\nimput = 'd'", UnknownNameError, "imput"),
        ("[[task]]\nname = 'a'\nprompt = 'b'\ncompletion = 'c'", UsageError, "a field is required"),
        ("[[task]]\nname = 1\nprompt = 'b'\ncompletion = '{c}'", UsageError, "must be a string"),
        ("[[", UsageError, "not valid TOML"),
    ],
)
def test_wrong_tasks_are_told(tmp_path, text, error, match):
    path = tmp_path / "tasks.toml"
    path.write_text(text)
    with pytest.raises(error, match=match):
        read_tasks(path)


# Splits

UNITS = st.lists(st.text(max_size=8), max_size=30)


@given(UNITS, st.integers(0, 9))
def test_a_split_depends_on_the_document_alone(units, seed):
    split = Split((0.6, 0.2, 0.2), seed)
    assert [split.choose_split(unit) for unit in units] == [
        Split((0.6, 0.2, 0.2), seed).choose_split(unit) for unit in units
    ]


def test_shares_are_about_those_asked_for_and_a_key_draws_otherwise():
    names = [f"call {i}" for i in range(5000)]
    drawn = [Split().choose_split(name) for name in names]
    for name, share in (("train", 0.8), ("validation", 0.1), ("test", 0.1)):
        assert abs(drawn.count(name) / len(names) - share) < 0.02  # four standard deviations and more
    for other in (Split(seed=1), Split(key=b"a key only for the tests, 32 byte")):
        assert 0.5 < sum(a == other.choose_split(n) for a, n in zip(drawn, names, strict=True)) / len(names) < 0.8
    assert "tests" not in repr(Split(key=b"a key only for the tests, 32 byte"))


@pytest.mark.parametrize("text", ["0.8,0.1", "1,1", "a", "", "-1,2", "0.25,0.25,0.25,0.25", "nan,1"])
def test_wrong_shares_are_told(text):
    with pytest.raises(UsageError, match="split"):
        Split.parse(text)


@settings(max_examples=12)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), min_size=1, max_size=25))
def test_no_caller_and_no_text_is_in_two_splits(rows):
    """The files, not the function, tell: by a marker that no policy replaces."""
    import tempfile

    from allonym.policy import Policy

    policy = Policy.load("default").with_(detectors=("rules",))
    with tempfile.TemporaryDirectory() as folder:
        path = write(
            Path(folder, "in.jsonl"),
            ({"caller": f"c{c}", "text": f"Agent: a\nCustomer: text-{t} of-{c}\nAgent: b"} for c, t in rows),
        )
        for group, mark in (("caller", "of-"), ("", "text-")):
            out = Path(folder, f"out{group}")
            export_path(path, out, Chat(), policy, split=Split((0.4, 0.3, 0.3)), group=group)
            where: dict[str, set[str]] = {}
            for name, examples in read(out).items():
                for example in examples:
                    said = example["messages"][1]["content"]
                    unit = said.partition(mark)[2] if group else said
                    where.setdefault(unit, set()).add(name)
            assert all(len(names) == 1 for names in where.values())
            assert sum(map(len, read(out).values())) == len(rows)


def test_order_and_other_documents_move_nobody(tmp_path, untagged):
    rows = list(calls(30))
    export_path(write(tmp_path / "a.jsonl", rows), tmp_path / "a", SUMMARY, untagged)
    export_path(write(tmp_path / "b.jsonl", [*rows[::-1], *list(calls(60))[30:]]), tmp_path / "b", SUMMARY, untagged)
    a, b = read(tmp_path / "a"), read(tmp_path / "b")
    for name, examples in a.items():
        assert all(example in b[name] for example in examples)


def test_texts_that_become_the_same_are_in_one_split(tmp_path, untagged):
    names = [f"Mr. {given} Quorby" for given in ("Ada", "Elva", "Odell", "Rosa", "Zaphra", "Gideon", "Nell", "Ivo")]
    rows = [
        {"id": i, "text": f"Agent: This is {name}.\nCustomer: Hi.{' ' * i}\nAgent: Bye.", "note": f"By {name}"}
        for i, name in enumerate(names)
    ]
    path = write(tmp_path / "calls.jsonl", rows)
    for shape in (Chat(), Prompts((Task("note", "", "{note}"),))):
        folder = tmp_path / shape.name
        made = export_path(path, folder, shape, untagged, split=Split((0.4, 0.3, 0.3)))
        assert [(f["documents"], f["units"]) for f in made.files.values()] == [(len(names), 1)]


def test_the_source_and_other_files_in_the_target_are_kept(tmp_path, untagged):
    path = write(tmp_path / "validation.jsonl", calls(3))
    before = path.read_bytes()
    with pytest.raises(UsageError, match="never changed"):
        export_path(path, tmp_path, Chat(), untagged, split=Split((1.0,)), overwrite=True)
    assert path.read_bytes() == before
    out = tmp_path / "out"
    out.mkdir()
    (out / "test.jsonl").write_text("of a set before\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"test\.jsonl exists"):
        export_path(path, out, Chat(), untagged, split=Split((1.0,)))
    assert [one.name for one in out.iterdir()] == ["test.jsonl"]


def test_a_manifest_never_stands_beside_files_of_another_set(tmp_path, untagged, source, monkeypatch):
    out = tmp_path / "out"
    export_path(source, out, Chat(), untagged)

    def fails(self: PartFile) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(PartFile, "finish", fails)
    with pytest.raises(OSError, match="no space"):
        export_path(source, out, SUMMARY, untagged, overwrite=True)
    assert not (out / "manifest.json").exists()
    assert not list(out.glob(".*"))


def test_a_document_without_text_makes_no_example(tmp_path, untagged):
    rows = [{"id": "a", "text": " ", "summary": "Nothing."}, {"id": "b", "text": "Hi.", "summary": "A greeting."}]
    made = export_path(write(tmp_path / "a.jsonl", rows), tmp_path / "out", SUMMARY, untagged, split=Split((1.0,)))
    assert made.counts["documents"] == 1
    assert read(tmp_path / "out")["quarantine"] == [{"id": "a", "reason": "nothing is left in the field 'text'"}]


def test_fields_of_the_next_turns_prompt_are_refused():
    with pytest.raises(UsageError, match="no field"):
        Prompts((), prompt="Answer about {topic}:")


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(tmp_path, source):
    for workers in (1, 2):
        export_path(source, tmp_path / str(workers), SUMMARY, "sanitize", workers=workers)
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes()


# What is left out, and what is never written


def test_documents_that_make_no_example_are_listed_and_left_out(tmp_path, untagged):
    rows = [
        *calls(3),
        {"id": "x", "text": "Agent: a\nCustomer: b\nAgent: c"},
        {"id": "y", "caller": "1", "text": "No turns."},
    ]
    path = write(tmp_path / "a.jsonl", rows)
    made = export_path(path, tmp_path / "chat", Chat(), untagged, group="caller")
    left = [(row["id"], row["reason"]) for row in read(tmp_path / "chat")["quarantine"]]
    assert [id for id, _ in left] == ["x", "y"]
    assert "caller" in left[0][1] and "no turns" in left[1][1]
    assert (made.exit_code, made.counts["left_out"], sum(made.left_out.values())) == (1, 2, 2)
    made = export_path(path, tmp_path / "sft", SUMMARY, untagged)
    assert [row["id"] for row in read(tmp_path / "sft")["quarantine"]] == ["x", "y"]


def test_nothing_is_written_where_anything_is_wrong(tmp_path, untagged, source):
    out = tmp_path / "out"
    with pytest.raises(DataError, match="no document makes an example"):
        export_path(source, out, Prompts((Task("a", "b", "{nosuch}"),)), untagged)
    assert not [p for p in out.iterdir() if p.name != "quarantine.jsonl"]
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(source.read_bytes() + b"{")
    with pytest.raises(DataError):
        export_path(broken, tmp_path / "two", SUMMARY, untagged)
    assert list((tmp_path / "two").iterdir()) == []
    export_path(source, tmp_path / "three", SUMMARY, untagged)
    before = {p: p.read_bytes() for p in (tmp_path / "three").iterdir()}
    with pytest.raises(UsageError, match="exists"):
        export_path(source, tmp_path / "three", Chat(), untagged)
    with pytest.raises(DataError):
        export_path(broken, tmp_path / "three", SUMMARY, untagged, overwrite=True)
    assert {p: p.read_bytes() for p in (tmp_path / "three").iterdir()} == before
    with pytest.raises(UsageError, match="never changed"):
        export_path(tmp_path, tmp_path / "three" / "in", SUMMARY, untagged)


def test_overwriting_leaves_no_file_of_the_set_before(tmp_path, untagged, source):
    export_path(source, tmp_path / "out", SUMMARY, untagged)
    assert set(read(tmp_path / "out")) == {"train", "validation", "test"}
    export_path(source, tmp_path / "out", SUMMARY, untagged, split=Split((1.0, 0.0)), overwrite=True)
    assert set(read(tmp_path / "out")) == {"train"}


def test_the_manifest_tells_what_the_files_are(tmp_path, untagged, source):
    from hashlib import blake2b

    export_path(source, tmp_path / "out", Chat(system="Mail a@example.com"), untagged, group="caller")
    told = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert told["policy"]["fingerprint"] == untagged.fingerprint()
    assert told["split"] == {"shares": [0.8, 0.1, 0.1], "seed": 0, "keyed": False, "by": "caller"}
    assert told["labels"] == {"EMAIL_ADDRESS": 40}
    assert told["prompts"]["findings"] == 1
    assert sum(f["units"] for f in told["files"].values()) == 14
    assert sum(f["documents"] for f in told["files"].values()) == told["counts"]["documents"] == 40
    for name, facts in told["files"].items():
        data = (tmp_path / "out" / name).read_bytes()
        assert facts["blake2b"] == blake2b(data, digest_size=32).hexdigest()
        assert facts["bytes"] == len(data)


def test_the_risk_is_measured_on_a_sample_of_both_versions(tmp_path, untagged, source):
    seen = []

    def risk(before, after):
        seen.append((before, after))
        return {"mean": 1}

    made = export_path(source, tmp_path / "out", SUMMARY, untagged, risk=risk, sample=7)
    ((before, after),) = seen
    assert len(before) == len(after) == 7
    assert all("@example.com" in a and "[EMAIL_ADDRESS_1]" in b for a, b in zip(before, after, strict=True))
    assert made.risk == {"documents": 7, "mean": 1}


MARKER = "Zaphrandel"


def test_a_marker_is_in_no_file_and_no_message(tmp_path, untagged, caplog):
    caplog.set_level(logging.DEBUG)
    rows = [
        {"id": "1", "text": f"Agent: I am Mr. {MARKER} Quorby.\n{MARKER} Tamsin: Hi.\nAgent: Bye.", "summary": "x"},
        {"id": "2", "text": f"Agent: Hi\n{MARKER}: ok\n{MARKER} two: ok\nAgent: y", "summary": "x"},
        {"id": "3", "text": f"{MARKER}", "summary": f"Mr. {MARKER} Quorby"},
    ]
    path = write(tmp_path / "in.jsonl", rows)
    told = ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, shape in (("chat", Chat()), ("next", Prompts())):
            made = export_path(path, tmp_path / name, shape, untagged, risk=lambda *_: {}, sample=9)
            told += repr(made) + json.dumps(made.to_dict())
            for file in (tmp_path / name).iterdir():
                told += file.read_text()
        for shape in (Prompts((Task("a", "b", "{nosuch}"),)), Chat(Roles.from_names({"x": "user"}))):
            with pytest.raises(AllonymError) as error:
                export_path(write(tmp_path / "one.jsonl", rows[2:]), tmp_path / "no", shape, untagged)
            told += str(error.value)
    assert told.count("has no role") >= 2
    assert MARKER.lower() not in told.lower()
    assert MARKER.lower() not in caplog.text.lower()
    assert not [w for w in caught if MARKER in str(w.message)]


# With a vault, and anonymised before


def test_with_a_vault_the_originals_have_digests(tmp_path, untagged, source):
    with Vault.create(tmp_path / "v", SECRET) as vault:
        made = export_path(source, tmp_path / "out", SUMMARY, untagged, vault=vault, scope="calls")
        assert made.policy["vault"] and made.policy["keyed"]
        assert len(vault.digests("calls")) == 40
        assert vault.digests().named("person7 example com")


def test_what_was_anonymised_before_is_taken_as_it_is_if_its_report_fits(tmp_path, untagged, source):
    safe, report = tmp_path / "safe.jsonl", tmp_path / "report.json"
    anonymize_path(source, safe, untagged, report=report)
    told = json.loads(report.read_text())
    made = export_path(safe, tmp_path / "out", SUMMARY, anonymised=told)
    assert made.policy["anonymised"] == "before"
    assert (made.policy["fingerprint"], made.policy["run"]) == (untagged.fingerprint(), told["digest"])
    assert read(tmp_path / "out")["train"][0]["completion"] == "The customer gave [EMAIL_ADDRESS_1]."
    with pytest.raises(DataError, match="digests differ"):
        export_path(source, tmp_path / "two", SUMMARY, anonymised=told)
    with pytest.raises(UsageError, match="report"):
        export_path(safe, tmp_path / "two", SUMMARY, anonymised={})
    assert not (tmp_path / "two").exists()


def test_a_folder_that_was_anonymised_before_is_known_again(tmp_path, untagged):
    folder = tmp_path / "in"
    (folder / "b").mkdir(parents=True)
    for name in ("a.txt", "b/c.txt", "c.txt.gz"):
        data = CALL.encode()
        if name.endswith("gz"):
            import gzip

            data = gzip.compress(data)
        (folder / name).write_bytes(data)
    anonymize_path(folder, tmp_path / "safe", untagged, report=tmp_path / "report.json")
    told = json.loads((tmp_path / "report.json").read_text())
    assert export_path(tmp_path / "safe", tmp_path / "out", Chat(), anonymised=told).counts["documents"] == 3
