// Hardening: the originals and a version to harden, then the frontier of risk against content, of which one chooses a level.

import { get } from "../api.js";
import { form } from "../forms.js";
import { dropZone, field, fill, h, input, notice, pageHead, stylesheet, table, toast } from "../ui.js";
import { go } from "../router.js";
import { chooseButton } from "./corpus/releases.js";
import { textsOf } from "./corpus/texts.js";
import { estimate, interval, middle, number, share } from "./format.js";
import { actions, ended, jobPage, kindPage, progressBar, results, start, stateBadge, times, trouble } from "./job.js";
import { facts, loaded } from "./loading.js";
import { panelView } from "./panel.js";
import { planeBox, swatch } from "./plane.js";
import { fileList } from "./policychoice.js";

const FILES = ".jsonl,.json,.csv,.tsv,.txt,.md,.docx,.odt,.html,.parquet";
const INTRUDERS = [
  ["adaptive", "adaptive: has learnt from the hardened texts of others"],
  ["blind", "blind: has learnt from originals, passes over the words brought in"],
];

export async function show(root, { rest }) {
  await Promise.all([stylesheet("pages/pages.css"), stylesheet("pages/plane.css")]);
  return rest ? one(root, rest) : all(root);
}

function all(root) {
  kindPage(root, "harden", {
    path: "hardening", title: "Hardening", what: "hardenings", label: "New hardening", build: hardenForm,
    about: "Words that still point to somebody become general ones or go, until intruders who know the tool do little better than guessing. You choose how far.",
    empty: {
      title: "No hardening yet", icon: "shield",
      body: "Upload English originals, their anonymised version, and the field that says whom each text is about. Several texts about each person are needed.",
    },
  });
}

function hardenForm(hide) {
  const sides = [["Originals", "As they were, with the field that says whom each text is about"], ["Anonymised", "The same documents in the same order, or with the same ids"]].map(([name, says]) => {
    const files = fileList({ onchange: () => check() });
    return { files, element: h("div", { class: "stack" }, h("h3", {}, name), dropZone({ label: says, accept: FILES, onfiles: ([file]) => files.set([file]) }), files) };
  });
  const subject = field({ label: "Field with the person a text is about", control: input({ placeholder: "subject", spellcheck: "false" }), hint: "Nobody should guess it from a text.", check: (value) => (value.trim() ? "" : "The field is needed: intruders guess it.") });
  const text = field({ label: "Field with the text", control: input({ placeholder: "text", spellcheck: "false" }), hint: "For JSON Lines and tables. Empty: all text." });
  const most = field({ label: "Most of the content to remove, in %", control: input({ type: "number", min: 0, max: 100, value: "60" }), hint: "The suggestion stays below it; you may choose more." });
  const check = () => { sheet.sendButton.disabled = sides.some((side) => !side.files.files.length); };
  const sheet = form({
    class: "stack wide", fields: [subject], submit: { label: "Start", icon: "play", disabled: true }, cancel: hide,
    send: async (report) => {
      const options = { subject: subject.control.value.trim(), most_removed: Number(most.control.value) / 100 };
      const name = text.control.value.trim();
      if (name) { options.fields = [name]; options.anonymised_fields = [name]; }
      const job = await start("harden", sides[0].files.files, options, report, { others: sides[1].files.files });
      go(`hardening/${job.id}`);
    },
  }, h("h2", {}, "New hardening"), h("div", { class: "two" }, sides.map((side) => side.element)), h("div", { class: "three" }, subject, text, most));
  return sheet;
}

function one(root, id) {
  let view = null, files = null;
  const waiting = []; // for the level that was chosen to be written
  return jobPage(root, id, { href: "#/hardening", back: "Hardenings" }, (job, { head, body, follow }) => {
    fill(head, pageHead(job.name || "Hardening", null, [h("div", { class: "row" }, stateBadge(job), times(job)), ...actions(job, () => (ended(job) ? go("hardening") : follow()))]));
    if (view && !ended(job)) { // a level was chosen: it is being written
      fill(files, progressBar(job));
      return;
    }
    if (job.state !== "done") {
      fill(body, h("section", { class: "card stack" }, h("h2", {}, "Progress"), !ended(job) && progressBar(job), trouble(job)));
      return;
    }
    files ??= h("div", {});
    fill(files, trouble(job), results(job));
    for (const tell of waiting.splice(0)) tell(job);
    if (view) return;
    view = h("div", { class: "stack wide" });
    const chosen = () => new Promise((tell) => { waiting.push(tell); follow(); });
    loaded(view, () => levelsOf(job), (found) => draw(job, found, { chosen, files }), 8);
    fill(body, view);
  });
}

