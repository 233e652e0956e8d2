"""DOCX: body, headers, footers, notes, comments, tracked changes and charts form one document; formatting is kept.

The cells of a table of at least three columns and four rows are treated by column, see :mod:`allonym.files.columns`.

Pictures become grey unless the policy keeps them. Hidden content is removed: custom properties and XML, embedded
objects other than DOCX, XLSX and PPTX, files inserted into the text, macros, recordings, handwriting, signatures, links
to other files, and parts of an unknown kind; what was removed is counted in the report.
"""

from __future__ import annotations

from functools import partial

from allonym.files.office import Package, Part, TextSlot, parse_office_file
from allonym.files.officeparts import clean_package_and_list_tasks, list_all_slots, list_text_parts
from allonym.files.officetext import list_part_slots
from allonym.files.record import Format

_ALLOWED = {
    r"word/(glossary/)?(document\d*|header\d*|footer\d*|footnotes|endnotes|comments)\.xml": "text",
    r"word/(glossary/)?(settings|webSettings|styles\d*|stylesWithEffects|numbering|fontTable)\.xml": "text",
    r"word/(glossary/)?fonts/.*": "keep",
    r"word/commentsExtended\.xml": "text",
    r"word/(people|commentsIds|commentsExtensible|recipientData|intelligence\d*)\.xml": "drop",
    r"word/(documenttasks|printerSettings)/.*": "drop",
    r"word/activeX/[^/]*\.xml": "drop form controls",
    r"word/activeX/.*": "drop",
    r"word/embeddings/[^/]*\.(docx|xlsx|pptx)": "embedded",
    r"word/afchunk.*": "drop inserted files",
    r"word/embeddings/[^/]*": "drop embedded objects",
}


def clean_document_and_list_slots(package: Package, images: str, depth: int) -> list[TextSlot]:
    """Remove hidden content, and return the slots of a Word document; see :data:`allonym.files.office.SlotLister`."""
    main = package.require_main_part("word/document.xml", "a Word document")
    tasks = clean_package_and_list_tasks(package, _ALLOWED, (), images, depth)
    part_slots = [slot for name in list_text_parts(tasks, main) for slot in list_part_slots(Part(package, name))]
    return list_all_slots(package, tasks, part_slots, depth)


DOCX = Format("docx", partial(parse_office_file, list_slots=clean_document_and_list_slots, format="docx"))
