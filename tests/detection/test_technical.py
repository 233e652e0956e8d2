"""Technical passages: where they are, and what counts in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import check_each_row

import allonym
from allonym.detection.technical import (
    LITERAL,
    drop_technical_noise,
    find_technical_passages,
    hide_unclosed_marks,
    is_name_word,
)
from allonym.document import Span
from allonym.labels import TAXONOMY
from allonym.policy import Policy

PYTHON = 'def load(path):\n    """Read a file."""\n    with open(path) as file:\n        return file.read()\n'
LOG = "2024-05-02 08:14:07,331 INFO  [main] app.Server - started on port 8080\n"


@check_each_row(
    "text, passages",
    [
        (PYTHON, [PYTHON]),
        (f"Hello all,\n\nwhy is this slow?\n\n{PYTHON}\nRegards\nAda", [PYTHON]),
        (f'"""A docstring\nthat comes first."""\n\nimport os\n\n{PYTHON}', None),
        ("/*\n * Licence\n */\n\n#include <stdio.h>\nint main(void) {\n  return 0;\n}\n", None),
        (LOG, None),
        (f"It said\n{LOG}and stopped.", [LOG]),
        ('{"id": 17, "tags": ["red", "blue"]}', None),
        ("image: nginx\nports:\n  - containerPort: 80\n    protocol: TCP\n", None),
        ("SELECT name FROM people\nWHERE id = 3;\n", None),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    run()\nValueError: no\n', None),
        ("What does `git rebase -i` do?", ["`git rebase -i`"]),
        ("```sh\nmake all\n```\nThen wait.", ["```sh\nmake all\n```"]),
        ("<p>Ada <b>Brook</b></p>", ["<p>", "<b>", "</b></p>"]),
        ("PORT=3000\nSESSION_SECRET=f8Q2vLw9\n", None),
    ],
)
def test_code_logs_and_data_are_passages(text, passages):
    found = [text[a:b] for a, b in find_technical_passages(text)]
    assert found == ([text] if passages is None else passages)


@check_each_row(
    "text",
    [
        "Dear Ms Brook,\n\nthe rent (see annex A) is due; please pay: EUR 500.\n\nRegards",
        "Name: Ada Brook\nPhone: 12\nTown: Leeds\n",
        "name: Ada Brook\nphone: 12\ntown: Leeds\n",
        "Ann: Hello {laughs}\nBob: Hi {laughs}\nAnn: Well {pause}\nBob: Yes {pause}\n",
        '(a) the Seller;\n(b) the Buyer (the "Buyer"); and\n(c) the Agent;\n',
        "the film 's = plot is about a man who = loves her and = dies in the end .\nit = is a good film .\n",
        "He called it `the best pub' in town, and a `dump' in private.",
        "2024-05-02 08:14:07 Ada: hello\n2024-05-02 08:15:00 Bob: hi\n",
        "<laughs> I was in Leeds. <pause> Then I left.",
        "```\nDear Ada,\nI am in Leeds.\n```",
        "```text\nDear Ada,\nI am in Leeds.\n```",
        "- Ada Brook\n- Bob Roy (Leeds)\n- Cy Day\n",
        "From: Ada Brook <ada@corp.example>\nTo: Bob Roy <bob@corp.example>\nSubject: rent\n\nHello Bob,",
    ],
)
def test_prose_forms_and_transcripts_are_none(text):
    assert find_technical_passages(text) == ()


def test_settings_in_comments_are_a_passage():
    text = '# The issuer; by default none.\n# oidc_issuer = ""\n# max_upload = 20\n'
    assert find_technical_passages(text) == ((0, len(text)),)


def test_a_login_of_code_counts_in_strings_alone():
    text = 'int handle = 3;\nvoid store(int handle, off64_t size) {\n  login("qrst77");\n}\n'
    spans = allonym.detect(text, "default")
    assert [text[s.start : s.end] for s in spans if s.label == "USER_NAME"] == ["qrst77"]


def test_an_address_that_counts_beside_a_passage_counts_in_it():
    text = 'Ask at http://www.gnu.org/copyleft/ first.\n\n```py\nurl = "http://www.gnu.org/copyleft/"\n```\n'
    assert sum(s.label == "URL" for s in allonym.detect(text, "default")) in (0, 2)


def test_a_long_string_is_prose():
    note = "She has lived in Leeds since the spring and works as a nurse in the clinic there."
    text = f'{{"id": 17, "note": "{note}"}}'
    assert [text[a:b] for a, b in find_technical_passages(text)] == ['{"id": 17, "note": "', '"}']


@check_each_row(
    "line, label, surface, counts",
    [
        ('to = "user@example.com"', "EMAIL_ADDRESS", "user@example.com", False),
        ('to = "ada.lovelace@corp.example"', "EMAIL_ADDRESS", "ada.lovelace@corp.example", True),
        ('to = "user@corp-brook.com"', "EMAIL_ADDRESS", "user@corp-brook.com", True),
        ("url = 'git@github.com:acme/x.git'", "EMAIL_ADDRESS", "git@github.com", False),
        ('api_key = "YOUR_API_KEY"', "API_KEY", "YOUR_API_KEY", False),
        ("api_key = settings.api_key", "API_KEY", "settings.api_key", False),
        ('api_key = "settings77x9Kq2"', "API_KEY", "settings77x9Kq2", True),
        ('api_key = "9f86d081884c7d659a2feaa0c55ad015"', "API_KEY", "9f86d081884c7d659a2feaa0c55ad015", True),
        (
            "jwt=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0",
            "AUTH_TOKEN",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0",
            True,
        ),
        ('phone = "212-555-0142"', "PHONE_NUMBER", "212-555-0142", False),
        ('phone = "415-883-2947"', "PHONE_NUMBER", "415-883-2947", True),
        ('key = "3f2b8c1e-9d4a-4f7b-8a6c-1e2d3c4b5a69"', "UUID", "3f2b8c1e-9d4a-4f7b-8a6c-1e2d3c4b5a69", False),
        ('host = "127.0.0.1"', "IP_ADDRESS", "127.0.0.1", False),
        ("words = lines[1::2] + lines[0::2]", "IP_ADDRESS", "1::2", False),
        ("from shop import Decision\n\n\n@click.command()", "EMAIL_ADDRESS", "@click.command", False),
        ('host = "81.187.44.203"', "IP_ADDRESS", "81.187.44.203", True),
        ('url = "https://docs.python.org/3/"', "URL", "https://docs.python.org/3/", False),
        ('url = "https://ada-brook.com/cv"', "URL", "https://ada-brook.com/cv", True),
        ('since = "2024-05-02"', "DATE", "2024-05-02", False),
        ('born = "1961-03-04"', "DATE_OF_BIRTH", "1961-03-04", True),
        ('role = "editor"', "OCCUPATION", "editor", False),
        ("x = Outbox()  # all", "PERSON", "Outbox", False),
        ("x = 1  # ask Marisol first", "PERSON", "Marisol", True),
        ("x = Marisol(1)", "PERSON", "Marisol", False),
        ('x = ["Ada Brook"]', "PERSON", "Ada Brook", True),
        ('x = ["ada brook"]', "PERSON", "ada brook", True),
        ('x = ["Hello World"]', "PERSON", "Hello World", False),
        ('x = ["Jordan McAllister-O\'Brien"]', "PERSON", "Jordan McAllister-O'Brien", True),
        ('x = ["Calderwick Foods"]', "ORGANIZATION", "Calderwick Foods", True),
    ],
)
def test_what_counts_in_code(line, label, surface, counts):
    text = f"import os\n{line}\nprint(x)\n"
    start = text.index(surface)
    span = Span(
        start,
        start + len(surface),
        label,
        0.9,
        "tagger" if label in ("PERSON", "ORGANIZATION", "OCCUPATION") else "rules:x",
    )
    assert drop_technical_noise(text, [span], TAXONOMY) == [span] * counts


def test_a_name_is_cut_to_its_string():
    text = 'people = [\n    "Ada Brook", "nurse",\n]\n'
    start = text.index("Ada")
    span = Span(start, text.index("nurse") + 5, "PERSON", 0.9, "tagger")
    [cut] = drop_technical_noise(text, [span], TAXONOMY)
    assert text[cut.start : cut.end] == "Ada Brook"


def test_terms_of_the_user_count_everywhere():
    policy = Policy.load("default").changed({"dictionary": {"TERM": ["Outbox"]}}, "t")
    text = "import os\nbox = Outbox()\nprint(box)\n"
    assert [text[s.start : s.end] for s in allonym.detect(text, policy)] == ["Outbox"]


def test_technical_text_is_searched_like_prose_where_the_policy_says_so():
    text = "import os\nsince = '2024-05-02'\nprint(since)\n"
    base = Policy.load("default").with_(detectors=("rules",))
    assert not allonym.detect(text, base)
    assert [s.label for s in allonym.detect(text, base.changed({"detect": {"technical": False}}, "t"))] == ["DATE"]


def test_an_explanation_says_that_the_place_is_technical():
    text = "import os\nsince = '2024-05-02'\nprint(since)\n"
    outcomes = {d.outcome for d in allonym.explain(text, Policy.load("default").with_(detectors=("rules",)))}
    assert "technical" in outcomes


@pytest.mark.parametrize("word", ["Ada", "O'Brien", "McAllister", "J.", "Smith-Jones", "Ünal"])
def test_name_words(word):
    assert is_name_word(word)


@pytest.mark.parametrize("word", ["ada", "getName", "HTTPServer", "x1", "my_name", "LogReader", "..."])
def test_no_name_words(word):
    assert not is_name_word(word)


@pytest.mark.parametrize("sign", ["=", "(", "{", "<a ", "`", '"', "'", "/*", "# ", "\t", "a.", "<", "```py\n"])
def test_a_long_line_takes_linear_time(sign):
    find_technical_passages("x = 1\n" + sign * 200_000 + "\nx = 1\n")


def test_time_stamps_of_a_log_count_only_where_dates_move():
    text = """2024-01-19 08:15:22.118734 INFO [auth] user=mvandijk logged in from 198.51.100.23
