"""A study project: files in, corrections, readings of two reviewers, and what it keeps."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.project.conftest import FILES, SECRET

from allonym.errors import DataError, RequestError, UsageError
from allonym.project import Project, Reading
from allonym.project.readings import FindingDecision, LeakMark
from allonym.vault import Vault


def get_texts(project):
    return {row.id: row.anonymised for row, _ in project.list_documents(order="added")}


def find_id(project, words):
    return next(row.id for row, _ in project.list_documents() if words in row.document.text)


def read_whole(project, id, **more):
    row, _ = project.get_document(id)
    return Reading(opened=((0, len(row.document.text)),), **more)


def test_every_format_becomes_documents(project):
    assert [(file.format, file.documents) for file in project.files] == [
        ("docx", 1),
        ("pdf", 1),
        ("csv", 3),
        ("txt", 1),
    ]
    [text] = [text for text in get_texts(project).values() if "rude" in text]
    assert text.startswith("comment: [PERSON_")
    assert not any("Quill" in text for text in get_texts(project).values())


def test_nothing_in_the_folder_tells_of_a_file_or_a_person(project):
    for path in project.folder.rglob("*"):
        relative = path.relative_to(project.folder).as_posix()
        data = path.read_bytes() if path.is_file() else b""
        for word in ("Quill", "quill", "Brook", "ada brook", "Elmford", "letter.docx"):
            assert word.encode() not in data and word not in relative, relative
    assert not (project.folder / "state" / "work").exists()


def test_another_vault_opens_nothing(project, tmp_path):
    with Vault.create(tmp_path / "other.vault", SECRET) as other, pytest.raises(DataError, match="does not open"):
        Project(project.folder, other)


def test_a_sealed_file_takes_no_other_place(project):
    state = project.folder / "state"
    (state / "documents-0001").write_bytes((state / "documents-0002").read_bytes())
    with pytest.raises(DataError, match="documents-0001"):
        project.read_documents(1)


def test_what_cannot_be_read_is_refused_with_a_reason_and_the_rest_is_added(project, tmp_path):
    (tmp_path / "broken.docx").write_bytes(b"PK no zip")
    (tmp_path / "film.mp4").write_bytes(b"x")
    (tmp_path / "again.txt").write_bytes(FILES["visit ada brook.txt"])
    (tmp_path / "new.txt").write_bytes(b"Jim Quill came back.")
    added = project.add([tmp_path / name for name in ("broken.docx", "film.mp4", "again.txt", "new.txt")])
    assert [file.name for file in added.files] == ["new.txt"]
    assert added.duplicates == ("again.txt",)
    assert [name for name, _ in added.refused] == ["broken.docx", "film.mp4"]
    assert all(reason for _, reason in added.refused)
    assert get_texts(project)[find_id(project, "came back")].startswith("[PERSON_")
    with pytest.raises(UsageError, match="no file or folder"):
        project.add([tmp_path / "absent.txt"])
    with pytest.raises(UsageError, match="the project itself"):
        project.add([project.folder.parent])


def test_a_file_that_vanishes_is_refused_and_the_rest_is_added(project, tmp_path, monkeypatch):
    for name in ("gone.txt", "here.txt"):
        (tmp_path / name).write_text(f"Jim Quill is {name}.")
    read = Path.read_bytes

    def read_unless_gone(path):
        if path.name == "gone.txt":
            raise PermissionError(13, "no")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", read_unless_gone)
    added = project.add([tmp_path / "gone.txt", tmp_path / "here.txt"])
    assert [file.name for file in added.files] == ["here.txt"]
    assert [name for name, _ in added.refused] == ["gone.txt"]


def test_files_in_clear_that_a_crash_left_go_when_the_project_is_opened(project):
    left = project.folder / "state" / "work" / "sources"
    left.mkdir(parents=True)
    (left / "0001.txt").write_text("Jim Quill")
    with project.open_sources() as sources:  # another process opens the project meanwhile
        Project(project.folder, project.vault)
        assert len(list(sources.iterdir())) == 4
    left.mkdir(parents=True)
    Project(project.folder, project.vault)
    assert not left.parent.exists()


def test_people_are_grouped_with_their_surfaces(project):
    people = {entity.name: entity for entity in project.list_entities("PERSON")}
    brook = people["Ada Brook"]
    assert {surface.text for surface in brook.surfaces} >= {"Ada Brook", "Ada"}
    assert people["Jim Quill"].mentions >= 2 and len(people["Jim Quill"].documents) >= 2
    replaced = {surface.replacements for surface in people["Jim Quill"].surfaces if surface.text == "Jim Quill"}
    assert len(replaced) == 1


def test_a_correction_holds_everywhere_or_in_one_document(project):
    where = find_id(project, "Larkspur Ltd met")
    assert project.correct("Larkspur Ltd", never=True) >= 1
    assert "Larkspur Ltd" in get_texts(project)[where]
    assert project.correct("Larkspur Ltd", label="ORGANIZATION", document=where) == 1
    assert "Larkspur Ltd" not in get_texts(project)[where]
    assert project.forget("Larkspur Ltd", document=where) == 1
    assert "Larkspur Ltd" in get_texts(project)[where]
    project.correct("It came late", label="EVENT")
    assert "late" not in get_texts(project)[find_id(project, "It came late")]
    project.forget("It came late")
    assert "It came late" in get_texts(project)[find_id(project, "It came late")]
    with pytest.raises(RequestError, match="no such correction"):
        project.forget("nothing of the kind")


def test_two_reviewers_are_blind_and_a_verdict_decides(project):
    id = find_id(project, "piano tuner")
    text = project.get_document(id)[0].document.text
    start = text.index("only blind")
    missed = LeakMark(start, start + 10, "missed", "MEDICAL_CONDITION")
    first = read_whole(project, id, marks=(missed,))
    project.save_reading(id, "ann", first, is_done=True)
    assert project.get_document(id, "ben")[1] == {}
    assert [seat.reader for seat in project.get_document(id, "ann")[1].values()] == ["ann"]
    _, state = project.save_reading(id, "ben", read_whole(project, id), is_done=True)
    assert state == "disagreement"
    with pytest.raises(RequestError, match="two others"):
        project.save_reading(id, "carl", Reading())
    project.save_reading(id, "rita", first, is_done=True, is_verdict=True)
    project.update()
    row, seats = project.get_document(id)
    assert row.state == "done" and "only blind" not in row.anonymised
    assert [seats[n].reader for n in (0, 1, 2)] == ["rita", "ann", "ben"]


def test_readings_belong_to_a_number_where_there_is_one(project):
    id = find_id(project, "piano tuner")
    project.save_reading(id, 7, read_whole(project, id), reader="ann")
    saved, _ = project.save_reading(id, 8, read_whole(project, id), reader="ann", is_done=True)
    assert (saved.seat, saved.user, saved.reader, saved.version) == (2, 8, "ann", 1)
    before = project.get_status().unseen
    assert project.remove_unfinished_readings(8) == 0
    assert project.remove_unfinished_readings(7) == 1
    assert project.get_status().unseen > before
    assert [seat.user for seat in project.get_document(id)[1].values()] == [8]
    project.save_reading(id, 9, Reading(), reader="ben")  # the seat is free again


def test_a_settled_reading_survives_corrections(project):
    id = find_id(project, "Jim Quill was rude")
    row, _ = project.get_document(id)
    [span] = row.spans
    reject = FindingDecision(span.start, span.end, span.label, "reject")
    for reader in ("ann", "ben"):
        project.save_reading(id, reader, read_whole(project, id, decisions=(reject,)), is_done=True)
    project.correct("Elmford", never=True)
    project.update()
    assert "Jim Quill was rude" in get_texts(project)[id]


def test_who_only_presses_done_gets_no_credit(project):
    pytest.importorskip("scipy")
    ids = [row.id for row, _ in project.list_documents()]
    for reader in ("ann", "ben"):
        project.save_readings(reader, {id: (Reading(), True) for id in ids})
    result = project.measure_reviews()
    assert (result.documents, result.same, result.spans, result.marks) == (len(ids), 0, None, None)
    assert result.words.by_both == result.words.by_one == 0 < result.words.by_nobody
    assert result.findings.by_nobody == project.get_status().mentions


def test_agreement_is_of_what_both_looked_at(project):
    pytest.importorskip("scipy")
    ids = [row.id for row, _ in project.list_documents()]
    project.save_readings("ann", {id: (read_whole(project, id), True) for id in ids})
    project.save_readings("ben", {id: (read_whole(project, id) if id == ids[0] else Reading(), True) for id in ids})
    result = project.measure_reviews()
    assert (result.documents, result.same) == (len(ids), 1)
    assert result.words.by_nobody == 0 < result.words.by_one
    assert result.spans.documents == 1 and result.spans.strict.value == 1


def test_a_file_is_removed_with_its_documents(project):
    id = find_id(project, "Larkspur Ltd met")
    number = int(id[:4])
    project.correct("Monday", never=True, document=id)
    project.save_reading(id, "ann", Reading())
    project.remove(number)
    assert number not in [file.number for file in project.files] and not project.terms
    assert not [p for p in (project.folder / "state").iterdir() if p.name.endswith(f"-{number:04}")]
    with pytest.raises(RequestError):
        project.get_document(id)


def test_a_status_tells_what_is_next(project):
    status = project.get_status()
    assert (status.files, status.documents, status.failures, status.releases) == (4, 6, 0, 0)
    assert status.states == {"new": 6, "in_review": 0, "disagreement": 0, "done": 0} and status.unseen > 20
    assert any("release --unreviewed" in step for step in status.steps)
    assert any("review --export" in step for step in status.steps)


def test_a_project_is_made_once_and_its_policy_file_is_not_needed_again(tmp_path):
    (tmp_path / "names.txt").write_text("Quillon\n")
    (tmp_path / "base.toml").write_text('extends = "default"\n[exclusions]\nCITY = ["Elmford"]\n')
    file = tmp_path / "mine.toml"
    file.write_text('extends = "base.toml"\n[dictionary]\nPRODUCT = { file = "names.txt" }\n')
    with Vault.create(tmp_path / "v", SECRET) as vault:
        project = Project.create(tmp_path / "study", vault, file)
        for path in (file, tmp_path / "names.txt", tmp_path / "base.toml"):
            path.unlink()
        project = Project(project.folder, vault)
        assert [t.terms for t in (*project.base_policy.dictionary, *project.base_policy.exclusions)] == [
            ("Quillon",),
            ("Elmford",),
        ]
        assert project.base_policy.name == "mine"
        with pytest.raises(UsageError, match="already"):
            Project.create(tmp_path / "study", vault)
    assert not any(b"Quillon" in path.read_bytes() for path in project.folder.rglob("*") if path.is_file())
    with pytest.raises(UsageError, match="no project"):
        Project(tmp_path, vault)
