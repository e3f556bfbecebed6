"""How the table of bad calls names who calls what."""

__all__ = [
    "LARGE",
    "LONG",
    "MINE",
    "NOBODY",
    "OPERATOR",
    "PRODUCER",
    "WORKER",
    "by",
    "enqueue",
    "many",
]

PRODUCER, WORKER, OPERATOR = "trunkline_producer", "trunkline_worker", "trunkline_operator"
NOBODY = "'00000000-0000-7000-8000-000000000000'::uuid"
LARGE = "jsonb_build_object('x', repeat('y', 262144))"
MINE = "p_worker => 'w', p_jobs => array[<running>], p_attempts => '{1}'"
LONG = "repeat('x', 201)"


def enqueue(*arguments: str) -> list[tuple[str, str]]:
    return [(PRODUCER, f"trunkline.enqueue(p_task => 'known', {given})") for given in arguments]


def by(role: str, *calls: str) -> list[tuple[str, str]]:
    return [(role, call) for call in calls]


def many(*jobs: str) -> list[tuple[str, str]]:
    """Batches with a good job before the bad one: neither may be kept."""
    good = '{"task": "known"}'
    return [
        (PRODUCER, f"trunkline.enqueue_many(p_jobs => '[{good}, {job}, {good}]')") for job in jobs
    ]
