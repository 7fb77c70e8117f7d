"""Which relative paths are safe to join to a folder, on Linux and on Windows. Pure."""

from typing import Final

from stagewire.errors import PathForbiddenError

_COMPONENT_BYTES: Final = 255
_PATH_BYTES: Final = 1024
_DEVICE_NAMES: Final = frozenset(
    {"con", "prn", "aux", "nul"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10)}
)


def safe_parts(path: str) -> tuple[str, ...]:
    """Returns the components of a relative path that stays inside its folder on every system.

    Raises:
        PathForbiddenError: the path is absolute, climbs, or means something else on Windows.
    """
    parts = tuple(path.split("/"))
    problem = _problem_of_path(path) or next(filter(None, map(_problem_of_component, parts)), "")
    if problem:
        raise PathForbiddenError(
            f"the path {path[:_COMPONENT_BYTES]!r} {problem};"
            " write a plain relative path with forward slashes",
            path=path[:_COMPONENT_BYTES],
        )
    return parts


def _problem_of_path(path: str) -> str:
    if not path.isprintable():
        return "has a character that cannot be printed"
    if path.startswith("/"):
        return "is absolute"
    if "\\" in path or ":" in path:
        return "has a backslash or a colon, which Windows reads as another folder"
    if len(path.encode("utf-8", "surrogatepass")) > _PATH_BYTES:
        return f"is longer than {_PATH_BYTES} bytes"
    return ""


def _problem_of_component(component: str) -> str:
    if component == "..":
        return "climbs out of its folder"
    if component in {"", "."}:
        return "has an empty component"
    if component.endswith((".", " ")):
        return "has a component that ends in a dot or a space, which Windows drops"
    if component.split(".", maxsplit=1)[0].strip().lower() in _DEVICE_NAMES:
        return "has a component that is a device on Windows"
    if len(component.encode("utf-8", "surrogatepass")) > _COMPONENT_BYTES:
        return f"has a component longer than {_COMPONENT_BYTES} bytes"
    return ""
