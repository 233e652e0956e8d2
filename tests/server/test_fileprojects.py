"""Projects of files over HTTP: from files to a signed release, alone and by two, and who may do what."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import PASSWORD

from allonym.project import Project, verify_release

pytestmark = pytest.mark.slow

ROWS = b"name,note\nPam Larkspur,She met Tom Fenwick in Leeds.\nTom Fenwick,He wrote to pam@example.com.\n"
LETTER = b"Dear Pam Larkspur,\n\nTom Fenwick will call you. The Greenfinch project has begun.\n"


def work(client: Any, project: str, *files: tuple[str, bytes], **options: Any) -> dict[str, Any]:
    """Run a job of a project, and return it when it has ended."""
    fields = {"kind": "project", "options": json.dumps({"project": project, **options})}
    parts = [*((name, (None, value)) for name, value in fields.items()), *(("files", file) for file in files)]
    sent = client.post("/v1/jobs", files=parts)
    assert sent.status_code == 202, sent.text
    job, until = sent.json(), time.monotonic() + 300
    while job["state"] in ("queued", "running") and time.monotonic() < until:
        time.sleep(0.1)
        job = client.get(f"/v1/jobs/{job['id']}").json()
    return dict(job)


@pytest.fixture(scope="module")
def people(site: Any) -> dict[str, Any]:
    """Clients of the owner, a second reviewer, and a stranger."""
    accounts = site.services.accounts
    for name in ("owner", "second", "stranger"):
        accounts.make_account(accounts.make_account_link("reviewer")[0], name, PASSWORD)
    return {name: site.page(name) for name in ("owner", "second", "stranger", "admin")}


@pytest.fixture(scope="module")
def project(people: dict[str, Any]) -> str:
    """A project with two files; a third could not be read."""
    made = people["owner"].post("/v1/file-projects", json={"name": "Spring", "policy": "pseudonyms"})
    assert made.status_code == 201, made.text
    id = str(made.json()["id"])
    files = (("people of Larkspur.csv", ROWS), ("to Pam.txt", LETTER), ("broken Fenwick.docx", b"no zip"))
    job = work(people["owner"], id, *files)
    assert job["state"] == "done", job
    assert {name: job["summary"][name] for name in ("files", "known")} == {"files": 2, "known": 0}
    assert [row["name"] for row in job["summary"]["refused"]] == ["broken Fenwick.docx"]
    return id


def test_nothing_on_the_disk_tells_of_a_file_or_person(site: Any, project: str) -> None:
    for path in (*(site.folder / "projects").rglob("*"), *(site.folder / "jobs").rglob("*")):
        assert not any(word in str(path) for word in ("Larkspur", "Fenwick", "Pam"))
        if path.is_file():
            data = path.read_bytes()
            assert not any(word in data for word in (b"Larkspur", b"Fenwick", b"Spring")), path


def test_findings_and_corrections(people: dict[str, Any], project: str) -> None:
    owner, path = people["owner"], f"/v1/file-projects/{project}"
    found = owner.get(f"{path}/findings").json()["entities"]
    fenwick = next(row for row in found if row["name"] == "Tom Fenwick")
    assert fenwick["label"] == "PERSON" and fenwick["mentions"] == 3 and len(fenwick["documents"]) == 3
    assert len({tuple(surface["replacements"]) for surface in fenwick["surfaces"]}) == 1
    never = {"surface": "Leeds", "decision": "never"}
    assert owner.post(f"{path}/corrections", json=never).json() == {"files": 2}
    assert not any(row["name"] == "Leeds" for row in owner.get(f"{path}/findings").json()["entities"])
    letter = owner.get(path).json()["files"][1]
    always = {"surface": "Greenfinch", "decision": "always", "label": "ORGANIZATION", "document": "0002-00001"}
    assert letter["name"] == "to Pam.txt" and owner.post(f"{path}/corrections", json=always).json() == {"files": 1}
    names = [row["name"] for row in owner.get(f"{path}/findings").json()["entities"]]
    assert any("Greenfinch" in name for name in names), names
    listed = owner.get(f"{path}/corrections").json()["corrections"]
    assert [(row["surface"], row["decision"], row["document"]) for row in listed] == [
        ("Leeds", "never", None),
        ("Greenfinch", "always", "0002-00001"),
    ]
    assert owner.post(f"{path}/corrections", json={"surface": "x y", "decision": "always"}).status_code == 400
    forget = {"surface": "Leeds", "decision": "forget"}
    assert owner.post(f"{path}/corrections", json=forget).status_code == 200
    assert owner.post(f"{path}/corrections", json=forget).status_code == 404


def test_people_are_joined_and_parted(people: dict[str, Any]) -> None:
    owner = people["owner"]
    id = owner.post("/v1/file-projects", json={"name": "Names", "policy": "pseudonyms"}).json()["id"]
    path = f"/v1/file-projects/{id}"
    work(owner, id, ("a.txt", b"Margaret Whitcombe came to Leeds."), ("b.txt", b"Imogen Thackray came to Leeds."))

    def list_people() -> dict[str, Any]:
        return {row["name"]: row for row in owner.get(f"{path}/findings?label=PERSON").json()["entities"]}

    before = list_people()
    assert {"Margaret Whitcombe", "Imogen Thackray"} <= set(before)
    numbers = {name: before[name]["number"] for name in ("Margaret Whitcombe", "Imogen Thackray")}
    joined = {"person": numbers["Imogen Thackray"], "same_as": numbers["Margaret Whitcombe"]}
    assert owner.post(f"{path}/people", json=joined).status_code == 200
    (person,) = list_people().values()
    assert {surface["text"] for surface in person["surfaces"]} == {"Margaret Whitcombe", "Imogen Thackray"}
    parted = {"person": person["number"], "part": "Imogen Thackray"}
    assert owner.post(f"{path}/people", json=parted).status_code == 200
    assert len(list_people()) == 2
    for wrong in ({"person": 999, "same_as": 998}, {"person": 1}, {"person": 1, "same_as": 2, "part": "x"}):
        assert owner.post(f"{path}/people", json=wrong).status_code in (400, 404, 409, 422)
    assert people["stranger"].post(f"{path}/people", json=joined).status_code == 404


def test_alone_to_a_signed_release(people: dict[str, Any], project: str, tmp_path: Path) -> None:
    owner, path = people["owner"], f"/v1/file-projects/{project}"
    refused = work(owner, project, action="release")
    assert refused["state"] == "failed" and "not settled by two reviewers" in refused["error"]
    job = work(owner, project, action="release", unreviewed=True)
    assert job["state"] == "done", job
    taken = owner.get(f"{path}/releases/{job['summary']['release']}")
    assert taken.status_code == 200 and taken.headers["content-type"] == "application/zip"
    file = tmp_path / "release.zip"
    file.write_bytes(taken.content)
    shown = owner.get(path).json()
    verified = verify_release(file, shown["public_key"])
    assert verified.files == 4 and verified.manifest["reviewed"]["settled"] == 0
    assert shown["releases"][-1]["sha256"] == job["summary"]["sha256"]
    with zipfile.ZipFile(io.BytesIO(taken.content)) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            assert not any(word in data for word in (b"Larkspur", b"Fenwick", b"pam@example")), name


def test_two_reviewers_settle_and_release(people: dict[str, Any], project: str) -> None:
    owner, second, path = people["owner"], people["second"], f"/v1/file-projects/{project}"
    scope = owner.get(path).json()["scope"]
    assert second.get(path).status_code == 404
    assert owner.post("/v1/scopes/grants", json={"scope": scope, "user": "second"}).status_code == 204
    assert second.get(path).json()["users"] == ["second"]
    lines = owner.get(f"{path}/documents").json()["documents"]
    assert len(lines) == 3 and {line["state"] for line in lines} == {"new"}
    for line in lines:
        document = owner.get(f"{path}/documents/{line['id']}").json()
        whole = {"version": 0, "opened": [[0, len(document["text"])]], "done": True}
        begin = document["text"].find("call you")
        marks = [{"start": begin, "end": begin + 8, "kind": "missed", "label": "DATE"}] if begin >= 0 else []
        saved = owner.put(f"{path}/documents/{line['id']}/marks", json={**whole, "marks": marks})
        assert saved.status_code == 200 and saved.json()["state"] == "in_review", saved.text
        blind = second.get(f"{path}/documents/{line['id']}").json()
        assert not blind["marks"] and not blind["others"]
        state = second.put(f"{path}/documents/{line['id']}/marks", json=whole).json()["state"]
        assert state == ("disagreement" if marks else "done")
        if marks:
            body = {"version": 0, "marks": marks, "done": True}
            settled = owner.put(f"{path}/documents/{line['id']}/settled", json=body)
            assert settled.json()["state"] == "done", settled.text
    agreed = second.get(f"{path}/agreement").json()
    assert agreed["documents"] == 3 and agreed["same"] == 2 and agreed["words"]["by_nobody"] == 0
    job = work(owner, project, action="release")
    assert job["state"] == "done" and job["summary"]["reviewed"] == job["summary"]["documents"] == 3, job
    data = second.get(f"{path}/releases/{job['summary']['release']}").content
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        texts = [archive.read(name) for name in archive.namelist() if name.endswith(".txt")]
    assert len(texts) == 1 and b"call you" not in texts[0] and b"will " in texts[0]


def test_reviewers_who_only_press_done_get_no_credit(people: dict[str, Any]) -> None:
    owner, second = people["owner"], people["second"]
    made = owner.post("/v1/file-projects", json={"name": "Done"}).json()
    path = f"/v1/file-projects/{made['id']}"
    work(owner, made["id"], ("a.txt", LETTER))
    owner.post("/v1/scopes/grants", json={"scope": made["scope"], "user": "second"})
    for client in (owner, second):
        saved = client.put(f"{path}/documents/0001-00001/marks", json={"version": 0, "done": True})
        assert saved.status_code == 200, saved.text
    agreed = owner.get(f"{path}/agreement").json()
    assert agreed["same"] == 0 and agreed["spans"] is None
    assert agreed["words"]["by_both"] == 0 and agreed["words"]["by_nobody"] > 10


def test_projects_of_others(people: dict[str, Any], project: str) -> None:
    path, document = f"/v1/file-projects/{project}", "0002-00001"
    reading = {"version": 0, "done": True}
    asked = [
        ("GET", path, None),
        ("DELETE", path, None),
        ("DELETE", f"{path}/files/1", None),
        ("GET", f"{path}/findings", None),
        ("GET", f"{path}/corrections", None),
        ("POST", f"{path}/corrections", {"surface": "Leeds", "decision": "never"}),
        ("GET", f"{path}/documents", None),
        ("GET", f"{path}/documents/{document}", None),
        ("PUT", f"{path}/documents/{document}/marks", reading),
        ("PUT", f"{path}/documents/{document}/settled", reading),
        ("GET", f"{path}/agreement", None),
        ("GET", f"{path}/releases/1", None),
    ]
    for who in ("stranger", "admin"):
        client = people[who]
        assert client.get("/v1/file-projects").json()["projects"] == []
        for method, place, body in asked:
            response = client.request(method, place, **({} if body is None else {"json": body}))
            assert response.status_code == 404 and "Fenwick" not in response.text, (who, method, place)
        data = {"kind": "project", "options": json.dumps({"project": project})}
        assert client.post("/v1/jobs", data=data, files=[("files", ("a.txt", b"x"))]).status_code == 404
        text = {"text": "x", "scope": f"project {project}"}
        assert client.post("/v1/restore", json=text).status_code == 404
        assert client.post("/v1/anonymize", json=text).status_code == 403
    for method, place in (("DELETE", path), ("DELETE", f"{path}/files/1")):
        assert people["second"].request(method, place).status_code == 403


def test_who_gets_the_name_of_a_removed_user_continues_no_review(site: Any, people: dict[str, Any]) -> None:
    owner, accounts = people["owner"], site.services.accounts
    made = owner.post("/v1/file-projects", json={"name": "Leaving"}).json()
    path = f"/v1/file-projects/{made['id']}/documents/0001-00001"
    work(owner, made["id"], ("a.txt", LETTER), ("b.txt", LETTER + b"Bye."))

    def come() -> Any:
        accounts.make_account(accounts.make_account_link("reviewer")[0], "leaving", PASSWORD)
        owner.post("/v1/scopes/grants", json={"scope": made["scope"], "user": "leaving"})
        return site.page("leaving")

    leaving = come()
    for place, is_done in ((path, True), (path.replace("0001-", "0002-"), False)):
        body = {"version": 0, "opened": [[0, 5]], "done": is_done}
        assert leaving.put(f"{place}/marks", json=body).status_code == 200
    assert people["admin"].delete("/v1/users/leaving").status_code == 204
    other = come()
    assert other.get(path).json()["version"] == 0 and other.get(path).json()["opened"] == []
    lines = other.get(path.rpartition("/")[0]).json()["documents"]
    assert {(line["id"], line["reviewers"], line["done"], line["mine"]) for line in lines} == {
        ("0001-00001", 1, 1, "none"),
        ("0002-00001", 0, 0, "none"),
    }


def test_an_admin_stands_in_for_an_owner_who_was_removed(site: Any, people: dict[str, Any]) -> None:
    accounts, admin = site.services.accounts, people["admin"]
    accounts.make_account(accounts.make_account_link("reviewer")[0], "gone", PASSWORD)
    made = site.page("gone").post("/v1/file-projects", json={"name": "Left"}).json()
    path = f"/v1/file-projects/{made['id']}"
    assert admin.delete("/v1/users/gone").status_code == 204
    assert admin.delete(path).status_code == 404
    for user in ("admin", "second"):
        grant = {"scope": made["scope"], "user": user}
        assert admin.post("/v1/scopes/grants", json=grant).status_code == 204
    assert people["second"].delete(path).status_code == 403
    assert work(admin, made["id"], ("a.txt", LETTER))["state"] == "done"
    assert admin.delete(path).status_code == 204


def test_files_in_clear_that_a_crash_left_go_at_the_next_start(site: Any, people: dict[str, Any]) -> None:
    made = people["owner"].post("/v1/file-projects", json={"name": "Crash"}).json()
    left = site.folder / "projects" / made["id"] / "state" / "work" / "sources"
    left.mkdir(parents=True)
    (left / "0001.txt").write_bytes(LETTER)
    site.services.file_projects.remove_abandoned_work_folders()
    assert not left.parent.exists()


def test_a_removed_project_leaves_nothing(site: Any, people: dict[str, Any]) -> None:
    owner = people["owner"]
    made = owner.post("/v1/file-projects", json={"name": "Gone"}).json()
    work(owner, made["id"], ("a.txt", LETTER))
    assert site.services.vault.has_scope(made["scope"])
    with Project(site.folder / "projects" / made["id"], site.services.vault).open_sources():
        assert owner.delete(f"/v1/file-projects/{made['id']}").status_code == 409
    assert owner.delete(f"/v1/file-projects/{made['id']}").status_code == 204
    assert not site.services.vault.has_scope(made["scope"])
    assert not (site.folder / "projects" / made["id"]).exists()
    assert owner.get(f"/v1/file-projects/{made['id']}").status_code == 404
    assert made["scope"] not in [row["name"] for row in owner.get("/v1/scopes").json()["scopes"]]
