"""What holds for the package as a whole: its shape, its public names, its silence, its determinism."""

from __future__ import annotations

import ast
import doctest
import inspect
import logging
import os
import pickle
import re
import socket
import subprocess
import sys
import traceback
import warnings
from importlib import import_module

import pytest
from tests.rows import check_each_row
from tests.test_layers import FILES, ROOT, SRC, module_of, parse_files, part_of

import allonym
from allonym import registry
from allonym.batch import Failure, run_records
from allonym.labels import TAXONOMY
from allonym.policy import Policy, TermList, presets

KEY = b"a key only for the tests, 32 byte"

MIXED = """Dr. Ada Brook (ada.brook@example.com, 212-555-0142) met Cyd Dale of Quill & Daughters Ltd. on 3 May 2019.
My name is Eve Farrow, I am 41 years old and live at 12 Elm Street, Springfield, IL 62704. SSN 536-22-1234.
Card 4111 1111 1111 1111, IBAN DE89 3704 0044 0532 0130 00, from 192.0.2.7, see https://example.org/eve?x=1.
Mr. Brook's badge is M-A-R-K, call four one five five five five zero one nine nine. Ciao \u00e9\u00e8 \U0001f600.
"""
META = {
    "company": ["Quill & Daughters", "Quill"],
    "ticker": ["QLD"],
    "executives": ["Ada Brook", "Cyd Dale"],
}


# Shape of the source


@check_each_row("path", FILES)
def test_a_file_is_small_enough(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 600


WITH_EXAMPLES = [path for path in FILES if ">>> " in path.read_text(encoding="utf-8")]


@check_each_row("path", WITH_EXAMPLES)
def test_examples_in_docstrings_are_true(path):
    assert doctest.testmod(import_module(module_of(path))).failed == 0


def test_no_module_has_a_name_that_says_nothing():
    banned = {"utils", "util", "helpers", "helper", "common", "manager", "engine", "provider", "factory", "misc"}
    assert not [str(p) for p in FILES if set(p.relative_to(SRC).with_suffix("").parts) & banned]


def test_only_the_command_line_prints():
    wrong = []
    for path, tree in parse_files().items():
        if part_of(module_of(path)) == "cli":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                wrong.append(f"{path.name}:{node.lineno}")
    assert not wrong


def test_nothing_catches_everything_without_saying_why():
    wrong = []
    for path, tree in parse_files().items():
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                names = {n.id for n in ast.walk(node.type) if isinstance(n, ast.Name)} if node.type else {"bare"}
                again = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
                if names & {"bare", "Exception", "BaseException"} and "#" not in lines[node.lineno - 1] and not again:
                    wrong.append(f"{path.relative_to(SRC)}:{node.lineno}")
    assert not wrong


def test_nothing_is_left_for_later():
    words = re.compile(r"\bTODO\b|\bFIXME\b|\bXXX\b|raise NotImplemented")
    assert not [str(p.relative_to(SRC)) for p in FILES if words.search(p.read_text(encoding="utf-8"))]


def test_patterns_that_users_can_reach_run_on_re2():
    """``re`` may be used for fixed patterns; compiling a pattern that is not a literal is left to RE2."""
    wrong = []
    for path, tree in parse_files().items():
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in ("compile", "search", "match", "fullmatch", "finditer", "sub")
                and node.args
                and any(isinstance(n, ast.Attribute) and n.attr == "pattern" for n in ast.walk(node.args[0]))
            ):
                wrong.append(f"{path.relative_to(SRC)}:{node.lineno}")
    assert not wrong


# Public names


def test_public_names():
    assert allonym.__all__ == sorted(allonym.__all__, key=lambda n: (n[0].islower(), n.startswith("_"), n)) or (
        sorted(allonym.__all__) == sorted(set(allonym.__all__))
    )
    assert len(allonym.__all__) <= 25
    for name in allonym.__all__:
        assert hasattr(allonym, name), name
    assert set(dir(allonym)) == set(allonym.__all__)


def test_every_public_name_is_explained():
    for name in allonym.__all__:
        value = getattr(allonym, name)
        if name == "__version__":
            continue
        assert inspect.getdoc(value), name
        if inspect.isclass(value):
            own = [
                m
                for m, v in vars(value).items()
                if not m.startswith("_") and (callable(v) or isinstance(v, classmethod))
            ]
            assert not [m for m in own if not inspect.getdoc(getattr(value, m))], name


