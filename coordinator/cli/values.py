"""Values of `coordinator run --input`: what stands behind `port=VALUE`."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import typer

from stagewire.client import audio, image, text
from stagewire.errors import FieldInvalidError, MediaInvalidError
from stagewire.limits import MEDIA_BYTES
from stagewire.ports import Port
from stagewire.tensor import DataType, Value

_IMAGES: Final = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff"}


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """Returns `port=VALUE` texts as a mapping.

    Raises:
        BadParameter: one has another form, or a port is given twice.
    """
    found: dict[str, str] = {}
    for item in texts:
        port, separator, value = item.partition("=")
        if not separator or not port or not value:
            raise typer.BadParameter(f"{item!r} is not of the form port=VALUE", param_hint=option)
        if port in found:
            raise typer.BadParameter(f"{port!r} is given twice", param_hint=option)
        found[port] = value
    return found


def read_inputs(given: Mapping[str, str], ports: Iterable[Port]) -> dict[str, Value]:
    """Returns the values of a request; a WAV file also fills the port `rate`, if there is one.

    Raises:
        FieldInvalidError: there is no such input, one is missing, or a value is none.
        MediaInvalidError: a file cannot be read as what its name says.
    """
    known = {port.name: port for port in ports}
    values: dict[str, Value] = {}
    for name, value in given.items():
        if name not in known:
            raise FieldInvalidError(
                f"the pipeline has no input {name!r}; it has {', '.join(known) or 'none'}"
            )
        if value.startswith("@") and value.lower().endswith(".wav"):
            wave = audio(value[1:])
            values[name] = wave["audio"]
            if "rate" in known and "rate" not in given:
                values["rate"] = wave["rate"]
        else:
            values[name] = _value(value, known[name])
    missing = [f"{name} ({port})" for name, port in known.items() if name not in values]
    if missing:
        raise FieldInvalidError(f"the pipeline also takes {', '.join(missing)}; add --input")
    return values


def _value(value: str, port: Port) -> Value:
    if value.startswith("text:"):
        return text(value.removeprefix("text:"))
    if not value.startswith("@"):
        return _number(value, port)
    path = Path(value[1:])
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _array(path)
    if suffix in _IMAGES:
        return image(path)
    if suffix == ".txt" or port.data_type is DataType.UTF8:
        return text(path)
    raise FieldInvalidError(
        f"{path.name} for input {port.name!r}: its kind is not known;"
        " name a .wav, .txt, .npy or image file"
    )


def _array(path: Path) -> Value:
    try:
        if path.stat().st_size > MEDIA_BYTES:
            raise MediaInvalidError(f"{path.name} is over the limit of {MEDIA_BYTES} bytes; cut it")
        # Pickled objects run code when they are read.
        array: Value = np.load(path, allow_pickle=False)
    except OSError as error:
        raise MediaInvalidError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise MediaInvalidError(
            f"{path.name} is not an array: {error}; save it with numpy.save, without objects"
        ) from None
    return array


def _number(value: str, port: Port) -> Value:
    refusal = FieldInvalidError(
        f"{value!r} is no value for input {port.name!r}, which takes {port};"
        " write text:WORDS, @FILE or a number"
    )
    if port.data_type.is_string or port.data_type is DataType.BFLOAT16:
        raise refusal
    try:
        number = int(value) if port.data_type.name.startswith(("INT", "UINT")) else float(value)
        return np.asarray(number, port.data_type.spelling)
    except (ValueError, OverflowError):
        raise refusal from None
