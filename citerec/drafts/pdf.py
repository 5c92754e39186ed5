"""Reads a draft from a PDF, by pypdf in a process of its own with limits on time and memory.

A PDF may be made to loop, to recurse or to fill the memory; the process ends then, and one line says so.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from citerec.drafts.document import Document
from citerec.drafts.prose import abstract_of, introduction_of
from citerec.errors import BadInputError, MissingExtraError

MAX_SECONDS = 20  # of a processor, for the first pages of one PDF
MAX_WAIT = 60  # seconds until the process ends
MAX_MEMORY = 2 * 2**30  # bytes of the process that reads it
_INSTEAD = "pass its text: pdftotext paper.pdf - | citerec recommend --query -"
_PROGRAM = "from citerec.drafts.pdf_process import main; main()"
_FAULTS = {
    "encrypted": "this one is encrypted; save it without a password",
    "no text": "this one has no text: it is a scan or a picture; run OCR first: ocrmypdf in.pdf out.pdf",
}


def read(data: bytes, name: str, path: Path | None) -> Document:
    """Read a PDF draft: the title by the largest font of page one, the abstract by its heading.

    Args:
        data: The PDF.
        name: The name of the draft in messages.
        path: Not used.

    Raises:
        BadInputError: If it is encrypted, damaged, has no text, or takes too much time or memory.
        MissingExtraError: If pypdf is not installed.
    """
    answer = _extracted(data, name)
    if missing := answer.get("missing"):
        raise MissingExtraError(str(missing), "drafts")
    if fault := answer.get("fault"):
        known = _FAULTS.get(fault)
        raise _unreadable(name, known or f"this one is damaged ({fault}); {_INSTEAD}")
    lines: list[str] = answer["lines"]
    abstract = abstract_of(lines)
    return Document(
        title=answer["title"],
        abstract=abstract,
        body="" if abstract else introduction_of(lines) or answer["rest"],
    )


def _unreadable(name: str, fault: str) -> BadInputError:
    return BadInputError(name, f"this is a PDF; citerec reads the text of a PDF, but {fault}")


def _extracted(data: bytes, name: str) -> dict[str, Any]:
    """Return what the process found in a PDF, or its fault."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder),
        "PYTHONIOENCODING": "utf-8",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _PROGRAM, str(MAX_MEMORY), str(MAX_SECONDS)],
            input=data,
            capture_output=True,
            timeout=MAX_WAIT,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        fault = f"the first pages of this one take more than {MAX_WAIT} seconds; {_INSTEAD}"
        raise _unreadable(name, fault) from None
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        fault = f"reading this one needs too much time or memory; {_INSTEAD}"
        raise _unreadable(name, fault) from None
    return answer
