"""DOCX: body, headers, footers, notes, comments, tracked changes and charts form one document; formatting is kept.

Pictures become grey unless the policy keeps them. Hidden content is removed: custom properties and XML, embedded
objects other than DOCX and XLSX, signatures, links to other files. A file with macros, recordings or unknown parts is
refused.
"""

from __future__ import annotations

from functools import partial

from allonym.errors import RefusedContent
from allonym.files.office import Package, Part, TextSlot, parse_office_file
from allonym.files.officeparts import clean_package_and_list_tasks, list_all_slots, list_text_parts
from allonym.files.officetext import list_part_slots
from allonym.files.record import Format

MAIN = "word/document.xml"

_ALLOWED = {
    r"word/(glossary/)?(document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml": "text",
    r"word/(glossary/)?(settings|webSettings|styles|stylesWithEffects|numbering|fontTable)\.xml": "text",
    r"word/(glossary/)?fonts/.*": "keep",
    r"word/commentsExtended\.xml": "text",
    r"word/(people|commentsIds|commentsExtensible|recipientData)\.xml": "drop",
    r"word/(documenttasks|printerSettings)/.*": "drop",
    r"word/activeX/[^/]*\.xml": "drop form controls",
    r"word/activeX/.*": "drop",
    r"word/embeddings/[^/]*\.(docx|xlsx)": "embedded",
    r"word/embeddings/[^/]*": "drop embedded objects",
}
_REFUSED = ((r"word/afchunk.*", "an inserted file"),)


def clean_document_and_list_slots(package: Package, images: str, depth: int) -> list[TextSlot]:
    """Remove hidden content, and return the slots of a Word document; see :data:`allonym.files.office.SlotLister`."""
    if MAIN not in package.entries:
        raise RefusedContent(f"not a Word document: it has no part {MAIN}")
    tasks = clean_package_and_list_tasks(package, _ALLOWED, _REFUSED, images, depth)
    part_slots = [slot for name in list_text_parts(tasks, MAIN) for slot in list_part_slots(Part(package, name))]
    return list_all_slots(package, tasks, part_slots, depth)


DOCX = Format("docx", partial(parse_office_file, list_slots=clean_document_and_list_slots, format="docx"))
