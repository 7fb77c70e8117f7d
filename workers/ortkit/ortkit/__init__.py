"""ONNX Runtime sessions with explicit threads and providers, shared by the workers."""

from ortkit.graph import GraphPort, check_order
from ortkit.metadata import read_metadata
from ortkit.session import Session, SessionSettings, open_session

__all__ = [
    "GraphPort",
    "Session",
    "SessionSettings",
    "check_order",
    "open_session",
    "read_metadata",
]
