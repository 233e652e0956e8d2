// Offsets: the server counts code points, JavaScript counts UTF-16 units.

const WIDE = /[\ud800-\udbff][\udc00-\udfff]/g;

/** Both ways between the two, for one text. */
export class Points {
  constructor(text) {
    this.wide = []; // where in units each pair begins
    if (/[\ud800-\udbff]/.test(text)) for (const match of text.matchAll(WIDE)) this.wide.push(match.index);
  }

  /** Code points before a place in units. */
  toPoints(unit) {
    return unit - count(this.wide, (at) => at < unit - 1);
  }

  /** Units before a place in code points. */
  toUnits(point) {
    return point + count(this.wide, (at, i) => at - i < point);
  }
}

/** How many from the left hold, where those that hold all stand left. */
function count(sorted, holds) {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(sorted[middle], middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The text with a plan's edits made; where each replacement then stands, in units. */
export function applied(text, edits) {
  const points = new Points(text);
  const pieces = [];
  const places = [];
  let [at, length] = [0, 0];
  for (const edit of edits) {
    const [start, end] = [points.toUnits(edit.start), points.toUnits(edit.end)];
    pieces.push(text.slice(at, start), edit.replacement);
    length += start - at;
    places.push({ start: length, end: length + edit.replacement.length, label: edit.label, entity: edit.entity, from: start, to: end });
    length += edit.replacement.length;
    at = end;
  }
  pieces.push(text.slice(at));
  return { text: pieces.join(""), places };
}
