"""The pages beside the one where a text is protected, in a real browser against a real server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser.conftest import Server
from tests.browser.desk import expect

pytestmark = pytest.mark.slow

PROJECT = "Letters of spring"
LETTERS = {
    "letter-1": "My name is Tobias Fenwick. I keep bees with Marisol Quint in Leeds, and we call the farm Greenfinchery.",
    "letter-2": "Marisol Quint wrote to tobias.fenwick@example.com on 3 March 2021. Greenfinchery was closed that week.",
}
PEOPLE = ("Tobias Fenwick", "Marisol Quint")
COMPANIES = {
    "Larkspur": ("Ada Holm", "Larkspur Analytics", "Leeds"),
    "Nordwind": ("Jonas Berger", "Nordwind Freight", "Graz"),
    "Bluestone": ("Ruth Adler", "Bluestone Bank", "Ghent"),
    "Pinevale": ("Paul Keller", "Pinevale Foods", "Cork"),
}
TOPICS = (
    "Revenue at {o} grew by {n} percent in the quarter, and {p} said that margins in {c} widened since prices rose.",
    "{p} explained that {o} will open a plant near {c} with {n} people, and that the permits were granted in spring.",
    "Analysts asked {p} about the debt of {o}; the loan of the bank in {c} will be repaid within {n} months.",
)
SUBJECTS = ("Elena Marsh", "Viktor Lindqvist")


class Api:
    """The server's routes, in the session of a page."""

    def __init__(self, server: Server, context: Any) -> None:
        self._url, self._context = server.url, context
        self._csrf = context.request.get(f"{server.url}/v1/session").json()["csrf"]

    def get(self, path: str) -> Any:
        answer = self._context.request.get(f"{self._url}{path}")
        assert answer.ok, answer.text()
        return answer.json()

    def send(self, method: str, path: str, body: Any) -> Any:
        answer = self._context.request.fetch(
            f"{self._url}{path}", method=method, data=body, headers={"X-CSRF-Token": self._csrf}, timeout=120_000
        )
        assert answer.ok, answer.text()
        return answer.json() if answer.body() else None


@pytest.fixture(scope="module")
def api(server: Server, browser: Any, signed_in: Any) -> Iterator[Api]:
    """What the admin may ask."""
    context = browser.new_context(storage_state=signed_in)
    yield Api(server, context)
    context.close()


@pytest.fixture(scope="module")
def ben(another: Callable[[str, str], Any], api: Api, project: str) -> Any:
    """A second reviewer, who may not adjudicate, and was let into the project."""
    state = another("ben", "annotator")
    api.send("POST", "/v1/scopes/grants", {"scope": f"review {project}", "user": "ben"})
    return state


@pytest.fixture(scope="module")
def project(api: Api) -> str:
    """A project with two letters."""
    pytest.importorskip("scipy", reason="the extra evaluate is not installed")
    policy = {"name": "default", "detectors": ["rules", "lexicon"], "dictionary": {"PERSON": list(PEOPLE)}}
    api.send("POST", "/v1/projects", {"name": PROJECT, "policy": policy})
    documents = [{"id": id, "text": text} for id, text in LETTERS.items()]
    api.send("POST", f"/v1/projects/{PROJECT}/documents", {"documents": documents})
    return PROJECT


def document(project: str, id: str) -> str:
    return f"#/review/{project.replace(' ', '%20')}/{id}"


def select(page: Any, words: str) -> None:
    """Selects words of the original, as a pointer does."""
    page.evaluate(
        """words => {
          const root = document.querySelector("[aria-label='Original text']");
          const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
          for (let node = walk.nextNode(); node; node = walk.nextNode()) {
            const at = node.data.indexOf(words);
            if (at >= 0) return getSelection().setBaseAndExtent(node, at, node, at + words.length);
          }
          throw new Error("these words do not stand together");
        }""",
        words,
    )


