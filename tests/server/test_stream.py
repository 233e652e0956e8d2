"""The WebSocket: annotation while somebody types, conversations that grow while people speak, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("fastapi")

from starlette.testclient import WebSocketDenialResponse
from starlette.websockets import WebSocketDisconnect

from allonym.document import Document
from allonym.pipeline import anonymize
from allonym.policy import Policy, Rule
from allonym.server.routes import stream
from allonym.server.routes.stream import Transcript
from allonym.vault import Vault

CALL = [
    ("Pam", "Good morning, Brook Supplies, this is Pam."),
    (None, "[a phone rings]"),
    ("Caller", "Hello, my name is Tom Stone."),
    ("Pam", "Hello Tom. What is your number?"),
    ("Caller", "It is 415-555-0132. Stone, as the thing."),
    ("Pam", "Thank you, Mr. Stone."),
]
KEY = b"a key only for the tests"
PLACE = "ws://127.0.0.1:8642/v1/stream"


@pytest.fixture(scope="module")
def program(site: Any) -> Any:
    """A client with a reviewer's API key."""
    return site.program("reviewer")


def _text(version: int, text: str) -> dict[str, Any]:
    return {"type": "text", "version": version, "text": text}


def _until(socket: Any, version: int) -> list[dict[str, Any]]:
    out = [socket.receive_json()]
    while out[-1].get("version") != version:
        out.append(socket.receive_json())
    return out


def test_annotating(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "annotate", "policy": {"name": "default", "off": ["EMAIL_ADDRESS"]}})
        text = "Ada Brook, ada@example.com. Brook waits."
        socket.send_json(_text(7, text))
        answer = socket.receive_json()
        wanted = program.post(
            "/v1/detect", json={"text": text, "policy": {"name": "default", "off": ["EMAIL_ADDRESS"]}}
        )
        assert answer["type"] == "spans" and answer["version"] == 7
        assert answer["spans"] == wanted.json()["spans"] and answer["counts"] == wanted.json()["counts"]
        assert answer["spans"][0]["entity"] == answer["spans"][-1]["entity"]


def test_newer_text_takes_the_place_of_what_waits(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "annotate"})
        for version in range(30):
            socket.send_json(_text(version, "Ada Brook met Tom Stone. " * 40 + "x" * version))
        answers = _until(socket, 29)
        versions = [one["version"] for one in answers]
        assert versions == sorted(set(versions)) and len(versions) < 30


def test_typing_gives_the_same_as_the_whole(program: Any) -> None:
    text = "Miss Brook called. Later Ada Brook wrote from 10 Mill Lane, Leeds; brook waters run. Ask Brook, not April Stone."
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "annotate"})
        for version in range(1, len(text) + 1, 9):
            socket.send_json(_text(version, text[:version]))
            answer = _until(socket, version)[-1]
            assert answer["spans"] == program.post("/v1/detect", json={"text": text[:version]}).json()["spans"]


def test_conversation(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "transcript"})
        shown: dict[int, tuple[str | None, str]] = {}
        for index, (speaker, text) in enumerate(CALL):
            socket.send_json({"type": "turn", "speaker": speaker, "text": text})
            answer = socket.receive_json()
            assert (answer["type"], answer["index"]) == ("turn", index)
            shown[index] = answer["speaker"], answer["text"]
            shown |= {one["index"]: (one["speaker"], one["text"]) for one in answer["revised"]}
            assert "Tom" not in json.dumps([shown[index], answer["revised"]])
        socket.send_json({"type": "end"})
        end = socket.receive_json()
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()
    turns = [{"speaker": speaker, "text": text} for speaker, text in CALL]
    whole = program.post("/v1/anonymize", json={"turns": turns}).json()
    assert end["type"] == "end" and end["text"] == whole["text"] and end["plan"] == whole["plan"]
    lines = "\n".join(f"{who}: {text}" if who else text for _, (who, text) in sorted(shown.items()))
    assert lines == whole["text"]


def test_turns_that_come_at_once(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "transcript"})
        for speaker, text in CALL:
            socket.send_json({"type": "turn", "speaker": speaker, "text": text})
        socket.send_json({"type": "end"})
        seen = []
        while (answer := socket.receive_json())["type"] == "turn":
            seen.append(answer["index"])
        assert answer["type"] == "end" and seen == list(range(len(CALL)))


def test_a_conversation_in_the_vault(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "transcript", "scope": "calls", "policy": "pseudonyms"})
        shown: list[str] = []
        for i, (speaker, text) in enumerate(CALL):
            socket.send_json({"type": "turn", "speaker": speaker, "text": text})
            shown.append(socket.receive_json()["text"])
            back = program.post("/v1/restore", json={"text": "\n".join(shown), "scope": "calls"}).json()
            # At once, while the call goes on. A given name alone is no evidence, and the full name is.
            assert back["text"] == "\n".join(text for _, text in CALL[: i + 1])
        socket.send_json({"type": "end"})
        end = socket.receive_json()
    whole = "\n".join(f"{who}: {text}" if who else text for who, text in CALL)
    assert program.post("/v1/restore", json={"text": end["text"], "scope": "calls"}).json()["text"] == whole


