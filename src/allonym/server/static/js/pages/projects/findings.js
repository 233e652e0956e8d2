// What a project replaces, by person or other referent and by surface; a click opens the card in which it is corrected.

import { get, post } from "../../api.js";
import { actionButton } from "../../forms.js";
import { badge, emptyState, fill, h, iconButton, notice, select, table, toast } from "../../ui.js";
import { readable } from "../../families.js";
import { count, many } from "../format.js";
import { loaded, paged } from "../loading.js";
import { choices, labelSelect } from "../policychoice.js";

/** The findings of a project at a place (see ../review/queue.js); `changed()` after a correction. */
export function findingsView(place, { changed }) {
  const label = select([{ value: "", label: "Everything" }, { value: "PERSON", label: "People" }, { value: "ORGANIZATION", label: "Organisations" }, { value: "LOCATION", label: "Places" }], { class: "small", "aria-label": "What is shown" });
  const card = h("aside", { class: "card review-panel", "aria-label": "Mention" });
  const corrections = h("div", {});
  const list = paged({
    size: 50,
    label: "Pages of findings",
    load: async (offset, limit) => {
      const found = await get(`${place.path}/findings`, { query: { label: label.value, offset, limit } });
      return { rows: found.entities, total: found.total };
    },
    draw: (rows) => table({
      rows: rows.flatMap((entity) => entity.surfaces.map((surface, i) => ({ entity, surface, isFirst: i === 0 }))),
      columns: [
        { key: "name", label: "Who or what", render: ({ entity, isFirst }) => (isFirst ? h("span", { class: "strong breaks" }, entity.name) : "") },
        { key: "label", label: "Label", render: ({ entity, isFirst }) => (isFirst ? readable(entity.label) : "") },
        { key: "surface", label: "As written", render: ({ entity, surface }) => h("button", { type: "button", class: "link breaks", onclick: () => openCard(entity, surface) }, surface.text) },
        { key: "becomes", label: "Becomes", render: ({ surface }) => h("span", { class: "breaks" }, surface.replacements.join(", ")) },
        { key: "mentions", label: "Mentions", number: true, render: ({ surface }) => count(surface.mentions) },
        { key: "documents", label: "Documents", number: true, render: ({ surface }) => count(surface.documents) },
      ],
    }),
    empty: emptyState({ title: "Nothing was found yet", icon: "file", body: "What identifies in the files of the project stands here, by person and by how it is written." }),
  });
  label.addEventListener("change", () => list.reload(true));

  const correct = async (correction, what = "corrections") => {
    const { files } = await post(`${place.path}/${what}`, correction);
    toast(`${many(files, "file")} anonymised again.`);
    await Promise.all([list.reload(), changed()]);
    drawCorrections();
    closeCard();
  };
  const closeCard = () => {
    card.dataset.type = "";
    fill(card, h("div", { class: "stack" }, h("p", { class: "muted small" }, "Click what is written to correct it once, here or everywhere. What was missed is marked in the review, or named below."), missed()));
  };

  async function openCard(entity, surface) {
    const { labels } = await choices();
    const where = select([{ value: "", label: "Everywhere" }, ...entity.documents.map((id) => ({ value: id, label: `Only in ${place.nameDocument(id)}` }))], { "aria-label": "Where" });
    const family = labelSelect(labels, { value: entity.label, "aria-label": "Label" });
    const say = (decision, chosen = null) => correct({ surface: surface.text, decision, label: chosen, document: where.value || null });
    card.dataset.type = "mention";
    fill(card, h("div", { class: "stack" },
      h("div", { class: "row still" }, h("h2", { class: "grow" }, "Mention"), iconButton("close", "Close", { small: true, onclick: closeCard })),
      h("p", { class: "quote breaks" }, surface.text),
      h("p", { class: "small muted" }, `${many(surface.mentions, "mention")} in ${many(surface.documents, "document")}, becomes ${surface.replacements.join(", ")}`),
      h("div", { class: "field" }, h("span", { class: "label" }, "Where"), where),
      h("div", {}, actionButton("Never find this", () => say("never"), { kind: "primary", icon: "close" })),
      h("div", { class: "field" }, h("span", { class: "label" }, "Always find it as"), family),
      h("div", {}, actionButton("Always find this", () => say("always", family.value), { icon: "check" })),
      entity.number !== null && await whose(entity, surface)));
    if (innerWidth < 900) card.scrollIntoView({ block: "nearest" });
  }

  /** Who a person is: the same as another of the register, or, for one of several names, somebody else. */
  async function whose(entity, surface) {
    const { entities } = await get(`${place.path}/findings`, { query: { label: "PERSON", limit: 1000 } });
    const others = entities.filter((one) => one.number !== null && one.number !== entity.number);
    const other = select([{ value: "", label: "Choose…" }, ...others.map((one) => ({ value: String(one.number), label: one.name }))], { "aria-label": "Another person" });
    return h("div", { class: "stack" },
      others.length > 0 && h("div", { class: "field" }, h("span", { class: "label" }, `${entity.name} is the same as`), other),
      others.length > 0 && h("div", {}, actionButton("The same person", async () => (other.value ? correct({ person: entity.number, same_as: Number(other.value) }, "people") : other.focus()), { icon: "people" })),
      entity.surfaces.length > 1 && h("div", {}, actionButton("This name is somebody else's", () => correct({ person: entity.number, part: surface.text }, "people"), { icon: "split" })));
  }

  function missed() {
    const text = h("input", { class: "input", "aria-label": "What was missed", maxlength: 200, autocomplete: "off", spellcheck: "false" });
    const holder = h("div", {});
    choices().then(({ labels }) => {
      const family = labelSelect(labels, { value: "PERSON", "aria-label": "Its label" });
      fill(holder, h("div", { class: "stack tight" }, h("span", { class: "label" }, "Always find another text"), text, family,
        h("div", {}, actionButton("Add", () => correct({ surface: text.value, decision: "always", label: family.value, document: null }), { small: true, icon: "plus" }))));
    }).catch((error) => fill(holder, notice(error.message, { kind: "danger" })));
    return holder;
  }

  const drawCorrections = () => loaded(corrections, () => get(`${place.path}/corrections`), ({ corrections: rows }) => (rows.length ? h("section", { class: "stack" }, h("h2", {}, "Corrections"), table({
    rows,
    columns: [
      { key: "surface", label: "Text", render: (row) => h("span", { class: "strong breaks" }, row.surface) },
      { key: "decision", label: "Is", render: (row) => badge(row.decision === "never" ? "never found" : "always found", row.decision === "never" ? "warn" : "accent") },
      { key: "label", label: "Label", render: (row) => (row.label === "*" ? "any" : readable(row.label)) },
      { key: "document", label: "Where", render: (row) => (row.document ? place.nameDocument(row.document) : "everywhere") },
      { key: "forget", label: h("span", { class: "out-of-sight" }, "Actions"), render: (row) => h("div", { class: "row end" }, actionButton("Take back", () => correct({ surface: row.surface, decision: "forget", label: null, document: row.document }), { small: true, kind: "quiet", icon: "undo" })) },
    ],
  })) : null), 1);

  closeCard();
  list.reload();
  drawCorrections();
  return h("section", { class: "stack wide", "aria-label": "Findings" }, h("div", { class: "row" }, label),
    h("div", { class: "with-side" }, list, card), corrections);
}
