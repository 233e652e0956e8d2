"""Every placeholder that any preset or operator writes is recognised, wherever placeholders are looked for."""

from __future__ import annotations

import string
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym import Policy, registry
from allonym.document import Document, Span
from allonym.evaluate import found_between, information_loss, removed, second_reading, syntheticity
from allonym.evaluate.general_words import list_words_and_placeholders
from allonym.evaluate.surface_measures import list_words, perplexity
from allonym.intruder.linkage import FeatureReader
from allonym.labels import SCHEMES, TAXONOMY
from allonym.link import link
from allonym.plan import Plan, apply_edits
from allonym.policy import Rule, presets
from allonym.protocol import get_operator_traits, get_traits_by_name, list_policy_grammars
from allonym.replace import make_plan
from allonym.replace.operators import FORMS
from allonym.server.gateway.protect import _find_example_placeholder
from allonym.text.placeholders import SURROGATES, find_placeholders, is_placeholder, remove_placeholders

KEY = b"a key only for the tests, 32 byte"
LABELS = tuple(label.name for label in TAXONOMY)
WRITING = tuple(n for n in registry.operators.names() if get_traits_by_name(n).writes_placeholders)
SURFACES = st.text(st.sampled_from(string.ascii_letters + string.digits + "éÖłß-'"), min_size=3, max_size=20).filter(
    lambda surface: surface[0].isalnum() and surface[-1].isalnum() and any(c.isalpha() for c in surface)
)


class Result(NamedTuple):
    text: str
    plan: Plan


def replace_mentions(text: str, spans: list[Span], policy: Policy) -> Result:
    document = Document("d", text)
    plan = make_plan(document, link(document, spans, policy.taxonomy).entities, policy, key=KEY)
    return Result(apply_edits(text, plan.edits), plan)


def anonymised(policy: Policy, mentions: list[tuple[str, str]]) -> Result:
    """A text with each (label, surface) in a line of its own, as a policy anonymises it."""
    text, spans = "", []
    for label, surface in mentions:
        text += "Then "
        spans.append(Span(len(text), len(text) + len(surface), label))
        text += f"{surface} spoke of it.\n"
    return replace_mentions(text, spans, policy)


def replaced_spans(result: Result) -> list[tuple[int, int, str, str]]:
    """Start and end in the new text, label and operator of the edits that write placeholders."""
    spans, shift = [], 0
    for edit in result.plan.edits:
        core = edit.replacement.strip()
        start = edit.start + shift + edit.replacement.index(core) if core else 0
        shift += len(edit.replacement) - (edit.end - edit.start)
        if core and get_traits_by_name(edit.operator).writes_placeholders:
            spans.append((start, start + len(core), edit.label, edit.operator))
    return spans


@check_each_row("name", presets())
def test_every_tag_of_every_preset_is_recognised(name: str) -> None:
    policy = Policy.load(name)
    labels = [label.name for label in policy.taxonomy]
    result = anonymised(policy, [(label, f"Surface{i}") for i, label in enumerate(labels)])
    spans = replaced_spans(result)
    assert len(spans) > (40 if name == "pseudonyms" else 200)  # pseudonyms are no placeholders
    placeholders = {(p.start, p.end): p for p in find_placeholders(result.text)}
    assert not [result.text[a:b] for a, b, _, _ in spans if (a, b) not in placeholders]
    reader = FeatureReader()
    covered = [
        (a, b)
        for a, b in reader.find_word_spans(result.text)
        if any(a < end and start < b for start, end, _, _ in spans)
    ]
    assert not covered
    ours = [p for key, p in placeholders.items() if key in {(a, b) for a, b, _, _ in spans}]
    related = [p for p, (_, _, label, _) in zip(ours, spans, strict=True) if _agree(policy, p.label, label)]
    assert len(related) >= 0.9 * len(spans)  # schemes share names among labels that are not related


def _agree(policy: Policy, recognised: str, label: str) -> bool:
    return policy.taxonomy.are_related(recognised, label) or not recognised or policy.names == "textwash"


