"""Runs that keep a vault: the same bytes for any number of workers, one replacement a referent, erasure by subject."""

import json

import pytest

from allonym.errors import DataError, UsageError, VaultError
from allonym.files import anonymize_path
from allonym.pipeline import anonymize
from allonym.restoration import restore
from allonym.vault import Vault

SECRET = b"a secret of the tests, long enough"


def rows(count: int) -> str:
    return "".join(
        json.dumps({"id": i, "patient": f"p{i % 3}", "text": f"a{i % 7}@example.com wrote to b{i}@example.com"}) + "\n"
        for i in range(count)
    )


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(tmp_path, policy):
    (tmp_path / "in.jsonl").write_text(rows(120))
    made, kept = [], []
    for workers, size in ((1, 1 << 16), (1, 300), (2, 2000)):
        out = tmp_path / f"{workers}-{size}"
        vault = Vault.create(out / "v.vault", SECRET) if out.mkdir() is None else None
        report = anonymize_path(
            tmp_path / "in.jsonl",
            out / "o.jsonl",
            policy,
            fields=["text"],
            vault=vault,
            scope="s",
            workers=workers,
            batch_size=size,
        )
        made.append((out / "o.jsonl").read_bytes())
        kept.append(sorted((k.replacement, k.original) for k in vault.known("s")))
        assert report.exit_code == 0
    assert made[0] == made[1] == made[2] and kept[0] == kept[1] == kept[2]
    assert len(kept[0]) == 127
    back = [restore(json.loads(line)["text"], vault=vault, scope="s").text for line in made[0].splitlines()]
    assert back == [json.loads(line)["text"] for line in rows(120).splitlines()]


def test_a_run_again_gives_the_same_and_adds_nothing(tmp_path, policy):
    (tmp_path / "in.jsonl").write_text(rows(10))
    vault = Vault.create(tmp_path / "v.vault", SECRET)
    made = []
    for name in ("one", "two"):
        anonymize_path(tmp_path / "in.jsonl", tmp_path / name, policy, format="jsonl", vault=vault)
        made.append(((tmp_path / name).read_bytes(), len(vault.known(""))))
    assert made[0] == made[1]


def test_a_run_goes_on_with_its_own_vault_alone(tmp_path, policy):
    (tmp_path / "in.jsonl").write_text(rows(30))
    vault, other = (Vault.create(tmp_path / name, SECRET) for name in ("v.vault", "other.vault"))
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"

    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anonymize_path(tmp_path / "in.jsonl", out, policy, vault=vault, scope="s", batch_size=300, progress=interrupted)
    assert not out.exists() and vault.known("s")
    with pytest.raises(UsageError, match="vault"):
        anonymize_path(tmp_path / "in.jsonl", out, policy, vault=other, scope="s", batch_size=300, resume=True)
    assert not other.known("s")
    anonymize_path(tmp_path / "in.jsonl", out, policy, vault=vault, scope="s", batch_size=300, resume=True)
    anonymize_path(tmp_path / "in.jsonl", whole, policy, vault=vault, scope="s")
    assert out.read_bytes() == whole.read_bytes()


def test_records_that_fail_leave_the_others_alone(run, tmp_path, failing):
    vault = Vault.create(tmp_path / "v.vault", SECRET)
    out, report = run(
        "a.jsonl", b'{"t":"a@example.com"}\n{"t":"BOOM b@example.com"}\n{"t":"c@example.com"}\n', vault=vault
    )
    assert report.quarantined == 1 and out.count(b"EMAIL_ADDRESS") == 2
    assert {k.original for k in vault.known("")} == {"a@example.com", "c@example.com"}


def test_a_subject_is_forgotten(tmp_path, policy):
    (tmp_path / "in.jsonl").write_text(rows(9))
    vault = Vault.create(tmp_path / "v.vault", SECRET)
    anonymize_path(
        tmp_path / "in.jsonl", tmp_path / "o.jsonl", policy.with_(subject="patient"), fields=["text"], vault=vault
    )
    before = {k.original for k in vault.known("")}
    vault.purge(subject="p1")
    after = {k.original for k in vault.known("")}
    assert "b1@example.com" in before - after and "b0@example.com" in after


def test_without_its_subject_a_record_is_left_out(run, tmp_path, policy):
    strict = policy.with_(subject="patient", consistent="subject")
    out, report = run("a.jsonl", b'{"patient":"x","t":"a@example.com"}\n{"t":"b@example.com"}\n', strict, fields=["t"])
    assert report.quarantined == 1 and out.count(b"\n") == 1


def test_a_vault_that_cannot_be_written_ends_the_run(tmp_path, policy):
    (tmp_path / "in.jsonl").write_text(rows(3))
    vault = Vault.create(tmp_path / "v.vault", SECRET)
    locked = Vault.open(tmp_path / "v.vault")
    with pytest.raises((VaultError, DataError)):
        anonymize_path(tmp_path / "in.jsonl", tmp_path / "o.jsonl", policy, vault=locked)
    assert not (tmp_path / "o.jsonl").exists() and vault.known("") == ()


def test_in_memory_a_failure_leaves_nothing_in_the_vault(tmp_path, policy, monkeypatch):
    from allonym import pipeline

    vault = Vault.create(tmp_path / "v.vault", SECRET)
    anonymize("Mail a@example.com", policy, vault=vault, scope="s")

    def fail(*args, **options):
        raise DataError("cannot be done")

    monkeypatch.setattr(pipeline, "apply_edits_to_parts", fail)
    monkeypatch.setattr(pipeline, "apply_edits", fail)
    with pytest.raises(DataError):
        anonymize("Mail b@example.com", policy, vault=vault, scope="s")
    assert [k.original for k in vault.known("s")] == ["a@example.com"]


def test_articles_come_back_with_what_they_belong_to(tmp_path):
    from allonym.policy import Policy, TermList

    lists = (TermList("OCCUPATION", ("midwife", "nurse")), TermList("NATIONALITY", ("American", "Ukrainian")))
    policy = Policy.load("default").with_(detectors=("lexicon",), dictionary=lists)
    vault = Vault.create(tmp_path / "v.vault", SECRET)
    text = "She is a midwife and met an American and a Ukrainian nurse."
    made = anonymize(text, policy, vault=vault)
    assert "an [OCCUPATION_1]" in made.text and "a [NATIONALITY_1]" in made.text
    assert restore(made.text, vault=vault).text == text
    assert restore(f"So: {made.text}", plan=made.plan).text == f"So: {text}"
    # An article that somebody else wrote stays as it is.
    assert restore("a [OCCUPATION_1]", vault=vault).text == "a midwife"
    assert restore("The [OCCUPATION_1].", vault=vault).text == "The midwife."
