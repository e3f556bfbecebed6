"""Every exception that Trunkline raises on purpose.

TrunklineError
├── ApiNotInstalled                 the HTTP API without the extra `api`
├── ApiSettingInvalid               a setting of the HTTP API has a bad value
├── ApiUnreachable                  the HTTP API does not answer
├── BackupError                     saving a database to a file, or loading it
│   ├── BackupFailed                pg_dump or pg_restore stopped with an error
│   ├── BackupFileExists            the file to write exists
│   ├── BackupHidesRows             row-level security hides rows from the role
│   ├── BackupProgramsMissing       no pg_dump or pg_restore is new enough
│   ├── BackupUnreadable            not a backup, or a damaged one
│   ├── RestoreIncomplete           rows are missing after a restore
│   ├── RestoreRefused              the target cannot take the backup
│   └── RestoreTargetNotEmpty       the target already has objects
├── CallError                       a handler's call to a provider failed
│   ├── HttpNotInstalled            ctx.http without the extra `http`
│   ├── LimitExhausted              the limit has no room, and the handler does not wait
│   └── RateLimited                 the provider refused the call for now
├── DatabaseProblem                 the server reported an error of PostgreSQL
│   ├── AccessDenied                wrong user or password
│   ├── ConnectionLost              the connection broke during a call
│   ├── DatabaseFull                no space left on the server
│   ├── DatabaseReadOnly            the server is a standby or read-only
│   ├── ServerNotReady              starting, stopping or in recovery
│   ├── StatementCancelled          a statement exceeded a timeout or was cancelled
│   ├── TooManyConnections          no connection left
│   └── TransactionConflict         deadlock or serialization failure
├── DatabaseUnreachable             no connection to the given server
├── DsnRequired                     no connection string, and the embedded server is not allowed
├── EmbeddedError                   the embedded PostgreSQL server
│   ├── EmbeddedBinariesMissing     no PostgreSQL programs were found
│   ├── EmbeddedDataVersion         the data folder belongs to another major version
│   ├── EmbeddedFolderUnsafe        other users control the folder or the socket directory
│   ├── EmbeddedInUse               other processes use the server, so it was not stopped
│   ├── EmbeddedNotRunning          the server is not running
│   ├── EmbeddedPlatform            this platform or account cannot run a server
│   └── EmbeddedStartFailed         the server did not start, or did not stop
├── InvalidVariable                 an environment variable has a bad value
├── JobError                        an attempt failed, or a job did not end as expected
│   ├── EmitTooLarge                an attempt emits more than it may
│   ├── HandlerProcessDied          the process of a handler died
│   ├── HardLimitExceeded           an attempt exceeded its hard limit
│   ├── JobCancelled                the awaited job was cancelled
│   ├── JobFailed                   the awaited job is dead
│   └── WaitTimeout                 the awaited job did not end in time
├── ProfileError                    a profile, or its installation
│   ├── DuplicateProfile            two distributions provide a profile of the same name
│   ├── ProfileBroken               the profile cannot be imported, or is not a profile
│   ├── ProfileInUse                a roll-back would remove objects that are in use
│   ├── ProfileNeedsPackages        packages that its handlers need are missing
│   ├── ProfileNotInstalled         the profile, or the phase needed, is not installed
│   ├── ProfileSchemaName           the name cannot be the schema of a profile
│   ├── UnknownPhase                the profile has no such phase
│   └── UnknownProfile              there is no such profile
├── Refusal                         the engine refused a request; one class for each SQLSTATE
│   ├── ArrayLengthMismatch         TL008  the arrays of a batch do not match
│   ├── ArtifactGone                TL057  the artifact was deleted
│   ├── AttemptCancelled            TL040  the worker has received a cancel request
│   ├── CostOverLimit               TL033  a job costs more than its limit can ever allow
│   ├── EmptyFilter                 TL038  a change of many jobs names no filter
│   ├── EventMismatch               TL050  the event id was used for another payload
│   ├── EventTooLarge               TL051  the payload of an event is too large
│   ├── IdempotencyMismatch         TL027  the idempotency key was used for another request
│   ├── InvalidArgument             TL028  an argument is not valid
│   ├── InvalidArtifact             TL058  a name, kind, size or path of an artifact is not valid
│   ├── InvalidCost                 TL032  a cost is not a whole number, or the task has no limits
│   ├── InvalidCron                 TL012  a cron expression is not valid, or is never due
│   ├── InvalidFilter               TL037  a filter of jobs is not valid
│   ├── InvalidPolicy               TL022  a task policy is not valid
│   ├── InvalidSetting              TL021  a value is not valid for its setting
│   ├── InvalidWorkflow             TL041  the graph of a workflow is not valid
│   ├── IsolationLevel              TL016  the transaction's isolation is above READ COMMITTED
│   ├── JobsTooDeep                 TL055  more than 10 levels of jobs wait for others
│   ├── LimitKeyMissing             TL031  the payload lacks a key of the limit's name
│   ├── LimitOutOfRange             TL006  a number is out of its range
│   ├── LimitQueueFull              TL034  too many jobs wait for the limit
│   ├── NegativeDelay               TL004  a delay is below zero
│   ├── NeedsAllTenants             TL036  a change that affects all tenants
│   ├── NothingToRetry              TL047  the workflow has no dead job to run again
│   ├── PayloadNotObject            TL002  the payload is not a JSON object
│   ├── PayloadTooLarge             TL003  a payload or result is too large
│   ├── PriorityOutOfRange          TL005  a priority is not from -50 to 49
│   ├── ProfileRefusal              a function of a profile refused a call
│   ├── QueueFull                   TL011  the queue has reached its max_depth
│   ├── QueuePaused                 TL010  the queue is paused and refuses new jobs
│   ├── QuotaSpent                  TL035  the quota of a limit, or a budget, is spent
│   ├── StaleAttempt                TL009  another attempt owns the job
│   ├── StepTooLarge                TL052  the result of a step is too large
│   ├── StorageQuotaExceeded        TL059  the tenant's storage is used up
│   ├── TenantDenied                TL017  the tenant is not the caller's
│   ├── TooManySteps                TL053  a job has 10,000 steps
│   ├── UniqueKeyHeld               TL018  another live job holds the unique key
│   ├── UnknownArtifact             TL056  there is no such artifact, or it is another tenant's
│   ├── UnknownDuty                 TL029  there is no such duty
│   ├── UnknownJob                  TL015  there is no such job, or it is another tenant's
│   ├── UnknownLimit                TL030  there is no such limit
│   ├── UnknownQueue                TL026  there is no such queue
│   ├── UnknownRecordedStep         TL054  the job has no such recorded step
│   ├── UnknownSchedule             TL024  there is no such schedule
│   ├── UnknownServiceKey           TL060  there is no such service key
│   ├── UnknownSetting              TL020  there is no such setting
│   ├── UnknownStep                 TL044  no such step, or the job does not depend on it
│   ├── UnknownTask                 TL001  the task is not registered
│   ├── UnknownTimeZone             TL023  there is no such time zone
│   ├── UnknownWorker               TL025  the worker is not registered
│   ├── UnknownWorkflow             TL043  no such workflow, or it is another tenant's
│   ├── WorkerRequired              TL007  the name of the worker is missing
│   ├── WorkflowJobGone             TL046  a job that a rerun needs is gone
│   ├── WorkflowTooLarge            TL042  a workflow has too many jobs or dependencies
│   ├── WrongState                  TL019  the state of the job does not allow this
│   └── WrongWorkflowState          TL045  the state of the workflow does not allow this
├── RequestError                    the HTTP API refused a request
│   ├── BodyTooLarge                the body is larger than the server takes
│   ├── BodyTooSlow                 the body did not arrive in time
│   ├── InvalidRequest              a field has an unknown name or a wrong type
│   ├── MalformedRequest            not JSON, or a header that cannot be read
│   ├── MethodNotAllowed            the path does not take this method
│   ├── NotPermitted                the role of the caller may not do this
│   ├── SignInRefused               a token or a service key is not valid
│   ├── SignInRequired              there are no credentials
│   ├── TooManyRequests             failed to sign in too often, or the server is busy
│   ├── TooManyStreams              the server has too many open streams
│   ├── TooManyTenantStreams        the tenant has too many open streams
│   ├── UnknownPath                 the API has no such path
│   └── UnsupportedBody             the body has another type than the path takes
├── SandboxError                    the database of a test
│   ├── DrainUnfinished             handlers kept enqueuing jobs during a drain
│   ├── JobNotRunnable              the job to run cannot be claimed
│   └── SandboxMisused              not open, or in the wrong kind of test
├── SchemaError                     the schema in a database, or its files in the package
│   ├── InstallationRefused         the database or the installer does not allow it; a Refusal
│   │   ├── ForeignSchema           TL092  a schema named trunkline belongs to another role
│   │   ├── InstallerLacksRight     TL090  the installer lacks a privilege
│   │   ├── PlatformRolesMissing    TL094  the roles of the platform do not exist
│   │   ├── SchemaVersionMismatch   TL093  a printed script starts from another version
│   │   ├── ServerTooOld            TL013  the server is older than PostgreSQL 15
│   │   └── UnsafeRole              TL091  a role of Trunkline has dangerous attributes
│   ├── MalformedSql                a shipped SQL file is damaged
│   ├── MigrationChanged            an applied migration differs from the shipped one
│   ├── SchemaChangeFailed          a statement of an installation or upgrade failed
│   ├── SchemaForbidden             the role of this connection may not use the schema
│   ├── SchemaInUse                 your own objects depend on the schema
│   ├── SchemaLocked                another session holds a lock that the change needs
│   ├── SchemaMissing               there is no schema in this database
│   ├── SchemaNewerThanClient       TL014  the schema no longer supports this client; a Refusal
│   ├── SchemaOlderThanClient       the schema is too old for this client
│   └── SchemaPredatesBaseline      TL095  the schema is from before the baseline; a Refusal
├── StepError                       a durable step, a wait or child jobs of a handler
│   ├── ChildJobFailed              a job of ctx.gather_jobs is dead or cancelled
│   ├── EventTimeout                the event of ctx.wait_for did not arrive in time
│   ├── StepChanged                 a recorded step was called with other arguments
│   ├── StepConflict                two calls of one step run at once without key
│   └── StepMismatch                a recorded result does not match its annotation
├── StoreError                      a store of artifacts, or a link to one of its files
│   ├── FileDamaged                 a file differs from what was recorded about it
│   ├── FileHeadersUnsafe           a file was uploaded without the headers that keep browsers safe
│   ├── FileMissing                 the store has no such file
│   ├── LinkInvalid                 a signed link is expired, incomplete or changed
│   ├── StoreAddressInvalid         the address of a store cannot be used
│   ├── StoreDenied                 the store refuses the credentials or the operation
│   ├── StoreFolderUnsafe           a folder of a local store is a link
│   ├── StoreFull                   the store has no space left
│   ├── StoreNotConfigured          artifacts are used, and no store is named
│   ├── StoreNotInstalled           a bucket is configured without the extra `s3`
│   └── StoreUnreachable            the store does not answer, or takes too long
├── TaskError                       a mistake in the definition or the call of a task
│   ├── AppNotFound                 the path does not lead to an application
│   ├── DuplicateTask               two handlers have the same name
│   ├── InvalidDuration             a value is not a valid duration
│   ├── InvalidOptions              a worker's options are not valid
│   ├── InvalidTask                 a function cannot be a handler
│   ├── PayloadMismatch             arguments do not match the handler
│   ├── ResultMismatch              a stored result does not match the handler
│   ├── ResultNotStorable           a result is not JSON
│   ├── TaskNotCallable             a task was called like a function
│   ├── UnsupportedConnection       a connection of an unknown or the wrong kind
│   └── WrongResult                 a result does not match the handler's return annotation
└── WorkflowError                   waiting for a workflow, or reading it
    ├── NotInWorkflow               a handler asked for the workflow of a plain job
    ├── ResultMissing               a step has no single result
    ├── WorkflowCancelled           the awaited workflow was cancelled
    ├── WorkflowFailed              the awaited workflow failed
    └── WorkflowTimeout             the awaited workflow did not end in time

The register in sql/README.md lists each refusal with its message, whether it passes by itself, and
its HTTP status.
"""

