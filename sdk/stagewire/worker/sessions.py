"""What the stages of one worker keep for sessions, between the requests of each."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from stagewire.errors import StageFaultError
from stagewire.limits import SESSION_STATE_BYTES

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    state: object
    close: Callable[[], None] | None


@dataclass(slots=True)
class StageSession:
    """Implements `Session`: what one stage keeps for one session. For one execution at a time."""

    stage_id: str
    session_id: str
    _kept: _Kept | None = None
    _is_released: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def state(self) -> object | None:
        """What was kept last; None at the beginning of the session."""
        with self._lock:
            return None if self._kept is None else self._kept.state

    def keep(
        self, state: object, *, size_bytes: int, close: Callable[[], None] | None = None
    ) -> None:
        """Keeps a state for the next execution, in place of the one before, which is closed.

        Raises:
            StageFaultError: it is over its limit; the state before stays.
        """
        if size_bytes > SESSION_STATE_BYTES:
            raise StageFaultError(
                f"stage {self.stage_id!r} would keep {size_bytes} bytes for a session,"
                f" {SESSION_STATE_BYTES} are allowed",
                stage=self.stage_id,
            )
        new = _Kept(state, close)
        with self._lock:
            if self._is_released:
                # The session ended under an execution: nobody would ever free what it keeps now.
                replaced: _Kept | None = new
            else:
                replaced, self._kept = self._kept, new
        if replaced is not None and (replaced is new or replaced.state is not state):
            self._close(replaced)

    def release(self) -> bool:
        """Frees what is kept, and whatever is kept later; says whether there was anything."""
        with self._lock:
            self._is_released = True
            kept, self._kept = self._kept, None
        if kept is not None:
            self._close(kept)
        return kept is not None

    def _close(self, kept: _Kept) -> None:
        if kept.close is None:
            return
        try:
            kept.close()
        except (
            Exception
        ):  # the outermost edge of an executor: the other states are freed all the same
            _log.exception("a state could not be closed stage=%s", self.stage_id)


class SessionStates:
    """The states of every session on one worker, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: dict[tuple[str, str], StageSession] = {}

    def of(self, stage_id: str, session_id: str) -> StageSession | None:
        """Returns the state of a session in a stage; None without a session."""
        if not session_id:
            return None
        key = stage_id, session_id
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = StageSession(stage_id, session_id)
            return self._sessions[key]

    def release_session(self, session_id: str) -> int:
        """Frees what every stage keeps for one session; returns how many kept anything."""
        return self._release(lambda session: session.session_id == session_id)

    def release_stage(self, stage_id: str) -> int:
        """Frees what one stage keeps for every session."""
        return self._release(lambda session: session.stage_id == stage_id)

    def release_all(self) -> int:
        """Frees everything."""
        return self._release(lambda _: True)

    def _release(self, is_meant: Callable[[StageSession], bool]) -> int:
        with self._lock:
            meant = [session for session in self._sessions.values() if is_meant(session)]
            for session in meant:
                del self._sessions[session.stage_id, session.session_id]
        return sum(session.release() for session in meant)
