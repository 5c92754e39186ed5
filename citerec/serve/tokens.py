"""Bearer tokens: a file of them, and the check of each request; plain ASGI, for any application."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any

import orjson

from citerec.bibliography.source import read_bytes
from citerec.errors import BadInputError

SHORTEST = 16  # characters of a token
_HOW = "make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'"

Message = Mapping[str, Any]
Application = Callable[
    [Any, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]
]


def read_tokens(path: Path) -> tuple[str, ...]:
    """Read a file of tokens: one a line; blank lines and those that start with `#` are skipped.

    Raises:
        BadInputError: If it cannot be read, has no token, or a token is too short or not of visible ASCII.
    """
    data, name = read_bytes(path)
    lines = list(enumerate(map(bytes.strip, data.splitlines()), start=1))
    tokens = [(number, line) for number, line in lines if line and not line.startswith(b"#")]
    if not tokens:
        raise BadInputError(name, f"this holds no token; {_HOW}")
    for number, token in tokens:
        if len(token) < SHORTEST or not all(0x21 <= byte <= 0x7E for byte in token):
            fault = f"expected a token of at least {SHORTEST} visible ASCII characters without blanks; {_HOW}"
            raise BadInputError(name, fault, line=number)
    return tuple(token.decode() for _, token in tokens)


class BearerTokens:
    """Lets requests with a token through to an application; answers the others by 401."""

    def __init__(
        self, application: Application, tokens: Iterable[str], *, public: Iterable[str] = ()
    ) -> None:
        """Prepare; the paths in `public` need no token."""
        self._application, self._public = application, frozenset(public)
        self._digests = [sha256(token.encode()).digest() for token in tokens]

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer a request."""
        is_http = scope["type"] in ("http", "websocket")
        if not is_http or scope["path"] in self._public or self._has_token(scope["headers"]):
            await self._application(scope, receive, send)
            return
        problem = {
            "type": "about:blank",
            "title": "Unauthorized",
            "status": 401,
            "detail": "this server needs a token; send the header: Authorization: Bearer TOKEN",
        }
        headers = [
            (b"content-type", b"application/problem+json"),
            (b"www-authenticate", b'Bearer realm="citerec"'),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": orjson.dumps(problem)})

    def _has_token(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        stated = next((value for name, value in headers if name == b"authorization"), b"")
        scheme, _, token = stated.partition(b" ")
        digest = sha256(token.strip()).digest()
        same = [compare_digest(digest, one) for one in self._digests]  # each one: constant time
        return scheme.lower() == b"bearer" and any(same)
