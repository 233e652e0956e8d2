// Intruder studies (P3): people read anonymised texts and say whom they are about.

import { get, post, remove } from "../api.js";
import { actionButton, form, makeId, readJsonLines } from "../forms.js";
import { badge, button, describeError, dialog, download, dropZone, emptyState, errorState, field, fill, h, icon, input, notice, pageHead, skeleton, stylesheet, table, textarea, toast } from "../ui.js";
import { go, route } from "../router.js";
import { count, many, when } from "./format.js";
import { copyable, facts, folded, paged } from "./loading.js";
import { resultsView } from "./studies/results.js";

const LEAST_DAYS = 30;

export async function show(root, { rest }) {
  await stylesheet("pages/pages.css");
  return rest ? one(root, rest) : all(root);
}

function all(root) {
  const list = paged({
    size: 20,
    label: "Pages of studies",
    load: async (offset, limit) => {
      const found = await get("/v1/studies", { query: { offset, limit } });
      return { rows: found.studies, total: found.total };
    },
    draw: (rows) => table({
      rows,
      columns: [
        { key: "name", label: "Study", render: (s) => h("a", { class: "strong breaks", href: route(`studies/${s.id}`) }, s.name) },
        { key: "texts", label: "Texts", number: true },
        { key: "people", label: "People", render: (s) => h("span", { class: "numbers" }, `${s.finished} finished, ${s.begun} begun, ${s.invited} invited of ${s.pages}`) },
        { key: "created", label: "Made", render: (s) => h("span", {}, s.owner, " ", when(s.created)) },
      ],
    }),
    empty: emptyState({
      title: "No studies yet", icon: "people",
      body: "Upload anonymised texts with the people they are about. Invited people, who need no account, try to identify them; the results show how often they do.",
      actions: [button("New study", { icon: "plus", onclick: () => open(true) })],
    }),
  });
  const { make, place, open } = folded("New study", studyForm);
  root.append(pageHead("Intruder studies", "What a motivated person finds out from anonymised texts, as in the motivated intruder test.", [make]), h("div", { class: "stack wide" }, place, list));
  list.reload();
}

/** Texts of a JSON Lines file: id, text, subject, group. */
async function readTexts(file) {
  const texts = await readJsonLines(file, (record, number) => {
    const { text, group = "" } = record, subject = record.subject ?? record.person ?? record.name;
    if (typeof text !== "string" || typeof subject !== "string" || !text.trim() || !subject.trim()) return null;
    return { id: makeId(record.id ?? `text-${number}`), text, subject, group: String(group ?? "") };
  }, "an object with text and subject is needed.");
  if (!texts.length) throw new Error(`${file.name} holds no texts.`);
  return texts;
}

function studyForm(hide) {
  let texts = [];
  const name = field({ label: "Name", control: input({ maxlength: 64 }), hint: "Invited people see it.", check: (value) => (value.trim() ? "" : "A name is needed.") });
  const judgements = field({ label: "Judgements per text", control: input({ type: "number", min: 1, max: 100, value: "3" }), hint: "How many people read each text." });
  const perPage = field({ label: "Texts per person", control: input({ type: "number", min: 1, max: 100, value: "10" }), hint: "At most." });
  const guesses = field({ label: "Guesses", control: input({ type: "number", min: 1, max: 3, value: "3" }), hint: "Names a person may give for a text." });
  const consent = field({ label: "What people agree to", control: textarea({ rows: 4, maxlength: 10000 }), hint: "Empty: that it is voluntary, and what their answers are used for." });
  const summary = h("div", {});
  const say = () => {
    const n = Math.ceil((texts.length * (Number(judgements.control.value) || 1)) / Math.max(1, Math.min(texts.length, Number(perPage.control.value) || 1)));
    const subjects = new Set(texts.map((t) => t.subject)).size;
    fill(summary, texts.length ? notice(`${many(texts.length, "text")} about ${many(subjects, "person", "people")}. About ${many(n, "person", "people")} are needed to judge them.`, { kind: "good" }) : "");
    sheet.sendButton.disabled = !texts.length;
  };
  for (const one of [judgements, perPage]) one.control.addEventListener("input", say);
  const zone = dropZone({
    label: "Drop a JSON Lines file here: id, text (anonymised), subject (the true name), group (such as famous, fictitious)", accept: ".jsonl,.ndjson",
    onfiles: async ([file]) => {
      sheet.fail(null);
      try {
        texts = await readTexts(file);
        if (!name.control.value) name.control.value = file.name.replace(/\.\w+$/, "").slice(0, 64);
      } catch (error) {
        texts = [];
        sheet.fail(error);
      }
      say();
    },
  });
  const sheet = form({
    class: "stack wide", fields: [name], submit: { label: "Make the study", disabled: true }, cancel: hide,
    send: async () => {
      const made = await post("/v1/studies", {
        name: name.control.value.trim(), texts, judgements: Number(judgements.control.value) || 1, per_page: Number(perPage.control.value) || 1,
        guesses: Number(guesses.control.value) || 1, consent: consent.control.value.trim(),
      });
      go(`studies/${made.id}`);
    },
  }, h("h2", {}, "New study"), zone, summary, h("div", { class: "two" }, name, judgements, perPage, guesses), consent);
  return sheet;
}

