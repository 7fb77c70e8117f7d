"""A package index on this machine, of wheels made on the spot, that fails as real ones do."""

import contextlib
import hashlib
import http.server
import io
import ssl
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

SELF_SIGNED: Final = Path(__file__).with_name("self_signed.pem")
"""Key and certificate of an index that nobody has a reason to trust; of no use elsewhere."""


def wheel_of(name: str, members: Mapping[str, bytes]) -> bytes:
    """Returns version 1.0 of a wheel."""
    information = f"{name}-1.0.dist-info"
    texts = {
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{information}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents = {**members, **texts}
    record = "".join(f"{path},,\n" for path in [*contents, f"{information}/RECORD"])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, content in {**contents, f"{information}/RECORD": record.encode()}.items():
            archive.writestr(path, content)
    return stream.getvalue()


class Index:
    """Counts downloads, can hold them up, and can answer with a status instead."""

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.downloads: list[str] = []
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.wheel_status = 200
        self.page_status = 200
        self.has_hashes = False
        """Whether its pages name the sha256 of wheels, which a lock takes from there."""
        self.address = ""

    def add(
        self,
        name: str,
        members: Mapping[str, bytes],
        served: Callable[[bytes], bytes] | None = None,
    ) -> str:
        """Offers version 1.0 of a wheel; returns `pypi:...#` to which a member is appended."""
        wheel = wheel_of(name, members)
        self.wheels[name] = wheel if served is None else served(wheel)
        return f"pypi:{name}==1.0@sha256:{hashlib.sha256(wheel).hexdigest()}#"

    @contextlib.contextmanager
    def serving(self, *, is_secure: bool = False) -> Iterator[str]:
        """Answers at the address that it gives until the block ends."""
        server = self._make_server()
        if is_secure:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(SELF_SIGNED)
            # During the handshake of each connection, not when it is accepted.
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        scheme = "https" if is_secure else "http"
        self.address = f"{scheme}://127.0.0.1:{server.server_port}/simple"
        try:
            yield self.address
        finally:
            self.may_go_on.set()
            server.shutdown()
            thread.join()
            server.server_close()

    def _make_server(self) -> http.server.ThreadingHTTPServer:
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                kind, _, name = self.path.strip("/").partition("/")
                if kind == "simple" and index.page_status != http.HTTPStatus.OK:
                    self.send_error(index.page_status)
                elif kind == "simple" and name in index.wheels:
                    file = f"{name}-1.0-py3-none-any.whl"
                    digest = hashlib.sha256(index.wheels[name]).hexdigest()
                    mark = f"#sha256={digest}" if index.has_hashes else ""
                    self.answer(f'<a href="/wheels/{file}{mark}">{file}</a>'.encode())
                elif kind == "wheels" and index.wheel_status != http.HTTPStatus.OK:
                    self.send_error(index.wheel_status)
                elif kind == "wheels":
                    index.send(self, name.partition("-")[0])
                else:
                    self.send_error(404)

            def do_HEAD(self) -> None:
                self.send_error(405)

            def answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_: Any) -> None:
                # Whoever does not trust the certificate hangs up.
                pass

        return Server(("127.0.0.1", 0), Handler)

    def send(self, handler: http.server.BaseHTTPRequestHandler, name: str) -> None:
        self.downloads.append(name)
        body = self.wheels[name]
        handler.send_response(200)
        handler.send_header("Content-Type", "application/octet-stream")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        half = len(body) // 2
        try:
            handler.wfile.write(body[:half])
            handler.wfile.flush()
            self.has_begun.set()
            self.may_go_on.wait()
            handler.wfile.write(body[half:])
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True
