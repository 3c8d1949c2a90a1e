"""Commands in flight: who waits for which number, for which tab, and until when.

Rules: every command that was sent has a deadline and ends exactly once: answered, refused, timed out, interrupted or
lost. An answer that comes after that is dropped. Knows no sockets; deadlines are armed by the one who sends.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .core.wire import Reply
from .errors import SupervisorError

Finish = Callable[[Reply | SupervisorError], None]


@dataclass(frozen=True, slots=True)
class Command:
    """``page_id``: the tab whose dialogs and crashes end this command early, None for commands that outlast them."""

    number: int
    method: str
    session_id: str | None
    page_id: str | None
    finish: Finish
    disarm: Callable[[], None]


class PendingCommands:
    def __init__(self) -> None:
        self._by_number: dict[int, Command] = {}

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, command: Command) -> None:
        self._by_number[command.number] = command

    def finish(self, number: int, outcome: Reply | SupervisorError) -> None:
        """End one command; nothing happens when it has ended already."""
        command = self._by_number.pop(number, None)
        if command is not None:
            command.disarm()
            command.finish(outcome)

    def interrupt(self, which: Callable[[Command], bool], error: Callable[[Command], SupervisorError]) -> int:
        """End every command that ``which`` picks; gives their number."""
        chosen = [command for command in self if which(command)]
        for command in chosen:
            self.finish(command.number, error(command))
        return len(chosen)

    def __iter__(self) -> Iterator[Command]:
        return iter(tuple(self._by_number.values()))