def options_of(operator: str) -> st.SearchStrategy[dict[str, object]]:
    """Options under which an operator's placeholders are recognised without the policy."""
    options: dict[str, st.SearchStrategy[object]] = {}
    if operator == "tag":
        options = {
            "style": st.sampled_from(
                ["[{label}_{n}]", "[{label} {n}]", "<{label} {n}{form}>", "[{label}]", "<{label}>"]
            ),
            "names": st.sampled_from(("", *SCHEMES)),
        }
    elif operator == "sanitize":
        options = {"names": st.sampled_from([s for s in SCHEMES if s != "p1"])}
    elif operator == "wild_tag":
        options = {"form": st.sampled_from(sorted(FORMS)), "length": st.integers(6, 16)}
    elif operator == "hash":
        options = {"length": st.integers(8, 64)}
    elif operator == "suppress":
        options = {"replacement": st.sampled_from(["[REDACTED]", "[removed]", "XXX", "****", "\u2588\u2588"])}
    return st.fixed_dictionaries({}, optional=options)


@pytest.mark.parametrize("operator", WRITING)
@settings(max_examples=30)
@given(st.data())
def test_whatever_an_operator_writes_is_recognised(operator: str, data: st.DataObject) -> None:
    options = data.draw(options_of(operator))
    mentions = data.draw(st.lists(st.tuples(st.sampled_from(LABELS), SURFACES), min_size=1, max_size=3))
    policy = Policy(name="p", default=Rule(operator, options))
    result = anonymised(policy, mentions)
    spans = replaced_spans(result)
    assert len(spans) == len(mentions) or operator == "suppress"
    bare = "Then spoke of it. " * len(mentions)
    if operator != "mask":  # an apostrophe or a hyphen stays where it stood
        assert {(p.start, p.end) for p in find_placeholders(result.text)} == {(a, b) for a, b, _, _ in spans}
        assert list_words(result.text) == list_words(bare)
        assert all(is_placeholder(result.text[a:b]) for a, b, _, _ in spans)
        assert FeatureReader(tags=False).read_features(result.text, "words").spans.tolist() == [
            list(span) for span in FeatureReader().find_word_spans(result.text)
        ]
    assert (
        sum(w.label is not None for w in list_words_and_placeholders(result.text)) >= len(spans) or operator == "mask"
    )
    escaped = result.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    assert len(find_placeholders(escaped)) == len(find_placeholders(result.text))
    first = result.text[spans[0][0] : spans[0][1]] if spans and not get_traits_by_name(operator).lossy else ""
    assert _find_example_placeholder(result.plan.edits, policy) == first


CUSTOM = [
    ("tag", {"style": "({label} no. {n})"}, "Dr Ann"),
    ("tag", {"style": "⟦{label}⟧"}, "Dr Ann"),
    ("tag", {"style": "{label}"}, "Dr Ann"),
    ("tag", {"style": "{label}_{n}", "names": "p1"}, "Dr Ann"),
    ("tag", {"style": "{{{label}}}{{x}}"}, "Dr Ann"),
    ("wild_tag", {"form": "{code}@{label}"}, "Dr Ann"),
    ("suppress", {"replacement": "(somebody {1})"}, "Dr Ann"),
    ("mask", {"char": "#"}, "Al"),
    ("mask", {"char": "-"}, "J1"),
    ("mask", {}, "Al"),
]


@check_each_row("operator, options, surface", CUSTOM)
def test_a_policy_s_own_style_is_recognised_with_the_policy(operator: str, options: dict, surface: str) -> None:
    policy = Policy(name="p", default=Rule(operator, options))
    result = anonymised(policy, [("PERSON", surface), ("LOCATION", surface + "x")])
    assert list_words(result.text) != list_words("Then spoke of it. " * 2) or operator == "mask"
    grammars = list_policy_grammars(policy)
    assert {(a, b) for a, b, _, _ in replaced_spans(result)} <= {
        (p.start, p.end) for p in find_placeholders(result.text, grammars)
    }
    assert remove_placeholders(result.text, grammars).split() == ["Then", "spoke", "of", "it."] * 2


def test_labels_that_a_policy_adds_are_recognised() -> None:
    taxonomy = TAXONOMY.extend([type(TAXONOMY.get("PERSON"))("LEVEL2_STAFF9", "PERSON", "direct", 5)])
    policy = Policy(name="p", default=Rule("wild_tag", {"form": "plain"}), taxonomy=taxonomy)
    result = anonymised(policy, [("LEVEL2_STAFF9", "Ann")])
    ((start, end, _, _),) = replaced_spans(result)
    assert [(p.start, p.end) for p in find_placeholders(result.text, list_policy_grammars(policy))] == [(start, end)]