def test_the_reference_lists_every_public_name_and_no_other():
    text = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## `(\w+)", text, re.MULTILINE)) == set(allonym.__all__)


def test_no_public_function_has_the_name_of_a_submodule():
    """``import allonym.evaluate.NAME as n`` would give the function."""
    clashes = []
    for folder in (path.parent for path in FILES if path.name == "__init__.py"):
        package = import_module(".".join(("allonym", *folder.relative_to(SRC).parts)))
        submodules = {
            path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
        }
        public = submodules & set(getattr(package, "__all__", ()))
        clashes += [f"{package.__name__}.{name}" for name in sorted(public) if callable(getattr(package, name))]
    assert clashes == []


NEVER = "torch spacy transformers flair gliner presidio_analyzer mitie optuna sklearn matplotlib onnx pandas sqlalchemy httpx fastapi uvicorn"


def test_importing_the_package_is_cheap():
    heavy = f"pyarrow lxml phonenumbers stdnum cryptography rich click numpy onnxruntime docx openpyxl {NEVER}"
    code = (
        "import sys, allonym; from allonym import Document, Span;"
        f"print(' '.join(m for m in {heavy.split()!r} if m in sys.modules))"
    )
    assert run_python(code).strip() == ""


@pytest.mark.parametrize(
    ("detectors", "heavy"),
    [
        (("rules", "spoken", "lexicon", "speakers"), f"numpy onnxruntime pyarrow lxml rich docx openpyxl {NEVER}"),
        (("rules", "spoken", "lexicon", "speakers", "tagger"), f"pyarrow lxml rich docx openpyxl {NEVER}"),
    ],
    ids=["without-tagger", "with-tagger"],
)
def test_the_first_result_needs_no_heavy_package(detectors, heavy):
    code = (
        f"import sys, allonym; policy = allonym.Policy.load('default').with_(detectors={detectors!r});"
        "assert 'Mail' in allonym.anonymize('Mail a.b@example.com', policy).text or 'tagger' in policy.detectors;"
        f"assert ('onnxruntime' in sys.modules) == ('tagger' in policy.detectors);"
        f"print(' '.join(m for m in {heavy.split()!r} if m in sys.modules))"
    )
    assert run_python(code).strip() == ""


# Silence: a marker planted in the input never shows


MARKER = "Zaphrandel"
MARKED = [
    f"My name is {MARKER} Quorby. Mail {MARKER}@example.com or call 212-555-0142, SSN 536-22-1234.",
    f"{MARKER}\ud800 \u202e{MARKER} a@b.c",
    f"Mr. {MARKER} <EMAIL_ADDRESS 1> [PERSON_1] {MARKER}" * 50,
]


def shown(value: object) -> str:
    pieces = [repr(value), str(value), f"{value}"]
    if isinstance(value, (tuple, list)):
        pieces += [shown(v) for v in value]
    return "\n".join(pieces)


@pytest.mark.parametrize("name", presets())
@pytest.mark.parametrize("text", MARKED, ids=range(len(MARKED)))
def test_a_marker_shows_in_no_repr_log_or_warning(name, text, caplog):
    caplog.set_level(logging.DEBUG)
    document = allonym.Document.conversation("doc", [(MARKER, text), (None, text)], {"executives": [MARKER]})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy = Policy.load(name).with_(dictionary=(TermList("PERSON", (MARKER,)),))
        made = allonym.anonymize(document, policy, key=KEY)
        objects = [
            *(document, made, made.plan, made.report, policy),
            *(allonym.detect(document, policy), allonym.explain(document, policy)),
            allonym.restore(made.text, plan=made.plan),
            *run_records([document], policy, KEY),
        ]
    for value in objects:
        assert MARKER not in shown(value), type(value)
    assert MARKER.lower() not in str(dict(made.report)).lower()
    assert MARKER.lower() not in "".join(made.plan.notes).lower()
    assert MARKER.lower() not in caplog.text.lower()
    assert not [w for w in caught if MARKER.lower() in str(w.message).lower()]


def test_plans_that_are_written_hold_originals_only_when_asked():
    made = allonym.anonymize(MARKED[0], Policy.load("default").with_(dictionary=(TermList("PERSON", (MARKER,)),)))
    assert MARKER not in made.plan.to_json()
    assert MARKER in made.plan.to_json(originals=True)


