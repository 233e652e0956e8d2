"""Ten interviews with thirty people, and a person in twenty files: what the benchmark promises."""

from __future__ import annotations

import pytest
from benchmarks.people_register import (
    correct_register,
    list_replacements,
    measure_erasure,
    measure_people,
    read_interviews,
)

from allonym.policy import Policy
from allonym.vault import Vault

SECRET = b"a secret only for the tests, 32b"


@pytest.mark.parametrize("policy", ["reversible", "pseudonyms"])
def test_after_one_correction_each_everybody_has_one_replacement(policy, tmp_path):
    interviews = read_interviews()
    with Vault.create(tmp_path / "v", SECRET) as vault:
        first = measure_people(list_replacements(interviews, vault, Policy.load(policy)))
        assert (first["people"], first["joined"]) == (30, [])
        assert correct_register(vault, interviews) <= 10
        then = measure_people(list_replacements(interviews, vault, Policy.load(policy)))
    assert (then["split"], then["joined"]) == ([], [])


def test_a_person_in_twenty_files_is_erased_from_all(tmp_path):
    figures = measure_erasure(tmp_path)
    assert int(str(figures["words before"])) > 80
    assert (figures["words left"], figures["originals left"], figures["unfinished files"]) == (0, 0, 0)
    assert figures["another pseudonym"]
