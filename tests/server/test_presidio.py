"""Presidio's REST API: request and response pairs of its documentation and its tests' kind, and a client of it."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

pytest.importorskip("fastapi")

from tests.conftest import CASES

from allonym.document import merge_intervals, subtract_intervals
from allonym.errors import RequestError
from allonym.server.presidio import adhoc, operators
from allonym.server.wire.presidio import OperatorConfig, Pattern, PatternRecognizer

PAIRS = [json.loads(line) for line in (CASES / "presidio.jsonl").read_text("utf-8").splitlines()]
KEY = "an AES-128 key :)"[:16]


@pytest.fixture(scope="module")
def program(site: Any) -> Any:
    """A client with a reviewer's API key."""
    return site.program("reviewer")


def _like(got: Any, wanted: dict[str, Any]) -> bool:
    return {name: got.get(name) for name in wanted} == pytest.approx(wanted)


@check_each_row("case", PAIRS)
def test_pairs(program: Any, case: dict[str, Any]) -> None:
    answer = program.request(case["method"], case["path"], json=case["body"])
    got = answer.json()
    assert answer.status_code == case["status"], got
    if "equal" in case:
        assert got == case["equal"]
    if "error" in case:
        assert list(got) == ["error"] and case["error"] in got["error"]
    if "includes" in case:
        assert set(case["includes"]) <= set(got) and len(set(got)) == len(got)
    if "contains" in case:
        assert all(any(_like(one, wanted) for one in got) for wanted in case["contains"])
    pairs = [(case["exactly"], got)] if "exactly" in case else zip(case.get("batch", ()), got, strict="batch" in case)
    for wanted, found in pairs if "exactly" in case or "batch" in case else ():
        assert len(found) == len(wanted) and all(map(_like, found, wanted)), found


def test_explanations(program: Any) -> None:
    text = "Ada Brook's SSN is 536-90-4399, code 777"
    recognizer = {"name": "Code", "supported_entity": "CODE", "context": ["code"]}
    recognizer |= {"patterns": [{"name": "digits", "regex": "7+", "score": 0.5}]}
    body = {"text": text, "language": "en", "return_decision_process": True, "ad_hoc_recognizers": [recognizer]}
    found = {one["entity_type"]: one["analysis_explanation"] for one in program.post("/analyze", json=body).json()}
    assert found["PERSON"]["recognizer"] == "tagger" and found["PERSON"]["pattern"] is None
    ssn = found["US_SSN"]
    assert ssn["recognizer"].startswith("rules:") and ssn["pattern_name"].startswith("us-ssn") and ssn["pattern"]
    assert ssn["score"] == pytest.approx(ssn["original_score"] + ssn["score_context_improvement"])
    assert found["CODE"] | {"textual_explanation": None} == {
        "recognizer": "Code",
        "pattern_name": "digits",
        "pattern": "7+",
        "original_score": 0.5,
        "score": 0.85,
        "textual_explanation": None,
        "score_context_improvement": 0.35,
        "supportive_context_word": "code",
        "validation_result": None,
    }


def test_what_presidio_encrypted_decrypts_here() -> None:
    # Written by Presidio's anonymizer 2.2.366: keys of 128, 192 and 256 bits over "Ada Brook, Zoë".
    for size, code in PRESIDIO_WROTE.items():
        assert operators.decrypt_text(bytes(range(65, 65 + size)), code) == "Ada Brook, Zoë"


PRESIDIO_WROTE = {
    16: "3R1CKghwy5Ahf-xoNeGmAMNne3yrDNYAVDYK60_jXfQ=",
    24: "HppKvgRztC035dEiPXKvR_N8InA5RFcWVoe3WZY3O70=",
    32: "JnWJps7KxB-ohwAGPlGfap_8mWABbubTdh0LVR1Xeds=",
}


@given(st.text(), st.sampled_from((16, 24, 32)))
def test_encrypting_there_and_back(text: str, size: int) -> None:
    key = os.urandom(size)
    code = operators.encrypt_text(key, text)
    assert operators.decrypt_text(key, code) == text
    raw = base64.urlsafe_b64decode(code)
    assert len(raw) % 16 == 0 and len(raw) >= 32
    with pytest.raises(RequestError, match="does not decrypt"):
        operators.decrypt_text(key, base64.urlsafe_b64encode(raw[:-1]).decode())


FINDINGS = st.lists(
    st.builds(
        lambda start, size, entity, score: operators.Finding(start, min(start + size, 40), entity, score),
        st.integers(0, 40),
        st.integers(0, 12),
        st.sampled_from(("A", "B", "C")),
        st.sampled_from((0.3, 0.5, 0.9)),
    ),
    max_size=6,
)


