"""The protocol of operators: what one sees, what it declares about itself, and how its options are checked."""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import MISSING, dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from allonym import registry
from allonym.document import Document, Entity, Span
from allonym.errors import PolicyError, UnknownNameError, UsageError, tell_policy_errors
from allonym.labels import SCHEMES, TAG_LANGUAGES
from allonym.settings import Setting as Option
from allonym.settings import make_setting
from allonym.text.placeholders import SURROGATES, Grammar

if TYPE_CHECKING:
    from allonym.plan import Plan
    from allonym.policy import Policy
    from allonym.vault.records import RegisteredPerson


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention that is about to be replaced.

    Attributes:
        text: its surface, without a possessive ending or the punctuation of the sentence. Hidden from ``repr``.
        span: the span that was detected.
        entity: the referent; all its mentions should get the same replacement where the operator allows it.
        number: the entity's number among those whose tags look alike, in reading order, from 1; 0 where a vault
            numbers only the entities that get a tag.
        label: the label as the policy's tags write it.
        tag: the policy's tag for this entity, such as ``[PERSON_1]``; what to return where nothing else is possible.
        index: which of the entity's mentions this is, from 0.
    """

    text: str = field(repr=False)
    span: Span
    entity: Entity
    number: int
    label: str
    tag: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """What an operator may know beyond the mention.

    Attributes:
        document: the whole document. Hidden from ``repr``, as is the key.
        policy: the policy in force.
        key: the caller's secret, or None; see :func:`allonym.keys.derive_operator_key`.
        scope: name of the release; keyed values of two scopes cannot be linked.
        unit: what an entity's pseudonym is kept in, within the scope; empty: in all of it.
        book: the vault's book of the scope, open for writing; None without a vault.
        places: spans that are about to be replaced, as (start, end) in reading order.
        prepared: results of the operators' ``prepare`` for this document, by the operator's name.
    """

    document: Document = field(repr=False)
    policy: Policy = field(repr=False)
    key: bytes | str | None = field(default=None, repr=False)
    scope: str = ""
    book: Book | None = field(default=None, repr=False)
    places: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    prepared: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    unit: str = field(default="", repr=False)


class Book(Protocol):
    """One scope of a vault, within the transaction of one document.

    ``kind`` names a space of values (``tag:[PERSON_{n}]``, ``family name``): no two keys of a kind share a value.
    """

    @property
    def unit(self) -> str:
        """What pseudonyms are kept in where nobody names a scope, see :class:`Setting`; empty: in all of the book."""

    def about(self, subject: str) -> None:
        """Set the data subject of what follows; empty: nobody."""

    def recall(self, kind: str, key: str) -> str | None:
        """Return the value of ``key``; None where it has none yet."""

    def enter(self, kind: str, key: str, value: str) -> bool:
        """Give ``key`` a value. Returns False and changes nothing where another key of the kind has that value."""

    def has_value(self, kind: str, value: str) -> bool:
        """Tell whether a key of the kind has a value."""

    def number(self, kind: str) -> int:
        """Return the kind's next number, from 1. No number comes twice."""

    def remember(self, replacement: str, original: str, label: str, operator: str, entity: str) -> None:
        """Store that ``replacement`` stands for ``original``, so that the vault can restore it."""

    def keep_plan(self, document: str, plan: Plan, text: str, people: Mapping[int, str] = ...) -> None:
        """Store the plan that made ``text`` of the document with this id, so that the vault can undo it exactly.

        ``people`` maps numbers of the plan's entities to keys of registered people.
        """

    @property
    def register(self) -> PeopleBook | None:
        """The scope's register of people; None where it has none."""


class PeopleBook(Protocol):
    """The register of people of a vault's scope, see :class:`allonym.vault.book.Book`."""

    operator_key: bytes
    """The vault's own key of keyed operators."""

    def find_people(self, forms: Iterable[str]) -> Mapping[str, tuple[RegisteredPerson, ...]]:
        """Return the people with each form of a name."""

    def enter_person(self, key: str, names: Sequence[str], salt: str = "") -> RegisteredPerson:
        """Enter a new person."""

    def use_person(self, person: RegisteredPerson, names: Sequence[str] = ()) -> RegisteredPerson:
        """Note that a person occurs in a document, and change the names if any are named."""


