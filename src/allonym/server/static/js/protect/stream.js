// Annotation while somebody types: over the WebSocket, and over HTTP for as long as that one does not open.

import { post, socketAddress } from "../api.js";
import { Points } from "./points.js";

const PAUSE = 120; // milliseconds of silence after which a short text is sent
const LONG_PAUSE = 350; // and a long one
const LONG = 20_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
const REFUSED = 1008; // the code with which the server closes what it does not go on with
const SILENCE = 60_000; // after which a connection that owes an answer counts as dead

/**
 * Keeps a draft annotated.
 *
 * `onstatus(status, detail)`: "connecting", "live" (detail: milliseconds), "working", "offline", "error" (detail: the error).
 */
export class Annotator {
  constructor({ onspans, onstatus }) {
    this.onspans = onspans;
    this.onstatus = onstatus;
    this.policy = null;
    this.socket = null;
    this.wait = FIRST_WAIT;
    this.failures = 0;
    this.sent = null; // what an answer is awaited for
    this.next = null; // what is to be sent after that
    this.unread = null; // what the server did not want to read
    this.refused = false; // whether it closed the last connection by itself
    this.closed = false;
    this.back = () => this.connect();
    this.gone = () => {
      this.drop();
      this.failures += 1;
      this.onstatus("offline");
    };
    window.addEventListener("online", this.back);
    window.addEventListener("offline", this.gone);
  }

  /** The policy from now on; what was sent last is annotated anew. */
  setPolicy(policy) {
    const said = JSON.stringify(policy);
    if (said === this.said) return;
    this.said = said;
    this.policy = policy;
    this.drop();
    this.connect();
  }

  /** A text to annotate, after a pause; a newer one takes its place. */
  ask(version, text, { now = false } = {}) {
    clearTimeout(this.timer);
    this.next = { version, text };
    this.timer = setTimeout(() => this.flush(), now ? 0 : text.length > LONG ? LONG_PAUSE : PAUSE);
  }

  flush() {
    if (!this.next || this.sent || this.closed) return;
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.sent = this.next;
      this.next = null;
      this.onstatus("working");
      clearTimeout(this.watch);
      this.watch = setTimeout(() => {
        if (!this.sent) return;
        this.drop();
        this.connect();
      }, SILENCE);
      this.socket.send(JSON.stringify({ type: "text", version: this.sent.version, text: this.sent.text }));
    } else if (this.failures > 0) {
      this.byRequest();
    }
  }

  async byRequest() {
    const asked = this.next;
    this.sent = asked;
    this.next = null;
    try {
      const { spans, milliseconds } = await post("/v1/detect", { text: asked.text, policy: this.policy ?? undefined });
      if (this.sent === asked) this.take(asked, spans, milliseconds);
    } catch (error) {
      if (this.sent !== asked) return;
      this.sent = null;
      this.next ??= asked;
      this.onstatus(error.status === 0 ? "offline" : "error", error);
    }
  }

  take(asked, spans, milliseconds) {
    const points = new Points(asked.text);
    const found = spans.map((s) => ({ ...s, start: points.toUnits(s.start), end: points.toUnits(s.end) }));
    this.sent = null;
    this.unread = null;
    if (this.refused) this.connect();
    this.onstatus("live", milliseconds);
    this.onspans(asked.version, found);
    this.flush();
  }

  connect() {
    if (this.closed || this.socket) return;
    clearTimeout(this.retry);
    this.refused = false;
    this.onstatus("connecting");
    const socket = new WebSocket(socketAddress("/v1/stream"));
    this.socket = socket;
    socket.addEventListener("open", () => {
      socket.send(JSON.stringify({ type: "open", mode: "annotate", policy: this.policy }));
      this.wait = FIRST_WAIT;
      this.failures = 0;
      this.onstatus("live");
      this.flush();
    });
    socket.addEventListener("message", (event) => {
      const said = JSON.parse(event.data);
      if (said.type === "spans" && said.version === this.sent?.version) this.take(this.sent, said.spans, said.milliseconds);
      else if (said.type === "error") {
        this.unread = this.sent;
        this.sent = null;
        this.onstatus("error", said.error);
        this.flush();
      }
    });
    socket.addEventListener("close", ({ code }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (this.sent) this.next ??= this.sent;
      this.sent = null;
      this.failures += 1;
      if (this.closed) return;
      if (code === REFUSED) { // a request tells why, and whether it was for a moment only
        this.refused = true;
        this.next ??= this.unread;
        this.flush();
        return;
      }
      this.onstatus("offline");
      this.retry = setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
      if (this.next) this.flush();
    });
  }

  drop() {
    const socket = this.socket;
    this.socket = null;
    if (this.sent) this.next ??= this.sent;
    this.sent = null;
    socket?.close();
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    clearTimeout(this.retry);
    clearTimeout(this.watch);
    window.removeEventListener("online", this.back);
    window.removeEventListener("offline", this.gone);
    this.drop();
  }
}