async function one(root, id) {
  const path = `/v1/studies/${encodeURIComponent(id)}`;
  const head = h("div", {}), body = h("div", { class: "stack wide" });
  root.append(h("a", { class: "back", href: "#/studies" }, icon("left"), "Studies"), head, body);
  fill(body, skeleton(6));
  const load = async () => {
    try {
      draw(await get(path));
    } catch (error) {
      fill(body, errorState(error, load));
    }
  };
  const draw = (study) => {
    const drop = actionButton("Remove", async () => {
      await remove(path);
      go("studies");
    }, { kind: "quiet", icon: "trash", sure: { title: `Remove ${study.name}?`, body: "Its texts, links and answers are removed. This cannot be undone." } });
    fill(head, pageHead(study.name, null, [drop, button("Refresh", { icon: "restore", onclick: load })]));
    fill(body, people(study, path, load), study.results
      ? resultsView(study.results)
      : h("section", { class: "card" }, emptyState({ title: "No answers yet", body: "Results appear with the first answer.", icon: "chart" })));
  };
  await load();
}

const PEOPLE = { invited: ["invited", ""], begun: ["begun", "info"], finished: ["finished", "good"], expired: ["expired", "warn"] };

function people(study, path, reload) {
  const free = Math.max(0, study.pages - study.invited);
  const invite = button("Invite people", { kind: "primary", icon: "link", disabled: !free, onclick: () => ask(path, free, reload) });
  const withdraw = (r) => {
    const loss = r.answered ? ` ${many(r.answered, "answer")} of this person ${r.answered === 1 ? "is" : "are"} removed.` : "";
    return actionButton("Withdraw", () => remove(`${path}/invitations/${r.page}`).then(reload), {
      small: true, kind: "quiet", icon: "trash", "aria-label": `Withdraw the invitation to page ${r.page}`,
      sure: { title: `Withdraw the invitation to page ${r.page}?`, body: `Its link stops working, and the page can go to somebody else.${loss}` },
    });
  };
  return h("section", { class: "card stack" },
    h("div", { class: "spread" }, h("h2", {}, "People"), h("div", { class: "row" }, !free && h("span", { class: "small muted" }, "All pages are taken"), invite)),
    facts([["Texts", count(study.texts)], ["People needed", count(study.pages)], ["Invited", count(study.invited)], ["Begun", count(study.begun)], ["Finished", count(study.finished)]]),
    study.invitations.length > 0 && h("details", { class: "more" }, h("summary", {}, `${many(study.invitations.length, "invitation")}`), h("div", { class: "tall" }, table({
      rows: study.invitations,
      columns: [
        { key: "page", label: "Page", number: true, sort: (r) => r.page },
        { key: "state", label: "State", sort: (r) => r.state, render: (r) => badge(...PEOPLE[r.state]) },
        { key: "answered", label: "Answered", number: true, sort: (r) => r.answered, render: (r) => `${r.answered} of ${r.of}` },
        { key: "expires", label: "Link expires", render: (r) => when(r.expires) },
        { key: "withdraw", label: h("span", { class: "out-of-sight" }, "Actions"), render: withdraw },
      ],
    }))));
}

function ask(path, free, reload) {
  const number = field({ label: "How many people", control: input({ type: "number", min: 1, max: Math.min(free, 1000), value: String(Math.min(free, 100)) }), hint: `${free} of the study's pages have nobody yet.` });
  const days = field({ label: "Links work for, in days", control: input({ type: "number", min: 1, max: 365, value: String(LEAST_DAYS) }) });
  const sheet = form({
    submit: { label: "Make links" }, end: true,
    send: async () => {
      const { invitations } = await post(`${path}/invitations`, { count: Number(number.control.value) || 1, days: Number(days.control.value) || LEAST_DAYS });
      open.hold();
      const links = invitations.map(({ link }) => link);
      fill(open.element.querySelector(".body"), h("div", { class: "stack" },
        notice("One link for each person. Copy them now: they are not shown again.", { kind: "warn" }),
        links.length === 1 ? copyable(links[0]) : h("div", { class: "stack tight" }, h("ol", { class: "links" }, links.map((link) => h("li", {}, h("code", { class: "breaks" }, link)))),
          h("div", { class: "row" }, button("Copy all", { icon: "copy", onclick: () => navigator.clipboard.writeText(links.join("\n")).then(() => toast("Copied.")) }),
            button("Save as a file", { icon: "save", onclick: () => download("links.txt", `${links.join("\n")}\n`) })))));
    },
    refuse: (error) => number.wrong(describeError(error)),
  }, h("div", { class: "two" }, number, days));
  const open = dialog({ title: "Invite people", body: sheet, wide: true, closed: reload });
}
