"""How a worker starts: bound to its parent, told by one line of standard input what it is."""

import json
import sys
from dataclasses import dataclass

import psutil

from stagewire.v1 import capability_pb2
from stagewire.worker.lifeline import bind_to_parent
from stagewire.worker.recorder import RECORDER


@dataclass(frozen=True, slots=True)
class Start:
    """What the coordinator tells a worker over standard input, where no other process reads it."""

    address: str
    token: str
    worker_id: str
    parent_pid: int
    environment_key: str
    distributions: tuple[str, ...]

    @staticmethod
    def identity() -> capability_pb2.ProcessIdentity:
        """Returns which process this is."""
        process = psutil.Process()
        return capability_pb2.ProcessIdentity(
            process_id=process.pid,
            created_ticks=int(process.create_time() * 1000),
            operating_system="windows" if sys.platform == "win32" else "linux",
        )


def read_start() -> Start:
    """Binds this process to its parent, reads the line and watches standard input from then on."""
    bind_to_parent()
    line = sys.stdin.buffer.readline()
    if not line:
        raise SystemExit("standard input ended before the start line; workers are started by `up`")
    fields = json.loads(line)
    start = Start(
        address=fields["address"],
        token=fields["token"],
        worker_id=fields["worker_id"],
        parent_pid=fields["parent_pid"],
        environment_key=fields.get("environment_key", ""),
        distributions=tuple(fields.get("distributions", ())),
    )
    bind_to_parent(start.parent_pid)
    record = fields.get("record_descriptor")
    if record is not None:
        RECORDER.open(record)
    if sys.platform == "linux":
        from stagewire.worker.lifeline_linux import end_with_input

        end_with_input()
    return start
