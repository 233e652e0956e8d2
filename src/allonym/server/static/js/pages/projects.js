// Projects of files: files are dropped, what was found is corrected once for all, two review, a signed ZIP comes out.

import { get, post, remove } from "../api.js";
import { actionButton, form } from "../forms.js";
import { badge, button, dropZone, emptyState, errorState, field, fill, h, icon, input, notice, pageHead, select, stylesheet, table, tabs } from "../ui.js";
import { go, route } from "../router.js";
import { current, may } from "../session.js";
import { agreementView } from "./review/agreement.js";
import { showDocument } from "./review/document.js";
import { STATES, queueView } from "./review/queue.js";
import { FILES } from "./jobs.js";
import { count, many, size, when } from "./format.js";
import { ended, progressBar, start, watch } from "./job.js";
import { facts, folded, loaded } from "./loading.js";
import { choices, fileList } from "./policychoice.js";
import { findingsView } from "./projects/findings.js";
import { releaseView } from "./projects/release.js";

const LISTS = [["document", "In this document"], ["project", "In the whole project"]];

export async function show(root, { rest, job }) {
  await Promise.all([stylesheet("pages/pages.css"), stylesheet("pages/review.css")]);
  if (!rest) return all(root);
  const [id, document] = rest.split("/");
  const project = await get(`/v1/file-projects/${encodeURIComponent(id)}`);
  return document ? showDocument(root, placeOf(project), document) : one(root, project, job);
}

/** Where the project is, for the pages of reviews (see review/queue.js); a correction holds for all its documents or one. */
function placeOf(project) {
  const path = `/v1/file-projects/${project.id}`;
  const names = new Map(project.files.map((file) => [file.number, file]));
  const place = {
    name: project.name, path, page: `projects/${project.id}`, lists: LISTS,
    nameDocument(id) {
      const [file, record] = id.split("-").map(Number);
      const known = names.get(file);
      return known ? (known.documents > 1 ? `${known.name}, ${record}` : known.name) : id;
    },
    correct: (correction) => post(`${path}/corrections`, correction),
    async reopen(root, id) {
      root.replaceChildren();
      await showDocument(root, place, id);
    },
  };
  return place;
}

function all(root) {
  const list = h("div", {});
  const load = () => loaded(list, () => get("/v1/file-projects"), ({ projects }) => (projects.length ? draw(projects) : emptyState({
    title: "No projects yet", icon: "file",
    body: "A project leads files to a signed release: all are anonymised together, corrections apply everywhere, and two people review.",
    actions: may("anonymize") ? [button("New project", { icon: "plus", onclick: () => open(true) })] : [],
  })));
  const { make, place, open } = folded("New project", makeForm);
  root.append(pageHead("Projects", "From files to a signed release: anonymise, correct once for all, review by two, release.", may("anonymize") ? [make] : []),
    h("div", { class: "stack wide" }, place, list));
  load();
}

function draw(projects) {
  return h("ul", { class: "lines" }, projects.map((one_) => h("li", {},
    h("a", { class: "job-line", href: route(`projects/${one_.id}`) }, h("span", { class: "strong cut grow" }, one_.name),
      h("span", { class: "small muted" }, `${one_.owner ?? "nobody"}, policy ${one_.policy}, `, when(one_.created)), icon("right")))));
}

function makeForm(hide) {
  const today = new Date().toISOString().slice(0, 10);
  const name = field({ label: "Name", control: input({ maxlength: 64, spellcheck: "false", value: `Project of ${today}` }), check: (value) => (value.trim() ? "" : "A name is needed.") });
  const policy = field({ label: "Policy", control: select(["default"]), hint: "It holds for the whole project." });
  choices().then(({ policies }) => {
    policy.control.options_(policies.map((p) => p.name));
    policy.control.value = policies.some((p) => p.name === "pseudonyms") ? "pseudonyms" : "default";
  }).catch((error) => policy.wrong(error.message));
  const files = fileList({ onchange: () => { sheet.sendButton.disabled = !files.files.length; } });
  const zone = dropZone({ label: "Drop files here: Word, PDF, tables, texts and others", accept: FILES, multiple: true, onfiles: (more) => files.add(more) });
  const sheet = form({
    class: "stack wide", fields: [name], submit: { label: "Anonymise all", icon: "play", disabled: true }, cancel: hide,
    send: async (report) => {
      const project = await post("/v1/file-projects", { name: name.control.value.trim(), policy: policy.control.value });
      const job = await start("project", files.files, { project: project.id, action: "add" }, report);
      go(`projects/${project.id}`, { job: job.id });
    },
  }, h("h2", {}, "New project"), zone, files, h("div", { class: "two" }, name, policy));
  return sheet;
}

