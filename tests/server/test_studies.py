"""Intruder studies: dealt, answered by links without an account, resumed, counted."""

from __future__ import annotations

import pytest

for needed in ("scipy", "sklearn"):
    pytest.importorskip(needed)

NAMES = ["Ada Brook", "Jim Quill", "Pam Farrow", "Cyd Dale"]
TEXTS = [
    {"id": f"d{n}", "text": f"[PERSON_1] is number {n}.", "subject": name, "group": "famous" if n % 2 else "fict"}
    for n, name in enumerate(NAMES)
]


def answer(item, name="", **more):
    said = {"item": item, "identified": "yes" if name else "no", "names": [name] if name else []}
    return {**said, "confidence": 80 if name else 0, "reason": "the number" if name else "", "knowledge": "", **more}


@pytest.fixture
def study(reviewer, request):
    body = {"name": request.node.name[:60], "texts": TEXTS, "judgements": 2, "per_page": 2, "seed": 3}
    made = reviewer.post("/v1/studies", json=body)
    assert made.status_code == 201, made.text
    return f"/v1/studies/{made.json()['id']}"


def invited(reviewer, study, count=1, **more):
    made = reviewer.post(f"{study}/invitations", json={"count": count, **more})
    assert made.status_code == 201, made.text
    return ["/v1/study/" + one["link"].rpartition("/")[2] for one in made.json()["invitations"]]


def test_texts_are_dealt_evenly_and_pages_tell_no_truth(reviewer, anybody, study):
    links = invited(reviewer, study, 4)
    tasks = [anybody.get(link).json() for link in links]
    read = [item["text"] for task in tasks for item in task["items"]]
    assert sorted(read) == sorted(t["text"] for t in TEXTS * 2)
    for task in tasks:
        assert set(task) == {
            "study", "title", "instructions", "consent", "guesses", "items", "answers", "done", "expires",
        }  # fmt: skip
        assert not [name for name in NAMES if name in str(task)]
        assert not {t["id"] for t in TEXTS} & {i["token"] for i in task["items"]}
    full = reviewer.post(f"{study}/invitations", json={"count": 1})
    assert (full.status_code, full.json()["error"]["code"]) == (409, "Full")


def test_answers_are_kept_one_by_one_and_the_task_goes_on(reviewer, anybody, study):
    (link,) = invited(reviewer, study)
    first, second = (item["token"] for item in anybody.get(link).json()["items"])
    assert anybody.post(link, json={"answers": [answer(first, "Jim Quill")]}).json() == {
        "answered": 1, "of": 2, "done": False,
    }  # fmt: skip
    again = anybody.get(link).json()  # the browser was closed
    assert again["answers"][first]["names"] == ["Jim Quill"] and second not in again["answers"]
    for _ in range(2):  # sent twice: the same
        told = anybody.post(link, json={"answers": [answer(first, "Ada Brook")]}).json()
        assert told["answered"] == 1
    assert anybody.post(link, json={"answers": [answer(second)], "done": True}).json() == {
        "answered": 2, "of": 2, "done": True,
    }  # fmt: skip
    assert anybody.get(link).json()["answers"][first]["names"] == ["Ada Brook"]
    late = anybody.post(link, json={"answers": [answer(first, "Cyd Dale")]})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "Finished")
    assert anybody.post(link, json={"answers": [answer(second)], "done": True}).status_code == 200
    seen = reviewer.get(study).json()
    assert (seen["invited"], seen["begun"], seen["finished"]) == (1, 1, 1)
    assert seen["invitations"][0] | {"expires": 0} == {
        "page": 1, "state": "finished", "answered": 2, "of": 2, "expires": 0,
    }  # fmt: skip


def test_results_are_those_of_the_evaluation(reviewer, anybody, study):
    assert reviewer.get(study).json()["results"] is None
    truth = {t["text"]: t["subject"] for t in TEXTS}
    for link in invited(reviewer, study, 4):
        items = anybody.get(link).json()["items"]
        said = [
            answer(i["token"], truth[i["text"]] if truth[i["text"]] == "Ada Brook" else "Zoe Nobody", confidence=c)
            for c, i in zip((60, 70), items, strict=True)
        ]
        anybody.post(link, json={"answers": said, "done": True})
    found = reviewer.get(study).json()["results"]
    assert (found["judgements"], found["judges"], found["unread"]) == (8, 4, 0)
    assert found["overall"]["identified"]["value"] == 0.25
    assert found["overall"]["identified"]["low"] < 0.25 < found["overall"]["identified"]["high"]
    assert {g["name"]: g["identified"]["value"] for g in found["groups"]} == {"famous": 0.0, "fict": 0.5}
    assert found["claims"] == {"claimed_right": 2, "claimed_wrong": 6, "denied_right": 0, "denied_wrong": 0}
    assert found["confidence_right"]["n"] == 2 and found["confidence_wrong"]["n"] == 6
    assert 60 <= found["confidence_wrong"]["value"] <= 70
    rows = {row["subject"]: row for row in found["rows"]}
    assert rows["Ada Brook"]["identified"] and rows["Ada Brook"]["judgements"] == 2
    assert not rows["Jim Quill"]["identified"]


