"""Cover texts in a written package wherever they still stand: in names, attributes and parts that no plan reaches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from allonym.files.office import TYPES, XML, Package, Part, get_local_name
from allonym.files.sheets import FORMULAS, make_defined_name, make_sheet_name, rename_references
from allonym.files.verify import LEAST_WORD, can_identify
from allonym.text.words import find_words

_LITERAL = re.compile(r'"(?:[^"]|"")*"')
_BREAK = r"(?:[-\u00ad\u2010]?\s*\n\s*)?"
"""What may divide a word at the end of a line."""


def compile_texts(replacements: Mapping[str, str]) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str]]:
    """Return a pattern of texts, and their words that identify, and a function that returns what replaces a match.

    Case, and what separates words, are ignored.
    """
    by_words: dict[str, str] = {}
    forms: set[tuple[str, ...]] = set()
    for text, new in replacements.items():
        words = find_words(text.lower())
        parts = [(word,) for word in words if len(word) >= LEAST_WORD and can_identify(word)]
        for form in (tuple(words), *parts):
            forms.add(form)
            by_words.setdefault("".join(form), new)
    ordered = sorted(forms, key=lambda f: (-sum(map(len, f)), f))
    patterns = (r"[\W_]*".join(_BREAK.join(map(re.escape, word)) for word in form) for form in ordered)
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns)})(?![^\W_])", re.IGNORECASE)

    def cover_match(match: re.Match[str]) -> str:
        return by_words.get("".join(find_words(match[0].lower())), "")

    return pattern, cover_match


def cover_texts_in_package(data: bytes, replacements: Mapping[str, str]) -> bytes:
    """Replace texts, and their words that identify, in all XML of a package, whatever they are there.

    Names of parts, content types, and relationships within the package stay.

    Args:
        data: the package.
        replacements: texts with their replacements; case, and what separates words, are ignored.
    """
    pattern, cover_match = compile_texts(replacements)

    def cover_literals(formula: str) -> str:
        """Cover the texts in quotation marks; the references of a formula follow the names that they refer to."""
        return _LITERAL.sub(lambda m: pattern.sub(cover_match, m[0]), formula)

    package = Package.open(data)
    sheets: dict[str, str] = {}
    names: dict[str, str] = {}
    for name in package.list_parts():
        if package.entries[name].startswith(b"PK\x03\x04"):
            package.entries[name] = cover_texts_in_package(package.entries[name], replacements)
        if name == TYPES or not name.endswith(XML):
            continue
        part, is_workbook = Part(package, name), name.startswith("xl/")
        for node in part.root.iter():
            local = get_local_name(node) if isinstance(node.tag, str) else ""
            for attribute, value in list(node.attrib.items()) if local else ():
                new = pattern.sub(cover_match, value)
                if new == value or (attribute == "Target" and "TargetMode" not in node.attrib):
                    continue
                if is_workbook and local == "sheet" and attribute == "name":
                    new = sheets[value] = make_sheet_name(new, [str(e.get("name")) for e in node.getparent()])
                elif is_workbook and local in ("definedName", "table") and attribute in ("name", "displayName"):
                    new = names[value] = names.get(value) or make_defined_name(new, names.values())
                part.make_attribute_slot(node, attribute).set(new)
            for side in ("text", "tail"):
                value = getattr(node, side) or ""
                is_formula = side == "text" and is_workbook and local in FORMULAS
                new = cover_literals(value) if is_formula else pattern.sub(cover_match, value)
                if new == value:
                    continue
                part.make_slot(value, partial(setattr, node, side)).set(new)
                if local == "v" and get_local_name(node.getparent()) == "c":
                    node.getparent().set("t", "str")  # it is no number any more
    rename_references(package, sheets, names, {})
    return package.to_bytes()
