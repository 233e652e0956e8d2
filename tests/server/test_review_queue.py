"""The queue without HTTP: who may say what when, what lies in the database, lists, outcomes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from tests.vault.conftest import where  # noqa: F401

from allonym.document import Document, Span
from allonym.errors import RequestError, UnknownNameError, UsageError
from allonym.train.records import read_records

pytest.importorskip("fastapi")
pytest.importorskip("argon2")

from allonym.project.agreement import measure_reviews
from allonym.project.readings import LeakMark, Reading
from allonym.project.risks import Risk
from allonym.project.seats import ReviewDocument, format_settled_training_lines
from allonym.server.access import Caller
from allonym.server.database import Database, Sealing
from allonym.server.policies import TermLists
from allonym.server.reviews.queue import ReviewQueue

TEXT = "Ada Brook met Jim Quill in Elmford."
FOUND = (Span(0, 9, "PERSON"), Span(27, 34, "CITY"))
RISK = {"expected": 3.5, "bound": 5, "direct": 1, "gain": 0.5, "reasons": [], "proposals": []}


def marked(start, end, kind, label):
    return Reading((LeakMark(start, end, kind, label),), opened=((0, 60),))


QUILL = marked(14, 23, "missed", "PERSON")
PART = marked(14, 23, "partial", "PERSON")


@pytest.fixture
def place(where):  # noqa: F811
    made = Database(where)
    made.create_or_migrate()
    yield made
    made.close()


@pytest.fixture
def lists(place):
    return TermLists(place, Sealing(b"k" * 32))


@pytest.fixture
def queue(place, lists):
    made = ReviewQueue(place, Sealing(b"k" * 32), lists)
    made.make_project("calls", "default", "rita")
    add(made, "one")
    return made


def add(queue, id, text=TEXT, **risk):
    document = Document(id, text)
    text = "[PERSON_1] met Jim Quill in [CITY_1]."
    queue.add_document_if_new("calls", ReviewDocument(id, document, text, [], FOUND, ("CITY",), Risk(**RISK | risk)))


def who(name, numbers={}):  # noqa: B006
    return Caller(numbers.setdefault(name, len(numbers) + 1), name, "reviewer", frozenset(("review",)))


def save(queue, reader, reading, version=0, done=True, verdict=False, wanted=(), id="one"):
    by = who(reader) if isinstance(reader, str) else reader
    seat, item = queue.save_reading("calls", id, by, version, done, lambda item: (reading, wanted), is_verdict=verdict)
    return seat, item.state


def own(queue, reader):
    return queue.get_document_and_readings("calls", "one", who(reader) if isinstance(reader, str) else reader)[1]


def code(error):
    return error.value.status, error.value.code


def test_two_reviewers_agree(queue):
    assert save(queue, "ann", QUILL, done=False)[1] == "in_review"
    assert save(queue, "ann", QUILL, version=1)[1] == "in_review"
    seat, state = save(queue, "ben", QUILL)
    assert (seat.seat, seat.version, state) == (2, 1, "done")
    with pytest.raises(RequestError, match="settled"):
        save(queue, "rita", PART, done=False, verdict=True)
    assert queue.list_projects("calls")[0].states == {"new": 0, "in_review": 0, "disagreement": 0, "done": 1}


def test_they_are_blind_to_each_other_until_both_are_done(queue):
    save(queue, "ann", QUILL)
    save(queue, "ben", Reading(), done=False)
    assert queue.get_document_and_readings("calls", "one", who("ann"))[2] == {}
    assert own(queue, "ben").reading == Reading()
    assert own(queue, "cleo").version == 0
    save(queue, "ben", Reading(), version=1)
    _, _, seats = queue.get_document_and_readings("calls", "one", who("ann"))
    assert [seats[n].reading for n in (1, 2)] == [QUILL, Reading()]


def test_who_disagrees_is_decided_on(queue):
    save(queue, "ann", QUILL)
    with pytest.raises(RequestError, match="both reviewers must be done before somebody decides"):
        save(queue, "rita", QUILL, verdict=True)
    assert save(queue, "ben", PART)[1] == "disagreement"
    with pytest.raises(RequestError, match="both reviewers are done") as error:
        save(queue, "ann", PART, version=1)
    assert code(error) == (409, "Settled")
    assert save(queue, "rita", PART, done=False, verdict=True)[1] == "disagreement"
    assert save(queue, "rita", PART, version=1, verdict=True)[1] == "done"
    with pytest.raises(RequestError, match="settled") as error:
        save(queue, "rita", QUILL, version=2, verdict=True)
    assert code(error) == (409, "Settled")
    lines = [
        json.loads(line) for line in format_settled_training_lines("calls", queue.list_documents_and_readings("calls"))
    ]
    assert lines[0]["meta"]["settled"] == "adjudicated"
    assert [own(queue, name).reading for name in ("ann", "ben")] == [QUILL, PART]


def test_a_third_reviewer_is_refused(queue):
    save(queue, "ann", QUILL, done=False)
    save(queue, "ben", QUILL, done=False)
    with pytest.raises(RequestError, match="two others") as error:
        save(queue, "cleo", QUILL)
    assert code(error) == (409, "Taken")


def test_who_has_a_removed_users_name_has_none_of_their_readings(queue):
    save(queue, "ann", QUILL, done=False)
    other = replace(who("ann"), id=99)
    assert own(queue, other).version == 0
    assert queue.list_documents("calls", other.id, offset=0, limit=1)[0][0].mine == "none"
    seat, _ = save(queue, other, PART, done=False)
    assert (seat.seat, seat.user, seat.reader) == (2, 99, "ann")
    assert own(queue, "ann").reading == QUILL
    with pytest.raises(RequestError, match="two others"):
        save(queue, replace(other, id=100), QUILL)


def test_a_removed_users_seat_is_free_where_they_had_not_ended(queue):
    save(queue, "ann", QUILL, done=False)
    save(queue, "ben", QUILL)
    for name in ("ann", "ben"):
        queue.remove_unfinished_readings(who(name).id)
    assert save(queue, "cleo", QUILL)[1] == "done"
    with pytest.raises(RequestError, match="two others"):
        save(queue, "dora", QUILL)


def test_a_stale_version_is_refused_and_changes_nothing(queue):
    save(queue, "ann", QUILL, done=False)
    save(queue, "ann", PART, version=1, done=False)
    for version in (0, 1, 3):
        with pytest.raises(RequestError, match=f"version {version} was read, but 2 is stored") as error:
            save(queue, "ann", Reading(), version=version, wanted=[("dictionary", "PERSON", "Jim Quill", None)])
        assert code(error) == (409, "Stale")
    kept = own(queue, "ann")
    assert (kept.version, kept.reading, kept.done) == (2, PART, False)
    assert queue.lists.list_terms() == []


def test_of_many_at_once_two_become_reviewers_and_one_of_two_tabs_wins(queue):
    def outcome_of(reader, reading, version=0):
        try:
            return str(save(queue, reader, reading, version=version, done=False)[0].seat)
        except RequestError as error:
            return error.code

    with ThreadPoolExecutor(6) as pool:
        told = sorted(pool.map(lambda n: outcome_of(f"reader {n}", QUILL), range(6)))
        assert told == ["1", "2", *["Taken"] * 4]
        item, seats = queue.list_documents_and_readings("calls")[0]
        assert item.state == "in_review" and len({s.reader for s in seats.values()}) == 2
        tabs = [marked(n, n + 1, "missed", "PERSON") for n in range(4)]
        told = sorted(pool.map(lambda reading: outcome_of(seats[1].reader, reading, 1), tabs))
        assert told == ["1", "Stale", "Stale", "Stale"]
    assert own(queue, seats[1].reader).version == 2


def test_the_same_sent_again_is_no_change(queue):
    first, _ = save(queue, "ann", QUILL)
    again, _ = save(queue, "ann", QUILL)
    assert first == again and again.version == 1


def test_the_riskiest_come_first(queue):
    add(queue, "two", TEXT + " 2", expected=9.0, gain=0.1)
    add(queue, "three", TEXT + " 3", expected=0.0, gain=0.9)

    def ids(**wanted):
        return [line.id for line in queue.list_documents("calls", who("ann").id, offset=0, limit=9, **wanted)[0]]

    assert ids(order="risk") == ["two", "one", "three"]
    assert ids(order="gain") == ["three", "one", "two"]
    assert ids(order="added") == ["one", "two", "three"]
    save(queue, "ann", QUILL, id="two")
    save(queue, "ben", QUILL, done=False, id="two")
    assert ids(state="in_review") == ["two"]
    line = queue.list_documents("calls", who("ben").id, offset=0, limit=1)[0][0]
    assert (line.reviewers, line.done, line.mine, line.adjudicated) == (2, 1, "open", False)
    assert queue.list_documents("calls", who("ann").id, offset=1, limit=1)[0][0].id == "one"


def test_what_is_there_stays(queue):
    save(queue, "ann", QUILL)
    other = Document("new", "x")
    assert queue.select_new_documents("calls", [Document("one", TEXT), other]) == [other]
    add(queue, "one")
    assert own(queue, "ann").version == 1
    with pytest.raises(RequestError, match=r"documents\[0\]: its id is another document's"):
        queue.select_new_documents("calls", [Document("one", "another text")])


def test_no_text_id_mark_or_term_lies_open_in_the_database(queue):
    save(queue, "ann", QUILL, wanted=[("dictionary", "PERSON", "Jim Quill", "calls")])
    add(queue, "Quill's call", TEXT + " again")
    with queue._database.open_read_transaction() as connection:
        names = [name for name in sa.inspect(connection).get_table_names() if name.startswith("allonym_server_")]
        stored = b"".join(
            value if isinstance(value, bytes) else str(value).encode()
            for name in names
            for row in connection.exec_driver_sql(f"SELECT * FROM {name}")
            for value in row
        )
    assert b"calls" in stored and b"rita" in stored
    for word in (b"Quill", b"Ada", b"Elmford", b"missed"):
        assert word not in stored


def test_conversations_come_back_whole(queue):
    document = Document.conversation("talk", [("Pam", "Is Jim there?"), (None, "No."), ("Jo", "He left.")])
    queue.add_document_if_new("calls", ReviewDocument("talk", document, "x", [], (), (), Risk(**RISK)))
    assert queue.get_document_and_readings("calls", "talk", who("ann"))[0].document == document


@pytest.mark.parametrize("act", ["list_documents_and_readings", "remove_project", "list_projects"])
def test_no_such_project_or_document(queue, act):
    for name in ("other", "no\0thing"):
        with pytest.raises(RequestError, match="there is no project"):
            getattr(queue, act)(name)
    with pytest.raises(RequestError, match="there is no such document in the project 'calls'"):
        queue.get_document_and_readings("calls", "none", who("ann"))
    with pytest.raises(RequestError, match="there is a project 'calls' already"):
        queue.make_project("calls", None, "rita")


def test_a_removed_document_is_gone_with_its_readings(queue):
    save(queue, "ann", QUILL)
    queue.remove_document("calls", "one")
    assert queue.list_documents_and_readings("calls") == []
    add(queue, "one")
    assert own(queue, "ann").version == 0


def test_a_removed_project_leaves_nothing(queue, lists):
    save(queue, "ann", QUILL, wanted=[("dictionary", "PERSON", "Jim Quill", "calls")])
    lists.add_term("exclusion", "*", "Elmford", "rita")
    assert queue.remove_project("calls") == 1
    assert [t.term for t in lists.list_terms()] == ["Elmford"]
    queue.make_project("calls", None, "rita")
    assert queue.list_documents_and_readings("calls") == []


# TermsByLabel


def test_terms_hold_for_all_or_for_one_project(queue, lists):
    lists.add_term("dictionary", "PERSON", "Jim  Quill", "ann", "calls")
    lists.add_term("exclusion", "*", "Elmford", "rita")
    assert lists.get_terms_and_exclusions() == ({}, {"*": ("Elmford",)})
    assert lists.get_terms_and_exclusions("calls") == ({"PERSON": ("Jim Quill",)}, {"*": ("Elmford",)})
    assert lists.get_terms_and_exclusions("no such") == lists.get_terms_and_exclusions()


def test_the_last_decision_on_a_term_holds(queue, lists):
    one = lists.add_term("exclusion", "*", "Elmford", "rita")
    assert lists.add_term("exclusion", "*", "Elmford", "ann").id == one.id
    lists.add_term("dictionary", "CITY", "elmford", "ann")
    assert lists.get_terms_and_exclusions() == ({"CITY": ("elmford",)}, {})
    lists.add_term("exclusion", "CITY", "Elmford", "ann", "calls")  # what a project says goes before what holds for all
    assert lists.get_terms_and_exclusions("calls") == ({}, {"CITY": ("Elmford",)})
    assert lists.get_terms_and_exclusions() == ({"CITY": ("elmford",)}, {})


def test_another_process_sees_a_change_at_once(place, lists):
    other = TermLists(place, Sealing(b"k" * 32))
    added = [lists.add_term("dictionary", "CITY", name, "ann").id for name in ("Elmford", "Oakham")]
    assert other.get_terms_and_exclusions()[0] == {"CITY": ("Elmford", "Oakham")}
    lists.remove_term(added[1])
    assert other.get_terms_and_exclusions()[0] == {"CITY": ("Elmford",)}
    lists.add_term("dictionary", "CITY", "Ashby", "ann")
    assert other.get_terms_and_exclusions()[0] == {"CITY": ("Ashby", "Elmford")}
    with pytest.raises(RequestError, match="there is no term"):
        lists.remove_term(added[1])


@pytest.mark.parametrize("term", ["", "x", "--", "two\nlines", "long " * 60])
def test_what_no_detector_could_use_is_no_term(lists, term):
    with pytest.raises(UsageError, match="term: "):
        lists.add_term("dictionary", "PERSON", term, "ann")


def test_a_term_needs_a_label(lists):
    with pytest.raises(UnknownNameError, match="did you mean: PERSON"):
        lists.add_term("dictionary", "PERSN", "Jim Quill", "ann")
    with pytest.raises(UnknownNameError):
        lists.add_term("dictionary", "*", "Jim Quill", "ann")


# Outcomes


def test_agreement_and_residual_risk(queue):
    pytest.importorskip("scipy")
    add(queue, "two", TEXT + " Once more.")
    for reader in ("ann", "ben"):
        save(queue, reader, QUILL)
    save(queue, "ann", QUILL, id="two")
    assert measure_reviews(queue.list_documents_and_readings("calls")).documents == 1
    save(queue, "ben", Reading(opened=((0, 60),)), id="two")
    found = measure_reviews(queue.list_documents_and_readings("calls"))
    assert (found.documents, found.same) == (2, 1)
    assert {r.label: (r.both, r.one) for r in found.by_label} == {"PERSON": (3, 1), "CITY": (2, 0)}
    assert found.spans.documents == 2 and 0.7 < found.spans.kappa.value < 1
    assert found.marks.overlap.value == pytest.approx(2 / 3)
    assert found.marks.overlap.low <= 2 / 3 <= found.marks.overlap.high
    assert found.residual["total"]["mean"]["value"] == 5.0  # what they disagree on is not settled, so it does not count
    assert "Quill" not in json.dumps(found.to_dict())
    save(queue, "rita", Reading(), id="two", verdict=True)
    assert measure_reviews(queue.list_documents_and_readings("calls")).residual["total"]["mean"]["value"] == 2.5


def test_training_text_is_what_training_reads(queue, tmp_path):
    for reader in ("ann", "ben"):
        save(queue, reader, QUILL)
    add(queue, "two", TEXT + " Open.")
    path = tmp_path / "reviews.jsonl"
    path.write_text(
        "".join(format_settled_training_lines("calls", queue.list_documents_and_readings("calls"))), encoding="utf-8"
    )
    (record,) = read_records(path)
    assert [(s["text"], s["label"]) for s in record["spans"]] == [
        ("Ada Brook", "PERSON"),
        ("Jim Quill", "PERSON"),
        ("Elmford", "CITY"),
    ]
    assert (record["meta"]["settled"], record["meta"]["labels"]) == ("agreed", ["CITY"])
    assert set(record["annotations"]) == {"reviewer 1", "reviewer 2"}
