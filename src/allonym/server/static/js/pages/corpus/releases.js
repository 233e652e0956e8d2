// The releases of a swap: the plane, a table, the one that is looked at, and its texts before and after.

import { get, post } from "../../api.js";
import { button, busy, emptyState, fill, h, notice, describeError, segments, table, toast } from "../../ui.js";
import { count, estimate, interval, middle, number, share } from "../format.js";
import { facts, figure, loaded } from "../loading.js";
import { panelView } from "../panel.js";
import { planeBox, swatch } from "../plane.js";
import { called, releaseBadges } from "./stages.js";
import { textsOf } from "./texts.js";

/** The view of a finished job; `chosen()` when a release was chosen gives the job once it has ended; `files`: its results. */
export function releasesView(job, { chosen, files }) {
  const root = h("div", { class: "stack wide" });
  loaded(root, () => get(`/v1/jobs/${encodeURIComponent(job.id)}/releases`), (found) => draw(root, job, found, { chosen, files }), 8);
  return root;
}

/** Whether a job wrote this release. */
function written(job, release) {
  return (job.results ?? []).some((one) => one.name.replace(/\..*/, "") === `release-${release}`);
}

/** A button that chooses a release or a level of a job: `tell()` at once, `then(job)` once that was written, or failed. */
export function chooseButton(job, number, label, { kind, disabled, chosen, tell, then }) {
  const press = button(label, { kind, icon: "check", disabled });
  press.addEventListener("click", async () => {
    try {
      await busy(press, () => post(`/v1/jobs/${encodeURIComponent(job.id)}/choose`, { release: number }));
    } catch (error) {
      toast(describeError(error), { kind: "danger" });
      return;
    }
    tell();
    then(await chosen());
  });
  return press;
}

function draw(root, job, found, { chosen, files }) {
  const releases = found.releases ?? [];
  if (!releases.length) return emptyState({ title: "No release", body: "Nothing could be exchanged: the documents share no topic, or name nothing.", icon: "split" });
  const names = [...new Set(releases.map((r) => called(r.categories)))];
  const slot = (release) => names.indexOf(called(release.categories));
  const population = String(found.population ?? "");
  let now = (releases.find((r) => r.chosen) ?? releases.find((r) => r.on_frontier) ?? releases[0]).id;
  const one = () => releases.find((r) => r.id === now);

  const box = planeBox();
  const detail = h("section", { class: "card stack release", "aria-live": "polite", "aria-label": "The release" });
  const legend = h("ul", { class: "plane-legend", "aria-label": "Legend" });
  const hidden = new Set();
  let picture = null;

  const drawPlane = () => {
    const points = releases.map((r) => {
      return {
        id: r.id, x: middle(r.utility), y: middle(r.risk), xs: interval(r.utility), ys: interval(r.risk), slot: slot(r),
        label: `${called(r.categories)}, ${count(r.swaps ?? 0)} swaps`, frontier: Boolean(r.on_frontier), chosen: Boolean(r.chosen),
        facts: [["risk", estimate(r.risk, riskWords)], ["uniques left", estimate(r.remaining, (v) => number(v, 1))], ["utility", estimate(r.utility, (v) => number(v, 3))]],
      };
    }).filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y));
    const base = found.baseline && Number.isFinite(middle(found.baseline.risk)) ? { x: middle(found.baseline.utility ?? 1), y: middle(found.baseline.risk), label: "as it is" } : null;
    const unit = lift([...points, ...(base ? [base] : [])]);
    picture = box.draw({
      points, baseline: base, xLimit: { at: 1, label: "beyond: counts as 1" }, xName: "Utility: how much of the content stays",
      yName: `Risk R${unit ? ` − 1, in units of ${power(unit)}` : ""}${population ? `, at a population of ${power(population)}` : ""}`,
      label: "Risk and utility of every release. Arrow keys move between releases, Enter picks one.",
      onPick: pick,
    });
    picture.show(hidden);
    picture.select(now);
  };
  const drawLegend = () => fill(legend,
    names.map((name, i) => h("li", {}, h("button", {
      type: "button", "aria-pressed": String(!hidden.has(i)), title: "Show or hide",
      onclick: () => { if (hidden.has(i)) hidden.delete(i); else hidden.add(i); picture.show(hidden); drawLegend(); },
    }, swatch(i), name))),
    releases.some((r) => r.on_frontier) && h("li", { class: "line" }, "frontier: nothing is better in both"),
    found.baseline && h("li", { class: "line cross" }, "before the exchange"));

  const rows = () => releases.map((r) => ({ ...r, r: middle(r.risk), u: middle(r.utility) }));
  const list = table({
    rows: rows(),
    onpick: (r) => { pick(r.id); detail.scrollIntoView({ block: "nearest" }); },
    sorted: { key: "risk", descending: false },
    columns: [
      { key: "name", label: "Exchanged", sort: (r) => called(r.categories), render: (r) => h("span", { class: "keyed" }, swatch(slot(r)), called(r.categories)) },
      { key: "swaps", label: "Swaps", number: true, sort: (r) => r.swaps ?? 0, render: (r) => count(r.swaps ?? 0) },
      { key: "share", label: "Changed", number: true, sort: (r) => middle(r.share), render: (r) => share(middle(r.share)) },
      { key: "risk", label: "Risk", number: true, sort: (r) => r.r, render: (r) => riskWords(r.r) },
      { key: "left", label: "Uniques left", number: true, sort: (r) => middle(r.remaining), render: (r) => number(middle(r.remaining), 1) },
      { key: "utility", label: "Utility", number: true, sort: (r) => r.u, render: (r) => number(r.u, 3) },
      { key: "cosine", label: "Cosine", number: true, sort: (r) => middle(r.cosine), render: (r) => number(middle(r.cosine), 3) },
      { key: "is", label: "Remarks", render: (r) => h("div", { class: "row" }, releaseBadges(r)) },
    ],
  });
  const frontierOnly = segments({
    label: "Releases shown", value: "all", options: [{ value: "all", label: `All ${releases.length}` }, { value: "front", label: "Frontier" }],
    onchange: (value) => list.update(rows().filter((r) => value === "all" || r.on_frontier || r.chosen)),
  });

  const texts = textsOf(job);

  let last = job, writing = false;
  const drawDetail = () => {
    const r = one();
    const there = r.chosen && (writing || written(last, r.id));
    const press = chooseButton(job, r.id, there ? "Chosen" : r.chosen ? "Write it again" : "Choose this release", {
      kind: there ? "" : "primary", disabled: there, chosen,
      tell: () => {
        for (const other of releases) other.chosen = other.id === r.id;
        writing = true;
        drawPlane();
        list.update(rows());
        drawDetail();
      },
      then: (done) => {
        [last, writing] = [done, false];
        if (!r.chosen) return; // another one was chosen meanwhile
        if (!last.error && written(last, r.id)) {
          toast("Chosen. The release is written and can be downloaded.");
        } else {
          drawDetail();
          toast(last.error ?? "The release was not written.", { kind: "danger" });
        }
      },
    });
    const shown = r.written ?? r; // what the terminal and the report show, too
    fill(detail,
      h("div", { class: "spread" }, h("h2", { class: "keyed" }, swatch(slot(r)), called(r.categories)), h("div", { class: "row" }, releaseBadges(r))),
      facts([
        ["Risk R", estimate(shown.risk, riskWords)], ["Population uniques left", estimate(shown.remaining, (v) => number(v, 1))],
        ["Utility U", estimate(shown.utility)], ["Swaps", count(r.swaps ?? 0)],
        ["Passages changed", `${count(middle(shown.changed))} (${share(middle(shown.share))})`],
        ["Uniques changed", count(middle(shown.uniques))], ["Cosine", estimate(shown.cosine)],
      ]),
      h("p", { class: "small muted" }, r.written ? "As written, with fall-backs. The marks and the table show means over draws, without them." : "Means over draws, without fall-backs: the release was not written yet."),
      h("div", { class: "row" }, press),
      r.chosen && files);
  };
  const pick = (id) => {
    now = id;
    picture.select(id);
    drawDetail();
    texts.show(id);
  };

  drawPlane();
  drawLegend();
  drawDetail();
  texts.show(now);
  return [
    ...told(job),
    found.why && notice(h("span", {}, h("strong", {}, "Suggested: "), found.why)),
    h("div", { class: "with-side" },
      h("section", { class: "card stack", "aria-label": "Risk and utility" },
        h("h2", {}, "Risk and utility"),
        box.element, legend,
        h("p", { class: "small muted" }, "Each mark is one release: which names change places, and how far. Further right, texts keep more of their content; further down, less of the corpus stays unique. Risk and utility are estimates: intervals are drawn for the release you look at.")),
      detail),
    h("section", { class: "stack", "aria-label": "All releases" }, h("div", { class: "spread" }, h("h2", {}, "Releases"), frontierOnly), h("div", { class: "tall" }, list)),
    texts.element,
  ];
}

