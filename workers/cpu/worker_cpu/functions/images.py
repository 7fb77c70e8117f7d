"""What functions on images ask of their ports."""

from typing import Final

from stagewire.errors import TensorMismatchError
from stagewire.tensor import DataType
from stagewire.worker.executor import StageOrder
from stagewire.worker.order import PortRule

CHANNELS: Final = 3
"""Red, green, blue."""
IMAGE_RULE: Final = PortRule("image", DataType.UINT8, ranks=(3,), is_stream=False)
"""One image, [height, width, 3]."""


def check_channels(order: StageOrder) -> None:
    """Checks that images of a stage have three channels, wherever its ports carry some.

    Raises:
        TensorMismatchError: a port has another number, or a varying one.
    """
    for port in (*order.inputs, *order.outputs):
        rank = len(port.dimensions)
        if port.name not in ("image", "canvas", "pixels", "crop"):
            continue
        # Images have their channels last, what models take has them behind the batch.
        axes = {2: CHANNELS} if rank == len("hwc") else {0: 1, 1: CHANNELS}
        for axis, extent in axes.items():
            dimension = port.dimensions[axis]
            if dimension.name or dimension.max_extent != extent:
                raise TensorMismatchError(
                    f"stage {order.stage_id}: dimension {axis} of port {port.name!r} is"
                    f" {dimension}; it must be {extent}",
                    stage=order.stage_id,
                    port=port.name,
                )
