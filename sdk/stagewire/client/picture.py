"""Images as pixels, by Pillow: three colours of 8 bits, the right way up, on white."""

import io
import struct
import threading
import warnings
from typing import Any, Final

import numpy as np

from stagewire.errors import MediaInvalidError
from stagewire.limits import IMAGE_PIXELS
from stagewire.tensor import Array

KINDS: Final = frozenset(
    {"a PNG image", "a JPEG image", "a WebP image", "a BMP image", "a GIF image", "a TIFF image"}
)
"""What is read, as `kind_of` names it."""
TO_PNG: Final = "save it as PNG, for example with `magick IN OUT.png`"
_FORMATS: Final = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")
_FAILURES: Final = (
    *(OSError, ValueError, SyntaxError, EOFError, struct.error, TypeError, AttributeError),
    *(ArithmeticError, LookupError, RuntimeError, MemoryError),
)
"""What Pillow raises on damaged files; its decoders agree on no class."""
_ONE_AT_A_TIME: Final = threading.Lock()
"""Filters of warnings are those of the process; and a large picture takes some 700 MB."""
_KIND_OF_PAGE, _BITS, _INTERPRETATION = 254, 258, 262
"""Tags of TIFF."""
_DEEP: Final = 16
_UNREAD_MODES: Final = {
    "F": "floating-point numbers of unknown range",
    "I": "32-bit numbers of unknown range",
    "LAB": "CIELAB colours, which are not read",
}
"""Modes of Pillow; it would clip them, or fail without a word."""


def check_library(name: str) -> None:
    """Checks that images can be read at all, before a file is.

    Raises:
        MediaInvalidError: Pillow is not installed; the message says how to get it.
    """
    try:
        # Optional: only readers of images need it.
        import PIL.Image  # type: ignore[import-not-found,unused-ignore] # noqa: F401
    except ImportError:
        raise MediaInvalidError(
            f"reading {name} needs Pillow: `pip install 'stagewire[image]'`; or pass a uint8 array"
            " of shape [height, width, 3]"
        ) from None


def read_picture(raw: bytes, kind: str, name: str) -> Array:
    """Returns the pixels of an image as uint8 [height, width, 3].

    Raises:
        MediaInvalidError: it is damaged, too large, or has no one picture of known colours.
    """
    from PIL import Image

    with _ONE_AT_A_TIME, warnings.catch_warnings():
        # The limit below is stricter than the one that Pillow warns about.
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(raw), formats=_FORMATS) as opened:
                _check_size(opened, name)
                if opened.format == "TIFF":
                    _check_pages(opened, name)
                return _pixels(opened, raw, name)
        except Image.DecompressionBombError:
            raise MediaInvalidError(
                f"{name} has over {IMAGE_PIXELS} pixels; make it smaller"
            ) from None
        except _FAILURES as error:
            problem = f"is {kind} that cannot be read ({_reason(error)})"
            raise MediaInvalidError(f"{name} {problem}; copy it again, or {TO_PNG}") from None


# Any: Pillow is optional, and a checker may not have it.


def _check_size(opened: Any, name: str) -> None:
    width, height = opened.size
    if width * height > IMAGE_PIXELS:
        raise MediaInvalidError(
            f"{name} has {width} by {height} pixels, over {IMAGE_PIXELS}; make it smaller"
        )
    if width * height == 0:
        raise MediaInvalidError(f"{name} has no pixels; choose another image")


def _check_pages(opened: Any, name: str) -> None:
    """Checks that a TIFF file has one picture: the others may be smaller ones of the same."""
    if opened.tag_v2.get(_KIND_OF_PAGE, 0) & 1:
        raise _unread(name, "begins with a preview of its picture, as raw photos do")
    try:
        opened.seek(1)
        is_preview = bool(opened.tag_v2.get(_KIND_OF_PAGE, 0) & 1)
        opened.seek(0)
    except EOFError:
        return
    if not is_preview:
        raise _unread(name, "has several pages; choose one")


def _pixels(opened: Any, raw: bytes, name: str) -> Array:
    from PIL import Image, ImageOps

    held = _UNREAD_MODES.get(opened.mode)
    if held and not (opened.mode == "I" and opened.format == "PNG"):
        raise _unread(name, f"holds {held}")
    ImageOps.exif_transpose(opened, in_place=True)
    if opened.mode.startswith("I"):
        return _shallow(opened)
    if not opened.has_transparency_data:
        return np.array(opened.convert("RGB"))
    if opened.format == "PNG" and opened.mode == "RGB" and raw[24] == _DEEP:
        raise _unread(name, "makes one colour of 16 bits transparent")
    layer = opened.convert("RGBA")
    white = Image.new("RGB", layer.size, "white")
    white.paste(layer, mask=layer.getchannel("A"))
    return np.array(white)


def _shallow(opened: Any) -> Array:
    """Returns grey values of up to 16 bits as three colours of 8: the upper ones, as of colours."""
    grey = np.asarray(opened).astype(np.uint16)
    bits = _DEEP
    tags = opened.tag_v2 if opened.format == "TIFF" else {}
    if tags:
        bits = int(tags.get(_BITS, (_DEEP,))[0])
        if tags.get(_INTERPRETATION) == 0:
            grey = ((1 << bits) - 1) - grey
    clear = opened.info.get("transparency")
    if isinstance(clear, int):
        grey[grey == clear] = (1 << bits) - 1
    return np.repeat((grey >> (bits - 8)).astype(np.uint8)[:, :, None], 3, axis=2)


def _reason(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return "it is damaged" if "BytesIO" in text else text[:80]


def _unread(name: str, problem: str) -> MediaInvalidError:
    return MediaInvalidError(f"{name} {problem}; {TO_PNG}")