/** What intruders made of the release that was written first, and what to beware of. */
function told(job) {
  const { panel, attacks = [], warnings = [] } = job.summary ?? {};
  const whole = (value) => share(value, 0);
  return [
    panelView(panel),
    attacks.length > 0 && h("dl", { class: "figures" }, attacks.map((one) => figure(
      `Guessed from ${one.intruder}`, h("span", {}, h("span", { class: "muted" }, `${whole(middle(one.before))} → `), whole(middle(one.after))),
      `before and after; by guessing ${whole(middle(one.chance))}`))),
    warnings.length > 0 && notice(h("ul", { class: "plain" }, warnings.map((words) => h("li", {}, words))), { kind: "warn" }),
  ];
}

/** 1000000 as 10⁶. */
function power(value) {
  const exponent = Math.log10(Number(value));
  if (!Number.isInteger(Math.round(exponent * 1e9) / 1e9)) return count(Number(value));
  return `10${String(Math.round(exponent)).replace("-", "⁻").replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d])}`;
}

/** A risk in words; one that is all but 1 as "1 − 3.2e-5". */
function riskWords(value) {
  const below = 1 - value;
  return below > 0 && below < 5e-4 ? `1 − ${below.toExponential(1)}` : number(value, 3);
}

/** Where every risk is all but 1 the axis shows R − 1: changes the points, and gives the unit, or null. */
function lift(points) {
  const below = Math.max(...points.map((p) => 1 - p.y));
  if (!(below > 0 && below < 1e-3)) return null;
  const unit = 10 ** Math.floor(Math.log10(below));
  for (const p of points) {
    p.y = (p.y - 1) / unit;
    if (p.ys) p.ys = p.ys.map((v) => (v - 1) / unit);
  }
  return unit;
}
