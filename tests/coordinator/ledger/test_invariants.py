"""Whatever happens in whatever order: never over a limit, and in the end exactly as before."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from coordinator.facts.ids import ConstraintId, Incarnation, PoolId
from coordinator.facts.proof import Grade
from coordinator.ledger.constraints import Constraint
from coordinator.ledger.ledger import Ledger
from coordinator.ledger.reservation import Lifetime, Owner, Reservation
from stagewire.errors import StageError

pytestmark = pytest.mark.unit

PARENT, LEFT, RIGHT = ConstraintId("parent"), ConstraintId("left"), ConstraintId("right")
POOL = PoolId("ram")
LIMITS = {PARENT: 1000, LEFT: 700, RIGHT: 600}
OWNERS = [Owner(f"stage:{name}") for name in "abcdef"]
owners = st.sampled_from(OWNERS)
incarnations = st.integers(1, 3).map(Incarnation)
reservations = st.builds(
    Reservation,
    owner=owners,
    lifetime=st.sampled_from(Lifetime),
    size_bytes=st.integers(0, 400),
    constraint=st.sampled_from([LEFT, RIGHT]),
    process=st.just(Owner("worker:w")),
    purpose=st.just("test"),
)


class LedgerMachine(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        tree = (
            Constraint(PARENT, POOL, LIMITS[PARENT], None, Grade.D, ""),
            Constraint(LEFT, POOL, LIMITS[LEFT], PARENT, Grade.D, ""),
            Constraint(RIGHT, POOL, LIMITS[RIGHT], PARENT, Grade.D, ""),
        )
        self.ledger = Ledger(tree)
        self.baseline = self.ledger.snapshot()
        self.held: dict[Owner, list[Reservation]] = {}
        self.used_by: dict[Owner, Incarnation] = {}
        self.released: set[Owner] = set()

    def attempt(self, action, *arguments) -> bool:
        """Takes a step that may be refused; a refusal changes nothing."""
        before = self.ledger.snapshot()
        try:
            action(*arguments)
        except (StageError, ValueError):
            assert self.ledger.snapshot() == before
            return False
        return True

    @rule(asked=st.lists(reservations, min_size=1, max_size=4))
    def admit(self, asked: list[Reservation]) -> None:
        if self.attempt(self.ledger.admit, asked):
            for item in asked:
                self.held.setdefault(item.owner, []).append(item)

    @rule(owner=owners, incarnation=incarnations)
    def queue_load(self, owner: Owner, incarnation: Incarnation) -> None:
        if self.attempt(self.ledger.queue_load, owner, incarnation):
            self.used_by[owner] = incarnation

    @rule(owner=owners, incarnation=incarnations)
    def occupy(self, owner: Owner, incarnation: Incarnation) -> None:
        if self.attempt(self.ledger.occupy, owner, incarnation):
            self.used_by[owner] = incarnation

    @precondition(lambda self: self.ledger.next_loads())
    @rule(choice=st.randoms(use_true_random=False))
    def begin_load(self, choice) -> None:
        self.ledger.begin_load(choice.choice(self.ledger.next_loads()))

    @rule(owner=owners)
    def begin_any_load(self, owner: Owner) -> None:
        self.attempt(self.ledger.begin_load, owner)

    @rule(owner=owners)
    def end_load(self, owner: Owner) -> None:
        self.ledger.end_load(owner)

    @rule(incarnation=incarnations)
    def quarantine(self, incarnation: Incarnation) -> None:
        before = self.ledger.snapshot().constraints
        self.ledger.quarantine(incarnation)
        assert self.ledger.snapshot().constraints == before

    @rule(incarnation=incarnations)
    def settle(self, incarnation: Incarnation) -> None:
        self.ledger.settle(incarnation)
        for owner in [name for name, used_by in self.used_by.items() if used_by == incarnation]:
            self.leave(owner)

    @rule(owner=owners, incarnation=incarnations)
    def vacate(self, owner: Owner, incarnation: Incarnation) -> None:
        self.ledger.vacate(owner, incarnation)
        if self.used_by.get(owner) == incarnation:
            self.leave(owner)

    @rule(owner=owners)
    def release(self, owner: Owner) -> None:
        self.ledger.release(owner)
        if owner in self.used_by:
            self.released.add(owner)
        else:
            self.held.pop(owner, None)

    @rule(owner=owners, size_bytes=st.integers(0, 900))
    def measure(self, owner: Owner, size_bytes: int) -> None:
        before = self.ledger.snapshot().constraints
        self.ledger.measure(owner, size_bytes)
        assert self.ledger.snapshot().constraints == before

    def leave(self, owner: Owner) -> None:
        del self.used_by[owner]
        if owner in self.released:
            self.released.discard(owner)
            self.held.pop(owner, None)

    @invariant()
    def what_processes_may_use_now_is_within_every_limit(self) -> None:
        if not hasattr(self, "ledger"):
            return
        loading = self.ledger.snapshot().loading
        for constraint, limit in LIMITS.items():
            used_bytes = 0
            for owner, items in self.held.items():
                sizes = dict.fromkeys(Lifetime, 0)
                for item in items:
                    if constraint in (item.constraint, PARENT):
                        sizes[item.lifetime] += item.size_bytes
                used_bytes += sizes[Lifetime.RESIDENT] + sizes[Lifetime.TRANSPORT]
                request, load = sizes[Lifetime.REQUEST], sizes[Lifetime.LOAD]
                used_bytes += max(request, load) if owner in loading else request
            assert used_bytes <= limit

    @invariant()
    def the_ledger_holds_exactly_what_was_admitted_and_not_given_back(self) -> None:
        if not hasattr(self, "ledger"):
            return
        shown: dict[Owner, list[Reservation]] = {}
        for line in self.ledger.snapshot().reservations:
            shown.setdefault(line.reservation.owner, []).append(line.reservation)
        assert shown == self.held

    @invariant()
    def the_first_load_in_the_queue_never_waits_for_nothing(self) -> None:
        if not hasattr(self, "ledger"):
            return
        snapshot = self.ledger.snapshot()
        if snapshot.waiting and not snapshot.loading:
            assert self.ledger.next_loads()[0] == snapshot.waiting[0]

    def teardown(self) -> None:
        if not hasattr(self, "ledger"):
            return
        for owner in OWNERS:
            self.ledger.release(owner)
        for number in (1, 2, 3):
            self.ledger.settle(Incarnation(number))
        assert self.ledger.snapshot() == self.baseline


LedgerMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, derandomize=True
)
TestLedger = LedgerMachine.TestCase
