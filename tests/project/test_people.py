"""People of a project: one person, one replacement in all files, whatever the order; joined and parted by hand."""

from __future__ import annotations

import pytest
from tests.project.conftest import SECRET

from allonym.errors import VaultError
from allonym.project import Project
from allonym.vault import Vault

TEXTS = {
    "a.txt": "Margaret said that she likes Elmford. Bob agreed.\n",
    "b.txt": "Margaret Whitcombe met Robert Quillon at noon.\n",
    "c.txt": "We talked to Peggy Whitcombe on Monday.\n",
}


@pytest.fixture
def interviews(tmp_path):
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    with Vault.create(tmp_path / "v", SECRET) as vault:
        project = Project.create(tmp_path / "study", vault, "pseudonyms")
        project.add([tmp_path / name for name in TEXTS])
        yield project


def find_person(project, name):
    return next(entity for entity in project.list_entities("PERSON") if entity.name == name)


def list_surfaces(project, name):
    return {surface.text for surface in find_person(project, name).surfaces}


def list_families(project, name):
    surfaces = find_person(project, name).surfaces
    return {replacement.split()[-1] for s in surfaces if " " in s.text for replacement in s.replacements}


def test_a_later_file_tells_who_somebody_of_an_earlier_one_is(interviews):
    assert list_surfaces(interviews, "Margaret Whitcombe") == {"Margaret", "Margaret Whitcombe", "Peggy Whitcombe"}
    assert list_surfaces(interviews, "Robert Quillon") == {"Bob", "Robert Quillon"}
    assert len(list_families(interviews, "Margaret Whitcombe")) == 1
    assert interviews.update() == 0


def test_people_are_joined_and_parted_in_all_documents(interviews):
    number = find_person(interviews, "Margaret Whitcombe").number
    assert interviews.join_people(number, "Robert Quillon") >= 1
    assert list_surfaces(interviews, "Margaret Whitcombe") > {"Margaret Whitcombe", "Robert Quillon", "Peggy Whitcombe"}
    assert len(list_families(interviews, "Margaret Whitcombe")) == 1
    assert interviews.part_name(number, "Robert Quillon") >= 1
    quillon, whitcombe = (list_families(interviews, f"{n}") for n in ("Robert Quillon", "Margaret Whitcombe"))
    assert len(quillon) == len(whitcombe) == 1 and quillon != whitcombe
    with pytest.raises(VaultError):
        interviews.join_people("Nobody Here", "Robert Quillon")


@pytest.mark.parametrize("policy", ["default", "pseudonyms"])
def test_a_part_of_a_name_stands_with_the_person_whose_replacement_it_has(tmp_path, policy):
    (tmp_path / "a.txt").write_text("Delphine Farrow came, and Blessing Okonkwo.\n")
    (tmp_path / "b.txt").write_text("Do you remember Delphine? A woman, Farrow I think.\n")
    with Vault.create(tmp_path / "v", SECRET) as vault:
        project = Project.create(tmp_path / "study", vault, policy)
        project.add([tmp_path / "a.txt", tmp_path / "b.txt"])
        assert list_surfaces(project, "Delphine Farrow") == {"Delphine Farrow", "Delphine", "Farrow"}
        assert all(entity.number for entity in project.list_entities("PERSON"))
