// Talking to the server: JSON in and out, errors in the server's own shape, the CSRF token, uploads with progress.

let csrf = "";
let lost = () => {};

/** What the server answered instead of what was asked for. */
export class ApiError extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.where = error.where ?? null;
  }
}

/** The token that unsafe requests carry; it comes with the session. */
export function setCsrf(token) {
  csrf = token ?? "";
}

/** What to do when the session is over: called with no arguments. */
export function onSignedOut(f) {
  lost = f;
}

export const OFFLINE = { code: "Offline", message: "The server does not answer. Check that it runs, then try again." };

const ENDED = "Your session has ended. Sign in again.";

/** What the response says went wrong, as an ApiError. */
function problem(status, text) {
  let error = null;
  try {
    error = JSON.parse(text).error;
  } catch {
    // No answer of ours, for example a proxy's page.
  }
  return new ApiError(status, error?.message ? error : { code: "HTTPError", message: `The server answered with status ${status}.` });
}

/**
 * One request. `body` is sent as JSON, a FormData as it is. `query` is an object.
 * `as`: "json", "blob", "text" or "response". A 401 ends the session, unless `quiet`.
 */
export async function request(method, path, { body, query, signal, as = "json", quiet = false } = {}) {
  const headers = { Accept: as === "json" ? "application/json" : "*/*" };
  if (method !== "GET" && csrf) headers["X-CSRF-Token"] = csrf;
  let content;
  if (body instanceof FormData) content = body;
  else if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    content = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(address(path, query), { method, headers, body: content, signal, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, OFFLINE);
  }
  if (!response.ok) {
    const failed = problem(response.status, await response.text());
    if (failed.status === 401 && !quiet) { lost(); failed.message = ENDED; }
    throw failed;
  }
  if (as === "response") return response;
  if (as === "blob") return response.blob();
  if (as === "text") return response.text();
  return response.status === 204 ? null : response.json();
}

function address(path, query) {
  const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

export const get = (path, options) => request("GET", path, options);
export const post = (path, body, options) => request("POST", path, { ...options, body });
export const put = (path, body, options) => request("PUT", path, { ...options, body });
export const patch = (path, body, options) => request("PATCH", path, { ...options, body });
export const remove = (path, options) => request("DELETE", path, options);

/** Sends a form with files; `onprogress(share)` is told from 0 to 1 how much has gone. */
export function upload(path, form, { onprogress, as = "json", signal } = {}) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", path);
    sending.responseType = as === "blob" ? "blob" : "text";
    sending.setRequestHeader("X-CSRF-Token", csrf);
    sending.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) onprogress?.(event.loaded / event.total);
    });
    sending.addEventListener("error", () => reject(new ApiError(0, OFFLINE)));
    sending.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    sending.addEventListener("load", async () => {
      if (sending.status >= 200 && sending.status < 300) {
        if (as === "blob") resolve({ blob: sending.response, name: named(sending.getResponseHeader("Content-Disposition")) });
        else resolve(sending.responseText ? JSON.parse(sending.responseText) : null);
        return;
      }
      const text = as === "blob" ? await sending.response.text() : sending.responseText;
      const failed = problem(sending.status, text);
      if (failed.status === 401) { lost(); failed.message = ENDED; }
      reject(failed);
    });
    signal?.addEventListener("abort", () => sending.abort());
    sending.send(form);
  });
}

/** The file name in a Content-Disposition header, or null. */
function named(header) {
  const wide = /filename\*=utf-8''([^;]+)/i.exec(header ?? "");
  if (wide) return decodeURIComponent(wide[1]);
  return /filename="?([^";]+)"?/i.exec(header ?? "")?.[1] ?? null;
}

/** The address of a WebSocket of this server. */
export function socketAddress(path) {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}${path}`;
}
