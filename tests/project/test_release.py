"""Signed releases: what they hold, that they tell of a change, and when they are refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import PurePath

import pytest

from allonym.errors import DataError, UsageError
from allonym.project import Project, Reading, get_public_key, verify_release, write_release
from allonym.project.readings import FindingDecision


@pytest.fixture
def release(project):
    return write_release(project, unreviewed=True)


def rewrite(path, target, change):
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        members = {name: old.read(name) for name in old.namelist()}
        change(members)
        for name, data in members.items():
            new.writestr(name, data)
    return target


def test_a_release_holds_every_file_in_its_format_under_a_safe_name(project, release):
    with zipfile.ZipFile(release.path) as archive:
        names = sorted(archive.namelist())
        stems = sorted(PurePath(name).stem for name in names if name.startswith("documents/"))
        assert stems == ["document-0001", "document-0002", "document-0003", "document-0004"]
        assert {PurePath(name).suffix for name in names} == {".docx", ".pdf", ".csv", ".txt", ".json", ".sig", ".html"}
        statement = archive.read("statement.html").decode()
        assert "6 documents were released without that" in statement and "Quill" not in statement
        text = archive.read(next(name for name in names if name.endswith(".txt"))).decode()
        assert "Quill" not in text and "[PERSON_" in text
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["reviewed"] == {"documents": 6, "settled": 0}
    assert release.path == project.folder / "releases" / "release-001.zip"


def test_a_release_tells_what_is_left_about_each_person_without_their_words(project):
    release = write_release(project, unreviewed=True, cards=True)
    with zipfile.ZipFile(release.path) as archive:
        people = json.loads(archive.read("report.json"))["cards"]
        statement = archive.read("statement.html").decode()
    assert people["documents"] == 6 and people["persons"] == len(people["cards"]) > 0
    assert not any("name" in card or "value" in str(card["facts"]) for card in people["cards"])
    assert f"What is left about each of {people['persons']}" in statement and "Quill" not in statement


def test_the_same_project_gives_the_same_bytes(project, release):
    again = write_release(project, unreviewed=True)
    assert again.path.name == "release-002.zip" and again.path.read_bytes() == release.path.read_bytes()
    assert [row["sha256"] for row in project.releases] == [release.sha256] * 2


def test_the_text_that_reviewers_settled_is_released(project):
    for row, _ in project.list_documents():
        decisions = tuple(
            FindingDecision(s.start, s.end, s.label, "reject")
            for s in row.spans
            if row.document.text[s.start : s.end] == "Jim Quill" and "rude" in row.document.text
        )
        reading = Reading(decisions=decisions, opened=((0, len(row.document.text)),))
        for reader in ("ann", "ben"):
            project.save_reading(row.id, reader, reading, is_done=True)
    release = write_release(project)
    assert (release.reviewed, release.documents) == (6, 6)
    with zipfile.ZipFile(release.path) as archive:
        table = archive.read(next(name for name in archive.namelist() if name.endswith(".csv"))).decode()
        text = archive.read(next(name for name in archive.namelist() if name.endswith(".txt"))).decode()
    assert "Jim Quill was rude" in table and "Jim Quill" not in text
    texts = {row.anonymised for row, _ in project.list_documents()}
    assert text in texts and text.startswith("[PERSON_")  # what they saw, to the letter


def test_a_release_is_verified(project, release):
    verified = verify_release(release.path)
    assert (verified.files, verified.is_known_key, verified.public_key) == (6, False, get_public_key(project))
    assert verify_release(release.path, release.public_key.upper()).is_known_key


@pytest.mark.parametrize("what", ["file", "extra", "missing", "manifest", "signature", "key"])
def test_a_changed_release_is_told(release, tmp_path, what):
    def change(members):
        name = next(name for name in members if name.endswith(".txt"))
        if what == "file":
            members[name] = members[name].replace(b"hello", b"hullo")
        if what == "extra":
            members["documents/more.txt"] = b"more"
        if what == "missing":
            del members[name]
        if what == "manifest":
            members["manifest.json"] = members["manifest.json"].replace(b'"settled": 0', b'"settled": 6')
        if what == "signature":
            members["manifest.sig"] = bytes(64)
        if what == "key":
            members["manifest.json"] = members["manifest.json"].replace(b'"public_key": "', b'"public_key": "00')

    with pytest.raises(DataError):
        verify_release(rewrite(release.path, tmp_path / "changed.zip", change))


def test_another_key_and_no_release(release, tmp_path):
    with pytest.raises(DataError, match="another key"):
        verify_release(release.path, "0" * 64)
    damaged = bytearray(release.path.read_bytes())
    with zipfile.ZipFile(release.path) as archive:
        member = max(archive.infolist(), key=lambda info: info.compress_size)
    begin = member.header_offset + 30 + len(member.filename.encode())
    damaged[begin : begin + 40] = bytes(range(200, 240))
    (tmp_path / "damaged.zip").write_bytes(damaged)
    (tmp_path / "x.zip").write_bytes(b"PK")
    for name in ("damaged.zip", "x.zip", "absent.zip"):
        with pytest.raises(DataError):
            verify_release(tmp_path / name)


def test_a_file_that_another_process_adds_meanwhile_is_anonymised_first(project, tmp_path, monkeypatch):
    (tmp_path / "late.txt").write_bytes(b"Priya Venkataraman came late.")
    other, update = Project(project.folder, project.vault), project.update
    monkeypatch.setattr(other, "update", lambda **_: 0)  # it is stopped after the file was added

    def update_before_the_other_adds():
        update()
        other.add([tmp_path / "late.txt"])

    monkeypatch.setattr(project, "update", update_before_the_other_adds)
    release = write_release(project, unreviewed=True)
    with zipfile.ZipFile(release.path) as archive:
        data = b"".join(archive.read(name) for name in archive.namelist())
    assert release.files == 5 and release.documents == 7 and b"came late" in data and b"Venkataraman" not in data


def test_reviews_that_another_process_opens_meanwhile_refuse_a_release(project, tmp_path, monkeypatch):
    for row, _ in project.list_documents():
        for reader in ("ann", "ben"):
            project.save_reading(row.id, reader, Reading(), is_done=True)
    (tmp_path / "late.txt").write_bytes(b"Priya Venkataraman came late.")
    other, update = Project(project.folder, project.vault), project.update
    monkeypatch.setattr(project, "update", lambda: (update(), other.add([tmp_path / "late.txt"])))
    with pytest.raises(UsageError, match="1 of 7 documents"):
        write_release(project)
    assert not project.releases and not (project.folder / "state" / "work").exists()


def test_a_release_that_was_written_but_not_recorded_is_written_again(project, tmp_path, monkeypatch):
    first = write_release(project, tmp_path / "partners.zip", unreviewed=True)
    with monkeypatch.context() as patch:
        patch.setattr(type(project), "record_release", lambda self, row: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_release(project, unreviewed=True)
    second = write_release(project, unreviewed=True)
    assert [row["name"] for row in project.releases] == [first.path.name, second.path.name]
    assert [path.name for path in (project.folder / "releases").iterdir()] == [second.path.name]
    named = write_release(project, project.folder / "releases" / "release-004.zip", unreviewed=True)
    assert write_release(project, unreviewed=True).path != named.path


def test_a_release_is_refused_while_reviews_are_open(project, tmp_path):
    with pytest.raises(UsageError, match="6 of 6 documents are not settled"):
        write_release(project)
    with pytest.raises(UsageError, match=r"\.zip"):
        write_release(project, tmp_path / "x.tar", unreviewed=True)
    (tmp_path / "x.zip").write_bytes(b"mine")
    with pytest.raises(UsageError, match="overwrite"):
        write_release(project, tmp_path / "x.zip", unreviewed=True)
    assert not project.releases and not (project.folder / "releases").exists()
    assert not (project.folder / "state" / "work").exists()
