"""A project of a few files, made once; tests that change it get a copy."""

from __future__ import annotations

import shutil

import pytest
from tests.mails import make_docx, make_pdf

from allonym.project import Project
from allonym.vault import Vault

SECRET = b"a secret of 32 bytes for a test."
FILES = {
    "visit ada brook.txt": b"Ada Brook of Larkspur Ltd met Jim Quill in Elmford on Monday. Ada said hello.\n",
    "rows.csv": b"id,comment\n1,Jim Quill was rude to me\n2,I am the only blind piano tuner in Leeds\n3,It came late\n",
    "letter.docx": make_docx(),
    "letter.pdf": make_pdf(),
}


@pytest.fixture(scope="session")
def made_project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    sources = folder / "sources"
    sources.mkdir()
    for name, data in FILES.items():
        (sources / name).write_bytes(data)
    with Vault.create(folder / "study.vault", SECRET) as vault:
        added = Project.create(folder / "study", vault).add([sources])
    assert (len(added.files), added.refused) == (4, ())
    return folder


@pytest.fixture
def project(made_project, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(made_project, copy)
    with Vault.open(copy / "study.vault", SECRET) as vault:
        yield Project(copy / "study", vault)
