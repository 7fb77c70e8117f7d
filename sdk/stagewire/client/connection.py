"""One channel to one run of a coordinator, with the calls of the public service.

What gRPC returns for a call has no public type that can be cancelled, hence Any.
"""

import threading
from typing import Any, Final

from stagewire import channel
from stagewire.client.core.requests import Ports
from stagewire.client.location import Place
from stagewire.v1 import coordinator_pb2 as pb

SERVICE: Final = "/stagewire.v1.CoordinatorService/"


class Calls:
    """The calls of the public service on a channel, of either kind, hence Any."""

    def __init__(self, place: Place, channel: Any) -> None:
        self.place = place
        self.metadata = (("authorization", f"Bearer {place.token}"),)
        self.ports: Ports | None = None
        """Inputs of every pipeline, once they were asked for."""
        # Messages pass as bytes: a payload is joined and split here, never by protobuf.
        self.run: Any = channel.unary_unary(f"{SERVICE}Run", None, None)
        self.infer: Any = channel.stream_stream(f"{SERVICE}Infer", None, None)
        self.watch_state: Any = channel.unary_stream(
            f"{SERVICE}WatchState",
            pb.WatchStateRequest.SerializeToString,
            pb.WatchStateResponse.FromString,
        )
        self.get_placement, self.open_session, self.renew_session, self.close_session = (
            channel.unary_unary(f"{SERVICE}{name}", request.SerializeToString, response.FromString)
            for name, request, response in (
                ("GetPlacement", pb.GetPlacementRequest, pb.GetPlacementResponse),
                ("OpenSession", pb.OpenSessionRequest, pb.OpenSessionResponse),
                ("RenewSession", pb.RenewSessionRequest, pb.RenewSessionResponse),
                ("CloseSession", pb.CloseSessionRequest, pb.CloseSessionResponse),
            )
        )


class Connection(Calls):
    """A channel for threads; closed when it was retired and its last call has ended."""

    def __init__(self, place: Place) -> None:
        self._channel = channel.open_channel(place.address)
        super().__init__(place, self._channel)
        self._lock = threading.Lock()
        self._users = 0
        self._is_retired = False

    def use(self) -> "Connection":
        """Keeps the channel open for one call."""
        with self._lock:
            self._users += 1
        return self

    def leave(self) -> None:
        """Notes the end of a call."""
        with self._lock:
            self._users -= 1
            is_last = self._is_retired and self._users == 0
        if is_last:
            self._channel.close()

    def retire(self) -> None:
        """Takes no new calls; those under way may end."""
        with self._lock:
            self._is_retired = True
            is_last = self._users == 0
        if is_last:
            self._channel.close()

    def close(self) -> None:
        """Cancels the calls under way and closes the channel."""
        self._channel.close()
