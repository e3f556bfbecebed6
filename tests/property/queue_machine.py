"""A Hypothesis machine whose rules are the queue's functions, checked against the model.

Few rules with many choices each: Hypothesis leaves rules out of an example, and one without a claim
says little.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.property.queue_steps import ENDS, OPERATIONS, QueueSteps
from tests.property.queue_walk import DELAYS, KEYS, MINUTES, QUEUES, TASKS, WORKERS, Walk

__all__ = ["QueueMachine"]

tasks = st.sampled_from(TASKS)
priorities = st.integers(-2, 2)
delays = st.sampled_from(DELAYS)
keys = st.sampled_from(KEYS)
workers = st.sampled_from(WORKERS)
queues = st.sampled_from(QUEUES)
which = st.integers(0, 1000)
several = st.lists(which, min_size=1, max_size=6)
# A worker mostly speaks of its own attempts.
impostors = st.sampled_from([None, None, None, None, *WORKERS])


class QueueMachine(RuleBasedStateMachine):
    """Rules are the functions of the queue, the passing of time and the death of workers."""

    def __init__(self, connections: Mapping[str, psycopg.Connection[Any]]) -> None:
        super().__init__()
        self.steps = QueueSteps(connections)

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        """Come to some state by chance: few examples would get there by the rules."""
        self.steps.register()
        walk = Walk(self.steps, seed)
        for _ in range(20):
            walk.step()

    @rule(task=tasks, priority=priorities, delay=delays, key=keys, repeat=keys)
    def enqueue(
        self, task: str, priority: int, delay: timedelta | None, key: str | None, repeat: str | None
    ) -> None:
        self.steps.enqueue(task, priority, delay, key, repeat)

    @rule(
        task=tasks, priority=priorities, delay=delays, given=st.lists(keys, min_size=1, max_size=5)
    )
    def enqueue_many(
        self, task: str, priority: int, delay: timedelta | None, given: list[str | None]
    ) -> None:
        self.steps.enqueue_many(task, priority, delay, given)

    @rule(name=workers, wanted=queues, limit=st.integers(1, 5), kept=st.booleans())
    def claim(self, name: str, wanted: list[str] | None, limit: int, kept: bool) -> None:
        self.steps.claim(name, wanted, limit, kept)

    @precondition(lambda self: self.steps.attempts)
    @rule(
        function=st.sampled_from(ENDS),
        chosen=several,
        impostor=impostors,
        retryable=st.sampled_from([True, True, False]),
        delay=delays,
    )
    def end(
        self,
        *,
        function: str,
        chosen: list[int],
        impostor: str | None,
        retryable: bool,
        delay: timedelta | None,
    ) -> None:
        some = self.steps.some(chosen)
        self.steps.end(function, impostor or some[0].worker, some, retryable, delay)

    @precondition(lambda self: self.steps.attempts)
    @rule(chosen=several, impostor=impostors)
    def heartbeat(self, chosen: list[int], impostor: str | None) -> None:
        some = self.steps.some(chosen)
        self.steps.heartbeat(impostor or some[0].worker, some)

    @rule(
        function=st.sampled_from([*OPERATIONS, *OPERATIONS, "pause", "resume"]),
        number=which,
        priority=priorities,
    )
    def operate(self, function: str, number: int, priority: int) -> None:
        if function == "pause":
            self.steps.pause("ab"[number % 2])
        elif function == "resume":
            self.steps.resume("ab"[number % 2])
        else:
            self.steps.operate(function, number, priority)

    @rule(minutes=st.sampled_from(MINUTES), reclaim=st.booleans())
    def pass_time(self, minutes: int, reclaim: bool) -> None:
        self.steps.pass_time(minutes)
        if reclaim:
            self.steps.reclaim()

    @rule(name=workers, anew=st.booleans())
    def be_seen(self, name: str, anew: bool) -> None:
        if anew or name not in self.steps.model.workers:
            self.steps.appear(name)
        else:
            self.steps.pulse(name)

    @rule(promote=st.booleans())
    def care(self, promote: bool) -> None:
        if promote:
            self.steps.promote()
        else:
            self.steps.reclaim()

    @invariant()
    def the_tables_say_what_the_model_says(self) -> None:
        self.steps.check()
