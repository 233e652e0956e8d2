"""The versions that are promised are those of the code, and what earlier versions wrote is still read."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import allonym
from allonym import plan, policy, registry
from allonym.files import journal, runreport
from allonym.kb import base
from allonym.protocol import get_operator_traits
from allonym.vault import Vault, store

ROOT = Path(__file__).resolve().parent.parent
FROZEN = Path(__file__).parent / "frozen"


def promised() -> dict[str, str]:
    page = (ROOT / "docs" / "reference" / "promises.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| ([a-zA-Z ]+) \| ([v\d.]+) \|", page, re.MULTILINE))


def test_the_versions_on_the_page_are_those_of_the_code():
    operators = {str(get_operator_traits(registry.operators.get(name)).version) for name in registry.operators.names()}
    assert promised() == {
        "Python": allonym.__version__,
        "command line": allonym.__version__,
        "policy": str(policy.SCHEMA),
        "plan": str(plan.SCHEMA),
        "vault": str(len(store.STEPS)),
        "run report": str(runreport.SCHEMA),
        "journal": str(journal.SCHEMA),
        "knowledge base": str(base.SCHEMA),
        "wire": "v1",
        "operators": ", ".join(sorted(operators)),
    }


def test_the_reference_of_the_server_knows_no_other_prefix():
    page = (ROOT / "docs" / "reference" / "server.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`?/(v\d+)/", page)) == {promised()["wire"]}


@pytest.mark.parametrize("path", sorted(FROZEN.glob("plan-*.json")), ids=lambda p: p.stem)
def test_a_plan_of_an_earlier_version_is_applied_and_undone(path):
    kept = json.loads(path.read_text(encoding="utf-8"))
    read = allonym.Plan.from_dict(kept["plan"])
    assert plan.apply(kept["text"], read) == kept["made"]
    assert allonym.restore(kept["made"], plan=read).text == kept["text"]
    assert read.to_dict(originals=True) == kept["plan"]


@pytest.mark.parametrize("path", sorted(FROZEN.glob("vault-*.sqlite")), ids=lambda p: p.stem)
def test_a_vault_of_an_earlier_version_opens_and_goes_on(path, tmp_path):
    kept = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    copy = shutil.copy(path, tmp_path / "copy.vault")
    with Vault.open(copy, b"the frozen vault's secret, 32 by") as vault:
        assert allonym.restore(kept["made"], vault=vault, scope=kept["scope"]).text == kept["text"]
        again = allonym.anonymize("Ada Brook has moved.", "pseudonyms", vault=vault, scope=kept["scope"])
    assert again.text.split()[:2] == kept["made"].split()[:2]


@pytest.mark.parametrize("path", sorted(FROZEN.glob("policy-*.toml")), ids=lambda p: p.stem)
def test_a_policy_of_an_earlier_version_loads_and_means_the_same(path):
    made = allonym.anonymize("Ada Brook came on 3 May 2019, see https://example.org/x", path)
    assert made.text == "[PERSON_1] came on May 2019, see https://example.org/x"
