# ruff: noqa: F811  # fixtures
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.llm import server as at
from tests.llm.fixtures import KEY, asking, server  # noqa: F401
from tests.rows import check_each_row

import allonym
import allonym.pipeline
from allonym.document import Document, Entity, Span
from allonym.errors import EndpointError, UsageError
from allonym.llm import Reply
from allonym.policy import Policy
from allonym.protocol import Setting, Wanted
from allonym.replace import llm as module
from allonym.replace import proposals
from allonym.replace.cast import find_plain_words

pytest.importorskip("httpx", reason="httpx is not installed")

TEXT = "Zaphrandel Quorby lives in Lisbon. Ms Quorby flew to Madrid; Lisbon is far, says Zaphrandel."
LISTS = """
[dictionary]
PERSON = ["Zaphrandel Quorby", "Ms Quorby", "Zaphrandel"]
CITY = ["Lisbon", "Madrid", "Vienna"]
"""
CITIES = "By train from Lisbon to Madrid, then Vienna. Lisbon was cold."
ORIGINALS = ("Zaphrandel", "Quorby", "Lisbon", "Madrid", "Vienna")


def run(policy, text=TEXT, **more):
    return allonym.anonymize(text, policy, key=KEY, **more)


def sent(server):
    return b"".join(server.seen).decode().lower()


def survives(text):
    return [o for o in ORIGINALS if o.lower() in text.lower()]


def outside(text, plan):
    """The text without what the edits replaced, and how the result must begin and end around it."""
    pieces, at_ = [], 0
    for edit in plan.edits:
        pieces += [re.escape(text[at_ : edit.start]), ".*?"]
        at_ = edit.end
    return re.compile("".join([*pieces, re.escape(text[at_:])]), re.DOTALL)


def test_all_mentions_follow_the_one_fictional_name(server, asking):
    made = run(asking(rest=LISTS))
    assert made.text == "Wilma Tarn lives in Norhaven. Ms Tarn flew to Eldmouth; Norhaven is far, says Wilma."
    assert made.plan.notes == ("llm: 1 requests, 100 prompt tokens, 20 completion tokens",)
    assert allonym.restore(made.text, plan=made.plan).text == TEXT


def test_the_text_is_sent_with_tags_and_never_with_an_original(server, asking):
    text = f"{TEXT} The quorby-type; quorbys. Write to zaphrandel.q@example.org in LISBON. May we?"
    run(asking(rest=LISTS), text)
    assert not survives(sent(server))
    user = server.bodies[0]["messages"][-1]["content"]
    assert re.search(r'<PERSON "([0-9A-F]{8})"> lives in <CITY "[0-9A-F]{8}">\. <PERSON "\1"> flew', user)
    assert "[...]" in user and "May we?" in user
    schema = server.bodies[0]["response_format"]["json_schema"]["schema"]["properties"]["entities"]
    assert set(schema["properties"]) == set(schema["required"]) == set(at.asked(server.bodies[0]))


def test_codes_of_two_documents_cannot_be_linked(server, asking):
    policy = asking(rest=LISTS)
    run(policy, "Lisbon.")
    run(policy, "Lisbon!")
    first, second = (set(at.asked(body)) for body in server.bodies)
    assert not first & second
    run(policy, "Lisbon.")
    assert set(at.asked(server.bodies[2])) == first


def wanted(text, name, label, number, options=None):
    spans = tuple(Span(m.start(), m.end(), label) for m in re.finditer(name, text))
    return Wanted(
        Entity(name.lower(), label, spans), options or {}, number, label, f"[{label}_{number}]", (name,) * len(spans)
    )


def test_what_other_operators_replace_is_covered(server, asking):
    policy = asking(rest='[rules.PERSON]\noperator = "suppress"\n' + LISTS)
    text = "Quorby went to Lisbon. A quorby."
    setting = Setting(Document("", text), policy, KEY, places=((0, 6), (15, 21)))
    module.make_renderers([wanted(text, "Lisbon", "CITY", 1)], setting, [])
    (user,) = [body["messages"][-1]["content"] for body in server.bodies]
    assert re.search(r'^\[\.\.\.\] went to <CITY "[0-9A-F]{8}">\. A \[\.\.\.\]\.$', user, re.MULTILINE)