from trunkline.errors.artifacts import (
    FileDamaged,
    FileHeadersUnsafe,
    FileMissing,
    LinkInvalid,
    StoreAddressInvalid,
    StoreDenied,
    StoreError,
    StoreFolderUnsafe,
    StoreFull,
    StoreNotConfigured,
    StoreNotInstalled,
    StoreUnreachable,
)
from trunkline.errors.backup import (
    BackupError,
    BackupFailed,
    BackupFileExists,
    BackupHidesRows,
    BackupProgramsMissing,
    BackupUnreadable,
    RestoreIncomplete,
    RestoreRefused,
    RestoreTargetNotEmpty,
)
from trunkline.errors.base import (
    DatabaseUnreachable,
    DsnRequired,
    InvalidVariable,
    Refusal,
    TrunklineError,
)
from trunkline.errors.calls import (
    HTTP_ERRORS,
    CallError,
    HttpError,
    HttpNotInstalled,
    LimitExhausted,
    RateLimited,
    http_error_of,
)
from trunkline.errors.database import (
    AccessDenied,
    ConnectionLost,
    DatabaseFull,
    DatabaseProblem,
    DatabaseReadOnly,
    ServerNotReady,
    StatementCancelled,
    TooManyConnections,
    TransactionConflict,
)
from trunkline.errors.durable_refusals import (
    ArtifactGone,
    EventMismatch,
    EventTooLarge,
    InvalidArtifact,
    InvalidWorkflow,
    JobsTooDeep,
    NothingToRetry,
    StepTooLarge,
    StorageQuotaExceeded,
    TooManySteps,
    UnknownArtifact,
    UnknownRecordedStep,
    UnknownStep,
    UnknownWorkflow,
    WorkflowJobGone,
    WorkflowTooLarge,
    WrongWorkflowState,
)
from trunkline.errors.embedded import (
    EmbeddedBinariesMissing,
    EmbeddedDataVersion,
    EmbeddedError,
    EmbeddedFolderUnsafe,
    EmbeddedInUse,
    EmbeddedNotRunning,
    EmbeddedPlatform,
    EmbeddedStartFailed,
)
from trunkline.errors.jobs import (
    EmitTooLarge,
    HandlerProcessDied,
    HardLimitExceeded,
    JobCancelled,
    JobError,
    JobFailed,
    WaitTimeout,
)
from trunkline.errors.profiles import (
    DuplicateProfile,
    ProfileBroken,
    ProfileError,
    ProfileInUse,
    ProfileNeedsPackages,
    ProfileNotInstalled,
    ProfileRefusal,
    ProfileSchemaName,
    UnknownPhase,
    UnknownProfile,
)
from trunkline.errors.refusals import (
    ArrayLengthMismatch,
    AttemptCancelled,
    CostOverLimit,
    EmptyFilter,
    IdempotencyMismatch,
    InvalidArgument,
    InvalidCost,
    InvalidCron,
    InvalidFilter,
    InvalidPolicy,
    InvalidSetting,
    IsolationLevel,
    LimitKeyMissing,
    LimitOutOfRange,
    LimitQueueFull,
    NeedsAllTenants,
    NegativeDelay,
    PayloadNotObject,
    PayloadTooLarge,
    PriorityOutOfRange,
    QueueFull,
    QueuePaused,
    QuotaSpent,
    StaleAttempt,
    TenantDenied,
    UniqueKeyHeld,
    UnknownDuty,
    UnknownJob,
    UnknownLimit,
    UnknownQueue,
    UnknownSchedule,
    UnknownServiceKey,
    UnknownSetting,
    UnknownTask,
    UnknownTimeZone,
    UnknownWorker,
    WorkerRequired,
    WrongState,
)
from trunkline.errors.requests import (
    ApiNotInstalled,
    ApiSettingInvalid,
    ApiUnreachable,
    BodyTooLarge,
    BodyTooSlow,
    InvalidRequest,
    MalformedRequest,
    MethodNotAllowed,
    NotPermitted,
    RequestError,
    SignInRefused,
    SignInRequired,
    TooManyRequests,
    TooManyStreams,
    TooManyTenantStreams,
    UnknownPath,
    UnsupportedBody,
)
from trunkline.errors.schema import (
    ForeignSchema,
    InstallationRefused,
    InstallerLacksRight,
    MalformedSql,
    MigrationChanged,
    PlatformRolesMissing,
    SchemaChangeFailed,
    SchemaError,
    SchemaForbidden,
    SchemaInUse,
    SchemaLocked,
    SchemaMissing,
    SchemaNewerThanClient,
    SchemaOlderThanClient,
    SchemaPredatesBaseline,
    SchemaVersionMismatch,
    ServerTooOld,
    UnsafeRole,
)
from trunkline.errors.sqlstates import SQLSTATES, from_sqlstate
from trunkline.errors.steps import (
    ChildJobFailed,
    EventTimeout,
    StepChanged,
    StepConflict,
    StepError,
    StepMismatch,
)
from trunkline.errors.tasks import (
    AppNotFound,
    DuplicateTask,
    InvalidDuration,
    InvalidOptions,
    InvalidTask,
    PayloadMismatch,
    ResultMismatch,
    ResultNotStorable,
    TaskError,
    TaskNotCallable,
    UnsupportedConnection,
    WrongResult,
)
from trunkline.errors.testing import (
    DrainUnfinished,
    JobNotRunnable,
    SandboxError,
    SandboxMisused,
)
from trunkline.errors.workflows import (
    NotInWorkflow,
    ResultMissing,
    WorkflowCancelled,
    WorkflowError,
    WorkflowFailed,
    WorkflowTimeout,
)

