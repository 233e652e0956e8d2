"""The zip package that DOCX and XLSX share: its parts, their relationships, and slots of text in XML."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from allonym.document import Document
from allonym.errors import DataError, RefusedContent
from allonym.files.record import MAX_WHOLE, Draft, Parsed, Tally, check_ratio

MAX_PARTS = 10_000
TYPES = "[Content_Types].xml"
R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_XMLNS_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Slot:
    """A text in an XML tree: what it says, how to set it, and what stands between it and the one before."""

    text: str = field(repr=False)
    set: Callable[[str], None] = field(repr=False)
    before: str = "\n"


@dataclass(slots=True)
class Package:
    """A zip package: its entries, in order, and the parsed trees of those that are treated.

    Attributes:
        entries: name to its bytes, folders left out.
        packed: the names that are compressed.
        trees: the root elements of the parts that were parsed.
        dropped, touched: names of parts that are left out, and that are written from their trees.
        linked: the parts that could be reached when it was opened.
        inner: embedded packages by their part's name, each with its slots.
        authors: who wrote comments and changes, to what is written instead; embedded packages share it.
        last: what is done before the package is written.
        serials: numbers of the tracked changes that were added.
        without: what became of what is no text, and how often, as "pictures left out".
    """

    entries: dict[str, bytes] = field(repr=False)
    packed: set[str] = field(default_factory=set)
    trees: dict[str, Any] = field(default_factory=dict, repr=False)
    dropped: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    linked: set[str] = field(default_factory=set)
    inner: dict[str, tuple[Package, list[Slot]]] = field(default_factory=dict, repr=False)
    authors: dict[str, str] = field(default_factory=dict, repr=False)
    last: list[Callable[[], None]] = field(default_factory=list, repr=False)
    serials: list[int] = field(default_factory=list)
    without: dict[str, int] = field(default_factory=dict)

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
                files = [i for i in infos if not i.filename.endswith("/")]
                packed = {i.filename for i in files if i.compress_type != zipfile.ZIP_STORED}
                return cls({i.filename: archive.read(i) for i in files}, packed)
        except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise DataError(f"not an office file ({type(error).__name__})") from None

    def names(self) -> list[str]:
        """The names of the parts that are not left out."""
        return [name for name in self.entries if name not in self.dropped]

    def tree(self, name: str) -> Any:
        """The root element of a part. Raises :class:`DataError` where it is not plain XML."""
        from lxml import etree

        if name not in self.trees:
            parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
            try:
                root = etree.fromstring(self.entries[name], parser)
            except etree.XMLSyntaxError:
                raise DataError(f"{name} is not valid XML") from None
            if cast(Any, root).getroottree().docinfo.doctype:
                raise RefusedContent(f"{name} has a document type, which office files do not have")
            self.trees[name] = root
        return self.trees[name]

    def links(self, part: str) -> Iterator[tuple[Any, str | None]]:
        """The relationships of a part (``""``: of the package), each with the name of its target; None: outside."""
        rels = rels_of(part)
        if rels in self.entries and rels not in self.dropped:
            for link in self.tree(rels).iter("{*}Relationship"):
                outside = link.get("TargetMode") == "External"
                folder = posixpath.join("/", posixpath.dirname(part))
                target = posixpath.normpath(posixpath.join(folder, str(link.get("Target", ""))))
                yield link, None if outside else target.lstrip("/")

    def reachable(self) -> set[str]:
        """The parts that can be reached from the package by relationships."""
        seen: set[str] = set()
        todo = [""]
        while todo:
            for _, target in self.links(todo.pop()):
                if target is not None and target in self.entries and target not in self.dropped | seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    def drop(self, name: str) -> None:
        """Leave a part out, with its relationships and those that name it."""
        self.dropped |= {name, rels_of(name)}
        for rels in [n for n in self.names() if n.endswith(".rels")]:
            for link, target in list(self.links(part_of(rels))):
                if target == name:
                    self.remove(rels, link)
        for row in list(self.tree(TYPES)):
            if row.get("PartName") == f"/{name}":
                self.remove(TYPES, row)

    def prune(self) -> None:
        """Leave out the parts that nothing leads to any more."""
        for name in sorted(self.linked - self.reachable() - self.dropped):
            self.drop(name)

    def remove(self, name: str, element: Any) -> None:
        """Take an element out of a part; what stands behind it stays."""
        parent = element.getparent()
        if parent is None:
            raise RefusedContent(f"the part {name} cannot be treated")
        if element.tail:
            before = element.getprevious()
            if before is None:
                parent.text = (parent.text or "") + element.tail
            else:
                before.tail = (before.tail or "") + element.tail
        parent.remove(element)
        self.touched.add(name)

    def renamed(self, old: str, new: str, data: bytes) -> None:
        """Put other data, under another name, in a part's place."""
        self.entries = {new if n == old else n: data if n == old else d for n, d in self.entries.items()}
        for rels in [n for n in self.names() if n.endswith(".rels")]:
            for link, target in self.links(part_of(rels)):
                if target == old:
                    link.set("Target", f"/{new}")
                    self.touched.add(rels)
        suffix = new.rpartition(".")[2]
        known = False
        for row in list(self.tree(TYPES)):
            if row.get("PartName") == f"/{old}":
                self.remove(TYPES, row)
            known = known or str(row.get("Extension", "")).lower() == suffix
        if not known:
            space = self.tree(TYPES).tag[: self.tree(TYPES).tag.index("}") + 1]
            kind = {"Extension": suffix, "ContentType": f"image/{suffix}"}
            row = self.tree(TYPES).makeelement(f"{space}Default", kind)
            self.tree(TYPES).insert(0, row)
            self.touched.add(TYPES)

    def author(self, name: str) -> str:
        """What stands for an author, numbered in the order in which they are seen."""
        return self.authors.setdefault(name, f"Author {len(self.authors) + 1}") if name.strip() else name

    def count(self, what: str, times: int = 1) -> None:
        """Note that something was left out or replaced."""
        self.without[what] = self.without.get(what, 0) + times

    def to_bytes(self) -> bytes:
        """The package with the touched parts written anew, the others as they were, and no times of its entries."""
        from lxml import etree

        for step in self.last:
            step()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for name in self.names():
                data = self.entries[name]
                if name in self.inner:
                    data = self.inner[name][0].to_bytes()
                elif name in self.touched:
                    tree = self.trees[name].getroottree()
                    data = etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=True)
                info = zipfile.ZipInfo(name, _EPOCH)
                info.compress_type = zipfile.ZIP_DEFLATED if name in self.packed else zipfile.ZIP_STORED
                info.create_system = 0
                archive.writestr(info, data)
        return out.getvalue()


