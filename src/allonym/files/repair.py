"""Cover texts in a written package wherever they still stand: in names, attributes and parts that no plan reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from allonym.files.office import TYPES, XML, Package, Part, get_local_name
from allonym.files.sheets import FORMULAS
from allonym.files.verify import LEAST_WORD, can_identify
from allonym.text.words import find_words

_FORMULAS = FORMULAS - {"definedName"}
_LITERAL = re.compile(r'"(?:[^"]|"")*"')


def cover_texts_in_package(data: bytes, replacements: Mapping[str, str]) -> bytes:
    """Replace texts, and their words that identify, in all XML of a package, whatever they are there.

    Names of parts, content types, and relationships within the package stay.

    Args:
        data: the package.
        replacements: texts with their replacements; case, and what separates words, are ignored.
    """
    by_words: dict[str, str] = {}
    forms: set[tuple[str, ...]] = set()
    for text, new in replacements.items():
        words = find_words(text.lower())
        parts = [(word,) for word in words if len(word) >= LEAST_WORD and can_identify(word)]
        for form in (tuple(words), *parts):
            forms.add(form)
            by_words.setdefault("".join(form), new)
    patterns = (r"[\W_]*".join(map(re.escape, form)) for form in sorted(forms, key=lambda f: (-sum(map(len, f)), f)))
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns)})(?![^\W_])", re.IGNORECASE)

    def cover_match(match: re.Match[str]) -> str:
        return by_words.get("".join(find_words(match[0].lower())), "")

    def cover_literals(formula: str) -> str:
        """Cover the texts in quotation marks; the references of a formula follow the names that they refer to."""
        return _LITERAL.sub(lambda m: pattern.sub(cover_match, m[0]), formula)

    package = Package.open(data)
    for name in package.list_parts():
        if package.entries[name].startswith(b"PK\x03\x04"):
            package.entries[name] = cover_texts_in_package(package.entries[name], replacements)
        if name == TYPES or not name.endswith(XML):
            continue
        part = Part(package, name)
        for node in part.root.iter():
            for attribute, value in list(node.attrib.items()) if isinstance(node.tag, str) else ():
                new = pattern.sub(cover_match, value)
                if new != value and (attribute != "Target" or "TargetMode" in node.attrib):
                    part.make_attribute_slot(node, attribute).set(new)
            for side in ("text", "tail"):
                value = getattr(node, side) or ""
                is_formula = side == "text" and "spreadsheetml" in str(node.tag) and get_local_name(node) in _FORMULAS
                new = cover_literals(value) if is_formula else pattern.sub(cover_match, value)
                if new != value:
                    part.make_slot(value, partial(setattr, node, side)).set(new)
    return package.to_bytes()
