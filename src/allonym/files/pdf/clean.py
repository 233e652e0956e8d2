"""What a PDF holds beside its pages: most of it is left out, and the rest becomes slots of text.

Kept are pages, links, bookmarks, page labels and layers. Forms and visible notes become part of their page. Left out
are metadata, thumbnails, attachments, scripts, comments, structure, signatures, named destinations, private data of
programs, and whatever nothing refers to, such as earlier revisions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote

from allonym.errors import DataError, RefusedContent
from allonym.files.pdf.objects import MAX_DEPTH, key_of

MAX_BOOKMARKS = 100_000

_ROOT = frozenset(("/Type", "/Pages", "/Outlines", "/PageLabels", "/PageMode", "/PageLayout", "/OCProperties", "/Lang"))
_PAGE = frozenset(
    "/Type /Parent /Resources /MediaBox /CropBox /BleedBox /TrimBox /ArtBox /Rotate /Contents /Annots /Group /UserUnit "
    "/Kids /Count".split()
)
_GROUP = frozenset(("/Type", "/S", "/CS", "/I", "/K"))
_RESOURCES = frozenset("/ExtGState /ColorSpace /Pattern /Shading /XObject /Font /Properties".split())
_TRAILER = frozenset(("/Root", "/Size"))
_LINK = frozenset(("/Type", "/Subtype", "/Rect", "/Border", "/BS", "/C", "/H", "/F", "/QuadPoints", "/A", "/Dest"))
_BOOKMARK = frozenset("/Title /Parent /Prev /Next /First /Last /Count /C /F /Dest".split())
_DROPPED = frozenset(
    "/Metadata /PieceInfo /LastModified /StructParent /StructParents /Thumb /AF /Alternates /OPI /ID /B /AA /JS "
    "/Measure /PtData /LastModified /SeparationInfo /Usage /CreatorInfo /CharSet /CIDSet /FontFamily /VP /Ref".split()
)
_KNOWN = {"/Group": _GROUP, "/Resources": _RESOURCES}
_STRINGS = frozenset(("/Registry", "/Ordering", "/Panose"))


@dataclass(frozen=True, slots=True)
class Slot:
    """A text beside the pages: what it says, how to set it, and how to put it back as it was."""

    text: str = field(repr=False)
    set: Callable[[str], None] = field(repr=False)
    restore: Callable[[], None] = field(repr=False)


def prepare_pdf(pdf: Any) -> tuple[list[Slot], frozenset[tuple[int, int]]]:
    """Make forms and notes part of their pages, leave out what is not kept, and give the texts that are, and the layers
    that are off.

    Raises:
        RefusedContent: the pages are made by a program in the file (XFA).
        DataError: its structure is broken.
    """
    import pikepdf

    root = pdf.Root
    if root.get("/NeedsRendering", False) is True:
        raise RefusedContent("a dynamic XFA form cannot be treated; print it to a PDF first")
    try:
        _flatten_forms(pdf)
        find = _make_destination_finder(pdf)
        hidden = hidden_layers(pdf)
        slots = [*_list_bookmarks(pdf, find), *_list_links(pdf, find), *_list_page_labels(root), *_list_layers(root)]
        _leave_out(pdf)
    except (pikepdf.PdfError, TypeError, LookupError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"the structure of the PDF is broken ({type(error).__name__})") from None
    # All strings are gone now; those that are a slot's come back.
    for slot in slots:
        slot.restore()
    return slots, hidden


def _leave_out(pdf: Any) -> None:
    root = pdf.Root
    _keep_keys(root, _ROOT)
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", str(root.get("/Lang", "en"))):
        del root["/Lang"]
    _keep_keys(pdf.trailer, _TRAILER)
    _remove_hidden_strings(root)


def hidden_layers(pdf: Any) -> frozenset[tuple[int, int]]:
    """The layers that are off when the file is opened."""
    properties = pdf.Root.get("/OCProperties")
    if properties is None:
        return frozenset()
    default = properties.get("/D", {})
    every = {key_of(g) for g in properties.get("/OCGs", [])}
    on, off = ({key_of(g) for g in default.get(name, [])} for name in ("/ON", "/OFF"))
    return frozenset(every - on if default.get("/BaseState") == "/OFF" else off)


def _keep_keys(thing: Any, keys: frozenset[str]) -> None:
    for key in [k for k in thing.keys() if k not in keys]:  # noqa: SIM118
        del thing[key]


def _flatten_forms(pdf: Any) -> None:
    """Fields and notes as they are shown become content of their page; links stay; all others go."""
    import pikepdf

    kept_links: list[tuple[Any, list[Any]]] = []
    bare = False
    for page in pdf.pages:
        links, shown = [], []
        for note in page.obj.get("/Annots", []):
            if not isinstance(note, pikepdf.Dictionary):
                continue
            if note.get("/Subtype") == "/Link":
                links.append(note)
            elif note.get("/Subtype") not in ("/Popup", "/Text", "/FileAttachment", "/Sound", "/Movie", "/RichMedia"):
                shown.append(note)
                bare = bare or (note.get("/Subtype") == "/Widget" and "/AP" not in note)
        page.obj.Annots = pikepdf.Array(shown)
        kept_links.append((page, links))
    form = pdf.Root.get("/AcroForm")
    if form is not None:
        if bare:
            form.NeedAppearances = True
        if form.get("/NeedAppearances", False) is True:
            pdf.generate_appearance_streams()
    pdf.flatten_annotations("screen")
    for page, links in kept_links:
        page.obj.Annots = pikepdf.Array(links)
        _keep_keys(page.obj, _PAGE)


def _make_destination_finder(pdf: Any) -> Callable[[Any], Any]:
    """A function from a destination, perhaps a name, to the explicit array; None where there is none."""
    import pikepdf

    named: dict[bytes, Any] = {}
    for key, value in (pdf.Root.get("/Dests") or {}).items():
        named[key[1:].encode("utf-8", "surrogateescape")] = value
    if "/Names" in pdf.Root and "/Dests" in pdf.Root.Names:
        for key, value in _list_leaves(pdf.Root.Names.Dests, "/Names"):
            named[bytes(key)] = value

    def find_destination(target: Any) -> Any:
        if isinstance(target, pikepdf.Name):
            target = named.get(str(target)[1:].encode("utf-8", "surrogateescape"))
        elif isinstance(target, pikepdf.String):
            target = named.get(bytes(target))
        if isinstance(target, pikepdf.Dictionary):
            target = target.get("/D")
        if not isinstance(target, pikepdf.Array) or not len(target) or not isinstance(target[0], pikepdf.Dictionary):
            return None
        return pikepdf.Array([v for v in target if not isinstance(v, pikepdf.String)])

    return find_destination


def _list_leaves(node: Any, name: str, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """The pairs of a name tree or number tree."""
    if depth > MAX_DEPTH:
        raise DataError("a tree of names in the PDF has no end")
    pairs = list(node.get(name, []))
    yield from zip(pairs[::2], pairs[1::2], strict=False)
    for kid in node.get("/Kids", []):
        yield from _list_leaves(kid, name, depth + 1)


def _find_target(thing: Any, find: Callable[[Any], Any]) -> Any:
    """Where a link or bookmark goes within the file; None where it goes elsewhere."""
    action = thing.get("/A") or {}
    return find(thing.get("/Dest") if "/Dest" in thing else action.get("/D") if action.get("/S") == "/GoTo" else None)


def _list_bookmarks(pdf: Any, find: Callable[[Any], Any]) -> Iterator[Slot]:
    outlines = pdf.Root.get("/Outlines")
    if outlines is None:
        return
    _keep_keys(outlines, frozenset(("/Type", "/First", "/Last", "/Count")))
    queue: list[Any] = [outlines.get("/First")]
    visited: set[tuple[int, int]] = set()
    while queue:
        item = queue.pop()
        if item is None:
            continue
        if key_of(item) in visited or len(visited) > MAX_BOOKMARKS:
            raise DataError("the bookmarks of the PDF have no end")
        visited.add(key_of(item))
        target = _find_target(item, find)
        _keep_keys(item, _BOOKMARK)
        if target is not None:
            item.Dest = target
        elif "/Dest" in item:
            del item["/Dest"]
        if "/Title" in item:
            yield _string_slot(item, "/Title")
        queue += [item.get("/Next"), item.get("/First")]


def _list_links(pdf: Any, find: Callable[[Any], Any]) -> Iterator[Slot]:
    import pikepdf

    for page in pdf.pages:
        for link in page.obj.get("/Annots", []):
            target = _find_target(link, find)
            action = link.get("/A") or {}
            uri = action.get("/URI") if action.get("/S") == "/URI" else None
            _keep_keys(link, _LINK)
            for key in ("/A", "/Dest"):
                if key in link:
                    del link[key]
            if target is not None:
                link.Dest = target
            elif isinstance(uri, pikepdf.String):
                link.A = pikepdf.Dictionary(S=pikepdf.Name.URI, URI=uri)
                yield _address_slot(link.A)


def _address_slot(action: Any) -> Slot:
    import pikepdf

    def put_address(text: str) -> None:
        action.URI = pikepdf.String(quote(text, safe=":/?#[]@!$&'()*+,;=%~"))

    def restore_address() -> None:
        action.URI = pikepdf.String(before)

    before = bytes(action.URI)
    return Slot(unquote(str(action.URI)), put_address, restore_address)


def _string_slot(thing: Any, key: str) -> Slot:
    import pikepdf

    def put_string(text: str) -> None:
        thing[key] = pikepdf.String(text)

    def restore_string() -> None:
        thing[key] = pikepdf.String(before)

    before = bytes(thing[key])
    return Slot(str(thing[key]), put_string, restore_string)


def _list_page_labels(root: Any) -> Iterator[Slot]:
    if "/PageLabels" in root:
        for _, label in _list_leaves(root.PageLabels, "/Nums"):
            _keep_keys(label, frozenset(("/Type", "/S", "/P", "/St")))
            if "/P" in label:
                yield _string_slot(label, "/P")


def _list_layers(root: Any) -> Iterator[Slot]:
    for group in (root.get("/OCProperties") or {}).get("/OCGs", []):
        _keep_keys(group, frozenset(("/Type", "/Name", "/Intent")))
        if "/Name" in group:
            yield _string_slot(group, "/Name")


def _remove_hidden_strings(root: Any) -> None:
    """Leave out the keys that are never kept, and empty the strings that nobody needs, in all that can be reached."""
    import pikepdf

    visited: set[tuple[int, int]] = set()
    stack: list[Any] = [root]
    while stack:
        thing = stack.pop()
        key = key_of(thing)
        if key != (0, 0):
            if key in visited:
                continue
            visited.add(key)
        if isinstance(thing, pikepdf.Array):
            table = len(thing) == 4 and thing[0] == "/Indexed"
            for i, value in enumerate(thing):
                if isinstance(value, pikepdf.String) and not table:
                    thing[i] = pikepdf.String("")
                elif isinstance(value, pikepdf.Array | pikepdf.Dictionary | pikepdf.Stream):
                    stack.append(value)
            continue
        for name in list(thing.keys()):
            value = thing[name]
            if name in _DROPPED or (name == "/Name" and thing.get("/Type") != "/OCG"):
                del thing[name]
            elif name == "/Properties":
                _keep_layers(value)
                stack.append(value)
            elif name in _KNOWN and isinstance(value, pikepdf.Dictionary):
                _keep_keys(value, _KNOWN[name])
                stack.append(value)
            elif isinstance(value, pikepdf.String):
                if name not in _STRINGS and name != "/Length":
                    thing[name] = pikepdf.String("")
            elif isinstance(value, pikepdf.Array | pikepdf.Dictionary | pikepdf.Stream):
                stack.append(value)


def _keep_layers(properties: Any) -> None:
    for name in list(properties.keys()):
        if properties[name].get("/Type") not in ("/OCG", "/OCMD"):
            del properties[name]
