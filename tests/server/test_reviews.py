"""Reviews over HTTP: documents in, two reviewers, a decision, lists in force at once, training text out."""

from __future__ import annotations

import json
import sys

import pytest

from allonym.errors import write_install_command
from allonym.train.records import read_records

for needed in ("scipy", "sklearn", "wordfreq"):
    pytest.importorskip(needed)

BARE = {"name": "default", "detectors": ["rules", "lexicon"]}  # misses names, so that there is something to review
TEXT = "Ada Brook of Larkspur Ltd rang. Write to ada.brook@example.com."
WHOLE = [[0, len(TEXT)]]
TURNS = [{"speaker": "Pam", "text": "Is Jim Quill there?"}, {"speaker": "Jo", "text": "No."}]


def let_in(admin, project, *users):
    for user in users or ("annotator", "reviewer"):
        grant = {"scope": f"review {project}", "user": user}
        assert admin.post("/v1/scopes/grants", json=grant).status_code == 204


@pytest.fixture(scope="module")
def project(admin):
    made = admin.post("/v1/projects", json={"name": "calls", "policy": BARE})
    assert made.status_code == 201, made.text
    let_in(admin, "calls")
    documents = [
        {"id": "calm", "text": "Nothing happened."},
        {"id": "hot", "text": TEXT},
        {"id": "talk", "turns": TURNS},
    ]
    done = admin.post("/v1/projects/calls/documents", json={"documents": documents})
    assert (done.status_code, done.json()) == (200, {"added": 3, "known": 0}), done.text
    again = admin.post("/v1/projects/calls/documents", json={"documents": documents})
    assert again.json() == {"added": 0, "known": 3}
    return "/v1/projects/calls"


def stretch(words, kind="missed", label="ORGANIZATION", **more):
    start = TEXT.index(words)
    return {"start": start, "end": start + len(words), "kind": kind, "label": label, **more}


def test_the_queue_says_what_may_be_left_and_why(project, annotator):
    listed = annotator.get(f"{project}/documents").json()
    assert listed["total"] == 3
    lines = {line["id"]: line for line in listed["documents"]}
    assert [line["risk"] for line in listed["documents"]] == sorted((x["risk"] for x in lines.values()), reverse=True)
    assert lines["calm"]["risk"] == 0 and lines["hot"]["risk"] > 3
    assert "PERSON_NAME" in {r["tag"] for r in lines["hot"]["reasons"]}
    assert lines["hot"]["bound"] >= lines["hot"]["risk"]
    assert {line["state"] for line in lines.values()} == {"new"}
    seen = annotator.get(f"{project}/documents/hot").json()
    assert seen["anonymised"] == "Ada Brook of Larkspur Ltd rang. Write to [EMAIL_ADDRESS_1]."
    proposed = {TEXT[p["start"] : p["end"]] for p in seen["proposals"]}
    assert any(p.startswith("Ada Brook") for p in proposed) and not [p for p in proposed if "@" in p]
    talk = annotator.get(f"{project}/documents/talk").json()
    assert [talk["text"][a:b] for a, b in talk["turns"]] == ["Pam: Is Jim Quill there?", "Jo: No."]


def test_from_marks_to_training_text(project, site, annotator, reviewer, admin, tmp_path):
    where = f"{project}/documents/hot"
    marks = [stretch("Ada Brook", label="PERSON"), stretch("Larkspur Ltd", "speaker")]
    saved = annotator.put(f"{where}/marks", json={"version": 0, "marks": marks, "opened": WHOLE, "done": True})
    assert saved.status_code == 200, saved.text
    told = saved.json()
    assert (told["version"], told["state"], told["score"]) == (1, "in_review", 5 + 2)
    assert told["anonymised"] == "[PERSON_1] of [ORGANIZATION_SPEAKER_1] rang. Write to [EMAIL_ADDRESS_1]."
    seen = reviewer.get(where).json()
    assert (seen["marks"], seen["others"], seen["version"]) == ([], [], 0)
    assert reviewer.put(
        f"{where}/marks", json={"version": 0, "marks": marks[:1], "opened": WHOLE, "done": True}
    ).json()["state"] == ("disagreement")
    both = annotator.get(where).json()
    assert [(r["reviewer"], len(r["marks"])) for r in both["others"]] == [("annotator", 2), ("reviewer", 1)]
    assert annotator.put(f"{where}/settled", json={"version": 0, "done": True}).status_code == 403
    decided = admin.put(f"{where}/settled", json={"version": 0, "marks": marks, "done": True})
    assert decided.json()["state"] == "done", decided.text
    agreed = annotator.get(f"{project}/agreement").json()
    assert (agreed["documents"], agreed["same"]) == (1, 0)
    assert agreed["marks"]["overlap"]["value"] == pytest.approx(2 / 3)
    assert agreed["residual"]["total"]["mean"]["value"] == 7
    assert annotator.get(f"{project}/export").status_code == 403
    path = tmp_path / "reviews.jsonl"
    path.write_text(reviewer.get(f"{project}/export").text, encoding="utf-8")
    (record,) = read_records(path)
    assert [s["label"] for s in record["spans"]] == ["PERSON", "ORGANIZATION_SPEAKER", "EMAIL_ADDRESS"]
    assert {"PERSON_FIRSTNAME", "ORGANIZATION"} <= set(record["meta"]["labels"])
    audit = [e["action"] for e in admin.get("/v1/audit").json()["entries"]]
    assert "reviews exported" in audit and "document settled" in audit


