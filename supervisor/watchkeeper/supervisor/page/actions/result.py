"""What an action answers."""

from dataclasses import dataclass, field

from ..effects import Effects


@dataclass(frozen=True, slots=True)
class Done:
    """``said``: what was done, one line; ``effects``: what it started."""

    said: str
    effects: Effects = field(default_factory=Effects)

    @property
    def text(self) -> str:
        return "\n".join([self.said, *self.effects.lines()])
