// What the protect page does: keeps the text annotated, plans ahead, anonymises, restores. Its parts listen to it.

import { get, post } from "../api.js";
import { announce, debounce, describeError, toast } from "../ui.js";
import { learn } from "../families.js";
import { may } from "../session.js";
import { Points, applied } from "./points.js";
import { Annotator } from "./stream.js";
import { keyOf, spansOf, workspace } from "./workspace.js";

const LONG = 40_000;

/**
 * The desk. `on(name, f)` listens: "document" (another one lies here), "text", "marks", "preview", "choice", "scope",
 * "result", "status", "history".
 */
export class Desk {
  constructor() {
    this.space = workspace();
    this.listeners = new Map();
    this.status = { kind: "connecting", detail: null };
    this.ahead = null; // the plan ahead: {version, key, text, places, at: Map, spans}
    this.failed = null; // why there is none
    this.loaded = false; // whether it is known what can be chosen
    this.annotator = new Annotator({
      onspans: (version, spans) => this.draft.annotate(version, spans),
      onstatus: (kind, detail = null) => {
        this.status = { kind, detail };
        this.emit("status");
        if (kind === "error") this.fail(detail);
        else if (kind === "live" && this.failed) this.planSoon();
      },
    });
    this.planSoon = debounce(() => this.plan(), 200);
    this.planLater = debounce(() => this.plan(), 900);
    this.checkSoon = debounce(() => this.check(), 250);
  }

  on(names, f) {
    for (const name of names.split(" ")) {
      if (!this.listeners.has(name)) this.listeners.set(name, new Set());
      this.listeners.get(name).add(f);
    }
  }

  emit(name, detail) {
    for (const f of this.listeners.get(name) ?? []) f(detail, name);
  }

  get work() {
    return this.space.work;
  }

  get draft() {
    return this.space.work.draft;
  }

  /** What can be chosen; raises what the server says. */
  async load() {
    const [labels, operators, detectors, policies] = await Promise.all(["labels", "operators", "detectors", "policies"].map((name) => get(`/v1/${name}`)));
    this.labels = labels.labels;
    this.operators = operators.operators;
    this.detectors = detectors.detectors;
    this.policies = policies.policies;
    learn(this.labels);
    const names = this.policies.map((p) => p.name);
    if (!names.includes(this.space.choice.name)) this.space.choose(names.includes("default") ? "default" : names[0]);
    this.detail = await this.readPolicy(this.space.choice.name);
    this.loaded = true;
    this.take();
  }

  readPolicy(name) {
    return get(`/v1/policies/${encodeURIComponent(name)}`);
  }

  /** Listens to the document that lies on the desk. */
  take() {
    this.leave?.();
    this.ahead = null;
    this.failed = null;
    this.leave = this.draft.subscribe((what, detail) => this.changed(what, detail));
    if (this.loaded) this.annotator.setPolicy(this.space.policy);
    this.emit("document");
    this.check();
    this.emit("result");
    if (this.draft.annotated !== this.draft.version) this.annotator.ask(this.draft.version, this.draft.text, { now: true });
    else this.plan();
  }

  changed(what, detail) {
    if (what === "both") {
      this.annotator.ask(this.draft.version, this.draft.text);
      this.emit("text", detail);
    } else {
      (this.draft.text.length > LONG ? this.planLater : this.planSoon)();
    }
    this.emit("marks");
    this.emit("history");
    if (this.work.result) this.checkSoon();
  }

  /** Puts another document on the desk. */
  show(at) {
    this.space.at = at;
    this.take();
  }

  /** Other documents instead of those that lie here. */
  open(documents, file = null) {
    this.space.load(documents, file);
    this.take();
  }

  /** Changes the choice: fields of it, or another policy by name, which counts once the server has told it. */
  async choose(changes) {
    this.choosing = changes;
    if (changes.name !== undefined && changes.name !== this.space.choice.name) {
      const detail = await this.readPolicy(changes.name);
      if (this.choosing !== changes) return;
      this.space.choose(changes.name);
      this.detail = detail;
    } else {
      this.space.choice = { ...this.space.choice, ...changes };
    }
    this.failed = null;
    for (const { draft } of this.space.works) draft.annotated = 0;
    this.emit("choice");
    this.annotator.setPolicy(this.space.policy);
    this.annotator.ask(this.draft.version, this.draft.text, { now: true });
    if (this.work.result) this.checkSoon();
  }

  /** Under which name texts are kept in the vault. */
  keepUnder(scope) {
    this.space.scope = scope;
    this.emit("scope");
    if (this.work.result) this.checkSoon();
  }