NAMES = (
    "Tom Stone",
    "Mr. Stone",
    "Tom",
    "Stone",
    "Ada Brook",
    "Ada",
    "Brook Supplies",
    "415-555-0132",
    "tom@example.com",
)
TURNS = st.lists(
    st.tuples(
        st.sampled_from(("Pam", "Tom", None)),
        st.lists(st.sampled_from((*NAMES, "hello", "my name is", "called", "yes.", "from", "")), max_size=5).map(
            " ".join
        ),
    ),
    max_size=7,
)


@settings(max_examples=25)
@given(TURNS, st.sampled_from(("tag", "pseudonym", "mask")), st.data())
def test_however_it_grows_it_ends_as_the_whole(
    turns: list[tuple[str | None, str]], operator: str, data: st.DataObject
) -> None:
    ends_as_the_whole(turns, operator, lambda: data.draw(st.booleans()))


@pytest.mark.parametrize("operator", ["tag", "pseudonym", "mask"])
def test_after_a_long_line_a_turn_of_nobody_is_a_turn_of_its_own(operator: str) -> None:
    ends_as_the_whole([("Pam", " ".join(["Tom Stone"] * 5)), (None, "Tom Stone")], operator, lambda: False)


def ends_as_the_whole(turns: list[tuple[str | None, str]], operator: str, waits: Callable[[], bool]) -> None:
    """``waits`` tells of each turn whether it is treated with the next one only."""
    policy = Policy.load("default").with_(default=Rule(operator), rules={})
    transcript = Transcript()
    shown: dict[int, tuple[str | None, str]] = {}
    for index, (speaker, text) in enumerate(turns):
        transcript.turns.append((speaker, text))
        if index + 1 < len(turns) and waits():
            continue  # the next turn came before this one was treated
        added, revised = transcript.update_and_list_new_and_revised(
            anonymize(Document.conversation("", transcript.turns), policy, key=KEY).parts
        )
        assert not set(added) & set(shown) and set(revised) <= set(shown)
        assert all(shown[i] != one for i, one in revised.items())
        shown |= added | revised
    whole = anonymize(Document.conversation("", turns), policy, key=KEY)
    assert "\n".join(f"{who}: {text}" if who else text for _, (who, text) in sorted(shown.items())) == whole.text


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    """A vault for conversations."""
    with Vault.create(tmp_path_factory.mktemp("vault") / "v.sqlite", KEY) as made:
        yield made


@settings(max_examples=15)
@given(turns=TURNS)
def test_with_a_scope_the_end_is_what_the_vault_gives_the_whole(
    vault: Vault, turns: list[tuple[str | None, str]]
) -> None:
    transcript = Transcript()
    scope = f"scope {time.monotonic_ns()}"
    text = ""
    for speaker, said in turns:
        transcript.turns.append((speaker, said))
        text = anonymize(Document.conversation("", transcript.turns), vault=vault, scope=scope).text
    assert text == anonymize(Document.conversation("", turns), vault=vault, scope=scope).text


def test_messages_that_are_none(program: Any) -> None:
    marker = "Quill Abernathy"
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "annotate"})
        texts = [{"version": -1, "text": marker}, {"version": 1, "text": [marker]}, {"text": "x", marker: 1}]
        rows = [*({"type": "text", **one} for one in texts), {"type": "turn", "text": marker}, {"type": "end"}]
        bad = ["{", "[]", "5", '"x"', '{"type": "shout"}', "[" * 5000, *map(json.dumps, rows)]
        for one in bad:
            socket.send_text(one)
            said = socket.receive_text()
            assert json.loads(said)["type"] == "error" and marker.split()[0] not in said, said
        socket.send_json(_text(1, "Ada Brook"))
        assert socket.receive_json()["type"] == "spans"


@pytest.mark.parametrize(
    "first",
    [
        {"type": "text", "version": 1, "text": "x"},
        {"type": "open", "mode": "annotate", "scope": "x"},
        {"type": "open", "mode": "annotate", "policy": "no such policy"},
        {"type": "open", "mode": "transcript", "policy": {"operators": {"PERSON": "no such operator"}}},
    ],
)
def test_openings_that_are_refused(program: Any, first: dict[str, Any]) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json(first)
        assert socket.receive_json()["type"] == "error"
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == stream.REFUSED


def test_only_who_may(site: Any, anybody: Any) -> None:
    with pytest.raises(WebSocketDenialResponse) as refused, anybody.websocket_connect(PLACE):
        pass
    assert refused.value.status_code == 401
    wrong = {"Authorization": "Bearer alk_wrong"}
    with pytest.raises(WebSocketDenialResponse) as refused, anybody.websocket_connect(PLACE, headers=wrong):
        pass
    assert refused.value.status_code == 401
    with site.program("reviewer", "detect").websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "transcript"})
        assert socket.receive_json()["error"]["code"] == "NotAllowed"


