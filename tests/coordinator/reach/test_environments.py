import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from coordinator.reach.foreign import foreign_environment
from coordinator.reach.tool import Phase
from stagewire.errors import (
    EnvironmentBrokenError,
    EnvironmentBuildError,
    EnvironmentMissingError,
)

pytestmark = pytest.mark.integration


def run_python(environment, code: str) -> str:
    result = subprocess.run(
        [environment.python, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def edited(environment) -> str:
    return run_python(environment, "import stagewire; print(getattr(stagewire, 'EDITED', ''))")


def attested(environment) -> dict[str, str]:
    code = (
        "import json; from stagewire.worker.attest import attest_distributions;"
        f"print(json.dumps(attest_distributions({list(environment.distributions)!r})))"
    )
    return {name: record for name, (_, record) in json.loads(run_python(environment, code)).items()}


def made_environments(checkout) -> list[str]:
    return [detail for phase, detail in checkout.reports if detail.startswith("making")]


def test_a_built_environment_runs_its_worker_and_attests_what_was_built(checkout, monkeypatch):
    monkeypatch.setenv("VIRTUAL_ENV", "/nonexistent/env")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent/modules")

    environment = checkout.builder().ensure(checkout.worker, is_download_allowed=True)

    run = subprocess.run(
        [environment.python, "-I", "-m", environment.worker_module],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "tiny runs\n"
    assert set(environment.distributions) == {"stagewire", "worker-tiny"}
    assert attested(environment) == environment.distributions
    assert run_python(environment, "import iniconfig, sys; print(sys.prefix)") == str(
        environment.folder
    )
    assert not list(checkout.home.glob(".building-*"))


def test_an_unchanged_checkout_needs_no_tool_at_all(built):
    environment = built.builder_without_tools().ensure(built.worker, is_download_allowed=False)

    assert attested(environment) == environment.distributions
    assert built.reports == []
    assert built.builder_without_tools().find(built.worker) == environment


def test_a_touched_file_or_a_cache_beside_the_sources_changes_nothing(built):
    os.utime(built.sdk_source, (0, 0))
    (built.sdk_source.parent / "__pycache__").mkdir()
    (built.sdk_source.parent / "__pycache__/x.pyc").write_bytes(b"x")

    assert built.builder_without_tools().find(built.worker) is not None


def test_editing_the_sdk_builds_another_environment_without_network(built, no_network):
    before = built.builder().ensure(built.worker, is_download_allowed=False)
    built.edit_sdk("second")
    assert built.builder_without_tools().find(built.worker) is None

    after = built.builder().ensure(built.worker, is_download_allowed=False)

    assert after.key != before.key
    assert (edited(before), edited(after)) == ("", "second")
    assert after.distributions["stagewire"] != before.distributions["stagewire"]


def test_going_back_to_older_sources_finds_their_environment_again(built):
    before = built.builder().ensure(built.worker, is_download_allowed=False)
    source = built.sdk_source.read_text()
    built.edit_sdk("second")
    built.builder().ensure(built.worker, is_download_allowed=False)

    built.sdk_source.write_text(source)

    assert built.builder_without_tools().find(built.worker) == before


def test_one_older_environment_is_kept(built):
    for text in ("second", "third", "fourth"):
        built.edit_sdk(text)
        newest = built.builder().ensure(built.worker, is_download_allowed=False)

    folders = [each for each in built.home.iterdir() if each.is_dir()]
    assert newest.folder in folders
    assert len(folders) == 2


def test_an_environment_that_is_in_use_is_never_replaced(built):
    used = built.builder().ensure(built.worker, is_download_allowed=False)
    with used.in_use(), used.in_use():
        for text in ("second", "third", "fourth"):
            built.edit_sdk(text)
            built.builder().ensure(built.worker, is_download_allowed=False)
        assert used.python.exists()

    built.edit_sdk("fifth")
    built.builder().ensure(built.worker, is_download_allowed=False)
    assert not used.python.exists()


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("at", ["making the environment", "Installed"])
def test_an_interrupted_build_is_built_again(checkout, at):
    def interrupt(phase, detail):
        if detail.startswith(at):
            raise Interrupted

    builder = checkout.builder(interrupt)
    with pytest.raises(Interrupted):
        builder.ensure(checkout.worker, is_download_allowed=True)
    assert checkout.builder().find(checkout.worker) is None

    environment = checkout.builder().ensure(checkout.worker, is_download_allowed=True)

    assert attested(environment) == environment.distributions
    assert not list(checkout.home.glob(".building-*"))


def remove_marker(environment):
    next(environment.folder.glob("*.json")).unlink()


def spoil_marker(environment):
    next(environment.folder.glob("*.json")).write_text('{"key": ')


def remove_interpreter(environment):
    environment.python.unlink()
    environment.python.symlink_to("/nonexistent/python")


def remove_library(environment):
    shutil.rmtree(next(environment.folder.glob("lib/*/site-packages/iniconfig-*.dist-info")))


def change_record(environment):
    record = next(environment.folder.glob("lib/*/site-packages/stagewire-*/RECORD"))
    record.write_text(record.read_text() + "other.py,,\n")


@pytest.mark.parametrize(
    "damage",
    [remove_marker, spoil_marker, remove_interpreter, remove_library, change_record],
)
def test_a_damaged_environment_is_built_again(built, damage):
    before = built.builder().ensure(built.worker, is_download_allowed=False)
    damage(before)
    assert built.builder().find(built.worker) is None

    after = built.builder().ensure(built.worker, is_download_allowed=False)

    assert (after.key, after.folder) == (before.key, before.folder)
    assert attested(after) == after.distributions
    assert len(made_environments(built)) == 1


def replaced(path, content):
    """Writes a file anew: the one before may be a hard link into the cache of uv."""
    path.unlink()
    path.write_text(content)


@pytest.mark.parametrize(
    "name", ["iniconfig/__init__.py", "worker_tiny/__main__.py", "stagewire/errors.py"]
)
@pytest.mark.parametrize("content", ["raise ImportError('damaged')\n", "", None])
def test_a_damaged_file_is_found_and_its_environment_built_anew(built, name, content):
    environment = built.builder().ensure(built.worker, is_download_allowed=False)
    file = next(environment.folder.glob(f"lib/*/site-packages/{name}"))
    before = file.read_bytes()
    file.unlink() if content is None else replaced(file, content)

    mended = built.builder().mend(built.worker, is_download_allowed=False)

    assert (mended.key, mended.folder) == (environment.key, environment.folder)
    assert attested(mended) == mended.distributions
    assert file.read_bytes() == before
    assert len(made_environments(built)) == 1


def test_a_whole_environment_is_left_as_it_is(built):
    environment = built.builder().ensure(built.worker, is_download_allowed=False)
    run_python(environment, "import iniconfig")

    assert built.builder_without_tools().mend(built.worker, is_download_allowed=False) is None
    assert made_environments(built) == []


def test_damage_in_the_cache_of_uv_is_named_with_its_remedy(checkout, monkeypatch):
    cache = checkout.folder / "uv"
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    environment = checkout.builder().ensure(checkout.worker, is_download_allowed=True)
    for root in (cache, environment.folder):
        for file in root.rglob("iniconfig/__init__.py"):
            file.write_text("DAMAGED = True\n")

    with pytest.raises(EnvironmentBrokenError, match="uv cache clean iniconfig"):
        checkout.builder().mend(checkout.worker, is_download_allowed=False)


def test_mending_does_not_build_anew_for_a_system_library(checkout):
    flag = checkout.folder / "installed"
    flag.touch()
    checkout.worker_source.write_text(needing(flag))
    checkout.builder().ensure(checkout.worker, is_download_allowed=True)
    flag.unlink()

    with pytest.raises(EnvironmentBrokenError, match="apt install libgomp1"):
        checkout.builder().mend(checkout.worker, is_download_allowed=False)
    assert len(made_environments(checkout)) == 1


def needing(flag):
    """A module that cannot be imported for want of a system library, unless there is a file."""
    return (
        f"import os\nif not os.path.exists({str(flag)!r}):\n    raise ImportError("
        "'libgomp.so.1: cannot open shared object file: No such file or directory')\n"
    )


def test_a_missing_system_library_is_named_with_its_package(checkout):
    flag = checkout.folder / "installed"
    checkout.worker_source.write_text(needing(flag))

    for _ in range(2):
        with pytest.raises(EnvironmentBrokenError, match="apt install libgomp1") as refusal:
            checkout.builder().ensure(checkout.worker, is_download_allowed=True)
        assert refusal.value.facts["library"] == "libgomp.so.1"
    flag.touch()

    # Once the library is there, the environment that was built is used as it is.
    checkout.builder_without_tools().ensure(checkout.worker, is_download_allowed=False)
    assert len(made_environments(checkout)) == 1


def test_a_worker_that_cannot_be_imported_is_refused_with_the_cause(checkout):
    checkout.worker_source.write_text("import module_that_is_not_there\n")

    with pytest.raises(EnvironmentBrokenError, match="No module named 'module_that_is_not_there'"):
        checkout.builder().ensure(checkout.worker, is_download_allowed=True)


def test_nothing_is_downloaded_without_permission(checkout, monkeypatch):
    monkeypatch.setenv("UV_CACHE_DIR", str(checkout.folder / "empty"))

    with pytest.raises(EnvironmentMissingError, match=r"licence MIT.*--yes") as refusal:
        checkout.builder().ensure(checkout.worker, is_download_allowed=False)

    estimate = checkout.builder().plan_download(checkout.worker)
    assert refusal.value.facts["worker"] == estimate.name == "worker-tiny"
    assert refusal.value.facts["size_bytes"] == str(estimate.size_bytes)
    assert 1_000 < estimate.size_bytes < 100_000
    assert checkout.builder().find(checkout.worker) is None


def test_with_permission_an_empty_cache_is_filled(checkout, monkeypatch):
    monkeypatch.setenv("UV_CACHE_DIR", str(checkout.folder / "empty"))

    environment = checkout.builder().ensure(checkout.worker, is_download_allowed=True)

    assert attested(environment) == environment.distributions


def test_packages_missing_from_the_cache_are_refused_too(built, monkeypatch):
    # The wheels are there, so that only the packages of the lock are missing.
    shutil.rmtree(built.home)
    monkeypatch.setenv("UV_CACHE_DIR", str(built.folder / "empty"))

    with pytest.raises(EnvironmentMissingError, match="worker-tiny"):
        built.builder().ensure(built.worker, is_download_allowed=False)


def test_a_lock_that_does_not_match_is_refused_with_the_words_of_the_tool(checkout):
    pyproject = checkout.worker / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("iniconfig>=2", "iniconfig>=1.9"))

    with pytest.raises(EnvironmentBuildError, match="lockfile"):
        checkout.builder().ensure(checkout.worker, is_download_allowed=True)


def test_a_project_that_cannot_be_built_shows_the_last_lines(checkout):
    (checkout.folder / "sdk/pyproject.toml").write_text("[project]\nname = 'stagewire'\n")

    with pytest.raises(EnvironmentBuildError, match="stagewire failed") as fault:
        checkout.builder().ensure(checkout.worker, is_download_allowed=True)

    assert len(fault.value.message.splitlines()) <= 21


def test_a_worker_for_another_python_is_refused_and_nothing_is_downloaded(checkout):
    pyproject = checkout.worker / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace(">=3.10", ">=3.99"))

    with pytest.raises(EnvironmentBuildError, match=r"3\.99"):
        checkout.builder().ensure(checkout.worker, is_download_allowed=True)


def test_a_folder_that_is_no_worker_is_refused(tmp_path, checkout):
    with pytest.raises(EnvironmentBuildError, match="no worker folder"):
        checkout.builder().ensure(tmp_path / "nothing", is_download_allowed=True)


def test_two_coordinators_build_once(checkout):
    found = []

    def ensure():
        found.append(checkout.builder().ensure(checkout.worker, is_download_allowed=True))

    threads = [threading.Thread(target=ensure) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found[0] == found[1]
    assert len(made_environments(checkout)) == 1


def test_a_build_can_be_stopped(checkout):
    builder = checkout.builder(
        lambda phase, detail: builder.stop() if phase is Phase.INSTALL else None
    )

    with pytest.raises(EnvironmentBuildError, match="stopped"):
        builder.ensure(checkout.worker, is_download_allowed=True)

    checkout.builder().ensure(checkout.worker, is_download_allowed=True)


def test_an_editable_environment_runs_the_checkout(checkout):
    before = checkout.builder(is_dev=True).ensure(checkout.worker, is_download_allowed=True)

    checkout.edit_sdk("at once")

    after = checkout.builder(is_dev=True, uv=checkout.folder / "none").find(checkout.worker)
    assert after == before
    assert edited(after) == "at once"
    assert attested(after) == after.distributions
    ordinary = checkout.builder().ensure(checkout.worker, is_download_allowed=True)
    assert ordinary.key != before.key


def test_an_interpreter_that_a_plan_names_is_asked_what_it_holds(built):
    environment = built.builder().ensure(built.worker, is_download_allowed=False)

    foreign = foreign_environment(environment.python, "worker_tiny")

    assert foreign.key == ""
    assert foreign.python == environment.python
    assert foreign.distributions == environment.distributions


def test_an_interpreter_without_the_worker_is_refused(bare_environment, tmp_path):
    with pytest.raises(EnvironmentBrokenError, match="worker_none and no stagewire"):
        foreign_environment(bare_environment.python, "worker_none")
    with pytest.raises(EnvironmentBrokenError, match="cannot be run"):
        foreign_environment(tmp_path / "python", "worker_none")
    with pytest.raises(EnvironmentBrokenError, match="does not answer"):
        foreign_environment(Path(shutil.which("true")), "worker_none")