def test_a_marker_shows_in_no_exception():
    made = allonym.anonymize(MARKED[0])
    encrypting = Policy.load("default").with_(
        rules={"EMAIL_ADDRESS": allonym.policy.Rule("encrypt")} if hasattr(allonym, "policy") else {}
    )
    plan = made.plan.to_dict(originals=True)
    calls = [
        lambda: allonym.anonymize(MARKED[0].encode()),
        lambda: allonym.anonymize(None),
        lambda: allonym.anonymize([MARKED[0]]),
        lambda: allonym.anonymize(MARKED[0], "nosuch"),
        lambda: allonym.anonymize(MARKED[0], encrypting, key="short"),
        lambda: allonym.anonymize(MARKED[0], vault={}),
        lambda: allonym.restore(MARKED[0]),
        lambda: allonym.restore(MARKED[0] + " [EMAIL_ADDRESS_1]", plan=allonym.Plan.from_dict(made.plan.to_dict())),
        lambda: allonym.Plan.from_dict({**plan, "edits": [{**plan["edits"][0], "start": MARKER}]}),
        lambda: allonym.Plan.from_dict({**plan, "edits": [{"replacement": MARKER}]}),
        lambda: allonym.Plan.from_dict({**plan, "schema": 99}),
        lambda: __import__("allonym.plan").plan.apply(MARKED[1], made.plan),
        lambda: allonym.Document("x", MARKED[0].encode()),
        lambda: allonym.Document.from_parts("x", [MARKED[0]], separators=["", ""]),
        lambda: allonym.to_scheme("NOSUCH", "presidio"),
    ]
    raised = 0
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                call()
            except Exception as error:
                raised += 1
                told = "".join(traceback.format_exception_only(error))
                chain: BaseException | None = error
                while chain is not None:
                    told += repr(chain)
                    chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)
                assert MARKER not in told, told.replace(MARKER, "<marker>")
    assert raised >= 10


def test_secrets_show_in_no_exception():
    for key in (b"Zaphrandel", "Zaphrandel", b""):
        policy = Policy.load("default").with_(default=Policy.load("default").default.__class__("encrypt"))
        with pytest.raises(allonym.UsageError) as caught:
            allonym.anonymize("Mail a@example.com", policy.with_(rules={}), key=key)
        assert MARKER not in str(caught.value)


def test_an_operator_or_detector_that_fails_tells_nothing(monkeypatch):
    def boom(mention, setting):
        raise ValueError(f"cannot take {mention.text}")

    def build(policy):
        def detector(document):
            raise KeyError(document.text)

        return detector

    monkeypatch.setattr(registry.operators, "_table", {**registry.operators._table, "boom": boom})
    monkeypatch.setattr(registry.detectors, "_table", {**registry.detectors._table, "burst": build})
    base = Policy.load("default").with_(dictionary=(TermList("PERSON", (MARKER,)),))
    failing = base.with_(rules={}, default=base.default.__class__("boom"))
    with pytest.raises(allonym.DataError, match="boom@1 failed with ValueError") as caught:
        allonym.anonymize(MARKED[0], failing)
    assert MARKER not in "".join(traceback.format_exception_only(caught.value))
    for policy in (failing, base.with_(detectors=("burst",))):
        (result,) = run_records([allonym.Document("one", MARKED[0])], policy)
        assert isinstance(result, Failure)
        assert result.reason
        assert MARKER not in shown(result) + result.reason


BROKEN = {
    "cut.json": f'{{"text": "{MARKER}", "more": [1, "{MARKER}',
    "line.jsonl": f'{{"text": "fine"}}\n{{"text": "{MARKER}\n{{"text": "fine too"}}\n',
    "quote.csv": f'id,text\n1,"{MARKER}\n2,x,{MARKER},"y\n',
    "word.docx": f"PK\x03\x04 no archive {MARKER}",
    "sheet.xlsx": f"no archive either {MARKER}",
    "table.parquet": f"PAR1 {MARKER} PAR1",
    "latin.txt": f"caf\udce9 {MARKER}",
    "times.srt": f"1\n00:00:01 -> {MARKER}\n",
    "page.html": f"<html><body><p>{MARKER}<!-- {MARKER}",
    "odd.xyz": MARKER,
    "paper.pdf": f"%PDF-1.7\n1 0 obj\n<</Type /Catalog /Who ({MARKER})>>\nendobj\ntrailer <</Root 1 0 R>>\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_marker_in_a_broken_file_shows_nowhere(name, tmp_path, capfd):
    from allonym.cli import main

    source = tmp_path / name
    source.write_bytes(BROKEN[name].encode("utf-8", "surrogateescape"))
    policy = tmp_path / "policy.toml"
    policy.write_text(f'extends = "default"\n[dictionary]\nPERSON = ["{MARKER}"]\n', encoding="utf-8")
    target = tmp_path / "out" / name
    target.parent.mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["anonymize", str(source), str(target), "--policy", str(policy)])
    assert ended.value.code in (0, 1, 2)
    said = capfd.readouterr()
    assert MARKER not in said.out
    assert MARKER not in said.err
    assert "Traceback" not in said.err
    assert "unexpected" not in said.err
    for path in tmp_path.rglob("*"):
        if path.is_file() and path not in (source, policy):
            assert MARKER.encode() not in path.read_bytes(), path.name
    if ended.value.code == 2:
        assert not target.exists()


