// What a reviewer has looked at: sentences that were on the screen for as long as it takes to read them, and those whose
// mentions were opened. Pressing Done is no evidence.

const WORDS_PER_SECOND = 8, TICK = 500;
const SENTENCE = /[^.!?\n]*[\p{L}\p{N}][^.!?\n]*[.!?]*["'”’)\]]*/gu;

/**
 * Watches a passage until `leave()`. `opened` are stretches (code points) of which there is evidence already;
 * `current()` gives all of them, sorted, and `open(start, end)` adds the sentences of a mention that was opened.
 */
export function watchLooks(passage, text, opened = []) {
  const sentences = [...text.matchAll(SENTENCE)].map((m) => ({
    start: passage.offsets.point(m.index),
    end: passage.offsets.point(m.index + m[0].length),
    words: m[0].trim().split(/\s+/).length,
  }));
  for (const s of sentences) s.read = opened.some(([a, b]) => a <= s.start && s.end <= b);
  let budget = 0;
  const tick = () => {
    if (document.visibilityState !== "visible") return;
    const waiting = sentences.filter((s) => !s.read);
    if (!waiting.length) { clearInterval(timer); return; }
    budget += (WORDS_PER_SECOND * TICK) / 1000;
    for (const s of waiting) {
      const place = passage.inView(s.start, s.end);
      if (place === "below") break;
      if (place !== "in") continue;
      if (budget < s.words) return;
      budget -= s.words;
      s.read = true;
    }
    budget = 0; // nothing that is on the screen waits to be read
  };
  const timer = setInterval(tick, TICK);
  return {
    open(start, end) {
      for (const s of sentences) if (s.start < end && s.end > start) s.read = true;
    },
    current: () => sentences.filter((s) => s.read).map((s) => [s.start, s.end]),
    leave: () => clearInterval(timer),
  };
}