def test_review_marks_decides_and_ends(
    open_page: Any, project: str, api: Api, shoot: Callable[[Any, str], None]
) -> None:
    page = open_page(path=document(project, "letter-1"))
    text = page.get_by_role("group", name="Original text")
    text.wait_for()
    select(page, "Greenfinchery")
    page.get_by_role("heading", name="Selected text").wait_for()
    page.get_by_label("Label", exact=True).select_option("PRODUCT")
    page.get_by_role("button", name="Missed").click()
    page.get_by_text("Saved", exact=True).wait_for()
    shoot(page, "review-1440-light")

    text.get_by_role("button", name="Tobias Fenwick").click()
    page.keyboard.press("x")
    page.get_by_text("rejected", exact=True).wait_for()  # "Rejected" is for screen readers
    page.keyboard.press("Control+z")
    page.get_by_text("as found", exact=True).wait_for()
    page.keyboard.press("a")
    page.get_by_text("Saved", exact=True).wait_for()
    said = api.get(f"/v1/projects/{project}/documents/letter-1")
    start = LETTERS["letter-1"].index("Greenfinchery")
    assert said["marks"] == [{"start": start, "end": start + 13, "kind": "missed", "label": "PRODUCT", "list": None}]
    assert [d["verdict"] for d in said["decisions"]] == ["accept"]

    page.keyboard.press("d")
    page.wait_for_url("**/letter-2")
    assert api.get(f"/v1/projects/{project}/documents/letter-1")["done"] is True


def test_keyboard_alone_marks_in_code_points(open_page: Any, api: Api, project: str) -> None:
    api.send(
        "POST", f"/v1/projects/{project}/documents", {"documents": [{"id": "signs", "text": "𝔸 𝔹 zyx wvu 🌿 tsr"}]}
    )
    page = open_page(path=document(project, "signs"))
    page.get_by_role("group", name="Original text").focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "p"):
        page.keyboard.press(key)
    page.get_by_text("Saved", exact=True).wait_for()
    (mark,) = api.get(f"/v1/projects/{project}/documents/signs")["marks"]
    assert ("𝔸 𝔹 zyx wvu 🌿 tsr"[mark["start"] : mark["end"]], mark["kind"]) == ("zyx wvu", "partial")


def test_the_panel_gives_way_to_the_text(open_page: Any, api: Api, project: str) -> None:
    text = "A line about bees. " * 60 + "Marisol Quint keeps them."
    api.send("POST", f"/v1/projects/{project}/documents", {"documents": [{"id": "long", "text": text}]})
    page = open_page("390", path=document(project, "long"))
    finding = page.get_by_role("group", name="Original text").get_by_role("button", name="Marisol Quint")
    finding.click()
    panel = page.get_by_role("complementary", name="What is selected")
    panel.get_by_role("heading", name="Finding").wait_for()
    expect(panel.get_by_role("button", name="Close")).to_have_count(1)
    at = finding.bounding_box()
    assert at["y"] + at["height"] <= panel.bounding_box()["y"]
    panel.get_by_role("button", name="Close").click()
    panel.get_by_role("heading", name="This document").wait_for()


def test_never_find_this_is_in_force_at_once(open_page: Any, api: Api, project: str) -> None:
    page = open_page(path=document(project, "letter-2"))
    page.get_by_role("group", name="Original text").get_by_role("button", name="Marisol Quint").click()
    page.keyboard.press("x")
    page.get_by_text("Never find this").wait_for()
    page.get_by_role("button", name="In this project").click()
    page.get_by_text("never found", exact=True).wait_for()
    page.get_by_text("Saved", exact=True).wait_for()
    page.get_by_role("link", name=project).click()
    page.get_by_role("tab", name="Terms").click()
    page.get_by_role("button", name="Remove Marisol Quint").click()
    page.get_by_text("No terms yet").wait_for()
    assert api.get(f"/v1/lists?project={project}")["entries"] == []


def test_two_reviewers_are_blind_then_settle(
    open_page: Any, project: str, api: Api, ben: Any, shoot: Callable[[Any, str], None]
) -> None:
    path = f"/v1/projects/{project}/documents/letter-1"
    first = api.get(path)
    assert first["others"] == []
    page = open_page(path=document(project, "letter-1"), state=ben)
    original = page.get_by_role("group", name="Original text")
    original.wait_for()
    expect(original.locator(".marked")).to_have_count(0)  # nothing of what the other marked
    page.wait_for_timeout(2500)  # some sentences are read meanwhile
    page.get_by_role("button", name="Done, next").click()
    page.wait_for_url(re.compile(r"/(letter-2|signs|Letters%20of%20spring)$"))
    assert api.get(path)["state"] == "disagreement"
    assert {r["reviewer"]: bool(r["opened"]) for r in api.get(path)["others"]}["ben"]

    page = open_page(path=document(project, "letter-1"))
    page.get_by_role("heading", name="1 difference").wait_for()
    shoot(page, "settle-1440-light")
    settle, open_ = page.get_by_role("button", name="Settle"), page.get_by_text("1 open; it can be settled once")
    ours, theirs = (page.get_by_role("button", name=n) for n in ("ada: missed product", "ben: nothing missed"))
    assert settle.is_disabled()
    ours.focus()
    page.keyboard.press("d")
    page.get_by_text("1 difference still open").wait_for()
    for choice in (theirs, ours):
        choice.click()
        page.get_by_text("All decided").wait_for()
        assert [b.get_attribute("aria-pressed") for b in (choice, settle)] == ["true", None]
        page.get_by_role("button", name="Undo").click()
        open_.wait_for()
        assert (choice.get_attribute("aria-pressed"), settle.is_disabled()) == ("false", True)
    page.get_by_role("button", name="Redo").click()
    page.get_by_text("All decided").wait_for()
    settle.click()
    page.wait_for_url("**/Letters%20of%20spring")
    settled = api.get(path)
    assert settled["state"] == "done"
    assert [m["kind"] for m in settled["settled"]["marks"]] == ["missed"]

    page.get_by_role("tab", name="Agreement").click()
    page.get_by_text("Read by two").wait_for()
    page.get_by_role("tab", name="Training data").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1
    assert json.loads(lines[0])["text"] == LETTERS["letter-1"]