def test_bytes_are_no_message(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_bytes(b"Ada Brook")
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
    assert closed.value.code == stream.BINARY


def test_each_stream_has_its_line_in_the_access_log(anybody: Any, program: Any, caplog: Any) -> None:
    with caplog.at_level("INFO", "allonym.access"):
        with pytest.raises(WebSocketDenialResponse), anybody.websocket_connect(PLACE):
            pass
        with program.websocket_connect(PLACE) as socket:
            socket.send_bytes(b"Ada Brook")
            with pytest.raises(WebSocketDisconnect):
                socket.receive_json()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split()[:3] for line in lines] == [
        ["WEBSOCKET", "/v1/stream", "401"],
        ["WEBSOCKET", "/v1/stream", "101"],
    ]


def test_a_page_of_another_origin_gets_nothing(annotator: Any) -> None:
    for origin in ("https://evil.example", "http://127.0.0.1:9", "null", ""):
        with (
            pytest.raises(WebSocketDenialResponse) as refused,
            annotator.websocket_connect(PLACE, headers={"Origin": origin}),
        ):
            pass
        assert refused.value.status_code == 403
    with annotator.websocket_connect(PLACE, headers={"Origin": "http://127.0.0.1:8642"}) as socket:
        socket.send_json({"type": "open", "mode": "annotate"})
        socket.send_json(_text(1, "Ada Brook"))
        assert socket.receive_json()["spans"]


def test_a_key_that_is_removed_ends_its_stream(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "RECHECK", -1.0)
    client = site.program("reviewer")
    with client.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "annotate"})
        socket.send_json(_text(1, "Ada Brook"))
        assert socket.receive_json()["type"] == "spans"
        who = site.services.accounts.find_caller(client.headers["authorization"].removeprefix("Bearer "), is_key=True)
        site.services.accounts.remove_api_key(who, who.key)
        socket.send_json(_text(2, "Ada Brook"))
        assert socket.receive_json()["error"]["code"] == "NotSignedIn"
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()


def test_too_many_messages(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "RATE", 0.5)
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "annotate"})
        socket.send_json(_text(1, "Ada Brook"))
        answers = [socket.receive_json()]
        if answers[-1]["type"] == "spans":
            answers.append(socket.receive_json())
        assert answers[-1]["error"]["code"] == "TooMany"
        with pytest.raises(WebSocketDisconnect):
            socket.receive_json()


def test_silence_ends_a_stream(program: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "IDLE", 0.05)
    with program.websocket_connect(PLACE) as socket:
        with pytest.raises(WebSocketDisconnect) as closed:
            socket.receive_json()
        assert closed.value.code == stream.GOING


def test_too_long(make_site: Any, tmp_path: Path) -> None:
    with make_site(tmp_path / "data", max_characters=60) as site:
        client = site.program("reviewer")
        with client.websocket_connect(PLACE) as socket:
            socket.send_json({"type": "open", "mode": "annotate"})
            socket.send_json(_text(3, "Ada Brook " * 10))
            answer = socket.receive_json()
            assert answer["error"]["code"] == "TooLarge" and answer["version"] == 3
            socket.send_json(_text(4, "Ada Brook"))
            assert socket.receive_json()["version"] == 4
        with client.websocket_connect(PLACE) as socket:
            socket.send_json({"type": "open", "mode": "transcript"})
            socket.send_json({"type": "turn", "speaker": "Pam", "text": "Hello Tom Stone."})
            assert socket.receive_json()["index"] == 0
            socket.send_json({"type": "turn", "speaker": "Pam", "text": "x" * 60})
            assert socket.receive_json()["error"]["code"] == "TooLarge"
            socket.send_json({"type": "end"})
            assert socket.receive_json()["text"].count("\n") == 0


def test_half_a_surrogate_pair_is_no_end(program: Any) -> None:
    with program.websocket_connect(PLACE) as socket:
        socket.send_json({"type": "open", "mode": "transcript"})
        socket.send_text('{"type": "turn", "speaker": "Pam", "text": "\\ud800 Ada Brook"}')
        assert socket.receive_json()["type"] in ("turn", "error")


def test_whoever_leaves_leaves_nothing_behind(site: Any, program: Any) -> None:
    for _ in range(3):
        with program.websocket_connect(PLACE) as socket:
            socket.send_json({"type": "open", "mode": "annotate"})
            socket.send_json(_text(1, "Ada Brook met Tom Stone. " * 2000))
    assert program.post("/v1/detect", json={"text": "Ada Brook"}).status_code == 200
    transcript = Transcript()
    transcript.turns.append(("Ada", "Brook"))
    assert "Ada" not in repr(transcript)
