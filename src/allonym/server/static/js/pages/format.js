// Numbers, times and sizes as people read them.

import { h } from "../ui.js";

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const WHOLE = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const STEPS = [["second", 60], ["minute", 60], ["hour", 24], ["day", 30], ["month", 12], ["year", Infinity]];

/** A moment (seconds since 1970, or ISO 8601) as a time element: "3 minutes ago", with the date as its title. */
export function when(moment, none = "–") {
  if (moment === null || moment === undefined || moment === "") return none;
  const date = new Date(typeof moment === "number" ? moment * 1000 : moment);
  if (Number.isNaN(date.getTime())) return none;
  return h("time", { datetime: date.toISOString(), title: WHOLE.format(date), class: "nowrap" }, ago((date - Date.now()) / 1000));
}

function ago(seconds) {
  if (Math.abs(seconds) < 45) return "just now";
  let value = seconds;
  for (const [unit, many] of STEPS) {
    if (Math.abs(value) < many) return RELATIVE.format(Math.round(value), unit);
    value /= many;
  }
  return "";
}

/** The seconds between two moments, as "1 min 20 s". */
export function lasted(from, to) {
  const at = (moment) => (typeof moment === "number" ? moment * 1000 : new Date(moment).getTime());
  const seconds = Math.max(0, Math.round((at(to) - at(from)) / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** Bytes as "1.2 MB". */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000, at = 0;
  while (value >= 1000 && at < units.length - 1) { value /= 1000; at += 1; }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[at]}`;
}

/** A whole number with its thousands apart. */
export function count(value) {
  return Number(value).toLocaleString("en", { maximumFractionDigits: 0 });
}

/** "1 document", "2 documents". */
export function many(value, one, several = `${one}s`) {
  return `${count(value)} ${Number(value) === 1 ? one : several}`;
}

/** A share as "12.5 %". */
export function share(value, digits = 1) {
  return known(value) ? `${(100 * value).toFixed(digits)} %` : "–";
}

/** A number with so many decimals, a true minus, and "–" for none. */
export function number(value, digits = 3) {
  if (!known(value)) return "–";
  const text = Math.abs(value) >= 1e6 || (value !== 0 && Math.abs(value) < 10 ** -digits / 2) ? value.toExponential(2) : value.toFixed(digits);
  return text.replace("-", "−");
}

/** The value of a number or of an estimate {value, low, high}; NaN where there is none. */
export function middle(value) {
  const found = value !== null && typeof value === "object" ? value.value : value;
  return known(found) ? found : NaN;
}

/** The interval of an estimate as [low, high], or null. */
export function interval(value) {
  return value && typeof value === "object" && known(value.low) && known(value.high) && value.low < value.high ? [value.low, value.high] : null;
}

/** An estimate as words: "0.61 (0.52 to 0.70)". `write` says how a number is written. */
export function estimate(value, write = number) {
  const ends = interval(value);
  const middleText = write(middle(value));
  return ends ? `${middleText} (${write(ends[0])} to ${write(ends[1])})` : middleText;
}

function known(value) {
  return typeof value === "number" && Number.isFinite(value);
}
