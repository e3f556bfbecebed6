"""/v1/schedules, /v1/workers, /v1/duties, /v1/settings, /v1/tasks and /v1/log."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from starlette.requests import Request

from trunkline.http.answers import Answer, page_link
from trunkline.http.caller import CallerSession
from trunkline.http.routing import Routes
from trunkline.http.v1.filters import Limit
from trunkline.http.v1.flow import DoneAnswer
from trunkline.http.v1.jobs import Priority
from trunkline.http.v1.reasons import Reason, Text
from trunkline.model import (
    DutyRun,
    DutyStatus,
    LogEntry,
    ScheduleChange,
    ScheduleStatus,
    SettingStatus,
    TaskStatus,
    WorkerStatus,
    WorkerTarget,
)

__all__ = ["ROUTES"]

ROUTES: Final = Routes("schedules, workers, duties and settings")

_NO_SCHEDULE: Final = {404: "There is no such schedule."}
_NO_DUTY: Final = {404: "There is no such duty."}
_NO_SETTING: Final = {404: "There is no such setting."}
_Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


class SchedulesAnswer(msgspec.Struct, kw_only=True):
    """Every schedule with its next due time and its last run."""

    schedules: list[ScheduleStatus]


class NewSchedule(Reason, kw_only=True, forbid_unknown_fields=True):
    """What a schedule enqueues, and when."""

    cron: Text
    task: Text
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    time_zone: Text = "UTC"
    queue: Text | None = None
    priority: Priority | None = None
    tenant: Text | None = None
    missed: Literal["once", "skip", "all"] = "once"
    # Null leaves a pause as it is.
    paused: bool | None = None


class WorkersQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Whether stopped workers are listed too."""

    everyone: bool = False


class WorkersAnswer(msgspec.Struct, kw_only=True):
    """Worker processes, and how many are wanted by queue and set of tasks."""

    workers: list[WorkerStatus]
    wanted: list[WorkerTarget]


class DrainedAnswer(msgspec.Struct, kw_only=True):
    """The state of the worker."""

    state: str


class DutiesAnswer(msgspec.Struct, kw_only=True):
    """Every duty with its last runs and whether it is late."""

    duties: list[DutyStatus]


class SettingsAnswer(msgspec.Struct, kw_only=True):
    """Every setting with its value, where it comes from, and its range."""

    settings: list[SettingStatus]


class NewValue(Reason, kw_only=True, forbid_unknown_fields=True):
    """The value of a setting, as text."""

    value: Text


class SetSetting(msgspec.Struct, kw_only=True):
    """A setting and its new value."""

    name: str
    value: str


class TasksAnswer(msgspec.Struct, kw_only=True):
    """Every task with its policy, its limits and its schedules."""

    tasks: list[TaskStatus]


class LogQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which lines; `before` is the last `log_id` of the page before."""

    action: Text | None = None
    kind: Text | None = None
    object_name: Text | None = None
    actor: Text | None = None
    since: _Zoned | None = None
    until: _Zoned | None = None
    limit: Limit = 100
    before: Annotated[int, msgspec.Meta(ge=0, le=9_223_372_036_854_775_807)] | None = None


class LogAnswer(msgspec.Struct, kw_only=True):
    """What operators changed, newest first. `next` is the next page's `before`."""

    entries: list[LogEntry]
    next: int | None


@ROUTES.get("/v1/schedules")
async def list_schedules(session: CallerSession) -> SchedulesAnswer:
    """List schedules with their next due times and last runs."""
    return SchedulesAnswer(schedules=await session.operator.schedules.list())


@ROUTES.get("/v1/schedules/{schedule}", statuses=_NO_SCHEDULE)
async def read_schedule(session: CallerSession, schedule: str) -> ScheduleStatus:
    """Return one schedule."""
    return await session.operator.schedules.get(schedule)


@ROUTES.put("/v1/schedules/{schedule}")
async def set_schedule(session: CallerSession, schedule: str, body: NewSchedule) -> ScheduleChange:
    """Create a schedule, or replace it."""
    values = {name: getattr(body, name) for name in body.__struct_fields__}
    return await session.operator.schedules.set(schedule, values.pop("cron"), **values)


@ROUTES.post("/v1/schedules/{schedule}/pause", statuses=_NO_SCHEDULE)
async def pause_schedule(session: CallerSession, schedule: str, body: Reason) -> ScheduleChange:
    """Enqueue nothing until the schedule is resumed."""
    return await session.operator.schedules.pause(schedule, reason=body.reason)


