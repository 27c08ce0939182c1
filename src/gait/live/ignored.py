"""Messages that cannot be used: counted, and reported once. A network carries messages of others, too."""

from __future__ import annotations

from gait.errors import GaitError

KINDS = 8
"""Different reasons that are reported; random bytes could have any number of them."""
_SHORT = 60


class Ignored:
    """Counts of what was left out, by where it came from."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._reasons: dict[tuple[str, str], None] = {}
        self._told = 0

    def add(self, where: str, why: GaitError | str) -> None:
        """A message from somewhere, such as a topic, that cannot be used."""
        self.counts[where] = self.counts.get(where, 0) + 1
        if len(self._reasons) < KINDS:
            self._reasons.setdefault((where, str(why)))

    def news(self) -> list[str]:
        """Reasons that have not been reported yet, a line each."""
        fresh = list(self._reasons)[self._told :]
        self._told += len(fresh)
        return [f"ignored on {where}: {why}" for where, why in fresh]

    def words(self) -> str:
        """How many from where, short enough for a status line."""
        return ", ".join(f"{count} ignored on {where[:_SHORT]}" for where, count in self.counts.items())
