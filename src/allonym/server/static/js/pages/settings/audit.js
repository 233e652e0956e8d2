// The audit log: who did what, and how many; never any text.

import { get } from "../../api.js";
import { actionButton } from "../../forms.js";
import { emptyState, errorState, fill, h, skeleton, table } from "../../ui.js";
import { when } from "../format.js";

const STEP = 50;

export function auditTab() {
  const list = h("div", {}, skeleton(6));
  const more = actionButton("Earlier entries", () => load(), { icon: "down", hidden: true });
  let entries = [];
  const shown = table({
    rows: [],
    empty: emptyState({ title: "Nothing yet", icon: "list" }),
    columns: [
      { key: "time", label: "When", render: (row) => when(row.time) },
      { key: "actor", label: "Who", render: (row) => h("span", { class: "strong breaks" }, row.actor) },
      { key: "action", label: "What", render: (row) => h("span", { class: "breaks" }, row.action) },
      { key: "counts", label: "How many", render: (row) => h("span", { class: "numbers" }, Object.entries(row.counts).map(([n, v]) => `${n.replaceAll("_", " ")} ${v.toLocaleString("en")}`).join(", ") || "–") },
    ],
  });
  const load = async () => {
    const found = await get("/v1/audit", { query: { limit: STEP, before: entries.at(-1)?.number } });
    entries = [...entries, ...found.entries];
    shown.update(entries);
    more.hidden = found.entries.length < STEP;
  };
  const first = () => load().then(() => fill(list, shown)).catch((error) => fill(list, errorState(error, first)));
  first();
  return h("section", { class: "stack" },
    h("div", { class: "stack tight" }, h("h2", {}, "Audit log"), h("p", { class: "muted" }, "Who did what, without any text. The vault also has its own log of what was restored.")),
    list, h("div", { class: "row" }, more));
}
