"""Jobs over HTTP: each kind, what is refused, who sees what, what is left on the disk."""

from __future__ import annotations

import json
import time

import pytest

pytestmark = pytest.mark.slow

RULES = {"name": "default", "detectors": ["rules"]}
MARKER = "Zaphrandel"


def send(client, kind, *files, options=None, status=202, **more):
    sent = [("files", one) for one in files] + [(role, one) for role, many in more.items() for one in many]
    done = client.post("/v1/jobs", data={"kind": kind, "options": json.dumps(options or {})}, files=sent)
    assert done.status_code == status, done.text
    return done.json()


def ended(client, job, within=240.0):
    until = time.monotonic() + within
    while job["state"] in ("queued", "running") and time.monotonic() < until:
        time.sleep(0.05)
        job = client.get(f"/v1/jobs/{job['id']}").json()
    return job


def made(client, job, name):
    done = client.get(f"/v1/jobs/{job['id']}/results/{name}")
    assert done.status_code == 200, done.text
    return done


def refused(done, status, code, *words):
    assert done.status_code == status, done.text
    error = done.json()["error"]
    assert error["code"] == code
    assert all(word in error["message"] for word in words), error
    return error


def folder_of(site, job):
    return site.folder / "jobs" / job["id"]


def files_of(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture(scope="module")
def kept(annotator):
    """A job with a scope, ended: its input, the job."""
    text = b"Write to ada@example.com or bob@example.com.\n"
    options = {"policy": RULES, "scope": "letters", "plans": True, "originals": True}
    return text, ended(annotator, send(annotator, "anonymize", ("letter.txt", text), options=options))


def test_a_file_is_anonymised(annotator, kept):
    _, job = kept
    assert job["state"] == "done" and job["error"] is None
    assert job["name"] == "letter.txt" and job["owner"] == "annotator"
    assert job["options"] == {"policy": "default", "scope": "letters", "plans": True, "originals": True}
    assert [r["name"] for r in job["results"]] == ["letter-safe.txt", "plans.jsonl", "report.json"]
    assert job["summary"]["labels"] == {"EMAIL_ADDRESS": 2} and job["summary"]["files"] == 1
    safe = made(annotator, job, "letter-safe.txt")
    assert safe.content == b"Write to [EMAIL_ADDRESS_1] or [EMAIL_ADDRESS_2].\n"
    assert safe.headers["content-disposition"].startswith('attachment; filename="letter-safe.txt"')
    assert safe.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in safe.headers["content-security-policy"]
    plan = json.loads(made(annotator, job, "plans.jsonl").text)
    assert plan["id"] == "letter.txt" and plan["plan"]["edits"][0]["original"] == "ada@example.com"
    assert job["expires"] == job["ended"] + 24 * 3600


def test_inputs_go_when_a_job_has_ended_and_nobody_else_may_read_the_rest(site, kept):
    folder = folder_of(site, kept[1])
    assert files_of(folder) == [
        "ended", "lock", "out/file-00001.txt", "out/named/plans.jsonl", "out/named/report.json", "progress.json",
    ]  # fmt: skip
    for path in (site.folder / "jobs", folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path
    for path in folder.iterdir():  # results are what the user gets; nothing beside them names a file
        assert path.is_dir() or b"letter" not in path.read_bytes(), path


def test_what_the_vault_kept_comes_back(reviewer, annotator, kept, site):
    text, job = kept
    safe = made(annotator, job, "letter-safe.txt").content
    grant = {"scope": "letters", "user": "reviewer"}
    assert annotator.post("/v1/scopes/grants", json=grant).status_code == 204
    done = ended(
        reviewer, send(reviewer, "restore", ("a.txt", safe), ("b.md", b"none\n"), options={"scope": "letters"})
    )
    assert done["state"] == "done", done
    assert done["summary"] == {"files": 2, "restored": 2, "unknown": 0, "notes": []}
    assert [r["name"] for r in done["results"]] == ["a-restored.txt", "b-restored.md"]
    assert made(reviewer, done, "a-restored.txt").content == text
    nothing = reviewer.post("/v1/jobs", data={"kind": "restore", "options": "{}"}, files=[("files", ("a.txt", safe))])
    assert nothing.status_code == 422 and "plan or scope is required" in nothing.json()["error"]["message"]
    limited = site.program("reviewer", "jobs")
    assert limited.get(f"/v1/jobs/{done['id']}").status_code == 200
    refused(limited.get(f"/v1/jobs/{done['id']}/results/a-restored.txt"), 403, "NotAllowed", "restore")
    plan = json.loads(made(annotator, job, "plans.jsonl").text)["plan"]
    again = ended(reviewer, send(reviewer, "restore", ("a.txt", safe), options={"plan": plan}))
    assert made(reviewer, again, "a-restored.txt").content == text


def test_the_jobs_of_a_removed_user_go(site, admin, kept):
    link = admin.post("/v1/invitations", json={"role": "annotator"}).json()["link"]
    body = {"token": link.partition("token=")[2], "name": "eve", "password": "a password for eve alone"}
    assert admin.post("/v1/setup", json=body).status_code == 201
    eve = site.client()
    csrf = eve.post("/v1/session", json={"name": "eve", "password": body["password"]}).json()["csrf"]
    eve.headers["X-CSRF-Token"] = csrf
    job = ended(eve, send(eve, "anonymize", ("mine.txt", b"ada@example.com"), options={"policy": RULES}))
    assert folder_of(site, job).exists()
    assert admin.delete("/v1/users/eve").status_code == 204
    until = time.monotonic() + 30
    while folder_of(site, job).exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not folder_of(site, job).exists()
    assert job["id"] not in [one["id"] for one in admin.get("/v1/jobs").json()["jobs"]]


def test_who_may_not_restore_may_not_restore_by_a_job(annotator):
    done = annotator.post("/v1/jobs", data={"kind": "restore"}, files=[("files", ("a.txt", b"x"))])
    refused(done, 403, "NotAllowed", "restore")


def test_several_files_of_all_formats_and_one_that_is_refused(annotator, site):
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<a>" + b" " * (40 << 20) + b"</a>")
    sent = [
        ("../../rows.csv", b"id,note\n1,mail ada@example.com\n"),
        ("rows.csv", b"id,note\n1,mail bob@example.com\n"),
        ("b.jsonl", b'{"id": 1, "text": "mail ada@example.com"}\n{"id": \n'),
        ("mail.md", b"# ada@example.com\n"),
        ("bomb.docx", packed.getvalue()),
    ]
    job = ended(annotator, send(annotator, "anonymize", *sent, options={"policy": RULES}))
    assert job["state"] == "done", job
    assert job["name"] == "rows.csv and 4 more"
    names = [r["name"] for r in job["results"]]
    assert names == [
        "rows-safe.csv", "rows (2)-safe.csv", "b-safe.jsonl", "mail-safe.md", "quarantine.jsonl", "report.json",
    ]  # fmt: skip
    assert made(annotator, job, "rows (2)-safe.csv").text == "id,note\n1,mail [EMAIL_ADDRESS_1]\n"
    assert [r["name"] for r in job["summary"]["refused"]] == ["bomb.docx"]
    assert "200 times" in job["summary"]["refused"][0]["reason"]
    lines = [json.loads(line) for line in made(annotator, job, "quarantine.jsonl").text.splitlines()]
    assert [line["file"] for line in lines] == ["b.jsonl", "bomb.docx"]
    assert not list(site.folder.parent.rglob("rows*.csv"))


@pytest.mark.parametrize("others", [(), (("b.txt", b"x"),)])
def test_a_mail_of_outlook_comes_back_as_a_mail(annotator, others):
    pytest.importorskip("oxmsg")
    from tests.files.test_msg import make_msg

    job = ended(annotator, send(annotator, "anonymize", ("a.msg", make_msg()), *others, options={"policy": RULES}))
    assert job["state"] == "done", job
    assert b"fennside" not in made(annotator, job, "a-safe.msg.eml").content


def test_a_file_that_cannot_be_treated_fails_with_its_reason(annotator, site):
    job = ended(annotator, send(annotator, "anonymize", (f"{MARKER}.docx", b"no zip"), options={"policy": RULES}))
    assert (job["state"], job["error"]) == ("failed", f"{MARKER}.docx: not an office file (BadZipFile)")
    assert job["results"] == [] and files_of(folder_of(site, job)) == ["ended", "lock"]


def test_options_are_strict(annotator):
    def tried(kind="anonymize", text="{}", files=(("files", ("a.txt", b"x")),)):
        return annotator.post("/v1/jobs", data={"kind": kind, "options": text}, files=list(files))

    refused(tried("anonymise"), 400, "UnknownNameError", "did you mean: anonymize")
    refused(tried(text='{"polcy": "default"}'), 400, "UnknownNameError", "did you mean: policy")
    refused(tried(text='{"policy": "defualt"}'), 400, "UnknownNameError", "did you mean: default")
    refused(tried(text='{"policy": "/etc/passwd"}'), 400, "UnknownNameError")
    refused(tried(text='{"policy": {"name": "default", "detectors": ["llm"]}}'), 400, "PolicyError", "another machine")
    refused(tried(text='{"plans": "perhaps"}'), 422, "InvalidRequest", "options.plans")
    refused(tried(text="[]"), 422, "InvalidRequest", "an object")
    refused(tried(text="{"), 422, "InvalidRequest", "JSON")
    refused(tried(text='{"format": "cvs"}'), 400, "UnknownNameError", "csv")
    refused(tried("swap"), 422, "InvalidRequest", "options.protect")
    refused(tried("swap", '{"protect": "company", "slope": NaN}'), 422, "InvalidRequest", "finite")
    refused(tried("swap", '{"protect": "company", "slope": 1e999}'), 422, "InvalidRequest", "finite")
    refused(tried(text='{"fields": ["\\ud800"]}'), 422, "InvalidRequest", "options.fields")
    refused(tried("restore", '{"plan": ' + '{"a":' * 3000 + "1" + "}" * 3000 + "}"), 403, "NotAllowed")
    refused(tried("swap", '{"protect": "company", "settings": "../x.toml"}'), 400, "UnknownNameError")
    refused(tried("swap", '{"protect": "company", "embedder": "openai"}'), 422, "InvalidRequest", "options.embedder")
    refused(tried("swap", '{"protect": "company", "fallback": {"*": "keeep"}}'), 400, "UnknownNameError", "keep")
    refused(tried("swap", '{"protect": "company", "section": "a >>> b"}'), 422, "InvalidRequest")
    refused(tried(files=[("file", ("a.txt", b"x"))]), 400, "UnknownNameError", "did you mean: files")
    refused(tried(files=[("gold", ("a.jsonl", b"x"))]), 400, "UnknownNameError")
    refused(tried(files=[("files", ("a.exe", b"x"))]), 422, "DataError", ".exe")
    refused(tried("evaluate"), 422, "NoFile", "anonymised")
    error = refused(tried(text=json.dumps({"fields": [MARKER * 100]})), 422, "InvalidRequest")
    assert MARKER not in json.dumps(error)


def test_uploads_that_are_none_leave_nothing(annotator, site):
    before = set((site.folder / "jobs").iterdir())
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    head = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nabc'
    for body, headers, status in (
        (b"{}", {"Content-Type": "application/json"}, 415),
        (b"", form, 400),
        (b"x", {**form, "Content-Length": str(4 << 30)}, 413),
        (head, form, 400),
        (head + b"\r\n--x\r\nbroken", form, 400),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\n\r\n--x--\r\n", form, 400),
        (b"--x\r\nA: " + b"a" * 10_000 + b"\r\n\r\n\r\n--x--\r\n", form, 400),
        (
            b'--x\r\nContent-Disposition: form-data; name="kind"\r\n\r\n' + b"a" * (2 << 20) + b"\r\n--x--\r\n",
            form,
            413,
        ),
        (b'--x\r\nContent-Disposition: form-data; name="kind"\r\n\r\nanonymize\r\n--x--\r\n', form, 422),
    ):
        done = annotator.post("/v1/jobs", content=body, headers=headers)
        assert done.status_code == status, (status, done.text)
    assert set((site.folder / "jobs").iterdir()) == before


def test_jobs_are_their_owners_and_the_admins(annotator, reviewer, admin, anybody, kept):
    id = kept[1]["id"]
    assert admin.get(f"/v1/jobs/{id}").json()["owner"] == "annotator"
    assert id in [j["id"] for j in admin.get("/v1/jobs").json()["jobs"]]
    mine = reviewer.get("/v1/jobs").json()
    assert id not in [j["id"] for j in mine["jobs"]]
    for method, path in (
        ("get", ""), ("post", "/cancel"), ("delete", ""), ("get", "/results/letter-safe.txt"), ("get", "/releases"),
        ("get", "/releases/0/documents"),
    ):  # fmt: skip
        refused(getattr(reviewer, method)(f"/v1/jobs/{id}{path}"), 404, "NotFound")
        refused(getattr(anybody, method)(f"/v1/jobs/{id}{path}"), 401, "NotSignedIn")
    refused(reviewer.post(f"/v1/jobs/{id}/choose", json={"release": 0}), 404, "NotFound")


def test_what_is_not_there_is_not_found(annotator, kept):
    id = kept[1]["id"]
    for name in ("report.jso", "../ended", "..%2fended", "file-00001.txt", "ended"):
        assert annotator.get(f"/v1/jobs/{id}/results/{name}").status_code == 404
    refused(annotator.get("/v1/jobs/0123456789"), 404, "NotFound")
    refused(annotator.get(f"/v1/jobs/{id}/releases"), 409, "WrongKind")
    refused(annotator.post(f"/v1/jobs/{id}/cancel"), 409, "Ended")


def test_lists_have_pages(annotator, kept):
    whole = annotator.get("/v1/jobs").json()
    assert whole["total"] == len(whole["jobs"]) > 1
    assert annotator.get("/v1/jobs?offset=1&limit=1").json() == {"jobs": whole["jobs"][1:2], "total": whole["total"]}
    kinds = {job["kind"] for job in whole["jobs"]}
    assert kinds
    for kind in ("anonymize", "restore", "swap", "evaluate", "harden"):
        found = annotator.get(f"/v1/jobs?kind={kind}&limit=1000").json()
        assert {job["kind"] for job in found["jobs"]} == kinds & {kind}
        assert found["total"] == len(found["jobs"])
    assert annotator.get("/v1/jobs?kind=other").status_code == 422


def test_a_job_that_waits_or_runs_is_cancelled_and_removed(annotator, site):
    rows = b"".join(b'{"text": "Ada Brook met Bob Green in Leeds. %d"}\n' % i for i in range(20_000))
    running, waiting = (send(annotator, "anonymize", ("rows.jsonl", rows)) for _ in range(2))
    while annotator.get(f"/v1/jobs/{running['id']}").json()["state"] == "queued":
        time.sleep(0.05)
    gone = annotator.post(f"/v1/jobs/{waiting['id']}/cancel")
    assert gone.json()["state"] == "cancelled" and gone.json()["error"] is None
    while not annotator.get(f"/v1/jobs/{running['id']}").json()["progress"]["done"]:
        time.sleep(0.05)
    assert annotator.get(f"/v1/jobs/{running['id']}").json()["progress"]["stage"] == "anonymising"
    assert annotator.delete(f"/v1/jobs/{running['id']}").status_code == 204
    assert annotator.get(f"/v1/jobs/{running['id']}").status_code == 404
    assert not folder_of(site, running).exists()
    assert not list(folder_of(site, waiting).rglob("*.jsonl"))
    assert annotator.delete(f"/v1/jobs/{waiting['id']}").status_code == 204


def test_two_versions_are_evaluated(annotator):
    texts = [f"Ada Brook lives in Leeds, house {n}." for n in range(4)]
    raw = [(f"t{n}.txt", t.encode()) for n, t in enumerate(texts)]
    safe = [(f"t{n}-safe.txt", t.replace("Ada Brook", "[PERSON_1]").encode()) for n, t in enumerate(texts)]
    options = {"measures": ["syntheticity", "detection"]}
    job = ended(annotator, send(annotator, "evaluate", *raw, options=options, anonymised=reversed(safe)))
    assert job["state"] == "done", job
    assert [r["name"] for r in job["results"]] == ["report.html", "report.json"]
    told = made(annotator, job, "report.json").json()
    assert told["texts"] == 4 and set(told["measures"]) == {"syntheticity"}
    assert job["summary"]["skipped"][0]["measure"] == "detection"
    page = annotator.get(f"/v1/jobs/{job['id']}/results/report.html?inline=true")
    assert page.headers["content-disposition"].startswith("inline")
    assert page.headers["content-security-policy"].startswith("sandbox allow-scripts; default-src 'none'")
    done = annotator.post(
        "/v1/jobs",
        data={"kind": "evaluate"},
        files=[("files", raw[0]), ("files", raw[1]), ("anonymised", ("x.txt", b"x")), ("anonymised", safe[0])],
    )
    refused(done, 422, "NoPartner", "'x.txt'")


def test_a_few_texts_are_evaluated_at_once(annotator):
    before = [f"Ada Brook lives in Leeds, house {n}." for n in range(3)]
    after = [t.replace("Ada Brook", "[PERSON_1]") for t in before]
    body = {"original": before, "anonymised": after, "measures": ["syntheticity", "downstream"]}
    done = annotator.post("/v1/evaluate", json=body)
    assert done.status_code == 200, done.text
    told = done.json()
    assert set(told["measures"]) == {"syntheticity"} and told["texts"] == 3
    assert told["skipped"][0]["measure"] == "downstream" and "(labels)" in told["skipped"][0]["reason"]
    from allonym.evaluate.synthetic_text import syntheticity
    from allonym.serial import to_plain

    assert told["measures"]["syntheticity"] == to_plain(syntheticity(before, after, seed=0).to_dict(texts=False))
    refused(annotator.post("/v1/evaluate", json={**body, "measures": ["risk"]}), 400, "UnknownNameError")
    assert annotator.post("/v1/evaluate", json={**body, "anonymised": after[:1]}).status_code == 422
    long = {"original": ["x" * 150_000], "anonymised": ["x" * 150_000]}
    refused(annotator.post("/v1/evaluate", json=long), 413, "TooLarge", "job")


def test_a_level_of_hardening_is_chosen(annotator):
    subjects = {"Ada": "guitar folk ginger", "Ben": "football penalty captain", "Cleo": "novel wizard castle"}
    texts = [
        f"{subject} is known for the {word} and often talks about it. A friend told us about the {traits.split()[0]}."
        for subject, traits in subjects.items()
        for word in traits.split()
    ]
    raw = [(f"t{n}.txt", t.encode()) for n, t in enumerate(texts)]
    safe = [(f"t{n}-safe.txt", t.replace(t.split()[0], "PERSON_1", 1).encode()) for n, t in enumerate(texts)]
    table = "file,who\n" + "".join(f"t{n}.txt,{t.split()[0]}\n" for n, t in enumerate(texts))
    refused(
        annotator.post("/v1/jobs", data={"kind": "harden", "options": "{}"}, files=[("files", raw[0])]),
        *(422, "InvalidRequest", "options.subject"),
    )
    sent = {"anonymised": safe, "metadata": [("about.csv", table.encode())]}
    job = ended(annotator, send(annotator, "harden", *raw, options={"subject": "who"}, **sent))
    assert job["state"] == "done", job
    path = f"/v1/jobs/{job['id']}"
    refused(annotator.get(f"{path}/releases"), 409, "WrongKind", "no releases")
    frontier = annotator.get(f"{path}/levels").json()
    assert frontier["chosen"] == frontier["suggested"] == job["summary"]["chosen"]
    gone = [level["gone"]["value"] for level in frontier["levels"]]
    assert gone == sorted(gone) and gone[-1] > gone[0]
    assert [level["id"] for level in frontier["levels"] if level["panel"]] == [frontier["chosen"]]

    other = len(gone) - 1
    assert annotator.post(f"{path}/choose", json={"release": other + 1}).status_code == 404
    job = ended(annotator, annotator.post(f"{path}/choose", json={"release": other}).json())
    assert job["error"] is None and job["summary"]["chosen"] == other
    assert {f"t0-safe-level-{other}.txt", f"report-{other}.html"} <= {result["name"] for result in job["results"]}
    chosen = annotator.get(f"{path}/levels").json()["levels"][other]
    assert chosen["chosen"] and chosen["panel"] == job["summary"]["panel"]
    page = annotator.get(f"{path}/releases/{other}/documents").json()
    assert page["total"] == len(texts) and page["documents"][0]["id"] == "t0.txt"
    written = [made(annotator, job, f"t{n}-safe-level-{other}.txt").text for n in range(len(texts))]
    assert written == [document["after"] for document in page["documents"]]
    assert written != [text.decode() for _, text in safe]

    first = frontier["suggested"]
    job = ended(annotator, annotator.post(f"{path}/choose", json={"release": first}).json())
    assert job["summary"]["chosen"] == first == annotator.get(f"{path}/levels").json()["chosen"]


@pytest.fixture(scope="module")
def swapped(annotator):
    """A swap that is done, with the corpus that was sent."""
    from benchmarks.jobs_kill import invent_calls

    calls, options = invent_calls(5, 1)
    return calls, ended(annotator, send(annotator, "swap", ("calls.jsonl", calls), options=options))


def test_a_swap_shows_its_releases(annotator, swapped):
    _, job = swapped
    assert job["state"] == "done", job
    told = annotator.get(f"/v1/jobs/{job['id']}/releases").json()
    chosen = [r["id"] for r in told["releases"] if r["chosen"]]
    assert chosen == [told["chosen"]] == [job["summary"]["chosen"]]
    assert [r["name"] for r in job["results"]] == [f"release-{told['chosen']}.jsonl", "report.html", "numbers.json"]
    assert len(told["releases"]) == job["summary"]["releases"] == 5 and any(r["on_frontier"] for r in told["releases"])
    assert told["population"] in told["populations"] and told["baseline"] == {"risk": 1.0, "utility": 1.0}
    numbers = made(annotator, job, "numbers.json").json()
    assert [r["utility"]["value"] for r in numbers["releases"]] == [r["utility"]["value"] for r in told["releases"]]
    written = next(r["written"] for r in told["releases"] if r["chosen"])  # the same numbers as report and terminal
    for name in ("utility", "cosine", "changed", "uniques"):
        assert written[name]["value"] == pytest.approx(numbers["released"][name])
    left = {float(n): e["value"] for n, e in numbers["released"]["remaining"].items()}[told["population"]]
    assert written["remaining"]["value"] == pytest.approx(left)


def test_documents_of_a_release_before_and_after(annotator, swapped):
    calls, job = swapped
    other = 0 if job["summary"]["chosen"] else 1
    page = annotator.get(f"/v1/jobs/{job['id']}/releases/{other}/documents?offset=1&limit=2").json()
    assert page["ready"] and page["total"] == 5
    rows = [json.loads(line) for line in calls.splitlines()]
    assert [d["id"] for d in page["documents"]] == [r["id"] for r in rows[1:3]]
    for document, row in zip(page["documents"], rows[1:3], strict=True):
        assert row["text"] in document["before"] and row["text"] not in document["after"]
        swaps = [s for s in document["spans"] if s["kind"] == "swap"]
        assert swaps and len(document["spans"]) == len(document["before_spans"])
        at = [0, 0]  # what is not marked is the same on both sides
        for old, new in zip(document["before_spans"], document["spans"], strict=True):
            assert document["before"][at[0] : old["start"]] == document["after"][at[1] : new["start"]]
            at = [old["end"], new["end"]]
        assert document["before"][at[0] :] == document["after"][at[1] :]
    refused(annotator.get(f"/v1/jobs/{job['id']}/releases/99/documents"), 404, "NotFound")


def test_a_release_that_could_not_be_made_says_why_and_is_made_when_asked_again(annotator, swapped, site):
    _, job = swapped
    from allonym.server.jobs.swapping import get_release_documents_path

    jobs = site.services.jobs
    made_already = jobs.runner.get_job_folder(job["id"]).made
    releases = annotator.get(f"/v1/jobs/{job['id']}/releases").json()["releases"]
    last = next(one["id"] for one in releases if not get_release_documents_path(made_already, one["id"]).exists())
    queue = jobs._queue
    row = queue.find_job(job["id"])
    wanted = {**row.releases, "make": [*row.releases.get("make", ()), last]}
    queue.set_job_state(row.id, "done", wanted=json.dumps(wanted))
    queue.store_ending_or_requeue(row.id, "done", {**row.ending, "wanted": wanted, "error": "no space left"})
    path = f"/v1/jobs/{job['id']}/releases/{last}/documents"
    for _ in range(2):
        refused(annotator.get(path), 409, "NotMade", "no space left")
    until = time.monotonic() + 120
    page = annotator.get(path, params={"again": True}).json()
    while not page["ready"] and time.monotonic() < until:
        page = annotator.get(path).json()
    assert page["total"] == 5


def test_a_chosen_release_becomes_a_result(annotator, swapped):
    calls, job = swapped
    best, other = job["summary"]["chosen"], 0 if job["summary"]["chosen"] else 1
    ended(annotator, annotator.get(f"/v1/jobs/{job['id']}").json())
    done = annotator.post(f"/v1/jobs/{job['id']}/choose", json={"release": other})
    assert done.status_code == 200 and done.json()["state"] in ("queued", "running")
    job = ended(annotator, done.json())
    names = [r["name"] for r in job["results"]]
    assert names == [f"release-{best}.jsonl", f"release-{other}.jsonl", "report.html", "numbers.json"]
    assert annotator.get(f"/v1/jobs/{job['id']}/releases").json()["chosen"] == other == job["summary"]["chosen"]
    rows = [json.loads(line) for line in made(annotator, job, names[1]).text.splitlines()]
    page = annotator.get(f"/v1/jobs/{job['id']}/releases/{other}/documents").json()
    assert all(row["text"] in d["after"] for row, d in zip(rows, page["documents"], strict=True))
    assert len(rows) == len(calls.splitlines())


def test_a_corpus_of_several_files_comes_back_as_one_packed_file(annotator):
    import io
    import zipfile

    from benchmarks.jobs_kill import invent_calls

    calls, options = invent_calls(5, 2)
    rows = [json.loads(line) for line in calls.splitlines()]
    texts = [(f"call {n}.txt", row["text"].encode()) for n, row in enumerate(rows)]
    table = "file,company\n" + "".join(f"call {n}.txt,{r['company']}\n" for n, r in enumerate(rows))
    options = {name: value for name, value in options.items() if name != "fields"}
    job = ended(annotator, send(annotator, "swap", *texts, options=options, metadata=[("about.csv", table.encode())]))
    assert job["state"] == "done", job
    name = job["results"][0]["name"]
    assert name.endswith(".zip")
    with zipfile.ZipFile(io.BytesIO(made(annotator, job, name).content)) as archive:
        assert archive.namelist() == [f"call {n}.txt" for n in range(5)]
        assert all(archive.read(f"call {n}.txt") != texts[n][1] for n in range(5))


def test_audit_tells_of_jobs_without_any_name(admin, kept):
    lines = admin.get("/v1/audit").json()
    assert "job anonymize" in json.dumps(lines) and "letter" not in json.dumps(lines)


def test_metrics_count_jobs(admin, kept):
    told = admin.get("/metrics").text
    assert 'allonym_jobs{state="done"}' in told


def test_pdfs_are_anonymised_and_evaluated(annotator):
    from tests.server.test_files import _pdf

    letter = _pdf("Ada Brook lives here. Write to ada@example.com.")
    job = ended(annotator, send(annotator, "anonymize", ("letter.pdf", letter), options={"policy": RULES}))
    safe = made(annotator, job, "letter-safe.pdf").content
    assert job["state"] == "done" and safe.startswith(b"%PDF") and b"ada@example" not in safe
    options = {"measures": ["information"]}
    job = ended(
        annotator,
        send(annotator, "evaluate", ("letter.pdf", letter), options=options, anonymised=[("letter.pdf", safe)]),
    )
    assert job["state"] == "done", job
    assert {r["name"] for r in job["results"]} == {"report.html", "report.json"}
