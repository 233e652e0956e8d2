"""The table of rewritings: what is known, a text, what comes back and by which rules."""

from allonym.restoration import Restorer
from allonym.vault.records import Known


def known_of(case):
    rows = [(*row, "pseudonym@1", f"e{i}") if len(row) == 3 else (*row, f"e{i}")[:5] for i, row in enumerate(case)]
    return [Known(*row) for row in rows]


def test_what_comes_back_and_by_which_rule(cases):
    rows = cases("restore")
    assert len(rows) >= 200
    for row in rows:
        done = Restorer(known_of(row["known"])).restore(row["text"])
        seen = (done.text, [f.rule for f in done.found], done.unknown)
        assert seen == (row["expected"], row["rules"], row.get("unknown", 0)), row["text"]
        assert done.restored == len(done.found)


def test_in_pieces_it_is_the_same(cases):
    for row in cases("restore"):
        restorer = Restorer(known_of(row["known"]))
        for size in (1, 2, 3, 7):
            chunks = [row["text"][i : i + size] for i in range(0, len(row["text"]), size)]
            assert "".join(restorer.stream(chunks)) == row["expected"], (row["text"], size)


def test_within_other_words_it_is_the_same(cases):
    """Each case between sentences that hold nothing, which must stay as they are."""
    before, after = "Nothing here (yet), at 10:30. \n\n", "\n\nAnd nothing more\u2026 <b>1</b> & [so on]."
    for row in cases("restore"):
        done = Restorer(known_of(row["known"])).restore(before + row["text"] + after)
        assert done.text == before + row["expected"] + after, row["text"]
        for found in done.found:
            assert len(before) <= found.start < found.end <= len(done.text) - len(after)
