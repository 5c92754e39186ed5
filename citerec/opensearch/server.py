"""Talks to an OpenSearch index; the only module that imports opensearchpy."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from citerec.errors import OpenSearchError, extra

AT_ONCE = 64  # queries of one request
CHUNK_BYTES = 10 * 2**20  # of documents in one request; the server accepts 100 MiB
CHUNK = 1000  # documents of one request
RETRIES = 5  # of documents that a busy server puts off, after 2, 4, 8, ... seconds


@dataclass(frozen=True, slots=True)
class Found:
    """The hits of one query, best first: falling score, equal scores by rising id."""

    ids: tuple[str, ...]
    scores: tuple[float, ...]  # as the server computes them


class OpenSearchIndex:
    """An index, or an alias of one, on an OpenSearch server; it may be used by several threads."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        timeout: float = 60,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            url: The server, such as `https://search.example.org:9200`; a name and a password in it are not shown.
            name: The index.
            timeout: Seconds to wait for an answer.
            options: Further arguments of `opensearchpy.OpenSearch`, such as `http_auth` or `ca_certs`.

        Raises:
            MissingExtraError: If opensearchpy is not installed.
        """
        with extra("opensearch"):
            # by name, so that type checkers do not need the package
            self._library: Any = import_module("opensearchpy")
        self.name, self.url = name, _without_user(url)
        self._client: Any = self._library.OpenSearch(
            hosts=[url], timeout=timeout, **(options or {})
        )

    def exists(self) -> bool:
        """Whether the server has the index."""
        with self._answers():
            return bool(self._client.indices.exists(index=self.name))

    def create(self, body: Mapping[str, Any]) -> None:
        """Create the index."""
        with self._answers():
            self._client.indices.create(index=self.name, body=body)

    def mapping(self) -> Mapping[str, Any]:
        """Return the mapping of the index.

        Raises:
            OpenSearchError: If there is no such index, or the name is an alias of several.
        """
        with self._answers():
            found: Mapping[str, Any] = self._client.indices.get_mapping(index=self.name)
        if len(found) != 1:
            raise self._error(f"the alias names {len(found)} indexes; let it name one")
        [content] = found.values()
        return content["mappings"]

    def describe(self, meta: Mapping[str, Any]) -> None:
        """Write what the mapping says of the index as a whole, in place of what it said."""
        with self._answers():
            self._client.indices.put_mapping(index=self.name, body={"_meta": meta})

    def write(self, documents: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[int]:
        """Write documents, each in place of one with the same id; yield 1 for each.

        Args:
            documents: Ids and contents.

        Raises:
            OpenSearchError: If the server refuses one.
        """
        actions = (
            {"_op_type": "index", "_index": self.name, "_id": docid, "_source": content}
            for docid, content in documents
        )
        with self._answers():
            for is_written, item in self._library.helpers.streaming_bulk(
                self._client,
                actions,
                chunk_size=CHUNK,
                max_chunk_bytes=CHUNK_BYTES,
                max_retries=RETRIES,
                raise_on_error=False,
            ):
                if not is_written:
                    failed = item["index"]
                    reason = _reason(failed.get("error", failed))
                    raise self._error(f"it refuses the paper {failed.get('_id')!r}: {reason}")
                yield 1

    def count(self) -> int:
        """Make all written documents searchable; return their number."""
        with self._answers():
            self._client.indices.refresh(index=self.name)
            return int(self._client.count(index=self.name)["count"])

    def search(
        self, bodies: Sequence[Mapping[str, Any]], *, global_statistics: bool = False
    ) -> list[Found]:
        """Search by several requests, sent together; their hits are in the order of the requests.

        Args:
            bodies: Searches by `citerec.opensearch.bodies`.
            global_statistics: Whether scores use the statistics of all shards, and not those of each.

        Raises:
            OpenSearchError: If the server refuses a request, or a shard did not answer.
        """
        results: list[Found] = []
        header = {"index": self.name}
        if global_statistics:
            header["search_type"] = "dfs_query_then_fetch"
        for start in range(0, len(bodies), AT_ONCE):
            part = bodies[start : start + AT_ONCE]
            lines = [line for body in part for line in (header, body)]
            with self._answers():
                responses = self._client.msearch(body=lines)["responses"]
            results += [self._found(response) for response in responses]
        return results

    def _found(self, response: Mapping[str, Any]) -> Found:
        if "error" in response:
            reason = _reason(response["error"])
            raise self._missing() if response.get("status") == 404 else self._error(reason)
        shards = response["_shards"]
        if shards["failed"]:
            failures = shards.get("failures") or [{}]
            reason = _reason(failures[0].get("reason", "no reason is given"))
            raise self._error(
                f"{shards['failed']} of {shards['total']} shards did not answer ({reason}); "
                "the hits would not be complete"
            )
        if response["timed_out"]:
            raise self._error("the search ended before all papers were compared")
        hits = [hit["sort"] for hit in response["hits"]["hits"]]
        return Found(tuple(docid for _, docid in hits), tuple(float(score) for score, _ in hits))

    @contextmanager
    def _answers(self) -> Generator[None]:
        """Turn the errors of the client into one line."""
        errors = self._library.exceptions
        try:
            yield
        except errors.NotFoundError as error:
            raise self._missing() from error
        except errors.ConnectionError as error:
            reason = str(error.info or error.error)
            raise self._error(f"the server does not answer: {reason}; is it running?") from error
        except errors.TransportError as error:
            info = error.info if isinstance(error.info, Mapping) else {}
            reason = _reason(info.get("error", error.error))
            raise self._error(f"status {error.status_code}: {reason}") from error
        except (errors.OpenSearchException, KeyError, TypeError) as error:
            raise self._error(f"the answer is not one of OpenSearch ({error!r})") from error

    def _missing(self) -> OpenSearchError:
        return self._error(
            "there is no such index; copy the papers into it: citerec.opensearch.load"
        )

    def _error(self, reason: str) -> OpenSearchError:
        return OpenSearchError(f"OpenSearch at {self.url}, index {self.name!r}: {reason}")


def _reason(error: Any) -> str:
    """Return the innermost reason of an error of the server."""
    while isinstance(error, Mapping):
        causes = error.get("root_cause") or [None]
        inner = error.get("caused_by") or causes[0]
        if not isinstance(inner, Mapping):
            return str(error.get("reason") or error.get("type") or dict(error))
        error = inner
    return str(error)


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
