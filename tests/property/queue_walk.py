"""A walk through the queue's functions by chance alone, from a seed that can be walked again."""

import random
from datetime import timedelta

from tests.property.queue_steps import ENDS, OPERATIONS, QueueSteps

__all__ = ["DELAYS", "KEYS", "MINUTES", "QUEUES", "TASKS", "WORKERS", "Walk"]

WORKERS = ("w1", "w2", "w3")
TASKS = ("patient", "patient", "brittle")
DELAYS = (None, timedelta(0), timedelta(minutes=1), timedelta(minutes=5))
KEYS = (None, "k1", "k2")
QUEUES = (None, None, ["a"], ["b"], ["b", "a"])
MINUTES = (1, 4, 11, 30)


class Walk:
    """Weighted so that most jobs are claimed and end in every way there is."""

    def __init__(self, steps: QueueSteps, seed: int) -> None:
        self.steps = steps
        self.rng = random.Random(seed)

    def step(self) -> None:
        """Do one thing by chance and look at everything."""
        steps, rng = self.steps, self.rng
        step = rng.choice(["enqueue", "enqueue", "claim", "claim", "end", "end", "operate", "else"])
        delay = rng.choice(DELAYS)
        if step == "enqueue":
            key, repeat = rng.choice([None, *KEYS]), rng.choice([None] * 6 + ["r1", "r2"])
            steps.enqueue(rng.choice(TASKS), rng.randint(-2, 2), delay, key, repeat)
        elif step == "claim":
            kept = rng.random() < 0.7
            steps.claim(rng.choice(WORKERS), rng.choice(QUEUES), rng.randint(1, 5), kept)
        elif step == "end" and steps.attempts:
            some = steps.some([rng.randint(0, 1000) for _ in range(rng.randint(1, 4))])
            name = rng.choice([*WORKERS, *[some[0].worker] * 6])
            if rng.random() < 0.2:
                steps.heartbeat(name, some)
            else:
                steps.end(rng.choice(ENDS), name, some, rng.random() < 0.6, delay)
        elif step == "operate":
            steps.operate(rng.choice(OPERATIONS), rng.randint(0, 1000), rng.randint(-2, 2))
        else:
            self._live()
        steps.check()

    def _live(self) -> None:
        rng = self.rng
        match rng.randint(0, 6):
            case 0:
                self.steps.pass_time(rng.choice(MINUTES))
            case 1:
                self.steps.appear(rng.choice(WORKERS))
            case 2:
                self.steps.promote()
            case 3:
                self.steps.pause(rng.choice("ab"))
            case 4:
                self._cross()
            case 5:
                self.steps.resume("a")
                self.steps.resume("b")
            case _:
                self.steps.pass_time(rng.choice(MINUTES))
                self.steps.reclaim()

    def _cross(self) -> None:
        """Meetings that chance alone seldom brings about."""
        model, rng = self.steps.model, self.rng
        if held := [a for a in self.steps.attempts if model.holds(*a)]:
            attempt = rng.choice(held)
            self.steps.change("cancel", attempt.job)
            self.steps.heartbeat(attempt.worker, [attempt])
            # The right worker with an attempt that is none, or no more: only the number tells.
            ghost = attempt._replace(number=attempt.number + rng.choice([-1, 1]))
            self.steps.end(rng.choice(ENDS), attempt.worker, [ghost], True, None)
            self.steps.end(rng.choice(ENDS), attempt.worker, [attempt], True, None)
        if over := [i for i, job in model.jobs.items() if job.state in {"completed", "cancelled"}]:
            id_ = rng.choice(over)
            self.steps.change("retry", id_)
            self.steps.change("retry", id_)
        dead = [i for i, job in model.jobs.items() if job.state == "dead" and job.unique_key]
        if dead:
            id_ = rng.choice(dead)
            job = model.jobs[id_]
            self.steps.enqueue(job.task, 0, None, job.unique_key, None)
            self.steps.change("retry", id_)
