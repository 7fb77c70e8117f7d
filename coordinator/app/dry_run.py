"""A dry run: what a plan would become on this machine, for people and for `--json`. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from coordinator.app.design import Design
from coordinator.facts.ids import StageId
from coordinator.ledger.reservation import Lifetime
from coordinator.pipeline.topology import Topology
from stagewire.limits import INLINE_BYTES
from stagewire.ports import Port


@dataclass(frozen=True, slots=True)
class PlacedStage:
    """Where one stage would run."""

    stage: str
    worker: str
    device: str
    executor: str
    artifact: str
    """Empty for a function."""
    reason: str
    cores: str
    """Where its threads run: numbers, or `any`."""
    cores_reason: str
    is_fallback: bool
    lost: tuple[str, ...]
    """Every other candidate, and why it is not taken."""


@dataclass(frozen=True, slots=True)
class Edge:
    """How items would travel over one edge."""

    pipeline: str
    source: str
    target: str
    port: str
    largest_bytes: int
    transport: str
    """`inline`, `chunked`, or `inline or chunked`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of the account of memory."""

    owner: str
    lifetime: str
    size_bytes: int
    purpose: str


@dataclass(frozen=True, slots=True)
class Limit:
    """One constraint and what the plan would charge to it."""

    constraint: str
    limit_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True)
class Proof:
    """What must still be proven before a stage is ready."""

    stage: str
    claims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DryRun:
    """Everything that is decided before anything starts."""

    plan: str
    pipelines: tuple[str, ...]
    stages: tuple[PlacedStage, ...]
    edges: tuple[Edge, ...]
    claims: tuple[Claim, ...]
    loads_bytes: int
    """Room for the largest load; loads wait for each other."""
    limits: tuple[Limit, ...]
    proofs: tuple[Proof, ...]


def explain(design: Design) -> DryRun:
    """Returns a design in words and numbers."""
    snapshot = design.ledger.snapshot()
    claims = tuple(
        Claim(item.owner, item.lifetime.value, item.size_bytes, item.purpose)
        for line in snapshot.reservations
        for item in (line.reservation,)
        if item.lifetime is not Lifetime.LOAD
    )
    # Every claim is on the leaf, hence charged to every constraint alike.
    reserved = max((line.reserved_bytes for line in snapshot.constraints), default=0)
    return DryRun(
        design.plan.metadata.name,
        tuple(design.pipelines),
        tuple(_placed(design, stage) for stage in design.stages),
        tuple(edge for topology in design.topologies.values() for edge in _edges(topology)),
        claims,
        reserved - sum(claim.size_bytes for claim in claims),
        tuple(
            Limit(line.constraint, line.limit_bytes, line.reserved_bytes)
            for line in snapshot.constraints
        ),
        tuple(_proof(design, stage) for stage in design.stages),
    )


def _placed(design: Design, stage: StageId) -> PlacedStage:
    placed = design.placement.stages[stage]
    artifact = placed.artifact
    return PlacedStage(
        stage,
        placed.worker_id,
        placed.device,
        design.plan.stages[stage].executor,
        f"{artifact.artifact_id} ({artifact.artifact_format})" if artifact is not None else "",
        placed.reason,
        str(design.cores[stage]),
        design.cores[stage].why,
        placed.is_fallback,
        tuple(map(str, placed.lost)),
    )


def _edges(topology: Topology) -> Iterator[Edge]:
    for source in topology.sources.values():
        largest = source.port.largest_bytes
        for target in source.targets:
            yield Edge(
                topology.pipeline,
                str(source.origin),
                str(target),
                str(source.port),
                largest,
                _transport(source.port),
            )


def _transport(port: Port) -> str:
    if port.largest_bytes <= INLINE_BYTES:
        return "inline"
    is_fixed = not port.data_type.is_string and not any(item.name for item in port.dimensions)
    return "chunked" if is_fixed else "inline or chunked"


def _proof(design: Design, stage: StageId) -> Proof:
    spec = design.plan.stages[stage]
    placed = design.placement.stages[stage]
    claims = [f"worker {placed.worker_id} attaches and executes {spec.executor} on {placed.device}"]
    if placed.artifact is not None:
        claims.append(f"every file of {placed.artifact.artifact_id} has its sha256")
    claims.append("its example runs, and what comes out fits its ports")
    if spec.device.min_evidence is not None:
        claims.append(f"that earns at least grade {spec.device.min_evidence.name}")
    return Proof(stage, tuple(claims))
