"""Worker processes under load against a provider that records every call.

One limit has all its parts at once. The provider counts and refuses nothing, so it sees exactly the
calls that the engine let through. Workers may be killed with SIGKILL all the time, and replaced.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO

import psycopg

from bench.apps.calling import LIMIT, MODEL, PROVIDER_VARIABLE
from bench.internals.tables import hurry_duties
from bench.rivals.product import ROOT
from trunkline_profiles.clinical.stubs.limits import Call
from trunkline_profiles.clinical.stubs.provider import Provider, model_from

__all__ = ["Findings", "Fire", "judge", "open_fire"]

TASK = "ask"
# A longer pause between calls means that a window was full.
_PAUSE = 10.0
_LOOK_EVERY = 0.05

# The engine detects a dead worker as early as possible.
_HURRY = """
select trunkline.set_setting('pulse_interval', '1 second');
select trunkline.set_setting('reclaim_jitter', '0 seconds')
"""
_WAITING = "select count(*) from trunkline.jobs where task = %s and state in ('ready', 'scheduled')"


@dataclass(frozen=True, slots=True)
class Fire:
    """The setup: limits, jobs, workers."""

    limits: Mapping[str, int]
    # Tokens of the jobs, in the order of their enqueue.
    tokens: Sequence[int]
    seconds: float
    processes: int
    # Seconds between kills; None: no kills.
    kill_every: float | None = None
    # The provider's response time is between these.
    latency: tuple[float, float] = (0.05, 0.15)
    # The estimated cost of a job over its actual cost; 1: the estimate is exact.
    estimate: float = 1.0


@dataclass(frozen=True, slots=True)
class Findings:
    """The result, as the provider saw it."""

    calls: int
    # By how much each limit was exceeded in its worst window; empty if none was.
    over: dict[str, int]
    # The share of the minute's capacity that was used, from the first call to the last window.
    minute_used: float
    # The same for the hour, at the end.
    hour_used: float
    kills: int
    # Jobs that still waited at the end, as proof that there was work all the time.
    waiting: int
    most_at_once: int


def open_fire(dsn: str, fire: Fire, log: Path) -> Findings:
    """Run it; the workers' output goes to the log."""
    model = replace(model_from(fire.limits), latency=fire.latency, enforced=False)
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        # Responses are empty, so a call takes the tokens of its request.
        Provider({MODEL: model}, write=lambda _: "", seed=1) as provider,
    ):
        connection.execute(_HURRY.encode())
        hurry_duties(connection)
        _fill(connection, fire)
        with log.open("ab") as said, _crew(dsn, provider.url, fire.processes, said) as crew:
            kills = crew.serve(fire)
        row = connection.execute(_WAITING, (TASK,)).fetchone()
        account = provider.account()
        minute, hour = judge(provider.calls(), fire.limits)
    return Findings(
        calls=account.calls,
        over=account.over,
        minute_used=minute,
        hour_used=hour,
        kills=kills,
        waiting=row[0] if row is not None else 0,
        most_at_once=account.most_at_once,
    )


def judge(calls: Sequence[Call], limits: Mapping[str, int]) -> tuple[float, float]:
    """Return which share of a minute's and of an hour's capacity the calls used.

    The minute's share is the calls until the last window opened, over the capacity until then, so
    an unfinished window has no effect. In each window, requests or tokens count, whichever came
    closer to its limit.
    """
    openings = [
        place for place in range(1, len(calls)) if calls[place].at - calls[place - 1].at > _PAUSE
    ]
    minute = 0.0
    if openings:
        minutes = (calls[openings[-1]].at - calls[0].at) / 60
        windows = [calls[begin:end] for begin, end in pairwise([0, *openings])]
        minute = sum(_share(window, limits, "minute") for window in windows) / minutes
    return minute, _share(calls, limits, "hour")


def _share(calls: Sequence[Call], limits: Mapping[str, int], window: str) -> float:
    used = {"requests": len(calls), "tokens": sum(call.tokens for call in calls)}
    return max(
        used[unit] / limits[f"{unit}_per_{window}"]
        for unit in used
        if f"{unit}_per_{window}" in limits
    )


def _fill(connection: psycopg.Connection, fire: Fire) -> None:
    connection.execute(
        "select trunkline.set_limit(%s, %s::jsonb)", (LIMIT, json.dumps(dict(fire.limits)))
    )
    connection.execute(
        "select trunkline.register_task(p_task => %s, p_limits => %s, p_max_attempts => 1000)",
        (TASK, [LIMIT]),
    )
    jobs = [
        {
            "task": TASK,
            "payload": {"tokens": tokens},
            "cost": {"tokens": round(tokens * fire.estimate)},
        }
        for tokens in fire.tokens
    ]
    connection.execute(
        "select count(*) from trunkline.enqueue_many(%s::jsonb)", (json.dumps(jobs),)
    )


class _Crew:
    """Independent worker processes, so that a kill hits a single one."""

    def __init__(self, dsn: str, url: str, log: IO[bytes]) -> None:
        self._environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("TRUNKLINE_")
            },
            "TRUNKLINE_DSN": dsn,
            PROVIDER_VARIABLE: url,
        }
        self._log = log
        self._random = random.Random(5)
        self.members: list[subprocess.Popen[bytes]] = []

    def hire(self) -> None:
        self.members.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "from trunkline.cli.main import main; main()",
                    "worker",
                    "bench.apps.calling:app",
                    "--concurrency",
                    "4",
                ],
                cwd=ROOT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        )

    def kill_one(self) -> None:
        """Kill one of them and replace it."""
        victim = self.members.pop(self._random.randrange(len(self.members)))
        _kill(victim)
        self.hire()

    def serve(self, fire: Fire) -> int:
        """Let them work for this time; return how many were killed."""
        begin, kills = time.monotonic(), 0
        while (passed := time.monotonic() - begin) < fire.seconds:
            if fire.kill_every is not None and passed > (kills + 1) * fire.kill_every:
                self.kill_one()
                kills += 1
            for member in self.members:
                if member.poll() is not None:
                    raise RuntimeError(f"A worker ended with {member.returncode}; see its log")
            time.sleep(_LOOK_EVERY)
        return kills


@contextmanager
def _crew(dsn: str, url: str, processes: int, log: IO[bytes]) -> Iterator[_Crew]:
    crew = _Crew(dsn, url, log)
    try:
        for _ in range(processes):
            crew.hire()
        yield crew
    finally:
        for member in crew.members:
            _kill(member)


def _kill(member: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(member.pid, signal.SIGKILL)
    member.wait()