# No network


@pytest.mark.parametrize("name", presets())
def test_no_socket_is_opened(name, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    class Refusing(socket.socket):
        __init__ = refuse

    monkeypatch.setattr(socket, "socket", Refusing)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    policy = Policy.load(name).with_()
    document = allonym.Document("d", MIXED, META)
    made = allonym.anonymize(document, policy, key=KEY)
    allonym.explain(document, policy)
    allonym.restore(made.text, plan=made.plan)
    assert made.plan.edits


def test_nothing_is_noted_of_what_somebody_does(tmp_path):
    """onnxruntime keeps events in the user's folders, and sends them, unless it is told not to."""
    code = "import allonym; assert allonym.detect('John Smith of Boston')"
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME"), str(tmp_path))
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    subprocess.run([sys.executable, "-c", code], env={**environment, **folders}, check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


# Determinism


SEEDED = """
import sys, warnings
warnings.simplefilter("ignore")
import allonym
text, meta = {text!r}, {meta!r}
for name in {presets!r}:
    document = allonym.Document("d", text, meta)
    made = allonym.anonymize(document, name, key={key!r})
    sys.stdout.buffer.write((name + made.text + made.plan.to_json(originals=True) + repr(made.report)).encode())
    for decision in allonym.explain(document, name):
        sys.stdout.buffer.write(repr(decision).encode())
"""


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(SRC.parent), "PYTHONIOENCODING": "utf-8", **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_hash_seed_changes_nothing():
    code = SEEDED.format(text=MIXED, meta=META, presets=presets(), key=KEY)
    first, second = (run_python(code, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == second
    assert all(name in first for name in presets())


@check_each_row("name", presets())
def test_many_at_once_is_each_by_itself(name):
    texts = [MIXED, "nothing", "", MIXED.upper(), MIXED]
    policy = Policy.load(name)
    together = [a.text for a in allonym.anonymize_many(iter(texts), policy, key=KEY)]
    assert together == [allonym.anonymize(t, policy, key=KEY).text for t in texts]
    assert together[0] == together[-1]


# Inputs are never changed


@check_each_row("name", presets())
def test_inputs_are_not_changed(name):
    meta = {key: list(value) for key, value in META.items()}
    document = allonym.Document("d", MIXED, meta)
    policy = Policy.load(name)
    before = (pickle.dumps(document), policy.fingerprint(), repr(meta))
    made = allonym.anonymize(document, policy, key=KEY)
    plan = pickle.dumps(made.plan)
    allonym.explain(document, policy)
    allonym.restore(made.text, plan=made.plan)
    assert (pickle.dumps(document), policy.fingerprint(), repr(meta)) == before
    assert pickle.dumps(made.plan) == plan


# Version and changelog


def test_version_and_changelog_agree():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\d+\.\d+\.\d+)", text, re.MULTILINE)
    assert newest
    assert newest[1] == allonym.__version__


def test_changelog_fragments_are_named_as_agreed():
    names = [p.name for p in (ROOT / "changelog.d").iterdir() if p.name != "README.md"]
    kinds = "added|changed|fixed|removed|security"
    assert not [n for n in names if not re.fullmatch(rf"(?:\d+|\+[\w-]+)\.(?:{kinds})(?:\.\d+)?\.md", n)]


def test_project_facts_agree():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert project["project"]["requires-python"] == ">=3.11"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "pip install -e '.[dev]' && pytest" in readme
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_every_operator_and_detector_that_a_preset_names_exists():
    for name in presets():
        policy = Policy.load(name)
        used = {policy.rule(label.name).operator for label in TAXONOMY} | {policy.default.operator}
        assert used <= set(registry.operators.names())
        assert set(policy.detectors) <= set(registry.detectors.names())
