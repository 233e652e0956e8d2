// The stages of a swap as they go by.

import { badge, fill, h, icon, progress } from "../../ui.js";
import { count } from "../format.js";

const STAGES = [
  ["reading", "Reading", "documents are cut into passages on one topic; direct identifiers are replaced"],
  ["vectors", "Vectors", "each passage becomes a point, near to those that speak of the same"],
  ["clusters", "Clusters", "passages on one topic are found"],
  ["tables", "Tables", "how many passages are unique, and would be in the population"],
  ["exchanges", "Exchanges", "names change places within topics, again and again"],
  ["releases", "Releases", "risk and utility of every release"],
  ["intruder 1", "Intruder 1", "guesses from the names that are left"],
  ["intruder 2", "Intruder 2", "guesses from the words"],
  ["writing", "Writing", "the release is written"],
];

/** A list of stages; `.update(job)` shows where it is. */
export function stageList() {
  const bar = progress({ value: null, label: "" });
  const rows = STAGES.map(([id, name, says]) => {
    const state = h("span", { class: "stage-state" });
    const words = h("span", { class: "small muted" }, says);
    return { id, state, element: h("li", {}, state, h("div", { class: "stack tight grow" }, h("span", { class: "strong" }, name), words)) };
  });
  const element = h("div", { class: "stack" }, bar, h("ol", { class: "stages" }, rows.map((row) => row.element)));
  let reached = -1;
  element.update = (job) => {
    const { stage = "", done = 0, of = 0 } = job.progress ?? {};
    const at = rows.findIndex((row) => row.id === stage);
    if (at >= 0) reached = Math.max(reached, at);
    const running = job.state === "running";
    bar.hidden = !running && job.state !== "queued";
    bar.update({ value: running && of ? done : running ? null : 0, max: of || 1, label: job.state === "queued" ? "Waiting for its turn" : of ? `${count(done)} of ${count(of)}` : "" });
    rows.forEach((row, i) => {
      const now = i === reached && running;
      row.element.className = i < reached ? "done" : now ? "now" : "";
      if (now) row.element.setAttribute("aria-current", "step"); else row.element.removeAttribute("aria-current");
      fill(row.state, i < reached ? icon("check") : now ? h("span", { class: "spinner", "aria-hidden": "true" }) : "", h("span", { class: "out-of-sight" }, i < reached ? "done" : now ? "running" : "to come"));
    });
  };
  return element;
}

/** The categories of a release as one name. */
export function called(categories) {
  return categories.length ? categories.join(" + ") : "nothing";
}

/** Marks of a release: whether it is chosen or on the frontier. */
export function releaseBadges(release) {
  const flags = (release.flags ?? []).join("; ");
  return [release.chosen && badge("chosen", "accent"), release.on_frontier && badge("frontier", "good"), flags && h("span", { class: "small muted" }, flags)].filter(Boolean);
}