@ROUTES.post("/v1/schedules/{schedule}/resume", statuses=_NO_SCHEDULE)
async def resume_schedule(session: CallerSession, schedule: str, body: Reason) -> ScheduleChange:
    """Continue from now on; due times during the pause do not count as missed."""
    return await session.operator.schedules.resume(schedule, reason=body.reason)


@ROUTES.delete("/v1/schedules/{schedule}", statuses=_NO_SCHEDULE)
async def remove_schedule(session: CallerSession, schedule: str) -> DoneAnswer:
    """Remove a schedule; the jobs that it has enqueued stay."""
    await session.operator.schedules.remove(schedule)
    return DoneAnswer()


@ROUTES.get("/v1/workers")
async def list_workers(session: CallerSession, query: WorkersQuery) -> WorkersAnswer:
    """List worker processes, and how many are wanted."""
    workers = session.operator.workers
    return WorkersAnswer(
        workers=await workers.list(everyone=query.everyone), wanted=await workers.wanted()
    )


@ROUTES.post("/v1/workers/{worker:path}/drain", statuses={404: "There is no such worker."})
async def drain_worker(session: CallerSession, worker: str, body: Reason) -> DrainedAnswer:
    """Ask a worker to finish its jobs and claim no more."""
    state = await session.operator.workers.drain(worker, reason=body.reason)
    return DrainedAnswer(state=state)


@ROUTES.get("/v1/duties")
async def list_duties(session: CallerSession) -> DutiesAnswer:
    """List duties with their last runs."""
    return DutiesAnswer(duties=await session.operator.duties.list())


@ROUTES.post("/v1/duties/{duty}/run", statuses=_NO_DUTY)
async def run_duty(session: CallerSession, duty: str) -> DutyRun:
    """Run one duty now, whether it is due or not."""
    return await session.operator.duties.run(duty)


@ROUTES.post("/v1/duties/{duty}/enable", statuses=_NO_DUTY)
async def enable_duty(session: CallerSession, duty: str, body: Reason) -> DoneAnswer:
    """Let workers run a duty again."""
    await session.operator.duties.enable(duty, reason=body.reason)
    return DoneAnswer()


@ROUTES.post("/v1/duties/{duty}/disable", statuses=_NO_DUTY)
async def disable_duty(session: CallerSession, duty: str, body: Reason) -> DoneAnswer:
    """Let workers skip a duty."""
    await session.operator.duties.disable(duty, reason=body.reason)
    return DoneAnswer()


@ROUTES.get("/v1/settings")
async def list_settings(session: CallerSession) -> SettingsAnswer:
    """List settings with their values, origins and ranges."""
    return SettingsAnswer(settings=await session.operator.settings.list())


@ROUTES.get("/v1/settings/{setting}", statuses=_NO_SETTING)
async def read_setting(session: CallerSession, setting: str) -> SettingStatus:
    """Return one setting."""
    return await session.operator.settings.get(setting)


@ROUTES.put("/v1/settings/{setting}", statuses=_NO_SETTING)
async def set_setting(session: CallerSession, setting: str, body: NewValue) -> SetSetting:
    """Change a setting for all sessions at once."""
    value = await session.operator.settings.set(setting, body.value, reason=body.reason)
    return SetSetting(name=setting, value=value)


@ROUTES.delete("/v1/settings/{setting}", statuses=_NO_SETTING)
async def reset_setting(session: CallerSession, setting: str) -> SetSetting:
    """Restore the default of a setting."""
    return SetSetting(name=setting, value=await session.operator.settings.reset(setting))


@ROUTES.get("/v1/tasks")
async def list_tasks(session: CallerSession) -> TasksAnswer:
    """List tasks with their policies, limits and schedules."""
    return TasksAnswer(tasks=await session.operator.tasks.list())


@ROUTES.get("/v1/log")
async def read_log(session: CallerSession, request: Request, query: LogQuery) -> Answer[LogAnswer]:
    """Read what operators changed, newest first."""
    values = {name: getattr(query, name) for name in query.__struct_fields__}
    entries = await session.operator.log.list(**values)
    last = entries[-1].log_id if len(entries) == query.limit else None
    headers = {} if last is None else page_link(request, before=str(last))
    return Answer(LogAnswer(entries=entries, next=last), headers)
