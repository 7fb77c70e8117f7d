"""OpenCV with a stated number of threads."""

from collections.abc import Mapping
from typing import Any, Final

from stagewire.errors import EnvironmentBrokenError, TensorMismatchError
from stagewire.tensor import Array
from stagewire.worker.order import library_text

MOST_SIDE: Final = 16_384
"""Longest side of an image: OpenCV counts what it warps in 16 bits, and a line may lie aslant."""


class OpenCv:
    """The library, with the number of threads of one stage."""

    def __init__(self, thread_count: int) -> None:
        """Imports it.

        Raises:
            EnvironmentBrokenError: it cannot be imported.
        """
        try:
            import cv2
        except ImportError as error:
            raise EnvironmentBrokenError(
                f"OpenCV cannot be imported: {library_text(error)};"
                " build the environment from its lock"
            ) from error
        self._library: Any = cv2  # not everywhere installed where types are checked
        self._thread_count = thread_count
        self.claim_threads()

    def claim_threads(self) -> None:
        """Sets the number of threads, which belongs to the process and not to a stage."""
        if self._library.getNumThreads() != self._thread_count:
            self._library.setNumThreads(self._thread_count)

    @property
    def thread_settings(self) -> Mapping[str, str]:
        """Threads in force, read back from the library."""
        return {"opencv.threads": str(self._library.getNumThreads())}


def check_image(image: Array) -> None:
    """Checks that an image has pixels, and no more on a side than OpenCV takes.

    Raises:
        TensorMismatchError: it has none, or too many.
    """
    height, width = image.shape[:2]
    if not image.size:
        raise TensorMismatchError(f"the image has {width} by {height} pixels; send one with some")
    if max(height, width) > MOST_SIDE:
        raise TensorMismatchError(
            f"the image has {width} by {height} pixels and a side may have {MOST_SIDE};"
            " make it smaller"
        )
