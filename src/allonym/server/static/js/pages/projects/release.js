// The signed ZIP of a project: written, and downloaded.

import { request } from "../../api.js";
import { actionButton } from "../../forms.js";
import { checkbox, download, emptyState, h, notice, table } from "../../ui.js";
import { count, many } from "../format.js";
import { copyable } from "../loading.js";

/** Releases of a project at a place; `run` starts a job of it. */
export function releaseView(project, place, { owns, run }) {
  const open = project.documents - (project.states.done ?? 0);
  const unreviewed = checkbox(`Release although ${many(open, "document")} ${open === 1 ? "is" : "are"} not settled by two reviewers; the manifest says so`, { checked: false });
  const incomplete = checkbox("Leave out files and records that cannot be written");
  const cards = checkbox("Say in the statement what is left about each person, and how many people fit it (English; reads all texts once more)", { checked: true });
  const write = actionButton("Release", async () => {
    await run("release", [], { unreviewed: unreviewed.control.checked, incomplete: incomplete.control.checked, cards: cards.control.checked });
  }, { kind: "primary", icon: "lock", disabled: !project.files.length || open > 0 });
  unreviewed.control.addEventListener("change", () => { write.disabled = open > 0 && !unreviewed.control.checked; });
  const take = (release) => actionButton("Download", async () => {
    download(`${project.name.replace(/[^\w.-]+/g, "-")}-release-${release.number}.zip`, await request("GET", `${place.path}/releases/${release.number}`, { as: "blob" }));
  }, { small: true, icon: "save", "aria-label": `Download release ${release.number}` });
  return h("section", { class: "stack wide", "aria-label": "Release" },
    owns && h("section", { class: "card stack" }, h("h2", {}, "New release"),
      h("p", {}, "All files in their own formats under safe names, a report, and a signed manifest of digests, as one ZIP."),
      open > 0 && unreviewed, incomplete, cards, h("div", {}, write)),
    project.releases.length ? table({
      rows: [...project.releases].reverse(),
      columns: [
        { key: "number", label: "Release", render: (r) => h("span", { class: "strong" }, `${r.number}`) },
        { key: "files", label: "Files", number: true, render: (r) => count(r.files) },
        { key: "reviewed", label: "Settled by two", render: (r) => `${count(r.reviewed)} of ${count(r.documents)} documents` },
        { key: "sha256", label: "SHA-256", render: (r) => h("code", { class: "small breaks", title: r.sha256 }, `${r.sha256.slice(0, 16)}…`) },
        { key: "take", label: h("span", { class: "out-of-sight" }, "Actions"), render: (r) => h("div", { class: "row end" }, take(r)) },
      ],
    }) : emptyState({ title: "No release yet", icon: "lock", body: "A release is what others may have. It holds no source, and no original that was found." }),
    h("section", { class: "stack" }, h("h3", {}, "Public key"), notice("Publish it where partners trust it: whoever has it can check a release with allonym project verify."), copyable(project.public_key)));
}
