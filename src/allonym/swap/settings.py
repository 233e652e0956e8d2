"""Settings of a search: one frozen table per step, strict TOML, presets in ``presets/``.

Unknown tables, keys and values are errors that name the nearest valid ones.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_origin, get_type_hints

from allonym.errors import UnknownNameError, UsageError
from allonym.serial import Serialisable, to_plain
from allonym.swap.corpus import STATES

SCHEMA = 1
FALLBACKS = ("pseudonym", "generalise", "suppress", "tag", "summarise", "keep")
AUTO = "auto"


def declare_setting(default: Any, says: str, **limits: Any) -> Any:
    """Declare a setting: its default, its meaning, and the values that are allowed (of each item, if it is a list):
    ``one_of`` some strings, or numbers from ``low`` to ``high``."""
    return field(default=default, metadata={"says": says, "one_of": (), "low": None, "high": None, **limits})


class Table(Serialisable):
    """A table of settings, a frozen dataclass that checks its values. Raises UsageError or UnknownNameError."""

    def __post_init__(self: Any) -> None:
        hints = get_type_hints(type(self))
        for f in fields(self):
            _check_and_convert_value(
                getattr(self, f.name), hints[f.name], f.metadata, f"{type(self).__name__.lower()}.{f.name}"
            )


class Read(Table):
    """How documents become chunks."""

    section: str = declare_setting(
        "all", "part of a document that is used: all, presentation, or two patterns, FROM >>> TO"
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
        0.015, "share of the words that may be terms, the most identifying first", low=0, high=1
    )
    recode: str = declare_setting(
        "", "file that merges values before they are counted; kb: the knowledge base; empty: none"
    )
    empty_cells: str = declare_setting(
        "drop", "chunks without any entity of the counted categories", one_of=("drop", "keep")
    )


class Embed(Table):
    """How texts become unit vectors, and which covariates are removed."""

    name: str = declare_setting("encoder", "embedder: encoder, lsa, sentence-transformers, openai or a registered one")
    model: str = declare_setting("", "model of the embedder, where it has several")
    url: str = declare_setting("", "address of an OpenAI-compatible endpoint, up to /v1")
    key_env: str = declare_setting("", "environment variable with the endpoint's key")
    covariates: tuple[str, ...] = declare_setting(
        (), "metadata keys, entity counts or protected: information that clusters must not show"
    )
    use: str = declare_setting(
        "residual", "covariates are regressed out, or restrict donors", one_of=("residual", "donors")
    )


class Mixture(Table):
    """Which mixture is fitted to the vectors (P1 2.2)."""

    family: str = declare_setting("spcauchy", "component density", one_of=("pkbd", "spcauchy", AUTO))
    clusters: int = declare_setting(0, "components to start from; 0: chosen by the criterion", low=0)
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


class Exchange(Table):
    """The conditions of a valid exchange (P1 2.3), and its limits."""

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


class Search(Table):
    """Which releases are compared (P1 2.3), and how one is chosen."""

    size: int = declare_setting(2, "categories that are exchanged together: all subsets of this size", low=1)
    full: bool = declare_setting(True, "all swapped categories at once are a candidate too")
    draws: int = declare_setting(2, "sequences per subset (Monte Carlo, M of 2.5)", low=1)
    sample: int = declare_setting(240, "changed chunks embedded per sequence to estimate its utility; 0: all", low=0)
    points: int = declare_setting(30, "releases recorded per sequence", low=1)
    population: tuple[float, ...] = declare_setting((1e6, 1e12, 1e18), "population sizes N", low=1)
    choose_at: float = declare_setting(0.0, "population size for the choice; 0: the middle one", low=0)
    risk: str = declare_setting(
        "bounded", "p of (2.15), or the bounded p*, which stays within (0, 1]", one_of=("paper", "bounded")
    )
    choose: str = declare_setting(
        "moved", "if the user gives no constraint: most entities moved, or lowest risk", one_of=("moved", "risk")
    )
    min_cosine: float = declare_setting(
        -1.0, "if the user gives no constraint: least mean cosine of changed chunks", low=-1, high=1
    )


class Check(Table):
    """Predictive checks (P1 3.2.2)."""

    intruders: tuple[str, ...] = declare_setting(("entities", "words"), "registered intruders; empty: none")
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


class Axes(Table):
    """Hyperparameters that a grid goes through (P1 3.2.1), with all population sizes of ``search``."""

    threshold: tuple[float, ...] = declare_setting((75.0,), "values of read.threshold", low=0, high=100)
    family: tuple[str, ...] = declare_setting(("pkbd", "spcauchy"), "component densities", one_of=("pkbd", "spcauchy"))
    clusters: tuple[int, ...] = declare_setting((10, 20), "components", low=1)
    min_weight: tuple[float, ...] = declare_setting((0.005, 0.01), "least weights", low=0, high=1)


CATEGORIES: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("Organization", "Person", "Location", "Product"), "swap") | {"Event": "change", "Date": "fixed"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a search depends on but corpus and seed.

    Attributes:
        categories: category to its state, one of :data:`allonym.swap.corpus.STATES`; in this order in tables.
        fallback: category, or ``*`` for the others, to the treatment of entities that were not exchanged: one of
            :data:`FALLBACKS`.
    """

    name: str = "default"
    description: str = ""
    categories: Mapping[str, str] = field(default_factory=lambda: CATEGORIES)
    fallback: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({"*": "keep"}))
    read: Read = field(default_factory=Read)
    embed: Embed = field(default_factory=Embed)
    mixture: Mixture = field(default_factory=Mixture)
    exchange: Exchange = field(default_factory=Exchange)
    search: Search = field(default_factory=Search)
    check: Check = field(default_factory=Check)
    grid: Axes = field(default_factory=Axes)

    def __reduce__(self) -> tuple[object, ...]:
        return (_build_settings_from_dict, (self.to_dict(), self.description))

    @classmethod
    def load(cls, source: str | Path | Settings = "default") -> Settings:
        """Read the settings in a TOML file, or the preset of that name. Settings are returned as they are.

        Raises:
            UsageError: the file is not valid; the message says where.
            UnknownNameError: no such preset, table, key or value.
        """
        if isinstance(source, Settings):
            return source
        if isinstance(source, str) and source in presets():
            return _load_preset(source)
        path = Path(source)
        if path.suffix != ".toml" and not path.exists():
            raise UnknownNameError("preset of swapping", str(source), presets())
        try:
            data = path.read_bytes()
        except OSError as error:
            raise UsageError(f"cannot read settings {path}: {error.strerror}") from None
        return _parse_settings(data, str(path), path.parent)

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
            if table not in _TABLES or not key:
                raise UnknownNameError("setting", name, [setting for setting, _, _ in describe_settings()])
            raw.setdefault(table, {})[key] = value
        return _override_settings(self, raw, "")

    def fallback_for(self, category: str) -> str:
        """Return the treatment of entities of this category that were not exchanged."""
        return self.fallback.get(category, self.fallback.get("*", "keep"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON and reports; tables as in the file."""
        return {name: to_plain(getattr(self, name)) for name in ("name", *_TABLES)}

    def fingerprint(self, *groups: str) -> str:
        """Return a digest of the named tables, by default of all; the settings' name does not count."""
        values = self.to_dict()
        tables = {name: values[name] for name in (groups or _TABLES)}
        return blake2b(json.dumps(tables, sort_keys=True).encode(), digest_size=16).hexdigest()


_GROUPS: dict[str, Any] = {f.name: f.default_factory for f in fields(Settings) if is_dataclass(f.default_factory)}
"""Table to its class."""
_TABLES = ("categories", "fallback", *_GROUPS)


def presets() -> tuple[str, ...]:
    """Return the names of the settings that come with allonym."""
    folder = files("allonym.swap").joinpath("presets")
    return tuple(sorted(p.name[:-5] for p in folder.iterdir() if p.name.endswith(".toml")))


def describe_settings() -> list[tuple[str, object, str]]:
    """Return every setting as (``table.key``, default, meaning), for documentation."""
    groups = {table: fields(kind) for table, kind in _GROUPS.items()}
    return [(f"{table}.{f.name}", f.default, str(f.metadata["says"])) for table in groups for f in groups[table]]


@cache
def _load_preset(name: str) -> Settings:
    data = files("allonym.swap").joinpath("presets", f"{name}.toml").read_bytes()
    return _parse_settings(data, f"preset {name}", None)


def _build_settings_from_dict(values: dict[str, Any], description: str) -> Settings:
    empty = Settings(values["name"], description, MappingProxyType({}), MappingProxyType({}))
    return _override_settings(empty, {table: values[table] for table in _TABLES}, "")


def _parse_settings(data: bytes, where: str, folder: Path | None) -> Settings:
    try:
        raw = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: not valid TOML: {error}") from None
    keys = ("schema", "name", "extends", "description", *_TABLES)
    for key in raw:
        if key not in keys:
            raise UnknownNameError("key", key, keys, where)
    if raw.get("schema", SCHEMA) != SCHEMA:
        raise UsageError(f"{where}: schema {raw['schema']!r} is not known; {SCHEMA} is required")
    for key in ("name", "extends", "description"):
        if not isinstance(raw.get(key, ""), str):
            raise UsageError(f"{where}: {key} must be a string, got {type(raw[key]).__name__}")
    base = Settings()
    if parent := raw.get("extends", ""):
        base = Settings.load(folder / parent if folder and parent.endswith(".toml") else parent)
    settings = _override_settings(base, {k: v for k, v in raw.items() if k in _TABLES}, f"{where}: ")
    return replace(settings, name=raw.get("name") or Path(where).stem, description=raw.get("description", ""))


def _override_settings(base: Settings, raw: Mapping[str, object], where: str) -> Settings:
    changes: dict[str, Any] = {}
    for table, values in raw.items():
        if not isinstance(values, dict):
            raise UsageError(f"{where}{table} must be a table, got {type(values).__name__}")
        if table in _GROUPS:
            changes[table] = _replace_checked_values(getattr(base, table), values, f"{where}{table}")
        else:
            allowed = STATES if table == "categories" else FALLBACKS
            for key, value in values.items():
                if value not in allowed:
                    raise UnknownNameError("value", value, allowed, f"{where}{table}.{key}")
            changes[table] = MappingProxyType({**getattr(base, table), **values})
    settings = replace(base, **changes)
    least, most = settings.read.min_size, settings.read.max_size
    if least > most:
        raise UsageError(f"{where}read.min_size must be at most read.max_size, got {least} and {most}")
    return settings


def _replace_checked_values(base: Any, values: Mapping[str, object], where: str) -> Any:
    hints = get_type_hints(type(base))
    about = {f.name: f.metadata for f in fields(base)}
    changes: dict[str, object] = {}
    for key, value in values.items():
        if key not in about:
            raise UnknownNameError("key", key, about, where)
        changes[key] = _check_and_convert_value(value, hints[key], about[key], f"{where}.{key}")
    return replace(base, **changes)


def _check_and_convert_value(value: object, kind: Any, about: Mapping[str, Any], where: str) -> object:
    if get_origin(kind) is tuple:
        if not isinstance(value, (list, tuple)):
            raise UsageError(f"{where} must be a list, got {type(value).__name__}")
        return tuple(_check_and_convert_value(v, get_args(kind)[0], about, where) for v in value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not kind:
        raise UsageError(f"{where} must be {_NAMES[kind]}, got {type(value).__name__}")
    if about["one_of"] and value not in about["one_of"]:
        raise UnknownNameError("value", value, about["one_of"], where)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = about["low"], about["high"]
        if not ((low is None or value >= low) and (high is None or value <= high) and abs(value) < float("inf")):
            required = f"from {low:g} to {high:g}" if high is not None else f"{low:g} or more"
            raise UsageError(f"{where} must be {required}, got {value!r}")
    return value


_NAMES = {int: "an integer", str: "a string", float: "a number", bool: "true or false"}