function one(root, first, job) {
  const place = placeOf(first);
  const head = h("div", {}), running = h("div", { hidden: true }), body = h("div", {});
  let project = first, stop = () => {};
  const owns = first.owner ? first.owner === current().name : may("admin"); // who was let in where the owner is gone
  const refresh = async () => {
    project = await get(place.path);
    Object.assign(place, placeOf(project));
    drawAll();
  };
  /** Follows a job of the project, and shows the project anew when it has ended. */
  const follow = (id, done = () => {}) => {
    stop();
    running.hidden = false;
    stop = watch(id, (job) => {
      fill(running, h("section", { class: "card stack", "aria-label": "Running" }, ended(job) ? outcome(job) : progressBar(job)));
      if (ended(job)) refresh().then(() => done(job)).catch((error) => fill(body, errorState(error, refresh)));
    }, { failed: (error) => fill(running, notice(error.message, { kind: "danger" })) });
  };
  const run = async (action, files, options = {}, report = () => {}, done = () => {}) => follow((await start("project", files, { project: project.id, action, ...options }, report)).id, done);
  let selected = "findings";
  const drawAll = () => {
    const { states } = project;
    fill(head, pageHead(project.name, `${many(project.files.length, "file")}, ${many(project.documents, "document")}, ${count(project.people)} people, ${count(states.done ?? 0)} documents settled. Policy: ${project.policy}.`,
      owns ? [actionButton("Remove", async () => { await remove(place.path); go("projects"); }, { kind: "quiet", icon: "trash", sure: { title: `Remove ${project.name}?`, body: "Its files, reviews and releases, and its originals in the vault are removed. This cannot be undone." } })] : []));
    const make = {
      findings: () => findingsView(place, { changed: refreshHead }),
      files: () => filesView(project, place, { owns, run, refresh }),
      review: () => queueView(place),
      agreement: () => agreementView(place),
      release: () => releaseView(project, place, { owns, run, refresh }),
    };
    const panels = Object.fromEntries(Object.keys(make).map((id) => [id, h("div", {})]));
    const open = (id) => { selected = id; if (!panels[id].firstChild) fill(panels[id], make[id]()); };
    const labels = { findings: "Findings", files: "Files", review: "Review", agreement: "Agreement", release: "Release" };
    fill(body, tabs({ label: "Project", selected, onselect: open, items: Object.entries(labels).map(([id, label]) => ({ id, label, panel: panels[id] })) }));
    open(selected);
  };
  const refreshHead = async () => { project = await get(place.path); };
  root.append(h("a", { class: "back", href: "#/projects" }, icon("left"), "Projects"), head, h("div", { class: "stack wide" }, running, body));
  drawAll();
  if (job) follow(job);
  return () => stop();
}

/** What came of a job: files that were refused, or what went wrong. */
function outcome(job) {
  const refused = job.summary?.refused ?? [];
  if (job.state !== "done") return notice(job.error ?? "It was cancelled.", { kind: "danger" });
  if (job.summary?.release) return notice(`The release is written and signed: ${many(job.summary.files, "file")}.`, { kind: "good" });
  return [
    notice(`${many(job.summary.files, "file")} added, ${many(job.summary.documents, "document")}.${job.summary.known ? ` ${many(job.summary.known, "file")} were there already.` : ""}`, { kind: "good" }),
    refused.length > 0 && notice(h("ul", { class: "plain" }, refused.map((row) => h("li", {}, h("strong", {}, row.name), ": ", row.reason))), { kind: "warn" }),
  ];
}

function filesView(project, place, { owns, run, refresh }) {
  const chosen = fileList({ onchange: () => { sheet.sendButton.disabled = !chosen.files.length; } });
  const sheet = form({
    submit: { label: "Anonymise", icon: "play", disabled: true },
    send: (report) => run("add", chosen.files, {}, report),
  }, dropZone({ label: "Drop more files here", accept: FILES, multiple: true, onfiles: (more) => chosen.add(more) }), chosen);
  const drop = (file) => h("div", { class: "row end" }, actionButton("Remove", () => remove(`${place.path}/files/${file.number}`).then(refresh), {
    small: true, kind: "quiet", icon: "trash", "aria-label": `Remove ${file.name}`, sure: { title: `Remove ${file.name}?`, body: "Its documents and their reviews are removed from the project." },
  }));
  return h("section", { class: "stack wide" }, owns && sheet, project.files.length > 0 && table({
    rows: project.files,
    columns: [
      { key: "name", label: "File", sort: (f) => f.name.toLowerCase(), render: (f) => h("span", { class: "strong breaks" }, f.name) },
      { key: "size", label: "Size", number: true, sort: (f) => f.size, render: (f) => size(f.size) },
      { key: "documents", label: "Documents", number: true, sort: (f) => f.documents, render: (f) => count(f.documents) },
      { key: "mentions", label: "Findings", number: true, sort: (f) => f.mentions, render: (f) => count(f.mentions) },
      { key: "states", label: "Review", render: (f) => h("div", { class: "row" }, Object.entries(f.states).filter(([, n]) => n).map(([state, n]) => badge(`${n} ${STATES[state][0]}`, STATES[state][1])), f.failures > 0 && badge(`${f.failures} failed`, "danger")) },
      owns && { key: "drop", label: h("span", { class: "out-of-sight" }, "Actions"), render: drop },
    ].filter(Boolean),
  }), members(project, place, { refresh, owns }));
}

/** Who may open the project, and a form of the owner's to let others in. */
function members(project, place, { owns, refresh }) {
  const user = field({ label: "User", control: input({ maxlength: 64, spellcheck: "false", autocapitalize: "none" }), check: (value) => (value.trim() ? "" : "The name of a user is needed.") });
  const sheet = form({
    class: "add-term", fields: [user], submit: { label: "Let in", kind: "", icon: "plus" },
    send: async () => { await post("/v1/scopes/grants", { scope: project.scope, user: user.control.value.trim() }); await refresh(); },
  }, user);
  return h("section", { class: "card stack" }, h("h2", {}, "People"), facts([["Owner", project.owner ?? "nobody"], ["Also in the project", project.users.join(", ") || "nobody"]]), owns && sheet);
}
