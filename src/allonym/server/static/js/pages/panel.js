// The panel of intruders: the worst as the headline, and the table of all beside it.

import { h, table } from "../ui.js";
import { interval, middle, share } from "./format.js";
import { figure } from "./loading.js";

const whole = (value) => share(middle(value), 0);

/** What intruders of a panel identify; nothing where none was asked. */
export function panelView(panel) {
  const rows = (panel?.rows ?? []).filter((row) => Number.isFinite(middle(row.identified)));
  if (!rows.length) return null;
  const { worst } = panel;
  const missing = panel.rows.filter((row) => !rows.includes(row)).map((row) => row.name);
  return h("div", { class: "stack" },
    h("dl", { class: "figures" }, figure(`Identified at worst: ${worst.name} intruder`,
      h("span", {}, h("span", { class: "muted" }, `${whole(worst.before)} → `), whole(worst.identified)),
      `${worst.among ? `of ${worst.among}; ` : ""}${worst.knows}; by guessing ${whole(worst.chance)}`)),
    table({
      caption: "What each intruder of the panel identifies",
      columns: [
        { key: "name", label: "Intruder" },
        { key: "knows", label: "Knowledge" },
        { key: "identified", label: "Identified", number: true, render: withInterval },
        { key: "before", label: "Originals", number: true, render: (row) => whole(row.before) },
        { key: "chance", label: "Guessing", number: true, render: (row) => whole(row.chance) },
      ],
      rows,
    }),
    missing.length > 0 && h("p", { class: "small muted" }, `Not asked: ${missing.join(", ")}.`));
}

function withInterval(row) {
  const ends = interval(row.identified);
  return `${whole(row.identified)}${ends ? ` (${share(ends[0], 0)} to ${share(ends[1], 0)})` : ""}`;
}
