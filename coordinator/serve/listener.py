"""The listeners of clients and operators: loopback, one token each, health of processes."""

import ipaddress
import secrets
from collections.abc import Mapping
from typing import Final

from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from coordinator.gateway.guard import Guard
from coordinator.serve import operators, public
from stagewire.channel import GenericRpcHandler, make_server
from stagewire.errors import BindUnsafeError, FieldInvalidError, PortHeldError

_HEALTH: Final = "grpc.health.v1.Health"
_GRACE_SECONDS: Final = 0.5
_LAST_PORT: Final = 65_535


class Listener:
    """One gRPC server on loopback, with its token."""

    def __init__(self, address: str, services: Mapping[str, GenericRpcHandler]) -> None:
        self._wanted = loopback_address(address)
        self.token = secrets.token_urlsafe(32)
        self.address = ""
        self._health = HealthServicer()
        tokens: dict[str, str | None] = dict.fromkeys(services, self.token)
        # Health is open on purpose: probes have no token, and it names nothing but stages.
        tokens[_HEALTH] = None
        tokens[reflection.SERVICE_NAME] = self.token
        self._server = make_server([Guard(tokens)])
        self._server.add_generic_rpc_handlers(tuple(services.values()))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection(
            (*services, _HEALTH, reflection.SERVICE_NAME), self._server
        )

    async def start(self) -> None:
        """Binds and serves.

        Raises:
            PortHeldError: the port is taken.
        """
        try:
            port = self._server.add_insecure_port(self._wanted)
        except RuntimeError as error:
            raise PortHeldError(f"{self._wanted} is taken by another program") from error
        self.address = f"{self._wanted.rsplit(':', 1)[0]}:{port}"
        await self._server.start()

    async def set_health(self, service: str, *, is_serving: bool) -> None:
        """Says whether a service, a stage or everything (an empty name) can be used."""
        status = health_pb2.HealthCheckResponse
        await self._health.set(service, status.SERVING if is_serving else status.NOT_SERVING)

    async def stop(self) -> None:
        """Ends every call and the listener."""
        await self._health.enter_graceful_shutdown()
        await self._server.stop(grace=_GRACE_SECONDS)


def public_listener(address: str, service: public.CoordinatorService) -> Listener:
    """Returns the listener of clients."""
    return Listener(address, {public.SERVICE: service.handler()})


def management_listener(address: str, service: operators.ManagementService) -> Listener:
    """Returns the listener of operators."""
    return Listener(address, {operators.SERVICE: service.handler()})


def loopback_address(address: str) -> str:
    """Returns an address that only this machine reaches.

    Raises:
        FieldInvalidError: it is not a literal address with a port.
        BindUnsafeError: other machines could reach it.
    """
    host, _, port = address.rpartition(":")
    try:
        ip = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        ip = None
    if ip is None or not port.isdigit() or int(port) > _LAST_PORT:
        raise FieldInvalidError(f"{address} is no address with a port, such as 127.0.0.1:5000")
    if not ip.is_loopback:
        raise BindUnsafeError(
            f"at {address} other machines could connect, and nothing protects the connection;"
            " listen on 127.0.0.1:PORT"
        )
    return address
