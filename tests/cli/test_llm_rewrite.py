"""``allonym llm rewrite``: attack and rewriting of files, against a server of rules."""

import json

import pytest
from tests.evaluate import rule_model as rules
from tests.llm import server as at
from tests.llm.fixtures import server  # noqa: F401

from allonym.cli import main

pytest.importorskip("httpx", reason="httpx is not installed")


@pytest.fixture
def call(capfd):
    def run(*args):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in args])
        output = capfd.readouterr()
        return ended.value.code, output.out, output.err

    return run


@pytest.fixture
def corpus(tmp_path, server):  # noqa: F811
    """Originals, anonymised texts and a policy that names the server."""
    original, anonymised, profiles, subjects = rules.make_corpus(4)
    server.then = at.made(rules.play_model())
    for name, texts in (("original", original), ("safe", anonymised)):
        rows = [
            {"id": str(i), "text": text, "subject": subjects[i], "profile": profiles[i]} for i, text in enumerate(texts)
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    policy = (
        f'extends = "default"\nname = "mine"\n[llm]\nurl = "{server.url}"\nmodel = "m"\nretries = 0\ncache = "kept"\n'
    )
    (tmp_path / "mine.toml").write_text(policy, encoding="utf-8")
    (tmp_path / "secret.key").write_bytes(b"a key only for the tests, 32 byte")
    return tmp_path


def list_arguments(folder, *more):
    files = (folder / "original.jsonl", folder / "safe.jsonl", "--policy", folder / "mine.toml")
    return ("llm", "rewrite", *files, "--key-file", folder / "secret.key", "-o", folder / "hard.jsonl", *more)


def test_nothing_is_sent_without_consent(call, corpus, server):  # noqa: F811
    code, _, err = call(*list_arguments(corpus))
    assert code == 2 and "--send is required: 4 anonymised texts go to http://127.0.0.1" in err
    assert not server.seen and not (corpus / "hard.jsonl").exists()


def test_files_are_rewritten_and_restored(call, corpus, server):  # noqa: F811
    facts = [
        part
        for name in ("age", "place", "occupation", "relationship")
        for part in ("--attribute", f"{name}=profile.{name}")
    ]
    plans = corpus / "plans.jsonl"
    more = ("--subject", "subject", *facts, "--plans", plans, "--originals", "--json", corpus / "rounds.json")
    code, out, err = call(*list_arguments(corpus, "--send", *more))
    assert code == 0, err
    assert "4 anonymised texts go to http://127.0.0.1" in err and "originals and metadata stay here" in err
    assert "75.0 % -> 0.0 %" in out and "persons" in out
    hard = [json.loads(line) for line in (corpus / "hard.jsonl").read_text(encoding="utf-8").splitlines()]
    assert hard[0]["text"] == (
        "I met [PERSON 1] at the market. At some age I am still a person, and I cycle to a town every week."
    )
    assert hard[0]["profile"]["age"] == "27"
    numbers = json.loads((corpus / "rounds.json").read_text(encoding="utf-8"))["rewriting"]
    assert numbers["curve"] == [0.75, 0] and numbers["unread"] == 0
    assert "Ghent" not in json.dumps(numbers)
    seen = len(server.seen)
    back = ("--plans", plans, "--field", "text", "-o", corpus / "back.jsonl")
    assert call("restore", corpus / "hard.jsonl", *back)[0] == 0
    back = [json.loads(line)["text"] for line in (corpus / "back.jsonl").read_text(encoding="utf-8").splitlines()]
    safe = [json.loads(line)["text"] for line in (corpus / "safe.jsonl").read_text(encoding="utf-8").splitlines()]
    assert back == safe
    server.then = at.status(500)
    code, _, err = call(*list_arguments(corpus, "--send", *more, "--overwrite"))  # from the cache
    assert code == 0 and len(server.seen) == seen, err


def test_an_endpoint_that_fails_leaves_no_output(call, corpus, server):  # noqa: F811
    server.then = at.status(500)
    code, out, err = call(*list_arguments(corpus, "--send"))
    assert code == 1 and "HTTP 500" in err
    assert "Ghent" not in out + err
    assert not (corpus / "hard.jsonl").exists()