@given(FINDINGS, st.sampled_from(operators.CONFLICTS), st.sampled_from(("replace", "redact")))
def test_nothing_that_a_finding_covers_is_left(found: list[operators.Finding], conflicts: str, name: str) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(40))  # each character once
    options = {"DEFAULT": OperatorConfig(type=name)}
    made, items = operators.anonymize_text(text, found, options, conflicts)
    covered = {text[i] for one in found for i in range(one.start, one.end)}
    assert not covered & set(made)
    assert [c for c in made if ord(c) > 0x4000] == [c for c in text if c not in covered]
    assert all(made[item["start"] : item["end"]] == item["text"] for item in items)


SHOWN, HIDDEN = ("keep",), ("replace", "redact", "mask")


@given(FINDINGS, st.sampled_from(operators.CONFLICTS), st.tuples(*[st.sampled_from(SHOWN + HIDDEN)] * 3))
def test_what_a_finding_hides_no_other_shows(
    found: list[operators.Finding], conflicts: str, names: tuple[str, str, str]
) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(40))
    whole = {"masking_char": "*", "chars_to_mask": 99, "from_end": True}
    options = {entity: OperatorConfig(type=name, **whole) for entity, name in zip("ABC", names, strict=True)}
    made, items = operators.anonymize_text(text, found, options, conflicts)
    hiding = [one for one in found if options[one.entity].type in HIDDEN]
    hidden = {text[i] for one in hiding for i in range(one.start, one.end)}
    assert [c for c in made if ord(c) > 0x4000] == [c for c in text if c not in hidden]
    assert all(made[item["start"] : item["end"]] == item["text"] for item in items)


@given(FINDINGS, st.sampled_from(operators.CONFLICTS), st.booleans())
def test_no_overlap_shows_more_of_a_mask(found: list[operators.Finding], conflicts: str, from_end: bool) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(40))
    some = {"masking_char": "*", "chars_to_mask": 3, "from_end": from_end}
    chosen = {"A": OperatorConfig(type="mask", **some), "B": OperatorConfig(type="keep")}
    made, _ = operators.anonymize_text(text, found, chosen, conflicts)
    alone, _ = operators.anonymize_text(text, [one for one in found if one.entity == "A"], chosen, conflicts)
    assert {c for c in made if ord(c) > 0x4000} <= set(alone)


@given(FINDINGS)
def test_the_surer_of_two_findings_keeps_what_both_cover(found: list[operators.Finding]) -> None:
    out: list[operators.Finding] = []
    for one in sorted(operators._merge_and_drop_contained(found), key=lambda f: (-(f.score or 0.0), f.start)):
        taken = merge_intervals((o.start, o.end) for o in out)
        out += [one._replace(start=a, end=b) for a, b in subtract_intervals((one.start, one.end), taken)]
    assert operators._cut_overlaps(found) == sorted(out, key=lambda f: f.start)


def test_many_findings_are_cut(program: Any) -> None:
    rows = [{"start": 10 * i, "end": 10 * i + 12, "entity_type": f"T{i % 2}", "score": 0.5} for i in range(10_000)]
    body = {"text": "abcdefghij" * 10_001, "analyzer_results": rows, "conflict_resolution": operators.REMOVE}
    answer = program.post("/anonymize", json=body | {"anonymizers": {"DEFAULT": {"type": "redact"}}})
    assert answer.status_code == 200 and answer.json()["text"] == "cdefghij"


def test_short_findings_with_long_replacements_are_refused(program: Any) -> None:
    rows = [{"start": i, "end": i + 1, "entity_type": "PERSON", "score": 0.5} for i in range(0, 4000, 2)]
    long = {"anonymizers": {"DEFAULT": {"type": "replace", "new_value": "x" * 10_000}}}
    answer = program.post("/anonymize", json={"text": "a." * 2000, "analyzer_results": rows, **long})
    assert answer.status_code == 413 and list(answer.json()) == ["error"]
    parts = [rows[:1000], rows[1000:]]
    answer = program.post("/anonymize", json={"text": ["a." * 2000] * 2, "analyzer_results": parts, **long})
    assert answer.status_code == 413


