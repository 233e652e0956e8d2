// Evaluations: what anonymisation took from an intruder, and what it left to whoever works with the texts.

import { request } from "../api.js";
import { form } from "../forms.js";
import { dropZone, emptyState, field, fill, h, input, pageHead, stylesheet } from "../ui.js";
import { theme } from "../preferences.js";
import { go } from "../router.js";
import { interval, many, middle, number, share } from "./format.js";
import { actions, ended, jobPage, kindPage, progressBar, resultPath, results, start, stateBadge, times, trouble } from "./job.js";
import { loaded } from "./loading.js";
import { panelView } from "./panel.js";
import { fileList } from "./policychoice.js";

const FILES = ".jsonl,.json,.csv,.tsv,.txt,.md,.docx,.pdf,.xlsx,.odt,.rtf,.html,.eml,.parquet";

export async function show(root, { rest }) {
  await stylesheet("pages/pages.css");
  return rest ? one(root, rest) : all(root);
}

function all(root) {
  kindPage(root, "evaluate", {
    path: "evaluation", title: "Evaluation", what: "evaluations", label: "New evaluation", build: evaluateForm,
    about: "Is it safe to share, and is it still useful? Each number comes with its interval and with what was not measured.",
    empty: { title: "No evaluation yet", body: "Upload the originals and the anonymised texts to measure leaks, what intruders find, and how much utility is left.", icon: "chart" },
  });
}

function evaluateForm(hide) {
  const sides = [["Originals", "As they were"], ["Anonymised", "The same documents in the same order, or with the same ids"]].map(([name, says]) => {
    const files = fileList({ onchange: () => check() });
    return { files, element: h("div", { class: "stack" }, h("h3", {}, name), dropZone({ label: says, accept: FILES, onfiles: ([file]) => files.set([file]) }), files) };
  });
  const text = field({ label: "Field with the text", control: input({ placeholder: "text", spellcheck: "false" }), hint: "For JSON Lines and tables. Empty: all text." });
  const subject = field({ label: "Field with the person a text is about", control: input({ placeholder: "subject", spellcheck: "false" }), hint: "Lets intruders try to find them." });
  const label = field({ label: "Field with a class", control: input({ placeholder: "sector", spellcheck: "false" }), hint: "Measures whether a classifier can still learn it." });
  const check = () => { sheet.sendButton.disabled = sides.some((side) => !side.files.files.length); };
  const sheet = form({
    class: "stack wide", submit: { label: "Start", icon: "play", disabled: true }, cancel: hide,
    send: async (report) => {
      const [fieldName, subjectField, labelField] = [text, subject, label].map((one) => one.control.value.trim());
      const options = {};
      if (fieldName) { options.fields = [fieldName]; options.anonymised_fields = [fieldName]; }
      if (subjectField) options.subject = subjectField;
      if (labelField) options.labels = labelField;
      const job = await start("evaluate", sides[0].files.files, options, report, { others: sides[1].files.files });
      go(`evaluation/${job.id}`);
    },
  }, h("h2", {}, "New evaluation"), h("div", { class: "two" }, sides.map((side) => side.element)), h("div", { class: "three" }, text, subject, label));
  return sheet;
}

function one(root, id) {
  let drawn = false, themed = null;
  const leave = jobPage(root, id, { href: "#/evaluation", back: "Evaluations" }, (job, { head, body, follow }) => {
    fill(head, pageHead(job.name || "Evaluation", null, [h("div", { class: "row" }, stateBadge(job), times(job)), ...actions(job, () => (ended(job) ? go("evaluation") : follow()))]));
    if (job.state !== "done") {
      fill(body, h("section", { class: "card stack" }, h("h2", {}, "Progress"), !ended(job) && progressBar(job), trouble(job)));
      return;
    }
    if (drawn) return;
    drawn = true;
    const numbers = h("div", {}), report = h("div", {});
    fill(body, h("section", { class: "stack", "aria-label": "Headlines" }, numbers), h("section", { class: "card stack" }, h("h2", {}, "Files"), results(job)), h("section", { class: "stack" }, h("h2", {}, "Report"), report));
    const has = (name) => job.results.some((one_) => one_.name === name);
    if (has("report.json")) loaded(numbers, () => request("GET", resultPath(job, "report.json")), headlines);
    if (has("report.html")) {
      // Of its own address, not a blob: a blob would have this page's content policy, and the report holds its styles inside.
      const address = () => `${resultPath(job, "report.html")}?inline=true#theme=${theme()}`;
      const frame = h("iframe", { class: "report", title: "Report of the evaluation", sandbox: "allow-scripts", src: address() });
      fill(report, frame);
      themed = new MutationObserver(() => frame.contentWindow.location.replace(new URL(address(), location)));
      themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    }
  });
  return () => { leave(); themed?.disconnect(); };
}

const SIDES = { risk: "Residual risk", utility: "Remaining utility" };

/** The headline figures of a report. */
function headlines(report) {
  const rows = (report.headlines ?? []).filter((row) => row.measure !== "linkage" && row.value && typeof row.value.value === "number");
  const groups = Object.entries(SIDES).map(([side, title]) => [title, rows.filter((row) => row.side === side)]).filter(([, list]) => list.length);
  const skipped = report.skipped ?? [];
  return h("div", { class: "stack wide" },
    !groups.length && !report.measures?.linkage?.panel && emptyState({ title: "No headline", body: "Nothing could be measured on these texts. The report explains why.", icon: "chart" }),
    panelView(report.measures?.linkage?.panel),
    groups.map(([title, list]) => h("div", { class: "stack" }, h("h2", {}, `${title}`), h("dl", { class: "figures" }, list.map(card)))),
    skipped.length > 0 && h("details", { class: "more" }, h("summary", {}, `${many(skipped.length, "measure")} not taken`),
      h("ul", { class: "plain" }, skipped.map((one_) => h("li", {}, h("strong", {}, one_.title), ": ", one_.reason)))));
}

function card(row) {
  const write = row.kind === "share" ? (value) => share(value, row.digits ?? 1) : (value) => number(value, row.digits ?? 2);
  const ends = interval(row.value);
  const told = [
    ends && `between ${write(ends[0])} and ${write(ends[1])}`,
    Number.isFinite(middle(row.before)) && `before: ${write(middle(row.before))}`,
    Number.isFinite(middle(row.chance)) && `by guessing: ${write(middle(row.chance))}`,
  ].filter(Boolean).join(" · ");
  return h("div", { class: "figure", title: row.note }, h("dt", {}, row.name), h("dd", {}, h("span", { class: "big" }, write(middle(row.value))), h("span", { class: "says" }, told)));
}
