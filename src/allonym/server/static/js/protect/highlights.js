// Colours on text without elements: the CSS Custom Highlight API. Several surfaces share one highlight of each name.

const able = typeof CSS !== "undefined" && "highlights" in CSS && typeof Highlight === "function";

/** Whether the browser can draw them; without, mentions are in the list only. */
export const drawn = able;

const shared = new Map();
const ABOVE = ["rejected", "added", "active"];

function highlight(name) {
  let one = shared.get(name);
  if (!one) {
    one = new Highlight();
    one.priority = 1 + ABOVE.indexOf(name);
    shared.set(name, one);
    CSS.highlights.set(name, one);
  }
  return one;
}

/** The ranges of one surface. */
export class Painter {
  constructor() {
    this.mine = [];
  }

  /** Draws these and nothing else: pairs of a highlight's name and a range. */
  draw(pairs) {
    if (!able) return;
    this.clear();
    for (const [name, range] of pairs) {
      highlight(name).add(range);
      this.mine.push([name, range]);
    }
  }

  clear() {
    for (const [name, range] of this.mine) highlight(name).delete(range);
    this.mine = [];
  }
}
