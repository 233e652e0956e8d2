"""Terms: noun phrases that give a protected value away (P1 3.2.3 misses iX, AI and Blockchain)."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allonym.document import Document, Span
from allonym.swap import terms
from allonym.swap.terms import Word, compute_z_value, find_noun_phrases, remove_plural_ending, select_terms

PLAIN = (
    "Revenue grew in the quarter and our margin was better than last year.",
    "We thank our customers and employees for their support during the year.",
    "Our outlook for the second half of the year has not changed.",
    "We paid down debt and returned cash to our shareholders.",
)
TOLD = {
    "Harrow": (
        "potash",
        "The price of potash rose while potash volumes fell.",
        "Farmers bought more potash in the spring.",
    ),
    "Brindle": (
        "home",
        "Orders for new homes rose and our homes sell faster.",
        "A typical home closed in ninety days.",
    ),
    "Quarmby": ("vaccine", "The vaccine trial began and the vaccine was safe.", "Our vaccine needs one dose only."),
    "Tolvex": (
        "sofa",
        "Sofa sales rose and the sofa line was extended.",
        "Retailers ordered more sofas in the spring.",
    ),
}


def calls(extra=None):
    """One document for each company: chunks that all share, and chunks on its own trade."""
    documents, bounds = [], []
    for name, (_, *own) in TOLD.items():
        text, cut = "", []
        for i in range(12):
            start = len(text)
            text += PLAIN[i % 4] + " " + (own[i % 2] + " " if i % 3 else "") + ((extra or {}).get((name, i), ""))
            cut.append((start, len(text)))
        documents.append(Document(name, text))
        bounds.append(cut)
    return documents, bounds


def find_terms(documents, classes, bounds, taken, share=0.05, **more):
    """The two steps of a corpus."""
    some = [find_noun_phrases(d, spans, **more) for d, spans in zip(documents, taken, strict=True)]
    return select_terms(some, classes, bounds, share)


def found(share=0.05, extra=None, taken=None, **more):
    documents, bounds = calls(extra)
    taken = taken or [()] * len(documents)
    out = find_terms(documents, list(TOLD), bounds, taken, share, **more)
    return documents, bounds, out


def surfaces(documents, out):
    return [[d.text[s.start : s.end] for s in spans] for d, spans in zip(documents, out.spans, strict=True)]


def test_what_one_company_speaks_of_is_found_and_what_all_speak_of_is_not():
    documents, _, out = found(0.5)
    for (word, *_), said in zip(TOLD.values(), surfaces(documents, out), strict=True):
        words = {remove_plural_ending(w) for phrase in said for w in phrase.split()}
        assert word in words
        assert not words & {"revenue", "margin", "customer", "employee", "debt", "outlook"}


def test_every_mention_is_found_in_singular_and_plural():
    documents, _, out = found(0.5)
    [said] = [s for d, s in zip(documents, surfaces(documents, out), strict=True) if d.id == "Brindle"]
    assert sum("home" in remove_plural_ending(phrase) or "homes" in phrase for phrase in said) == documents[
        1
    ].text.count("home")


def test_names_that_nobody_else_uses_are_found_however_rare():
    extra = {("Harrow", 0): "Growth in iX and Hyperledger was strong. ", ("Tolvex", 5): "We also use AI in the plant. "}
    documents, _, out = found(0.5, extra)
    said = surfaces(documents, out)
    assert {"iX", "Hyperledger"} <= set(said[0])
    assert "AI" in said[3]


def test_a_name_that_all_use_is_no_term():
    extra = {(name, 3): "We use AI as well. " for name in TOLD}
    documents, _, out = found(0.5, extra)
    assert "AI" not in {s for some in surfaces(documents, out) for s in some}


def test_a_quarter_is_no_term():
    extra = {("Harrow", i): "It shipped in Q3. " for i in range(12)}
    documents, _, out = found(0.5, extra)
    assert not any("Q3" in phrase for phrase in surfaces(documents, out)[0])


def test_a_transcribers_remark_is_no_term():
    extra = {("Harrow", i): "We sold <inaudible> and [laughter] there. " for i in range(12)}
    documents, _, out = found(0.5, extra)
    assert not {"inaudible", "laughter"} & set(surfaces(documents, out)[0])


def test_capitals_mark_no_names_where_all_is_written_in_them():
    text = "THE WIDGET MADE BY US IS GOOD. "
    some = find_noun_phrases(Document("", text * 3))
    assert some.runs and not any(word.name for run in some.runs for word in run)


def test_no_term_touches_what_was_found():
    documents, _ = calls()
    taken = [[Span(m, m + 6, "PRODUCT") for m in _places(documents[0].text, "potash")], (), (), ()]
    _, _, out = found(0.5, taken=taken)
    assert out.spans[0] and not any(s.overlaps(t) for s in out.spans[0] for t in taken[0])


def _places(text, word):
    at, out = text.find(word), []
    while at >= 0:
        out.append(at)
        at = text.find(word, at + 1)
    return out


@pytest.mark.parametrize("share", [0.0, 0.01, 0.02, 0.05, 0.1])
def test_the_share_of_words_is_kept(share):
    documents, _, out = found(share)
    words = sum(len(d.text.replace(".", " ").split()) for d in documents)
    in_terms = sum(len(s.split()) for some in surfaces(documents, out) for s in some)
    assert out.share <= share
    assert in_terms / words == pytest.approx(out.share, abs=1e-9)
    if share >= 0.02:
        assert in_terms


def test_the_most_telling_words_come_first():
    _, _, small = found(0.02)
    _, _, large = found(0.5)
    assert 0 < len(small.scores) < len(large.scores)
    rest = [z for item, z in large.scores.items() if item not in small.scores]
    assert min(small.scores.values()) >= max(rest)


def test_a_chunk_has_at_most_so_many_terms(monkeypatch):
    monkeypatch.setattr(terms, "PER_CHUNK", 1)
    _, bounds, out = found(0.5)
    documents, _ = calls()
    for document, cut, spans in zip(documents, bounds, out.spans, strict=True):
        for a, b in cut:
            inside = {remove_plural_ending(document.text[s.start : s.end]) for s in spans if a <= s.start < b}
            assert len(inside) <= 1


def test_terms_have_at_most_so_many_words(monkeypatch):
    extra = {("Harrow", i): "The deep shaft ore crusher works. " for i in range(12)}
    documents, _, out = found(0.5, extra)
    assert "shaft ore crusher" in " ".join(surfaces(documents, out)[0])
    monkeypatch.setattr(terms, "LENGTH", 2)
    documents, _, out = found(0.5, extra)
    assert max(len(s.split()) for s in surfaces(documents, out)[0]) == 2


def test_spans_are_sorted_disjoint_terms_inside_chunks():
    _, bounds, out = found(0.5)
    for cut, spans in zip(bounds, out.spans, strict=True):
        assert all(a.end <= b.start for a, b in pairwise(spans))
        assert all(s.label == "TERM" and any(a <= s.start and s.end <= b for a, b in cut) for s in spans)


def test_a_border_through_a_phrase_leaves_it_out():
    documents, bounds = calls()
    some = [find_noun_phrases(d) for d in documents]
    word = some[0].runs[-1][0]
    torn = [[*bounds[0][:-1], (bounds[0][-1][0], word.start + 1), (word.start + 1, bounds[0][-1][1])], *bounds[1:]]
    out = select_terms(some, list(TOLD), torn, 0.5)
    assert not any(s.start <= word.start < s.end for s in out.spans[0])


def test_other_languages_are_read_by_their_words_alone_with_a_warning():
    texts = [
        "Der Umsatz stieg und das Kali wurde teurer. Wir danken den Kunden, die Kali kauften. ",
        "Der Umsatz stieg und das Sofa wurde teurer. Wir danken den Kunden, die Sofas kauften. ",
        "Der Umsatz stieg und der Impfstoff wurde teurer. Wir danken den Kunden, die Impfstoff kauften. ",
    ]
    documents = [Document(str(i), text * 6) for i, text in enumerate(texts)]
    bounds = [[(k * len(t), (k + 1) * len(t)) for k in range(6)] for t in texts]
    out = find_terms(documents, "abc", bounds, [()] * 3, 0.5, language="de")
    said = [set(s) for s in surfaces(documents, out)]
    assert said == [{"Kali"}, {"Sofa", "Sofas"}, {"Impfstoff"}]
    assert any("English only" in warning for warning in out.warnings)


def test_one_value_alone_has_no_terms():
    documents, bounds = calls()
    out = find_terms(documents[:2], ["one", "one"], bounds[:2], [(), ()])
    assert out.spans == ((), ()) and out.share == 0
    assert "one protected value" in out.warnings[-1]


def test_no_text_has_no_terms():
    out = find_terms([Document("a", ""), Document("b", "...")], "ab", [[], [(0, 3)]], [(), ()])
    assert out.spans == ((), ())


def test_a_repr_shows_counts_only():
    _, _, out = found()
    assert "potash" not in repr(out) and "mentions" in repr(out)
    assert "potash" not in repr(find_noun_phrases(calls()[0][0]))


def test_z_values():
    assert compute_z_value(5, 20, 5, 20) == 0
    assert (
        compute_z_value(10, 20, 1, 100)
        > compute_z_value(5, 20, 1, 100)
        > compute_z_value(1, 20, 1, 100)
        > 0
        > compute_z_value(0, 20, 30, 100)
    )
    # log((10.5/10.5)/(1.5/99.5)) / sqrt(1/10.5 + 1/1.5), by hand
    assert compute_z_value(10, 20, 1, 100) == pytest.approx(4.194677 / 0.872872, rel=1e-5)


@settings(max_examples=20)
@given(st.lists(st.sampled_from([*"abcdefg", "Kali", "iX"]), min_size=1, max_size=60), st.floats(0, 0.3))
def test_any_words_keep_the_promises(words, share):
    text = " ".join(words)
    documents = [Document("a", text), Document("b", text[::-1]), Document("c", "x y z")]
    bounds = [[(0, len(d.text) // 2), (len(d.text) // 2, len(d.text))] for d in documents]
    out = find_terms(documents, "abc", bounds, [()] * 3, share, language="xx")
    assert out == find_terms(documents, "abc", bounds, [()] * 3, share, language="xx")
    assert out.share <= share
    for spans in out.spans:
        assert all(a.end <= b.start for a, b in pairwise(spans))


def test_no_word_in_a_repr():
    assert repr(Word(3, 9, "potash", True, False)) == "Word(3, 9)"


def test_a_hyphenated_word_is_one_word() -> None:
    document = Document("d", "The lock-down hurt sales of touch-tone phones.")
    runs = [[w.surface for w in run] for run in find_noun_phrases(document).runs]
    assert [word for run in runs for word in run if "-" in word] == ["lock-down", "touch-tone"]
    assert not {"lock", "down", "touch", "tone"} & {word for run in runs for word in run}