function levelsOf(job) {
  return get(`/v1/jobs/${encodeURIComponent(job.id)}/levels`);
}

/** A level's name: its round. */
function called(level) {
  return level.id ? `Round ${level.id}` : "As anonymised";
}

function draw(job, found, { chosen, files }) {
  let { levels } = found;
  let now = found.chosen;
  const at = () => levels[now];
  const box = planeBox();
  const detail = h("section", { class: "card stack release", "aria-live": "polite", "aria-label": "The level" });
  const panel = h("section", { class: "stack", "aria-label": "Panel" });
  const texts = textsOf(job);
  let picture = null, writing = false;

  const drawPlane = () => {
    const points = INTRUDERS.flatMap(([name], slot) => levels.map((level) => ({
      id: `${level.id} ${name}`, x: 1 - middle(level.gone), y: middle(level[name]), ys: interval(level[name]), slot,
      label: `${called(level)}, ${name} intruder`, frontier: name === "adaptive", chosen: name === "adaptive" && level.id === found.chosen,
      facts: [["identified", share(middle(level[name]))], ["content kept", share(1 - middle(level.gone))], ["similarity", number(middle(level.similarity))]],
    }))).filter((point) => Number.isFinite(point.x) && Number.isFinite(point.y));
    picture = box.draw({
      points, xName: "Content kept: share of the originals' content words", yName: "Subjects identified, by the intruders of the rounds",
      label: "Risk and content of every level. Arrow keys move between levels, Enter picks one.",
      onPick: (id) => pick(Number(id.split(" ")[0])),
    });
    picture.select(`${now} adaptive`);
  };
  const list = table({
    rows: levels,
    onpick: (level) => pick(level.id),
    columns: [
      { key: "name", label: "Level", render: called },
      { key: "kept", label: "Content kept", number: true, render: (level) => share(1 - middle(level.gone)) },
      { key: "worst", label: "Worst", number: true, render: (level) => share(middle(level.worst)) },
      ...["adaptive", "blind", "naive"].map((name) => ({ key: name, label: name[0].toUpperCase() + name.slice(1), number: true, render: (level) => share(middle(level[name])) })),
      { key: "similarity", label: "Similarity", number: true, render: (level) => number(middle(level.similarity)) },
    ],
  });
  const drawDetail = () => {
    const level = at();
    const isChosen = level.id === found.chosen;
    const press = chooseButton(job, level.id, isChosen ? "Chosen" : "Choose this level", {
      kind: isChosen ? "" : "primary", disabled: isChosen, chosen,
      tell: () => {
        found.chosen = level.id;
        writing = true;
        drawPlane();
        drawDetail();
      },
      then: async (done) => {
        writing = false;
        if (done.error) toast(done.error, { kind: "danger" });
        else toast("Chosen. The texts are written and can be downloaded.");
        ({ levels } = Object.assign(found, await levelsOf(job)));
        drawPlane();
        drawDetail();
      },
    });
    fill(detail,
      h("h2", {}, called(level), level.id === found.suggested && " (suggested)"),
      facts([
        level.panel && [`Identified at worst, ${level.panel.worst.name} intruder`, share(middle(level.panel.worst.identified), 0)],
        ["By the worst of the rounds", estimate(level.worst, (value) => share(value, 0))], ["By guessing", share(middle(found.chance), 0)],
        ["Content kept", share(1 - middle(level.gone))], ["Similarity", number(middle(level.similarity))],
      ]),
      h("div", { class: "row" }, press),
      isChosen && files);
    fill(panel, level.panel ? [h("h2", {}, `${called(level)}: intruders who had no say`), panelView(level.panel)]
      : notice(writing && isChosen ? "The level is being written." : "The intruders of the rounds chose what goes. What others reach on this level is measured once you choose it."));
  };
  const pick = (id) => {
    now = id;
    picture.select(`${id} adaptive`);
    drawDetail();
    texts.show(id);
  };

  drawPlane();
  drawDetail();
  texts.show(now);
  return [
    h("div", { class: "with-side" },
      h("section", { class: "card stack", "aria-label": "Risk and content" },
        h("h2", {}, "Risk against content kept"),
        box.element,
        h("ul", { class: "plane-legend", "aria-label": "Legend" }, INTRUDERS.map(([, says], slot) => h("li", { class: "row still" }, swatch(slot), h("span", { class: "small muted" }, says)))),
        h("p", { class: "small muted" }, "Each mark is a level: the texts after so many rounds. Further right, texts keep more of their content; further down, fewer subjects are identified. General words do not count as kept.")),
      detail),
    panel,
    h("section", { class: "stack", "aria-label": "All levels" }, h("h2", {}, "Levels"), h("div", { class: "tall" }, list)),
    texts.element,
  ];
}
