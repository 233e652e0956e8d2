import json

import pytest
from tests.llm import server as at

from allonym.cli import main
from allonym.files.record import Tally

pytest.importorskip("httpx", reason="httpx is not installed")

LISTS = '[dictionary]\nCITY = ["Lisbon", "Madrid", "Vienna"]\n'


@pytest.fixture
def call(capfd):
    def run(*args):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in args])
        said = capfd.readouterr()
        assert "Traceback" not in said.err
        return ended.value.code, said.out, said.err

    return run


@pytest.fixture
def folder(tmp_path, asking):
    """A policy with a cache, a key and two texts."""
    asking('cache = "kept"', rest=LISTS)
    (tmp_path / "secret.key").write_bytes(b"a key only for the tests, 32 byte")
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "one.txt").write_text("From Lisbon to Madrid.", encoding="utf-8")
    (texts / "two.txt").write_text("Vienna in May.", encoding="utf-8")
    (texts / "three.txt").write_text("Nothing at all.", encoding="utf-8")
    return tmp_path


def options(folder):
    return ("--policy", folder / "asking.toml", "--key-file", folder / "secret.key")


def test_check(call, server, folder):
    server.then = at.answer('{"greeting": "hello"}')
    code, out, err = call("llm", "check", "--policy", folder / "asking.toml")
    assert (code, err) == (0, "")
    rows = dict(line.rsplit(None, 1) for line in out.splitlines()[1:] if "fits" not in line)
    assert {k: rows[k] for k in ("JSON mode", "prompt tokens", "completion tokens", "retries")} == {
        "JSON mode": "schema",
        "prompt tokens": "100",
        "completion tokens": "20",
        "retries": "0",
    }
    assert "fits" in out


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (at.answer("hello"), "not with the requested JSON"),
        (at.answer('{"greeting": 1}'), "not with the requested JSON"),
        (at.status(401), "HTTP 401"),
        (at.status(500), "HTTP 500"),
    ],
    ids=range(4),
)
def test_check_fails(call, server, folder, behaviour, told):
    server.then = behaviour
    code, _, err = call("llm", "check", "--policy", folder / "asking.toml")
    assert code == 1 and told in err


def test_check_without_an_endpoint(call):
    code, _, err = call("llm", "check")
    assert code == 2 and "llm.url is required" in err


