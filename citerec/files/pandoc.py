"""Runs pandoc, which reads drafts and formats references, in its sandbox: it opens no file and no address by itself."""

import subprocess
from collections.abc import Sequence

from citerec.errors import MissingExtraError, extra

# where the system has no limit on processor time; a thesis of 300 pages takes 2
MAX_SECONDS = 30


def run_pandoc(
    options: Sequence[str], data: bytes, extra_name: str
) -> subprocess.CompletedProcess[bytes]:
    """Run pandoc on `data`; TimeoutError if it exceeds a limit, MissingExtraError if it is not installed."""
    with extra(extra_name):
        import pypandoc
    try:
        program = pypandoc.get_pandoc_path()
    except OSError:
        raise MissingExtraError("pandoc", extra_name) from None
    command = [program, "+RTS", "-M1G", "-RTS", "--sandbox", *options]
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=MAX_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    if done.returncode < 0:  # by a signal
        raise TimeoutError
    return done
