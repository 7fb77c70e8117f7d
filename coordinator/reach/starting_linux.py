"""Processes on Linux: own session, drained output, death seen through a pidfd."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import subprocess
import threading
from collections.abc import Mapping
from typing import Any, Final

from coordinator.artifacts.trouble import said
from coordinator.reach.starting import START_LINE_BYTES, ExitStatus, StartOrder
from coordinator.reach.variables import worker_environment
from coordinator.reach.worker_log import WorkerLog
from stagewire.errors import WorkerStartError
from stagewire.record import RECORD_BYTES, noted

_READ_BYTES: Final = 64 << 10
_LAST_READS: Final = 16
"""Reads of what a dead process left in its pipe: enough for a full one, should others write on."""
_REAP_SECONDS: Final = 0.05
_NO_CORE_DUMP: Final = (1, 1)
"""Not zero: one byte also stops the kernel from piping a core to a program, which zero does not."""


class LinuxProcessStarter:
    """Starts processes on Linux."""

    def start(self, order: StartOrder) -> "LinuxProcess":
        """Starts a worker as `python -I -m module` in a session of its own.

        Raises:
            WorkerStartError: the operating system does not start it.
        """
        if threading.current_thread() is not threading.main_thread():
            # The parent-death signal comes when the thread that started the process ends.
            raise RuntimeError("workers are started from the main thread only")
        with contextlib.ExitStack() as undo:
            try:
                record = os.memfd_create("record")
                undo.callback(os.close, record)
                os.ftruncate(record, RECORD_BYTES)
                line = _start_line({**order.message, "record_descriptor": record})
                process = self._start(order, record, undo)
            except OSError as error:
                raise WorkerStartError(
                    f"{order.module} cannot be started: {said(error)}; log {order.log_path}"
                ) from error
            undo.pop_all()
        process.send(line)
        return process

    def _start(self, order: StartOrder, record: int, undo: contextlib.ExitStack) -> "LinuxProcess":
        log = WorkerLog(order.log_path)
        undo.callback(log.close)
        input_reader, input_writer = os.pipe()
        output_reader, output_writer = os.pipe()
        undo.callback(os.close, input_writer)
        undo.callback(os.close, output_reader)
        try:
            popen = subprocess.Popen(
                [order.python, "-I", "-X", "faulthandler", "-m", order.module],
                env=worker_environment(order.thread_count, order.variables),
                cwd="/",
                stdin=input_reader,
                stdout=output_writer,
                stderr=output_writer,
                start_new_session=True,
                pass_fds=(record,),
            )
        finally:
            os.close(input_reader)
            os.close(output_writer)
        undo.callback(popen.wait)
        undo.callback(popen.kill)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(popen.pid, resource.RLIMIT_CORE, _NO_CORE_DUMP)
        pidfd = os.pidfd_open(popen.pid)
        return LinuxProcess(popen, pidfd, input_writer, output_reader, record, log)


def _start_line(message: Mapping[str, Any]) -> bytes:
    line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    if len(line) > START_LINE_BYTES:
        raise ValueError(f"a start line has {len(line)} bytes, more than {START_LINE_BYTES}")
    return line


class LinuxProcess:
    """One process that this coordinator started, until it is let go of."""

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        pidfd: int,
        input_writer: int,
        output_reader: int,
        record: int,
        log: WorkerLog,
    ) -> None:
        self._popen = popen
        self._pidfd = pidfd
        self._input: int | None = input_writer
        self._output: int | None = output_reader
        self._record: int | None = record
        self._log = log
        self._exit_status: ExitStatus | None = None
        self._is_closed = False
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(output_reader, False)
        self._loop.add_reader(output_reader, self._on_output)
        self._loop.add_reader(pidfd, self._on_end)

    @property
    def pid(self) -> int:
        """Its process id; stays its own until `wait` has returned."""
        return self._popen.pid

    @property
    def exit_status(self) -> ExitStatus | None:
        """How it ended; None while it lives."""
        return self._exit_status

    def executing(self) -> frozenset[int]:
        """Returns the executions that it noted to run; after its death those that it died with."""
        # Read, not mapped: what a worker does to the memory must not end this process.
        return (
            frozenset() if self._record is None else noted(os.pread(self._record, RECORD_BYTES, 0))
        )

    def send(self, line: bytes) -> None:
        """Writes its start line."""
        # A process that is dead already is reported by its pidfd, with its exit status.
        with contextlib.suppress(BrokenPipeError):
            if self._input is not None:
                os.write(self._input, line)

    async def wait(self) -> ExitStatus:
        """Returns when it ended. By then its process group is killed and its log is complete."""
        await self._ended.wait()
        if self._exit_status is None:
            raise RuntimeError("a process that ended has an exit status")
        return self._exit_status

    def close_input(self) -> None:
        """Closes its standard input, which asks it to end itself."""
        if self._input is not None:
            os.close(self._input)
            self._input = None

    def kill_group(self) -> bool:
        """Kills it and what it started; says whether there was anything left to kill."""
        if self._exit_status is not None:
            return False
        # Nobody has reaped the leader yet, so that no other process can have its id or its group.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return True

    async def aclose(self) -> None:
        """Kills what is left of it, waits for its end and frees everything that is held of it."""
        self.kill_group()
        await self._ended.wait()
        if self._output is not None:
            self._close_output(self._output)
        self.close_input()
        if self._record is not None:
            os.close(self._record)
            self._record = None
        if not self._is_closed:
            self._log.close()
            self._is_closed = True

    def _on_output(self) -> None:
        if self._output is not None:
            self._drain(self._output)

    def _drain(self, output: int) -> bool:
        """Moves what one read gives into the log; says whether there may be more."""
        try:
            content = os.read(output, _READ_BYTES)
        except BlockingIOError:
            return False
        if not content:
            self._close_output(output)
            return False
        self._log.append(content)
        return True

    def _close_output(self, output: int) -> None:
        self._loop.remove_reader(output)
        os.close(output)
        self._output = None

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        # Before it is reaped: its id still stands for its group and for nothing else.
        self.kill_group()
        return_code = self._popen.poll()
        if return_code is None:
            # A debugger that traces it is told first, and the loop must not wait for that.
            self._loop.call_later(_REAP_SECONDS, self._on_end)
            return
        self._exit_status = ExitStatus.from_return_code(return_code)
        os.close(self._pidfd)
        for _ in range(_LAST_READS):
            if self._output is None or not self._drain(self._output):
                break
        self._ended.set()
