"""Names in the source: functions are no bare participles, variables name the thing that they hold.

A name that scripts, documents or files use may stay: it is listed here, and a name that is gone leaves the list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from benchmarks.house import VAGUE, is_bare
from tests.test_layers import SRC, parse_files

PUBLIC_FUNCTIONS = frozenset(
    """
    detection.adapters.presidio:wrapped evaluate.hardening:Hardening.generalised evaluate.hardening:Hardening.suppressed
    evaluate.intruder:Reidentification.found evaluate.red_team:RedTeam.achieved
    evaluate.residual:ResidualRisk.rejected evaluate.residual:ResidualRisk.unconfirmed evaluate.surface_measures:removed
    kb.base:KnowledgeBase.related llm.client:unlocked policy:Policy.changed restoration.bring:Restorer.shared
    stats.partition:Partition.fitted swap.checks:Checks.guessed swap.corpus:Corpus.swapped
    swap.exchange:Sequence.changed swap.risk:Risk.clipped vault.digests:Digests.edited
    vault.digests:Digests.named vault.vault:Vault.known vault.vault:Vault.locked
    """.split()
)

PUBLIC_FIELDS = frozenset(
    """
    evaluate.information:Contrast.found evaluate.detection_scores:Scores.found evaluate.document_risks:DocumentRisk.found
    evaluate.document_risks:Review.left evaluate.generated_originals:GenerationLeaks.found
    evaluate.intruder:SubjectTerms.found evaluate.study:Inputs.done evaluate.generated_originals:OutputLeaks.found
    evaluate.people:PeopleStudy.kept evaluate.residual:Scoring.own
    files.ocr:Word.left files.record:Tally.left
    files.runreport:RunReport.left intruder.language_model:LanguageModel.told intruder.linkage:Linkage.told
    intruder.offline:Entities.told intruder.offline:Words.told intruder.offline:_LinearIntruder.told
    intruder.protocol:Intruder.told intruder.protocol:Target.told kb.store:Source.taken llm.client:Reply.kept
    llm.client:Reply.whole replace.person:Person.given report.charts:Frame.left restoration.restored:Restored.found
    project.agreement:LabelAgreement.one project.seats:UserReading.done server.wire.jobs:Progress.done server.wire.jobs:Progress.of
    server.wire.reviews:Added.known server.wire.reviews:ByLabel.one server.wire.reviews:DocumentLine.done
    server.wire.reviews:DocumentOut.done server.wire.reviews:ReadingIn.done server.wire.reviews:ReadingOut.done
    server.wire.reviews:Saved.done server.wire.studies:Answers.done server.wire.studies:Invited.of
    server.wire.studies:Received.done server.wire.studies:Received.of server.wire.studies:StudyResults.kept
    server.wire.studies:Task.done server.wire.texts:Restored.found swap.exchange:Sequence.left
    swap.hyperparameters:Setting.left swap.results:Attack.told swap.run:Result.made swap.selection:Fit.left
    swap.risk:Utility.kept swap.validity:Ground.known train.corpus:Source.whole train.search:Parameter.whole
    train.seq2seq:Measure.kept vault.records:Merged.known
    vault.records:Purged.known vault.records:ScopeInfo.known
    """.split()
)

EDGES = frozenset({"left"})
"""The left edge of a box, beside ``right`` or ``top``: the word of geometry."""


def test_no_function_is_named_by_a_bare_participle():
    functions, _, _ = collect_bad_names()
    assert functions == PUBLIC_FUNCTIONS


def test_variables_name_what_they_hold():
    _, _, variables = collect_bad_names()
    assert not {name for name in variables if name.rpartition(".")[2] not in EDGES}


def test_fields_with_vague_names_are_public_ones():
    _, fields, _ = collect_bad_names()
    assert fields == PUBLIC_FIELDS


@cache
def collect_bad_names() -> tuple[set[str], set[str], set[str]]:
    """Return the functions, the fields of classes and the variables with bad names, as ``module:qualified.name``."""
    names: dict[str, set[str]] = {"function": set(), "field": set(), "variable": set()}
    for path, tree in parse_files().items():
        module = ".".join(path.relative_to(SRC).with_suffix("").parts)
        for kind, name in walk_names(tree, "", "variable"):
            last = name.rpartition(".")[2]
            if kind == "function":
                is_bad = is_bare(last)
            else:
                is_bad = last in VAGUE
            if is_bad:
                names[kind].add(f"{module}:{name}")
    return names["function"], names["field"], names["variable"]


def walk_names(node: ast.AST, prefix: str, kind: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "function", prefix + child.name
            yield from walk_names(child, f"{prefix}{child.name}.", "variable")
        elif isinstance(child, ast.ClassDef):
            yield from walk_names(child, f"{prefix}{child.name}.", "field")
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            yield kind, prefix + child.id
        else:
            yield from walk_names(child, prefix, kind)
