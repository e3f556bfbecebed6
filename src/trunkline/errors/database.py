"""What can go wrong between us and a PostgreSQL server."""

from typing import ClassVar

from trunkline.errors.base import TrunklineError


class DatabaseProblem(TrunklineError):
    """The server said no for a reason of its own, or the connection to it broke."""

    code = "database_problem"
    hint = (
        "The message is the server's own. If a statement before it failed, roll back first; "
        "`trunkline doctor` checks the server and the schema."
    )
    # Whether the same call may succeed later although nothing about it changed.
    retryable: ClassVar[bool] = False


class AccessDenied(DatabaseProblem):
    """The server does not let this user in."""

    code = "access_denied"
    hint = (
        "Check the user and the password in --dsn or TRUNKLINE_DSN (or PGPASSWORD, ~/.pgpass), and "
        "that the user is a member of the role it needs: trunkline_producer, trunkline_worker, "
        "trunkline_operator or trunkline_reader."
    )


class ConnectionLost(DatabaseProblem):
    """The connection broke during a call; whether the server carried it out is not known."""

    code = "connection_lost"
    retryable = True
    hint = (
        "Repeat the call. An enqueue is safe to repeat with an idempotency_key: the second one "
        "gets the first one's job."
    )


class DatabaseFull(DatabaseProblem):
    """The server has no space left on a disk; nothing of the call was done."""

    code = "database_full"
    retryable = True
    hint = (
        "Free space on the server's disk, or make it larger; work goes on by itself then. "
        "`trunkline doctor` shows what takes it; shorter retention settings give it back."
    )


class DatabaseReadOnly(DatabaseProblem):
    """The server is a standby or was made read-only."""

    code = "database_read_only"
    retryable = True
    hint = (
        "Connect to the primary: list all hosts in the connection string and add "
        "target_session_attrs=read-write."
    )


class ServerNotReady(DatabaseProblem):
    """The server is starting, stopping or in recovery."""

    code = "server_not_ready"
    retryable = True
    hint = "Wait until it is up; workers and waiting clients go on by themselves."


class StatementCancelled(DatabaseProblem):
    """The server ended a statement: it ran into a timeout, or somebody stopped it."""

    code = "statement_cancelled"
    hint = (
        "Raise statement_timeout or lock_timeout for this role or database; `trunkline doctor` "
        "names the value and where it is set."
    )


class TooManyConnections(DatabaseProblem):
    """The server, or the pool of this process, has no connection left."""

    code = "too_many_connections"
    retryable = True
    hint = (
        "Lower the number of processes or --connections, raise max_connections, or put a pooler "
        "such as PgBouncer in transaction mode in between."
    )


class TransactionConflict(DatabaseProblem):
    """A deadlock or a serialization failure: PostgreSQL ended the transaction, nothing was kept."""

    code = "transaction_conflict"
    retryable = True
    hint = "Repeat the transaction from its beginning."