MISSED = {
    "王伟": "说：王伟在上海。",
    "李小龍": "我見李小龍。",
    "Li": "Li went home, lI too",
    "Bob": "then bob left",
    "12-34": "12-34, 12 34, 1234",
    "AB 12 34 56": "12 34 56, AB123456, 123.456",
    "47": "the 47",
    "Connor": "C o n n o r, C-o-n-n-o-r, CONNOR, sconnor7@mail.example, Con\u00adnor",
    "Müller": "Mueller, MULLER",
    "Groß": "Gross",
    "محمد": "ومحمد",
}


@pytest.mark.parametrize("name", MISSED)
def test_no_repeat_that_the_detector_missed_is_sent(server, asking, name):
    text = f"{name} came by.\nThey say: {MISSED[name]}. So it is."
    one = Wanted(
        Entity("k", "PERSON", (Span(0, len(name), "PERSON"),)), {}, 1, "PERSON", "[PERSON_1]", (text[: len(name)],)
    )
    module.make_renderers([one], Setting(Document("", text), asking(), KEY), [])
    assert server.bodies
    for body in server.bodies:
        user = body["messages"][-1]["content"]
        assert re.search(r'<PERSON "[0-9A-F]{8}"> came by\.\nThey say: ', user)
        told = user.partition("They say: ")[2].partition("So it is.")[0]
        assert not re.search(r"[^\W_]", re.sub(r"[说在上海我見]|then|the|went home|too|left|@?mail\.example", "", told))


def test_names_mode_sends_the_names_and_no_text(server, asking):
    def names(body):
        rows = at.LISTED.findall(body["messages"][-1]["content"])
        return json.dumps(
            {
                "entities": {
                    code: at.PEOPLE[0] if label == "PERSON" else at.PLACES[i] for i, (code, label) in enumerate(rows)
                }
            }
        )

    server.then = at.made(names)
    made = run(asking(rest=LISTS, options='mode = "names"'))
    assert not survives(made.text)
    assert "Wilma Tarn lives in" in made.text and "Ms Tarn" in made.text
    user = server.bodies[0]["messages"][-1]["content"]
    assert user == "E1: PERSON: Zaphrandel Quorby\nE2: CITY: Lisbon\nE3: CITY: Madrid"
    assert "flew" not in sent(server)


# Misbehaviour


def few(body):
    return json.dumps({"entities": dict(list(at.values(body, 4).items())[:1])})


def more(body):
    return json.dumps({"entities": {**at.values(body), "FFFFFFFF": "Lisbon", "note": "x"}, "text": "Lisbon"})


def wrapped(body):
    codes = at.values(body)
    return (
        "```json\n" + json.dumps({"entities": {f'<CITY "{code}">': value for code, value in codes.items()}}) + "\n```"
    )


def bare(body):
    return json.dumps(at.values(body))


def cut(body):
    return json.dumps({"entities": at.values(body, 4)})[:-8]


def constant(value):
    return lambda body: json.dumps({"entities": dict.fromkeys(at.asked(body), value)})


GOOD = [more, wrapped, bare]
MENDED = {
    "missing keys": at.made(few),
    "cut off": at.made(cut),
    "no JSON": at.answer("Here you are: Norhaven, Eldmouth"),
    "refusal": at.answer(None, refusal="I cannot do that"),
    "a list": at.answer('{"entities": ["Norhaven"]}'),
    "no strings": at.made(constant(3)),
    "nested": at.made(constant({"value": "Norhaven"})),
    "all the same": at.made(constant("Norhaven")),
    "an original": at.made(constant("Madrid")),
    "an original inside": at.made(constant("New Madrid Falls")),
    "an original's word grown": at.made(constant("Lisbonia")),
    "a word of the document": at.made(constant("Train Cold")),
    "empty": at.made(constant("  ")),
    "lines": at.made(constant("Nor\nhaven")),
    "a tag": at.made(constant('<CITY "0">')),
    "brackets": at.made(constant("[CITY_1]")),
    "control": at.made(constant("Nor\u0000haven")),
    "long": at.made(constant("Nor" * 40)),
    "placeholder": at.made(constant("N/A")),
    "signs": at.made(constant("---")),
    "mail": at.made(constant("nor@haven.example")),
}
FAILING = {
    "500": at.status(500),
    "429": at.status(429, Retry_After="1"),
    "400": at.status(400),
    "401": at.status(401),
    "dropped": at.dropped,
    "hung up": at.hung_up,
    "no completion": at.raw(b"{}"),
}


