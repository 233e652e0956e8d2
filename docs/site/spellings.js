// Put before the worker of the search: a question in American spelling finds British pages, and the reverse.
const SPELLINGS = [
  [/^(de-?)?([a-z]{3,})iz(e|ed|er|ers|es|ing|ation|ations)$/, "$1$2is$3"], [/^(de-?)?([a-z]{3,})is(e|ed|er|ers|es|ing|ation|ations)$/, "$1$2iz$3"],
  [/^([a-z]{3,})yz(e|ed|er|es|ing)$/, "$1ys$2"], [/^([a-z]{3,})ys(e|ed|er|es|ing)$/, "$1yz$2"],
  [/^(col|behavi|neighb|fav|lab)or(s|ed|ing)?$/, "$1our$2"], [/^(col|behavi|neighb|fav|lab)our(s|ed|ing)?$/, "$1or$2"],
  [/^licens(e|es)$/, "licenc$1"], [/^licenc(e|es)$/, "licens$1"], [/^(cent)er(s?)$/, "$1re$2"], [/^(cent)re(s?)$/, "$1er$2"],
  [/^(label|model|cancel)(ed|ing)$/, "$1l$2"], [/^(label|model|cancel)l(ed|ing)$/, "$1$2"],
  [/^catalog(s?)$/, "catalogue$1"], [/^artifact(s?)$/, "artefact$1"],
];
addEventListener("message", ({ data }) => {
  if (data.type !== 2 || typeof data.data !== "string") return; // 2: a query
  data.data = data.data.replace(/[a-z-]+/gi, (word) => {
    const rule = SPELLINGS.find(([from]) => from.test(word.toLowerCase()));
    return rule ? `${word} ${word.toLowerCase().replace(...rule)}` : word;
  });
});
