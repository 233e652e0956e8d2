// Projects: sets of documents that are reviewed under one policy.

import { get, post, remove } from "../../api.js";
import { actionButton, form } from "../../forms.js";
import { button, dialog, emptyState, field, h, input, pageHead } from "../../ui.js";
import { go, route } from "../../router.js";
import { may } from "../../session.js";
import { count, many, when } from "../format.js";
import { paged } from "../loading.js";
import { policyChoice } from "../policychoice.js";
import { STATES, askDocuments, placeOf } from "./queue.js";

/** The list of projects. */
export function projectsView(root) {
  const list = paged({
    size: 24,
    label: "Pages of projects",
    load: async (offset, limit) => {
      const found = await get("/v1/projects", { query: { offset, limit } });
      return { rows: found.projects, total: found.total };
    },
    draw: (rows) => h("ul", { class: "grid cards" }, rows.map(card)),
    empty: emptyState({
      title: "No projects yet", icon: "list",
      body: may("adjudicate") ? "A project holds documents that two people review independently: they mark leaks and needless replacements." : "Somebody who may adjudicate makes one, and lets you in.",
      actions: may("adjudicate") ? [button("New project", { icon: "plus", onclick: ask })] : [],
    }),
  });
  root.append(pageHead("Review", "People review anonymised documents, the riskiest first. Their decisions apply at once, and the tagger can learn from them.", may("adjudicate") ? [button("New project", { kind: "primary", icon: "plus", onclick: ask })] : []), list);
  list.reload();
}

function card(project) {
  const { states, documents } = project;
  const bar = h("div", { class: "states-bar", role: "img", "aria-label": Object.entries(STATES).map(([state, [words]]) => `${states[state] ?? 0} ${words}`).join(", ") });
  for (const state of ["done", "disagreement", "in_review", "new"]) {
    const part = h("span", { class: state });
    part.style.setProperty("flex-grow", String(states[state] ?? 0));
    bar.append(part);
  }
  return h("li", { class: "card project" },
    h("h2", {}, h("a", { href: route(`review/${encodeURIComponent(project.name)}`) }, project.name)),
    h("p", { class: "small muted" }, documents ? `${many(documents, "document")}, ${count(states.done ?? 0)} done` : "No documents yet"),
    documents > 0 && bar,
    states.disagreement > 0 && h("p", { class: "small" }, `${states.disagreement} wait for a decision`),
    h("p", { class: "tiny muted" }, `${project.owner}, `, when(project.created)));
}

function ask() {
  const name = field({ label: "Name", control: input({ maxlength: 64, spellcheck: "false" }), check: (value) => (value.includes("/") ? "A name has no slash." : value.trim() ? "" : "A name is needed.") });
  const policy = policyChoice({ label: "Policy under which the texts are anonymised" });
  const sheet = form({
    fields: [name], submit: { label: "Make the project" }, end: true,
    send: async () => {
      const title = name.control.value.trim();
      await post("/v1/projects", { name: title, policy: policy.value });
      open.close();
      askDocuments(title, () => go(`review/${encodeURIComponent(title)}`));
    },
  }, name, policy);
  const open = dialog({ title: "New project", body: sheet });
  name.control.focus();
}

/** A button that removes a project. */
export function removeButton(project) {
  return actionButton("Remove", async () => {
    await remove(placeOf(project.name).path);
    go("review");
  }, {
    kind: "quiet", icon: "trash",
    sure: { title: `Remove ${project.name}?`, body: `Its ${many(project.documents, "document")}, their reviews and its terms are removed. This cannot be undone.` },
  });
}