def test_surrogates_are_declared_and_no_placeholders() -> None:
    surrogates = {n for n in registry.operators.names() if get_traits_by_name(n).grammar({}) == SURROGATES}
    assert surrogates == {"keep", "suppress", "generalise", "llm", "pseudonym", "seq2seq", "shift_dates"}
    assert set(WRITING) == {"encrypt", "hash", "mask", "sanitize", "suppress", "tag", "wild_tag"}
    assert find_placeholders("Emma Tyler, 40-49, came in 2019 from 192.0.2.0/24 to 627** at night, 90+.") == []
    assert get_traits_by_name("nobody's@1") == get_operator_traits(lambda: "")


@pytest.mark.parametrize(
    "text",
    [
        "[laughter] [the singer 2] [sic] [1] [S_1] <b> {name} Model_1 Pronouns an XX. ** bold ** x_1",
        "deadbeef0123 [note:deadbeef01] [DEADBEEF] see: e1: [a:b] {code:123456}",
        "ISO-123456 COVID19_2 SUBTITLE MAX-ABCDEF12 2 * 3 **bold** A4_2 'RFC-2119' [12:30] [x:y:z]",
    ],
)
def test_ordinary_text_holds_no_placeholders(text: str) -> None:
    assert find_placeholders(text) == []


def test_a_placeholder_within_other_brackets_is_recognised() -> None:
    text = "[see PERSON_1] and (cf. [DATE_2])"
    assert [text[p.start : p.end] for p in find_placeholders(text)] == ["PERSON_1", "[DATE_2]"]


NAMES = ("Ada Brook", "Cyd Dale", "Eve Farrow", "Ida Marsh", "Joe Heath", "Kim Rivers")
PLACES = ("Springfield", "Leeds", "Gdansk", "Austin", "Lyon", "Oslo")
STYLES = {
    "default": Policy.load("default"),
    "wild-tags": Policy.load("wild-tags"),
    "hash": Policy.load("default").with_(default=Rule("hash")),
    "encrypt": Policy.load("default").with_(default=Rule("encrypt")),
    "sanitize": Policy.load("sanitize"),
}


def versions() -> tuple[list[str], dict[str, list[str]]]:
    """Reports, and the same findings in them replaced in several ways."""
    original: list[str] = []
    anonymised: dict[str, list[str]] = {style: [] for style in STYLES}
    for i in range(30):
        name, place = NAMES[i % 6], PLACES[i % 5]
        text = (
            f"{name} came to {place} in spring. The report was {'long' if i % 2 else 'short'}, {name.split()[0]} said."
        )
        spans = [Span(0, len(name), "PERSON"), Span(text.index(place), text.index(place) + len(place), "CITY")]
        spans.append(Span(text.rindex(name.split()[0]), text.rindex(name.split()[0]) + 3, "PERSON"))
        original.append(text)
        for style, policy in STYLES.items():
            anonymised[style].append(replace_mentions(text, spans, policy).text)
    return original, anonymised


def test_measures_agree_whatever_the_placeholders_look_like() -> None:
    original, anonymised = versions()
    shares = {s: information_loss(original, a, measures=("surface",)).surface for s, a in anonymised.items()}
    values = [surface.removed.value for surface in shares.values() if surface is not None]
    assert max(values) - min(values) <= 0.02 and min(values) > 0.25
    eases = [surface.ease.after.value for surface in shares.values() if surface is not None]
    assert max(eases) - min(eases) < 0.01
    perplexities = [perplexity(original, a).after.value for a in anonymised.values()]
    assert max(perplexities) - min(perplexities) < 0.01
    for texts in anonymised.values():
        assert removed(original, texts) == removed(original, anonymised["default"])
        labels = [[span.label for span in spans] for spans in found_between(original[:4], texts[:4])]
        assert labels == [["PERSON", "CITY", "PERSON"]] * 4 or "LOCATION" in labels[0]
        assert [len(spans) for spans in found_between(original[:4], texts[:4])] == [3] * 4


def test_a_second_reading_proposes_nothing_in_any_placeholder() -> None:
    _, anonymised = versions()
    for texts in anonymised.values():
        reading = second_reading(None, texts[:3], capitals=True)
        for text, marked in zip(texts, reading.conversations, strict=False):
            spans = [(p.start, p.end) for p in find_placeholders(text)]
            assert not [m for m in marked.marks for a, b in spans if m.start < b and a < m.end]


@pytest.mark.parametrize("style", sorted(STYLES))
def test_what_gives_placeholders_away_is_called_a_tag(style: str) -> None:
    original, anonymised = versions()
    kinds = dict(syntheticity(original, anonymised[style]).kinds)
    assert kinds["tag"] > 0.2
