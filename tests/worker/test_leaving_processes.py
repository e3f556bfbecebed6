"""Handler processes that end while their worker goes on."""

import asyncio
import json
import os
import signal
from pathlib import Path

from tests.worker import forking_app, process_app
from tests.worker.scene import eventually
from tests.worker.stage import stage
from trunkline.worker.report import End


async def test_a_process_that_leaves_gets_no_other_job(tmp_path: Path) -> None:
    async with stage(process_app.app, concurrency=1) as on:
        (held,) = on.submit("wait", json.dumps({"folder": str(tmp_path)}))
        found = await eventually(lambda: list(tmp_path.glob("runs-*")), "it runs")
        child = int(found[0].name.partition("-")[2])
        on.submit("add", '{"a": 1, "b": 1}')
        os.kill(child, signal.SIGTERM)
        await on.until_reported(2)
        report = on.report_of(held)
        assert report is not None
        assert (report.end, report.reason) == (End.RELEASE, "its process was asked to stop")
        assert on.reports[1].result == "2"


async def test_a_process_that_forked_and_died_is_noticed_at_once() -> None:
    """Its child holds the other end of the socket: no end of the messages tells."""
    async with stage(forking_app.app, concurrency=1) as on:
        report = await asyncio.wait_for(on.run("forks"), 15)
        assert report.error is not None
        assert report.error["code"] == "handler_process_died"
        assert (await on.run("add", '{"a": 1, "b": 2}')).result == "3"
