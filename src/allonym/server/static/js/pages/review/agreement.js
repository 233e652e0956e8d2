// How far the reviewers of a project agree, and the residual risk of what is settled (P2).

import { get } from "../../api.js";
import { badge, emptyState, h, table } from "../../ui.js";
import { readable } from "../../families.js";
import { count, interval, middle, number, share } from "../format.js";
import { figure, loaded } from "../loading.js";

const ROWS = [
  ["kappa", "Cohen's kappa", "over words and labels; 0 is chance, 1 always"],
  ["alpha", "Krippendorff's alpha", "the same, for any number of reviewers"],
  ["mask", "Masked or not", "alpha on whether a word is marked at all"],
  ["strict", "F1, same borders", "marks with the same borders and label"],
  ["overlap", "F1, overlap", "marks that share a character, of the same label"],
];

/** The figures of a project at a place. */
export function agreementView(place) {
  const root = h("section", { class: "stack wide" });
  loaded(root, () => get(`${place.path}/agreement`), draw);
  return root;
}

function draw(found) {
  if (!found.documents) return emptyState({ title: "Nothing to compare yet", body: "Figures appear once two reviewers are done with a document.", icon: "people" });
  return [
    h("dl", { class: "figures" },
      figure("Read by two", count(found.documents), "documents"),
      figure("The same said of", share(found.same / found.documents, 0), `${count(found.same)} documents`),
      figure("Looked at by both", share(found.words.by_both / (found.words.by_both + found.words.by_one + found.words.by_nobody || 1), 0), `of the words; ${count(found.words.by_nobody)} by nobody`),
      found.spans && figure("Agreement", number(middle(found.spans.kappa), 2), "Cohen's kappa, on what both looked at"),
      found.marks && figure("On what was missed", number(middle(found.marks.overlap), 2), "F1 of marks that overlap")),
    h("div", { class: "two" }, measures("On all that identifies", found.spans), measures("On leaks alone", found.marks)),
    found.by_label.length > 0 && h("div", { class: "stack" }, h("h2", {}, "By label"), table({
      rows: found.by_label,
      columns: [
        { key: "label", label: "Label", sort: (r) => readable(r.label), render: (r) => readable(r.label) },
        { key: "both", label: "Both", number: true, sort: (r) => r.both, render: (r) => count(r.both) },
        { key: "one", label: "Only one", number: true, sort: (r) => r.one, render: (r) => count(r.one) },
        { key: "share", label: "Both, of all", number: true, sort: (r) => r.both / (r.both + r.one || 1), render: (r) => share(r.both / (r.both + r.one || 1), 0) },
      ],
    })),
    found.residual && residual(found.residual),
  ];
}

function measures(title, agreement) {
  if (!agreement) return h("div", { class: "card stack" }, h("h2", {}, title), h("p", { class: "muted" }, "There is nothing that both looked at and marked, so there is nothing to compare."));
  return h("div", { class: "card stack" }, h("h2", {}, title), h("dl", { class: "measures" }, ROWS.map(([key, name, says]) => {
    const ends = interval(agreement[key]);
    return h("div", {}, h("dt", {}, name, h("span", { class: "small muted" }, says)), h("dd", { class: "numbers" }, h("strong", {}, number(middle(agreement[key]), 2)), ends && h("span", { class: "small muted" }, `${number(ends[0], 2)} to ${number(ends[1], 2)}`)));
  })));
}

function residual(table4) {
  const total = table4.total ?? {};
  const passes = total.passes;
  return h("div", { class: "stack" }, h("h2", {}, "Residual risk of settled documents"),
    h("dl", { class: "figures" },
      figure("Mean", number(middle(total.mean), 2), "points a document"),
      figure("Mean + SD", number(middle(total.bound), 2), passes === true ? "below the limit of 5" : passes === false ? "not below the limit of 5" : "one document has no SD", passes === true ? "good" : passes === false ? "bad" : ""),
      figure("Above the limit", share(middle(total.above), 0), "of the documents"),
      figure("With a direct identifier", share(middle(total.direct), 0), "of the documents")),
    (table4.types ?? []).length > 0 && table({
      rows: table4.types,
      caption: "What was missed",
      columns: [
        { key: "tag", label: "Type", render: (r) => h("span", { class: "row" }, readable(r.tag.replace(/_PARTIAL$/, "")), r.tag.endsWith("_PARTIAL") && badge("partial")) },
        { key: "items", label: "Things", number: true, sort: (r) => r.items },
        { key: "mentions", label: "Mentions", number: true, sort: (r) => r.mentions },
        { key: "conversations", label: "Documents", number: true, sort: (r) => r.conversations },
        { key: "risk", label: "Points", number: true, sort: (r) => r.risk },
      ],
    }));
}
