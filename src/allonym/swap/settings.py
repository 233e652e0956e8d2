"""Settings of a search: one frozen table per step, strict TOML, presets in ``presets/``.

Unknown tables, keys and values are errors that name the nearest valid ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from allonym.errors import UnknownNameError, UsageError
from allonym.settings import SettingGroup, check_table, declare_setting, read_toml, replace_values
from allonym.swap.corpus import STATES

SCHEMA = 1
FORMS = ("documents", "parts", "chunks", "changed")
"""What is released: whole documents; their parts, each a few neighbouring chunks; single chunks; of these, those whose
text has changed."""
FALLBACKS = ("pseudonym", "generalise", "suppress", "tag", "summarise", "keep")
AUTO = "auto"


class Read(SettingGroup):
    """How documents become chunks."""

    section: str = declare_setting(
        "all", "part of a document that is used: all, presentation, or two patterns, FROM >>> TO", option="NAME"
    )
    threshold: float = declare_setting(
        75.0, "percentile of the distance between sentences above which a chunk ends", low=0, high=100
    )
    min_size: int = declare_setting(120, "least characters of a chunk", low=1)
    max_size: int = declare_setting(1200, "most characters of a chunk", low=1)
    policy: str = declare_setting(
        "", "policy that finds direct identifiers and entities; empty: the one that comes with swapping"
    )
    common: float = declare_setting(
        0.3,
        "an entity of more than this share of the protected values, and of more than four, identifies none: it stays",
        low=0,
        high=1,
    )
    terms: float = declare_setting(
        0.04, "share of the words that may be terms, the most identifying first", low=0, high=1
    )
    recode: str = declare_setting(
        "", "file that merges values before they are counted; kb: the knowledge base; empty: none"
    )
    empty_cells: str = declare_setting(
        "drop", "chunks without any entity of the counted categories", one_of=("drop", "keep")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_size > self.max_size:
            raise UsageError(f"read.min_size must be at most read.max_size, got {self.min_size} and {self.max_size}")


class Embed(SettingGroup):
    """How texts become unit vectors, and which covariates are removed."""

    name: str = declare_setting(
        "encoder",
        "embedder: encoder, lsa, sentence-transformers, openai or a registered one",
        option="--embedder NAME",
    )
    model: str = declare_setting("", "model of the embedder, where it has several")
    url: str = declare_setting("", "address of an OpenAI-compatible endpoint, up to /v1")
    key_env: str = declare_setting("", "environment variable with the endpoint's key")
    covariates: tuple[str, ...] = declare_setting(
        (), "metadata keys, entity counts or protected: information that clusters must not show"
    )
    use: str = declare_setting(
        "residual", "covariates are regressed out, or restrict donors", one_of=("residual", "donors")
    )


class Mixture(SettingGroup):
    """Which mixture is fitted to the vectors (Greve and Sablica 2025, 2.2)."""

    family: str = declare_setting("spcauchy", "component density", one_of=("pkbd", "spcauchy", AUTO))
    clusters: int = declare_setting(0, "components to start from; 0: chosen by the criterion", low=0, option="K")
    candidates: tuple[int, ...] = declare_setting((), "numbers to choose from; empty: up to one for 25 chunks", low=1)
    criterion: str = declare_setting("bic", "criterion that chooses family and number", one_of=("bic", "icl"))
    min_weight: float = declare_setting(0.0, "components below this weight are dropped", low=0, high=1)
    start: str = declare_setting("both", "kind of the starts, or both in turn", one_of=("both", "soft", "k-means++"))
    restarts: int = declare_setting(4, "starts, of which the best counts", low=1)
    max_iter: int = declare_setting(200, "most iterations", low=1)
    tol: float = declare_setting(1e-7, "relative gain of the log-likelihood that ends them", low=0)
    batch_size: int = declare_setting(
        0, "chunks per step of stepwise EM, for very large corpora; 0: all in every step", low=0
    )
    shard_size: int = declare_setting(8192, "chunks that are summed separately, then added in a fixed order", low=1)


class Exchange(SettingGroup):
    """The conditions of a valid exchange (Greve and Sablica 2025, 2.3), and its limits."""

    KEYS = (
        *("need", "partners", "counts", "unswapped_differ", "agree", "differ", "returns", "weights", "temperature"),
        *("fit", "min_fit", "max_loss", "min_cosine", "count_penalty", "min_concentration", "rounds", "target_share"),
        *("cycles", "beyond", "swaps"),
    )

    strategy: str = declare_setting(
        "none",
        "values of [exchange] to begin with; any that is named too wins. paper: chunks of a cluster trade once, in "
        "random pairs; chunks: each chunk trades with similar chunks; entities: each entity trades with one that fits "
        "its place, also beyond its cluster; none: those of the settings that are extended",
        one_of=("none", "paper", "chunks", "entities"),
    )
    need: str = declare_setting(
        "any", "both chunks hold all swapped categories, or any of them", one_of=("both", "any")
    )
    partners: str = declare_setting(
        "per-category", "one partner for all categories, or one for each", one_of=("same", "per-category")
    )
    counts: str = declare_setting(
        "all", "unequal counts: exchange the smaller number, or all by one to many", one_of=("min", "all")
    )
    unswapped_differ: bool = declare_setting(False, "chunks must differ in a category that is not exchanged")
    agree: tuple[str, ...] = declare_setting((), "categories in which partners must agree")
    differ: tuple[str, ...] = declare_setting((), "categories in which partners must differ")
    returns: bool = declare_setting(False, "an entity may come to a class that knows it already, as in the paper")
    weights: str = declare_setting("cosine", "draw within a cluster", one_of=("uniform", "cosine"))
    temperature: float = declare_setting(
        0.02, "of the cosine weights: a smaller one prefers more similar chunks", low=1e-6
    )
    fit: float = declare_setting(
        0.5, "weight of how well an entity fits the other's place, beside the chunks' cosine", low=0
    )
    min_fit: float = declare_setting(
        -0.3, "least fit, 1 for equals; entities without a match fall back", low=-100, high=1
    )
    max_loss: float = declare_setting(
        4.0,
        "most that a term may cost at its new place by a language model of the corpus, in nats; others fall back",
        low=-100,
        high=100,
    )
    min_cosine: float = declare_setting(-1.0, "least cosine between partners", low=-1, high=1)
    count_penalty: float = declare_setting(
        0.05, "subtracted from cosine over temperature per entity that a partner has more", low=0
    )
    min_concentration: float = declare_setting(
        0.0, "least expected cosine in a cluster that is exchanged", low=0, high=1
    )
    rounds: int = declare_setting(4, "passes, each with new partners", low=1)
    target_share: float = declare_setting(1.0, "share of the chunks that ends the exchange", low=0, high=1)
    cycles: bool = declare_setting(True, "rotations of three where no pair is valid")
    beyond: bool = declare_setting(False, "chunks without a partner in their cluster may look in all clusters")
    swaps: int = declare_setting(0, "most swaps of a sequence; 0: as many as possible", low=0)


class Search(SettingGroup):
    """Which releases are compared (Greve and Sablica 2025, 2.3), and how one is chosen."""

    size: int = declare_setting(
        2, "categories that are exchanged together: all subsets of this size", low=1, option="--swap-size N"
    )
    full: bool = declare_setting(True, "all swapped categories at once are a candidate too")
    draws: int = declare_setting(2, "sequences per subset (Monte Carlo, M of 2.5)", low=1, option="M")
    sample: int = declare_setting(240, "changed chunks embedded per sequence to estimate its utility; 0: all", low=0)
    points: int = declare_setting(30, "releases recorded per sequence", low=1)
    population: tuple[float, ...] = declare_setting((1e6, 1e12, 1e18), "population sizes N", low=1, option="N,...")
    choose_at: float = declare_setting(0.0, "population size for the choice; 0: the middle one", low=0)
    risk: str = declare_setting(
        "bounded", "p of (2.15), or the bounded p*, which stays within (0, 1]", one_of=("paper", "bounded")
    )
    uniques: str = declare_setting(
        "all",
        "chunks count as unique by all swapped categories, so that R compares releases of other categories, or, as in "
        "the paper, by the exchanged ones",
        one_of=("all", "exchanged"),
    )
    choose: str = declare_setting(
        "moved",
        "if the user gives no constraint: most entities moved, or lowest risk, of the releases on the frontier",
        one_of=("moved", "risk"),
    )
    min_utility: float = declare_setting(0.9, "if the user gives no constraint: least utility", low=0, high=1)
    min_cosine: float = declare_setting(
        -1.0, "if the user gives no constraint: least mean cosine of changed chunks", low=-1, high=1
    )


class Check(SettingGroup):
    """Predictive checks (Greve and Sablica 2025, 3.2.2)."""

    intruders: tuple[str, ...] = declare_setting(
        ("entities", "words"), "registered intruders: entities, words, llm; empty: none", option="--intruder NAME"
    )
    frontier: int = declare_setting(
        0,
        "other releases of the frontier, evenly, in which intruders look for whole documents, beside the chosen one",
        low=0,
        option="N",
    )
    runs: int = declare_setting(5, "releases drawn", low=1)
    folds: int = declare_setting(
        10, "parts of the chunks; each is judged by a model that learnt from the others", low=2
    )
    llm_runs: int = declare_setting(0, "how many of the draws a language model judges; 0: all", low=0)
    llm_kind: str = declare_setting("text", "kind of document in its prompt, such as earnings call transcript")
    llm_reply: str = declare_setting("name", "form of its guesses; in the paper a ticker symbol (in Capital Letters)")
    llm_aliases: tuple[str, ...] = declare_setting(
        (), "metadata keys whose values count as the protected one, such as ticker"
    )
    llm_listed: bool = declare_setting(False, "it may choose from the protected values, unlike in the paper")


class Form(SettingGroup):
    """What is released: documents, or pieces of them that nothing ties together."""

    form: str = declare_setting(
        "documents",
        "whole documents, or pieces of them apart, in random order, with new ids and without any other field: parts of "
        "a few neighbouring chunks, single chunks, or of these only the changed ones",
        one_of=FORMS,
    )
    part: int = declare_setting(4, "neighbouring chunks of a part", low=1)


class Axes(SettingGroup):
    """Hyperparameters of a grid (Greve and Sablica 2025, 3.2.1), with all population sizes of ``search``."""

    threshold: tuple[float, ...] = declare_setting((75.0,), "values of read.threshold", low=0, high=100)
    family: tuple[str, ...] = declare_setting(("pkbd", "spcauchy"), "component densities", one_of=("pkbd", "spcauchy"))
    clusters: tuple[int, ...] = declare_setting((10, 20), "components", low=1)
    min_weight: tuple[float, ...] = declare_setting((0.005, 0.01), "least weights", low=0, high=1)


STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "need": "both",
        "partners": "same",
        "counts": "min",
        "unswapped_differ": True,
        "returns": True,
        "weights": "uniform",
        "fit": 0.0,
        "count_penalty": 0.0,
        "rounds": 1,
        "cycles": False,
    },
    "chunks": {"fit": 0.0},
    "entities": {"beyond": True},
}
"""Strategy of an exchange to its values that are not the default of their setting."""

CATEGORIES: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("Organization", "Person", "Location", "Product"), "swap") | {"Event": "change", "Date": "fixed"}
)


class Settings(SettingGroup):
    """Everything a search depends on but corpus and seed."""

    KEYS = (
        *("name", "categories", "fallback", "read", "embed", "mixture", "exchange", "search", "release", "check"),
        "grid",
    )

    name: str = "default"
    description: str = ""
    categories: Mapping[str, str] = declare_setting(
        CATEGORIES, "category to its state; in this order in tables", one_of=STATES
    )
    fallback: Mapping[str, str] = declare_setting(
        {"*": "keep"}, "category, or * for the others, to the treatment of entities that stay", one_of=FALLBACKS
    )
    read: Read = Read()
    embed: Embed = Embed()
    mixture: Mixture = Mixture()
    exchange: Exchange = Exchange()
    search: Search = Search()
    release: Form = Form()
    check: Check = Check()
    grid: Axes = Axes()

    def __reduce__(self) -> tuple[object, ...]:
        maps = {"categories": dict(self.categories), "fallback": dict(self.fallback)}
        return (partial(Settings, **{**vars(self), **maps}), ())

    @classmethod
    def load(cls, source: str | Path | Settings = "default") -> Settings:
        """Read the settings in a TOML file, or the preset of that name. Settings are returned as they are.

        Raises:
            UsageError: the file is not valid; the message says where.
            UnknownNameError: no such preset, table, key or value.
        """
        if isinstance(source, Settings):
            return source
        path = Path(source)
        if source in presets():
            path = Path(str(files("allonym.swap").joinpath("presets", f"{source}.toml")))
        elif path.suffix != ".toml" and not path.exists():
            raise UnknownNameError("preset of swapping", str(source), presets())
        raw = read_toml(path)
        if (schema := raw.pop("schema", SCHEMA)) != SCHEMA:
            raise UsageError(f"{path}: schema {schema!r} is not known; {SCHEMA} is required")
        head = {key: raw.pop(key, "") for key in ("name", "description", "extends")}
        for key, value in head.items():
            if not isinstance(value, str):
                raise UsageError(f"{path}: {key} must be a string, got {type(value).__name__}")
        parent = head["extends"]
        base = Settings.load(path.parent / parent if parent.endswith(".toml") else parent) if parent else Settings()
        return replace(
            base._change_tables(raw, str(path)), name=head["name"] or path.stem, description=head["description"]
        )

    def with_(self, changes: Mapping[str, object]) -> Settings:
        """Return a copy with some values changed.

        Args:
            changes: ``table.key`` to a value, e.g. ``{"mixture.clusters": 20, "categories.Term": "swap"}``.

        Raises:
            UsageError, UnknownNameError: no such key, or a value that it cannot have.
        """
        raw: dict[str, dict[str, object]] = {}
        for name, value in changes.items():
            table, _, key = name.partition(".")
            raw.setdefault(table, {})[key] = value
        return self._change_tables(raw, "settings")

    def _change_tables(self, raw: Mapping[str, object], where: str) -> Settings:
        base, table = self, check_table(raw.get("exchange", {}), f"{where}: exchange")
        if (name := str(table.get("strategy"))) in STRATEGIES:
            base = replace(self, exchange=Exchange(**STRATEGIES[name]))
        return replace_values(base, raw, where)

    def fallback_for(self, category: str) -> str:
        """Return the treatment of entities of this category that were not exchanged."""
        return self.fallback.get(category, self.fallback.get("*", "keep"))

    def fingerprint(self, *groups: str) -> str:
        """Return a digest of the named tables, by default of all; the settings' name does not count."""
        values = self.to_dict()
        del values["name"]
        tables = {name: values[name] for name in (groups or values)}
        return blake2b(json.dumps(tables, sort_keys=True).encode(), digest_size=16).hexdigest()


def presets() -> tuple[str, ...]:
    """Return the names of the settings that come with allonym."""
    folder = files("allonym.swap").joinpath("presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))