def test_a_link_opens_its_own_page_only(reviewer, annotator, anybody, study):
    one, other = invited(reviewer, study, 2)
    foreign = {i["token"] for i in anybody.get(other).json()["items"]} - {
        i["token"] for i in anybody.get(one).json()["items"]
    }
    for item in (*foreign, "t9"):
        refused = anybody.post(one, json={"answers": [answer(item, "Ada Brook")]})
        assert refused.status_code == 400
    for wrong in (one[:-1], "/v1/study/x", one + "A"):
        assert anybody.get(wrong).status_code == 404
        assert anybody.post(wrong, json={"answers": []}).json()["error"]["code"] == "WrongLink"
    for method, url in (("GET", study), ("GET", "/v1/studies"), ("POST", f"{study}/invitations")):
        assert anybody.request(method, url, json={}).status_code == 401
        assert annotator.request(method, url, json={}).status_code == 403


def test_links_expire_and_can_be_withdrawn(reviewer, anybody, study, monkeypatch):
    from allonym.server.routes import studies

    opened, unopened = invited(reviewer, study, 2, days=1)
    item = anybody.get(opened).json()["items"][0]["token"]
    anybody.post(opened, json={"answers": [answer(item)]})
    with monkeypatch.context() as later:
        later.setattr(studies, "get_unix_time", lambda: 2**33)
        assert anybody.get(opened).status_code == anybody.get(unopened).status_code == 404
        assert [i["state"] for i in reviewer.get(study).json()["invitations"]] == ["expired", "expired"]
        invited(reviewer, study, 3)  # the page that nobody opened is free again; the other one holds an answer
        assert reviewer.post(f"{study}/invitations", json={"count": 1}).status_code == 409
    assert reviewer.delete(f"{study}/invitations/1").status_code == 204
    assert anybody.get(opened).status_code == 404
    assert reviewer.get(study).json()["results"] is None
    assert reviewer.delete(f"{study}/invitations/1").status_code == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"texts": []}, 422),
        ({"texts": [TEXTS[0], TEXTS[0]]}, 422),
        ({"texts": [{**TEXTS[0], "text": " "}]}, 422),
        ({"texts": [{**TEXTS[0], "subject": " "}]}, 422),
        ({"guesses": 4}, 422),
        ({"judgements": 0}, 422),
    ],
)
def test_studies_that_will_not_do(reviewer, change, status):
    body = {"name": "wrong", "texts": TEXTS, **change}
    assert reviewer.post("/v1/studies", json=body).status_code == status
    assert "wrong" not in [s["name"] for s in reviewer.get("/v1/studies").json()["studies"]]


def test_answers_that_will_not_do(reviewer, anybody, study):
    (link,) = invited(reviewer, study)
    item = anybody.get(link).json()["items"][0]["token"]
    for wrong in ({"names": ["a"] * 4}, {"confidence": 101}, {"identified": "maybe"}, {"reason": "x" * 4001}):
        assert anybody.post(link, json={"answers": [answer(item) | wrong]}).status_code == 422
    assert anybody.get(link).json()["answers"] == {}


def test_neither_texts_nor_truths_nor_answers_nor_tokens_lie_open(reviewer, anybody, study, site):
    (link,) = invited(reviewer, study)
    item = anybody.get(link).json()["items"][0]["token"]
    anybody.post(link, json={"answers": [answer(item, "Zebulon Nobody")]})
    stored = b"".join(path.read_bytes() for path in site.folder.glob("server.sqlite*"))
    for word in (*NAMES, "Zebulon", "is number", link.rpartition("/")[2]):
        assert word.encode() not in stored


def test_a_removed_study_is_gone(reviewer, anybody, study):
    (link,) = invited(reviewer, study)
    assert reviewer.delete(study).status_code == 204
    assert reviewer.get(study).status_code == 404
    assert anybody.get(link).status_code == 404
