"""A package index on this machine, and artifacts to pull."""

import hashlib
import http.server
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coordinator.artifacts.specification import Artifact, from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.plan.artifact_spec import ArtifactSpec

PULLER = Path(__file__).with_name("puller.py")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def describe(files) -> str:
    """A plan's description of an artifact, from {path: (sha256, size or None, [source, ...])}."""
    specs = [
        {"path": path, "sha256": digest, "size": size}
        | ({"join": sources} if len(sources) > 1 else {"from": sources[0]})
        for path, (digest, size, sources) in files.items()
    ]
    return json.dumps({"format": "test:raw", "licence": "MIT", "files": specs})


def make_artifact(files, name="model") -> Artifact:
    return from_spec(name, ArtifactSpec.model_validate_json(describe(files)))


@dataclass
class Bench:
    """A cache, a plan's folder, and the means to pull in this or another process."""

    root: Path
    base: Path
    store: ArtifactStore = field(init=False)
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def __post_init__(self):
        self.base.mkdir()
        self.store = ArtifactStore(self.root)

    make = staticmethod(make_artifact)
    sha256 = staticmethod(sha256)

    def local(self, content=b"weights" * 1000, *, path="model.bin", size=True, name="model"):
        """An artifact of one file that lies beside the plan."""
        (self.base / path).parent.mkdir(parents=True, exist_ok=True)
        (self.base / path).write_bytes(content)
        length = len(content) if size else None
        return make_artifact({path: (sha256(content), length, [f"file:{path}"])}, name)

    def pull(self, artifact, **options):
        reports = []
        self.store.pull(artifact, self.base, reports.append, **options)
        return reports

    def stored(self, artifact, index=0) -> Path:
        digest = artifact.files[index].sha256
        return self.root / "files" / "sha256" / digest[:2] / digest

    def everything(self) -> set[str]:
        """Every file in the cache apart from the locks."""
        return {
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_file() and path.parent.name != "locks"
        }

    def command(self, artifact, behaviour="pull", *, root=None):
        files = {
            file.path: (file.sha256, file.size_bytes, self.texts(file)) for file in artifact.files
        }
        request = {
            "root": str(root or self.root),
            "base": str(self.base),
            "artifact": describe(files),
            "behaviour": behaviour,
        }
        return [sys.executable, str(PULLER), json.dumps(request)]

    @staticmethod
    def texts(file):
        return [
            f"{part.wheel}@sha256:{part.wheel.sha256}#{part.path}"
            if hasattr(part, "wheel")
            else str(part)
            for part in file.parts
        ]

    def start(self, artifact, behaviour="pull"):
        process = subprocess.Popen(
            self.command(artifact, behaviour),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    @staticmethod
    def end(process):
        """Kills a process unless it ended."""
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def bench(tmp_path):
    bench = Bench(tmp_path / "cache", tmp_path / "plan")
    yield bench
    for process in bench.processes:
        bench.end(process)


class Index:
    """A simple package index of wheels made on the spot; counts downloads and can hold them up."""

    def __init__(self):
        self.wheels: dict[str, bytes] = {}
        self.downloads: list[str] = []
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def add(self, name, members, served=None) -> str:
        """Offers version 1.0 of a wheel; returns `pypi:...#` to which a member is appended."""
        info = f"{name}-1.0.dist-info"
        texts = {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        contents = {**members, **texts}
        record = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            for path, content in {**contents, f"{info}/RECORD": record.encode()}.items():
                archive.writestr(path, content)
        wheel = stream.getvalue()
        self.wheels[name] = wheel if served is None else served(wheel)
        return f"pypi:{name}==1.0@sha256:{sha256(wheel)}#"

    def make_server(self):
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, _, name = self.path.strip("/").partition("/")
                if kind == "simple" and name in index.wheels:
                    file = f"{name}-1.0-py3-none-any.whl"
                    self.answer(f'<a href="/wheels/{file}">{file}</a>'.encode())
                elif kind == "wheels":
                    index.send(self, name.partition("-")[0])
                else:
                    self.send_error(404)

            def do_HEAD(self):
                self.send_error(405)

            def answer(self, body):
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def send(self, handler, name):
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


@pytest.fixture
def index(monkeypatch):
    index = Index()
    server = index.make_server()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    try:
        yield index
    finally:
        index.may_go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def no_network(monkeypatch):
    """An index at which nobody listens."""
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")


@pytest.fixture
def in_small_disk():
    """Runs a command that sees a small empty disk, which goes with it, at a folder."""

    def run(command, folder: Path, size: str):
        folder.mkdir(exist_ok=True)
        rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        script = 'mount -t tmpfs -o "size=$1" tmpfs "$2" && shift 2 && exec "$@"'
        return subprocess.run(
            ["unshare", "--mount", *rights, "sh", "-c", script, "sh", size, str(folder), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
