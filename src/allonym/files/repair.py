"""Cover texts in a written package wherever they still stand: in names, attributes and parts that no plan reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from allonym.files.office import TYPES, XML, Package, Part
from allonym.files.verify import LEAST_WORD, can_identify
from allonym.text.words import find_words


def cover_texts_in_package(data: bytes, replacements: Mapping[str, str]) -> bytes:
    """Replace texts, and their words that identify, in all XML of a package, whatever they are there.

    Names of parts, content types, and relationships within the package stay.

    Args:
        data: the package.
        replacements: texts with their replacements; case, and what separates words, are ignored.
    """
    by_words: dict[tuple[str, ...], str] = {}
    for text, new in replacements.items():
        words = find_words(text.lower())
        parts = [(word,) for word in words if len(word) >= LEAST_WORD and can_identify(word)]
        for form in (tuple(words), *parts):
            by_words.setdefault(form, new)
    forms = sorted(by_words, key=lambda words: -sum(map(len, words)))
    patterns = (r"[\W_]*".join(map(re.escape, form)) for form in forms)
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(patterns)})(?![^\W_])", re.IGNORECASE)

    def cover_match(match: re.Match[str]) -> str:
        return by_words.get(tuple(find_words(match[0].lower())), "")

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
                if (new := pattern.sub(cover_match, value)) != value:
                    part.make_slot(value, partial(setattr, node, side)).set(new)
    return package.to_bytes()
