"""What DOCX and XLSX share: the zip package, its parts, and slots of text in XML.

A part of the package is treated, known to hold no text, or the reason why the file is refused. Nothing unknown passes.
"""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from allonym.document import Document
from allonym.errors import DataError, RefusedContent
from allonym.files.record import MAX_WHOLE, Draft, Parsed, check_ratio

MAX_PARTS = 10_000
_EMPTIED = frozenset(("creator", "lastModifiedBy", "Manager", "Company"))
_PLAIN_PROPERTIES = frozenset(("created", "modified", "lastPrinted", "Application", "AppVersion", "revision"))
_XMLNS_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass(frozen=True, slots=True)
class Slot:
    """A text in an XML tree: what it says, how to set it, and what stands between it and the one before."""

    text: str = field(repr=False)
    set: Callable[[str], None] = field(repr=False)
    before: str = "\n"


@dataclass(slots=True)
class Package:
    """A zip package: its entries, in order, and the parsed trees of those that are treated."""

    entries: list[tuple[zipfile.ZipInfo, bytes]]
    trees: dict[str, Any] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, data: bytes) -> Package:
        """Read a package. Raises :class:`DataError` where it is none, :class:`RefusedContent` where it is encrypted."""
        if data.startswith(b"\xd0\xcf\x11\xe0"):
            raise RefusedContent("an encrypted or old binary office file cannot be treated yet")
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                infos = archive.infolist()
                if len(infos) > MAX_PARTS or sum(i.file_size for i in infos) > MAX_WHOLE:
                    raise DataError(f"the package unpacks to more than {MAX_PARTS} parts or {MAX_WHOLE} bytes")
                check_ratio(len(data), sum(i.file_size for i in infos))
                if any(i.flag_bits & 1 for i in infos):
                    raise RefusedContent("an encrypted part cannot be treated")
                if len({i.filename for i in infos}) < len(infos):
                    raise DataError("the package holds two parts of one name")
                return cls([(i, archive.read(i)) for i in infos])
        except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DataError(f"not an office file ({type(error).__name__})") from None

    def names(self) -> list[str]:
        """The names of the parts, folders left out."""
        return [info.filename for info, _ in self.entries if not info.filename.endswith("/")]

    def tree(self, name: str) -> Any:
        """The root element of a part. Raises :class:`DataError` where it is not plain XML."""
        from lxml import etree

        if name not in self.trees:
            data = next(content for info, content in self.entries if info.filename == name)
            parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
            try:
                root = etree.fromstring(data, parser)
            except etree.XMLSyntaxError:
                raise DataError(f"{name} is not valid XML") from None
            if cast(Any, root).getroottree().docinfo.doctype:
                raise RefusedContent(f"{name} has a document type, which office files do not have")
            self.trees[name] = root
        return self.trees[name]

    def drop(self, name: str) -> None:
        """Leave a part out, and the relationships that name it."""
        self.dropped.add(name)
        for rels in [n for n in self.names() if n.endswith(".rels")]:
            folder = posixpath.dirname(posixpath.dirname(rels))
            root = self.tree(rels)
            for link in list(root):
                if posixpath.normpath(posixpath.join("/", folder, str(link.get("Target", "")))) == f"/{name}":
                    root.remove(link)
                    self.touched.add(rels)

    def to_bytes(self) -> bytes:
        """The package with the touched parts written anew, the others as they were."""
        from lxml import etree

        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for info, data in self.entries:
                if info.filename in self.dropped:
                    continue
                if info.filename in self.touched:
                    tree = self.trees[info.filename].getroottree()
                    data = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=True)
                copy = zipfile.ZipInfo(info.filename, info.date_time)
                copy.compress_type, copy.external_attr = info.compress_type, info.external_attr
                copy.create_system = info.create_system
                archive.writestr(copy, data)
        return out.getvalue()


