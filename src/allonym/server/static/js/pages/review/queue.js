// The documents of a project, the riskiest first.

import { get, post } from "../../api.js";
import { makeId, readJsonLines } from "../../forms.js";
import { badge, button, dialog, dropZone, emptyState, fill, h, notice, progress, describeError, segments, select, table, toast } from "../../ui.js";
import { route } from "../../router.js";
import { may } from "../../session.js";
import { count, many, number } from "../format.js";
import { paged } from "../loading.js";
import { readable } from "../../families.js";
import { ACCEPTED, readFile } from "../../protect/filing.js";

export const STATES = {
  new: ["new", ""],
  in_review: ["in review", "info"],
  disagreement: ["disagreement", "warn"],
  done: ["done", "good"],
};
const MINE = { none: "", open: "begun by you", done: "done by you" };
const MOST = 5; // points at which the bar is full: the limit
const AT_ONCE = 20;

/** Where a project of documents is: its name, its address at the server, and its page. */
export function placeOf(name) {
  return { name, path: `/v1/projects/${encodeURIComponent(name)}`, page: `review/${encodeURIComponent(name)}`, takesDocuments: true };
}

/** A document's risk as a bar and a number; the limit is 5 points. */
export function riskBar({ risk, bound }) {
  const kind = risk >= 5 ? "high" : risk >= 2 ? "middle" : "low";
  const bar = h("span", { class: `risk-fill ${kind}` });
  bar.style.setProperty("--share", String(Math.min(1, risk / MOST)));
  return h("span", { class: "risk", title: `Expected residual risk ${number(risk, 1)} points; ${bound} if every proposal of the second reading is a leak. The limit is 5.` },
    h("span", { class: "risk-track", "aria-hidden": "true" }, bar), h("span", { class: "out-of-sight" }, "Risk "), h("span", { class: "numbers strong" }, number(risk, 1)));
}

/** The queue of a project at a place; `changed()` when documents came. */
export function queueView(place, { changed } = {}) {
  const state = segments({
    label: "State", value: "", onchange: () => list.reload(true),
    options: [{ value: "", label: "All" }, { value: "new", label: "New" }, { value: "in_review", label: "In review" }, { value: "disagreement", label: "Disagreement" }, { value: "done", label: "Done" }],
  });
  const order = select([{ value: "risk", label: "Riskiest first" }, { value: "gain", label: "Most to learn first" }, { value: "added", label: "As they were added" }], { class: "small", "aria-label": "Order" });
  order.addEventListener("change", () => list.reload(true));
  const find = h("input", { type: "search", class: "input small", placeholder: "Find an id", "aria-label": "Find an id", autocomplete: "off" });
  find.addEventListener("input", () => list.reload(true));
  const some = h("p", { class: "small muted", role: "status", hidden: true });
  const href = (one) => route(`${place.page}/${encodeURIComponent(one.id)}`);
  const list = paged({
    size: 25,
    label: "Pages of documents",
    load: async (offset, limit) => {
      const words = find.value.trim().toLowerCase();
      const found = await get(`${place.path}/documents`, { query: { state: state.value, order: order.value, ...(words ? { limit: 1000 } : { offset, limit }) } });
      some.hidden = !words || found.total <= found.documents.length;
      some.textContent = `Only the first ${count(found.documents.length)} of ${count(found.total)} documents are searched.`;
      if (!words) return { rows: found.documents, total: found.total };
      const rows = found.documents.filter((one) => one.id.toLowerCase().includes(words));
      return { rows: rows.slice(offset, offset + limit), total: rows.length };
    },
    draw: (rows) => table({
      rows,
      columns: [
        { key: "id", label: "Document", render: (one) => h("a", { class: "strong breaks", href: href(one) }, place.nameDocument?.(one.id) ?? one.id) },
        { key: "risk", label: "Risk", render: riskBar },
        { key: "why", label: "Why", render: (one) => h("span", { class: "small muted" }, [...new Set(one.reasons.map((r) => readable(r.tag.replace(/_PARTIAL$/, "")).toLowerCase()))].slice(0, 2).join(", ") || "–") },
        { key: "state", label: "State", render: (one) => h("div", { class: "row" }, badge(...STATES[one.state]), MINE[one.mine] && h("span", { class: "small muted" }, MINE[one.mine])) },
        { key: "reviewers", label: "Reviewers", render: (one) => h("span", { class: "numbers nowrap" }, `${one.done} of 2 done`) },
        { key: "mentions", label: "Findings", number: true },
      ],
    }),
    empty: () => (state.value || find.value.trim() ? emptyState({ title: "No document is like that", icon: "file", body: "Try another state or another id." }) : emptyState({
      title: "No documents yet", icon: "file",
      body: may("adjudicate") ? "Add the texts to review. They are anonymised under the project's policy, and a second reading looks for leaks." : "Somebody who may adjudicate adds them.",
    })),
  });
  const add = place.takesDocuments && may("adjudicate") && button("Add documents", { icon: "upload", onclick: () => askDocuments(place.name, () => { list.reload(true); changed(); }) });
  list.reload();
  return h("section", { class: "stack", "aria-label": "Documents" }, h("div", { class: "spread" }, h("div", { class: "row" }, state), h("div", { class: "row" }, find, order, add)), some, list);
}

