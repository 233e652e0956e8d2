"""What is covered outside of mentions before a text leaves."""

import sys

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rows import check_each_row

from allonym.replace.covering import find_repeats

COVERED = [
    ("王伟", "说：王伟在上海。", "王伟"),
    ("李小龍", "我見李小龍。", "李小龍"),
    ("王伟", "王 伟 says", "王 伟"),
    ("Li", "Then Li went home, LI did", "Li|LI"),
    ("Bob", "then bob left", "bob"),
    ("bob@x.example", "so BOB@X.EXAMPLE", "BOB@X.EXAMPLE"),
    ("李小龍さん", "李小龍は", "李小龍"),
    ("Li Wei", "Li left, li too, wei, Wei", "Li|Wei"),
    ("Dr Wei de Ux", "Dr Bo De La, DE, Ux", "Ux"),
    ("Li Wu", "ask li wu or Li-Wu", "li wu|Li-Wu"),
    ("12-34", "again 12-34, 12 34 and 1234", "12-34|12 34|1234"),
    ("AB 12 34 56", "again 12 34 56 and AB123456 and ab-12-34-56", "12 34 56|AB123456|ab-12-34-56"),
    ("47", "again 47, a47b but not 1947", "47|a47b"),
    ("aged 47", "then 47", "47"),
    ("١٢٣٤", "is 1234", "1234"),
    ("Connor", "C o n n o r, C-o-n-n-o-r, c.o.n.n.o.r", "C o n n o r|C-o-n-n-o-r|c.o.n.n.o.r"),
    ("Connor", "Con-\nnor and Con\u00adnor and CON\u200bNOR", "Con-\nnor|Con\u00adnor|CON\u200bNOR"),
    ("Connor", "sconnor77@mail and Connors", "sconnor77|Connors"),
    ("Connor's", "the connor case", "connor"),
    ("Müller", "Mueller, Muller, MU\u0308LLER", "Mueller|Muller|MU\u0308LLER"),
    ("Mueller", "Müller", "Müller"),
    ("Groß", "Gross, GROSS", "Gross|GROSS"),
    ("Strauss", "Strauß", "Strauß"),
    ("Łódź", "in Lodz", "Lodz"),
    ("محمد", "ومحمد هنا", "ومحمد"),
    ("Иван", "ИВАН и Ивана", "ИВАН|Ивана"),
    ("12......3", "1..2.3, 12.....3, 12 and 3", "1..2.3|12.....3|12"),
    ("王......伟", "说王......伟在", "王......伟"),
    ("the Old Fox", "the man saw The old Fox, Old", "The old Fox|Old"),
]
LEFT = [
    ("Ina", "in a house, Inas"),
    ("Ann", "Annapurna, an n"),
    ("Li", "alive, like, l at i"),
    ("12-34", "1 - x - 2, 34, 1203"),
    ("Bob", "bo, ob, b    o    b"),
    ("X", "x X"),
    ("", "anything"),
    ("...", "..."),
]


def cover(original, text):
    whole = f"{original}\n\n\n\n{text}"
    found = find_repeats(whole, [(0, len(original))] if original else [])
    return [whole[a:b] for a, b in found]


@check_each_row("original, text, covered", COVERED)
def test_covered(original, text, covered):
    assert cover(original, text) == covered.split("|")


@check_each_row("original, text", LEFT)
def test_other_words_stay(original, text):
    assert cover(original, text) == []


SIGNS = st.sampled_from([*"abcäöß王伟ии12 .-\u00ad\u0301مع\nŁ", "'"])


@settings(deadline=None, max_examples=200)
@given(st.text(SIGNS, min_size=2, max_size=8), st.text(SIGNS, max_size=12), st.text(SIGNS, max_size=12))
@example("1....1", "", "")
@example("1.\u00ad\u00ad\u00ad1", "", "")
def test_a_surface_that_stands_by_itself_never_stays(surface, before, after):
    if sum(map(str.isalnum, surface)) < 2:
        return
    text = f"{surface}\n\n\n\n{before}   \n {surface} \n   {after}"
    start = len(surface) + 4 + len(before) + 5
    left = set(range(start, start + len(surface)))
    found = find_repeats(text, [(0, len(surface))])
    for a, b in found:
        left -= set(range(a, b))
    assert list(found) == sorted(found)
    words = "".join(text[i] for i in sorted(left))
    assert not any(c.isalnum() for c in words)


def test_work_grows_with_the_text_not_with_its_square():
    def calls(n):
        text = "Connor Müller 12 34 56 " + "Connexion muel 1 23 4 aaaaaaaa " * n
        count = 0

        def tick(frame, event, arg):
            nonlocal count
            count += 1

        sys.setprofile(tick)
        try:
            list(find_repeats(text, [(0, 6), (7, 13), (14, 22)]))
        finally:
            sys.setprofile(None)
        return count

    assert calls(400) < 5 * calls(100)
