"""Types of ports: what may pass over an edge."""

import enum
from dataclasses import dataclass


class DataTypeName(enum.StrEnum):
    """Element types as plans spell them."""

    BOOL = "bool"
    INT4 = "int4"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT4 = "uint4"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    UTF8 = "utf8"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Extent:
    """Extent that one dimension may have: fixed when `name` is empty, else up to `max_extent`."""

    name: str
    max_extent: int

    def __str__(self) -> str:
        return f"{self.name}<={self.max_extent}" if self.name else str(self.max_extent)


@dataclass(frozen=True, slots=True)
class PortType:
    """Rules of the items of one port."""

    data_type: DataTypeName
    extents: tuple[Extent, ...] = ()
    is_stream: bool = False

    def __str__(self) -> str:
        shape = f"[{', '.join(map(str, self.extents))}]" if self.extents else ""
        return f"{'stream of ' if self.is_stream else ''}{self.data_type.value}{shape}"