/** Asks for files and puts their documents into the queue, some at a time. */
export function askDocuments(project, added) {
  const failed = h("div", { hidden: true });
  const bar = progress({ value: 0, label: "" });
  bar.hidden = true;
  let left = false;
  const take = async (files) => {
    open.hold();
    failed.hidden = true;
    bar.hidden = false;
    try {
      bar.update({ value: null, label: "Reading the files" });
      const documents = await readDocuments(files);
      let done = 0, fresh = 0;
      for (let at = 0; at < documents.length && !left; at += AT_ONCE) {
        bar.update({ value: done, max: documents.length, label: `${done} of ${documents.length}: anonymising and reading a second time` });
        const some = documents.slice(at, at + AT_ONCE);
        const answer = await post(`${placeOf(project).path}/documents`, { documents: some });
        fresh += answer.added;
        done += some.length;
      }
      open.close();
      toast(`${many(fresh, "document")} added${documents.length > fresh ? `, ${documents.length - fresh} were there already` : ""}.`);
    } catch (error) {
      bar.hidden = true;
      fill(failed, notice(describeError(error), { kind: "danger" }));
      failed.hidden = false;
    }
  };
  const zone = dropZone({ label: "Drop files here: JSON Lines with id and text, tables, documents, PDFs", accept: `${ACCEPTED},.ndjson`, multiple: true, onfiles: take });
  const open = dialog({
    title: "Add documents",
    body: h("div", { class: "stack" }, zone, bar, failed, h("p", { class: "small muted" }, "JSON Lines: one document per line, {\"id\": …, \"text\": …} or {\"id\": …, \"turns\": [{\"speaker\": …, \"text\": …}]}. Of other files each record is a document, such as a row of a table.")),
    closed: () => { left = true; added(); },
  });
}

async function readDocuments(files) {
  const out = [];
  for (const file of files) {
    if (/\.(jsonl|ndjson)$/i.test(file.name)) {
      out.push(...await readJsonLines(file, (record, number) => {
        const id = makeId(record.id ?? `${file.name}-${number}`);
        if (Array.isArray(record.turns)) return { id, turns: record.turns.map(({ speaker = null, text = "" }) => ({ speaker, text })) };
        return typeof record.text === "string" ? { id, text: record.text } : null;
      }, "an object with text, or with turns, is needed."));
    } else {
      const { name, documents } = await readFile(file);
      for (const { id, text } of documents) if (text.trim()) out.push({ id: makeId(documents.length > 1 ? `${name}-${id}` : name), text });
    }
  }
  if (!out.length) throw new Error("The files hold no documents.");
  return out;
}
