"""Which relative paths stay below their folder, on Linux and on Windows."""

from typing import Final

_PATH_CHARACTERS: Final = 512
_PATH_BYTES: Final = 1024
_PART_CHARACTERS: Final = 200
_PART_BYTES: Final = 255
# Superscript digits count as digits in them.
_DEVICE_NAMES: Final = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in "123456789¹²³"}
)


def problem_of_relative_path(path: str) -> str:
    """Returns why a path with `/` may leave its folder or be read in two ways, and what to change.

    The text continues a sentence that begins with the path; it is empty when the path is fine.
    """
    if not path.isprintable():
        return "has a NUL or another control or invisible character in a path; remove it"
    if "\\" in path or ":" in path:
        return r"has a \ or : in a path; write a relative path with /"
    if path.startswith("/"):
        return "is an absolute path; write one relative to the folder"
    if len(path) > _PATH_CHARACTERS:
        return f"is a path of {len(path)} characters; {_PATH_CHARACTERS} are allowed"
    if (size_bytes := len(path.encode())) > _PATH_BYTES:
        return f"is a path of {size_bytes} bytes; {_PATH_BYTES} are allowed"
    return next(filter(None, map(_problem_of_part, path.split("/"))), "")


def _problem_of_part(part: str) -> str:
    if part == "..":
        return 'has ".." in a path; name a file inside the folder'
    if part in {"", "."} or part != part.strip() or part.endswith("."):
        return "has an empty or ambiguous part in a path; write it plainly"
    if part.split(".", maxsplit=1)[0].strip().lower() in _DEVICE_NAMES:
        return "has a part in a path that names a device on Windows; rename it"
    if len(part) > _PART_CHARACTERS:
        return f"has a path part above {_PART_CHARACTERS} characters; shorten it"
    if len(part.encode()) > _PART_BYTES:
        return f"has a path part above {_PART_BYTES} bytes; shorten it"
    return ""
