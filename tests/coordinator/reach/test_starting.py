import asyncio
import json
import os
import resource
import sys
import threading
from pathlib import Path

import pytest

from coordinator.reach.starting import ExitStatus, StartOrder, process_starter
from coordinator.reach.worker_log import last_lines
from stagewire.errors import WorkerStartError
from stagewire.limits import LOG_BYTES

pytestmark = pytest.mark.integration
SECONDS = 60


@pytest.fixture
async def start(bare_environment, tmp_path):
    """Starts a module with the given code and closes it at the end."""
    started = []

    def start_module(code: str, **changed):
        module = bare_environment.write_module(f"module_{os.urandom(6).hex()}", code)
        order = {
            "python": bare_environment.python,
            "module": module,
            "log_path": tmp_path / "logs/worker.log",
            "thread_count": 3,
            "message": {"token": "secret", "parent_pid": os.getpid()},
        }
        started.append(process_starter().start(StartOrder(**(order | changed))))
        return started[-1]

    yield start_module
    for process in started:
        await asyncio.wait_for(process.aclose(), SECONDS)


@pytest.fixture
def log(tmp_path):
    return lambda: last_lines(tmp_path / "logs/worker.log", 1000)


async def ended(process) -> ExitStatus:
    return await asyncio.wait_for(process.wait(), SECONDS)


async def gone(pidfd: int) -> None:
    """Waits until the process behind a pidfd ended."""
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pidfd, seen.set)
    try:
        await asyncio.wait_for(seen.wait(), SECONDS)
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


async def read_fifo(path: Path) -> str:
    return await asyncio.wait_for(asyncio.to_thread(path.read_text), SECONDS)


