// The risk-utility plane: releases as marks that are pointed at, clicked, or walked along with the arrow keys.

import { fill, h } from "../ui.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDE = { width: 720, height: 440, left: 62, right: 708, top: 34, bottom: 386 };
const NARROW = { width: 390, height: 400, left: 54, right: 382, top: 34, bottom: 340 };
const SHAPES = [
  (x, y, r) => `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`,
  (x, y, r) => corners(x, y, r, [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]]),
  (x, y, r) => corners(x, y, r, [[0, -1.15], [1.1, 0.85], [-1.1, 0.85]]),
  (x, y, r) => corners(x, y, r, [[0, -1.25], [1.25, 0], [0, 1.25], [-1.25, 0]]),
  (x, y, r) => corners(x, y, r, [[0, 1.15], [1.1, -0.85], [-1.1, -0.85]]),
  (x, y, r) => corners(x, y, r, [[0.4, -1.1], [0.4, -0.4], [1.1, -0.4], [1.1, 0.4], [0.4, 0.4], [0.4, 1.1],
    [-0.4, 1.1], [-0.4, 0.4], [-1.1, 0.4], [-1.1, -0.4], [-0.4, -0.4], [-0.4, -1.1]]),
];
const COLOURS = 8;

function corners(x, y, r, list) {
  return `M${list.map(([a, b]) => `${(x + a * r).toFixed(1)} ${(y + b * r).toFixed(1)}`).join("L")}Z`;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** Round ticks between two values, about `count` of them, and how many decimals their names need. */
function ticks(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * size).find((s) => s >= rough * 0.999);
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step)) + (step / size === 2.5 ? 1 : 0)));
  const out = [];
  for (let i = Math.ceil(low / step - 1e-9); i <= Math.floor(high / step + 1e-9); i += 1) {
    out.push([i * step, (i * step).toFixed(digits).replace("-", "−")]);
  }
  return out;
}

function scale(values, start, end, count) {
  let low = Math.min(...values), high = Math.max(...values);
  if (!(high > low)) {
    const around = Math.abs(low) * 0.1 || 1;
    [low, high] = [low - around, high + around];
  }
  const air = 0.06 * (high - low);
  [low, high] = [low - air, high + air];
  const at = (value) => start + ((value - low) / (high - low)) * (end - start);
  at.ticks = ticks(low, high, count);
  return at;
}

/** The mark of a series, for a legend. */
export function swatch(slot) {
  const mark = svg("path", { class: `mark s${slot % COLOURS}`, d: SHAPES[slot % SHAPES.length](7, 7, 4.6) });
  return svg("svg", { class: "swatch", viewBox: "0 0 14 14", "aria-hidden": "true" }, mark);
}

/** A place for a plane with a tip at the mark that is pointed at: {element, draw(options)}; `draw` is told what {@link plane} is. */
export function planeBox() {
  const tip = h("div", { class: "plane-tip", hidden: true, "aria-hidden": "true" });
  const element = h("div", { class: "plane-box" });
  const onPoint = (point, mark) => {
    tip.hidden = !point;
    if (!point) return;
    fill(tip, h("strong", {}, point.label), h("dl", {}, point.facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])));
    const box = mark.getBoundingClientRect(), own = element.getBoundingClientRect(), size = tip.getBoundingClientRect();
    let left = box.right - own.left + 10;
    if (left + size.width > own.width) left = Math.max(0, box.left - own.left - size.width - 10);
    const top = Math.max(0, Math.min(own.height - size.height, box.top - own.top - size.height / 2));
    tip.style.setProperty("transform", `translate(${Math.round(left)}px, ${Math.round(top)}px)`);
  };
  const draw = (options) => {
    const picture = plane({ ...options, onPoint });
    fill(element, picture.element, tip);
    return picture;
  };
  return { element, draw };
}

/**
 * Draws points {id, x, y, xs?, ys?, slot, label, facts, frontier, chosen} (xs, ys: [low, high]) over two axes;
 * `xLimit`: {at, label}, a line across which points may lie.
 * Returns {element, select(id), show(slots)}. `onPick(id)` is called on a click, on Enter and on Space; `onPoint(point,
 * element)` when a mark is pointed at, with null when no longer.
 */
