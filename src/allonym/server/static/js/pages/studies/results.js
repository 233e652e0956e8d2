// The results of a study: rates, what people claimed, each text, and the words that gave people away.

import { badge, h, segments, table } from "../../ui.js";
import { count, interval, many, middle, number, share } from "../format.js";
import { figure } from "../loading.js";

const PAGE = 50;

/** Everything that the answers say so far. */
export function resultsView(results) {
  const { overall, claims } = results;
  const said = claims.claimed_right + claims.claimed_wrong;
  return h("div", { class: "stack wide" },
    h("section", { class: "stack", "aria-label": "Results" }, h("h2", {}, "Results"),
      h("dl", { class: "figures" },
        figure("Identified", share(middle(overall.identified)), between(overall.identified) || `of ${many(overall.texts, "text")}`),
        figure("Identified by at least one person", share(middle(results.found_by_any)), between(results.found_by_any)),
        figure("A claim to know is right", share(middle(results.trusted)), said ? `${claims.claimed_right} of ${many(said, "claim")}` : "nobody claimed to know"),
        figure("Right by chance", share(middle(results.by_chance)), "how often a guess passes for somebody else")),
      h("p", { class: "small muted" }, `${many(results.judgements, "judgement")} by ${many(results.judges, "person", "people")}${results.unread ? `; ${many(results.unread, "text")} nobody has read yet` : ""}. A text counts as identified where the guesses' mean similarity to the name is ${number(results.cut, 2)} or more.`)),
    h("section", { class: "stack", "aria-label": "By group" }, rates(results)),
    h("section", { class: "stack", "aria-label": "Texts" }, texts(results.rows)),
    h("div", { class: "two" }, words("What gave people away", results.revealed, "In reasons where the person was identified"), words("Learnt without identifying", results.kept, "Where the person was not identified")));
}

function between(value, write = share) {
  const ends = interval(value);
  return ends ? `between ${write(ends[0])} and ${write(ends[1])}` : "";
}

function rates(results) {
  const rows = [...results.groups, results.overall];
  return table({
    rows,
    caption: "By group",
    columns: [
      { key: "group", label: "Group", render: (r) => (r === results.overall ? h("strong", {}, "All") : r.group || r.name || "–") },
      { key: "texts", label: "Texts", number: true, render: (r) => count(r.texts) },
      { key: "judgements", label: "Judgements", number: true, render: (r) => count(r.judgements) },
      { key: "similarity", label: "Similarity", number: true, render: (r) => number(middle(r.similarity), 2) },
      { key: "identified", label: "Identified", number: true, render: (r) => h("span", { title: between(r.identified) }, share(middle(r.identified))) },
    ],
  });
}

function texts(rows) {
  let shown = PAGE, only = "all";
  const list = table({
    rows: [],
    sorted: { key: "similarity", descending: true },
    columns: [
      { key: "text", label: "Text", sort: (r) => r.text, render: (r) => h("span", { class: "strong breaks" }, r.text) },
      { key: "subject", label: "About", sort: (r) => r.subject, render: (r) => h("span", {}, r.subject, r.group && h("span", { class: "small muted" }, ` ${r.group}`)) },
      { key: "guesses", label: "Guesses", render: (r) => r.guesses.filter(Boolean).join("; ") || "–" },
      { key: "similarity", label: "Similarity", number: true, sort: (r) => r.similarity ?? -1, render: (r) => number(r.similarity, 2) },
      { key: "judgements", label: "Judgements", number: true, sort: (r) => r.judgements },
      { key: "identified", label: "Identified", sort: (r) => Number(r.identified), render: (r) => (r.identified ? badge("identified", "danger") : badge("not", "good")) },
    ],
    empty: "No text matches.",
  });
  const more = h("button", { type: "button", class: "button small" });
  const draw = () => {
    const fitting = rows.filter((r) => only === "all" || r.identified);
    list.update(fitting.slice(0, shown));
    more.hidden = fitting.length <= shown;
    more.textContent = `Show ${Math.min(PAGE, fitting.length - shown)} more of ${fitting.length}`;
  };
  more.addEventListener("click", () => { shown += PAGE; draw(); });
  const which = segments({ label: "Texts shown", value: "all", options: [{ value: "all", label: "All" }, { value: "found", label: "Identified" }], onchange: (value) => { only = value; shown = PAGE; draw(); } });
  draw();
  return [h("div", { class: "spread" }, h("h2", {}, "Texts"), which), list, h("div", {}, more)];
}

function words(title, terms, says) {
  return h("section", { class: "card stack tight" }, h("h2", {}, title), h("p", { class: "small muted" }, says),
    terms.length ? h("ul", { class: "chips" }, terms.map(([term, value]) => h("li", {}, h("span", { class: "badge" }, term, h("span", { class: "muted numbers" }, typeof value === "number" ? (Number.isInteger(value) ? count(value) : number(value, 2)) : ""))))) : h("p", { class: "muted" }, "Nothing yet."));
}