def test_anonymizing_runs_where_a_time_out_ends_it(monkeypatch: pytest.MonkeyPatch, site: Any, program: Any) -> None:
    asked = []
    run = site.services.kernel.run

    async def told(function: Any, *args: Any) -> Any:
        asked.append(function)
        return await run(function, *args)

    monkeypatch.setattr(site.services.kernel, "run", told)
    row = {"start": 0, "end": 3, "entity_type": "PERSON", "score": 0.5}
    answer = program.post("/anonymize", json={"text": ["Ada", "Bob"], "analyzer_results": [[row], [row]]})
    assert [one["text"] for one in answer.json()] == ["<PERSON>"] * 2
    assert asked == [operators.anonymize_text] * 2


@given(FINDINGS)
def test_decrypting_undoes_encrypting_whatever_overlaps(found: list[operators.Finding]) -> None:
    text = "".join(chr(0x4E00 + i) for i in range(40))
    made, items = operators.anonymize_text(text, found, {"DEFAULT": OperatorConfig(type="encrypt", key=KEY)})
    back = [operators.Finding(item["start"], item["end"], item["entity_type"]) for item in items]
    again, _ = operators.deanonymize_text(made, back, {"DEFAULT": OperatorConfig(type="decrypt", key=KEY)})
    assert again == text


def _make_recognizer(**values: Any) -> PatternRecognizer:
    return PatternRecognizer(supported_entity="X", **values)


def test_no_pattern_takes_quadratic_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adhoc, "SECONDS", 0.2)
    greedy = _make_recognizer(patterns=[Pattern(name="p", regex="a(?:.*z)?", score=0.5)])
    with pytest.raises(RequestError, match="longer than"):
        adhoc.find_matches("a" * 300_000, [greedy])


def test_deny_lists_have_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adhoc, "SECONDS", 0.2)
    inside = _make_recognizer(deny_list=tuple("a" * n for n in range(1, 500)))
    with pytest.raises(RequestError, match="longer than"):
        adhoc.find_matches("a" * 1_000_000, [inside])


def test_recognizers_find_so_many_places_only(monkeypatch: pytest.MonkeyPatch, site: Any, program: Any) -> None:
    monkeypatch.setattr(adhoc, "MOST", 100)
    many = [_make_recognizer(name=str(i), deny_list=("-",)) for i in range(10)]
    assert len(adhoc.find_matches("- " * 10, many)) == 100
    with pytest.raises(RequestError, match="more than 100 places"):
        adhoc.find_matches("- " * 10 + "-", many)
    recognizer = {"supported_entity": "DASH", "deny_list": ["-"]}
    body = {"text": ["- " * 60] * 8, "language": "en", "ad_hoc_recognizers": [recognizer]}
    answer = program.post("/analyze", json=body)
    assert answer.status_code == 400 and "more than 100 places" in answer.json()["error"]
    assert program.post("/analyze", json=body | {"text": "- " * 60}).status_code == 200


def test_patterns_are_too_much_for_a_long_text() -> None:
    many = _make_recognizer(patterns=[Pattern(name=str(i), regex="[a-f]{1,500}x", score=0.5) for i in range(20)])
    with pytest.raises(RequestError, match="too much"):
        adhoc.find_matches("a" * 1_000_000, [many])


@given(st.text())
def test_plain_keeps_the_length(text: str) -> None:
    assert len(adhoc.approximate_in_ascii(text)) == len(text)
    assert adhoc.approximate_in_ascii(text) == text or not text.isascii()


def test_only_who_may(site: Any, anybody: Any, annotator: Any) -> None:
    body = {"text": "Ada Brook", "language": "en", "analyzer_results": []}
    for method, path in (
        ("POST", "/analyze"),
        ("POST", "/anonymize"),
        ("POST", "/deanonymize"),
        ("GET", "/recognizers"),
    ):
        answer = anybody.request(method, path, json=body)
        assert answer.status_code == 401 and isinstance(answer.json()["error"], str)
    assert annotator.post("/analyze", json=body).status_code == 200
    assert site.program("reviewer", "anonymize").post("/analyze", json=body).status_code == 403
    refused = annotator.post("/deanonymize", json=body)
    assert refused.status_code == 403 and "restore" in refused.json()["error"]
    assert anybody.get("/health").status_code == 200


