// Corpora: names change places between documents (P1). Upload, watch the stages, choose a release on the plane.

import { get } from "../api.js";
import { button, emptyState, fill, h, pageHead, stylesheet } from "../ui.js";
import { go } from "../router.js";
import { swapForm } from "./corpus/make.js";
import { releasesView } from "./corpus/releases.js";
import { stageList } from "./corpus/stages.js";
import { actions, ended, jobPage, line, progressBar, results, stateBadge, times, trouble } from "./job.js";
import { folded, paged } from "./loading.js";

export async function show(root, { rest }) {
  await Promise.all([stylesheet("pages/pages.css"), stylesheet("pages/plane.css")]);
  return rest ? one(root, rest) : all(root);
}

function all(root) {
  const { make, form, open } = folded("New corpus", (hide) => swapForm({ started: (job) => go(`corpus/${job.id}`), hide }));
  const list = paged({
    size: 20,
    label: "Pages of corpora",
    load: async (offset, limit) => {
      const found = await get("/v1/jobs", { query: { kind: "swap", offset, limit } });
      const rows = found.jobs.filter((job) => job.kind === "swap");
      return { rows, total: found.total ?? rows.length };
    },
    draw: (rows) => h("ul", { class: "lines" }, rows.map((job) => h("li", {}, line(job, `#/corpus/${job.id}`)))),
    empty: emptyState({
      title: "No corpus yet",
      body: "Upload a collection of documents by companies, authors or hospitals. Their names change places, so that nobody can tell whose text is whose, and you choose how many.",
      icon: "split", actions: [button("New corpus", { icon: "plus", onclick: () => open(true) })],
    }),
  });
  root.append(pageHead("Corpus", "Texts on the same topic exchange names and other identifiers. Each way to do so is a release with a risk and a utility; you choose one.", [make]),
    h("div", { class: "stack wide" }, form, list));
  list.reload();
}

function one(root, id) {
  let view = null, files = null, stages = null;
  const waiting = []; // for the release that was chosen to be written
  return jobPage(root, id, { href: "#/corpus", back: "Corpora" }, (job, { head, body, follow }) => {
    fill(head, pageHead(job.name || "Corpus", null, [h("div", { class: "row" }, stateBadge(job), times(job)), ...actions(job, () => (ended(job) ? go("corpus") : follow()))]));
    if (view && !ended(job)) { // a release was chosen: it is being written
      fill(files, progressBar(job));
      return;
    }
    if (job.state !== "done") {
      stages ??= stageList();
      stages.update(job);
      fill(body, h("section", { class: "card stack" }, h("h2", {}, "Stages"), stages, trouble(job)));
      return;
    }
    files ??= h("div", {});
    fill(files, trouble(job), results(job));
    for (const tell of waiting.splice(0)) tell(job);
    if (view) return;
    view = releasesView(job, { chosen: () => new Promise((tell) => { waiting.push(tell); follow(); }), files });
    fill(body, view);
  });
}