class Keeper(Protocol):
    """Something that keeps books: a vault, or one pass over a corpus."""

    @property
    def operator_key(self) -> bytes | str | None:
        """Secret of the keyed operators where the caller passes none."""

    def book(self, scope: str, subject: str = "") -> AbstractContextManager[Book]:
        """Open the scope's book for one transaction."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entity that an operator with a ``prepare`` is about to replace.

    Attributes:
        entity: the referent.
        options: the options of the rule for its label.
        number, label, tag: as in :class:`Mention`.
        surfaces: texts of its mentions in reading order, as in ``Mention.text``. Hidden from ``repr``.
    """

    entity: Entity
    options: Mapping[str, object]
    number: int
    label: str
    tag: str
    surfaces: tuple[str, ...] = field(repr=False)


class Operator(Protocol):
    """The form of an operator. Options follow as keyword-only parameters with defaults."""

    def __call__(self, mention: Mention, setting: Setting, /) -> str: ...


F = TypeVar("F", bound=Callable[..., str])


def declare_surrogate_grammar(options: Mapping[str, Any]) -> Grammar:
    """The grammar of an operator that writes no placeholders, apart from the policy's tag where it has nothing else."""
    return SURROGATES


@dataclass(frozen=True, slots=True)
class Traits:
    """What an operator declares about itself; as a decorator it attaches itself. A plain function has the defaults.

    Attributes:
        version: stands in plans after the name, as in ``tag@1``.
        keyed: needs a key.
        keeps: leaves the text as it is; no edit is made.
        repeats: may return the very text it was given, for instance the year of a date that is only a year.
        exact: can be undone from the replacement alone, so that nothing beside it may be adapted.
        lossy: several originals share a replacement, so that none can be restored.
        style: style of its tags where the rule sets none; None: the policy's.
        prepare: called once per document with all entities that the operator is about to replace, in reading order,
            before any of them is replaced; its result is in ``Setting.prepared``. Its remarks go into the plan.
        check: checks the options' values, given the options and where they stand; raises :class:`PolicyError`.
        grammar: how the operator writes placeholders with given options, so that evaluation, intruders and restoring
            recognise them; see :mod:`allonym.text.placeholders`. By default it writes surrogates.
    """

    version: int = 1
    keyed: bool = False
    keeps: bool = False
    repeats: bool = False
    exact: bool = False
    lossy: bool = False
    style: str | None = None
    prepare: Callable[[Sequence[Wanted], Setting, list[str]], object] | None = None
    check: Callable[[Mapping[str, Any], str], None] | None = None
    grammar: Callable[[Mapping[str, Any]], Grammar] = declare_surrogate_grammar

    def __post_init__(self) -> None:
        if not isinstance(self.version, int):  # the operator itself, under a bare "@traits"
            raise UsageError("traits needs parentheses before an operator, such as @traits(keyed=True) or @traits()")

    @property
    def writes_placeholders(self) -> bool:
        """Whether the operator declares a grammar of placeholders."""
        return self.grammar is not declare_surrogate_grammar

    def __call__(self, operator: F) -> F:
        """Attach these traits to an operator."""
        operator.traits = self  # type: ignore[attr-defined]
        return operator


traits = Traits
"""Decorator of an operator: ``@traits(keyed=True)``."""

PLAIN = Traits()


def get_operator_traits(operator: object) -> Traits:
    """Return the operator's traits; the defaults for a plain function."""
    declared = getattr(operator, "traits", PLAIN)
    return declared if isinstance(declared, Traits) else PLAIN


def get_traits_by_name(operator: str) -> Traits:
    """Return the traits of an operator by its name in a plan, such as ``tag@1``; the defaults for an unknown one."""
    try:
        return get_operator_traits(registry.operators.get(operator.partition("@")[0]))
    except UnknownNameError:
        return PLAIN


def get_operator(name: str, where: str = "") -> Operator:
    """Return the operator with this name; raises :class:`UnknownNameError` with near matches."""
    operator = registry.operators.get(name, where)
    if not callable(operator):
        raise UsageError(f"operator {name!r} must be a function, got {type(operator).__name__}")
    return cast(Operator, operator)


# Tags and grammars under a policy

AUTO = "auto"
"""The language of a policy for texts in any: that of most of each document."""

BY_LANGUAGE = "language"
"""Tags call labels in the language of the policy, or of the document where that is ``auto``."""

TAG_NAMES = ("", *SCHEMES, *TAG_LANGUAGES, BY_LANGUAGE)
"""What may be asked for as the names of labels in tags."""


