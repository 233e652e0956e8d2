// What lies on the desk: documents, what was made of them, and the choices that hold for all. It lives in the page's
// memory only, so that it is there after a look at another page, and gone with the window.

import { confirm } from "../ui.js";
import { preference, prefer } from "../preferences.js";
import { current, onSignOut } from "../session.js";
import { Draft } from "./draft.js";
import { Points } from "./points.js";

/** One document: its draft, and what was made of it. */
class Work {
  constructor(id, text, file = null) {
    this.id = id;
    this.file = file; // {file, name, format, saveable} that it was opened from
    this.opened = text;
    this.draft = new Draft(text);
    this.result = null; // {text, plan, places, key, fresh}: what was anonymised last, of which text and choice
    this.answer = null; // the result as the person edited it; null: as it was made
    this.restored = null; // what restoring gave
  }
}

const FREE = { name: null, confidence: null, operators: {}, off: [], detectors: null };

class Workspace {
  constructor(owner) {
    this.owner = owner;
    this.works = [new Work("", "")];
    this.at = 0;
    this.choice = { ...FREE, name: preference("policy") };
    this.scope = "";
  }

  get work() {
    return this.works[this.at];
  }

  /** Whether something lies here that cannot be had again: own corrections, answers, plans that no vault keeps. */
  get dirty() {
    return this.works.some((w) => w.draft.own.length > 0 || Boolean(w.answer?.trim()) || Boolean(w.result && !w.result.scope));
  }

  /** Other documents instead of those that lie here. */
  load(documents, file = null) {
    this.works = documents.map((d) => new Work(d.id, d.text, file));
    this.at = 0;
  }

  /** The choice as the server reads it. */
  get policy() {
    const { name, confidence, operators, off, detectors } = this.choice;
    const out = {};
    if (name) out.name = name;
    if (confidence !== null) out.confidence = confidence;
    if (Object.keys(operators).length) out.operators = operators;
    if (off.length) out.off = off;
    if (detectors) out.detectors = detectors;
    return out;
  }

  /** Another policy, with nothing changed in it. */
  choose(name) {
    this.choice = { ...FREE, name };
    prefer("policy", name);
  }
}

let desk = null;
onSignOut(() => { desk = null; });
window.addEventListener("beforeunload", (event) => {
  if (desk?.dirty) event.preventDefault();
});

/** Whether all that lies on the desk may go; asks where something of it would be lost. */
export async function mayGo(title, action) {
  return !desk?.dirty || confirm({ title, body: "Your corrections will be lost, and so will answers and plans that are in no vault.", action, danger: true });
}

/** The desk of the person who is signed in; another person's is cleared away. */
export function workspace() {
  const owner = current()?.name ?? null;
  if (!desk || desk.owner !== owner) desk = new Workspace(owner);
  return desk;
}

/** Mentions as the server reads them: code points, and a number for those that a person holds for the same or apart. */
export function spansOf(draft) {
  const points = new Points(draft.text);
  return draft.standing.map((m) => {
    const span = { start: points.toPoints(m.start), end: points.toPoints(m.end), label: m.label, score: m.score };
    if (m.source) span.source = m.source.slice(0, 200);
    if (m.group) span.entity = m.group;
    return span;
  });
}

/** What a result depends on, to tell whether it is still the one of what is on the desk. */
export function keyOf(space, { draft }) {
  const said = draft.standing.map((m) => `${m.start}-${m.end}-${m.label}-${m.group ?? ""}`).join(" ");
  return JSON.stringify([draft.text, said, space.policy, space.scope]);
}
