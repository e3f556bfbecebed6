"""Many at once: one probe and no more, no failure is overlooked, and nobody waits in a circle."""

import threading
from functools import partial

from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.support.calls import Attempt, Calls
from tests.support.waiting import together


def broken(desk: Desk, name: str, failures: int) -> None:
    parts = Jsonb({"breaker_failures": failures})
    desk.operator.value("select trunkline.set_limit(%s, %s)", name, parts)
    desk.task(name, max_attempts=100)


def crew(desk: Desk, size: int) -> list[Calls]:
    return [Calls(desk.database.connect("trunkline_worker")) for _ in range(size)]


def states(desk: Desk) -> dict[str, str]:
    rows = desk.operator.connection.execute("select name, state from trunkline.breakers")
    return dict(rows.fetchall())


def test_many_claims_at_once_start_one_probe(desk: Desk) -> None:
    """RF-86: whoever else claims at that moment, and however often it is half-open again."""
    broken(desk, "api", 10)
    desk.enqueue(200)
    hands = crew(desk, 8)
    desk.end(desk.claim(10), "fail")
    for turn in range(5):
        desk.database.move_time("1 minute")
        ready = threading.Barrier(len(hands))

        def take(hand: Calls, ready: threading.Barrier = ready) -> list[Attempt]:
            ready.wait()
            return [a for _ in range(10) for a in hand.claim("w", 20).attempts]

        taken = [
            attempt
            for found in together([partial(take, hand) for hand in hands])
            for attempt in found
        ]
        assert len(taken) == 1, f"turn {turn}"
        desk.end(taken, "fail")
    assert states(desk) == {"api": "open"}


def test_failures_at_the_same_moment_are_all_counted(desk: Desk) -> None:
    """RF-85: of two who each see the other's failure too late, none would open it."""
    broken(desk, "model/{model}", 8)
    hands = crew(desk, 8)
    for turn in range(10):
        desk.enqueue(8, payload={"model": str(turn)})
        attempts = desk.claim(8)
        ready = threading.Barrier(len(hands))

        def fail(hand: Calls, attempt: Attempt, ready: threading.Barrier = ready) -> list[str]:
            ready.wait()
            return [verdict.verdict for verdict in hand.batch("fail", "w", [attempt])]

        ends = together(
            [partial(fail, hand, one) for hand, one in zip(hands, attempts, strict=True)]
        )
        assert ends == [["ok"]] * 8
    found = states(desk)
    assert len(found) == 10
    assert set(found.values()) == {"open"}


def test_batches_over_the_same_breakers_do_not_wait_in_a_circle(desk: Desk) -> None:
    """Each batch has jobs of all keys; claims, probes and operators come between."""
    broken(desk, "model/{model}", 3)
    hands = crew(desk, 4)
    models = [str(number) for number in range(12)]
    for model in models:
        desk.enqueue(60, payload={"model": model})
    boss = Calls(desk.database.connect("trunkline_operator"))
    done = threading.Event()

    def work(number: int) -> int:
        hand, worker, ended = hands[number], f"w{number}", 0
        for turn in range(25):
            attempts = hand.claim(worker, 30).attempts
            if attempts:
                cut = len(attempts) // 3
                for how, part in (
                    ("fail", attempts[cut:][::-1] if turn % 2 else attempts[cut:]),
                    ("complete", attempts[:cut]),
                ):
                    if part:
                        hand.batch(how, worker, part)
                ended += len(attempts)
        return ended

    def reset() -> int:
        closed = 0
        while not done.is_set():
            closed += boss.value("select trunkline.reset_breaker('model/{model}')")
        return closed

    closed: list[int] = []
    thread = threading.Thread(target=lambda: closed.append(reset()))
    thread.start()
    try:
        ended = together([partial(work, number) for number in range(len(hands))])
    finally:
        done.set()
        thread.join()
    # A deadlock would have been an error in one of them.
    assert sum(ended) > 100
    assert closed[0] > 0
    assert set(states(desk)) == {f"model/{model}" for model in models}
