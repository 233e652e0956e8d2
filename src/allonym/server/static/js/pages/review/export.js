// What reviewers settled as training text for the tagger.

import { request } from "../../api.js";
import { actionButton } from "../../forms.js";
import { download, h, notice } from "../../ui.js";
import { many } from "../format.js";
import { copyable } from "../loading.js";
import { placeOf } from "./queue.js";

export function exportView(project) {
  const done = project.states.done ?? 0;
  const name = `${project.name.replace(/[^\w.-]+/g, "-")}.jsonl`;
  const press = actionButton("Download", async () => {
    download(name, await request("GET", `${placeOf(project.name).path}/export`, { as: "blob" }));
  }, { kind: "primary", icon: "save", disabled: !done });
  return h("section", { class: "stack" }, h("h2", {}, "Training data"),
    h("p", {}, done ? `${many(done, "settled document")} of this project, with what identifies in each, as JSON Lines.` : "There are no settled documents yet."),
    notice("The file holds the original texts. The audit log records who exports it.", { kind: "warn" }),
    h("div", {}, press),
    h("h3", {}, "Train the tagger with it"),
    copyable(`allonym train ner ${name} --output model`));
}
