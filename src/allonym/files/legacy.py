"""DOC, XLS and PPT: converted by LibreOffice, treated as DOCX, XLSX and PPTX, and converted back.

The program ``soffice`` of LibreOffice must be installed. What the conversion does not know, such as macros, is lost.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

from allonym.errors import DataError
from allonym.files.office import OLE
from allonym.files.record import Chunk, Draft, Format, Job, ParsedChunk
from allonym.scratch import open_scratch_folder

SECONDS = 300
"""Time after which a conversion is given up."""

_SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Common/Security/Scripting">
<prop oor:name="DisableMacrosExecution" oor:op="fuse"><value>true</value></prop>
<prop oor:name="DisableActiveContent" oor:op="fuse"><value>true</value></prop>
<prop oor:name="BlockUntrustedRefererLinks" oor:op="fuse"><value>true</value></prop>
</item>
<item oor:path="/org.openoffice.Office.Writer/Content/Update">
<prop oor:name="Link" oor:op="fuse"><value>2</value></prop>
</item>
<item oor:path="/org.openoffice.Office.Calc/Content/Update">
<prop oor:name="Link" oor:op="fuse"><value>2</value></prop>
</item>
</oor:items>
"""
"""Settings of LibreOffice: no macros, and nothing is loaded from elsewhere."""


def convert_by_libreoffice(data: bytes, old: str, new: str) -> bytes:
    """Convert a file from one format to another, in a folder and with settings of its own.

    Args:
        data: the file.
        old, new: suffixes without dot.

    Raises:
        DataError: LibreOffice is not installed, or cannot read the file.
    """
    program = shutil.which("soffice") or shutil.which("libreoffice")
    if program is None:
        raise DataError(
            f"a .{old} file is read through LibreOffice, which is not installed here; install it, or save the file as "
            f".{old}x"
        )
    with open_scratch_folder() as folder:
        source, target = Path(folder, f"file.{old}"), Path(folder, "out", f"file.{new}")
        source.write_bytes(data)
        settings = Path(folder, "profile", "user", "registrymodifications.xcu")
        settings.parent.mkdir(parents=True)
        settings.write_text(_SETTINGS, encoding="utf-8")
        command = [program, f"-env:UserInstallation={Path(folder, 'profile').as_uri()}", "--headless", "--norestore"]
        command += ["--convert-to", new, "--outdir", str(target.parent), str(source)]
        _run_within_time(command)
        if not target.exists():
            raise DataError(f"LibreOffice cannot read the file; is it encrypted, damaged, or no .{old} file?")
        return target.read_bytes()


def _run_within_time(command: list[str]) -> None:
    """Run a program with all programs that it starts, and end them all if they take too long."""
    silent = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True) as process:
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            raise DataError(f"LibreOffice took more than {SECONDS} seconds to read the file") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)


def _parse_legacy_file(chunk: Chunk, job: Job, suffix: str) -> ParsedChunk:
    from allonym.files.formats import get_format

    if not chunk.data.startswith(OLE):
        raise DataError(f"not a .{suffix} file of Microsoft Office 97 to 2003")
    data = convert_by_libreoffice(chunk.data, suffix, f"{suffix}x")
    parsed = get_format(f"{suffix}x").parse(replace(chunk, data=data), job)
    convert = partial(convert_by_libreoffice, old=f"{suffix}x", new=suffix)
    return replace(parsed, pieces=[replace(p, convert=convert) if isinstance(p, Draft) else p for p in parsed.pieces])


def _make_format(suffix: str) -> Format:
    return Format(suffix, partial(_parse_legacy_file, suffix=suffix))


DOC, XLS, PPT = map(_make_format, ("doc", "xls", "ppt"))