def test_a_stale_version_is_refused_and_nothing_is_lost(project, annotator):
    where = f"{project}/documents/calm/marks"
    first = annotator.put(where, json={"version": 0, "marks": [], "decisions": []})
    assert first.json()["version"] == 1
    mine = {"version": 1, "marks": [{"start": 0, "end": 7, "kind": "missed", "label": "PERSON"}]}
    assert annotator.put(where, json=mine).json()["version"] == 2
    late = annotator.put(where, json={"version": 1, "marks": []})
    assert (late.status_code, late.json()["error"]["code"]) == (409, "Stale")
    kept = annotator.get(f"{project}/documents/calm").json()
    assert (kept["version"], len(kept["marks"])) == (2, 1)


def test_decisions_are_in_force_at_once(project, annotator, admin):
    admin.post("/v1/projects", json={"name": "terms", "policy": BARE})
    let_in(admin, "terms", "annotator")
    text = "Zaphrandel asked for ref no 4711-22."
    admin.post("/v1/projects/terms/documents", json={"documents": [{"id": "a", "text": text}]})
    start = text.index("Zaphrandel")
    mark = {"start": start, "end": start + 10, "kind": "missed", "label": "PERSON", "list": "project"}
    where = "/v1/projects/terms/documents/a/marks"
    assert annotator.put(where, json={"version": 0, "marks": [mark]}).status_code == 200
    admin.post("/v1/projects/terms/documents", json={"documents": [{"id": "b", "text": "Did Zaphrandel call?"}]})
    assert annotator.get("/v1/projects/terms/documents/b").json()["anonymised"] == "Did [PERSON_1] call?"
    elsewhere = {"text": "Did Zaphrandel call?", "policy": BARE}
    assert annotator.post("/v1/anonymize", json=elsewhere).json()["text"] == "Did Zaphrandel call?"
    everywhere = {"version": 1, "marks": [{**mark, "list": "all"}]}
    refused = annotator.put(where, json=everywhere)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "NotAllowed")
    assert admin.put(where, json={**everywhere, "version": 0}).status_code == 200
    assert annotator.post("/v1/anonymize", json=elsewhere).json()["text"] == "Did [PERSON_1] call?"


def test_never_find_takes_a_finding_back(project, annotator, admin):
    text = "Write to help@example.com."
    admin.post("/v1/projects/calls/documents", json={"documents": [{"id": "desk", "text": text}]})
    where = f"{project}/documents/desk"
    (span,) = annotator.get(where).json()["spans"]
    said = {"start": span["start"], "end": span["end"], "label": span["label"], "verdict": "reject", "list": "project"}
    saved = annotator.put(f"{where}/marks", json={"version": 0, "decisions": [said]}).json()
    assert saved["anonymised"] == text and saved["spans"] == []
    more = {"documents": [{"id": "desk 2", "text": "Ask help@example.com first."}]}
    admin.post("/v1/projects/calls/documents", json=more)
    assert annotator.get(f"{project}/documents/desk 2").json()["anonymised"] == "Ask help@example.com first."


def test_lists_by_hand(annotator, reviewer, project):
    assert annotator.post("/v1/lists", json={"kind": "exclusion", "label": "*", "term": "Oakham"}).status_code == 403
    made = reviewer.post("/v1/lists", json={"kind": "dictionary", "label": "PRODUCT", "term": "Quellix"})
    assert made.status_code == 201
    found = annotator.get("/v1/lists").json()
    assert found["entries"][0]["term"] == "Quellix" and found["entries"][0]["by"] == "reviewer"
    text = {"text": "A Quellix was sold.", "policy": BARE}
    assert annotator.post("/v1/anonymize", json=text).json()["text"] == "A [PRODUCT_1] was sold."
    assert annotator.delete(f"/v1/lists/{made.json()['id']}").status_code == 403
    assert reviewer.delete(f"/v1/lists/{made.json()['id']}").status_code == 204
    assert annotator.post("/v1/anonymize", json=text).json()["text"] == "A Quellix was sold."
    assert reviewer.delete(f"/v1/lists/{made.json()['id']}").status_code == 404


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"documents": [{"id": "a/b", "text": "x"}]}, 422, "body.documents.0.id"),
        ({"documents": [{"id": "a"}]}, 422, "body.documents.0"),
        ({"documents": [{"id": "a", "text": "x"}] * 2}, 409, None),
        ({"documents": []}, 422, "body.documents"),
        ({"documents": [{"id": "hot", "text": "another text"}]}, 409, None),
    ],
)
def test_documents_that_will_not_do(project, admin, body, status, told):
    answer = admin.post(f"{project}/documents", json=body)
    assert (answer.status_code, answer.json()["error"]["where"]) == (status, told), answer.text


