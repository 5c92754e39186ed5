"""Attack a running server, and write what was tried and what held to ATTACK.md.

    make attack

A server of the bundled sample runs as a process of its own that may open 256 files. While each attack runs, another
client sends a request every 0.2 s: each must be answered. The time is that of its slowest answer; the server has 10 s
for an answer. Memory is the peak of the server's process; each upload has a process of its own, with a limit of its
own. The last row needs nginx: two servers behind it restart in turn, as docs/guides/deploy.md shows, while 32 clients
send requests.
"""

import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from io import BytesIO
from itertools import pairwise, product
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx

from citerec.encode.machine import provenance

HERE = Path(__file__).resolve().parent
SAMPLE = HERE.parent / "citerec" / "sample" / "papers.jsonl"
NGINX_CONF = HERE.parent / "docs" / "deploy" / "nginx.conf"
TOKEN = "a-token-of-this-attack-0123456789"
ALLOWED = {"authorization": f"Bearer {TOKEN}"}
DRAFT = {"title": "Attention over long documents", "k": 5}
CITEREC = [sys.executable, "-m", "citerec"]
WORD_TYPE = (
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
)
Result = tuple[str, bool]  # what was tried, and whether it held


class Server:
    """A `citerec serve` of the sample."""

    def __init__(self, folder: Path, *options: str, files: int = 256) -> None:
        """Start it, and wait until it is ready."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self.folder, self.options, self.files = folder, options, files
        self.log = folder / f"log-{self.port}"
        self.start()

    def start(self) -> None:
        """Start the process on its port."""
        index = ["serve", "--index", str(self.folder / "indexes" / "sample")]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*CITEREC, *index, "--port", str(self.port), *self.options],
                stderr=log,
                preexec_fn=lambda: resource.setrlimit(  # noqa: PLW1509
                    resource.RLIMIT_NOFILE, (self.files, self.files)
                ),
            )
        while not is_ready(self.client()):
            if self.process.poll() is not None:
                sys.exit(self.log.read_text())
            time.sleep(0.1)

    def client(self, **headers: str) -> httpx.Client:
        """Return a client with the token."""
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers=ALLOWED | headers,
            timeout=120,
        )

    def connect(self) -> socket.socket:
        """Return a connection."""
        one = socket.create_connection(("127.0.0.1", self.port))
        one.settimeout(60)
        return one

    def raw(self, data: bytes) -> bytes:
        """Send bytes, then the end; return what comes."""
        with self.connect() as one, suppress(ConnectionError):
            one.sendall(data)
            with suppress(OSError):  # the server may have closed it
                one.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: one.recv(2**16), b""))
        return b""

    @property
    def peak(self) -> int:
        """The peak of its memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) >> 10

    def stop(self) -> None:
        """End it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def is_ready(client: httpx.Client) -> bool:
    """Return whether a server answers."""
    with suppress(httpx.TransportError):
        return client.get("/readyz").status_code == 200
    return False


SEEN: list[str] = []  # the text of each answer


def seen(answer: httpx.Response) -> int:
    """Keep the text of an answer; return its status."""
    SEEN.append(answer.text)
    return answer.status_code


# --- attacks


def tokens(server: Server) -> Iterator[Result]:
    """Send each route each method with wrong tokens."""
    with server.client() as client:
        paths = [
            *client.get("/openapi.json").json()["paths"],
            "/page/papers",
            "/page/example",
        ]
        paths += [
            "/page/draft",
            "/page/recommend",
            "/openapi.json",
            "/static/../v1/index",
            "//v1/index",
        ]
        for path, method in product(
            paths, ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")
        ):
            if path in ("/healthz", "/readyz"):
                continue
            for token in (
                "",
                "Bearer",
                "Bearer x",
                f"Bearer {TOKEN}x",
                f"Bearer {TOKEN[:-1]}",
            ):
                headers = {"authorization": token}
                answer = client.request(method, path, headers=headers)
                is_static = path.startswith("/static") and answer.status_code in (
                    404,
                    405,
                )
                yield f"{method} {path}", seen(answer) == 401 or is_static
            for odd in (
                f"Basic {TOKEN}",
                f"Bearer {TOKEN}é",
                f"Bearer {TOKEN},{TOKEN}",
            ):
                answer = client.request(
                    method, path, headers={b"authorization": odd.encode()}
                )
                yield odd, seen(answer) == 401 or path.startswith("/static")


def names(server: Server) -> Iterator[Result]:
    """Name another host, or come from another origin."""
    hosts = (
        "localhost:80@evil.com",
        "[::1]evil",
        "evil.com",
        "localhost.evil.com",
        "127.0.0.1.nip.io",
    )
    hosts += (
        "localhost:x",
        "",
        "localhost evil.com",
        "[::1",
        "0x7f.1",
        "localhost/evil.com",
    )
    for host in hosts:
        answer = server.raw(
            f"GET /v1/index HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        yield host, answer[9:12] in (b"421", b"400")
    with server.client() as client:
        own = f"localhost:{server.port}"
        for origin in (
            "https://evil.com",
            "null",
            f"http://{own}.evil.com",
            "http://localhost",
            "*",
        ):
            headers = {"origin": origin, "host": own}
            yield (
                origin,
                seen(client.post("/v1/recommend", json=DRAFT, headers=headers)) == 403,
            )
        headers = {"origin": f"http://{own}", "host": own}
        yield (
            "own",
            seen(client.post("/v1/recommend", json=DRAFT, headers=headers)) == 200,
        )


def malformed(server: Server) -> Iterator[Result]:
    """Send what is no HTTP, or ends in two places."""
    head = f"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    after = b"0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    lengths = (
        b"Content-Length: 6\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 6",
        b"Content-Length: 6\r\nContent-Length: 7",
        b"Content-Length: +6",
        b"Content-Length: 6, 7",
        b"Content-Length : 6",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding:\x0bchunked",
        b"Content-Length: 6\r\n Transfer-Encoding: chunked",
        b"Content-Length: 99999999999999999999",
        b"X: " + b"a" * 200_000,
        b"X\x00: a",
    )
    for length in lengths:
        answer = server.raw(head.encode() + length + b"\r\n\r\n" + after)
        yield (
            repr(length[:60]),
            answer[9:10] in (b"4", b"") and answer.count(b"HTTP/1.1 ") < 2,
        )
    for line in (
        b"\x16\x03\x01\x02\x00",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"\0" * 10_000,
    ):
        yield repr(line[:20]), server.raw(line)[9:12] in (b"400", b"421")


def slow_headers(server: Server) -> Iterator[Result]:
    """Open 400 connections, each of which sends headers for ever."""
    with ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(400)]
        for _ in range(40):
            for one in slow:
                with suppress(OSError):
                    one.sendall(b"GET / HTTP/1.1\r\nX: a\r\n" if not _ else b"X: a\r\n")
            time.sleep(0.5)
        for one in slow:
            one.settimeout(0.1)
            with suppress(ConnectionError):
                yield "a connection is closed", one.recv(1) == b""
    yield "the log is small", server.log.stat().st_size < 2**20


def slow_bodies(server: Server) -> Iterator[Result]:
    """Send the bodies of 100 requests by a byte a second."""
    head = f"POST /v1/recommend HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    with ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(50)]
        for one in slow:
            one.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode())
        for _ in range(14):
            for one in slow:
                with suppress(OSError):
                    one.sendall(b" ")
            time.sleep(1)
        for one in slow:
            with suppress(ConnectionError):
                yield "a slow body", one.recv(12) == b"HTTP/1.1 408"


def slow_readers(server: Server) -> Iterator[Result]:
    """Send 50 requests on each of 50 connections, and read no answer."""
    head = f"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(50):
            one = stack.enter_context(server.connect())
            with suppress(OSError):
                one.sendall(head.encode() * 50)
        time.sleep(5)
    yield "50 connections", True


def oversize(server: Server) -> Iterator[Result]:
    """Send more than a body may have."""
    with server.client() as client:

        def endless(size: int) -> Iterator[bytes]:
            yield from (b"a" * 2**20 for _ in range(size))

        for content in (
            b"a" * 17 * 2**20,
            endless(17),
            b"[" * 10_000_000,
            b'{"title": "' + b"a" * 10_000_000 + b'"}',
        ):
            with suppress(httpx.WriteError):
                yield (
                    "a body",
                    seen(client.post("/v1/recommend", content=content))
                    in (400, 413, 422),
                )


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the content of files that are small, and large or endless to a reader."""
    macros = "".join(
        f"\\def\\{b}{{{f'{chr(92)}{a}' * 8}}}" for a, b in pairwise("abcdefghijkl")
    )
    start = "\\documentclass{article}\\title{A}"
    yield (
        "macros.tex",
        f"{start}\\def\\a{{x}}{macros}\\begin{{document}}\\l\\end{{document}}".encode(),
    )
    yield (
        "input.tex",
        (f"{start}\\begin{{document}}" + "\\input{x}\n" * 350_000).encode(),
    )
    yield "quotes.md", b"---\ntitle: a\n---\n" + b">" * 100_000
    yield "deep.html", b"<html><title>A title</title><body>" + b"<div>" * 200_000
    yield (
        "many.bib",
        b"".join(
            b"@article{k%d, title={A title %d}}\n" % (n, n) for n in range(150_000)
        ),
    )
    yield "braces.bib", b"@article{k, title={" + b"{" * 5_000_000
    text = "<w:p><w:r><w:t>ab cd</w:t></w:r></w:p>"
    for name, body in (
        ("text.docx", f"<w:p><w:r><w:t>{'a' * 300_000_000}</w:t></w:r></w:p>"),
        ("many.docx", text * 2_000_000),
    ):
        yield name, word(body)
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(100):
            archive.writestr(f"{number}.tex", bytes(10_000_000))
    yield "bomb.zip", packed.getvalue()
    kids = b"<< /Type /Pages /Kids [" + b"3 0 R " * 200_000 + b"] /Count 200000 >>"
    yield (
        "kids.pdf",
        b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj "
        + kids
        + (
            b" endobj\n3 0 obj << /Type /Page /Parent 2 0 R >> endobj\ntrailer << /Root 1 0 R >>\n%%EOF"
        ),
    )


