"""The routes of texts: what the library makes of a text, over HTTP."""

from __future__ import annotations

import asyncio
import re

import pytest

import allonym
from allonym.plan import Plan

pytest.importorskip("fastapi")

from allonym.server.kernel import WorkerError

TEXT = "Ada Brook lives in Leeds. Write to ada.brook@example.com, or ask Ms Brook on 3 May 2019."
POLISH = "Spotkanie zostało przeniesione na przyszły wtorek. Proszę o przesłanie dokumentów do końca tygodnia."
TURNS = [{"speaker": "Pam", "text": "Is Jim Halpert there?"}, {"speaker": None, "text": "Jim left, Pam."}]


def post(client, path, **body):
    done = client.post(f"/v1/{path}", json=body)
    assert done.status_code == 200, done.text
    return done.json()


def refused(client, path, status, code, **body):
    done = client.post(f"/v1/{path}", json=body)
    assert done.status_code == status, done.text
    assert done.json()["error"]["code"] == code
    return done.json()["error"]


def test_detect_is_what_the_library_detects(annotator):
    got = post(annotator, "detect", text=TEXT)
    assert [(s["start"], s["end"], s["label"]) for s in got["spans"]] == [
        (s.start, s.end, s.label) for s in allonym.detect(TEXT)
    ]
    assert got["counts"]["PERSON"] == 2
    people = {s["entity"] for s in got["spans"] if s["label"] == "PERSON"}
    assert len(people) == 1
    assert got["entities"][min(people) - 1] == {"entity": min(people), "label": "PERSON", "mentions": 2}
    assert got["decisions"] is None


def test_explained_decisions_are_those_of_the_library(annotator):
    got = post(annotator, "detect", text=TEXT, explain=True)["decisions"]
    assert [(d["start"], d["end"], d["outcome"]) for d in got] == [
        (d.span.start, d.span.end, d.outcome) for d in allonym.explain(TEXT)
    ]


@pytest.mark.parametrize("policy", ["default", "wild-tags", "pseudonyms", {"name": "textwash"}])
def test_anonymised_without_a_scope_is_restored_with_its_plan(reviewer, policy):
    made = post(reviewer, "anonymize", text=TEXT, policy=policy, originals=True)
    for gone in ("Ada", "Brook", "Leeds", "3 May"):
        assert not re.search(rf"\b{gone}\b", made["text"])  # the random key may draw "Adams"
    address = "https://evil.example/" + made["text"].replace(" ", "_")
    assert post(reviewer, "restore", text=address, plan=made["plan"], destination="answer")["text"] == address
    back = post(reviewer, "restore", text=made["text"], plan=made["plan"])
    assert back["text"] == TEXT
    assert back["unknown"] == 0


def test_a_plan_holds_originals_only_when_asked(annotator):
    assert "Brook" not in annotator.post("/v1/anonymize", json={"text": TEXT}).text
    assert "Brook" not in annotator.post("/v1/plans", json={"text": TEXT}).text


def test_the_same_request_gives_the_same_bytes(annotator):
    one, two = (post(annotator, "anonymize", text=TEXT, policy="pseudonyms") for _ in range(2))
    assert {**one, "milliseconds": 0} == {**two, "milliseconds": 0}


def test_a_scope_keeps_what_stands_for_what(reviewer, site):
    first = post(reviewer, "anonymize", text="Ada Brook called.", policy="pseudonyms", scope="letters")
    later = post(reviewer, "anonymize", text="Then Ada Brook left.", policy="pseudonyms", scope="letters")
    name = first["text"].removesuffix(" called.")
    assert later["text"] == f"Then {name} left."
    back = post(reviewer, "restore", text=f"A note: {name.upper()} has called.", scope="letters")
    assert back["text"] == "A note: ADA BROOK has called."
    assert back["found"][0]["rule"] != "exact"
    assert ("restore", "reviewer") in [(e.action, e.actor) for e in site.services.vault.audit()]
    assert refused(reviewer, "restore", 404, "NotFound", text=name, scope="nosuch")


def test_a_dry_run_leaves_the_vault_as_it_is(reviewer, site):
    post(reviewer, "plans", text="Eve Farrow", policy="pseudonyms", scope="dry")
    assert "dry" not in [one.name for one in site.services.vault.info().scopes]


def test_turns_are_one_conversation(annotator):
    got = post(annotator, "anonymize", turns=TURNS)
    assert got["text"] == "[PERSON_1]: Is [PERSON_2] there?\n[PERSON_2] left, [PERSON_1]."
    assert got["parts"] == ["[PERSON_1]", "Is [PERSON_2] there?", "[PERSON_2] left, [PERSON_1]."]
    assert post(annotator, "detect", turns=TURNS)["text"] == "Pam: Is Jim Halpert there?\nJim left, Pam."