@pytest.fixture
def fifo(tmp_path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


async def test_a_process_gets_its_start_line_and_its_end_is_reported(start, log):
    process = start("import sys; print(sys.stdin.readline()); sys.exit(7)")

    status = await ended(process)

    assert (status, str(status)) == (ExitStatus(7, None), "exit code 7")
    assert process.exit_status == status
    line = json.loads(log()[0])
    assert line.pop("record_descriptor") > 2
    assert line == {"token": "secret", "parent_pid": os.getpid()}
    assert not process.kill_group()


async def test_a_process_that_succeeds_at_once_is_reported_as_such(start):
    assert str(await ended(start("import os; os._exit(0)"))) == "exit code 0"


async def test_death_by_signal_is_told_from_an_exit_code(start, log):
    status = await ended(start("import ctypes; ctypes.string_at(0)"))

    assert str(status) == "killed by SIGSEGV"
    assert any("Segmentation fault" in line for line in log())


async def test_a_killed_process_is_reported(start):
    process = start("import sys; sys.stdin.read()")

    assert process.kill_group()

    assert str(await ended(process)) == "killed by SIGKILL"


async def test_closing_the_input_is_seen_by_the_process(start):
    process = start("import sys; sys.stdin.read(); sys.exit(3)")

    process.close_input()

    assert await ended(process) == ExitStatus(3, None)


async def test_a_process_sees_few_variables_and_its_own_session(start, log, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    monkeypatch.setenv("SOME_PASSWORD", "secret")
    code = "import json, os; print(json.dumps([dict(os.environ), os.getsid(0), os.getpid()]))"

    process = start(code, variables={"STAGEWIRE_EXTRA": "yes"})
    await ended(process)

    variables, session, pid = json.loads(log()[0])
    assert session == pid == process.pid
    assert not {"PYTHONPATH", "SOME_PASSWORD"} & set(variables)
    assert variables["STAGEWIRE_EXTRA"] == "yes"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        assert variables[name] == "3"


async def test_a_process_leaves_no_core_dump(start):
    process = start("import sys; sys.stdin.read()")

    assert resource.prlimit(process.pid, resource.RLIMIT_CORE) == (1, 1)


FLOOD = """
import os
piece = {piece}
for _ in range({bytes} // len(piece)):
    view = memoryview(piece)
    while view:
        view = view[os.write(2, view):]
print("the end")
"""


@pytest.mark.parametrize(
    "piece", ["b'x' * 65536", "b'a line of text\\n' * 4096", "bytes(range(256)) * 256"]
)
async def test_a_flood_of_output_neither_blocks_the_process_nor_fills_the_disk(
    start, tmp_path, piece
):
    process = start(FLOOD.format(piece=piece, bytes=100 << 20))

    assert await ended(process) == ExitStatus(0, None)

    sizes = [path.stat().st_size for path in (tmp_path / "logs").iterdir()]
    assert len(sizes) <= 2
    assert max(sizes) <= LOG_BYTES


async def test_the_last_words_of_a_process_are_in_its_log_when_its_end_is_reported(start, log):
    process = start("print('\\n'.join(f'line {n}' for n in range(5000))); raise SystemExit(1)")

    await ended(process)

    assert log()[-1] == "line 4999"


RECORDED = """
import json, os, sys
record = json.loads(sys.stdin.readline())["record_descriptor"]
{code}
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("code", "executions"),
    [
        ("os.pwrite(record, (7).to_bytes(8, sys.byteorder), 16)", {7}),
        ("os.pwrite(record, bytes([255]) * 9000, 0)", {2**64 - 1}),
        ("os.ftruncate(record, 0)", set()),
        ("os.ftruncate(record, 13)", set()),
    ],
    ids=["an execution", "garbage", "nothing", "half of one"],
)
async def test_what_a_process_noted_is_read_after_its_death_whatever_it_did_to_it(
    start, code, executions
):
    process = start(RECORDED.format(code=code))
    assert process.executing() <= executions
    await ended(process)

    assert process.executing() == executions
    await process.aclose()
    assert process.executing() == frozenset()


CHILD = """
import pathlib, subprocess, sys
code = "import sys; sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
fifo = pathlib.Path({fifo!r})
fifo.write_text(str(child.pid))
sys.stdin.readline()
sys.stdin.read()
{then}
"""


@pytest.mark.parametrize("then", ["import os; os._exit(0)", "import os; os.kill(os.getpid(), 9)"])
async def test_what_a_process_started_ends_with_it(start, fifo, then):
    process = start(CHILD.format(fifo=str(fifo), then=then))
    child = os.pidfd_open(int(await read_fifo(fifo)))

    process.close_input()
    await ended(process)

    await gone(child)


async def test_what_a_process_started_is_killed_with_it(start, fifo):
    process = start(CHILD.format(fifo=str(fifo), then=""))
    child = os.pidfd_open(int(await read_fifo(fifo)))

    process.kill_group()

    await gone(child)
    assert str(await ended(process)) == "killed by SIGKILL"


async def test_closing_kills_and_frees_everything(start, fifo, open_descriptors):
    # The first process makes the loop open what it keeps for itself.
    await start("").aclose()
    before = open_descriptors()
    process = start(CHILD.format(fifo=str(fifo), then=""))
    child = os.pidfd_open(int(await read_fifo(fifo)))

    await asyncio.wait_for(process.aclose(), SECONDS)

    await gone(child)
    assert open_descriptors() == before
    assert not process.kill_group()


async def test_an_interpreter_that_cannot_be_run_is_a_fault_that_leaves_nothing(
    start, tmp_path, open_descriptors
):
    before = open_descriptors()

    with pytest.raises(WorkerStartError, match="No such file"):
        start("", python=tmp_path / "no-python")

    assert open_descriptors() == before


async def test_a_start_line_that_could_block_is_not_sent(start):
    with pytest.raises(ValueError, match="4096"):
        start("", message={"token": "x" * 5000})


def test_an_order_shows_no_token_where_it_is_logged():
    order = StartOrder(Path("python"), "module", Path("log"), 1, {"token": "secret"})

    assert "secret" not in repr(order)


async def test_only_the_main_thread_starts_processes(start):
    raised = []

    def attempt():
        try:
            start("")
        except RuntimeError as error:
            raised.append(str(error))

    thread = threading.Thread(target=attempt)
    thread.start()
    await asyncio.to_thread(thread.join)

    assert "main thread" in raised[0]


TRACED = """
import ctypes, sys, time
PR_SET_PTRACER, ANY = 0x59616D61, ctypes.c_ulong(-1)
ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY, 0, 0, 0)
print("may be traced", flush=True)
time.sleep(600)
"""
TRACER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(0x4206, int(sys.argv[1]), None, None):
    sys.exit(os.strerror(ctypes.get_errno()))
print("traces", flush=True)
sys.stdin.read()
"""


async def test_a_process_that_dies_in_a_debugger_does_not_stop_the_loop(start, log):
    process = start(TRACED)
    while not log():  # noqa: ASYNC110 - the log is a file
        await asyncio.sleep(0.01)
    tracer = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", TRACER, str(process.pid)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await asyncio.wait_for(tracer.stdout.readline(), SECONDS) == b"traces\n"
    died = gone(os.pidfd_open(process.pid))
    process.kill_group()
    await died

    # Dead, and not to be reaped before its debugger has seen it: the loop goes on meanwhile.
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.wait(), 0.5)

    tracer.stdin.close()
    assert await asyncio.wait_for(tracer.wait(), SECONDS) == 0
    assert str(await ended(process)) == "killed by SIGKILL"