def word(body: str) -> bytes:
    """Return a Word document."""
    kind = "http://schemas.openxmlformats.org/"
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{kind}package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{WORD_TYPE}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{kind}package/2006/relationships">'
        f'<Relationship Id="r" '
        f'Type="{kind}officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{kind}wordprocessingml/2006/main">'
        f"<w:body>{body}</w:body></w:document>",
    }
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()


def uploads(server: Server) -> Iterator[Result]:
    """Upload bombs, two at a time, and a good draft with each pair."""
    good = {
        "files": ("good.docx", word("<w:p><w:r><w:t>Maps of trees</w:t></w:r></w:p>"))
    }
    with server.client() as client, ThreadPoolExecutor(2) as pool:

        def send(bomb: tuple[str, bytes]) -> Result:
            status = seen(client.post("/page/draft", files={"files": bomb}))
            return bomb[0], status in (200, 422, 504)

        results = pool.map(send, bombs())
        for _ in range(5):
            yield "a good upload", seen(client.post("/page/draft", files=good)) == 200
        yield from results


PROSE = "Maps of %d trees show %d hierarchies in little space on all screens. "


def prose(size: int) -> str:
    """Return so many characters of sentences, each without a reference."""
    text = "".join(PROSE % (n, n) for n in range(size // len(PROSE) + 1))
    return text[:size].rpartition(". ")[0] + "."


def sentences(server: Server) -> Iterator[Result]:
    """Send texts whose sentences are all searched: of 1 and 8 MB, which are refused, and the longest that is not."""
    with server.client() as client:
        for size in (1_000_000, 8_000_000):
            body = {"text": f"Maps\n\n{prose(size)}", "context": "all"}
            answer = client.post("/v1/recommend", json=body)
            yield (
                f"{size} characters",
                seen(answer) == 422 and " at most " in answer.text,
            )
        longest = "".join(PROSE % (n, n) for n in range(1_000))
        yield from answered_or_dropped(
            server, {"text": f"Maps\n\n{longest}", "context": "all"}
        )


def batches(server: Server) -> Iterator[Result]:
    """Send large requests that are allowed: 50 drafts of 250 words, and as much as a request may have."""
    drafts = [
        {"id": f"{n}", "title": f"Maps {n}", "abstract": prose(1_700)}
        for n in range(50)
    ]
    longest = [
        {"id": f"{n}", "title": f"Maps {n}", "abstract": prose(15_000)}
        for n in range(64)
    ]
    papers = [PROSE % (n, n) * 12 for n in range(10_000)]
    for body in (
        {"query": drafts, "explain": True},
        {"query": longest, "explain": True, "k": 1000, "diversity": 0.5},
        {"title": "Maps", "abstract": prose(199_000), "explain": True, "k": 1000},
        {"title": "Maps", "cited": papers},
    ):
        yield from answered_or_dropped(server, body)


def answered_or_dropped(server: Server, body: dict[str, Any]) -> Iterator[Result]:
    """Send a request; if its time is over before its work, nothing works on it two seconds later."""
    with server.client() as client:
        status = seen(client.post("/v1/recommend", json=body))
        yield f"a request of {len(str(body))} characters", status in (200, 504)
        time.sleep(2)
        in_flight = re.findall(
            r"citerec_requests_in_flight (\d+)", client.get("/metrics").text
        )
        yield "its work after that", int(in_flight[0]) <= 1  # that of the other client


def stops(server: Server) -> Iterator[Result]:
    """Stop other servers beside a large request: by one signal, and by two."""
    drafts = [
        {"id": f"{n}", "title": f"Maps {n}", "abstract": prose(15_000)}
        for n in range(64)
    ]
    body = {"query": drafts, "explain": True, "k": 1000}
    # seconds; the first waits 30 for requests in flight
    for signals, most in (
        (1, 40),
        (2, 3),
    ):
        other = Server(server.folder)
        with other.client() as client, ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.post, "/v1/recommend", json=body)
            time.sleep(2)
            start = time.monotonic()
            for _ in range(signals):
                other.process.send_signal(signal.SIGTERM)
                time.sleep(0.5)
            other.process.wait(120)
            yield f"{signals} signals", time.monotonic() - start < most
            answer.exception()


def page(server: Server) -> Iterator[Result]:
    """Open the page in Chromium under its policy, and run a script that is not its own."""
    from playwright.sync_api import sync_playwright

    policy = server.client().get("/").headers["content-security-policy"]
    yield "policy", "unsafe" not in policy and "default-src 'none'" in policy
    with sync_playwright() as api:
        browser = api.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(extra_http_headers=ALLOWED)
        violations: list[str] = []
        tab.on(
            "console",
            lambda one: (
                violations.append(one.text) if "Content Security" in one.text else None
            ),
        )
        tab.goto(f"http://127.0.0.1:{server.port}/")
        tab.wait_for_load_state("networkidle")
        yield "the page itself", not violations and tab.locator("form").count() > 0
        tab.evaluate(
            "document.body.innerHTML += '<img src=x onerror=\"window.hit = 1\">'"
        )
        tab.wait_for_timeout(500)
        yield (
            "an injected handler",
            tab.evaluate("window.hit") is None and bool(violations),
        )
        browser.close()


def paths(server: Server) -> Iterator[Result]:
    """Look for paths of the machine in all answers so far."""
    secret = (
        str(server.folder),
        str(Path.cwd()),
        str(Path.home()) + "/",
        tempfile.gettempdir() + "/",
        sys.prefix,
    )
    for text in SEEN:
        yield (
            "an answer",
            not any(one in text for one in (*secret, "site-packages", "Traceback")),
        )


# --- a restart behind a proxy


@contextmanager
def nginx(folder: Path, ports: tuple[int, int]) -> Generator[int]:
    """Run nginx with the site of docs/deploy before two servers; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    site = NGINX_CONF.read_text().replace(":8080", f":{port}")
    site = site.replace(":8000", f":{ports[0]}").replace(":8001", f":{ports[1]}")
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    conf = folder / "nginx.conf"
    conf.write_text(
        f"pid {folder}/pid; daemon off; events {{}} http {{ access_log off; {temporary} {site} }}"
    )
    process = subprocess.Popen(["nginx", "-e", folder / "nginx.log", "-c", conf])
    try:
        yield port
    finally:
        process.send_signal(signal.SIGQUIT)
        process.wait(60)


def restarts(folder: Path) -> Iterator[Result]:
    """Restart two servers in turn behind nginx, with another index, while 32 clients send requests."""
    servers = [
        Server(folder, "--allow-host", "localhost", files=1024) for _ in range(2)
    ]
    stop = Event()

    def ask(number: int) -> list[Result]:
        results: list[Result] = []
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while not stop.is_set():
                body = {
                    "title": f"Attention over {number} documents",
                    "reranker": "none",
                }
                try:
                    answer = client.post("/v1/recommend", json=body)
                    results.append(
                        (
                            answer.json().get("version", answer.text),
                            answer.status_code == 200,
                        )
                    )
                except httpx.TransportError as error:
                    results.append((repr(error), False))
        return results

    with (
        nginx(folder, (servers[0].port, servers[1].port)) as port,
        ThreadPoolExecutor(32) as pool,
    ):
        asked = [pool.submit(ask, number) for number in range(32)]
        subprocess.run(
            [
                *CITEREC,
                "index",
                str(SAMPLE),
                "--index",
                "indexes/sample",
                "--force",
                "--quiet",
            ],
            cwd=folder,
            check=True,
        )
        for one in servers:
            one.stop()
            one.start()
            time.sleep(3)
        stop.set()
        for future in asked:
            yield from future.result()
    for one in servers:
        one.stop()


# --- the report

ATTACKS: dict[str, Callable[[Server], Iterator[Result]]] = {
    "wrong tokens, on every route and method": tokens,
    "other hosts and origins": names,
    "malformed and smuggled requests": malformed,
    "400 connections that never end their headers": slow_headers,
    "50 bodies by a byte a second": slow_bodies,
    "2,500 requests whose answers nobody reads": slow_readers,
    "oversize and deep bodies": oversize,
    "bombs as LaTeX, Word, PDF, HTML, Markdown, BibTeX and .zip": uploads,
    "texts of 1 and 8 MB, each sentence of them; the longest that is allowed": sentences,
    "50 drafts at once, the largest requests that are allowed": batches,
    "SIGTERM, once and twice, beside a large request": stops,
    "scripts in the page": page,
    "paths of the machine in an answer": paths,
}


@contextmanager
def bystander(
    server: Server, times: list[float], failures: list[str]
) -> Generator[None]:
    """Send a good request every 0.2 s until the block ends."""
    stop = Event()

    def ask() -> None:
        while not stop.wait(0.2):
            start = time.monotonic()
            try:
                with server.client() as client:
                    status = client.post("/v1/recommend", json=DRAFT).status_code
                if status != 200:
                    failures.append(str(status))
            except httpx.TransportError as error:
                failures.append(repr(error))
            times.append(time.monotonic() - start)

    thread = Thread(target=ask)
    thread.start()
    yield
    stop.set()
    thread.join()


def row(
    name: str, results: list[Result], times: list[float], failures: list[str], peak: int
) -> str:
    """Return a row of the report; what did not hold is printed."""
    for what in {what for what, held in results if not held}:
        print(f"{name}: did not hold: {what[:200]}", file=sys.stderr)
    for failure in {*failures}:
        print(f"{name}: another client: {failure}", file=sys.stderr)
    held, worst = (
        sum(held for _, held in results),
        f"{max(times):.1f} s" if times else "",
    )
    others = f"{len(times) - len(failures):,} of {len(times):,}" if times else ""
    memory = f"{peak:,} MB" if peak else ""
    return f"| {name} | {len(results):,} | {held:,} | {others} | {worst} | {memory} |"


def main(words: list[str]) -> None:
    """Attack, and write the report; with words, print the rows whose names have one of these, and write nothing."""
    rows: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run(
            [*CITEREC, "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        (folder / "tokens").write_text(TOKEN)
        server = Server(
            folder, "--token-file", str(folder / "tokens"), "--timeout", "10"
        )
        for name, attack in ATTACKS.items():
            if words and not any(word in name for word in words):
                continue
            times, failures = list[float](), list[str]()
            with bystander(server, times, failures):
                results = [*attack(server)]
            rows.append(row(name, results, times, failures, server.peak))
            print(rows[-1], flush=True)
        server.stop()
        if words:
            return
        if shutil.which("nginx"):
            name = "two servers behind nginx restart in turn, 32 clients"
            rows.append(row(name, [*restarts(folder)], [], [], 0))
            print(rows[-1])
    head = "| attack | tried | held | requests of others answered | slowest of these | memory |"
    text = (__doc__ or "").partition("\n\n    make attack\n\n")[2]
    machine = provenance({})["machine"]
    about = f"{machine['processor']}, {machine['cores']} processors"
    lines = [
        "# The server under attack",
        "",
        "Made by `make attack`.",
        "",
        text.strip(),
        "",
        head,
    ]
    lines += ["|---|--:|--:|--:|--:|--:|", *rows, "", f"Machine: {about}."]
    (HERE / "ATTACK.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
