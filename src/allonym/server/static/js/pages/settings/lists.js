// The organisation's own terms: what is always found, and what is never. They are in force at once, under every policy.

import { get, post, remove } from "../../api.js";
import { actionButton, form } from "../../forms.js";
import { badge, describeError, emptyState, field, fill, h, input, notice, segments, table, toast } from "../../ui.js";
import { paged } from "../loading.js";
import { when } from "../format.js";
import { readable } from "../../families.js";
import { choices, labelSelect } from "../policychoice.js";

export const KINDS = { dictionary: ["always found", "accent"], exclusion: ["never found", "warn"] };

export function listsTab() {
  return termList({ title: "Lists", says: "Terms that are always or never found. They apply to every policy at once." });
}

/** A list of terms with a form to add one; `project` keeps it to one project's. */
export function termList({ title, says, project = null }) {
  const list = paged({
    size: 25,
    label: "Pages of terms",
    load: async (offset, limit) => {
      const found = await get("/v1/lists", { query: { project, offset, limit } });
      return { rows: found.entries, total: found.total ?? found.entries.length };
    },
    draw: (rows) => draw(rows, () => list.reload()),
    empty: emptyState({ title: "No terms yet", body: "Decisions in the review queue become terms here: “always find this” and “never find this”.", icon: "list" }),
  });
  const form = h("div", {});
  addForm(project, () => list.reload(true)).then((made) => fill(form, made)).catch((error) => fill(form, notice(describeError(error), { kind: "danger" })));
  list.reload();
  return h("section", { class: "stack" }, h("div", { class: "stack tight" }, h("h2", {}, title), says && h("p", { class: "muted" }, says)), form, list);
}

function draw(rows, reload) {
  const drop = (row) => h("div", { class: "row end" }, actionButton("Remove", async () => {
    await remove(`/v1/lists/${encodeURIComponent(row.id)}`).finally(reload);
    toast("Removed. It no longer applies.");
  }, { small: true, kind: "quiet", icon: "trash", "aria-label": `Remove ${row.term}` }));
  return table({
    rows,
    columns: [
      { key: "term", label: "Term", render: (row) => h("span", { class: "strong breaks" }, row.term) },
      { key: "kind", label: "Kind", render: (row) => badge(...KINDS[row.kind]) },
      { key: "label", label: "Label", render: (row) => (row.label === "*" ? "any" : readable(row.label)) },
      rows.some((row) => row.project) && { key: "project", label: "Project", render: (row) => row.project ?? "all" },
      { key: "by", label: "Added", render: (row) => h("span", {}, row.by ?? "", " ", when(row.created, "")) },
      { key: "drop", label: h("span", { class: "out-of-sight" }, "Actions"), render: drop },
    ].filter(Boolean),
  });
}

async function addForm(project, added) {
  const { labels } = await choices();
  const term = field({ label: "Term", control: input({ maxlength: 300, spellcheck: "false" }), check: (value) => (value.trim() ? "" : "A term is needed.") });
  const label = field({ label: "Label", control: labelSelect(labels, { value: "PERSON" }) });
  const kind = segments({ label: "Kind", value: "dictionary", options: [{ value: "dictionary", label: "Always find" }, { value: "exclusion", label: "Never find" }] });
  return form({
    class: "add-term", fields: [term], submit: { label: "Add", kind: "", icon: "plus" }, beside: kind,
    send: async () => {
      await post("/v1/lists", { kind: kind.value, label: label.control.value, term: term.control.value.trim(), ...(project ? { project } : {}) });
      term.control.value = "";
      term.control.focus();
      added();
    },
    refuse: (error) => term.wrong(describeError(error)),
  }, term, label);
}
