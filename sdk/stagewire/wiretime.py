"""Time spans between seconds and their wire form."""

from google.protobuf import duration_pb2


def to_duration(seconds: float) -> duration_pb2.Duration:
    """Returns the wire form of a time span; a negative one is zero."""
    nanoseconds = max(0, round(seconds * 1e9))
    return duration_pb2.Duration(
        seconds=nanoseconds // 1_000_000_000, nanos=nanoseconds % 1_000_000_000
    )


def to_seconds(duration: duration_pb2.Duration) -> float:
    """Returns a time span in seconds."""
    return duration.seconds + duration.nanos / 1e9