def test_what_changes_during_a_save_is_not_shown_as_saved(open_page: Any, api: Api, project: str) -> None:
    api.send("POST", f"/v1/projects/{project}/documents", {"documents": [{"id": "slow", "text": "Tobias Fenwick."}]})
    page = open_page(path=document(project, "slow"))
    held: list[Any] = []
    page.route("**/marks", lambda route: held.append(route))  # not continued yet
    page.get_by_role("group", name="Original text").get_by_role("button", name="Tobias Fenwick").click()
    page.keyboard.press("x")
    page.get_by_text("Saving…", exact=True).wait_for()
    page.evaluate(
        """() => {
          window.shown = [];
          const state = document.querySelector(".saved");
          new MutationObserver(() => window.shown.push(state.textContent)).observe(state, { childList: true });
        }"""
    )
    page.keyboard.press("Control+z")
    held[0].continue_()
    page.wait_for_function("() => window.shown.at(-1) === 'Saving…'")
    assert "Saved" not in page.evaluate("window.shown")
    held[1].continue_()
    page.get_by_text("Saved", exact=True).wait_for()
    assert api.get(f"/v1/projects/{project}/documents/slow")["decisions"] == []


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Calls of four companies."""
    path = tmp_path_factory.mktemp("corpus") / "calls.jsonl"
    lines = []
    for company, (p, o, c) in COMPANIES.items():
        for i in range(3):
            text = " ".join(topic.format(p=p, o=o, c=c, n=7 + 3 * i + k) for k, topic in enumerate(TOPICS))
            lines.append(json.dumps({"id": f"{company}-{i}", "company": company, "text": text}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_swap_from_upload_to_a_chosen_release(
    open_page: Any, corpus: Path, violations: Callable[[Any], list[str]], shoot: Callable[[Any, str], None]
) -> None:
    page = open_page(path="#/corpus")
    page.get_by_role("button", name="New corpus").first.click()
    page.locator("input[type=file]").set_input_files(str(corpus))
    page.get_by_text("4 different values of “company” in 12 documents.").wait_for()
    page.get_by_text("More choices").click()
    expect(page.get_by_label("Term", exact=True)).to_have_value("swap")  # each category of the settings, in its state
    expect(page.get_by_label("Event", exact=True)).to_have_value("change")
    page.get_by_label("Date", exact=True).select_option("change")
    page.get_by_label("Search").select_option("quick")
    page.get_by_label("Embedder").select_option("lsa")
    page.get_by_label("Clusters").fill("2")
    page.get_by_label("Population").fill("1000, 1000000")
    shoot(page, "corpus-form-1440-light")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Stages").wait_for()
    plane = page.get_by_role("listbox", name=re.compile("^Risk and utility"))
    plane.wait_for(timeout=120_000)
    shoot(page, "corpus-1440-light")
    assert violations(page) == []

    marks = plane.get_by_role("option")
    other = marks.and_(plane.locator("[aria-selected=false]")).first
    name = other.get_attribute("aria-label")
    assert name is not None
    at = other.bounding_box()
    page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    expect(plane.locator("[aria-selected=true]")).to_have_count(1)
    plane.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    for key in ("ArrowUp", "ArrowLeft", "ArrowRight", "ArrowUp"):  # the arrows may lead back to the one that is chosen
        expect(page.get_by_role("button", name=re.compile("^(Chosen|Choose this release)$"))).to_be_visible()
        if not page.get_by_role("button", name="Chosen").count():
            break
        page.keyboard.press(key)
        page.keyboard.press("Enter")
    page.get_by_role("button", name="Choose this release").click()
    page.get_by_role("button", name="Chosen").wait_for(timeout=60_000)

    page.get_by_role("heading", name="Texts before and after").click()
    page.locator(".pair mark").first.wait_for(timeout=60_000)
    expect(page.locator(".pair").first).to_contain_text("Before")
    page.get_by_role("button", name=re.compile("^release-")).first.wait_for(timeout=60_000)
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("^release-")).last.click()
    assert len(Path(download.value.path()).read_text(encoding="utf-8").splitlines()) == 12


def test_an_invited_person_answers_on_a_telephone(
    open_page: Any,
    browser: Any,
    violations: Callable[[Any], list[str]],
    shoot: Callable[[Any, str], None],
    tmp_path: Path,
) -> None:
    texts = tmp_path / "texts.jsonl"
    record = "[PERSON] wrote the opera about the sea and taught in [CITY] for most of a long life. Part {}."
    texts.write_text(
        "".join(
            json.dumps({"id": f"t{i}", "text": record.format(i), "subject": s, "group": "famous"}) + "\n"
            for i, s in enumerate(SUBJECTS)
        ),
        encoding="utf-8",
    )
    page = open_page(path="#/studies")
    page.get_by_role("button", name="New study").first.click()
    page.locator("input[type=file]").set_input_files(str(texts))
    page.get_by_label("Judgements per text").fill("1")
    page.get_by_role("button", name="Make the study").click()
    page.get_by_role("button", name="Invite people").click()
    page.get_by_role("button", name="Make links").click()
    link = page.locator("dialog code").inner_text()

    guest = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark")
    form = guest.new_page()
    form.goto(link)
    form.get_by_role("button", name="Begin").click()
    expect(form.get_by_role("alert")).to_have_text("Please tick the box if you agree to take part.")
    form.get_by_label("I have read this").check()
    form.get_by_role("button", name="Begin").click()
    part = form.locator("blockquote").inner_text()
    form.get_by_label("Yes", exact=True).check()
    form.get_by_label("First guess").fill(SUBJECTS["Part 1" in part])
    form.get_by_role("button", name="Send and go on").click()
    expect(form.get_by_role("alert")).to_have_text("Please say what revealed the identity.")
    form.get_by_label("Which part of the text revealed").fill("the opera about the sea")
    shoot(form, "study-390-dark")
    assert violations(form) == []
    assert form.evaluate("document.documentElement.scrollWidth <= innerWidth")
    form.get_by_role("button", name="Send and go on").click()
    form.get_by_text("Text 2 of 2").wait_for()
    form.reload()  # nothing that was sent is lost
    form.get_by_label("I have read this").check()
    form.get_by_role("button", name="Go on").click()
    form.get_by_text("Text 2 of 2").wait_for()
    form.get_by_label("No", exact=True).check()
    learnt = form.get_by_label("What could you find out about the person?")
    learnt.fill("a composer")
    form.get_by_role("button", name="Back").click()
    form.get_by_label("First guess").fill("Somebody Else")
    form.get_by_role("button", name="Back").click()
    form.get_by_role("button", name="Go on").click()
    expect(learnt).to_have_value("a composer")
    guest.set_offline(True)
    form.get_by_role("button", name="Send", exact=True).click()
    form.get_by_text("Your answer was not sent: The server cannot be reached. It is still here").wait_for()
    guest.set_offline(False)
    form.get_by_role("button", name="Send", exact=True).click()
    form.get_by_role("button", name="Finish").click()
    form.get_by_role("heading", name="Thank you").wait_for()
    guest.close()

    page.keyboard.press("Escape")
    page.get_by_text("1 of 1 claim").wait_for()
    shoot(page, "study-results-1440-light")
    page.get_by_text("All pages are taken").wait_for()
    assert page.get_by_role("button", name="Invite people").is_disabled()
    page.get_by_text("1 invitation", exact=True).click()
    page.get_by_role("button", name="Withdraw the invitation to page 1").click()
    page.get_by_text("2 answers of this person are removed.").wait_for()
    page.get_by_role("button", name="Withdraw", exact=True).click()
    page.get_by_text("No answers yet").wait_for()
    assert page.get_by_role("button", name="Invite people").is_enabled()


def test_a_job_with_files(open_page: Any, shoot: Callable[[Any, str], None], tmp_path: Path) -> None:
    for name, text in LETTERS.items():
        (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    page = open_page(path="#/jobs")
    page.get_by_role("button", name="New job").click()
    page.locator("input[type=file]").set_input_files([str(p) for p in sorted(tmp_path.glob("*.txt"))])
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Results").wait_for(timeout=60_000)
    shoot(page, "job-1440-light")
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile(r"letter-1.*\.txt")).click()
    safe = Path(download.value.path()).read_text(encoding="utf-8")
    assert "Tobias Fenwick" not in safe
    assert "I keep bees" in safe
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/#/jobs")


def test_what_cannot_be_read_says_so(open_page: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.docx"
    broken.write_bytes(b"no archive")
    page = open_page(path="#/jobs")
    page.get_by_role("button", name="New job").click()
    page.locator("input[type=file]").set_input_files(str(broken))
    page.get_by_role("button", name="Start").click()
    alert = page.get_by_role("alert")
    alert.wait_for(timeout=60_000)
    expect(alert).to_contain_text("broken.docx")


def test_settings_invite_and_make_a_key(open_page: Any, server: Server, browser: Any) -> None:
    page = open_page(path="#/settings/users")
    page.get_by_role("button", name="Invite").click()
    page.get_by_role("button", name="Make a link").click()
    expect(page.locator("dialog code")).to_contain_text(f"{server.url}/#/setup?token=")
    page.get_by_role("button", name="Close").click()

    page.get_by_role("tab", name="API keys").click()
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("nightly")
    page.get_by_role("button", name="Make the key").click()
    key = page.locator("dialog code").inner_text()
    page.mouse.click(5, 5)  # beside the dialog, which shows what is not shown again
    expect(page.locator("dialog code")).to_have_text(key)
    page.get_by_role("button", name="Close").click()
    page.locator("dialog").wait_for(state="detached")
    page.get_by_role("cell", name="nightly", exact=True).wait_for()
    assert key not in page.content()
    program = browser.new_context(extra_http_headers={"Authorization": f"Bearer {key}"})
    assert program.request.post(f"{server.url}/v1/detect", data={"text": "Ada Holm"}).ok
    assert program.request.get(f"{server.url}/v1/users").status == 403
    program.close()


def test_a_wrong_policy_is_shown_where_it_is_wrong(open_page: Any) -> None:
    page = open_page(path="#/settings/policies")
    page.get_by_role("button", name="New policy").click()
    page.get_by_label("Name").fill("mine")
    page.get_by_label("TOML").fill('extends = "default"\n\n[rules.PERSON]\noperator = "pseudonim"\n')
    page.get_by_role("button", name="Store").click()
    page.get_by_text("did you mean: pseudonym").wait_for()
    marked = "t => t.value.slice(t.selectionStart, t.selectionEnd)"
    assert page.get_by_label("TOML").evaluate(marked) == 'operator = "pseudonim"'
    page.get_by_label("TOML").fill('extends = "default"\n\n[rules.PERSON]\noperator = "mask"\n')
    page.get_by_role("button", name="Store").click()
    page.get_by_role("button", name="mine").wait_for()


def test_six_questions_make_a_policy_for_a_file(
    open_page: Any, violations: Callable[[Any], list[str]], shoot: Callable[[Any, str], None], tmp_path: Path
) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text(
        "Ada Brook came to Leeds on 12 June 2019.\nShe works for Bellwether Broadband.\n", encoding="utf-8"
    )
    for size, scheme in (("1440", "light"), ("1024", "light"), ("390", "dark")):
        page = open_page(size, scheme, path="#/settings/policies")
        page.get_by_role("link", name="Six questions").click()
        page.get_by_role("heading", name="A first policy").wait_for()
        assert not page.get_by_role("heading", name="Before and after").is_visible()
        page.get_by_label("Drop some of your files here").set_input_files(letter)
        expect(page.locator(".pair-box")).to_have_count(2)
        expect(page.get_by_label("The year stays")).not_to_be_checked()
        page.get_by_label("Patients: the 18 identifiers of HIPAA Safe Harbor").focus()
        page.keyboard.press("Space")
        expect(page.get_by_label("The year stays")).to_be_checked()  # what fits the answer
        expect(page.locator(".pair-box").first).to_contain_text("2019.")
        assert violations(page) == [], size
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), size
        shoot(page, f"first-policy-{size}-{scheme}")
        page.get_by_role("heading", name="The policy").scroll_into_view_if_needed()
        shoot(page, f"first-policy-end-{size}-{scheme}")
    page.get_by_text("Read it").click()
    expect(page.locator(".toml")).to_contain_text('extends = "hipaa-safe-harbor"')
    with page.expect_download() as taken:
        page.get_by_role("button", name="Download").click()
    assert "# Dates: the year stays." in Path(taken.value.path()).read_text(encoding="utf-8")
    page.get_by_label("Name", exact=True).fill("a clinic")
    page.get_by_role("button", name="Store and use").click()
    page.get_by_role("button", name="Policy").or_(page.get_by_role("radio", name="Policy")).first.wait_for()
    page.wait_for_function("() => document.querySelector('.choices select')?.value === 'a clinic'")


def test_six_questions_look_at_the_text_on_the_desk(open_page: Any) -> None:
    page = open_page()
    page.get_by_role("textbox", name="Text to protect").fill("Ada Brook came to Leeds.")
    page.get_by_role("link", name="Make one for your texts").click()
    page.get_by_text("Looked at: the text on your desk").wait_for()
    expect(page.locator(".pair-box")).to_contain_text("[PERSON_1]")


def test_a_dialog_keeps_what_was_typed(open_page: Any) -> None:
    page = open_page(path="#/settings/policies")
    page.get_by_role("button", name="New policy").click()
    toml = page.get_by_label("TOML")
    at = toml.bounding_box()
    page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    page.mouse.down()
    page.mouse.move(5, 5)  # a selection that ends beside the dialog
    page.mouse.up()
    assert toml.is_visible()
    page.mouse.click(5, 5)
    toml.wait_for(state="detached")
    page.get_by_role("button", name="New policy").click()
    toml.fill('extends = "default"')
    page.mouse.click(5, 5)
    expect(toml).to_have_value('extends = "default"')


def test_a_server_that_is_gone_and_a_session_that_has_ended(open_page: Any, project: str) -> None:
    page = open_page(path="#/jobs")
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()
    page.context.set_offline(True)
    page.get_by_role("link", name="Corpus").click()
    page.get_by_text("The server does not answer.").wait_for()
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="New corpus").first.wait_for()

    page.evaluate("location.hash = '#/review/100%'")
    page.get_by_role("alert").wait_for()
    expect(page.get_by_role("alert")).to_contain_text("no such project")

    page.evaluate("path => { location.hash = path; }", f"#/review/{project.replace(' ', '%20')}")
    page.get_by_role("button", name="Remove").click()
    page.context.clear_cookies()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_text("Sign in again to go on where you were.").wait_for()
    expect(page.get_by_role("alert")).to_have_text("Your session has ended. Sign in again.")


@pytest.mark.parametrize(("size", "scheme"), [("1440", "light"), ("390", "dark")])
def test_every_page_is_accessible_and_fits(
    open_page: Any,
    project: str,
    size: str,
    scheme: str,
    violations: Callable[[Any], list[str]],
    shoot: Callable[[Any, str], None],
) -> None:
    pages = {
        "jobs": "#/jobs",
        "first-policy": "#/first-policy",
        "corpora": "#/corpus",
        "evaluations": "#/evaluation",
        "studies": "#/studies",
        "projects": "#/review",
        "queue": f"#/review/{project.replace(' ', '%20')}",
        "document": document(project, "letter-2"),
        **{f"settings-{t}": f"#/settings/{t}" for t in ("account", "keys", "users", "policies", "lists", "audit")},
    }
    page = open_page(size, scheme, path=pages["jobs"])
    for name, path in pages.items():
        page.evaluate("path => { location.hash = path; }", path)
        page.wait_for_function("path => location.hash === path", arg=path)
        page.locator("main h1").wait_for()
        page.wait_for_function("() => !document.querySelector('.skeleton, [aria-busy]')")
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        shoot(page, f"{name}-{size}-{scheme}")
    assert page.evaluate("[...document.fonts].some(font => font.status === 'loaded')"), "the font did not come"


def test_a_part_of_a_page_that_did_not_come_is_asked_for_again(open_page: Any) -> None:
    page = open_page(path="#/jobs")
    page.get_by_role("heading", name="Jobs", exact=True).wait_for()
    page.route("**/corpus/make.js", lambda route: route.abort())
    page.get_by_role("link", name="Corpus").click()
    page.get_by_text("The server does not answer.").wait_for()
    page.unroute("**/corpus/make.js")
    page.get_by_role("button", name="Try again").click()
    page.get_by_role("button", name="New corpus").first.wait_for()