def test_marks_that_will_not_do_are_refused_without_text(project, annotator):
    bad = {"version": 0, "marks": [{"start": 0, "end": 99, "kind": "missed", "label": "PERSON"}]}
    answer = annotator.put(f"{project}/documents/talk/marks", json=bad)
    assert answer.status_code == 422 and "0 <= start < end" in answer.json()["error"]["message"]
    assert annotator.get(f"{project}/documents/talk").json()["version"] == 0
    assert "Quill" not in answer.text


def test_without_the_extra_it_is_said_at_once(admin, project, monkeypatch):
    import allonym.evaluate

    monkeypatch.delattr(allonym.evaluate, "second_reading", raising=False)
    monkeypatch.delitem(sys.modules, "allonym.evaluate.rereading", raising=False)
    monkeypatch.delitem(sys.modules, "allonym.evaluate.residual", raising=False)
    monkeypatch.setitem(sys.modules, "scipy", None)
    answer = admin.post(f"{project}/documents", json={"documents": [{"id": "late", "text": "x"}]})
    assert answer.json()["error"]["code"] == "MissingExtra"
    assert write_install_command("evaluate") in answer.json()["error"]["message"]


def test_projects_of_others(admin, reviewer, annotator, project):
    assert reviewer.post("/v1/projects", json={"name": "secret", "policy": BARE}).status_code == 201
    path = "/v1/projects/secret"
    assert reviewer.post(f"{path}/documents", json={"documents": [{"id": "a", "text": TEXT}]}).status_code == 200
    term = {"kind": "dictionary", "label": "PERSON", "term": "Zaphrandella", "project": "secret"}
    number = reviewer.post("/v1/lists", json=term).json()["id"]
    reading = {"version": 0, "done": True}
    asked = [
        ("GET", path, None),
        ("GET", f"{path}/documents", None),
        ("GET", f"{path}/documents/a", None),
        ("PUT", f"{path}/documents/a/marks", reading),
        ("GET", f"{path}/agreement", None),
        ("GET", "/v1/lists?project=secret", None),
        ("POST", "/v1/lists", term),
        ("DELETE", f"/v1/lists/{number}", None),
    ]
    decided = [
        ("PUT", f"{path}/documents/a/settled", reading),
        ("POST", f"{path}/documents", {"documents": [{"id": "b", "text": "x"}]}),
        ("DELETE", f"{path}/documents/a", None),
        ("GET", f"{path}/export", None),
        ("DELETE", path, None),
    ]
    for client, rows in ((annotator, asked), (admin, asked + decided)):
        assert "secret" not in [row["name"] for row in client.get("/v1/projects").json()["projects"]]
        assert "Zaphrandella" not in client.get("/v1/lists").text
        for method, place, body in rows:
            response = client.request(method, place, **({} if body is None else {"json": body}))
            assert response.status_code == 404 and "Larkspur" not in response.text, (method, place, response.text)
    let_in(admin, "secret", "admin")
    assert admin.get(f"{path}/documents/a").json()["text"] == TEXT
    assert admin.delete(path).status_code == 403  # it is the reviewer's
    assert reviewer.delete(path).status_code == 204
    assert admin.post("/v1/projects", json={"name": "secret"}).status_code == 201  # nothing of the grants is left
    assert reviewer.get(path).status_code == 404


def test_projects_of_before_there_were_owners_belong_to_nobody(site, admin, reviewer, annotator):
    site.services.queue.make_project("older", "default", "reviewer")
    site.services.scopes.register_without_owner("review older")
    assert all(client.get("/v1/projects/older").status_code == 404 for client in (admin, reviewer, annotator))
    let_in(admin, "older", "admin", "reviewer")
    assert reviewer.get("/v1/projects/older").status_code == 200
    assert reviewer.delete("/v1/projects/older").status_code == 403
    assert admin.delete("/v1/projects/older").status_code == 204


def test_nothing_of_a_document_is_in_the_database_files(project, site):
    stored = b"".join(path.read_bytes() for path in site.folder.glob("server.sqlite*"))
    assert b"calls" in stored
    for word in (b"Larkspur", b"Quill", b"Zaphrandel"):
        assert word not in stored


def test_a_removed_project_is_gone(admin, annotator):
    admin.post("/v1/projects", json={"name": "short"})
    assert annotator.get("/v1/projects/short").status_code == 404
    let_in(admin, "short", "annotator")
    assert annotator.delete("/v1/projects/short").status_code == 403
    assert admin.delete("/v1/projects/short").status_code == 204
    assert annotator.get("/v1/projects/short").status_code == 404
    assert json.loads(annotator.get("/v1/projects").text)["total"] >= 1