2024-01-19 08:15:23.004120 INFO session 7f3a9c opened for Mirjam van Dijk
2024-01-19 08:16:40.551902 WARN mail to mirjam.vandijk@bounce.example failed
2024-01-19 08:17:02.000391 INFO retry scheduled"""
    assert find_technical_passages(text)
    counts = [
        sum(span.label in ("DATE", "DATE_TIME") for span in allonym.detect(text, policy))
        for policy in ("chat", "pseudonyms")
    ]
    assert counts == [0, 4]


def test_fenced_blocks_name_their_language():
    text = "```python\nx = 1\n```\nprose\n```\nprose too\n```\n```text\nand here\n```\n```go\nx := 1\n"
    assert [text[a:b] for a, b in find_technical_passages(text)] == ["```python\nx = 1\n```"]


def test_a_name_behind_a_word_in_small_letters_counts():
    text = "x = 1\ny = 2  # fixed for customer Lindqvist\nz = 3\n"
    start = text.index("customer")
    (finding,) = drop_technical_noise(text, [Span(start, start + 18, "PERSON", 0.9, "tagger")], TAXONOMY)
    assert text[finding.start : finding.end] == "Lindqvist"


@given(
    st.lists(st.sampled_from(["\\", '"', "'", '"""', "`", "#", "//", "/*", "a", " ", "\n"]), max_size=30).map("".join)
)
def test_hidden_marks_change_no_string_of_code(text):
    hidden = hide_unclosed_marks(text)
    assert [m.span() for m in LITERAL.finditer(hidden)] == [m.span() for m in LITERAL.finditer(text)]


def test_marks_that_begin_no_string_are_hidden():
    assert hide_unclosed_marks('f("a", "b\\"c\\"\n"d\\"e") \\"') == 'f("a", "b\\.c\\.\n"d\\"e") \\.'
