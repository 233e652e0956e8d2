import json
import re

import pytest

from allonym.errors import PolicyError, UnknownNameError
from allonym.llm.answers import parse_answer
from allonym.llm.templates import build_messages, read_prompt
from allonym.registry import LLM_PROMPT_PARTS, LLM_PROMPTS


@pytest.mark.parametrize("name", LLM_PROMPTS)
def test_every_prompt_has_all_parts_and_an_example_that_fits(name):
    parts = read_prompt(name)
    assert tuple(sorted(parts)) == tuple(sorted(LLM_PROMPT_PARTS))
    assert all(f"{{{slot}}}" in parts["user"] + parts["system"] for slot in LLM_PROMPTS[name])
    example = parse_answer(parts["answer"])
    assert example is not None and json.loads(parts["answer"]) == example
    (key,) = example
    assert key == {"decode": "spans", "summarise": "summary", "rewrite": "phrases"}.get(name, "entities")
    if name in ("tags", "names"):
        asked = re.findall(r"^(\w+): [A-Z]", parts["example"], re.MULTILINE)
        assert list(example[key]) == asked


def test_what_fills_a_prompt_is_not_filled_again():
    made = build_messages("tags", {}, text="{entities} {text}", entities="{known}", known="{language}", language="xx")
    assert [role for role, _ in made] == ["system", "user", "assistant", "user"]
    assert "{entities} {text}" in made[-1][1] and "{known}" in made[-1][1] and "{language}" in made[-1][1]
    assert "(xx)" in made[0][1]
    assert build_messages("tags", {}, text="\ud800")[-1][1].startswith("Text:\n?")


def test_a_second_time_says_so():
    once, again = (build_messages("detect", {}, again=flag, text="x") for flag in (False, True))
    assert again[-1][1] == f"{once[-1][1]}\n\n{read_prompt('detect')['again'].strip()}"
    assert again[:-1] == once[:-1]


def test_parts_of_a_policy_take_the_place_of_ours():
    made = build_messages("names", {"names": {"user": "[{entities}]", "example": ""}}, entities="a")
    assert [role for role, _ in made] == ["system", "user"]
    assert made[-1][1] == "[a]"
    assert made[0][1].startswith("Change the following named entities")


# The table [llm] of a policy


@pytest.mark.parametrize(
    ("line", "error", "match"),
    [
        ("url = 3", PolicyError, r"llm\.url must be a string"),
        ("timeouts = 3", UnknownNameError, "timeout"),
        ('timeout = "long"', PolicyError, r"llm\.timeout must be a number"),
        ("timeout = true", PolicyError, r"llm\.timeout must be a number"),
        ("temperature = nan", PolicyError, r"llm\.temperature must be finite, got nan"),
        ("timeout = inf", PolicyError, r"llm\.timeout must be from 0 to 100000, got inf"),
        ("retries = -1", PolicyError, r"llm\.retries must be 0 or more"),
        ("concurrency = 0", PolicyError, r"llm\.concurrency must be 1 or more"),
        ('json_mode = "yaml"', UnknownNameError, "JSON mode 'yaml'"),
        ("cache = 3", PolicyError, r"llm\.cache must be a string"),
        ("prompts = 3", PolicyError, r"llm\.prompts must be a table"),
        ("prompts = { tag = {} }", UnknownNameError, "did you mean: tags"),
        ('prompts.tags = { users = "" }', UnknownNameError, "did you mean: user"),
        ("prompts.tags = { system = 3 }", PolicyError, r"prompts\.tags\.system must be a string, got int"),
        ('prompts.tags = { user = "text" }', PolicyError, r"must be a string that contains \{entities\}"),
        ('prompts.decode = { user = "{entities}" }', PolicyError, r"must be a string that contains \{text\}"),
    ],
)
def test_a_table_that_is_wrong(tmp_path, line, error, match):
    from allonym.policy import Policy

    path = tmp_path / "p.toml"
    path.write_text(f'extends = "default"\n[llm]\n{line}\n', encoding="utf-8")
    with pytest.raises(error, match=match):
        Policy.load(path)


def test_a_table_is_extended_crosses_processes_and_counts(tmp_path):
    import pickle

    from allonym.policy import Policy
    from allonym.registry import LlmTable
    from allonym.settings import list_defaults

    (tmp_path / "base.toml").write_text(
        'extends = "default"\n[llm]\nurl = "http://a/v1"\ntimeout = 3\ncache = "kept"\n'
        '[llm.prompts.names]\nsystem = "short"\n',
        encoding="utf-8",
    )
    child = tmp_path / "child.toml"
    child.write_text('extends = "base.toml"\n[llm]\nmodel = "m"\n', encoding="utf-8")
    policy = Policy.load(child)
    assert set(policy.llm) == set(list_defaults(LlmTable))
    assert (policy.llm["url"], policy.llm["model"], policy.llm["timeout"]) == ("http://a/v1", "m", 3.0)
    assert policy.llm["cache"] == str(tmp_path / "kept")
    back = pickle.loads(pickle.dumps(policy))
    assert back.llm == policy.llm
    assert back.fingerprint() == policy.fingerprint() != Policy.load(tmp_path / "base.toml").fingerprint()
    assert Policy.load("default").llm == list_defaults(LlmTable)
    with pytest.raises(TypeError):
        policy.llm["url"] = "http://b/v1"


def test_every_key_is_explained():
    from allonym.registry import LlmTable
    from allonym.settings import list_settings

    assert all(len(setting.says) > 10 for setting in list_settings(LlmTable))
