"""A machine that has not what is needed: each ends in a sentence that says what to do."""

import errno
import os
import signal
import socket

import pytest

from stagewire.errors import ExitCode

pytestmark = pytest.mark.integration


def refusal(program, *arguments, before=(), code=ExitCode.REFUSED):
    result = program.run("up", "--plan", program.plan(), *arguments, before=before)
    assert result.returncode == code, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert not (program.state / "endpoint.json").exists()
    assert list(program.temporary.iterdir()) == []
    return " ".join(result.stderr.split())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_a_port_that_another_program_has(program, host):
    with socket.create_server((host, 0)) as other:
        port = other.getsockname()[1]
        said = refusal(program, "--listen", f"{host}:{port}", code=ExitCode.HELD)
    assert f"{host}:{port} is taken by another program" in said
    assert "choose another port with --listen" in said


@pytest.mark.parametrize("count", [12, 40, 95])
def test_too_few_files_may_be_open(program, count):
    said = refusal(program, before=limited(count))
    assert f"may open {count} files and needs up to 96; raise it with `ulimit -n 96`" in said


@pytest.mark.parametrize("option", ["", "-S"])
def test_files_as_few_as_it_needs_or_as_it_may_raise_itself_are_enough(program, option):
    count = 96 if not option else 20
    up = program.start("up", "--plan", program.plan(), before=limited(count, option))
    up.wait_for("READY")
    up.send(signal.SIGTERM)
    assert up.end() == 0


def limited(count, option=""):
    return ("sh", "-c", f'ulimit {option} -n {count}; exec "$@"', "sh")


@pytest.mark.parametrize("locale", ["C", "POSIX", "none.of.that.name", ""])
def test_any_locale(program, locale):
    program.environment |= {"LC_ALL": locale, "LANG": locale, "PYTHONCOERCECLOCALE": "0"}
    up = program.up(program.plan())
    up.send(signal.SIGTERM)
    assert up.end() == 0


def test_a_plan_that_cannot_be_read(program):
    result = program.run("up", "--plan", "long" * 100)
    assert result.returncode == ExitCode.USAGE
    assert f"cannot be read: {os.strerror(errno.ENAMETOOLONG)}" in " ".join(result.stderr.split())
