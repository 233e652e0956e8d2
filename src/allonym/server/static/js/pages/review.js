// The review queue: projects, their documents by risk, agreement, terms, and what comes out as training data.

import { agreementView } from "./review/agreement.js";
import { exportView } from "./review/export.js";
import { projectsView, removeButton } from "./review/projects.js";
import { placeOf, queueView } from "./review/queue.js";
import { showDocument } from "./review/document.js";
import { termList } from "./settings/lists.js";
import { get } from "../api.js";
import { fill, h, icon, pageHead, stylesheet, tabs } from "../ui.js";
import { may } from "../session.js";
import { count, share } from "./format.js";

export async function show(root, { rest }) {
  await Promise.all([stylesheet("pages/pages.css"), stylesheet("pages/review.css")]);
  if (!rest) return projectsView(root);
  const cut = rest.indexOf("/");
  if (cut > 0) return showDocument(root, placeOf(rest.slice(0, cut)), rest.slice(cut + 1));
  return showProject(root, rest);
}

async function showProject(root, name) {
  const place = placeOf(name);
  const project = await get(place.path);
  const head = h("div", {});
  const drawHead = (now) => {
    const done = now.documents ? now.states.done / now.documents : 0;
    const words = now.documents ? `${count(now.documents)} documents, ${share(done, 0)} done${now.states.disagreement ? `, ${now.states.disagreement} in disagreement` : ""}. Policy: ${typeof now.policy === "string" ? now.policy : now.policy?.name ?? "the server's"}.` : "No documents yet.";
    fill(head, pageHead(now.name, words, may("adjudicate") ? [removeButton(now)] : []));
  };
  drawHead(project);
  const panels = { documents: null, agreement: null, terms: null, export: null };
  const make = {
    documents: () => queueView(place, { changed: async () => drawHead(await get(place.path)) }),
    agreement: () => agreementView(place),
    terms: () => termList({ title: "Terms of this project", says: "Terms that are always or never found in this project alone. Decisions in the queue add to them.", project: name }),
    export: () => exportView(project),
  };
  for (const id of Object.keys(panels)) panels[id] = h("div", {});
  const draw = (id) => { if (!panels[id].firstChild) fill(panels[id], make[id]()); };
  const bar = tabs({
    label: "Project", selected: "documents", onselect: draw,
    items: [
      { id: "documents", label: "Documents", panel: panels.documents },
      { id: "agreement", label: "Agreement", panel: panels.agreement },
      { id: "terms", label: "Terms", panel: panels.terms },
      ...(may("adjudicate") ? [{ id: "export", label: "Training data", panel: panels.export }] : []),
    ],
  });
  draw("documents");
  root.append(h("a", { class: "back", href: "#/review" }, icon("left"), "Projects"), head, bar);
}
