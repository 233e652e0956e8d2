"""PPTX: slides, notes, comments, layouts and charts form one document; formatting is kept.

Pictures become grey unless the policy keeps them. What a DOCX file loses, a presentation loses too.
"""

from __future__ import annotations

from functools import partial

from allonym.files.office import Package, Part, TextSlot, get_local_name, parse_office_file
from allonym.files.officeparts import clean_package_and_list_tasks, list_all_slots, list_text_parts
from allonym.files.officetext import list_part_slots
from allonym.files.record import Format

_ALLOWED = {
    r"ppt/(presentation\d*|presProps\d*|viewProps\d*|tableStyles\d*)\.xml": "text",
    r"ppt/(slides|slideLayouts|slideMasters|notesSlides|notesMasters|handoutMasters)/[^/]*\.xml": "text",
    r"ppt/comments/[^/]*\.xml": "text",
    r"ppt/(commentAuthors|authors)\.xml": "authors",
    r"ppt/fonts/.*": "keep",
    r"ppt/embeddings/[^/]*\.(docx|xlsx|pptx)": "embedded",
    r"ppt/embeddings/[^/]*": "drop embedded objects",
    r"ppt/activeX/[^/]*\.xml": "drop form controls",
    r"ppt/(printerSettings|tags|activeX|changesInfos|revisionInfo|persons|threadedComments)([/.].*)": "drop",
}


def clean_presentation_and_list_slots(package: Package, images: str, depth: int) -> list[TextSlot]:
    """Remove hidden content, and return the slots of a presentation; see :data:`allonym.files.office.SlotLister`."""
    main = package.require_main_part("ppt/presentation.xml", "a PowerPoint presentation")
    tasks = clean_package_and_list_tasks(package, _ALLOWED, (), images, depth)
    for name, task in tasks.items():
        if task == "authors":
            _replace_authors(Part(package, name))
    names = sorted(list_text_parts(tasks, main), key=lambda name: "/slides/" not in name)
    part_slots = [slot for name in names for slot in list_part_slots(Part(package, name))]
    return list_all_slots(package, tasks, part_slots, depth)


def _replace_authors(part: Part) -> None:
    """Replace the names of the authors of comments; their initials and accounts are removed."""
    for element in part.root.iter("{*}*"):
        if get_local_name(element) in ("cmAuthor", "author"):
            element.set("name", part.package.find_author_replacement(str(element.get("name", ""))))
            for attribute in ("initials", "userId", "providerId"):
                if element.get(attribute):
                    element.set(attribute, "None" if attribute == "providerId" else "A")
            part.mark_changed()


PPTX = Format("pptx", partial(parse_office_file, list_slots=clean_presentation_and_list_slots, format="pptx"))
