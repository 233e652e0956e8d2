-- A knowledge base: one SQLite file, written once (`allonym kb build`, `allonym kb import-wikidata`), then only read.
-- PRAGMA application_id is 0x414C4B42 ("ALKB"), PRAGMA user_version the version of this schema.

CREATE TABLE meta (                 -- about the file: title, languages
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE source (               -- where facts come from; must be shown where the file is passed on
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    version TEXT NOT NULL,
    licence TEXT NOT NULL,          -- SPDX identifier
    credit  TEXT NOT NULL,          -- the line that the licence asks for
    taken   TEXT NOT NULL           -- what was taken
);

-- Things that bear a name: places, organisations, peoples, languages, occupations ... One row each.
-- Columns stand for relations, so that these are not stored twice: `country` and `region` are part_of the entity of kind
-- country (region) with that code, and every entity is instance_of its kind.
CREATE TABLE entity (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,               -- see allonym.kb.KINDS; `class` is a parent of others and never a substitute
    label      TEXT NOT NULL,               -- its English name, or the one it has at home
    country    TEXT NOT NULL DEFAULT '',    -- ISO 3166-1 alpha-2; a country's own code
    region     TEXT NOT NULL DEFAULT '',    -- code of the region within the country (ISO 3166-2, second part)
    population INTEGER NOT NULL DEFAULT 0,  -- inhabitants, or another measure of how well known it is; 0: unknown
    industry   TEXT NOT NULL DEFAULT '',    -- trade of an organisation or occupation; sort of a natural place, facility ...
    gender     TEXT NOT NULL DEFAULT '',    -- f or m where the word tells (actress)
    usable     INTEGER NOT NULL DEFAULT 1,  -- 0: known, but never a substitute
    source     INTEGER NOT NULL REFERENCES source
);
CREATE INDEX entity_kind ON entity (kind, country);

CREATE TABLE label (                -- names in languages, and their forms
    entity   INTEGER NOT NULL REFERENCES entity,
    language TEXT NOT NULL,         -- ISO 639-1
    form     TEXT NOT NULL,         -- empty: the name; nationality: adjective, noun, plural; street: stem, pattern ...
    text     TEXT NOT NULL,
    PRIMARY KEY (entity, language, form)
) WITHOUT ROWID;

CREATE TABLE lookup (               -- every label and alias in plain form (case folded, no diacritics)
    folded    TEXT NOT NULL,
    entity    INTEGER NOT NULL REFERENCES entity,
    rank      INTEGER NOT NULL,     -- 0 the entity's own label, 1 a label in some language, 2 an alias
    languages TEXT NOT NULL,        -- the languages that say it so, between spaces
    PRIMARY KEY (folded, entity)
) WITHOUT ROWID;

CREATE TABLE relation (             -- instance_of, subclass_of, part_of, capital, language, country, city ...
    entity   INTEGER NOT NULL REFERENCES entity,
    property TEXT NOT NULL,
    position INTEGER NOT NULL,      -- the most important target first
    target   INTEGER NOT NULL REFERENCES entity,
    PRIMARY KEY (entity, property, position)
) WITHOUT ROWID;
CREATE INDEX relation_target ON relation (target, property);

CREATE TABLE origin (               -- languages of origin of people's names
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE name (                 -- parts of people's names
    folded TEXT NOT NULL,           -- in plain form
    part   TEXT NOT NULL,           -- first or last
    origin INTEGER NOT NULL REFERENCES origin,
    gender TEXT NOT NULL,           -- f, m, n (either); family names: empty where both have the same form
    name   TEXT NOT NULL,           -- as it is written; empty: the plain form with a capital
    weight INTEGER NOT NULL,        -- how typical of its origin, 1 to 100
    usable INTEGER NOT NULL,        -- 0: known, but never a substitute
    PRIMARY KEY (folded, part, origin, gender)
) WITHOUT ROWID;

CREATE TABLE ending (               -- how names of an origin end, for names that are not in the table
    ending TEXT NOT NULL,           -- 2 or 3 letters, plain
    origin INTEGER NOT NULL REFERENCES origin,
    share  INTEGER NOT NULL,        -- of the names of this origin, per 100,000
    PRIMARY KEY (ending, origin)
) WITHOUT ROWID;

CREATE TABLE famous (               -- full names of well-known people, plain
    given  TEXT NOT NULL,
    family TEXT NOT NULL,
    PRIMARY KEY (given, family)
) WITHOUT ROWID;
