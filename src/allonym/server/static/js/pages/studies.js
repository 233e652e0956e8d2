// Intruder studies (P3): people read anonymised texts and say whom they are about.

import { get, post, remove } from "../api.js";
import { badge, button, busy, confirm, dialog, download, dropZone, emptyState, errorState, field, fill, h, icon, input, notice, pageHead, said, skeleton, stylesheet, table, textarea, toast } from "../ui.js";
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
  const { make, form, open } = folded("New study", studyForm);
  root.append(pageHead("Intruder studies", "What a motivated person finds out from anonymised texts, as in the motivated intruder test.", [make]), h("div", { class: "stack wide" }, form, list));
  list.reload();
}

/** Texts of a JSON Lines file: id, text, subject, group. */
async function textsOf(file) {
  const out = [];
  for (const [i, line] of (await file.text()).split("\n").entries()) {
    if (!line.trim()) continue;
    let record = null;
    try { record = JSON.parse(line); } catch { /* said below, with its place */ }
    const text = record?.text, subject = record?.subject ?? record?.person ?? record?.name;
    if (typeof text !== "string" || typeof subject !== "string" || !text.trim() || !subject.trim()) throw new Error(`Line ${i + 1} of ${file.name}: an object with text and subject is needed.`);
    out.push({ id: String(record.id ?? `text-${i + 1}`).replaceAll("/", "-").slice(0, 200), text, subject, group: String(record.group ?? "") });
  }
  if (!out.length) throw new Error(`${file.name} holds no texts.`);
  return out;
}

function studyForm(hide) {
  let texts = [];
  const name = field({ label: "Name", control: input({ maxlength: 64 }), hint: "Invited people see it." });
  const judgements = field({ label: "Judgements per text", control: input({ type: "number", min: 1, max: 100, value: "3" }), hint: "How many people read each text." });
  const perPage = field({ label: "Texts per person", control: input({ type: "number", min: 1, max: 100, value: "10" }), hint: "At most." });
  const guesses = field({ label: "Guesses", control: input({ type: "number", min: 1, max: 3, value: "3" }), hint: "Names a person may give for a text." });
  const consent = field({ label: "What people agree to", control: textarea({ rows: 4, maxlength: 10000 }), hint: "Empty: that it is voluntary, and what their answers are used for." });
  const told = h("div", {});
  const failed = h("div", { hidden: true });
  const fail = (error) => { fill(failed, notice(said(error), { kind: "danger" })); failed.hidden = false; };
  const submit = button("Make the study", { kind: "primary", type: "submit", disabled: true });
  const say = () => {
    const n = Math.ceil((texts.length * (Number(judgements.control.value) || 1)) / Math.max(1, Math.min(texts.length, Number(perPage.control.value) || 1)));
    const subjects = new Set(texts.map((t) => t.subject)).size;
    fill(told, texts.length ? notice(`${many(texts.length, "text")} about ${many(subjects, "person", "people")}. About ${many(n, "person", "people")} are needed to judge them.`, { kind: "good" }) : "");
    submit.disabled = !texts.length;
  };
  for (const one of [judgements, perPage]) one.control.addEventListener("input", say);
  const zone = dropZone({
    label: "Drop a JSON Lines file here: id, text (anonymised), subject (the true name), group (such as famous, fictitious)", accept: ".jsonl,.ndjson",
    onfiles: async ([file]) => {
      failed.hidden = true;
      try {
        texts = await textsOf(file);
        if (!name.control.value) name.control.value = file.name.replace(/\.\w+$/, "").slice(0, 64);
      } catch (error) {
        texts = [];
        fail(error);
      }
      say();
    },
  });
  const form = h("form", { class: "stack wide", novalidate: true }, h("h2", {}, "New study"), zone, told, h("div", { class: "two" }, name, judgements, perPage, guesses), consent, failed,
    h("div", { class: "row" }, submit, button("Cancel", { kind: "quiet", onclick: hide })));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    name.wrong(name.control.value.trim() ? "" : "A name is needed.");
    if (!name.control.value.trim()) { name.control.focus(); return; }
    failed.hidden = true;
    try {
      const made = await busy(submit, () => post("/v1/studies", {
        name: name.control.value.trim(), texts, judgements: Number(judgements.control.value) || 1, per_page: Number(perPage.control.value) || 1,
        guesses: Number(guesses.control.value) || 1, consent: consent.control.value.trim(),
      }));
      go(`studies/${made.id}`);
    } catch (error) {
      fail(error);
    }
  });
  return form;
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
    const drop = button("Remove", { kind: "quiet", icon: "trash" });
    drop.addEventListener("click", async () => {
      if (!(await confirm({ title: `Remove ${study.name}?`, body: "Its texts, links and answers are removed. This cannot be undone.", action: "Remove", danger: true }))) return;
      try {
        await busy(drop, () => remove(path));
        go("studies");
      } catch (error) {
        toast(said(error), { kind: "danger" });
      }
    });
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
  const withdraw = (r) => button("Withdraw", {
    small: true, kind: "quiet", icon: "trash", "aria-label": `Withdraw the invitation to page ${r.page}`,
    onclick: async ({ currentTarget: press }) => {
      const lost = r.answered ? ` ${many(r.answered, "answer")} of this person ${r.answered === 1 ? "is" : "are"} removed.` : "";
      if (!(await confirm({ title: `Withdraw the invitation to page ${r.page}?`, body: `Its link stops working, and the page can go to somebody else.${lost}`, action: "Withdraw", danger: true }))) return;
      try {
        await busy(press, () => remove(`${path}/invitations/${r.page}`));
        await reload();
      } catch (error) {
        toast(said(error), { kind: "danger" });
      }
    },
  });
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
  const submit = button("Make links", { kind: "primary", type: "submit" });
  const form = h("form", { class: "stack", novalidate: true }, h("div", { class: "two" }, number, days), h("div", { class: "row end" }, submit));
  const open = dialog({ title: "Invite people", body: form, wide: true, closed: reload });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      const { invitations } = await busy(submit, () => post(`${path}/invitations`, { count: Number(number.control.value) || 1, days: Number(days.control.value) || LEAST_DAYS }));
      open.hold();
      const links = invitations.map((one_) => one_.link).join("\n");
      fill(open.element.querySelector(".body"), h("div", { class: "stack" },
        notice("One link for each person. Copy them now: they are not shown again.", { kind: "warn" }),
        invitations.length === 1 ? copyable(links) : h("div", { class: "stack tight" }, h("ol", { class: "links" }, invitations.map((one_) => h("li", {}, h("code", { class: "breaks" }, one_.link)))),
          h("div", { class: "row" }, button("Copy all", { icon: "copy", onclick: () => navigator.clipboard.writeText(links).then(() => toast("Copied.")) }), button("Save as a file", { icon: "save", onclick: () => download("links.txt", `${links}\n`) })))));
    } catch (error) {
      number.wrong(said(error));
    }
  });
}
