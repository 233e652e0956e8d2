// Corpora: names change places between documents (P1). Upload, watch the stages, choose a release on the plane.

import { fill, h, pageHead, stylesheet } from "../ui.js";
import { go } from "../router.js";
import { swapForm } from "./corpus/make.js";
import { releasesView } from "./corpus/releases.js";
import { stageList } from "./corpus/stages.js";
import { actions, ended, jobPage, kindPage, progressBar, results, stateBadge, times, trouble } from "./job.js";

export async function show(root, { rest }) {
  await Promise.all([stylesheet("pages/pages.css"), stylesheet("pages/plane.css")]);
  return rest ? one(root, rest) : all(root);
}

function all(root) {
  kindPage(root, "swap", {
    path: "corpus", title: "Corpus", what: "corpora", label: "New corpus",
    build: (hide) => swapForm({ started: (job) => go(`corpus/${job.id}`), hide }),
    about: "Texts on the same topic exchange names and other identifiers. Each way to do so is a release with a risk and a utility; you choose one.",
    empty: {
      title: "No corpus yet", icon: "split",
      body: "Upload a collection of documents by companies, authors or hospitals. Their names change places, so that nobody can tell whose text is whose, and you choose how many.",
    },
  });
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
