"""Erasing a person from a project: nothing is left in any file of it, and the name means somebody else afterwards."""

from __future__ import annotations

import io
import zipfile

import pytest
from docx import Document as Word
from tests.project.conftest import SECRET

from allonym.errors import VaultError
from allonym.project import Project, Reading, write_release
from allonym.project.erasing import erase_person
from allonym.vault import Vault

NAME = "Perpetua Swanscombe"
OTHERS = ("Jim Quillon", "Ada Brookfield", "Tom Larkspurson", "Eve Hollinger", "Max Drummond")


def make_word(text):
    document, out = Word(), io.BytesIO()
    document.add_paragraph(text)
    document.save(out)
    return out.getvalue()


@pytest.fixture
def planted(tmp_path):
    """A project of 20 files about five people, in all of which another one is named."""
    sources = tmp_path / "in"
    sources.mkdir()
    for number in range(20):
        other = OTHERS[number % 5]
        text = f"{other} met {NAME} at noon. Perpetua said no to {other.split()[0]}, visit {number}.\n"
        if number % 4 == 0:
            (sources / f"visit {number} of {NAME}.docx").write_bytes(make_word(text))
        elif number % 4 == 1:
            (sources / f"{number}.csv").write_text(f"id,name,note\n{number},{other},{text.strip()!r}\n")
        else:
            (sources / f"{number}.txt").write_text(text)
    with Vault.create(tmp_path / "v", SECRET) as vault:
        project = Project.create(tmp_path / "study", vault, "pseudonyms")
        assert len(project.add([sources]).files) == 20
        yield project


def collect_texts(project):
    """Everything that the project's files hold, unsealed."""
    texts = []
    for file in project.files:
        source = project.read_source(file.number)
        if file.suffix == ".docx":
            with zipfile.ZipFile(io.BytesIO(source)) as package:
                source = b"".join(package.read(name) for name in package.namelist())
        texts += [file.name, source.decode("latin-1")]
        for item in project.read_documents(file.number):
            texts.append(str(item.to_dict()))
    texts += [term.term for term in project.terms]
    return texts


def find_surfaces(project):
    return {s.text: s.replacements for e in project.list_entities("PERSON") if e.name == NAME for s in e.surfaces}


def test_a_person_in_twenty_files_leaves_no_trace_and_the_name_means_another_one_afterwards(planted, tmp_path):
    before = find_surfaces(planted)[NAME]
    planted.correct(NAME, label="PERSON")
    release = write_release(planted, unreviewed=True)
    row, _ = planted.list_documents()[0]
    planted.save_reading(row.id, "ann", Reading(opened=((0, 5),)))
    erased = erase_person(planted, NAME)
    assert (erased.files, erased.documents, erased.terms, erased.remaining) == (20, 20, 1, ())
    for text in collect_texts(planted):
        assert "Perpetua" not in text and "swanscombe" not in text.lower()
    for path in planted.folder.rglob("*"):
        assert "Swanscombe" not in path.name and (path.is_dir() or b"Swanscombe" not in path.read_bytes())
    names = {entity.name for entity in planted.list_entities("PERSON")}
    assert set(OTHERS) <= names and NAME not in names
    assert {row.state for row, _ in planted.list_documents()} == {"new"}  # the reading was of another text
    with zipfile.ZipFile(release.path) as archive:
        assert not any(b"Swanscombe" in archive.read(name) for name in archive.namelist())

    (tmp_path / "new.txt").write_text(f"{NAME} came back, and Jim Quillon left.\n")
    planted.add([tmp_path / "new.txt"])
    after = find_surfaces(planted)[NAME]
    assert len(before) == len(after) == 1 and before != after


def test_an_erasure_that_is_cut_off_can_be_repeated(planted, monkeypatch):
    rewrite, calls = planted.rewrite_source, []

    def rewrite_three(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return rewrite(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(planted, "rewrite_source", rewrite_three)
        with pytest.raises(KeyboardInterrupt):
            erase_person(planted, NAME)
    assert sum("Perpetua" in text for text in collect_texts(planted)) > 10
    assert erase_person(planted, NAME).remaining == ()
    assert not any("Perpetua" in text or "swanscombe" in text.lower() for text in collect_texts(planted))


def test_erasing_nobody_is_told(project):
    with pytest.raises(VaultError):
        erase_person(project, "Nobody Hereabouts")


def test_a_name_that_nobody_has_erases_no_word(project):
    before = [project.read_source(file.number) for file in project.files]
    with pytest.raises(VaultError, match="nobody"):
        erase_person(project, "Nobody Late")  # "It came late"
    assert [project.read_source(file.number) for file in project.files] == before


def test_an_address_of_the_person_erases_no_other_address(tmp_path):
    (tmp_path / "a.docx").write_bytes(make_word(f"{NAME} <perpetua.swanscombe@example.com> came. So did Com."))
    (tmp_path / "b.txt").write_text(f"{NAME} wrote from perpetua.swanscombe@example.com to shop@example.com.\n")
    with Vault.create(tmp_path / "v", SECRET) as vault:
        project = Project.create(tmp_path / "study", vault, "pseudonyms")
        project.add([tmp_path / "a.docx", tmp_path / "b.txt"])
        assert erase_person(project, NAME).remaining == ()
        text = project.read_source(2).decode()
        assert "[ERASED]" in project.read_documents(2)[0].anonymised
        assert text == "[ERASED] wrote from [ERASED] to shop@example.com.\n"
        assert "Com." in project.read_documents(1)[0].document.text