def test_marked_spans_take_the_place_of_what_is_found(annotator):
    made = post(annotator, "anonymize", text=TEXT, spans=[{"start": 10, "end": 15, "label": "OCCUPATION"}])
    assert made["text"] == TEXT[:10] + "[OCCUPATION_1]" + TEXT[15:]
    assert post(annotator, "anonymize", text=TEXT, spans=[])["text"] == TEXT


@pytest.mark.parametrize(
    ("span", "status", "code"),
    [
        ({"start": 0, "end": 1000, "label": "PERSON"}, 400, "UsageError"),
        ({"start": 0, "end": 3, "label": "PERSIN"}, 400, "UnknownNameError"),
        ({"start": 3, "end": 3, "label": "PERSON"}, 422, "InvalidRequest"),
        ({"start": -1, "end": 3, "label": "PERSON"}, 422, "InvalidRequest"),
    ],
)
def test_spans_that_make_no_sense_are_refused(annotator, span, status, code):
    assert "Ada" not in str(refused(annotator, "anonymize", status, code, text=TEXT, spans=[span]))


def test_a_plan_is_carried_out_on_its_own_text_alone(annotator):
    plan = post(annotator, "plans", text=TEXT)["plan"]
    assert post(annotator, "plans/apply", text=TEXT, plan=plan)["text"] == allonym.anonymize(TEXT).text
    refused(annotator, "plans/apply", 422, "PlanMismatch", text=TEXT + "!", plan=plan)
    refused(annotator, "plans/apply", 422, "PlanMismatch", text=TEXT, plan={"edits": "no"})
    assert Plan.from_dict(plan).edits


def test_what_a_request_changes_of_a_policy(annotator):
    def made(**choice):
        return post(annotator, "anonymize", text=TEXT, policy=choice)["text"]

    assert made(off=["PERSON"]).startswith("Ada Brook lives in [CITY_1]")
    assert made(operators={"PERSON": "suppress"}).startswith("lives in [CITY_1]")
    assert "*" in made(operators={"*": "mask"})
    assert "[" not in made(operators={"*": "mask"})
    assert made(dictionary={"OCCUPATION": ["Write"]}).count("[OCCUPATION_1]") == 1
    assert made(exclude={"CITY": ["Leeds"]}).startswith("[PERSON_1] lives in Leeds")
    assert made(detectors=["rules"]).startswith("Ada Brook lives in Leeds. Write to [EMAIL_ADDRESS_1]")
    assert "ada.brook@example.com" in made(confidence=0.99)
    assert "ada.brook@example.com" not in made(confidence=0.9)


@pytest.mark.parametrize(
    ("choice", "near"),
    [
        ("defualt", "default"),
        ({"name": "default", "operators": {"PERSIN": "tag"}}, "PERSON"),
        ({"operators": {"PERSON": "tagg"}}, "tag"),
        ({"off": ["CITTY"]}, "CITY"),
        ({"detectors": ["ruls"]}, "rules"),
        ({"operators": {"PERSON": "llm"}}, "another machine"),
        ({"detectors": ["llm"]}, "another machine"),
    ],
)
def test_a_wrong_choice_is_told_with_what_is_near(annotator, choice, near):
    assert (
        near
        in refused(
            annotator,
            "anonymize",
            400,
            "UnknownNameError" if "machine" not in near else "PolicyError",
            text="x",
            policy=choice,
        )["message"]
    )


@pytest.mark.parametrize("choice", ["/etc/passwd", "../secret", "policy.toml", "https://example.com/p.toml"])
def test_a_policy_is_no_path(annotator, choice):
    refused(annotator, "detect", 400, "UnknownNameError", text="x", policy=choice)


def test_a_text_that_is_too_long_is_for_a_job(make_site, tmp_path):
    with make_site(tmp_path / "data", max_characters=50) as small:
        client = small.program("reviewer")
        for path, more in (("detect", {}), ("anonymize", {}), ("plans", {}), ("restore", {"scope": "s"})):
            said = refused(client, path, 413, "TooLarge", text=TEXT, **more)
            assert "50 characters" in said["message"]
        refused(client, "plans/apply", 413, "TooLarge", text=TEXT, plan={})


