"""A client of one of the environments: sends tensors and compares every bit of what comes back.

Run as `python -I exchange.py STATE_FOLDER`; prints what it saw as one JSON document.
"""

import asyncio
import json
import platform
import sys
from pathlib import Path
from typing import Any, Final

import google.protobuf
import grpc
import numpy as np

from stagewire.client import connect, connect_async
from stagewire.descriptor import element_bits, elements_bytes
from stagewire.tensor import DataType, TensorDescriptor, Value, decode, encode

SHAPE: Final = (17, 19)
"""An odd number of elements, more than a byte has values."""
STRINGS: Final = ["", "a\0b", "\u00e4\u20ac\U0001f600 \u00e9", "e\u0301", " \n", "\uffff\ud7ff"]
LARGE_BYTES: Final = 8 << 20
SECONDS: Final = 300


def main() -> None:
    state = Path(sys.argv[1])
    seen: dict[str, Any] = {
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "protobuf": google.protobuf.__version__,
        "numpy": np.__version__,
        "types": one_of_each_type(state),
        "single": compared(state, "single", {"utf8": STRINGS[2], "bytes": b"\0\xff\n"}),
        "large": there_and_back(state),
        "by_async_client": asyncio.run(there_and_back_async(state)),
    }
    print(json.dumps(seen))


def one_of_each_type(state: Path) -> dict[str, bool]:
    """Says of each element type whether what came back is what was sent."""
    inputs = {item.spelling: tensor_of(item) for item in DataType}
    return compared(state, "types", inputs)


def compared(state: Path, pipeline: str, inputs: dict[str, Value]) -> dict[str, bool]:
    with connect(state) as client:
        outputs = client.run(pipeline, inputs, timeout=SECONDS).outputs
    return {port: is_same(list(outputs[port]), value) for port, value in inputs.items()}


def there_and_back(state: Path) -> dict[str, Any]:
    """Sends a tensor of many chunks through two workers."""
    sent = large_tensor()
    with connect(state) as client:
        call = client.infer("across", {"x": sent}, timeout=SECONDS)
        with call:
            values = [output.value for output in call]
        hops = [[hop.transport, hop.size_bytes] for hop in call.receipt.hops]
    return {"is_same": is_same(values, sent), "hops": hops}


async def there_and_back_async(state: Path) -> bool:
    sent = large_tensor()
    async with (
        connect_async(state) as client,
        client.infer("across", {"x": sent}, timeout=SECONDS) as call,
    ):
        values = [output.value async for output in call]
    return is_same(values, sent)


def tensor_of(data_type: DataType) -> Value:
    """Returns a tensor with every pattern of bits that a byte can have."""
    if data_type.is_string:
        strings = np.empty((2, 3), object)
        strings.flat = STRINGS if data_type is DataType.UTF8 else list(map(str.encode, STRINGS))
        return strings
    count = SHAPE[0] * SHAPE[1]
    size_bytes = elements_bytes(data_type, count)
    pattern = np.arange(size_bytes, dtype=np.int64) * 7 + 128
    if data_type is DataType.BOOL:
        pattern %= 2
    payload = (pattern % 256).astype(np.uint8)
    if count * element_bits(data_type) % 8:
        payload[-1] &= 0x0F
    return decode(TensorDescriptor(data_type, SHAPE, size_bytes), payload.tobytes())


def large_tensor() -> Value:
    # Any bits: of floats too, of which some are no numbers.
    generator = np.random.default_rng(7)
    return generator.integers(0, 256, LARGE_BYTES, np.uint8).view("<f4")


def is_same(values: list[Value], sent: Value) -> bool:
    return [bits_of(value) for value in values] == [bits_of(sent)]


def bits_of(value: Value) -> tuple[TensorDescriptor, bytes]:
    descriptor, payload = encode(value)
    return descriptor, bytes(payload)


if __name__ == "__main__":
    main()