def check_parts(package: Package, allowed: Mapping[str, str], refused: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What to do with each part, as the first matching pattern of ``allowed`` says; ``drop`` is done here.

    Raises:
        RefusedContent: a part is of a kind that ``refused`` names, or of none that is known.
    """
    tasks: dict[str, str] = {}
    for name in package.names():
        for pattern, what in refused:
            if re.fullmatch(pattern, name, re.IGNORECASE):
                raise RefusedContent(f"{what} cannot be treated yet (part {name})")
        task = next((t for p, t in allowed.items() if re.fullmatch(p, name)), None)
        if task is None:
            raise RefusedContent(f"the part {name} is of an unknown kind and cannot be treated yet")
        if task == "drop":
            package.drop(name)
        tasks[name] = task
    return tasks


COMMON: Mapping[str, str] = {
    r"\[Content_Types\]\.xml": "keep",
    r"(.*/)?_rels/.*\.rels": "links",
    r"docProps/(core|app)\.xml": "properties",
    r"docProps/custom\.xml": "custom",
    r"docProps/thumbnail\.\w+": "drop",
    r"customXml/item\d+\.xml": "xml",
    r"customXml/itemProps\d+\.xml": "keep",
    r"docMetadata/LabelInfo\.xml": "keep",
}
"""What becomes of the parts that all office files may have."""

REFUSED = (
    (r".*vbaProject.*|.*vbaData\.xml", "a macro"),
    (r".*/embeddings/.*", "an embedded object"),
    (r".*/media/.*", "an image or recording"),
    (r".*/charts/.*|.*/chartsheets/.*", "a chart"),
    (r".*/diagrams/.*", "a diagram"),
    (r".*/activeX/.*|.*/ctrlProps/.*", "a form control"),
    (r".*comments?.*\.xml|.*threadedComments/.*|.*/people\.xml|.*/persons/.*", "a comment"),
    (r".*/externalLinks/.*", "a link to another file"),
    (r"_xmlsignatures/.*", "a signature"),
)
"""(pattern, what it is) of parts that make an office file refused."""


def slot_of_text(package: Package, name: str, element: Any, before: str = "\n") -> Slot:
    """The slot of an element's text."""

    def put(text: str) -> None:
        element.text = printable(text)
        if text != text.strip() and isinstance(element.tag, str):
            element.set(_XMLNS_SPACE, "preserve")
        package.touched.add(name)

    return Slot(element.text or "", put, before)


def stray_slots(package: Package, name: str) -> Iterator[Slot]:
    """The slots of what stands in a part beside its elements: comments, instructions, text behind an element."""
    from lxml import etree

    root = package.tree(name)
    beside = [*root.itersiblings(preceding=True), *root.itersiblings()]
    for node in (*root.iter(etree.Comment, etree.ProcessingInstruction), *beside):
        if node.text and node.text.strip():
            yield slot_of_text(package, name, node)
    for node in root.iter():
        if node is not root and node.tail and node.tail.strip():
            yield _slot_of_tail(package, name, node)


def _slot_of_tail(package: Package, name: str, node: Any) -> Slot:
    def put(text: str) -> None:
        node.tail = printable(text)
        package.touched.add(name)

    return Slot(str(node.tail), put)


def slot_of_attribute(package: Package, name: str, element: Any, attribute: str) -> Slot:
    """The slot of an element's attribute."""

    def put(text: str) -> None:
        element.set(attribute, printable(text))
        package.touched.add(name)

    return Slot(str(element.get(attribute)), put)


def printable(text: str) -> str:
    """The text itself; raises :class:`DataError` where XML cannot hold it."""
    if re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", text):
        raise DataError("a replacement holds a character that XML cannot")
    return text


def common_slots(package: Package, tasks: Mapping[str, str]) -> Iterator[Slot]:
    """The slots that all office files may have: relationships, properties, custom XML, and what strays in any part.

    Properties that name people or firms are emptied.
    """
    for name, task in tasks.items():
        if task != "drop" and name.endswith((".xml", ".rels")):
            yield from stray_slots(package, name)
        if task == "links":
            for link in package.tree(name):
                if link.get("TargetMode") == "External":
                    yield slot_of_attribute(package, name, link, "Target")
        elif task == "properties":
            for element in package.tree(name).iter("{*}*"):
                local = local_name(element)
                if local in _EMPTIED and element.text:
                    element.text = None
                    package.touched.add(name)
                elif local not in _PLAIN_PROPERTIES and element.text and _says_something(element.text):
                    yield slot_of_text(package, name, element)
        elif task == "custom":
            if len(package.tree(name)):
                raise RefusedContent(f"custom properties cannot be treated yet (part {name})")
        elif task == "xml":
            for element in package.tree(name).iter("{*}*"):
                if element.text and element.text.strip():
                    yield slot_of_text(package, name, element)
                for attribute in element.attrib:
                    yield slot_of_attribute(package, name, element, cast(str, attribute))


def _says_something(text: str) -> bool:
    return bool(text.strip()) and not text.strip().isdigit() and text not in ("true", "false")


def local_name(element: Any) -> str:
    """An element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def parsed(package: Package, slots: Sequence[Slot]) -> Parsed:
    """One document of all slots, written back into the package."""
    separators = [s.before for s in slots[1:]] + [""] if slots else []
    document = Document.from_parts("", [s.text for s in slots], separators=separators)

    def render(parts: tuple[str, ...]) -> bytes:
        for slot, part in zip(slots, parts, strict=bool(slots)):
            if part != slot.text:
                slot.set(part)
        return package.to_bytes()

    return Parsed([Draft(document, render)])
