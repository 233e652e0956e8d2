// Labels in families: one colour each, and a name to read instead of capitals.

const ROOTS = {
  PERSON: "person", PRONOUN: "person", SPELLED_WORD: "person",
  ORGANIZATION: "organization", PRODUCT: "organization", TRADE_UNION: "organization",
  LOCATION: "place",
  DATE_TIME: "time",
  EMAIL_ADDRESS: "contact", PHONE_NUMBER: "contact", ONLINE_ID: "contact",
  GOVERNMENT_ID: "official", GENERIC_ID: "official", DEVICE_ID: "official", VEHICLE_ID: "official",
  FINANCIAL_ID: "finance", NUMERIC: "finance",
  ORIGIN: "trait", GENDER: "trait", SEXUAL_ORIENTATION: "trait", FAMILY_RELATION: "trait", MARITAL_STATUS: "trait",
  AGE: "trait", OCCUPATION: "trait", IMMIGRATION_STATUS: "trait", LANGUAGE: "trait",
  MEDICAL_TERM: "health",
  SECRET: "secret",
};

let parents = new Map();

/** What GET /v1/labels answered; without it a label of its own is its family's root. */
export function learn(labels) {
  parents = new Map(labels.map((label) => [label.name, label.parent]));
}

/** The family of a label. */
export function family(label) {
  for (let name = label, steps = 0; name && steps < 8; name = parents.get(name), steps += 1) {
    if (ROOTS[name]) return ROOTS[name];
  }
  return "other";
}

/** Gives an element the colours of a label: --tint behind words, --edge for lines. */
export function paint(element, label) {
  const name = family(label);
  element.style.setProperty("--tint", `var(--${name})`);
  element.style.setProperty("--edge", `var(--${name}-line)`);
  return element;
}

const SHORT = new Set(["ID", "IP", "URL", "IBAN", "SSN", "NINO", "VIN", "UUID", "US", "UK", "DE", "API", "MAC", "IMEI", "IMSI", "PIN", "CVV", "VAT", "NHS", "AWS", "SWIFT", "HTTP", "ABA"]);

/** A label for people: "Email address", "US SSN", "Person". */
export function readable(label) {
  const words = label.split("_").map((word, i) => (SHORT.has(word) || (i === 0 && word.length === 2) ? word : word.toLowerCase()));
  const joined = words.join(" ");
  return joined.charAt(0).toUpperCase() + joined.slice(1);
}
