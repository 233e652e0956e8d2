"""Packed data that grows beyond measure is refused, in office files and in files packed with gzip."""

import gzip
import io
import zipfile

import pytest

from allonym.errors import DataError
from allonym.files import record
from allonym.files.office import Package
from allonym.files.record import check_compression_ratio


@pytest.fixture
def small(monkeypatch):
    """Limits that small bombs exceed."""
    monkeypatch.setattr(record, "FREE_SIZE", 1 << 17)


def package(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", content)
    return out.getvalue()


def test_a_package_that_grows_beyond_measure_is_refused(small):
    with pytest.raises(DataError, match="more than 200 times its size"):
        Package.open(package(b"a" * (2 << 20)))


def test_ordinary_packages_are_read(small):
    small_one = b"a" * (1 << 17)
    assert list(Package.open(package(small_one)).entries.values()) == [small_one]
    ordinary = b"".join(b"%d Ada Brook lives in Leeds. " % (i * 7919) for i in range(60_000))
    assert list(Package.open(package(ordinary)).entries.values()) == [ordinary]


def test_a_package_that_lies_about_its_size_is_no_office_file(small):
    data = bytearray(package(b"a" * (2 << 20)))
    for mark in (b"PK\x03\x04", b"PK\x01\x02"):
        at = data.index(mark) + (22 if mark == b"PK\x03\x04" else 24)
        data[at : at + 4] = (100).to_bytes(4, "little")
    with pytest.raises(DataError, match="not an office file"):
        Package.open(bytes(data))


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.csv.gz"])
def test_a_packed_file_that_grows_beyond_measure_is_refused(run, tmp_path, small, name):
    line = b'{"t": "%s"}\n' % (b" " * 40_000) if "json" in name else b"a,%s\n" % (b" " * 40_000)
    with pytest.raises(DataError, match="more than 200 times its size"):
        run(name, gzip.compress(line * 20))
    assert not (tmp_path / f"out-{name}").exists()


def test_an_ordinary_packed_file_is_treated(run, small):
    said = [b" ".join(b"%x" % (i * j) for j in range(200)) for i in range(200)]
    rows = b"".join(b'{"t": "mail a%d@example.com %s"}\n' % pair for pair in enumerate(said))
    out, report = run("a.jsonl.gz", gzip.compress(rows))
    assert report.documents == 200 and b"@example.com" not in gzip.decompress(out)


def test_the_ratio_counts_only_where_it_can_hurt():
    check_compression_ratio(1, record.FREE_SIZE)
    check_compression_ratio(record.FREE_SIZE, record.FREE_SIZE * record.MAX_RATIO)
    with pytest.raises(DataError):
        check_compression_ratio(1, record.FREE_SIZE + 1)
