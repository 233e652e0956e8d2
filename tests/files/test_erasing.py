"""A person is erased from files of all kinds; what is left is told."""

from __future__ import annotations

import gzip
import json
import zipfile

import pytest

import allonym
from allonym.errors import DataError, UsageError, VaultError
from allonym.files import erasing
from allonym.files.erasing import COVER, cover_person_in_bytes, erase_from_files, erase_person
from allonym.plan import Plan
from allonym.text.name_forms import NameForms
from allonym.vault import Vault

FORMS = NameForms.of_names(["Zaphranda Quennell"])
SECRET = b"a secret only for the tests, 32b"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.txt", "Dear Zaphranda Quennell,\r\nZaphranda.\r\n"),
        ("a.md", "# Quennell\n\nZ. Quennell\n"),
        ("a.csv", 'id,note\n1,"Quennell, Zaphranda"\nZaphranda,2\n'),
        ("a.jsonl", '{"id": "zaphranda.quennell", "Quennell": "Zaphranda"}\n'),
        ("a.html", "<p title='Quennell'>Zaphranda <b>Quennell</b></p><!-- Zaphranda -->"),
        ("a.eml", "From: Zaphranda Quennell <z@example.com>\nSubject: Quennell\n\nZaphranda\n"),
        ("a.py", "owner = 'zaphranda_quennell'  # Quennell\n"),
        ("a.unknown", "Zaphranda"),
    ],
)
def test_text_files_keep_their_form(name, text, tmp_path):
    file = tmp_path / name
    file.write_bytes(text.encode())
    file.chmod(0o640)
    erased = erase_from_files([file], FORMS)
    content = file.read_text(encoding="utf-8").lower()
    assert "quennell" not in content and "zaphranda" not in content and COVER.lower() in content
    assert (erased.files, erased.changed, erased.leftovers) == (1, 1, ())
    assert file.stat().st_mode & 0o777 == 0o640
    assert erase_from_files([file], FORMS).changed == 0


def test_packages_and_compressed_files(tmp_path):
    docx = pytest.importorskip("docx")
    written = docx.Document()
    written.core_properties.author = "Zaphranda Quennell"
    paragraph = written.add_paragraph("Seen: Zaph")
    paragraph.add_run("randa ").bold = True
    paragraph.add_run("Quennell")
    written.save(str(tmp_path / "a.docx"))
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"Zaphranda Quennell"))
    files = sorted(tmp_path.iterdir())
    assert erase_from_files(files, FORMS).leftovers == ()
    with zipfile.ZipFile(tmp_path / "a.docx") as package:
        content = b"".join(package.read(name) for name in package.namelist())
    assert b"Quennell" not in content and b"Zaph" not in content
    assert [p.text for p in docx.Document(str(tmp_path / "a.docx")).paragraphs] == [f"Seen: {COVER}"]
    assert gzip.decompress((tmp_path / "b.txt.gz").read_bytes()) == COVER.encode()


def test_what_cannot_be_covered_is_told_without_the_name(tmp_path):
    file = tmp_path / "a.bin"
    file.write_bytes(b"\0\xff\1" + b"Zaphranda Quennell" + b"\0")
    erased = erase_from_files([file], FORMS)
    assert erased.leftovers == ((str(file), "1 places could not be covered"),)


def test_what_cannot_be_unpacked_is_told_and_does_not_stop_the_rest(tmp_path):
    packed = gzip.compress(b"Zaphranda Quennell" * 9)
    broken = bytearray(packed)
    broken[12] ^= 0xFF
    with zipfile.ZipFile(tmp_path / "c.zip", "w") as package:
        package.writestr("a.txt", "Zaphranda Quennell")
    content = (tmp_path / "c.zip").read_bytes()
    (tmp_path / "c.zip").write_bytes(content.replace(b"Quennell", b"Quennels", 1))
    (tmp_path / "a.gz").write_bytes(packed[:-9])
    (tmp_path / "b.gz").write_bytes(bytes(broken))
    (tmp_path / "d.txt").write_text("Zaphranda")
    erased = erase_from_files(sorted(tmp_path.iterdir()), FORMS)
    assert [file[-4:] for file, _ in erased.leftovers] == ["a.gz", "b.gz", ".zip"]
    assert all("cannot be read" in reason and "Quennell" not in reason for _, reason in erased.leftovers)
    assert (tmp_path / "d.txt").read_text() == COVER


