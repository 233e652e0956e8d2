"""Spark in local mode, where Java and pyspark are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings

import pytest

from allonym.errors import UnknownNameError, UsageError
from allonym.scale import anonymize_spark

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")


def java() -> int:
    found = shutil.which("java")
    if found is None:
        return 0
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    return int(version[1]) if version else 0


pytestmark = [pytest.mark.slow, pytest.mark.skipif(java() < 17, reason="Java 17 or later is not installed")]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        made = (
            SparkSession.builder.master("local[1]")
            .config("spark.default.parallelism", "2")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.execution.arrow.maxRecordsPerBatch", "7")
            .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark")))
            .getOrCreate()
        )
        made.sparkContext.setLogLevel("OFF")
        yield made
        made.stop()


@pytest.mark.filterwarnings("ignore")
def test_rows_come_back_in_their_columns(session, policy):
    rows = [(i, f"Mail a{i}@example.com", None if i % 5 else "cc b@example.com") for i in range(40)]
    frame = session.createDataFrame(rows, "id int, text string, note string")
    made = anonymize_spark(frame, policy, columns=["text", "note"], plan_column="plan")
    assert made.columns == ["id", "text", "note", "plan", "allonym_error"]
    assert [f.dataType.simpleString() for f in made.schema.fields] == ["int", "string", "string", "string", "string"]
    found = sorted(made.collect(), key=lambda row: row.id)
    assert [row.id for row in found] == list(range(40))
    assert {row.text for row in found} == {"Mail [EMAIL_ADDRESS_1]"}
    assert {row.note for row in found} == {None, "cc [EMAIL_ADDRESS_2]"}
    assert all("example.com" not in row.plan and row.allonym_error is None for row in found)


def test_wrong_calls_are_told_before_anything_is_read(session, policy):
    frame = session.createDataFrame([(1, "x")], "id int, text string")
    with pytest.raises(UnknownNameError, match="did you mean: text"):
        anonymize_spark(frame, policy, columns=["txt"])
    with pytest.raises(UsageError, match="holds int, and text"):
        anonymize_spark(frame, policy, columns=["id"])
    with pytest.raises(UsageError, match="exists already"):
        anonymize_spark(frame, policy, columns=["text"], error_column="id")
