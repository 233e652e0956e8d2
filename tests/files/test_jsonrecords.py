"""JSON Lines and JSON: only what changes is written anew."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allonym.errors import DataError
from allonym.files import jsontext
from allonym.files.encoding import Encoding
from allonym.files.jsonrecords import JSON, JSONL, make_record_draft
from allonym.files.record import Chunk, Draft, Failure, Job, Tally
from allonym.policy import Policy

MAIL = "[EMAIL_ADDRESS_1]"
JOB = Job(Policy.only([]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"text":"mail a@example.com" , "n": 1.0,"m":1e5}', f'{{"text":"mail {MAIL}" , "n": 1.0,"m":1e5}}'),
        ('{"b":12345678901234567890,"a":"a@example.com"}', f'{{"b":12345678901234567890,"a":"{MAIL}"}}'),
        ('{"a":"caf\\u00e9 a@example.com"}', f'{{"a":"caf\\u00e9 {MAIL}"}}'),
        ('{"a":"café a@example.com"}', f'{{"a":"café {MAIL}"}}'),
        ('{"a":"\\ud800 a@example.com","b":"\\/"}', f'{{"a":"\\ud800 {MAIL}","b":"\\/"}}'),
        (
            '{"a":{"b":["a@example.com",{"c":"b@example.com"}]}}',
            f'{{"a":{{"b":["{MAIL}",{{"c":"[EMAIL_ADDRESS_2]"}}]}}}}',
        ),
        ('{"a@example.com":{"ok":1}}', f'{{"{MAIL}":{{"ok":1}}}}'),
        ('{"phone":4155550132,"stars":5}', '{"phone":"[PHONE_NUMBER_1]"\t,"stars":5}'),
        ('"a@example.com"', f'"{MAIL}"'),
        ('{"x":NaN,"y":"a@example.com"}', f'{{"x":NaN,"y":"{MAIL}"}}'),
        ('{"a":"x","a":"a@example.com"}', f'{{"a":"x","a":"{MAIL}"}}'),
    ],
)
def test_only_strings_that_change_are_written_anew(run, line, expected):
    assert run("a.jsonl", line.encode())[0] == expected.encode()


def test_bytes_around_records_stay(run):
    data = b'\xef\xbb\xbf{"a":"x"}\r\n\r\n  {"a":"a@example.com"} \r\n\n{"a":"y"}'
    assert run("a.jsonl", data)[0] == data.replace(b"a@example.com", MAIL.encode())


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf16_with_mark(run, codec):
    text = "\ufeff" + "".join(f'{{"a":"é𝒳 a{i}@example.com"}}\n' for i in range(50))
    out, report = run("a.jsonl", text.encode(codec), batch_size=64)
    assert out.decode(codec).count("é𝒳 " + MAIL) == 50
    assert report.documents == 50


def test_fields_by_path(run):
    line = b'{"a":{"b":[{"c":"a@example.com"}]},"d":"b@example.com","x.y":"c@example.com"}'
    assert b"b@example.com" in run("a.jsonl", line, fields=["a.b[*].c"])[0]
    assert run("a.jsonl", line, fields=["a.*.c", "x.y"])[0].count(b"example.com") == 1
    assert run("a.jsonl", line, fields=["a"])[0].count(b"example.com") == 2


def test_ids_are_left_where_they_are_codes(run):
    out, report = run("a.jsonl", b'{"id":"415-555-0132","text":"x"}\n{"id":"a@example.com","text":"y"}\n')
    assert b"415-555-0132" in out and b"a@example.com" not in out
    assert report.left == {"id": 1} and report.treated == {"id": 1, "text": 2}


def test_conversation_names_speakers_and_keeps_roles(run):
    record = {"turns": [{"text": "I am Pam, hello", "speaker": "Pam"}, {"speaker": "user", "text": "Hello Pam!"}]}
    out = json.loads(run("a.jsonl", json.dumps(record).encode())[0])
    assert out["turns"][0] == {"text": "I am [PERSON_1], hello", "speaker": "[PERSON_1]"}
    assert out["turns"][1] == {"speaker": "user", "text": "Hello [PERSON_1]!"}


def test_name_says_more_than_role_and_a_record_may_be_one_turn(run):
    line = b'{"messages":[{"role":"user","name":"Pam","content":"hi"},{"role":"user","content":"Pam?"}]}\n'
    assert json.loads(run("a.jsonl", line)[0])["messages"][1]["content"] == "[PERSON_1]?"
    out = json.loads(run("a.jsonl", b'{"text":"Pam here","speaker":"Pam"}\n')[0])
    assert out == {"text": "[PERSON_1] here", "speaker": "[PERSON_1]"}


def test_turns_point_at_speakers_and_texts():
    line = '{"title":"t","messages":[{"content":"one","role":"Ann"},{"content":"two"}]}'
    made = make_record_draft(line, JOB, Tally())
    assert isinstance(made, Draft)
    document = made.document
    assert [document.text[t.start : t.end] for t in document.turns] == ["one", "two"]
    who = document.turns[0].speaker
    assert who and document.text[slice(*who)] == "Ann" and document.turns[1].speaker is None
    assert document.text.endswith("Ann: one\ntwo")


def test_metadata_reaches_the_document():
    policy = JOB.policy.with_(metadata={"ORGANISATION": ("company",)})
    made = make_record_draft('{"text":"x","meta":{"company":"Mosaic"},"n":1}', Job(policy), Tally())
    assert isinstance(made, Draft)
    assert made.document.meta["company"] == "Mosaic" and made.document.meta["n"] == 1


def test_malformed_lines_go_to_quarantine(run, tmp_path):
    data = b'{"a":"x"}\n{"a":\n\xff\xfe"\n' + b"[" * 100_000 + b'\n{"id":9,"a":"a@example.com"}\n'
    out, report = run("a.jsonl", data, batch_size=8)
    assert out == f'{{"a":"x"}}\n{{"id":9,"a":"{MAIL}"}}\n'.encode()
    assert (report.documents, report.quarantined, report.exit_code) == (5, 3, 1)
    listed = [json.loads(r) for r in (tmp_path / "out-a.jsonl.quarantine.jsonl").read_text().splitlines()]
    assert [r["line"] for r in listed] == [2, 3, 4]
    assert [r["id"] for r in listed] == ["line 2", "line 3", "line 4"]


def test_json_list_drops_only_the_failing_item(run, failing):
    data = b'\n[ {"a":"BOOM"},\n  {"a":"a@example.com"},\n  {"a":"KRACH"}, 3 ]\n'
    out, report = run("a.json", data)
    assert json.loads(out) == [{"a": MAIL}, 3]
    assert report.quarantined == 2
    assert json.loads(run("b.json", b'[{"a":"BOOM"}]')[0]) == []


@pytest.mark.parametrize("data", [b"[]", b" [ ] ", b"{}", b'{"a": [1, [2, {"b": "]"}], "}"]}', b"3", b'["a", [], {}]'])
def test_json_that_does_not_change(run, data):
    assert run("a.json", data)[0] == data


def test_json_list_of_turns_is_one_conversation(run):
    turns = [{"speaker": "Pam", "text": "Pam here"}, {"speaker": "Jim", "text": "a@example.com and Pam"}]
    out, report = run("a.json", json.dumps(turns).encode())
    assert report.documents == 1
    assert [t["speaker"] for t in json.loads(out)] == ["[PERSON_1]", "[PERSON_2]"]


def test_json_that_is_none_is_refused(run):
    with pytest.raises(DataError, match="not valid JSON"):
        run("a.json", b'{"a": a@example.com}')


@given(st.lists(values, max_size=5), st.booleans(), st.sampled_from([None, 1]))
def test_nothing_found_means_nothing_changed(many, ascii_only, indent):
    texts = [json.dumps(v, ensure_ascii=ascii_only, indent=None) for v in many]
    data = "\n".join(texts).encode("utf-8", "surrogatepass")
    if b"\xed" in data and not ascii_only:
        return  # lone surrogates outside escapes are no UTF-8
    parsed = JSONL.parse(Chunk(data, (Encoding("utf-8"),)), JOB)
    out = []
    for piece in parsed.pieces:
        assert not isinstance(piece, Failure)
        out.append(piece.render(piece.document.part_texts()) if isinstance(piece, Draft) else piece)
    assert b"".join(out) == data
    whole = json.dumps(many, ensure_ascii=True, indent=indent).encode()
    again = JSON.parse(Chunk(whole), JOB)
    made = [p.render(p.document.part_texts()) for p in again.pieces if isinstance(p, Draft)]
    assert again.join is not None and again.join(list(made)) == whole


@given(values)
def test_tokens_are_all_strings_of_the_value(value):
    text = json.dumps(value)

    def strings(v):
        if isinstance(v, str):
            yield v
        elif isinstance(v, dict):
            for k, inner in v.items():
                yield k
                yield from strings(inner)
        elif isinstance(v, list):
            for inner in v:
                yield from strings(inner)

    assert [t.text for t in jsontext.find_json_tokens(text) if t.kind != "number"] == list(strings(value))
    if isinstance(value, list):
        assert [json.loads(text[a:b]) for a, b in jsontext.find_list_item_offsets(text)] == json.loads(
            text
        ) or "NaN" in text


def test_nesting_that_is_too_deep_is_told(run):
    with pytest.raises(DataError, match="nested too deeply"):
        run("a.json", b'{"a":' * 100_000 + b"1" + b"}" * 100_000)


def test_the_records_of_a_list_are_rows_of_a_table(run):
    people = [("Ada Brook", 40127, "open"), ("Cyd Dale", 40128, "closed"), ("Ada Brook", 40127, "open")]
    records = [{"name": n, "customerId": i, "status": s, "total": 1999.99} for n, i, s in people]
    new = json.loads(run("a.json", json.dumps(records).encode())[0])
    assert [r["name"] for r in new] == ["[PERSON_1]", "[PERSON_2]", "[PERSON_1]"]
    assert [r["customerId"] for r in new] == [f"[ACCOUNT_NUMBER_{n}]" for n in (1, 2, 1)]
    assert [(r["status"], r["total"]) for r in new] == [(s, 1999.99) for _, _, s in people]


def test_keys_that_are_names_are_covered_and_not_reported(run):
    source = (
        '{"Gareth Price":{"score":3},"Priya Raman":"Priya Raman is ill","Nkechi":{"note":"Nkechi is late again"},'
        '"Unit Price":"5","Grace Period":"3 weeks","Status":"Status open"}'
    )
    out, report = run("a.json", source.encode(), Policy.load("default"))
    assert json.loads(out) == {
        "[PERSON_1]": {"score": 3},
        "[PERSON_2]": "[PERSON_2] is ill",
        "[PERSON_3]": {"note": "[PERSON_3] is late again"},
        "Unit Price": "5",
        "Grace Period": "3 weeks",
        "Status": "Status open",
    }
    shown = report.to_text() + report.to_json()
    assert not any(name in shown for name in ("Gareth", "Priya", "Nkechi")) and "*.note" in shown
    assert run("b.json", source.encode(), Policy.only([]))[0] == source.encode()


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.yaml"])
def test_numbers_are_covered_where_their_key_tells_what_they_identify(run, name):
    source = '{"pin": 4411, "sortcode": 204112, "lat": 51.5074, "lon": -0.1278, "stars": 5, "phone": 1, "ok": true}'
    out = run(name, source.encode())[0]
    assert json.loads(out) == {
        "pin": "[PIN_1]",
        "sortcode": "[BANK_ACCOUNT_1]",
        "lat": "[LOCATION_COORDINATES_1]",
        "lon": "[LOCATION_COORDINATES_2]",
        "stars": 5,
        "phone": 1,
        "ok": True,
    }
    assert run(name, source.encode(), Policy.only(["PERSON"]))[0] == source.encode()


def test_ids_that_people_bear_are_covered_in_lists_of_records(run):
    data = b'[{"id":"P-0147","t":"a"},{"id":"P-0148","t":"ID P-0147"}]'
    assert (
        run("a.json", data)[0] == b'[{"id":"[GENERIC_ID_1]","t":"a"},{"id":"[GENERIC_ID_2]","t":"ID [GENERIC_ID_1]"}]'
    )
    data = b'[{"id":"doc-17","t":"a"},{"id":"doc-18","t":"b"}]'
    assert run("a.json", data)[0] == data


def test_ids_as_people_bear_them_are_covered_as_in_tables(run):
    line = b'{"id": "P-0147", "note": "P-0147 came late."}\n{"id": "17", "note": "x"}\n'
    out = run("a.jsonl", line)[0]
    assert out == b'{"id": "[GENERIC_ID_1]", "note": "[GENERIC_ID_1] came late."}\n{"id": "17", "note": "x"}\n'


def test_long_keys_do_not_hang(run):
    data = b'{"A' + b"a" * 60 + b'1": "x"}\n'
    assert run("a.jsonl", data)[0] == data
