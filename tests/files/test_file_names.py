"""Names of files and folders: a warning where they identify, and neutral ones on request."""

import csv
import json

import pytest
from tests.rows import check_each_row

from allonym.errors import UsageError
from allonym.files import anonymize_path
from allonym.policy import Policy

NAMES = (
    "interview_01_Okafor-safe.txt",
    "okafor_adaeze.txt",
    "JaneDoe_contract_v2.txt",
    "patient_4711_garcia.txt",
    "2024-03-12 Tomas Lindqvist RE keys.txt",
    "jane.doe@example.com.txt",
    "Smith/letter.txt",
)
PLAIN = ("report-2023-final.txt", "annual_report.txt", "reviews.txt", "interview03.txt", "Invoice March.txt", "a/b.txt")


@check_each_row("name", [*NAMES, *PLAIN])
def test_a_name_that_identifies_is_told(tmp_path, name):
    path = tmp_path / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("Nothing here.\n")
    report = anonymize_path(tmp_path / "in", tmp_path / "out", overwrite=True)
    path.unlink()
    assert report.identifying_names == (name in NAMES)
    assert ("--safe-names" in report.to_text()) == (name in NAMES)


@pytest.fixture
def folder(tmp_path):
    """A folder whose names identify."""
    for name, text in (("Okafor/b.txt", "One.\n"), ("Okafor/Doe/a.csv", "id,t\nx,a@example.com\n"), ("c.foo", "?")):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "in"


def test_safe_names_tell_nothing(folder, tmp_path, policy):
    extras = {name: tmp_path / name for name in ("plans", "report", "quarantine", "names.csv")}
    report = anonymize_path(
        folder,
        tmp_path / "out",
        policy,
        safe_names=True,
        name_list=extras["names.csv"],
        **{name: path for name, path in extras.items() if name != "names.csv"},
    )
    outputs = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert [name.rpartition("/")[2][:9] for name in outputs] == ["document-"] * 2
    assert {name.rpartition(".")[2] for name in outputs} == {"txt", "csv"}
    for name in ("plans", "report", "quarantine"):
        assert "Okafor" not in extras[name].read_text() and "Doe" not in extras[name].read_text()
    assert json.loads(extras["plans"].read_text().splitlines()[0])["id"] == "row 2"
    assert not report.identifying_names
    rows = dict(csv.reader(extras["names.csv"].read_text().splitlines()))
    assert (
        rows["file"] == "written as" and sorted(rows[name] for name in ("Okafor/b.txt", "Okafor/Doe/a.csv")) == outputs
    )
    assert extras["names.csv"].stat().st_mode & 0o077 == 0


def test_numbers_do_not_follow_the_order_of_names(tmp_path, policy):
    orders = set()
    for text in ("x", "y", "z", "v"):
        for name in ("Adams", "Zhou"):
            (tmp_path / "in").mkdir(exist_ok=True)
            (tmp_path / "in" / f"{name}.txt").write_text(f"{name[0]} {text}\n")
        anonymize_path(tmp_path / "in", tmp_path / "out", policy, safe_names=True, overwrite=True)
        orders.add((tmp_path / "out" / "document-0001.txt").read_text()[0])
    assert orders == {"A", "Z"}


def test_safe_names_need_a_folder(folder, tmp_path, policy):
    with pytest.raises(UsageError, match="folder"):
        anonymize_path(folder / "Okafor" / "b.txt", tmp_path / "x.txt", policy, safe_names=True)
    with pytest.raises(UsageError, match="safe_names"):
        anonymize_path(folder, tmp_path / "out", policy, name_list=tmp_path / "names.csv")
    (tmp_path / "out").mkdir()
    anonymize_path(folder / "Okafor" / "b.txt", tmp_path / "out", policy, safe_names=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["document-0001.txt"]


def test_ids_that_hold_a_name_are_told(run):
    data = b"id,name\nokafor_1,Adaeze Okafor\nx-2,Tomas Lindqvist\n"
    report = run("a.csv", data, Policy.load("default"))[1]
    assert report.identifying_ids == 1 and "ids of 1 record hold" in report.to_text()
