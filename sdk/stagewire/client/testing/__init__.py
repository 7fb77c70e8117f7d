"""A coordinator for the tests of programs that call one: plain functions in place of pipelines.

It serves the public service on loopback, in this process, to the real clients:

    with FakeCoordinator({"shout": lambda text: {"loud": text.upper()}}) as fake:
        assert fake.client.run("shout", {"text": "hello"}).text("loud") == "HELLO"
"""

from stagewire.client.testing.fake import FakeCoordinator, Hold
from stagewire.client.testing.pipelines import FakePipeline
from stagewire.client.testing.request import FakeRequest
from stagewire.descriptor import DataType
from stagewire.ports import Dimension, Port

__all__ = [
    "DataType",
    "Dimension",
    "FakeCoordinator",
    "FakePipeline",
    "FakeRequest",
    "Hold",
    "Port",
]