def rels_of(part: str) -> str:
    """The name of the part with a part's relationships."""
    folder, name = posixpath.split(part)
    return posixpath.join(folder, "_rels", f"{name}.rels")


def part_of(rels: str) -> str:
    """The part whose relationships ``rels`` holds; ``""``: the package's."""
    folder, name = posixpath.split(rels)
    return posixpath.join(posixpath.dirname(folder), name.removesuffix(".rels"))


def check_parts(package: Package, allowed: Mapping[str, str], refused: Sequence[tuple[str, str]]) -> dict[str, str]:
    """What to do with each part, as the first matching pattern of ``allowed`` says; ``drop`` is done here.

    Raises:
        DataError: it is no office file.
        RefusedContent: a part is of a kind that ``refused`` names, or of none that is known.
    """
    if TYPES not in package.entries:
        raise DataError(f"not an office file: it has no part {TYPES}")
    package.linked = package.reachable()
    tasks: dict[str, str] = {}
    for name in package.names():
        for pattern, what in refused:
            if re.fullmatch(pattern, name, re.IGNORECASE):
                raise RefusedContent(f"{what} cannot be treated yet (part {name})")
        task = next((t for p, t in allowed.items() if re.fullmatch(p, name)), None)
        if task is None:
            raise RefusedContent(f"the part {name} is of an unknown kind and cannot be treated yet")
        tasks[name] = task
    for name, task in tasks.items():
        what = task.removeprefix("drop").strip()
        if task.startswith("drop") and name not in package.dropped:
            package.drop(name)
            if what:
                package.count(f"{what} left out")
    return {name: task for name, task in tasks.items() if name not in package.dropped}


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


def slot_of_attribute(package: Package, name: str, element: Any, attribute: str, before: str = "\n") -> Slot:
    """The slot of an element's attribute."""

    def put(text: str) -> None:
        element.set(attribute, printable(text))
        package.touched.add(name)

    return Slot(str(element.get(attribute)), put, before)


def printable(text: str) -> str:
    """The text itself; raises :class:`DataError` where XML cannot hold it."""
    if re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", text):
        raise DataError("a replacement holds a character that XML cannot")
    return text


def local_name(element: Any) -> str:
    """An element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def parsed(package: Package, slots: Sequence[Slot], format: str) -> Parsed:
    """One document of all slots, written back into the package; what is written is read back."""
    separators = [s.before for s in slots[1:]] + [""] if slots else []
    document = Document.from_parts("", [s.text for s in slots], separators=separators)

    def render(parts: tuple[str, ...]) -> bytes:
        for slot, part in zip(slots, parts, strict=bool(slots)):
            if part != slot.text:
                slot.set(part)
        return package.to_bytes()

    return Parsed([Draft(document, render, verify=format)], tally=Tally(treated=Counter(package.without)))