def results(path, make=at.values):
    """What the batch API makes of a file of requests."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all((row["method"], row["url"]) == ("POST", "/v1/chat/completions") for row in rows)
    assert len({row["custom_id"] for row in rows}) == len(rows)
    return [
        {
            "id": f"batch_req_{i}",
            "custom_id": row["custom_id"],
            "response": {"status_code": 200, "body": json.loads(at.said(json.dumps({"entities": make(row["body"])})))},
            "error": None,
        }
        for i, row in enumerate(rows)
    ]


def dump(path, rows):
    path.write_text(
        "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8"
    )
    return path


def test_a_batch_takes_the_place_of_the_network(call, server, folder):
    requests = folder / "requests.jsonl"
    code, _, err = call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    assert (code, "2 requests for 2 of 3 documents" in err) == (0, True)
    text = requests.read_text(encoding="utf-8")
    assert not [name for name in ("Lisbon", "Madrid", "Vienna") if name in text]
    code, out, _ = call("llm", "batch", "read", dump(folder / "results.jsonl", results(requests)), *options(folder))
    assert code == 0 and out.split() == [
        "results",
        "count",
        "kept",
        "2",
        "failed",
        "0",
        "unusable",
        "0",
        "unreadable",
        "0",
    ]
    server.then = at.status(500)
    code, _, _ = call("anonymize", folder / "texts", folder / "safe", *options(folder), "--quiet")
    assert code == 0
    assert (folder / "safe" / "one.txt").read_text(encoding="utf-8") == "From Norhaven to Eldmouth."
    assert (folder / "safe" / "two.txt").read_text(encoding="utf-8") == "Norhaven in May."
    assert server.seen == []
    call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    assert requests.read_text(encoding="utf-8") == ""


def test_what_a_batch_did_not_settle_is_written_again(call, server, folder):
    requests = folder / "requests.jsonl"
    call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    some = results(requests, lambda body: dict(list(at.values(body).items())[:1]))
    call("llm", "batch", "read", dump(folder / "results.jsonl", some), *options(folder))
    _, _, err = call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    assert "1 request for 1 of 3 documents" in err
    assert "still missing" in requests.read_text(encoding="utf-8")


def test_results_that_cannot_be_used_are_counted(call, server, folder):
    requests = folder / "requests.jsonl"
    call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    first, second = results(requests)
    cut = {**second, "response": {"status_code": 200, "body": json.loads(at.said("{}", "length"))}}
    rows = [
        *({**first, "error": {"code": "expired"}}, {**first, "response": {"status_code": 400, "body": {}}}),
        *({**first, "response": None}, cut, {**first, "response": {"status_code": 200, "body": {}}}),
        *("no JSON", "[1]", {**first, "custom_id": "../../etc/passwd"}, {**first, "custom_id": None}, {"response": {}}),
    ]
    code, out, err = call("llm", "batch", "read", dump(folder / "results.jsonl", rows), *options(folder))
    assert code == 1 and "no result could be used" in err
    assert out.split() == ["results", "count", "kept", "0", "failed", "3", "unusable", "2", "unreadable", "5"]
    assert not list((folder / "kept").rglob("*.bin")) if (folder / "kept").exists() else True


def test_a_batch_needs_a_key_and_a_cache(call, server, folder, asking):
    code, _, err = call(
        "llm", "batch", "write", folder / "texts", folder / "out.jsonl", "--policy", folder / "asking.toml"
    )
    assert code == 2 and "needs a key" in err
    asking(rest=LISTS)
    code, _, err = call("llm", "batch", "write", folder / "texts", folder / "out.jsonl", *options(folder))
    assert code == 2 and "llm.cache, the folder for answers, is required" in err
    assert not (folder / "out.jsonl").exists() and server.seen == []


def test_a_detector_in_a_batch(call, server, folder, asking):
    asking('cache = "kept"', detectors='["llm"]')
    requests = folder / "requests.jsonl"
    _, _, err = call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    assert "3 requests for 3 of 3 documents" in err

    def listed(body):
        names = [n for n in ("Lisbon", "Madrid", "Vienna") if n in body["messages"][-1]["content"]]
        return [{"text": n, "label": "CITY"} for n in names]

    call("llm", "batch", "read", dump(folder / "results.jsonl", results(requests, listed)), *options(folder))
    _, _, err = call("llm", "batch", "write", folder / "texts", requests, *options(folder))
    assert "2 requests for 2 of 3 documents" in err
    assert "Lisbon" not in requests.read_text(encoding="utf-8")
    assert server.seen == []


def test_many_processes_share_the_endpoint_and_its_answers(call, server, folder):
    for workers in (2, 1):
        target = folder / f"safe{workers}"
        code, _, err = call("anonymize", folder / "texts", target, *options(folder), "--quiet", "--workers", workers)
        assert (code, err) == (0, "")
        assert (target / "one.txt").read_text(encoding="utf-8") == "From Norhaven to Eldmouth."
    assert len(server.seen) == 2


def test_a_run_tells_how_many_values_are_not_the_models(call, server, folder):
    server.then = at.status(401)
    report = folder / "run.json"
    run = ("anonymize", folder / "texts", folder / "safe", *options(folder), "--report", report)
    code, _, err = call(*run)
    assert code == 0
    assert "model: 3 values came from the offline pseudonyms" in err
    assert json.loads(report.read_text())["offline"] == 3
    assert not [w for w in ("Lisbon", "Madrid", "Vienna") if w in err + report.read_text()]
    server.then = at.well
    _, _, err = call(*run, "--overwrite")
    assert "offline" not in err


def test_two_processes_count_together(call, server, folder):
    server.then = at.status(401)
    _, _, err = call("anonymize", folder / "texts", folder / "safe", *options(folder), "--workers", "2")
    assert "model: 3 values came from the offline pseudonyms" in err


def test_the_count_outlives_an_interrupted_run():
    tally = Tally(documents=2, offline=3)
    tally.add(Tally.from_dict(json.loads(json.dumps(tally.to_dict()))))
    assert tally.offline == 6
    before = {name: value for name, value in tally.to_dict().items() if name != "offline"}
    assert Tally.from_dict(before).offline == 0
