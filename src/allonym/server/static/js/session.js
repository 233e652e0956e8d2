// Who is signed in, and what they may do.

import { get, post, remove, request, setCsrf } from "./api.js";

let now = null;
const leaving = new Set();

/** Calls `f()` when the person signs out, to clear what they worked on. */
export function onSignOut(f) {
  leaving.add(f);
}

/** {name, role, permissions, csrf}, or null. */
export function current() {
  return now;
}

/** Whether the person may do that: detect, anonymize, restore, evaluate, jobs, review, adjudicate, studies, admin. */
export function may(permission) {
  return Boolean(now?.permissions.includes(permission));
}

function taken(session) {
  now = session;
  setCsrf(session?.csrf);
  return session;
}

/** The session that the cookie stands for, or null. Raises where the server does not answer. */
export async function load() {
  try {
    return taken(await get("/v1/session", { quiet: true }));
  } catch (error) {
    if (error.status === 401 || error.status === 403) return taken(null);
    throw error;
  }
}

/** Signs in; raises what the server says. */
export async function signIn(name, password) {
  await post("/v1/session", { name, password }, { quiet: true });
  return load();
}

/** Signs in by the link that the start of a local server printed. */
export async function signInByLink(token) {
  await post("/v1/session/link", { token }, { quiet: true });
  return load();
}

/** Uses a one-time link. */
export async function setUp(token, name, password) {
  await request("POST", "/v1/setup", { body: { token, name, password }, quiet: true });
  return signIn(name, password);
}

/** Signs out, after single sign-on at the issuer too; the session counts as ended here whatever the server says. */
export async function signOut() {
  const there = now?.sign_out;
  try {
    await remove("/v1/session", { quiet: true });
  } finally {
    taken(null);
    for (const f of leaving) f();
  }
  if (there) location.assign(there);
}

/** Forgets the session that the server no longer knows. */
export function forget() {
  taken(null);
}
