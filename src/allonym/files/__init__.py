"""Files: readers and writers per format, runs over files and folders, checkpoint and resume.

``anonymize_path`` anonymises a file, a folder or a pipe. ``read_documents`` only reads. ``rewrite_path`` writes the
same files with other texts. A format refuses a file that it cannot process completely: no file is ever half done.
"""

from __future__ import annotations

from allonym.files.formats import SUFFIXES, format_of, get_format, readers
from allonym.files.rewrite import rewrite_path
from allonym.files.run import anonymize_path, read_documents
from allonym.files.runreport import RunReport
from allonym.files.text import read_transcript

__all__ = [
    "SUFFIXES",
    "RunReport",
    "anonymize_path",
    "format_of",
    "get_format",
    "read_documents",
    "read_transcript",
    "readers",
    "rewrite_path",
]
