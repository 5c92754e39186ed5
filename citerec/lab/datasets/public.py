"""Public corpora: files of GitHub repositories at a commit, fetched over HTTPS and checked.

A listing of a repository holds the git hash of each file. The sha256 of the listing is in the catalogue, so that a
fetched corpus is that of the figures, or an error. Nothing of the files comes with citerec or is passed on by it.
"""

import hashlib
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from citerec.errors import CiterecError, writing
from citerec.files.atomic import replacing
from citerec.types import Log, Progress

API = "https://api.github.com"
RAW = "https://raw.githubusercontent.com"
LARGEST = 4 * 2**20  # bytes; larger files were not at hand when the figures were made
AT_ONCE = 8  # files that are fetched at the same time
SECONDS = 60
TRIES = 3


class DatasetError(CiterecError):
    """A dataset that is not available, or differs from its description."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Files of a GitHub repository at a commit."""

    name: str  # owner/name
    commit: str
    files: str  # a regular expression for their paths
    listing: str  # sha256 of the lines "git hash, blank, path" of these files, by path

    @property
    def url(self) -> str:
        """Where people see the files."""
        return f"https://github.com/{self.name}/tree/{self.commit}"


def fetch_repository(
    repository: Repository, folder: Path, progress: Progress, log: Log
) -> dict[str, Path]:
    """Return the files of a repository by their paths; those that are not in `folder` by their hashes are fetched.

    DatasetError if the server cannot be reached, or the listing or a file is not the expected one.
    """
    import httpx

    log(f"fetching {repository.url}")
    with httpx.Client(follow_redirects=True, timeout=SECONDS) as client:

        def get(url: str) -> httpx.Response:
            for left in reversed(range(TRIES)):
                try:
                    return client.get(url).raise_for_status()
                except (httpx.HTTPError, httpx.InvalidURL) as error:
                    why = f"{url} cannot be fetched ({error})"
                    if isinstance(error, httpx.ConnectError):
                        why = f"{urlsplit(url).netloc} cannot be reached; it needs a connection"
                    if not left:
                        raise DatasetError(
                            f"{why}; what was fetched is kept, so run the command again"
                        ) from error
            raise AssertionError

        def load(path: str) -> Path:
            file = folder / hashes[path]
            if not file.is_file():
                url = f"{RAW}/{repository.name}/{repository.commit}/{quote(path)}"
                content = get(url).content
                if _git_hash(content) != hashes[path]:
                    raise DatasetError(f"{url} is another file than that of the commit")
                with replacing(file) as temporary:
                    temporary.write_bytes(content)
            return file

        url = f"{API}/repos/{repository.name}/git/trees/{repository.commit}?recursive=1"
        hashes = _listed(get(url).json(), repository, url)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        files: dict[str, Path] = {}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for path, file in zip(hashes, pool.map(load, hashes), strict=True):
                files[path] = file
                progress("files", len(files), len(hashes))
    return files


def _git_hash(content: bytes) -> str:
    head = b"blob %d\0" % len(content)
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def _listed(answer: Any, repository: Repository, url: str) -> dict[str, str]:
    """Return the git hash of each file of a repository that is to be fetched, by path."""
    entries: list[Mapping[str, Any]] = answer.get("tree", [])
    hashes = {
        str(entry["path"]): str(entry["sha"])
        for entry in sorted(entries, key=lambda entry: str(entry["path"]))
        if entry["type"] == "blob"
        and re.fullmatch(repository.files, entry["path"])
        and entry["size"] < LARGEST
    }
    lines = "".join(f"{digest} {path}\n" for path, digest in hashes.items())
    found = hashlib.sha256(lines.encode()).hexdigest()
    if found != repository.listing:
        raise DatasetError(
            f"{url} lists other files than expected (sha256 {found[:12]}, expected {repository.listing[:12]})"
        )
    return hashes
