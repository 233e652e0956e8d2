// Work in the background: files to anonymise or to restore, and everything else that takes longer than a request.

import { get } from "../api.js";
import { form } from "../forms.js";
import { badge, button, dropZone, emptyState, field, fill, h, input, pageHead, segments, select, stylesheet, table, toast } from "../ui.js";
import { go, route } from "../router.js";
import { may } from "../session.js";
import { many, when } from "./format.js";
import { KINDS, actions, ended, jobPage, progressBar, progressWords, results, start, stateBadge, times, trouble } from "./job.js";
import { facts, folded, paged } from "./loading.js";
import { fileList, policyChoice } from "./policychoice.js";

/** Endings of files that jobs treat. */
export const FILES = ".txt,.md,.docx,.xlsx,.pptx,.odt,.ods,.odp,.rtf,.pdf,.csv,.tsv,.json,.jsonl,.parquet,.eml,.msg,.mbox,.ics,.vcf,.html,.xml,.yaml,.ipynb,.epub,.zip,.doc,.xls,.ppt,.srt,.vtt,.gz";
const HOMES = { swap: "corpus", evaluate: "evaluation", harden: "hardening" };

export async function show(root, { rest, make }) {
  await stylesheet("pages/pages.css");
  return rest ? one(root, rest) : all(root, Boolean(make));
}

function all(root, opened) {
  let timer = 0, gone = false;
  const kind = select([{ value: "", label: "All kinds" }, ...Object.entries(KINDS).map(([value, label]) => ({ value, label }))], { class: "small", "aria-label": "Kind" });
  const list = paged({
    size: 20,
    label: "Pages of jobs",
    load: async (offset, limit) => {
      clearTimeout(timer);
      const found = await get("/v1/jobs", { query: { kind: kind.value, offset, limit } });
      if (!gone && found.jobs.some((job) => !ended(job))) timer = setTimeout(() => list.reload(), 1500);
      kind.hidden = !found.jobs.length && !kind.value && !offset;
      return { rows: found.jobs, total: found.total ?? found.jobs.length };
    },
    draw: (rows) => table({
      rows,
      columns: [
        { key: "name", label: "Job", render: (job) => h("a", { class: "strong breaks", href: home(job) }, job.name || job.id) },
        { key: "kind", label: "Kind", render: (job) => KINDS[job.kind] ?? job.kind },
        { key: "state", label: "State", render: (job) => h("div", { class: "row" }, stateBadge(job), !ended(job) && h("span", { class: "small muted numbers" }, progressWords(job))) },
        { key: "created", label: "Made", render: (job) => when(job.created) },
        { key: "actions", label: h("span", { class: "out-of-sight" }, "Actions"), render: (job) => h("div", { class: "row end" }, actions(job, () => list.reload())) },
      ],
    }),
    empty: () => emptyState({ title: kind.value ? "No job of this kind" : "No jobs yet", body: "Hand over files: they are anonymised in the background, even after you close this page.", icon: "clock", actions: [button("New job", { icon: "plus", onclick: () => open(true) })] }),
  });
  kind.addEventListener("change", () => list.reload(true));
  const { make, place, open } = folded("New job", makeForm);
  root.append(
    pageHead("Jobs", "Files are anonymised or restored in the background. A job survives a restart of the server.", [make]),
    h("div", { class: "stack wide" }, place, h("section", { class: "stack", "aria-label": "Jobs" }, h("div", { class: "row end" }, kind), list)),
  );
  if (opened) open(true);
  list.reload();
  return () => { gone = true; clearTimeout(timer); };
}

function home(job) {
  return HOMES[job.kind] ? route(`${HOMES[job.kind]}/${job.id}`) : route(`jobs/${job.id}`);
}

function makeForm(hide) {
  const kinds = [{ value: "anonymize", label: "Anonymise" }, ...(may("restore") ? [{ value: "restore", label: "Restore" }] : [])];
  const kind = segments({ label: "What to do", options: kinds, value: "anonymize", onchange: () => draw() });
  const files = fileList({ onchange: () => { sheet.sendButton.disabled = !files.files.length; } });
  const zone = dropZone({ label: "Drop files here: texts, Word, tables, JSON Lines, mail", accept: FILES, multiple: true, onfiles: (more) => files.add(more) });
  const policy = policyChoice();
  const column = field({ label: "Field", control: input({ placeholder: "text", spellcheck: "false" }), hint: "For tables and JSON Lines: the column or key that holds the text; separate several with commas." });
  const scopes = {
    anonymize: "Store originals in the vault under this name, so that they can be restored. Empty: nothing is stored.",
    restore: "The vault scope that was named when the files were anonymised.",
  };
  const scope = field({ label: "Vault scope", control: input({ placeholder: "interviews", spellcheck: "false", maxlength: 200 }), hint: scopes.anonymize, check: (value) => (kind.value === "restore" && !value.trim() ? "The scope is needed to find the originals." : "") });
  const fields = h("div", { class: "two" });
  const draw = () => {
    const restore = kind.value === "restore";
    fill(fields, h("div", { class: "stack" }, !restore && policy), h("div", { class: "stack" }, scope, !restore && column));
    scope.querySelector(".hint").textContent = scopes[kind.value];
    scope.wrong("");
  };
  draw();
  const sheet = form({
    class: "stack wide", fields: [scope], submit: { label: "Start", icon: "play", disabled: true }, cancel: hide,
    send: async (report) => {
      const options = {};
      const names = column.control.value.split(",").map((name) => name.trim()).filter(Boolean);
      if (scope.control.value.trim()) options.scope = scope.control.value.trim();
      if (kind.value !== "restore") {
        options.policy = policy.value;
        if (names.length) options.fields = names;
      }
      const job = await start(kind.value, files.files, options, report);
      toast(`${many(files.files.length, "file")} sent. The job goes on when you close this page.`);
      go(`jobs/${job.id}`);
    },
  }, h("div", { class: "spread" }, h("h2", {}, "New job"), kind), zone, files, fields);
  return sheet;
}

function one(root, id) {
  return jobPage(root, id, { href: "#/jobs", back: "Jobs" }, (job, { head, body, follow }) => {
    fill(head, pageHead(job.name || job.id, null, actions(job, () => (ended(job) ? go("jobs") : follow()))));
    fill(body,
      h("section", { class: "card stack" },
        h("div", { class: "row" }, stateBadge(job), badge(KINDS[job.kind] ?? job.kind), times(job)),
        !ended(job) && progressBar(job), trouble(job), summary(job)),
      job.state === "done" && h("section", { class: "card stack" }, h("h2", {}, "Results"), results(job)));
  });
}

/** What a job says of itself: counts, in words. */
function summary(job) {
  const told = Object.entries(job.summary ?? {}).filter(([, value]) => typeof value === "number" || typeof value === "string");
  if (!told.length) return null;
  return facts(told.map(([name, value]) => [name.replaceAll("_", " "), typeof value === "number" ? value.toLocaleString("en") : value]));
}
