"""Measures of what anonymised texts still give away, and of what they are still good for (P2, P3, P4).

Each measure is a function of (original, anonymised[, gold | labels | background]), texts in the same order, and returns
estimates with intervals. Needs the extra ``evaluate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allonym.lazy import load_on_use
from allonym.text.placeholders import Placeholder as Placeholder
from allonym.text.placeholders import find_placeholders as placeholders  # noqa: F401

if TYPE_CHECKING:
    from allonym.evaluate.adversarial import AdversarialRewriting as AdversarialRewriting
    from allonym.evaluate.adversarial import AttackRate as AttackRate
    from allonym.evaluate.adversarial import RewrittenText as RewrittenText
    from allonym.evaluate.adversarial import rewrite_adversarially as rewrite_adversarially
    from allonym.evaluate.card_hardening import PersonHardening as PersonHardening
    from allonym.evaluate.card_hardening import harden_persons as harden_persons
    from allonym.evaluate.cards import PersonCards as PersonCards
    from allonym.evaluate.cards import person_cards as person_cards
    from allonym.evaluate.classes import read_label_map as read_label_map
    from allonym.evaluate.detection_scores import Detection as Detection
    from allonym.evaluate.detection_scores import detection as detection
    from allonym.evaluate.document_risks import DocumentRisk as DocumentRisk
    from allonym.evaluate.document_risks import document_risk as document_risk
    from allonym.evaluate.document_risks import leftovers as leftovers
    from allonym.evaluate.downstream_use import Downstream as Downstream
    from allonym.evaluate.downstream_use import Utility as Utility
    from allonym.evaluate.downstream_use import downstream as downstream
    from allonym.evaluate.downstream_use import utility_loss as utility_loss
    from allonym.evaluate.findings import found_between as found_between
    from allonym.evaluate.findings import found_by as found_by
    from allonym.evaluate.findings import found_in_plans as found_in_plans
    from allonym.evaluate.findings import read_findings as read_findings
    from allonym.evaluate.finetuned import Training as Training
    from allonym.evaluate.generated_originals import GenerationLeaks as GenerationLeaks
    from allonym.evaluate.generated_originals import OutputLeaks as OutputLeaks
    from allonym.evaluate.generated_originals import generations as generations
    from allonym.evaluate.generated_originals import output_leaks as output_leaks
    from allonym.evaluate.hardening import Hardened as Hardened
    from allonym.evaluate.hardening import Hardening as Hardening
    from allonym.evaluate.hardening import Level as Level
    from allonym.evaluate.hardening import harden as harden
    from allonym.evaluate.information import Construct as Construct
    from allonym.evaluate.information import Contrast as Contrast
    from allonym.evaluate.information import Information as Information
    from allonym.evaluate.information import construct_loss as construct_loss
    from allonym.evaluate.information import contrasts as contrasts
    from allonym.evaluate.information import information_loss as information_loss
    from allonym.evaluate.intruder import Reidentification as Reidentification
    from allonym.evaluate.intruder import reidentification as reidentification
    from allonym.evaluate.leaks import unigram_bits as unigram_bits
    from allonym.evaluate.marking import Mark as Mark
    from allonym.evaluate.marking import Marked as Marked
    from allonym.evaluate.marking import read_annotated as read_annotated
    from allonym.evaluate.marking import read_marks as read_marks
    from allonym.evaluate.marking import write_marks as write_marks
    from allonym.evaluate.pairs import Pairs as Pairs
    from allonym.evaluate.pairs import read_pairs as read_pairs
    from allonym.evaluate.people import AttributeGuesses as AttributeGuesses
    from allonym.evaluate.people import Judgement as Judgement
    from allonym.evaluate.people import PeopleStudy as PeopleStudy
    from allonym.evaluate.people import PersonGuesses as PersonGuesses
    from allonym.evaluate.people import Truth as Truth
    from allonym.evaluate.people import attribute_guesses as attribute_guesses
    from allonym.evaluate.people import people_study as people_study
    from allonym.evaluate.people import person_guesses as person_guesses
    from allonym.evaluate.promises import Promise as Promise
    from allonym.evaluate.promises import make_promise as make_promise
    from allonym.evaluate.promises import measure_losses as measure_losses
    from allonym.evaluate.promises import read_marked_sample as read_marked_sample
    from allonym.evaluate.red_team import RedTeam as RedTeam
    from allonym.evaluate.red_team import read_forms as read_forms
    from allonym.evaluate.red_team import red_team_sample as red_team_sample
    from allonym.evaluate.red_team import red_team_summary as red_team_summary
    from allonym.evaluate.red_team import write_forms as write_forms
    from allonym.evaluate.rereading import SecondReading as SecondReading
    from allonym.evaluate.rereading import second_reading as second_reading
    from allonym.evaluate.residual import ResidualRisk as ResidualRisk
    from allonym.evaluate.residual import Scoring as Scoring
    from allonym.evaluate.residual import residual_risk as residual_risk
    from allonym.evaluate.residual import score_conversation as score_conversation
    from allonym.evaluate.sheets import Subject as Subject
    from allonym.evaluate.sheets import fictitious_people as fictitious_people
    from allonym.evaluate.study import Comparison as Comparison
    from allonym.evaluate.study import Evaluation as Evaluation
    from allonym.evaluate.study import compare as compare
    from allonym.evaluate.study import evaluate as evaluate
    from allonym.evaluate.surface_measures import ReaderScores as ReaderScores
    from allonym.evaluate.surface_measures import Similarity as Similarity
    from allonym.evaluate.surface_measures import Surface as Surface
    from allonym.evaluate.surface_measures import perplexity as perplexity
    from allonym.evaluate.surface_measures import ranks_of as ranks_of
    from allonym.evaluate.surface_measures import reader_scores as reader_scores
    from allonym.evaluate.surface_measures import removed as removed
    from allonym.evaluate.surface_measures import similarity as similarity
    from allonym.evaluate.surface_measures import surface as surface
    from allonym.evaluate.synthetic_text import Syntheticity as Syntheticity
    from allonym.evaluate.synthetic_text import syntheticity as syntheticity

NEEDED = ("scipy", "sklearn", "jinja2", "rouge_score", "wordfreq")
"""The packages of the extra ``evaluate``, as they are imported."""

__all__ = sorted((*load_on_use(__name__, ("measuring", "evaluate", NEEDED)), "Placeholder", "placeholders"))
