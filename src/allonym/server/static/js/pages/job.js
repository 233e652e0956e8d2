// A job as pages show it: its state, how far it is, what came of it; and the means to start and to watch one.

import { get, post, remove, request, upload } from "../api.js";
import { actionButton } from "../forms.js";
import { badge, button, download, emptyState, h, icon, notice, pageHead, progress } from "../ui.js";
import { count, lasted, size, when } from "./format.js";
import { folded, loaded, paged } from "./loading.js";

const STATES = {
  queued: ["Waiting", ""],
  running: ["Running", "info"],
  done: ["Done", "good"],
  failed: ["Failed", "danger"],
  cancelled: ["Cancelled", "warn"],
};
export const KINDS = { anonymize: "Anonymise", restore: "Restore", swap: "Swap", evaluate: "Evaluate", harden: "Harden", project: "Project" };

/** Whether nothing more will happen to it. */
export function ended(job) {
  return job.state === "done" || job.state === "failed" || job.state === "cancelled";
}

/** Its state as a small mark. */
export function stateBadge(job) {
  const [label, kind] = STATES[job.state] ?? [job.state, ""];
  return badge(label, kind);
}

/** How far it is, in words; nothing once it has ended. */
export function progressWords(job) {
  const { done = 0, of = 0, stage = "" } = job.progress ?? {};
  const part = of ? `${count(done)} of ${count(of)}` : "";
  return [stage && stage[0].toUpperCase() + stage.slice(1), part].filter(Boolean).join(", ");
}

/** A bar for a job that has not ended. */
export function progressBar(job) {
  const { done = 0, of = 0 } = job.progress ?? {};
  const waits = job.state === "queued";
  return progress({
    value: waits ? 0 : of ? done : null, max: of || 1,
    label: waits ? "Waiting for its turn" : progressWords(job) || "Starting",
  });
}

/** When it was made and how long it ran. */
export function times(job) {
  const ran = job.started && job.ended ? `, took ${lasted(job.started, job.ended)}` : "";
  return h("span", { class: "small muted" }, when(job.created), ran);
}

/** Sends files and starts a job; `onprogress` is told the share that has been sent. `others`: more files, under `other`. */
export function start(kind, files, options, onprogress, { other = "anonymised", others = [] } = {}) {
  const form = new FormData();
  form.append("kind", kind);
  form.append("options", JSON.stringify(options));
  for (const file of files) form.append("files", file, file.name);
  for (const file of others) form.append(other, file, file.name);
  return upload("/v1/jobs", form, { onprogress });
}

/** Asks for a job until it has ended; `tell(job)` each time. Gives a function that stops asking. */
export function watch(id, tell, { every = 900, failed } = {}) {
  let timer = 0, stopped = false;
  const ask = async () => {
    try {
      const job = await get(`/v1/jobs/${encodeURIComponent(id)}`);
      if (stopped) return;
      tell(job);
      if (ended(job)) return;
    } catch (error) {
      if (stopped) return;
      if (error.status) { failed?.(error); return; } // without a status the server is away: it may come back
    }
    timer = setTimeout(ask, every);
  };
  ask();
  return () => { stopped = true; clearTimeout(timer); };
}

/** The page of one job, followed until it has ended: `draw(job, {head, body, follow})`. Gives a function that leaves it. */
export function jobPage(root, id, { href, back }, draw) {
  const head = h("div", {}), body = h("div", { class: "stack wide" });
  root.append(h("a", { class: "back", href }, icon("left"), back), head, body);
  let stop = () => {};
  const follow = () => {
    stop();
    stop = watch(id, (job) => draw(job, { head, body, follow }), { failed: (error) => loaded(body, () => { throw error; }, () => null) });
  };
  follow();
  return () => stop();
}

/** The address of a result. */
export function resultPath(job, name) {
  return `/v1/jobs/${encodeURIComponent(job.id)}/results/${name.split("/").map(encodeURIComponent).join("/")}`;
}

/** The results as buttons that download them. */
export function results(job) {
  if (!job.results?.length) return h("p", { class: "muted small" }, job.state === "done" ? "There are no result files." : "");
  return h("ul", { class: "results" }, job.results.map((result) => h("li", {},
    actionButton(result.name, async () => download(result.name.split("/").pop(), await request("GET", resultPath(job, result.name), { as: "blob" })), { icon: "save", small: true }),
    h("span", { class: "small muted numbers" }, size(result.size)))));
}

/** Buttons to stop and to remove it; `changed()` is called after either. */
export function actions(job, changed) {
  const path = `/v1/jobs/${encodeURIComponent(job.id)}`;
  if (!ended(job)) return [actionButton("Cancel", () => post(`${path}/cancel`).then(changed), { small: true, icon: "stop" })];
  return [actionButton("Delete", () => remove(path).then(changed), {
    small: true, icon: "trash", kind: "quiet",
    sure: { title: "Delete this job?", body: "Its files and its results are removed from the server. This cannot be undone." },
  })];
}

/** What a job says that did not end well, or that did and came to nothing with what was asked for later. */
export function trouble(job) {
  if (!ended(job)) return null;
  if (job.error || job.state === "failed") return notice(job.error ?? "It failed without an error message.", { kind: "danger" });
  if (job.state === "cancelled") return notice("It was cancelled. Its partial results were removed.", { kind: "warn" });
  return null;
}

/** The page of all jobs of a kind, with a form to start one: `build(hide)`; `path` is the page's own. */
export function kindPage(root, kind, { path, title, about, label, build, what, empty }) {
  const { make, place, open } = folded(label, build);
  const list = paged({
    size: 20,
    label: `Pages of ${what}`,
    load: async (offset, limit) => {
      const { jobs, total } = await get("/v1/jobs", { query: { kind, offset, limit } });
      return { rows: jobs, total };
    },
    draw: (rows) => h("ul", { class: "lines" }, rows.map((job) => h("li", {},
      h("a", { class: "job-line", href: `#/${path}/${job.id}` }, h("span", { class: "strong cut grow" }, job.name || job.id), stateBadge(job), times(job), icon("right"))))),
    empty: emptyState({ ...empty, actions: [button(label, { icon: "plus", onclick: () => open(true) })] }),
  });
  root.append(pageHead(title, about, [make]), h("div", { class: "stack wide" }, place, list));
  list.reload();
}