def test_batches_answer_in_order_and_one_failure_hinders_nobody(reviewer):
    items = [{"text": f"Mail a{i}@example.com"} for i in range(6)]
    items.insert(3, {"text": "x", "policy": "nosuch"})
    got = post(reviewer, "anonymize/batch", items=items)["results"]
    assert got[3]["error"]["code"] == "UnknownNameError"
    assert [one["text"] for i, one in enumerate(got) if i != 3] == ["Mail [EMAIL_ADDRESS_1]"] * 6
    found = post(reviewer, "detect/batch", items=items[:2])["results"]
    assert [one["counts"] for one in found] == [{"EMAIL_ADDRESS": 1}] * 2
    plans = post(reviewer, "anonymize/batch", items=[{**one, "originals": True} for one in items[:2]])["results"]
    back = post(reviewer, "restore/batch", items=[{"text": p["text"], "plan": p["plan"]} for p in plans])["results"]
    assert [one["text"] for one in back] == [one["text"] for one in items[:2]]


HALF = "\\ud800"
ITEMS = [
    ("detect", '{"text": "Ada Brook %s"}', '{"text": "Ada Brook"}'),
    ("detect", '{"turns": [{"speaker": "Pam", "text": "Ada Brook %s"}]}', '{"text": "Ada Brook"}'),
    ("anonymize", '{"text": "Zelda Fitz %s", "scope": "halves"}', '{"text": "Ada Brook", "scope": "wholes"}'),
    ("anonymize", '{"text": "Ada Brook", "policy": {"detectors": ["%s"]}}', '{"text": "Ada Brook"}'),
    ("restore", '{"text": "[PERSON_1] %s", "scope": "wholes"}', '{"text": "[PERSON_1]", "scope": "wholes"}'),
]


@pytest.mark.parametrize(("path", "bad", "good"), ITEMS)
def test_half_a_character_hinders_no_other_text_and_leaves_nothing_in_the_vault(reviewer, site, path, bad, good):
    def post_items(*items):
        body = f'{{"items": [{", ".join(items)}]}}'
        return reviewer.post(f"/v1/{path}/batch", content=body, headers={"content-type": "application/json"})

    post(reviewer, "anonymize", text="Ada Brook", scope="wholes")
    done = post_items(bad % HALF, good)
    assert done.status_code == 200, done.text
    refused, other = done.json()["results"]
    assert refused["error"]["code"] == "DataError" and "Ada" not in str(refused)
    assert other["text"] in ("Ada Brook", "[PERSON_1]")
    assert "halves" not in [one.name for one in site.services.vault.info().scopes]


@pytest.mark.parametrize("path", ["/v1/detect/batch", "/analyze", "/v1/projects/ends/documents"])
def test_what_fails_takes_the_rest_of_its_request_with_it(admin, site, monkeypatch, path):
    texts = ["Ada Brook", "Bob Fitz"]
    if "projects" in path:
        for needed in ("scipy", "sklearn", "wordfreq"):
            pytest.importorskip(needed)
        assert admin.post("/v1/projects", json={"name": "ends"}).status_code == 201
    going, ended = asyncio.Event(), []

    async def run(function, *args):
        if "Bob" in str(getattr(getattr(args[0], "document", args[0]), "text", args[0])):
            await going.wait()
            raise WorkerError("unexpected")
        going.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(function)
            raise

    monkeypatch.setattr(site.services.kernel, "run", run)
    body = {
        "/v1/detect/batch": {"items": [{"text": text} for text in texts]},
        "/analyze": {"text": texts, "language": "en"},
    }
    documents = {"documents": [{"id": text, "text": text} for text in texts]}
    assert admin.post(path, json=body.get(path, documents)).status_code == 500
    assert len(ended) == 1


def test_the_metrics_count_what_was_treated_and_hold_no_text(admin, annotator):
    def counted():
        lines = admin.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[0] != "#"}

    before = counted()
    post(annotator, "anonymize", text="Mail zaphrandel@example.com")
    after = counted()
    name = 'allonym_mentions_total{label="EMAIL_ADDRESS"}'
    assert after[name] == before.get(name, 0) + 1
    assert after["allonym_characters_total"] == before["allonym_characters_total"] + 27
    assert "zaphrandel" not in admin.get("/metrics").text


def test_answers_say_in_which_languages_names_were_not_looked_for(reviewer):
    text = "Das Treffen wurde auf nächsten Dienstag verschoben. Bitte bringen Sie die Unterlagen zur Heizung mit."
    for path in ("detect", "anonymize"):
        assert post(reviewer, path, text=text)["unread"] == {"de": len(text)}
        assert post(reviewer, path, text=TEXT)["unread"] == {}
    assert "Polish" in refused(reviewer, "detect", 422, "DataError", text=POLISH, policy="gdpr")["message"]
