"""The ledger itself: admits, keeps and gives back reservations, and lets loads in by turns."""

from collections.abc import Iterable, Mapping, Sequence

from coordinator.facts.ids import ConstraintId, Incarnation
from coordinator.ledger.arithmetic import Charge, exceeded
from coordinator.ledger.budgets import BudgetKind, FailedBudget, load_excess_bytes, steady_bytes
from coordinator.ledger.constraints import Constraint, ConstraintTree
from coordinator.ledger.reservation import Lifetime, Measurement, Owner, Reservation
from coordinator.ledger.snapshot import ClaimState, ConstraintLine, LedgerSnapshot, ReservationLine
from coordinator.ledger.turnstile import PendingLoad, loads_that_may_begin
from stagewire.errors import InternalFaultError, MemoryBusyError


class Ledger:
    """Says whether memory fits, and remembers what was promised.

    The claims of an owner go from promised to occupied when a process begins to use them, and back
    only when that process gave them back (`vacate`) or is proven gone (`settle`).
    """

    def __init__(self, constraints: Iterable[Constraint]) -> None:
        self._tree = ConstraintTree(constraints)
        self._claims: dict[Owner, tuple[Reservation, ...]] = {}
        self._occupants: dict[Owner, Incarnation] = {}
        self._quarantined: set[Owner] = set()
        self._leaving: set[Owner] = set()
        self._waiting: list[Owner] = []
        self._loading: list[Owner] = []
        self._measurements: dict[Owner, Measurement] = {}

    def admit(self, reservations: Sequence[Reservation]) -> None:
        """Promises all of the reservations, or none.

        Raises:
            ConstraintExceededError: they do not fit; the message has the arithmetic.
            MemoryBusyError: a process has not given back what one of the owners released.
        """
        claims = dict(self._claims)
        for item in reservations:
            if item.owner in self._leaving:
                raise MemoryBusyError(f"the process that held {item.owner} has not given it back")
            held = claims.get(item.owner, ())
            if any((old.lifetime, old.purpose) == (item.lifetime, item.purpose) for old in held):
                raise ValueError(f"{item.owner} has {item.lifetime} for {item.purpose} already")
            claims[item.owner] = (*held, item)
        asked = frozenset(item.owner for item in reservations)
        charges = [self._charge(claims, item, asked) for item in self._tree]
        over = sorted(
            (item for item in charges if item.missing_bytes > 0),
            key=lambda item: -item.missing_bytes,
        )
        if over:
            raise exceeded(over[0], over[1:])
        self._claims = claims

    def release(self, owner: Owner) -> None:
        """Gives back the claims of an owner, as soon as no process uses them."""
        if owner in self._occupants:
            self._leaving.add(owner)
            self._waiting = [item for item in self._waiting if item != owner]
            return
        self._claims.pop(owner, None)
        self._measurements.pop(owner, None)

    # --- lives of processes -----------------------------------------------------------------

    def occupy(self, owner: Owner, incarnation: Incarnation) -> None:
        """Notes that a process is about to use the claims of an owner.

        Raises:
            MemoryBusyError: the process that used them before is not proven gone.
        """
        if owner not in self._claims:
            raise InternalFaultError(f"{owner} has no reservation")
        if owner in self._leaving or self._occupants.get(owner, incarnation) != incarnation:
            raise MemoryBusyError(f"the process that held {owner} is not proven gone")
        if owner in self._quarantined:
            raise MemoryBusyError(f"the process that holds {owner} is lost")
        self._occupants[owner] = incarnation

    def quarantine(self, incarnation: Incarnation) -> None:
        """Keeps the claims of a lost process, which may still hold its memory, until `settle`."""
        lost = {owner for owner, used_by in self._occupants.items() if used_by == incarnation}
        self._quarantined |= lost
        self._waiting = [owner for owner in self._waiting if owner not in lost]

    def settle(self, incarnation: Incarnation) -> None:
        """Frees the claims of a process that is proven gone, for its next life."""
        for owner in [name for name, used_by in self._occupants.items() if used_by == incarnation]:
            self.vacate(owner, incarnation)

    def vacate(self, owner: Owner, incarnation: Incarnation) -> None:
        """Notes that a process gave back the memory of an owner; an older life changes nothing."""
        if self._occupants.get(owner) != incarnation:
            return
        self.end_load(owner)
        del self._occupants[owner]
        self._quarantined.discard(owner)
        if (seen := self._measurements.get(owner)) is not None:
            self._measurements[owner] = Measurement(0, seen.peak_bytes)
        if owner in self._leaving:
            self._leaving.discard(owner)
            self.release(owner)

    # --- the turnstile ----------------------------------------------------------------------

    def queue_load(self, owner: Owner, incarnation: Incarnation) -> None:
        """Puts a load at the end of the queue and occupies the claims of its owner.

        Raises:
            MemoryBusyError: the process that used them before is not proven gone.
        """
        self.occupy(owner, incarnation)
        if owner not in self._waiting and owner not in self._loading:
            self._waiting.append(owner)

    def next_loads(self) -> tuple[Owner, ...]:
        """Returns the owners whose loads may begin now, together."""
        waiting = [PendingLoad(owner, self._load_excess(owner)) for owner in self._waiting]
        charges = [self._charge(self._claims, item) for item in self._tree]
        free_bytes = {
            charge.constraint.constraint: charge.constraint.limit_bytes
            - charge.steady_bytes
            - charge.running_load_bytes
            for charge in charges
        }
        return loads_that_may_begin(waiting, free_bytes)

    def begin_load(self, owner: Owner) -> None:
        """Lets a load begin.

        Raises:
            MemoryBusyError: it is not its turn.
        """
        if owner not in self.next_loads():
            raise MemoryBusyError(f"the load of {owner} waits for others to end")
        self._waiting.remove(owner)
        self._loading.append(owner)

    def end_load(self, owner: Owner) -> None:
        """Ends a load, however it came out, or takes it out of the queue."""
        self._waiting = [item for item in self._waiting if item != owner]
        self._loading = [item for item in self._loading if item != owner]

    # --- measurements and reading -----------------------------------------------------------

    def measure(self, owner: Owner, measured_bytes: int, peak_bytes: int = 0) -> None:
        """Notes what is occupied: by a worker its whole process, by a stage what its load added."""
        if owner not in self._claims:
            # A report may be under way while its owner is released.
            return
        seen = self._measurements.get(owner, Measurement(0, 0))
        peak_bytes = max(seen.peak_bytes, measured_bytes, peak_bytes)
        self._measurements[owner] = Measurement(measured_bytes, peak_bytes)

    def failed_budgets(self) -> tuple[FailedBudget, ...]:
        """Returns the budgets that are below what was measured.

        A process is held against its own claims and those of its stages, its peak with the largest
        load; a stage against what it may keep resident, its peak with its load or its requests.
        """
        failed: list[FailedBudget] = []
        for owner, seen in sorted(self._measurements.items()):
            hosted = {
                name: items
                for name, items in self._claims.items()
                if any(item.process == owner for item in items)
            }
            budget = self._process_budget(hosted) if hosted else self._stage_budget(owner)
            found = zip(BudgetKind, budget, (seen.measured_bytes, seen.peak_bytes), strict=True)
            failed.extend(
                FailedBudget(owner, kind, budget_bytes, measured_bytes)
                for kind, budget_bytes, measured_bytes in found
                if measured_bytes > budget_bytes
            )
        return tuple(failed)

    def _process_budget(self, hosted: Mapping[Owner, Sequence[Reservation]]) -> tuple[int, int]:
        steady = sum(steady_bytes(items) for items in hosted.values())
        running = sum(load_excess_bytes(hosted[name]) for name in self._loading if name in hosted)
        largest = max(load_excess_bytes(items) for items in hosted.values())
        return steady + running, steady + max(largest, running)

    def _stage_budget(self, owner: Owner) -> tuple[int, int]:
        sizes = dict.fromkeys(Lifetime, 0)
        for item in self._claims.get(owner, ()):
            sizes[item.lifetime] += item.size_bytes
        peak = sizes[Lifetime.RESIDENT] + max(sizes[Lifetime.LOAD], sizes[Lifetime.REQUEST])
        return (peak if owner in self._loading else sizes[Lifetime.RESIDENT]), peak

    def snapshot(self) -> LedgerSnapshot:
        """Returns everything that the ledger holds."""
        constraints = tuple(
            ConstraintLine(
                item.constraint,
                item.parent,
                item.limit_bytes,
                self._charge(self._claims, item).reserved_bytes,
                item.grade,
            )
            for item in self._tree
        )
        reservations = tuple(
            ReservationLine(
                item,
                self._state(owner),
                self._occupants.get(owner),
                owner in self._leaving,
                self._measurements.get(owner),
            )
            for owner, items in sorted(self._claims.items())
            for item in items
        )
        return LedgerSnapshot(constraints, reservations, tuple(self._waiting), tuple(self._loading))

    def _state(self, owner: Owner) -> ClaimState:
        if owner in self._quarantined:
            return ClaimState.QUARANTINED
        return ClaimState.OCCUPIED if owner in self._occupants else ClaimState.PROMISED

    def _charge(
        self,
        claims: Mapping[Owner, Sequence[Reservation]],
        constraint: Constraint,
        asked: frozenset[Owner] = frozenset(),
    ) -> Charge:
        charged = {
            owner: kept
            for owner, items in claims.items()
            if (kept := [item for item in items if self._is_charged(item, constraint)])
        }
        running = sum(load_excess_bytes(charged.get(owner, ())) for owner in self._loading)
        return Charge(constraint, charged, asked, running)

    def _is_charged(self, item: Reservation, constraint: Constraint) -> bool:
        return constraint.constraint in self._tree.charges(item.constraint)

    def _load_excess(self, owner: Owner) -> dict[ConstraintId, int]:
        charges = (self._charge({owner: self._claims[owner]}, item) for item in self._tree)
        return {
            charge.constraint.constraint: load_excess_bytes(charge.claims[owner])
            for charge in charges
            if charge.claims
        }
