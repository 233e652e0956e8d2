"""Treatment of the parts of an office file: text is anonymised, hidden data removed, pictures become grey.

A part is anonymised, removed, or known to contain no text. Parts of an unknown kind are removed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from pkgutil import resolve_name

from allonym.document import CAPTION, PROSE, TECHNICAL
from allonym.errors import DataError
from allonym.files.office import (
    XML,
    Package,
    Part,
    TextSlot,
    assign_tasks_and_drop_parts,
    get_local_name,
    get_part_of_rels,
    is_common_office_text,
)
from allonym.files.officetext import remove_hidden_data
from allonym.files.pictures import make_grey_png, strip_picture_metadata
from allonym.text.words import compile_word_pattern

_IMAGES = "png|jpe?g|jfif|gif|bmp|dib|tiff?|emf|wmf|emz|wmz|svg|wdp|jxr|hdp|webp|heic|pcz|pict"

COMMON: Mapping[str, str] = {
    r"\[Content_Types\]\.xml": "keep",
    r"(.*/)?_rels/.*\.rels": "links",
    r"docProps/(core|app)\.xml": "properties",
    r"docProps/custom\.xml": "drop custom properties",
    r"docProps/thumbnail\.\w+": "drop",
    r"customXml/item\d+\.xml": "drop custom XML parts",
    r"customXml/itemProps\d+\.xml": "drop",
    r"docMetadata/LabelInfo\.xml": "drop",
    r"_xmlsignatures/sig\d+\.xml": "drop signatures",
    r"_xmlsignatures/.*": "drop",
    r"(word|xl|ppt)/webextensions/.*|.*\.DS_Store": "drop",
    r"(?i:.*vbaProject(Signature\w*)?\.bin|.*vbaData\.xml)": "drop macros",
    r"customUI/.*|userCustomization/.*|\w+/(customizations|attachedToolbars)\.(xml|bin)": "drop",
    r"(?i:.*/media/.*\.(mp[34g]|mpe?g|m4[av]|wav|avi|mov|wm[av]|ogg|aac|mid))": "drop recordings",
    r".*/ink/.*": "drop handwriting",
    r"(word|xl|ppt)/charts/(chart|chartEx|style|colors)\d*\.xml": "text",
    r"(word|xl|ppt)/diagrams/(data|drawing|layout|quickStyle|colors)\d*\.xml": "text",
    r"(word|xl|ppt)/drawings/drawing\d+\.xml": "text",
    r"(word|xl|ppt)/theme/\w+\.xml": "text",
    rf"(?i:.*/media/[^/]*\.({_IMAGES}))": "image",
}
"""The tasks of the parts that all office files may have."""

KINDS = {
    "word": "allonym.files.docx:clean_document_and_list_slots",
    "xl": "allonym.files.xlsx:clean_workbook_and_list_slots",
    "ppt": "allonym.files.pptx:clean_presentation_and_list_slots",
}
"""The function that returns the slots of a package, by the folder of the package's main part."""

DEEPEST = 2
"""Greatest depth of packages inside packages."""

_PEOPLE = frozenset(("creator", "lastModifiedBy", "Manager"))
_EMPTIED = _PEOPLE | {"Company"}
_FILES = frozenset("attachedTemplate mailMergeSource mailMergeHeaderSource oleObject package subDocument frame".split())
_TIMES = frozenset(("created", "modified", "lastPrinted"))
_PLAIN_PROPERTIES = frozenset(("Application", "AppVersion", "revision"))
_NOBODY = "author user admin administrator owner unknown python-docx openpyxl microsoft office account windows".split()


def clean_package_and_list_tasks(
    package: Package, allowed: Mapping[str, str], refused: Sequence[tuple[str, str]], images: str, depth: int
) -> dict[str, str]:
    """Treat everything but text: embedded files, pictures, links to files, traces of authors and times.

    Args:
        package: changed in place.
        allowed, refused: beside :data:`COMMON`, see :func:`allonym.files.office.assign_tasks_and_drop_parts`, which
            raises the same errors.
        images: ``remove`` replaces them by grey ones; ``keep`` keeps PNG and JPEG, without their metadata.
        depth: number of packages around this one.

    Returns:
        The remaining parts with their tasks.
    """
    tasks = assign_tasks_and_drop_parts(package, {**allowed, **COMMON}, refused)
    for name, task in tasks.items():
        if task == "embedded" and not _add_embedded_package(package, name, images, depth):
            package.drop_part(name)
            package.without["embedded objects left out"] += 1
    for name in [n for n in package.list_parts() if n.endswith(".rels")]:
        _remove_file_links(package, name)
    for name, task in tasks.items():
        if task == "text" and name not in package.dropped:
            remove_hidden_data(Part(package, name))
    for name in sorted(package.linked - package.list_reachable_parts() - package.dropped):
        package.drop_part(name)
    number = 0
    for name, task in tasks.items():
        if task == "image" and name not in package.dropped:
            number += 1
            _replace_or_strip_image(package, name, number, images)
    return {name: task for name, task in tasks.items() if name in package.entries and name not in package.dropped}