@pytest.mark.parametrize("good", GOOD, ids=lambda f: f.__name__)
def test_answers_that_will_do(server, asking, good):
    server.then = at.made(good)
    made = run(asking(rest=LISTS), CITIES)
    assert made.text == "By train from Norhaven to Eldmouth, then Castrow. Norhaven was cold."
    assert len(server.seen) == 1


@pytest.mark.parametrize("name", MENDED)
def test_what_is_missing_or_refused_is_asked_for_once_more(server, asking, name):
    server.first.append(MENDED[name])
    server.then = at.made(lambda body: json.dumps({"entities": at.values(body, 1)}))
    made = run(asking(rest=LISTS), CITIES)
    assert not survives(made.text)
    assert outside(CITIES, made.plan).fullmatch(made.text)
    first, second = server.bodies
    assert set(at.asked(second)) <= set(at.asked(first))
    assert "still missing or cannot be used" in second["messages"][-1]["content"]
    assert "Madrid" not in second["messages"][-1]["content"]
    assert not [n for n in made.plan.notes if "offline" in n]
    values = [e.replacement for e in made.plan.edits]
    assert values[0] == values[3] and len(set(values)) == 3
    assert {w for v in values for w in find_plain_words(v)} <= {
        w for p in (*at.PLACES, "Norhaven") for w in find_plain_words(p)
    }


@pytest.mark.parametrize("name", [*MENDED, *FAILING])
def test_what_stays_missing_gets_an_offline_pseudonym(server, asking, name):
    server.then = {**MENDED, **FAILING}[name]
    made = run(asking(rest=LISTS), CITIES)
    assert not survives(made.text)
    assert outside(CITIES, made.plan).fullmatch(made.text)
    values = [e.replacement for e in made.plan.edits]
    assert values[0] == values[3] and len(set(values)) == 3
    (note,) = [n for n in made.plan.notes if "offline" in n]
    assert re.match(r"llm: [123] of 3 entities got an offline pseudonym", note)
    assert not survives(" ".join(made.plan.notes))
    assert not [v for v in values if not v.strip() or "\n" in v or "<" in v]


@pytest.mark.parametrize("behaviour", [at.silent, at.dripping], ids=["silent", "dripping"])
def test_an_endpoint_that_takes_too_long(server, asking, behaviour):
    server.then = behaviour
    policy = asking("", rest=LISTS)
    policy = policy.with_(llm={**policy.llm, "timeout": 0.2, "retries": 0})
    made = run(policy, CITIES)
    assert not survives(made.text)
    assert "within 0.2 s" in made.plan.notes[-1]


@pytest.mark.parametrize("name", [*MENDED, *FAILING])
def test_a_rule_may_insist(server, asking, name):
    server.then = {**MENDED, **FAILING}[name]
    with pytest.raises(EndpointError) as caught:
        run(asking(rest=LISTS, options='on_failure = "fail"'), CITIES)
    assert not survives(str(caught.value))


def test_slow_chunks(server, asking):
    server.then = at.chunked
    assert run(asking(rest=LISTS), CITIES).text.startswith("By train from Norhaven")


def test_no_endpoint_no_run():
    policy = Policy.load("default").with_(detectors=("rules",), default=allonym.policy.Rule("llm"))
    with pytest.raises(UsageError, match=r"llm\.url is required"):
        run(policy, "Mail a@example.com")
    assert run(policy, "Nothing here").text == "Nothing here"


# Long texts, cache, vault


def test_what_an_earlier_window_settled_is_told_to_the_later_ones(server, asking, monkeypatch):
    monkeypatch.setattr(module, "WORDS", 12)
    text = "From Lisbon it is a long way by any train that goes there. In Lisbon nobody goes to Madrid on foot any more, and nobody at all goes on to Vienna."
    server.first.extend(at.made(lambda body, n=n: json.dumps({"entities": at.values(body, n)})) for n in range(3))
    made = run(asking(rest=LISTS), text)
    assert len(server.seen) == 3
    assert [len(at.asked(body)) for body in server.bodies] == [1, 1, 1]
    assert "Already chosen" not in server.bodies[0]["messages"][-1]["content"]
    assert re.search(r"Already chosen:\n[0-9A-F]{8}: Norhaven\n", server.bodies[1]["messages"][-1]["content"])
    assert made.text.count("Norhaven") == 2 and not survives(made.text)