def test_bodies_that_are_none(program: Any) -> None:
    headers = {"content-type": "application/json"}
    for path, status in (("/analyze", 400), ("/anonymize", 422)):
        for body in (b"{", b"[]", b"\xff\xfe", b'"text"', b"null", b'{"text": 5}'):
            answer = program.post(path, content=body, headers=headers)
            assert answer.status_code in (400, status), (path, body, answer.text)
            assert list(answer.json()) == ["error"]
    ad_hoc = b'"ad_hoc_recognizers": [{"supported_entity": "\\ud800", "deny_list": ["Ada"]}]'
    options = (
        b'"anonymizers": {"DEFAULT": {"type": "hash", "salt": "0123456789abcdef\\ud800"}, "X": {"type": "\\ud800"}}'
    )
    found = b'"analyzer_results": [{"start": 0, "end": 1, "score": 1, "entity_type": "%s"}]'
    for path, rest in (
        ("/analyze", ad_hoc),
        ("/anonymize", options + b", " + found % b"Y"),
        ("/anonymize", options + b", " + found % b"X"),
        ("/anonymize", found % b"\\ud800"),
    ):
        body = b'{"text": "\\ud800 Ada Brook", "language": "en", ' + rest + b"}"
        assert program.post(path, content=body, headers=headers).status_code in (200, 400, 422), rest


def test_deanonymizing_is_audited(site: Any, program: Any) -> None:
    before = len(site.services.accounts.list_audit_lines())
    program.post("/deanonymize", json={"text": "abc"})
    entries = site.services.accounts.list_audit_lines()
    assert len(entries) == before + 1 and entries[0].action == "deanonymize"


def test_open_where_the_setting_says_so(tmp_path: Any, make_site: Any) -> None:
    with make_site(tmp_path / "data", presidio_open=True) as site:
        body = {"text": "Ada Brook", "language": "en"}
        assert site.client().post("/analyze", json=body).status_code == 200
        assert site.client(Authorization="Bearer alk_wrong").post("/analyze", json=body).status_code == 401
        assert site.client().post("/v1/detect", json={"text": "Ada Brook"}).status_code == 401


# A client of somebody else's: LiteLLM's guardrail, which speaks to an analyzer and an anonymizer.

LITELLM = """
import asyncio, json, sys
from litellm.proxy.guardrails.guardrail_hooks.presidio import _OPTIONAL_PresidioPIIMasking as Guardrail

async def main():
    guard = Guardrail(
        presidio_analyzer_api_base=sys.argv[1], presidio_anonymizer_api_base=sys.argv[1],
        guardrail_name="tests", pii_entities_config={"PERSON": "MASK", "EMAIL_ADDRESS": "MASK"},
    )
    out = await guard.check_pii(
        text=sys.argv[2], output_parse_pii=False, presidio_config=None, request_data={}
    )
    blocking = Guardrail(
        presidio_analyzer_api_base=sys.argv[1], presidio_anonymizer_api_base=sys.argv[1],
        guardrail_name="tests", pii_entities_config={"PERSON": "BLOCK"},
    )
    try:
        await blocking.check_pii(text=sys.argv[2], output_parse_pii=False, presidio_config=None, request_data={})
        blocked = ""
    except Exception as error:
        blocked = type(error).__name__
    for one in (guard, blocking):
        await one._close_http_session()
    print("RESULT " + json.dumps([out, blocked]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def with_litellm() -> str:
    """A Python with litellm: this one, or the one that ``ALLONYM_TEST_LITELLM`` names."""
    python = os.environ.get("ALLONYM_TEST_LITELLM", sys.executable)
    found = subprocess.run([python, "-c", "import litellm.proxy"], capture_output=True, timeout=120, env=_quiet())
    if found.returncode:
        pytest.skip("litellm is not installed here, and ALLONYM_TEST_LITELLM names no Python that has it")
    return python


def _quiet() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", ""),
        "HOME": os.environ.get("HOME", ""),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def test_litellm(tmp_path: Any, make_site: Any, with_litellm: str) -> None:
    import uvicorn

    with make_site(tmp_path / "data", presidio_open=True) as site, socket.create_server(("127.0.0.1", 0)) as place:
        config = uvicorn.Config(site.app, lifespan="off", log_config=None)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]})
        thread.start()
        try:
            url = f"http://127.0.0.1:{place.getsockname()[1]}"
            text = "Ada Brook lives here. Write to ada@example.com."
            done = subprocess.run(
                [with_litellm, "-c", LITELLM, url, text], capture_output=True, text=True, timeout=120, env=_quiet()
            )
        finally:
            server.should_exit = True
            thread.join()
        line = next((row for row in done.stdout.splitlines() if row.startswith("RESULT ")), None)
        assert line is not None, done.stderr[-2000:]
        out, blocked = json.loads(line.removeprefix("RESULT "))
        assert out == "<PERSON> lives here. Write to <EMAIL_ADDRESS>."
        assert blocked == "BlockedPiiEntityError"
