"""A study project: from files to a signed release that two people have reviewed.

>>> from allonym.project import Project, write_release
>>> project = Project.create("study", vault, "pseudonyms")  # doctest: +SKIP
>>> project.add(["interviews", "customers.csv"]).refused  # doctest: +SKIP
>>> project.correct("Larkspur", never=True)  # doctest: +SKIP
>>> write_release(project, unreviewed=True).path  # doctest: +SKIP

``project`` holds the files and what becomes of them, ``readings`` what a reviewer says of a document, ``seats`` who may
say it when, ``agreement`` how far two agree, ``promise`` what their reviews prove, ``sheets`` their tables,
``release`` what others get.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from allonym.lazy import load_on_use

if TYPE_CHECKING:
    from allonym.project.agreement import ReviewResult as ReviewResult
    from allonym.project.entities import FoundEntity as FoundEntity
    from allonym.project.project import Project as Project
    from allonym.project.promise import make_promise as make_promise
    from allonym.project.readings import Reading as Reading
    from allonym.project.records import Added as Added
    from allonym.project.records import SourceFile as SourceFile
    from allonym.project.records import Status as Status
    from allonym.project.release import Release as Release
    from allonym.project.release import VerifiedRelease as VerifiedRelease
    from allonym.project.release import get_public_key as get_public_key
    from allonym.project.release import verify_release as verify_release
    from allonym.project.release import write_release as write_release

__all__ = sorted(load_on_use(__name__))
