"""The knowledge base that is shipped, and one from a small dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from allonym.kb import KnowledgeBase
from allonym.kb.wikidata import Imported, import_dump

DUMP = Path(__file__).with_name("dump.json")


@pytest.fixture(scope="session")
def kb() -> KnowledgeBase:
    return KnowledgeBase.open()


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[KnowledgeBase, Imported]:
    out = tmp_path_factory.mktemp("wikidata") / "wikidata.sqlite"
    done = import_dump(DUMP, out)
    return KnowledgeBase.open(out), done