function plane({ points, baseline = null, xLimit = null, xName, yName, label, onPick, onPoint }) {
  const frame = matchMedia("(max-width: 44rem)").matches ? NARROW : WIDE;
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  if (baseline) { xs.push(baseline.x); ys.push(baseline.y); }
  const x = scale(xs, frame.left, frame.right, frame === WIDE ? 6 : 4);
  const y = scale(ys, frame.bottom, frame.top, 6);
  const root = svg("svg", {
    class: "plot plane", viewBox: `0 0 ${frame.width} ${frame.height}`, role: "listbox", tabindex: 0,
    "aria-label": label, "aria-roledescription": "chart",
  });
  root.append(grid(frame, x, y, xName, yName));
  const labels = svg("g", { "aria-hidden": "true" }, words("better ↘", frame.right, frame.top - 20, "better", "end"));
  if (xLimit && xs.some((v) => v > xLimit.at)) {
    const a = x(xLimit.at);
    root.append(svg("path", { class: "guide limit", d: `M${a} ${frame.top}V${frame.bottom}`, "aria-hidden": "true" }));
    const right = a < frame.left + 0.6 * (frame.right - frame.left);
    labels.append(words(xLimit.label, a + (right ? -2 : 2), frame.top - 5, "better", right ? "start" : "end"));
  }
  const front = points.filter((p) => p.frontier).sort((a, b) => a.x - b.x);
  if (front.length > 1) {
    root.append(svg("path", { class: "guide frontier", d: line(front.map((p) => [x(p.x), y(p.y)])), "aria-hidden": "true" }));
  }
  for (const slot of new Set(points.map((p) => p.slot))) {
    const own = points.filter((p) => p.slot === slot);
    if (own.length < 2) continue;
    root.append(svg("path", {
      class: `curve s${slot % COLOURS}`, d: line(own.map((p) => [x(p.x), y(p.y)])), "data-slot": slot, "aria-hidden": "true",
    }));
  }
  if (baseline) {
    const a = x(baseline.x), b = y(baseline.y);
    root.append(svg("path", { class: "baseline", d: `M${a - 6} ${b}h12M${a} ${b - 6}v12`, "aria-hidden": "true" }));
    const right = a < frame.left + 0.7 * (frame.right - frame.left);
    labels.append(words(baseline.label, a + (right ? 5 : -5), b + 18 < frame.bottom ? b + 18 : b - 10, "callout quiet", right ? "start" : "end"));
  }
  const halo = svg("g", { class: "halo", "aria-hidden": "true" });
  root.append(halo);
  const marks = [...points].sort((p, q) => Number(p.frontier) - Number(q.frontier) || Number(p.chosen) - Number(q.chosen)).map((p) => {
    const at = [x(p.x), y(p.y)];
    const r = p.frontier ? 5.4 : 4.3;
    const mark = svg("path", {
      class: `mark s${p.slot % COLOURS}${p.frontier ? " frontier" : ""}`, d: SHAPES[p.slot % SHAPES.length](at[0], at[1], r),
      role: "option", id: `release-${p.id}`, "aria-selected": "false", "data-slot": p.slot,
      "aria-label": [p.label, ...p.facts.map(([n, v]) => `${n} ${v}`), p.frontier ? "on the frontier" : ""].filter(Boolean).join(", "),
    });
    root.append(mark);
    return { point: p, mark, at };
  });
  const called = svg("g", { "aria-hidden": "true" });
  root.append(labels, called);

  let now = null;
  let hidden = new Set();
  const seen = () => marks.filter((m) => !hidden.has(m.point.slot));
  const pointAt = (one) => {
    if (one === now) return;
    now?.mark.classList.remove("on");
    now = one;
    now?.mark.classList.add("on");
    if (now) root.setAttribute("aria-activedescendant", now.mark.id);
    else root.removeAttribute("aria-activedescendant");
    onPoint?.(now ? now.point : null, now?.mark ?? null);
  };
  const nearest = (event) => {
    const matrix = root.getScreenCTM();
    if (!matrix) return null;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    let best = null, near = (24 / matrix.a) ** 2;
    for (const m of seen()) {
      const far = (m.at[0] - at.x) ** 2 + (m.at[1] - at.y) ** 2;
      if (far <= near) [best, near] = [m, far];
    }
    return best;
  };
  root.addEventListener("pointermove", (event) => pointAt(nearest(event)));
  root.addEventListener("pointerleave", () => pointAt(null));
  root.addEventListener("blur", () => pointAt(null));
  root.addEventListener("click", (event) => {
    const one = nearest(event);
    if (one) onPick(one.point.id);
  });
  root.addEventListener("keydown", (event) => {
    const shown = seen();
    if (!shown.length) return;
    const start = now ?? shown.find((m) => m.mark.getAttribute("aria-selected") === "true") ?? shown[0];
    const row = (slot) => shown.filter((m) => m.point.slot === slot).sort((a, b) => a.at[0] - b.at[0]);
    const slots = [...new Set(shown.map((m) => m.point.slot))].sort((a, b) => a - b);
    let next = null;
    if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const own = row(start.point.slot), step = event.key === "ArrowRight" ? 1 : -1;
      next = now ? own[Math.max(0, Math.min(own.length - 1, own.indexOf(now) + step))] : start;
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const to = slots.indexOf(start.point.slot) + (event.key === "ArrowDown" ? 1 : -1);
      const own = row(slots[(to + slots.length) % slots.length]);
      next = now ? own.reduce((a, b) => (Math.abs(b.at[0] - now.at[0]) < Math.abs(a.at[0] - now.at[0]) ? b : a)) : start;
    } else if (event.key === "Home" || event.key === "End") {
      const own = row(start.point.slot);
      next = event.key === "Home" ? own[0] : own[own.length - 1];
    } else if ((event.key === "Enter" || event.key === " ") && now) {
      event.preventDefault();
      onPick(now.point.id);
      return;
    }
    if (next) { event.preventDefault(); pointAt(next); }
  });

  const select = (id) => {
    halo.replaceChildren();
    called.replaceChildren();
    for (const m of marks) {
      const on = m.point.id === id;
      m.mark.setAttribute("aria-selected", String(on));
      if (on || m.point.chosen) ring(m, on);
    }
  };
  const ring = (m, selected) => {
    const [a, b] = m.at;
    if (selected) {
      const { xs: wide, ys: high } = m.point;
      const [across, up] = [wide?.map((v) => within(x(v), frame.left, frame.right)), high?.map((v) => within(y(v), frame.top, frame.bottom))];
      if (across) halo.append(svg("path", { class: "whisker", d: `M${across[0]} ${b}H${across[1]}` }));
      if (up) halo.append(svg("path", { class: "whisker", d: `M${a} ${up[0]}V${up[1]}` }));
    }
    halo.append(svg("circle", { class: selected ? "ring" : "ring quiet", cx: a, cy: b, r: 10.5 }));
    const name = m.point.chosen ? "chosen" : "selected";
    const right = a < frame.left + 0.75 * (frame.right - frame.left);
    const off = selected ? 0 : 12; // where both names are close they do not lie over each other
    called.append(words(name, a + (right ? 14 : -14), b - 10 > frame.top ? b - 9 - off : b + 20 + off, "callout", right ? "start" : "end"));
  };
  const show = (off) => {
    hidden = off;
    for (const part of root.querySelectorAll("[data-slot]")) part.classList.toggle("off", off.has(Number(part.dataset.slot)));
  };
  select(null);
  return { element: root, select, show };
}

function within(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

function line(list) {
  return `M${list.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L")}`;
}

function words(content, x, y, kind, anchor = "start") {
  return svg("text", { x, y, class: kind, "text-anchor": anchor, "aria-hidden": "true" }, document.createTextNode(content));
}

function grid(frame, x, y, xName, yName) {
  const out = svg("g", { "aria-hidden": "true" });
  for (const [value, name] of x.ticks) {
    out.append(svg("line", { class: "grid", x1: x(value), x2: x(value), y1: frame.top, y2: frame.bottom }));
    out.append(words(name, x(value), frame.bottom + 18, "tick", "middle"));
  }
  for (const [value, name] of y.ticks) {
    out.append(svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y(value), y2: y(value) }));
    out.append(words(name, frame.left - 9, y(value) + 4, "tick", "end"));
  }
  out.append(svg("line", { class: "base", x1: frame.left, x2: frame.left, y1: frame.top, y2: frame.bottom }));
  out.append(svg("line", { class: "base", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom }));
  out.append(words(yName, 4, frame.top - 20, "axis"));
  out.append(words(xName, frame.right, frame.bottom + 40, "axis", "end"));
  return out;
}