def get_tag_label_and_style(policy: Policy, label: str) -> tuple[str, str]:
    """Return the name that a policy's tags give to a label, and their style."""
    rule = policy.rule(label)
    scheme = rule.options.get("names")
    if not isinstance(scheme, str) or scheme not in TAG_NAMES:
        scheme = policy.names
    if scheme == BY_LANGUAGE:
        scheme = policy.language if policy.language in TAG_LANGUAGES else ""
    name = None
    if label in policy.taxonomy and scheme:
        change = policy.taxonomy.to_language if scheme in TAG_LANGUAGES else policy.taxonomy.to_scheme
        name = change(label, scheme)
    style = rule.options.get("style")
    if not isinstance(style, str):
        style = get_operator_traits(get_operator(rule.operator)).style or policy.style
    return name or label, style


@lru_cache(maxsize=64)
def list_policy_grammars(policy: Policy) -> tuple[Grammar, ...]:
    """Return the grammars of what a policy writes, with its own labels, styles and options."""
    names: dict[Grammar, set[str]] = {}
    is_auto = policy.language == AUTO
    policies = [policy.with_(language=code) for code in ("en", *TAG_LANGUAGES)] if is_auto else [policy]
    for written in policies:
        for label in written.taxonomy:
            rule = written.rule(label.name)
            name, style = get_tag_label_and_style(written, label.name)
            declared = get_operator_traits(get_operator(rule.operator)).grammar({**rule.options, "style": style})
            for grammar in (Grammar((style,)), replace(declared, least=1)):
                names.setdefault(grammar, set()).add(name)
    return tuple(replace(grammar, labels=frozenset(labels)) for grammar, labels in names.items())


# Templates and options


def parse_and_fill_template(template: str, **sample: object) -> tuple[list[str], str]:
    """Return the fields of a template, and the template filled with ``sample``; ``[""]`` where it cannot be filled."""
    try:
        parsed = string.Formatter().parse(template)
        fields = [(name, conversion) for _, name, _, conversion in parsed if name is not None]
        return [f"{name}!{c}" if c else name for name, c in fields], template.format(**sample)
    except (ValueError, KeyError, IndexError, AttributeError):
        return [""], ""


def check_tag_style(style: str, where: str) -> None:
    """Raise :class:`PolicyError` where a tag style is empty, or has fields but ``{label}``, ``{n}`` and ``{form}``."""
    fields, tag = parse_and_fill_template(style, label="LABEL", n=1, form="")
    if not {"label", "n", "form"}.issuperset(fields):
        raise PolicyError(f"{where}: only {{label}}, {{n}} and {{form}} may stand in braces, got {style!r}")
    if "form" in fields and "{n}{form}" not in style:
        raise PolicyError(f"{where}: {{form}} must stand right behind {{n}}, got {style!r}")
    if not tag.strip():
        raise PolicyError(f"{where}: a tag must not be empty; use operator 'suppress' to remove text")


def list_option_settings(operator: Callable[..., object]) -> dict[str, Option]:
    """Return the options of an operator, which are its keyword-only parameters, as settings."""
    parameters = inspect.signature(operator, eval_str=True).parameters.values()
    options = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    defaults: dict[str, Any] = {p.name: MISSING if p.default is p.empty else p.default for p in options}
    return {p.name: make_setting(p.name, p.annotation, field(default=defaults[p.name])) for p in options}


@tell_policy_errors()
def check_options(operator: str, options: Mapping[str, object], where: str) -> None:
    """Check a rule's options against the operator's own parameters.

    Args:
        operator: a name from ``allonym.registry.operators``.
        options: the options in the policy.
        where: the place in the policy, for the message.

    Raises:
        UnknownNameError: no such operator or option; names the nearest.
        PolicyError: an option has the wrong type or a value out of range.
    """
    function = get_operator(operator, where)
    settings = list_option_settings(function)
    for name, value in options.items():
        if name not in settings:
            if not settings:
                raise PolicyError(f"{where}: operator {operator!r} takes no options, got {name!r}")
            raise UnknownNameError("option", name, settings, f"{where}: operator {operator!r}")
        settings[name].check_value(value, f"{where}.{name}")
    check = get_operator_traits(function).check
    if check is not None:
        check(options, where)


def check_range(
    options: Mapping[str, Any], where: str, name: str, default: int, low: int, high: int, unit: str = ""
) -> None:
    """Raise :class:`PolicyError` where an option is below ``low`` or above ``high``."""
    value = options.get(name, default)
    if not low <= value <= high:
        raise PolicyError(f"{where}.{name} must be from {low} to {high}{unit}, got {value!r}")
