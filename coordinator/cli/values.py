"""Values of `coordinator run --input`: what stands behind `port=VALUE`."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import typer

from stagewire.client import audio, image, text
from stagewire.client.contents import opened
from stagewire.client.given import typed
from stagewire.client.kinds import AUDIO_SUFFIXES, IMAGE_SUFFIXES
from stagewire.errors import FieldInvalidError, MediaInvalidError, TensorMismatchError
from stagewire.limits import MEDIA_BYTES
from stagewire.ports import Port
from stagewire.tensor import DataType, Value


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


def read_inputs(
    given: Mapping[str, str], ports: Iterable[Port], remedy: str = "add --input"
) -> dict[str, Value]:
    """Returns the values of a request; a recording also fills the port `rate`, if there is one.

    `remedy` is said of inputs that are missing.

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
        if value.startswith("@") and Path(value).suffix.lower() in AUDIO_SUFFIXES:
            recording = audio(value[1:])
            values[name] = recording["audio"]
            if "rate" in known and "rate" not in given:
                values["rate"] = recording["rate"]
        else:
            values[name] = _value(value, known[name])
    missing = [f"{name} ({port})" for name, port in known.items() if name not in values]
    if missing:
        raise FieldInvalidError(f"the pipeline also takes {', '.join(missing)}; {remedy}")
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
    if suffix in IMAGE_SUFFIXES:
        return image(path)
    if suffix == ".txt" or port.data_type is DataType.UTF8:
        return text(path)
    raise FieldInvalidError(
        f"{path.name} for input {port.name!r}: its kind is not known;"
        f" name one of {', '.join(sorted({*AUDIO_SUFFIXES, *IMAGE_SUFFIXES, '.npy', '.txt'}))}"
    )


def _array(path: Path) -> Value:
    with opened(path, MEDIA_BYTES) as content:
        raw = content.read()
    try:
        # Pickled objects run code when they are read.
        array: Value = np.load(io.BytesIO(raw), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise MediaInvalidError(
            f"{path.name} is not an array: {error}; save it with numpy.save, without objects"
        ) from None
    return array


def _number(value: str, port: Port) -> Value:
    refusal = FieldInvalidError(
        f"{value!r} is no value for input {port.name!r}, which takes {port};"
        " write text:WORDS, @FILE or a number"
    )
    if port.data_type.is_string:
        raise refusal
    try:
        number = int(value) if port.data_type.name.startswith(("INT", "UINT")) else float(value)
        return typed(port, number)
    except ValueError:
        raise refusal from None
    except TensorMismatchError as error:
        raise FieldInvalidError(f"input {error.message}") from None