def test_many_entities_are_asked_for_in_portions(server, asking, monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    made = run(asking(rest=LISTS), CITIES)
    assert [len(at.asked(b)) for b in server.bodies[:2]] == [2, 1]
    assert not survives(made.text)


def test_an_answer_that_is_kept_needs_no_endpoint(server, asking, tmp_path):
    policy = asking('cache = "kept"', rest=LISTS)
    first = run(policy)
    assert (tmp_path / "kept").is_dir()
    server.then = at.status(500)
    again = run(policy)
    assert (again.text, again.plan) == (first.text, first.plan)
    assert len(server.seen) == 1
    for path in (tmp_path / "kept").rglob("*.bin"):
        assert not [w for w in (b"Wilma", b"Zaph", b"PERSON", b"lives") if w in path.read_bytes()]


class Pages:
    """A vault's book in memory."""

    unit = ""

    def __init__(self):
        self.kinds, self.kept = {}, []

    def recall(self, kind, key):
        return self.kinds.get(kind, {}).get(key)

    def enter(self, kind, key, value):
        if value in self.kinds.setdefault(kind, {}).values():
            return False
        self.kinds[kind][key] = value
        return True

    def number(self, kind):
        self.kinds.setdefault(kind, {})[f"number {len(self.kinds.get(kind, {}))}"] = ""
        return len(self.kinds[kind])

    def remember(self, *row):
        self.kept.append(row)


def planned(policy, text, book):
    found = allonym.detect(text, policy)
    document = Document("", text)
    linked = allonym.pipeline.link(document, found, policy.taxonomy)
    return allonym.pipeline.make_plan(document, linked.entities, policy, key=KEY, book=book)


def test_a_vault_keeps_names_across_documents(server, asking):
    policy, book = asking(rest=LISTS), Pages()
    first = planned(policy, "Lisbon, then Madrid.", book)
    second = planned(policy, "Vienna, then Lisbon, then Madrid.", book)
    assert [e.replacement for e in first.edits] == ["Norhaven", "Eldmouth"]
    assert [e.replacement for e in second.edits][1:] == ["Norhaven", "Eldmouth"]
    assert len(at.asked(server.bodies[1])) == 1
    assert len({e.replacement for e in second.edits}) == 3
    before = len(server.seen)
    planned(policy, "Madrid.", book)
    assert len(server.seen) == before


def test_a_vault_keeps_who_had_to_do_without_the_model(server, asking):
    policy, book = asking(rest=LISTS), Pages()
    server.then = at.status(500)
    first = planned(policy, "To Lisbon.", book)
    server.then = at.well
    second = planned(policy, "In Lisbon, not Madrid.", book)
    assert first.edits[0].replacement == second.edits[0].replacement
    assert second.edits[1].replacement == "Norhaven"


def test_offline_pseudonyms_repeat_no_value_of_the_model(server, asking, monkeypatch):
    seen = []
    real = proposals.make_pseudonym_renderers
    monkeypatch.setattr(
        proposals, "make_pseudonym_renderers", lambda w, s, r: (seen.append(s.document.text), real(w, s, r))[1]
    )
    server.first.append(at.made(few))
    server.then = at.answer("no")
    made = run(asking(rest=LISTS), CITIES)
    assert seen == [f"{CITIES}\n{made.plan.edits[0].replacement}"]


# Prompts


def test_a_policy_may_replace_parts_of_a_prompt(server, asking):
    rest = (
        LISTS
        + '[llm.prompts.tags]\nsystem = "Erfinde Namen ({language})."\nexample = ""\nuser = "{text}|Give a value to each\\n{entities}"\n'
    )
    run(asking(rest=rest), "In Lisbon.")
    (body,) = server.bodies
    assert [m["role"] for m in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == "Erfinde Namen (en)."
    assert body["messages"][1]["content"].startswith('In <CITY "')


def test_a_text_cannot_fill_a_prompt_by_itself(server, asking):
    run(asking(rest=LISTS), "In Lisbon {entities} {known} {language}.")
    assert "{entities} {known} {language}." in server.bodies[0]["messages"][-1]["content"]


# Forms of names


RENDERED = [
    (
        "Sarah Connor",
        "Wilma Tarn",
        "Sarah Connor=Wilma Tarn|Sarah=Wilma|Connor=Tarn|Ms Connor=Ms Tarn|the Connors=the Tarns",
    ),
    (
        "Sarah Connor",
        "Wilma Tarn",
        "SARAH CONNOR=WILMA TARN|sarah=wilma|S. Connor=W. Tarn|S. C.=W. T.|Mrs. Connor=Mrs. Tarn",
    ),
    (
        "Sarah Connor",
        "Wilma Tarn",
        "Dr. Sarah Connor=Dr. Wilma Tarn|Connor, Sarah=Tarn, Wilma|Sunny=Wilma Tarn|Sarah Connor Jr.=Wilma Tarn Jr.",
    ),
    ("Sarah Jane Connor", "Wilma Tarn", "Sarah Jane Connor=Wilma Tarn|Jane=Wilma|Sarah=Wilma|Sarah Connor=Wilma Tarn"),
    ("Sarah Connor", "Wilma Rosa Tarn", "Sarah Connor=Wilma Rosa Tarn|Sarah=Wilma|Connor=Tarn"),
    ("Ms Connor", "Wilma Tarn", "Ms Connor=Ms Tarn|Connor=Tarn"),
    ("Sarah", "Wilma Tarn", "Sarah=Wilma"),
    ("Sarah", "Wilma", "Sarah=Wilma|SARAH=WILMA"),
    (
        "Jan van der Berg",
        "Otto Fenwick",
        "van der Berg=Fenwick|Jan=Otto|Mr van der Berg=Mr Fenwick|Jan van der Berg=Otto Fenwick",
    ),
    ("Jan Berg", "Anna van Dijk", "Jan Berg=Anna van Dijk|Berg=van Dijk"),
    ("Sarah Connor", "Dr. Wilma Moss", "Sarah Connor=Wilma Moss|the Connors=the Mosses"),
    ("Connor", "Tarn", "Connor=Tarn"),
]


@check_each_row("name, value, forms", RENDERED)
def test_surfaces_of_one_person(name, value, forms):
    one = Wanted(Entity("k", "PERSON", (Span(0, 1, "PERSON"),)), {}, 1, "PERSON", "[PERSON_1]", (name,))
    render = proposals.make_renderer(one, "PERSON", value)
    told = dict(form.split("=") for form in forms.split("|"))
    assert {surface: render(surface) for surface in told} == told


# Whatever a model says


class Saying:
    """A client whose model says what it is told to."""

    def __init__(self, *contents):
        self.contents = list(contents)
        self.prompts = {}

    def ask(self, request):
        return Reply(self.contents.pop(0) if self.contents else "")


anything = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        [
            "Lisbon",
            "madrid",
            "Zaphrandel",
            "Quorby Z.",
            "Wilma Tarn",
            "Norhaven",
            "<CITY>",
            "a\nb",
            "",
            "Lisbon's",
            "flew",
        ]
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(anything, min_size=3, max_size=3), st.lists(anything, min_size=3, max_size=3), st.booleans())
def test_no_answer_brings_an_original_through(first, second, broken):
    base = Policy.load("default")
    policy = base.with_(
        detectors=("lexicon",),
        default=base.default.__class__("llm"),
        llm={**base.llm, "url": "http://nowhere.invalid/v1", "model": "m"},
    )
    setting = Setting(Document("", CITIES), policy, KEY)
    people = [wanted(CITIES, name, "CITY", n) for n, name in enumerate(("Lisbon", "Madrid", "Vienna"), 1)]
    codes = [one.code for one in module._make_queries(people, setting)]
    contents = [json.dumps({"entities": dict(zip(codes, row, strict=True))}) for row in (first, second)]
    client = Saying(*(c[:-3] if broken else c for c in contents))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "client_for", lambda *a: client)
        players = module.make_renderers(people, setting, [])
    out = {
        n: players.by_model[("CITY", n.lower())](n) if ("CITY", n.lower()) in players.by_model else None
        for n in ("Lisbon", "Madrid", "Vienna")
    }
    given_ = [v for v in out.values() if v is not None]
    assert not [
        v for v in given_ if {"Lisbon", "Madrid", "Vienna"} & set(survives(v)) or "\n" in v or "<" in v or not v.strip()
    ]
    assert len({v.casefold() for v in given_}) == len(given_)
    assert set(players.offline) == {n.lower() for n, v in out.items() if v is None}
