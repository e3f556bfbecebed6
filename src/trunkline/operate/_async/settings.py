"""Settings of the engine, and registered tasks."""

from __future__ import annotations

from trunkline.db.calls import admin, views
from trunkline.errors import UnknownSetting, UnknownTask
from trunkline.model import SettingStatus, TaskStatus
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncSettings", "AsyncTasks"]


class AsyncSettings:
    """All settings; `operator.settings`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[SettingStatus]:
        """Return every setting with its value, where it comes from, and its range."""
        return await self._session.run(views.settings())

    async def get(self, name: str) -> SettingStatus:
        """Return one setting."""
        known = {setting.name: setting for setting in await self.list()}
        if name not in known:
            raise UnknownSetting(
                "unknown setting",
                hint="List them with operator.settings.list().",
                detail={"setting": name, "known": [*known]},
            )
        return known[name]

    async def set(self, name: str, value: str, *, reason: str | None = None) -> str:
        """Change a setting for all sessions at once; return its new value."""
        return await self._session.run(admin.set_setting(name, value), reason=reason)

    async def reset(self, name: str, *, reason: str | None = None) -> str:
        """Restore the default of a setting and return it."""
        return await self._session.run(admin.set_setting(name, None), reason=reason)


class AsyncTasks:
    """All tasks that applications have registered; `operator.tasks`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[TaskStatus]:
        """Return every task with its policy, its limits and its schedules."""
        return await self._session.run(views.tasks())

    async def get(self, task: str) -> TaskStatus:
        """Return one task."""
        known = {status.task: status for status in await self.list()}
        if task not in known:
            raise UnknownTask(
                "unknown task",
                hint="A worker registers the tasks of its application when it starts. List them "
                "with operator.tasks.list().",
                detail={"task": task, "known": [*known]},
            )
        return known[task]