def test_names_of_files_are_counted(tmp_path):
    file = tmp_path / "zaphranda-quennell.txt"
    file.write_text("nothing")
    assert erase_from_files([file], FORMS).named == 1


def test_plans_lose_the_person_and_restore_the_rest(tmp_path):
    text = "Zaphranda Quennell met Tom Baker. Zaphranda left."
    made = allonym.anonymize(text)
    file = tmp_path / "plans.jsonl"
    file.write_text(json.dumps({"id": "a", "plan": made.plan.to_dict(originals=True)}) + "\n")
    assert erase_from_files([file], FORMS).leftovers == ()
    plan = Plan.from_dict(json.loads(file.read_text())["plan"])
    assert allonym.restore(made.text, plan=plan).text == "[PERSON_1] met Tom Baker. [PERSON_1] left."


def test_bytes_without_a_file():
    assert cover_person_in_bytes("a.txt", b"Zaphranda", FORMS) == (COVER.encode(), 1, 0)


def test_a_vault_and_files_together(tmp_path):
    texts = {"a.txt": "Zaphranda Quennell met Tom Baker.", "b.txt": "Zaphi rang. Zaphranda too.", "c.txt": "Tom sat."}
    source = tmp_path / "source"
    source.mkdir()
    for name, text in texts.items():
        (source / name).write_text(text)
    with Vault.create(tmp_path / "v", SECRET) as vault:
        for name, text in texts.items():
            allonym.anonymize(allonym.Document(name, text), vault=vault, scope="s")
        erasure = erase_person(vault, "Zaphranda Quennell", paths=[source])
        assert (erasure.files.changed, erasure.files.leftovers) == (2, ())
        assert (source / "a.txt").read_text() == f"{COVER} met Tom Baker."
        assert (source / "c.txt").read_text() == texts["c.txt"]
        with pytest.raises(UsageError, match="does not exist"):
            erase_person(vault, "Tom Baker", paths=[tmp_path / "missing"])
        assert {entry.original for entry in vault.known("s")} >= {"Tom Baker", "Tom"}  # nothing was erased


def test_an_erasure_that_is_cut_off_can_be_repeated(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    source = tmp_path / "a.txt"
    source.write_text("Zaphranda Quennell met Tom Baker.")
    with Vault.create(tmp_path / "v", SECRET) as vault:
        allonym.anonymize(source.read_text(), vault=vault, scope="s")
        with monkeypatch.context() as patch:
            patch.setattr(erasing, "erase_from_files", stop)
            with pytest.raises(KeyboardInterrupt):
                erase_person(vault, "Zaphranda Quennell", paths=[source])
        assert "Zaphranda Quennell" in {entry.original for entry in vault.known("s")}
        assert [entry.action for entry in vault.audit()].count("erase") == 0
        assert erase_person(vault, "Zaphranda Quennell", paths=[source]).files.changed == 1
        assert "Zaphranda Quennell" not in {entry.original for entry in vault.known("s")}
        with pytest.raises(VaultError):
            erase_person(vault, "Nobody Hereabouts", paths=[source])
        assert [entry.action for entry in vault.audit()].count("erase") == 1


def test_a_damaged_file_hides_nobody_who_is_in_files_only(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"nothing" * 9)[:-9])
    with Vault.create(tmp_path / "v.vault", SECRET) as vault:
        with pytest.raises(DataError, match=r"that can be read; .*a\.gz: its packed content cannot be read"):
            erase_person(vault, "Zaphranda Quennell", paths=[tmp_path / "a.gz"])
        (tmp_path / "b.txt").write_text("Zaphranda Quennell", encoding="utf-8")
        erasure = erase_person(vault, "Zaphranda Quennell", paths=[tmp_path / "a.gz", tmp_path / "b.txt"])
    assert (erasure.files.places, [file[-4:] for file, _ in erasure.files.leftovers]) == (1, ["a.gz"])
