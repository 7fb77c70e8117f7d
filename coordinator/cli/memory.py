"""Memory by attribution, for people: what each process holds, and what explains it."""

from pathlib import Path
from typing import Final

from coordinator.app.attribution import MemoryReport, Occupant
from coordinator.cli.screen import Screen
from coordinator.cli.spelling import spelled
from coordinator.cli.tables import against
from coordinator.devices.process_memory import ReadFailure
from coordinator.facts.sizes import format_size
from stagewire.client import Table
from stagewire.errors import ExitCode

_REMEDIES: Final = {
    ReadFailure.GONE: spelled("look again; `coordinator status` says whether it was started anew"),
    ReadFailure.DENIED: "look as the user who started the coordinator, outside of any container",
}


def show_memory(report: MemoryReport, screen: Screen, largest: int) -> None:
    """Shows a report, with that many of the largest mappings of each process."""
    screen.table(_processes(report), "Processes")
    screen.table(_attribution(report), "What explains it")
    screen.table(_stages(report), "What each load added")
    screen.table(_model_files(report), "Model files")
    screen.table(_mappings(report, largest), "Largest mappings")
    screen.line(f"\narena: {format_size(report.arena_bytes)}, for tensors travel inside messages")
    screen.line(
        f"together: {format_size(report.total_bytes)}; of that anonymous and models"
        f" {against(report.counted_bytes, report.reserved_bytes)} reserved, unexplained"
        f" {format_size(report.remainder_bytes)}"
    )
    for text in unread(report):
        screen.line(text)


def unread(report: MemoryReport) -> list[str]:
    """Returns a sentence for each process that could not be read."""
    return [
        f"{item.name}: process {reading.identity.pid} cannot be read: {reading.detail};"
        f" {_REMEDIES[reading.failure]}"
        for item in report.occupants
        for reading in item.unread
    ]


def exit_code(report: MemoryReport) -> ExitCode:
    """Returns how a report ends the command: as asked, as an accident, or as a refusal."""
    failures = {reading.failure for item in report.occupants for reading in item.unread}
    if ReadFailure.DENIED in failures:
        return ExitCode.REFUSED
    return ExitCode.FAULT if failures else ExitCode.OK


def as_json(report: MemoryReport, largest: int) -> dict[str, object]:
    """Returns a report as one document."""
    return {
        "arena_bytes": report.arena_bytes,
        "total_bytes": report.total_bytes,
        "counted_bytes": report.counted_bytes,
        "reserved_bytes": report.reserved_bytes,
        "remainder_bytes": report.remainder_bytes,
        "occupants": [_occupant(item, largest) for item in report.occupants],
        "model_files": report.model_files,
    }


def _occupant(item: Occupant, largest: int) -> dict[str, object]:
    sizes = {
        name: getattr(item, name)
        for name in Occupant.__dataclass_fields__
        if name not in {"processes", "unread"}
    }
    return sizes | {
        "is_over": item.is_over,
        "processes": [
            {
                "pid": process.identity.pid,
                "name": process.name,
                "anonymous_bytes": process.anonymous_bytes,
                "file_bytes": process.file_bytes,
                "shared_bytes": process.shared_bytes,
                "swap_bytes": process.swap_bytes,
                "mappings": process.mappings[:largest],
            }
            for process in item.processes
        ],
        "unread": [
            {"pid": reading.identity.pid, "failure": reading.failure, "detail": reading.detail}
            for reading in item.unread
        ],
    }


def _processes(report: MemoryReport) -> Table:
    return Table(
        ("of", "pid", "program", "anonymous", "files", "shared", "swap"),
        tuple(
            (
                item.name if number == 0 else f"  started by {item.name}",
                str(process.identity.pid),
                process.name,
                format_size(process.anonymous_bytes),
                format_size(process.file_bytes),
                format_size(process.shared_bytes),
                format_size(process.swap_bytes),
            )
            for item in report.occupants
            for number, process in enumerate(item.processes)
        ),
    )


def _attribution(report: MemoryReport) -> Table:
    return Table(
        ("of", "counted / reserved", "models", "base", "loads", "the rest / for requests", "share"),
        tuple(
            (
                item.name,
                against(item.counted_bytes, item.reserved_bytes),
                format_size(item.model_bytes),
                _or_dash(item.base_bytes),
                format_size(sum(share.anonymous_bytes for share in item.stages)),
                "-"
                if item.remainder_bytes is None
                else against(item.remainder_bytes, item.request_bytes),
                "-" if item.remainder_share is None else f"{100 * item.remainder_share:.0f} %",
            )
            for item in report.occupants
            if item.processes
        ),
    )


def _stages(report: MemoryReport) -> Table:
    return Table(
        ("stage", "of", "anonymous"),
        tuple(
            (share.stage, item.name, format_size(share.anonymous_bytes))
            for item in report.occupants
            for share in item.stages
        ),
    )


def _model_files(report: MemoryReport) -> Table:
    return Table(
        ("file", "artifact", "stage", "worker", "size", "mapped", "cached"),
        tuple(
            (
                Path(file.path).name,
                file.artifact,
                ", ".join(file.stages),
                file.worker,
                _or_dash(file.size_bytes),
                format_size(file.mapped_bytes),
                _or_dash(file.cached_bytes),
            )
            for file in report.model_files
        ),
    )


def _mappings(report: MemoryReport, largest: int) -> Table:
    return Table(
        ("of", "pid", "mapping", "kind", "share", "resident"),
        tuple(
            (
                item.name,
                str(process.identity.pid),
                _short(mapping.name),
                mapping.kind.value,
                format_size(mapping.pss_bytes),
                format_size(mapping.rss_bytes),
            )
            for item in report.occupants
            for process in item.processes
            for mapping in process.mappings[:largest]
        ),
    )


def _short(name: str) -> str:
    """Returns the end of a path, which is enough to recognise it."""
    *_, folder, file = ("", *name.rsplit("/", 2))[-2:]
    return f".../{folder}/{file}" if name.startswith("/") and folder else name


def _or_dash(size_bytes: int | None) -> str:
    return "-" if size_bytes is None else format_size(size_bytes)
