"""allonym.replace.syntax: quotes around replacements in data and code."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import allonym
from allonym.detection.technical import find_technical_passages
from allonym.document import Document
from allonym.plan import Edit, apply_edits
from allonym.replace.syntax import is_yaml, keep_syntax
from allonym.vault import Vault

YAML_HEAD = "contacts:\n  - id: 1\n    role: clerk\n"
PROSE = "we do not know who wrote all of this text to us in the long and cold night"

CASES = [
    # text with one mark, replacement, output
    ('{"phone": «4158832947», "n": 1}', "[P]", '{"phone": "[P]", "n": 1}'),
    ('{"phone": «4158832947», "n": 1}', "2025550111", '{"phone": 2025550111, "n": 1}'),
    ('{"phone": "«4158832947»"}', "[P]", '{"phone": "[P]"}'),
    ('{"name": "«Ada»"}', '<P "8F">', '{"name": "<P \\"8F\\">"}'),
    ('{"phone": «4158832947»}', '<P "8F">', '{"phone": "<P \\"8F\\">"}'),
    ('Look at this: "phone": «4158832947», it fails', "[P]", 'Look at this: "phone": "[P]", it fails'),
    ("The phone is (4158832947), «4158832947».", "[P]", "The phone is (4158832947), [P]."),
    (YAML_HEAD + "    name: «Ada» Brook # the owner\n", "[P]", YAML_HEAD + '    name: "[P] Brook" # the owner\n'),
    (YAML_HEAD + "    name: Miss «Ada»\n", "[P]", YAML_HEAD + "    name: Miss [P]\n"),
    (YAML_HEAD + "    name: «Ada»\n      Brook\n", "[P]", YAML_HEAD + '    name: "[P]\n      Brook"\n'),
    (YAML_HEAD + "    name: «Ada»\n", "Eve", YAML_HEAD + "    name: Eve\n"),
    (YAML_HEAD + "    name: «Ada»\n", "Eve: x", YAML_HEAD + '    name: "Eve: x"\n'),
    (YAML_HEAD + '    name: «Ada» isn\'t "in"\n', "[P]", YAML_HEAD + "    name: '[P] isn''t \"in\"'\n"),
    (YAML_HEAD + "    note: |\n      «Ada» is in\n", "[P]", YAML_HEAD + "    note: |\n      [P] is in\n"),
    (YAML_HEAD + "    who: [«Ada», Eve]\n", "[P]", YAML_HEAD + '    who: ["[P]", Eve]\n'),
    (YAML_HEAD + "    who: {lead: «Ada» Brook}\n", "[P]", YAML_HEAD + '    who: {lead: "[P] Brook"}\n'),
    (YAML_HEAD + "    who: '«Ada»'\n", "O'Dea", YAML_HEAD + "    who: 'O''Dea'\n"),
    ("limits:\n  «ada»: 1\n  guest: 2\n", "[P]", 'limits:\n  "[P]": 1\n  guest: 2\n'),
    ('[owner]\nname = "x"\nphone = «4158832947»\n', "[P]", '[owner]\nname = "x"\nphone = "[P]"\n'),
    ("[owner]\nname = Ada Brook\nphone = «4158832947»\nkey=(a\n", "[P]", None),
    ("SELECT a FROM b WHERE phone = «4158832947»;", "[P]", "SELECT a FROM b WHERE phone = '[P]';"),
    ("SELECT a FROM b WHERE name = '«Ada»';", "O'Dea", "SELECT a FROM b WHERE name = 'O''Dea';"),
    ("def f(x):\n    return g(x, '«Ada»')\n", "O'Dea", "def f(x):\n    return g(x, 'O’Dea')\n"),
    ("def f(x):\n    return g(x, to=«4158832947»)\n", "[P]", 'def f(x):\n    return g(x, to="[P]")\n'),
    (
        "def send(user: User, *, days: int = 3) -> None:\n    # Ask «Ada Brook»: she knows.\n    post(user, days)\n",
        "[P]",
        "def send(user: User, *, days: int = 3) -> None:\n    # Ask [P]: she knows.\n    post(user, days)\n",
    ),
    (
        "2023-04-11T08:16:03Z INFO web: ready\n2023-04-11T08:16:03Z ERROR mail: no answer from «Ada»: timeout\n",
        "[P]",
        "2023-04-11T08:16:03Z INFO web: ready\n2023-04-11T08:16:03Z ERROR mail: no answer from [P]: timeout\n",
    ),
    ("def f(x):  # call «4158832947»\n    return g(x)\n", "[P]", "def f(x):  # call [P]\n    return g(x)\n"),
    ("PHONE=«4158832947»\nexport KEY_ID=a\n", "[P]", "PHONE=[P]\nexport KEY_ID=a\n"),
    ("PHONE=«4158832947»\nexport KEY_ID=a\n", "<P 1>", 'PHONE="<P 1>"\nexport KEY_ID=a\n'),
    ('```json\n{\n  "phone": «4158832947»\n}\n```\n', "[P]", '```json\n{\n  "phone": "[P]"\n}\n```\n'),
    ("```yaml\n{who: «Ada», n: 1}\n```\n", "[P]", '```yaml\n{who: "[P]", n: 1}\n```\n'),
    (
        "```yaml\n{who: «Ada»\n  Brook,  # x\n  n: 1}\n```\n",
        "[P]",
        '```yaml\n{who: "[P]\n  Brook",  # x\n  n: 1}\n```\n',
    ),
    (YAML_HEAD + "n: '«Ada»: no'\n", "[P]", YAML_HEAD + "n: '[P]: no'\n"),
    (
        f'```json\n{{"a": "{PROSE}", "n": «4158832947»}}\n```\n',
        "[P]",
        f'```json\n{{"a": "{PROSE}", "n": "[P]"}}\n```\n',
    ),
    (f'```json\n{{"a": "{PROSE} «Ada»"}}\n```\n', '"A"', f'```json\n{{"a": "{PROSE} \\"A\\""}}\n```\n'),
    ("team:\n  - «Ada»\n  - Eve\n", "[P]", 'team:\n  - "[P]"\n  - Eve\n'),
    ("team:\n  - - «Ada»\n    - Eve\n  - Bo\n", "[P]", 'team:\n  - - "[P]"\n    - Eve\n  - Bo\n'),
    (YAML_HEAD + "  -\n    name: «Ada»\n    id: 2\n", "[P]", YAML_HEAD + '  -\n    name: "[P]"\n    id: 2\n'),
    ("team:\n  lead:\n    «Ada»\n  aide: Eve\n", "[P]", 'team:\n  lead:\n    "[P]"\n  aide: Eve\n'),
    (YAML_HEAD + "    its owner  : «Ada»\n", "[P]", YAML_HEAD + '    its owner  : "[P]"\n'),
    (YAML_HEAD + '    who: [a, "b\n    owner: «Ada»\n', "[P]", None),
    ('{"a": [1,\n  «4158832947» \n \n], "b": 2}', "[P]", '{"a": [1,\n  "[P]" \n \n], "b": 2}'),
    ("```yaml\nname: «Ada»\n```\n", "[P]", '```yaml\nname: "[P]"\n```\n'),
    ('Send `{"phone": «4158832947»}` again', "[P]", 'Send `{"phone": "[P]"}` again'),
    (
        "2024-01-02 10:11:12 ERROR call(«4158832947»)\n2024-01-02 10:11:13 INFO done\n",
        "[P]",
        "2024-01-02 10:11:12 ERROR call([P])\n2024-01-02 10:11:13 INFO done\n",
    ),
]


@pytest.mark.parametrize(("marked", "replacement", "expected"), CASES)
def test_quotes_stand_where_the_grammar_needs_them(marked, replacement, expected):
    before, _, rest = marked.partition("«")
    original, _, after = rest.partition("»")
    text = before + original + after
    edit = Edit(len(before), len(before) + len(original), replacement, "PERSON", 1, "tag@1", original)
    edits = keep_syntax(Document("", text), [edit])
    expected = before + replacement + after if expected is None else expected
    assert apply_edits(text, edits) == expected


def test_what_the_key_alone_can_undo_gets_no_quotes():
    text = '{"phone": 4158832947, "n": 1}'
    edit = Edit(10, 20, "[P e1x]", "PHONE_NUMBER", 1, "encrypt@1")
    assert keep_syntax(Document("", text), [edit]) == [edit]


def test_a_passage_that_reaches_over_parts_gets_no_quotes():
    text = "def f(x):\n    return g(x, to=4158832947)\n"
    assert find_technical_passages(text) == ((0, len(text)),)
    edit = Edit(text.index("415"), text.index("415") + 10, "[P]", "PHONE_NUMBER", 1, "tag@1")
    halves = Document("", text, parts=((0, 9), (10, len(text))))
    assert keep_syntax(halves, [edit]) == [edit]
    assert len(keep_syntax(Document("", text, parts=((0, len(text)),)), [edit])) == 3


@pytest.mark.parametrize(
    "code", ["a: 1\nb:\n  - c\n", "- x: 1\n  y: {a: b}\n", "---\nk: |\n  anything {\n", "k: [a,\n  b]\n"]
)
def test_yaml_is_recognised(code):
    assert is_yaml(code)
    yaml.safe_load(code)


@pytest.mark.parametrize(
    "code", ["just words\n", '"a": 1,\n"b": 2\n', "a: b;\n", "if x:\n    y()\n", "k: [a\n", "{\n  a: 1\n}\n"]
)
def test_other_text_is_no_yaml(code):
    assert not is_yaml(code)


VALUES = st.sampled_from(
    [
        "Ada Brook",
        "it's Ada Brook",
        "4158832947",
        "Ada Brook: yes",
        "ada@brook.example",
        '"Ada Brook"',
        "'x'",
        "7",
        "a b",
    ]
)


@given(st.lists(VALUES, min_size=1, max_size=6), st.integers(0, 3))
def test_data_stay_readable_and_come_back(values, style):
    rows = {f"phone_{i}": int(v) if v.isdigit() else v for i, v in enumerate(values)}
    text = (
        json.dumps(rows),
        json.dumps([rows, rows], indent=2),
        yaml.safe_dump({"contacts": [rows]}, sort_keys=False),
        "[owner]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in rows.items()),
    )[style]
    read = (json.loads, json.loads, yaml.safe_load, tomllib.loads)[style]
    result = allonym.anonymize(text)
    read(result.text)
    assert allonym.restore(result.text, plan=result.plan).text == text


def test_the_vault_brings_back_the_text_without_the_quotes(tmp_path):
    text = '{"name": "Ada Brook", "phone": 4158832947, "id": 7}'
    with Vault.create(tmp_path / "vault", "a secret of the test") as vault:
        result = allonym.anonymize(text, vault=vault)
        assert json.loads(result.text)["phone"].startswith("[PHONE")
        restored = allonym.restore(result.text, vault=vault)
        assert restored.text == text and restored.unknown == 0 and restored.restored == 2
        answer = allonym.restore(f"As you asked: {result.text} is right.", vault=vault)
        assert '"phone": "4158832947"' in answer.text
