"""Errors of a PostgreSQL server, or of the connection to it."""

from typing import ClassVar

from trunkline.errors.base import TrunklineError


class DatabaseProblem(TrunklineError):
    """PostgreSQL reported an error of its own, or the connection to it broke."""

    code = "database_problem"
    hint = (
        "The message comes from the server. If an earlier statement failed, roll back first. "
        "To check the server and the schema, run `trunkline doctor`."
    )
    # Whether the same call, unchanged, may succeed later.
    retryable: ClassVar[bool] = False


class AccessDenied(DatabaseProblem):
    """The server does not let this user connect."""

    code = "access_denied"
    hint = (
        "Check the user and the password in --dsn or TRUNKLINE_DSN (or PGPASSWORD, ~/.pgpass). The "
        "user must be a member of the role it needs: trunkline_producer, trunkline_worker, "
        "trunkline_operator or trunkline_reader."
    )


class ConnectionLost(DatabaseProblem):
    """The connection broke during a call; it is not known whether the server executed it."""

    code = "connection_lost"
    retryable = True
    hint = (
        "Repeat the call. An enqueue with an idempotency_key is safe to repeat: the second call "
        "returns the job of the first."
    )


class DatabaseFull(DatabaseProblem):
    """The server has no space left on a disk; the call changed nothing."""

    code = "database_full"
    retryable = True
    hint = (
        "Free space on the server's disk, or enlarge it; workers then continue on their own. "
        "`trunkline doctor` shows what uses the space; shorter retention settings free it."
    )


class DatabaseReadOnly(DatabaseProblem):
    """The server is a standby or read-only."""

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
    hint = "Wait until it is up. Workers and waiting clients reconnect on their own."


class StatementCancelled(DatabaseProblem):
    """The server cancelled a statement, after a timeout or at the request of a session."""

    code = "statement_cancelled"
    hint = (
        "Raise statement_timeout or lock_timeout for this role or database. `trunkline doctor` "
        "shows the value and where it is set."
    )


class TooManyConnections(DatabaseProblem):
    """The server, or the pool of this process, has no connection left."""

    code = "too_many_connections"
    retryable = True
    hint = (
        "Lower the number of processes or --connections, raise max_connections, or use a pooler "
        "such as PgBouncer in transaction mode."
    )


class TransactionConflict(DatabaseProblem):
    """A deadlock or a serialization failure: PostgreSQL rolled back the transaction."""

    code = "transaction_conflict"
    retryable = True
    hint = "Repeat the whole transaction."
