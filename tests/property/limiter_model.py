"""What a limit may give out, as a few lists: written apart from the engine, to judge it."""

from dataclasses import dataclass, field
from uuid import UUID

__all__ = ["MINUTE", "Call", "Job", "Model"]

# What no window may hold, and what may always be taken. The engine adds the second of the charge
# and the second to start in; after a step back it leaves what is two seconds ahead as it is.
MINUTE, CAREFUL_MINUTE = 60, 66
TTL, CAREFUL = 300, 3


@dataclass(eq=False)
class Call:
    """What was charged for one start or one grant."""

    # By the provider's clock, which never steps, and by the server's.
    called: int
    charged: int
    tokens: int
    # As the engine may count it at most.
    careful: int
    at: int = 0

    def __post_init__(self) -> None:
        self.at = self.charged

    def settle(self, now: int, tokens: int) -> None:
        """Nothing is given back for a second that has not come; what is added counts from now."""
        if tokens > self.careful:
            self.at = min(self.charged, now)
        self.careful = max(self.careful, tokens) if self.charged > now else tokens
        self.tokens = tokens


@dataclass(eq=False)
class Job:
    tokens: int
    key: str | None
    call: Call | None = None
    settled: bool = False
    # One that comes back is due at a time, also where the clock is set back before it.
    due: int = 0


@dataclass(eq=False)
class Grant:
    call: Call
    granted: int
    expires: int


@dataclass
class Model:
    """One limit with everything it has given out, and another by key."""

    parts: dict[str, int | None]
    slots_of_a_key: int
    # By the provider's clock, and by the server's.
    real: int = 0
    now: int = 0
    paused_until: int = 0
    calls: list[Call] = field(default_factory=list)
    waiting: dict[UUID, Job] = field(default_factory=dict)
    running: dict[UUID, Job] = field(default_factory=dict)
    grants: dict[UUID, Grant] = field(default_factory=dict)

    def pass_time(self, seconds: int) -> None:
        """Set back, what lies ahead counts as of now and lasts as long as it was to."""
        self.now += seconds
        if seconds > 0:
            self.real += seconds
            return
        for call in self.calls:
            call.at = min(call.at, self.now)
        self.paused_until += seconds
        for grant in self.grants.values():
            if grant.granted > self.now:
                grant.granted, grant.expires = self.now, self.now + TTL

    def in_use(self, late: int = 0) -> int:
        """Who holds a slot: what runs, and grants that are neither settled nor over."""
        open_grants = sum(1 for grant in self.grants.values() if self.now < grant.expires + late)
        return len(self.running) + open_grants

    def fits(self, tokens: int, *, careful: bool = False) -> bool:
        """Tell whether one call more is within every part, by what is known now."""
        if self.now < self.paused_until:
            return False
        if careful:
            recent = [call for call in self.calls if call.at > self.now - CAREFUL_MINUTE]
        else:
            recent = [call for call in self.calls if call.called > self.real - MINUTE]
        used = {
            "requests_per_minute": len(recent) + 1,
            "tokens_per_minute": tokens
            + max(sum(call.careful if careful else call.tokens for call in recent), 0),
            "concurrency": self.in_use(CAREFUL if careful else 0) + 1,
        }
        return all(most is None or used[part] <= most for part, most in self.parts.items())

    def at_most(self, tokens: int) -> int:
        """Return as much of a cost as is not refused at once."""
        most = self.parts.get("tokens_per_minute")
        return tokens if most is None else min(tokens, most)

    def ever_fits(self, tokens: int) -> bool:
        return self.at_most(tokens) == tokens

    def key_fits(self, key: str | None) -> bool:
        if key is None:
            return True
        return sum(1 for job in self.running.values() if job.key == key) < self.slots_of_a_key

    def charge(self, tokens: int) -> Call:
        self.calls.append(Call(self.real, self.now, tokens, tokens))
        return self.calls[-1]

    def must_give(self) -> bool:
        """Tell whether a claim has to find something: there is room for any of those that wait and
        ever fit, so that nobody stands in another's way, and one of them has its key free."""
        able = [job for job in self.waiting.values() if self.ever_fits(job.tokens)]
        if not any(self.key_fits(job.key) for job in able if job.due <= self.now):
            return False
        largest = max(job.tokens for job in able)
        return self.fits(max(largest, 1), careful=True)
