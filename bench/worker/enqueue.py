"""Single enqueues, one after the other, each in its own transaction, through the client.

No worker runs, as in the baseline. Contenders take turns of 50 calls.
"""

from contextlib import ExitStack
from statistics import median

from bench.figures import Figure
from bench.sizes import Sizes
from bench.worker.processes import producing
from bench.worker.stage import Stage

__all__ = ["run"]

_CALLS = 50


def run(stage: Stage, sizes: Sizes) -> list[Figure]:
    """Measure; goal: not slower than the rival."""
    contenders = stage.contenders[:2]
    seconds: dict[str, list[float]] = {each.key: [] for each in contenders}
    path, _ = stage.slate(1)
    with ExitStack() as stack:
        producers = {}
        for contender in contenders:
            contender.forget()
            producers[contender.key] = stack.enter_context(producing(contender, path))
            producers[contender.key].do("singly", 0, _CALLS)
        for _ in range(sizes.single_turns):
            for key, producer in producers.items():
                seconds[key].append(producer.do("singly", 0, _CALLS))
    figures = [
        Figure(
            f"single_enqueue_{each.key}",
            _CALLS / median(seconds[each.key]),
            f"{each.name}: single enqueue",
            "jobs/s",
        )
        for each in contenders
    ]
    for rival in contenders[1:]:
        pairs = zip(seconds[rival.key], seconds[stage.ours.key], strict=True)
        figures.append(
            Figure(
                f"single_enqueue_vs_{rival.key}",
                median(theirs / mine for theirs, mine in pairs),
                f"over {rival.name}",
                goal=1.0,
            )
        )
    return figures
