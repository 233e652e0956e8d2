// Opening files and saving what became of them.

import { post, upload } from "../api.js";
import { download } from "../ui.js";
import { may } from "../session.js";
import { keyOf, mayGo, spansOf } from "./workspace.js";

export const ACCEPTED = ".txt,.md,.docx,.pdf,.jsonl,.json,.csv,.xlsx,.pptx,.odt,.ods,.odp,.rtf,.html,.eml,.ics,.vcf,.xml";

/** The name without its ending. */
export function stem(name) {
  return name.replace(/\.[^.]+$/, "") || "text";
}

/** What the server reads in a file: {name, format, documents}. */
export function readFile(file, onprogress) {
  const form = new FormData();
  form.append("file", file);
  return upload("/v1/files/text", form, { onprogress });
}

/** Opens the files; all their documents then lie on the desk. */
export async function openFiles(desk, files, onprogress) {
  const documents = [];
  let source = null;
  for (const [i, file] of files.entries()) {
    const read = await readFile(file, (share) => onprogress?.((i + share) / files.length));
    source = files.length === 1 ? { file, name: read.name, format: read.format, saveable: read.saveable } : null;
    for (const d of read.documents) documents.push({ id: files.length > 1 ? `${read.name} ${d.id}` : d.id || read.name, text: d.text });
  }
  if (!documents.length) throw new Error("There is no text in this file.");
  if (!(await mayGo("Open another text?", "Open"))) return false;
  desk.open(documents, source);
  return true;
}

/** The menu under "Save". */
export function saveItems(desk, result) {
  const { work, works } = desk.space;
  const made = work.result;
  const file = work.file;
  const name = stem(file?.name ?? (work.id || "text"));
  const changed = works.some((w) => w.draft.text !== w.opened);
  const text = result.current();
  const items = [{ label: "As text (.txt)", icon: "file", disabled: !text, run: () => download(`${name}-anonymised.txt`, text) }];
  if (file?.saveable && !changed) items.push({ label: `As ${name}-anonymised.${file.format}${works.length > 1 ? `, all ${works.length} documents` : ""}`, icon: "save", run: () => saveOriginal(desk) });
  else if (file) items.push({ says: changed ? "You changed the text itself, so the file's own format cannot be kept." : `Text of a ${file.format.toUpperCase()} file is saved as .txt.` });
  items.push("-", { label: "The plan (.json)", icon: "list", disabled: !made, run: () => savePlan(made.plan, name, false) });
  if (may("restore")) items.push({ label: "The plan with originals", icon: "lock", disabled: !made, run: () => savePlan(made.plan, name, true) });
  return items;
}

function savePlan(plan, name, originals) {
  const edits = plan.edits.map(({ original, ...rest }) => (originals ? { ...rest, original } : rest));
  download(`${name}-plan.json`, JSON.stringify({ ...plan, edits }), "application/json");
}

/** The file that was opened, with the plans of all its documents carried out. */
async function saveOriginal(desk) {
  const { works, work, policy, scope } = desk.space;
  try {
    const plans = works.map((w) => ({ id: w.id, plan: w.result && w.result.key === keyOf(desk.space, w) ? w.result.plan : null }));
    const open = works.filter((w, i) => !plans[i].plan);
    for (let at = 0; at < open.length; at += 50) {
      const part = open.slice(at, at + 50);
      for (const w of part) if (w.draft.own.length) await desk.settle(w.draft);
      const items = part.map((w) => ({ text: w.draft.text, policy, ...(scope ? { scope } : {}), ...(w.draft.own.length ? { spans: spansOf(w.draft) } : {}) }));
      const { results } = await post("/v1/anonymize/batch", { items });
      const failed = results.find((r) => r.error);
      if (failed) throw new Error(failed.error.message);
      part.forEach((w, i) => { plans[works.indexOf(w)].plan = results[i].plan; });
    }
    const form = new FormData();
    form.append("file", work.file.file);
    form.append("plans", JSON.stringify(plans.map(({ id, plan }) => ({ id, plan }))));
    const { blob, name } = await upload("/v1/files/apply", form, { as: "blob" });
    download(name ?? `${stem(work.file.name)}-anonymised.${work.file.format}`, blob);
  } catch (error) {
    desk.complain(error);
  }
}