  /** The detectors that read. */
  get running() {
    return this.space.choice.detectors ?? this.detail?.detectors ?? null;
  }

  /** What will stand in place of a mention; "" where nothing will, null where that is not known. */
  becomes(mark) {
    if (this.ahead?.version !== this.draft.version) return null;
    return this.ahead.at.get(`${mark.start}-${mark.end}`)?.replacement ?? null;
  }

  /** The number of the entity that a mention belongs to; 0: not known. */
  entity(mark) {
    return this.ahead?.entities.get(`${mark.start}-${mark.end}`) ?? mark.entity ?? 0;
  }

  /** Asks for the plan of what is on the desk, without the vault knowing. */
  async plan() {
    const { draft, space } = this;
    this.asking?.abort();
    if (!draft.text.trim() || draft.annotated !== draft.version) {
      if (!draft.text.trim()) this.ahead = this.failed = null;
      this.emit("preview");
      return;
    }
    const asking = new AbortController();
    this.asking = asking;
    const version = draft.version;
    try {
      const body = { text: draft.text, policy: space.policy, spans: spansOf(draft) };
      const { plan, spans, unread } = await post("/v1/plans", body, { signal: asking.signal });
      if (draft !== this.draft || version !== draft.version) return;
      const points = new Points(draft.text);
      const units = (one) => `${points.toUnits(one.start)}-${points.toUnits(one.end)}`;
      const at = new Map(plan.edits.filter((e) => e.end > e.start).map((e) => [units(e), e]));
      const entities = new Map(spans.map((s) => [units(s), s.entity]));
      this.ahead = { version, at, entities, plan, unread, ...applied(draft.text, plan.edits) };
      this.failed = null;
    } catch (error) {
      if (error.name !== "AbortError") this.fail(error);
      return;
    }
    this.emit("preview");
  }

  /** There is no plan ahead, and why. */
  fail(error) {
    this.ahead = null;
    this.failed = error;
    this.emit("preview");
  }

  /** Tells what went wrong. That the session is over is told by the page for signing in. */
  complain(error) {
    if (error.status !== 401) toast(describeError(error), { kind: "danger" });
  }

  /** Whether the result is the one of what is on the desk. Also when it is not, its plan can restore. */
  check() {
    const { work } = this;
    if (!work.result) return;
    const fresh = work.result.key === keyOf(this.space, work);
    if (fresh === work.result.fresh) return;
    work.result.fresh = fresh;
    this.emit("result");
  }

  /** Sees to it that the findings are those of the text and the choice as they are now. Raises what the server says. */
  async settle(draft) {
    while (draft.annotated !== draft.version) {
      const { version, text } = draft;
      const { policy } = this.space;
      const { spans } = await post("/v1/detect", { text, policy });
      const points = new Points(text);
      if (JSON.stringify(policy) === JSON.stringify(this.space.policy)) draft.annotate(version, spans.map((s) => ({ ...s, start: points.toUnits(s.start), end: points.toUnits(s.end) })));
    }
  }

  /** Replaces what is marked, for good: with a scope the vault keeps it. Raises what the server says. */
  async anonymise() {
    const { draft, space, work } = this;
    await this.settle(draft);
    const key = keyOf(space, work);
    const { text } = draft;
    const body = { text, policy: space.policy, originals: may("restore"), spans: spansOf(draft) };
    if (space.scope) body.scope = space.scope;
    const made = await post("/v1/anonymize", body);
    work.result = { text: made.text, plan: made.plan, places: applied(text, made.plan.edits).places, original: text, key, fresh: true, scope: space.scope, unread: made.unread };
    work.answer = null;
    work.restored = null;
    this.emit("result");
    announce(`Anonymised: ${made.plan.edits.length} replacements.`);
    return work.result;
  }

  /** Brings the originals back into what stands as the result. Raises what the server says. */
  async restore() {
    const { work, space } = this;
    const text = work.answer ?? work.result.text;
    const body = { text };
    if (work.result) body.plan = work.result.plan;
    const scope = work.result?.scope || space.scope;
    if (scope) body.scope = scope;
    const back = await post("/v1/restore", body);
    const points = new Points(back.text);
    const found = back.found.map((f) => ({ ...f, start: points.toUnits(f.start), end: points.toUnits(f.end) }));
    work.restored = { ...back, found };
    this.emit("result");
    announce(`${back.restored} restored, ${back.unknown} unknown.`);
  }

  close() {
    this.leave?.();
    this.annotator.close();
    this.asking?.abort();
    this.planSoon.cancel();
    this.planLater.cancel();
    this.checkSoon.cancel();
    this.listeners.clear();
  }
}
