// A new corpus: the file, which fields hold what, what is to be protected.

import { get } from "../../api.js";
import { form, readJsonLines } from "../../forms.js";
import { badge, dropZone, field, fill, h, icon, input, select } from "../../ui.js";
import { count, size } from "../format.js";
import { start } from "../job.js";

const PEEK = 512 * 1024;
const EFFORTS = { quick: { draws: 1, points: 12, restarts: 1, runs: 1 }, usual: {}, thorough: { draws: 8, restarts: 8 } };
const STATES = { swap: "exchange", fixed: "keep", change: "replace by a tag", free: "keep, not counted" };

/** The first records of a JSON Lines file and the fields that they have; raises where it is none. */
async function peek(file) {
  const whole = file.size <= PEEK;
  const head = await file.slice(0, PEEK).text();
  const beginning = new File([whole ? head : head.slice(0, head.lastIndexOf("\n") + 1)], file.name);
  const records = (await readJsonLines(beginning, (record) => record, "a JSON object is needed, one document per line.")).slice(0, 200);
  if (!records.length) throw new Error(`${file.name} holds no documents.`);
  const fields = new Map();
  for (const record of records) {
    for (const [name, value] of Object.entries(record)) {
      const known = fields.get(name) ?? { name, characters: 0, values: new Set(), strings: 0 };
      if (typeof value === "string") { known.strings += 1; known.characters += value.length; }
      if (typeof value === "string" || typeof value === "number") known.values.add(value);
      fields.set(name, known);
    }
  }
  return { records: records.length, whole, fields: [...fields.values()] };
}

/** A field for a setting that a JSON schema describes; left open, it says nothing. `.read()` gives its value. */
function settingField([name, about]) {
  const { enum: values, minimum: min, maximum: max, type } = about.items ?? about;
  const open = "As in the settings";
  const sentence = (words) => words[0].toUpperCase() + words.slice(1);
  const control = values && !about.items ? select([{ value: "", label: open }, ...values])
    : input({ placeholder: open, ...(about.items ? {} : { type: "number", min, max }) });
  const read = (text) => (type === "integer" || type === "number" ? Number(text) : text);
  return Object.assign(field({ label: sentence(name).replaceAll("_", " "), control, hint: `${sentence(about.description)}.` }), {
    name, read: () => (about.items ? control.value.split(/[\s,]+/).filter(Boolean).map(read) : read(control.value)),
  });
}

/** The form; `started(job)` when the job runs. */
export function swapForm({ started, hide }) {
  let file = null, settings = null;
  const rest = h("div", { class: "stack wide", hidden: true });
  const chosen = h("div", { class: "row" });
  const zone = dropZone({ label: "Drop a JSON Lines file here: one document per line, with the text and whose it is", accept: ".jsonl,.ndjson,.json", onfiles: ([one]) => take(one) });

  const text = field({ label: "Text", control: select([]), hint: "The field that holds the document." });
  const protect = field({ label: "Protect", control: select([]), hint: "The attribute that nobody should guess from a text: company, author, hospital." });
  const told = h("p", { class: "small muted" });
  const preset = field({ label: "Settings", control: select([
    { value: "default", label: "Default" }, { value: "p1", label: "As in the paper" }, { value: "earnings", label: "Earnings calls" }]) });
  const effort = field({ label: "Search", control: select([
    { value: "quick", label: "Quick: a first look" }, { value: "usual", label: "Usual" }, { value: "thorough", label: "Thorough: more draws, steadier numbers" }], { value: "usual" }) });
  const states = h("div", { class: "states" }), form_ = h("div", { class: "two" });
  let presets = {}, picks = [];
  const offer = () => { // the categories of the preset, each in its state
    picks = Object.entries(presets[preset.control.value] ?? {}).map(([category, state]) => ({
      category, state, control: select(Object.entries(STATES).map(([value, label]) => ({ value, label })), { value: state, "aria-label": category }),
    }));
    fill(states, picks.map(({ category, control }) => h("div", {}, h("span", {}, category), control)));
  };
  preset.control.addEventListener("change", offer);
  const seed = field({ label: "Seed", control: input({ type: "number", min: 0, value: "0" }), hint: "The same seed draws the same exchanges." });
  const more = h("div", { class: "two" }, effort, preset, seed);
  rest.append(
    h("div", { class: "two" }, text, protect), told,
    h("fieldset", { class: "stack tight" }, h("legend", { class: "label" }, "What happens to each category"), states), form_,
    h("details", { class: "more" }, h("summary", {}, "More choices"), more));

  const describe = (found) => {
    const field_ = found.fields.find((one) => one.name === protect.control.value);
    if (!field_) return;
    const many = field_.values.size;
    const of = found.whole ? "" : "the first ";
    told.textContent = `${count(many)} different ${many === 1 ? "value" : "values"} of “${field_.name}” in ${of}${count(found.records)} documents.`;
    protect.wrong(many < 2 ? "It has only one value, so there is nothing to guess." : "");
  };
  const take = async (one) => {
    sheet.fail(null);
    try {
      const found = await peek(one);
      if (!settings) {
        const schema = await get("/v1/swap-settings");
        settings = Object.entries(schema.properties).map(settingField);
        const isForm = (one) => ["form", "part"].includes(one.name);
        form_.append(...settings.filter(isForm));
        more.append(...settings.filter((one) => !isForm(one)));
        presets = schema.presets;
        offer();
      }
      file = one;
      const strings = found.fields.filter((f) => f.strings).sort((a, b) => b.characters - a.characters);
      const others = found.fields.filter((f) => f.values.size);
      if (!strings.length) throw new Error("No field of the documents holds text.");
      text.control.options_(strings.map((f) => f.name));
      const texts = strings.find((f) => f.name === "text") ?? strings[0];
      text.control.value = texts.name;
      const own = others.filter((f) => f.name !== texts.name).sort((a, b) => rank(a, found) - rank(b, found));
      protect.control.options_(own.map((f) => f.name));
      protect.control.onchange = () => describe(found);
      describe(found);
      if (!own.length) protect.wrong("The documents need a field that says whose they are.");
      fill(chosen, icon("file"), h("span", { class: "strong cut" }, one.name), badge(size(one.size)));
      rest.hidden = false;
      sheet.sendButton.disabled = !own.length;
    } catch (error) {
      sheet.fail(error);
    }
  };
  const sheet = form({
    class: "stack wide", submit: { label: "Start", icon: "play", disabled: true }, cancel: hide,
    send: async (report) => {
      const options = {
        protect: protect.control.value,
        fields: [text.control.value],
        settings: preset.control.value,
        seed: Number(seed.control.value) || 0,
        categories: Object.fromEntries(picks.filter((p) => p.control.value !== p.state).map((p) => [p.category, p.control.value])),
        ...EFFORTS[effort.control.value],
        ...Object.fromEntries(settings.filter((one) => one.control.value).map((one) => [one.name, one.read()])),
      };
      started(await start("swap", [file], options, report));
    },
  }, h("h2", {}, "New corpus"), zone, chosen, rest);
  return sheet;
}

/** Fields that say whose a text is: by usual names first, then those whose values come back. */
function rank(one, found) {
  const usual = ["company", "author", "subject", "hospital", "speaker", "organization", "user", "name"].indexOf(one.name.toLowerCase());
  if (usual >= 0) return usual;
  const back = one.values.size / found.records;
  return one.values.size < 2 ? 1000 : 10 + Math.abs(back - 0.2) * 100;
}