__all__ = [
    "HTTP_ERRORS",
    "SQLSTATES",
    "AccessDenied",
    "ApiNotInstalled",
    "ApiSettingInvalid",
    "ApiUnreachable",
    "AppNotFound",
    "ArrayLengthMismatch",
    "ArtifactGone",
    "AttemptCancelled",
    "BackupError",
    "BackupFailed",
    "BackupFileExists",
    "BackupHidesRows",
    "BackupProgramsMissing",
    "BackupUnreadable",
    "BodyTooLarge",
    "BodyTooSlow",
    "CallError",
    "ChildJobFailed",
    "ConnectionLost",
    "CostOverLimit",
    "DatabaseFull",
    "DatabaseProblem",
    "DatabaseReadOnly",
    "DatabaseUnreachable",
    "DrainUnfinished",
    "DsnRequired",
    "DuplicateProfile",
    "DuplicateTask",
    "EmbeddedBinariesMissing",
    "EmbeddedDataVersion",
    "EmbeddedError",
    "EmbeddedFolderUnsafe",
    "EmbeddedInUse",
    "EmbeddedNotRunning",
    "EmbeddedPlatform",
    "EmbeddedStartFailed",
    "EmitTooLarge",
    "EmptyFilter",
    "EventMismatch",
    "EventTimeout",
    "EventTooLarge",
    "FileDamaged",
    "FileHeadersUnsafe",
    "FileMissing",
    "ForeignSchema",
    "HandlerProcessDied",
    "HardLimitExceeded",
    "HttpError",
    "HttpNotInstalled",
    "IdempotencyMismatch",
    "InstallationRefused",
    "InstallerLacksRight",
    "InvalidArgument",
    "InvalidArtifact",
    "InvalidCost",
    "InvalidCron",
    "InvalidDuration",
    "InvalidFilter",
    "InvalidOptions",
    "InvalidPolicy",
    "InvalidRequest",
    "InvalidSetting",
    "InvalidTask",
    "InvalidVariable",
    "InvalidWorkflow",
    "IsolationLevel",
    "JobCancelled",
    "JobError",
    "JobFailed",
    "JobNotRunnable",
    "JobsTooDeep",
    "LimitExhausted",
    "LimitKeyMissing",
    "LimitOutOfRange",
    "LimitQueueFull",
    "LinkInvalid",
    "MalformedRequest",
    "MalformedSql",
    "MethodNotAllowed",
    "MigrationChanged",
    "NeedsAllTenants",
    "NegativeDelay",
    "NotInWorkflow",
    "NotPermitted",
    "NothingToRetry",
    "PayloadMismatch",
    "PayloadNotObject",
    "PayloadTooLarge",
    "PlatformRolesMissing",
    "PriorityOutOfRange",
    "ProfileBroken",
    "ProfileError",
    "ProfileInUse",
    "ProfileNeedsPackages",
    "ProfileNotInstalled",
    "ProfileRefusal",
    "ProfileSchemaName",
    "QueueFull",
    "QueuePaused",
    "QuotaSpent",
    "RateLimited",
    "Refusal",
    "RequestError",
    "RestoreIncomplete",
    "RestoreRefused",
    "RestoreTargetNotEmpty",
    "ResultMismatch",
    "ResultMissing",
    "ResultNotStorable",
    "SandboxError",
    "SandboxMisused",
    "SchemaChangeFailed",
    "SchemaError",
    "SchemaForbidden",
    "SchemaInUse",
    "SchemaLocked",
    "SchemaMissing",
    "SchemaNewerThanClient",
    "SchemaOlderThanClient",
    "SchemaPredatesBaseline",
    "SchemaVersionMismatch",
    "ServerNotReady",
    "ServerTooOld",
    "SignInRefused",
    "SignInRequired",
    "StaleAttempt",
    "StatementCancelled",
    "StepChanged",
    "StepConflict",
    "StepError",
    "StepMismatch",
    "StepTooLarge",
    "StorageQuotaExceeded",
    "StoreAddressInvalid",
    "StoreDenied",
    "StoreError",
    "StoreFolderUnsafe",
    "StoreFull",
    "StoreNotConfigured",
    "StoreNotInstalled",
    "StoreUnreachable",
    "TaskError",
    "TaskNotCallable",
    "TenantDenied",
    "TooManyConnections",
    "TooManyRequests",
    "TooManySteps",
    "TooManyStreams",
    "TooManyTenantStreams",
    "TransactionConflict",
    "TrunklineError",
    "UniqueKeyHeld",
    "UnknownArtifact",
    "UnknownDuty",
    "UnknownJob",
    "UnknownLimit",
    "UnknownPath",
    "UnknownPhase",
    "UnknownProfile",
    "UnknownQueue",
    "UnknownRecordedStep",
    "UnknownSchedule",
    "UnknownServiceKey",
    "UnknownSetting",
    "UnknownStep",
    "UnknownTask",
    "UnknownTimeZone",
    "UnknownWorker",
    "UnknownWorkflow",
    "UnsafeRole",
    "UnsupportedBody",
    "UnsupportedConnection",
    "WaitTimeout",
    "WorkerRequired",
    "WorkflowCancelled",
    "WorkflowError",
    "WorkflowFailed",
    "WorkflowJobGone",
    "WorkflowTimeout",
    "WorkflowTooLarge",
    "WrongResult",
    "WrongState",
    "WrongWorkflowState",
    "from_sqlstate",
    "http_error_of",
]