def _add_embedded_package(package: Package, name: str, images: str, depth: int) -> bool:
    """Open and clean an embedded file, and note it with its slots; return false if it cannot be anonymised."""
    if depth >= DEEPEST:
        return False
    try:
        inner = Package.open(package.entries[name])
        inner.authors, inner.policy = package.authors, package.policy
        kind = KINDS.get(inner.find_main_part().partition("/")[0])
        if kind is None:
            return False
        package.inner[name] = (inner, list(resolve_name(kind)(inner, images, depth + 1)))
    except DataError:
        return False
    package.without.update(inner.without)
    return True


def _remove_file_links(package: Package, rels: str) -> None:
    """Remove links to other files or their targets; a link to a local file keeps only the file's name."""
    for link in list(package.read_tree(rels)):
        if link.get("TargetMode") != "External":
            continue
        kind, target = str(link.get("Type", "")).rpartition("/")[2], str(link.get("Target", ""))
        if kind == "hyperlink":
            if re.match(r"(?i)file:|[a-z]:[\\/]|[^:]*\\|/|\.\./", target):
                link.set("Target", re.split(r"[\\/]", target)[-1])
                package.touched.add(rels)
        elif kind in _FILES:
            Part(package, rels).remove_element(link)
        else:
            link.set("Target", "NULL")
            package.touched.add(rels)


def _replace_or_strip_image(package: Package, name: str, number: int, images: str) -> None:
    data = strip_or_grey_image(package, name, images)
    suffix = "png" if data.startswith(b"\x89PNG") else "jpeg"
    folder = posixpath.dirname(name)
    while (new := f"{folder}/picture{number}.{suffix}") in package.entries:
        number += 1
    package.replace_part(name, new, data)


def strip_or_grey_image(package: Package, name: str, images: str) -> bytes:
    """Return an image without its metadata if images are kept, or else a grey one, and count it."""
    image = strip_picture_metadata(package.entries[name]) if images == "keep" else None
    package.without["pictures left out" if image is None else "pictures kept"] += 1
    return image or make_grey_png()


def clean_and_list_common_slots(package: Package, tasks: Mapping[str, str]) -> Iterator[TextSlot]:
    """Return the slots that all office files may have: drawings, relationships, properties, stray texts.

    Properties that name people or companies are emptied, but they are still searched, since the text may repeat them.
    """
    for name, task in tasks.items():
        part = Part(package, name)
        if task != "image" and name.endswith(XML):
            yield from part.list_stray_slots()
        if task == "links":
            for link, target in package.list_relationships(get_part_of_rels(name)):
                if target is None and link.get("Target") != "NULL":
                    yield part.make_attribute_slot(link, "Target", TECHNICAL)
        elif task == "properties":
            yield from _clean_and_list_properties(part)


def _clean_and_list_properties(part: Part) -> Iterator[TextSlot]:
    """Remove times, empty people and company, and return the slots of the other properties and of the company."""
    for element in list(part.root.iter("{*}*")):
        local, text = get_local_name(element), element.text or ""
        if local in _TIMES:
            part.remove_element(element)
        elif local in _EMPTIED:
            if text.strip():
                if local in _PEOPLE:
                    part.package.find_author_replacement(text)
                else:
                    yield _make_read_only_slot("company", text)
                element.text = None
                part.mark_changed()
        elif local not in _PLAIN_PROPERTIES and text not in ("true", "false") and not is_common_office_text(text):
            # Titles of parts are mostly the names of sheets.
            yield part.make_text_slot(element, role=CAPTION if local == "lpstr" else PROSE)


def list_author_slots(package: Package) -> Iterator[TextSlot]:
    """Return slots with the names of authors. They are not written, but help to detect the names in the text."""
    for name in package.authors:
        words = set(compile_word_pattern("-").findall(name.lower()))
        if {w for w in words if not w.isdigit()}.difference(_NOBODY) and not name.startswith("tc="):
            yield _make_read_only_slot("name", name)


def _make_read_only_slot(label: str, text: str) -> TextSlot:
    return TextSlot(text, lambda _: None, f"\n{label}: ")


def list_all_slots(
    package: Package, tasks: Mapping[str, str], part_slots: Sequence[TextSlot], depth: int
) -> list[TextSlot]:
    """Return all slots of a package: its own, the common ones, and those of embedded packages."""
    slots = [*part_slots, *clean_and_list_common_slots(package, tasks)]
    for _, inner in package.inner.values():
        slots += inner
    if not depth:
        slots += list_author_slots(package)
    return slots


def list_text_parts(tasks: Mapping[str, str], main: str) -> list[str]:
    """Return the parts with text, the main part first."""
    names = [name for name, task in tasks.items() if task == "text"]
    return sorted(names, key=lambda n: (n != main, [int(d) for d in re.findall(r"\d+", n)], n))
