"""Measures of what anonymised texts still give away, and of what they are still good for (P2, P3, P4).

Each measure is a function of (original, anonymised[, gold | labels | background]), texts in the same order, and returns
estimates with intervals. Needs the extra ``evaluate``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from allonym.errors import MissingExtra
from allonym.text.placeholders import Placeholder
from allonym.text.placeholders import find_placeholders as placeholders

if TYPE_CHECKING:
    from allonym.evaluate.annotated import read_annotated
    from allonym.evaluate.classes import read_label_map
    from allonym.evaluate.classification import Utility, utility_loss
    from allonym.evaluate.construct import Construct, construct_loss
    from allonym.evaluate.detection import Detection, detection
    from allonym.evaluate.document_risk import DocumentRisk, document_risk
    from allonym.evaluate.downstream import Downstream, downstream
    from allonym.evaluate.finetuned import Training
    from allonym.evaluate.found import found_between, found_by, found_in_plans
    from allonym.evaluate.generations import GenerationLeaks, generations
    from allonym.evaluate.guessing import AttributeGuesses, PersonGuesses, attribute_guesses, person_guesses
    from allonym.evaluate.harden import Hardened, Hardening, Level, harden
    from allonym.evaluate.information import Information, information_loss
    from allonym.evaluate.intruder import Reidentification, reidentification
    from allonym.evaluate.leaving import Contrast, contrasts
    from allonym.evaluate.leftovers import leftovers
    from allonym.evaluate.marking import Mark, Marked, read_marks, write_marks
    from allonym.evaluate.outputs import OutputLeaks, output_leaks
    from allonym.evaluate.people import Judgement, PeopleStudy, Truth, people_study
    from allonym.evaluate.perplexity import perplexity
    from allonym.evaluate.predicted import read_findings
    from allonym.evaluate.profiles import Subject, fictitious_people
    from allonym.evaluate.reading import Pairs, read_pairs
    from allonym.evaluate.red_team import RedTeam, read_forms, red_team_sample, red_team_summary, write_forms
    from allonym.evaluate.residual import ResidualRisk, residual_risk
    from allonym.evaluate.scoring import Scoring, score_conversation
    from allonym.evaluate.second_reading import SecondReading, second_reading
    from allonym.evaluate.similarity import Similarity, similarity
    from allonym.evaluate.study import Comparison, Evaluation, compare, evaluate
    from allonym.evaluate.surface import Surface, ranks_of, removed, surface
    from allonym.evaluate.syntheticity import Syntheticity, syntheticity
    from allonym.evaluate.tab import unigram_bits

_HOMES: dict[str, tuple[str, ...]] = {
    "annotated": ("read_annotated",),
    "classes": ("read_label_map",),
    "classification": ("Utility", "utility_loss"),
    "construct": ("Construct", "construct_loss"),
    "detection": ("Detection", "detection"),
    "document_risk": ("DocumentRisk", "document_risk"),
    "downstream": ("Downstream", "downstream"),
    "finetuned": ("Training",),
    "found": ("found_between", "found_by", "found_in_plans"),
    "generations": ("GenerationLeaks", "generations"),
    "guessing": ("AttributeGuesses", "PersonGuesses", "attribute_guesses", "person_guesses"),
    "harden": ("Hardened", "Hardening", "Level", "harden"),
    "information": ("Information", "information_loss"),
    "intruder": ("Reidentification", "reidentification"),
    "leaving": ("Contrast", "contrasts"),
    "leftovers": ("leftovers",),
    "marking": ("Mark", "Marked", "read_marks", "write_marks"),
    "outputs": ("OutputLeaks", "output_leaks"),
    "people": ("Judgement", "PeopleStudy", "Truth", "people_study"),
    "perplexity": ("perplexity",),
    "predicted": ("read_findings",),
    "profiles": ("Subject", "fictitious_people"),
    "reading": ("Pairs", "read_pairs"),
    "red_team": ("RedTeam", "read_forms", "red_team_sample", "red_team_summary", "write_forms"),
    "residual": ("ResidualRisk", "residual_risk"),
    "scoring": ("Scoring", "score_conversation"),
    "second_reading": ("SecondReading", "second_reading"),
    "similarity": ("Similarity", "similarity"),
    "study": ("Comparison", "Evaluation", "compare", "evaluate"),
    "surface": ("Surface", "ranks_of", "removed", "surface"),
    "syntheticity": ("Syntheticity", "syntheticity"),
    "tab": ("unigram_bits",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
NEEDED = ("scipy", "sklearn", "jinja2", "rouge_score", "wordfreq")
"""The packages of the extra ``evaluate``, as they are imported."""

__all__ = [
    "AttributeGuesses",
    "Comparison",
    "Construct",
    "Contrast",
    "Detection",
    "DocumentRisk",
    "Downstream",
    "Evaluation",
    "GenerationLeaks",
    "Hardened",
    "Hardening",
    "Information",
    "Judgement",
    "Level",
    "Mark",
    "Marked",
    "OutputLeaks",
    "Pairs",
    "PeopleStudy",
    "PersonGuesses",
    "Placeholder",
    "RedTeam",
    "Reidentification",
    "ResidualRisk",
    "Scoring",
    "SecondReading",
    "Similarity",
    "Subject",
    "Surface",
    "Syntheticity",
    "Training",
    "Truth",
    "Utility",
    "attribute_guesses",
    "compare",
    "construct_loss",
    "contrasts",
    "detection",
    "document_risk",
    "downstream",
    "evaluate",
    "fictitious_people",
    "found_between",
    "found_by",
    "found_in_plans",
    "generations",
    "harden",
    "information_loss",
    "leftovers",
    "output_leaks",
    "people_study",
    "perplexity",
    "person_guesses",
    "placeholders",
    "ranks_of",
    "read_annotated",
    "read_findings",
    "read_forms",
    "read_label_map",
    "read_marks",
    "read_pairs",
    "red_team_sample",
    "red_team_summary",
    "reidentification",
    "removed",
    "residual_risk",
    "score_conversation",
    "second_reading",
    "similarity",
    "surface",
    "syntheticity",
    "unigram_bits",
    "utility_loss",
    "write_forms",
    "write_marks",
]


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'allonym.evaluate' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"allonym.evaluate.{_HOME_OF[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in NEEDED:
            raise MissingExtra("measuring", "evaluate") from None
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps functions such as ``detection`` reachable although submodules have the same names."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME_OF and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
