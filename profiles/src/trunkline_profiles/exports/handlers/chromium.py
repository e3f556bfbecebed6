"""Pages by headless Chromium: scripts off, every request blocked, its sandbox on, never as root."""

from __future__ import annotations

import base64
import queue
import threading
import time
from collections.abc import Callable
from typing import Final

from trunkline_profiles.exports.handlers.devtools import Browser
from trunkline_profiles.exports.handlers.html import as_html
from trunkline_profiles.exports.handlers.options import Options
from trunkline_profiles.exports.handlers.resume import Resume

__all__ = ["ChromiumRenderer"]

_MIB: Final = 1 << 20


class ChromiumRenderer:
    """A browser for each render at a time, kept for the next one, and replaced after fifty.

    A browser that fails, is too slow or needs too much memory is killed; the next render starts
    another one. Nothing of a document stays: each has its own context, which is disposed of.
    """

    name = "chromium"

    def __init__(
        self,
        program: str,
        *,
        content_seconds: float = 8.0,
        start_seconds: float = 30.0,
        memory: int = 600 * _MIB,
        renders: int = 50,
    ) -> None:
        self._program = program
        self._content_seconds = content_seconds
        self._start_seconds = start_seconds
        self._memory = memory
        self._renders = renders
        self._idle: queue.LifoQueue[tuple[Browser, int]] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._live: set[Browser] = set()

    @property
    def processes(self) -> list[int]:
        """The first processes of the browsers that run."""
        with self._lock:
            return [browser.pid for browser in self._live]

    def render(self, resume: Resume, options: Options, stopped: Callable[[], bool]) -> bytes:
        """Return the pages of a résumé."""
        return self.print(as_html(resume, options), options, stopped)[0]

    def print(
        self, html: str, options: Options, stopped: Callable[[], bool] = lambda: False
    ) -> tuple[bytes, list[str]]:
        """Return the pages of an HTML document, and the requests that were blocked."""
        browser, used = self._take(stopped)
        try:
            browser.blocked.clear()
            deadline = time.monotonic() + self._content_seconds
            pages = _print(browser, html, options, deadline, stopped)
            blocked = list(browser.blocked)
        except BaseException:
            self._end(browser)
            raise
        if used + 1 < self._renders:
            self._idle.put((browser, used + 1))
        else:
            self._end(browser)
        return pages, blocked

    def close(self) -> None:
        """End all browsers."""
        with self._lock:
            live, self._live = self._live, set()
        for browser in live:
            browser.close()
        self._idle = queue.LifoQueue()

    def _take(self, stopped: Callable[[], bool]) -> tuple[Browser, int]:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            pass
        browser = Browser(self._program, memory=self._memory)
        with self._lock:
            self._live.add(browser)
        try:
            # The start does not count for the time that the content has.
            browser.call("Browser.getVersion", time.monotonic() + self._start_seconds, stopped)
        except BaseException:
            self._end(browser)
            raise
        return browser, 0

    def _end(self, browser: Browser) -> None:
        with self._lock:
            self._live.discard(browser)
        browser.close()


def _print(
    browser: Browser, html: str, options: Options, deadline: float, stopped: Callable[[], bool]
) -> bytes:
    def call(method: str, session: str | None = None, /, **parameters: object) -> dict[str, str]:
        return browser.call(method, deadline, stopped, session, **parameters)

    context = call("Target.createBrowserContext")["browserContextId"]
    target = call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
    session = call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    call("Emulation.setScriptExecutionDisabled", session, value=True)
    call("Fetch.enable", session, patterns=[{"urlPattern": "*"}])
    call("Page.enable", session)
    tree = browser.call("Page.getFrameTree", deadline, stopped, session)
    frame = tree["frameTree"]["frame"]["id"]
    earlier = browser.loads(session)
    call("Page.setDocumentContent", session, frameId=frame, html=html)
    # A print before that may be empty: style sheets that are being refused hold the text back.
    browser.wait_for_load(earlier + 1, session, deadline, stopped)
    width, height = options.paper
    printed = call(
        "Page.printToPDF",
        session,
        printBackground=True,
        paperWidth=width,
        paperHeight=height,
        marginTop=options.top,
        marginBottom=options.bottom,
        marginLeft=options.left,
        marginRight=options.right,
        # A draft has no structure for screen readers, which takes time and space.
        generateTaggedPDF=options.quality != "draft",
        generateDocumentOutline=options.quality == "high",
    )
    call("Target.disposeBrowserContext", browserContextId=context)
    return base64.b64decode(printed["data"])
