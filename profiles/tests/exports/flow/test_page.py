"""The page, driven in a real browser: export, watch the bar, cancel, load one file and many."""

import base64
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from profiles.tests.exports.conftest import Exports
from profiles.tests.exports.server import Server, serving
from tests.support import servers
from tests.support.waiting import DEADLINE, until
from trunkline.artifacts import LocalStore
from trunkline_profiles.exports.handlers.devtools import FLAGS, Browser
from trunkline_profiles.exports.handlers.renderers import find_chromium


class Page:
    """A tab of a browser; `run` evaluates JavaScript in it."""

    def __init__(self, browser: Browser, address: str, downloads: Path) -> None:
        self._browser = browser
        self.downloads = downloads
        self._session = ""
        # Answered once the browser has started.
        self.call("Browser.getVersion")
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=900,
            height=900,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Page.navigate", url=address)

    def call(self, method: str, /, **parameters: Any) -> Any:
        deadline = time.monotonic() + DEADLINE
        session = self._session or None
        return self._browser.call(method, deadline, lambda: False, session, **parameters)

    def run(self, script: str) -> Any:
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return found["result"].get("value")

    def see(self, script: str) -> Any:
        """Wait until a script returns something true."""
        return until(lambda: self.run(script), script)

    def click(self, text: str, within: str = "document") -> None:
        """Click the first visible button with this text, once it can be clicked."""
        self.see(
            f"(() => {{ const found = [...{within}.querySelectorAll('button')].find((one) =>"
            f" one.textContent === '{text}' && !one.disabled && !one.hidden);"
            " found?.click(); return Boolean(found); })()"
        )

    def choose(self, *places: int) -> None:
        """Tick these documents, and no others."""
        self.see(
            "(() => { const boxes = [...document.querySelectorAll('input[name=document]')];"
            f" boxes.forEach((box, place) => {{ if (box.checked !== {list(places)}.includes(place))"
            " box.click(); }); return boxes.length > 0; })()"
        )

    def loaded(self, pattern: str) -> Path:
        """Wait for a downloaded file."""
        until(lambda: any(self.downloads.glob(pattern)), pattern)
        return next(iter(self.downloads.glob(pattern)))

    def picture(self, path: Path) -> None:
        """Save what the page looks like."""
        found = self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(found["data"]))


@pytest.fixture
def site(exports: Exports, tmp_path: Path) -> Iterator[Any]:
    if exports.database.server.major != servers.majors()[-1]:
        pytest.skip("the page is the same on each server")
    with serving(exports, LocalStore(tmp_path / "store")) as made:
        yield made


@pytest.fixture
def page(site: Server, tmp_path: Path) -> Iterator[Any]:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    # The browser is not root.
    for folder in (downloads, *tmp_path.parents[:3], tmp_path):
        folder.chmod(folder.stat().st_mode | 0o011)
    downloads.chmod(0o777)
    for title in ("Résumé", "Résumé", "Letter <b>"):
        site.exports.document(title)
    local = [flag for flag in FLAGS if "proxy" not in flag and "resolver" not in flag]
    browser = Browser(str(find_chromium({})), memory=4 << 30, flags=local)
    try:
        yield Page(browser, f"{site.address}/exports/#token={site.key()}", downloads)
    finally:
        browser.close()


@pytest.mark.slow
def test_ex_81_the_page_exports_cancels_and_downloads(
    site: Server, page: Page, tmp_path: Path
) -> None:
    """EX-14, EX-40, EX-50, EX-59, EX-81, EX-85: as a person does it."""
    page.see("document.querySelectorAll('#documents li').length === 3")
    assert page.run("document.querySelector('#documents b')") is None
    page.choose(0)
    page.click("Export")
    page.click("Cancel", "document.getElementById('jobs')")
    page.see("document.getElementById('jobs').innerText.includes('Cancelled')")
    assert [job.status for job in site.exports.jobs()] == ["cancelled"]

    page.choose(1)
    page.click("Export")
    until(lambda: len(site.exports.jobs()) == 2, "the second export")
    job = site.exports.claim().id
    site.exports.progress(job, 50)
    page.see("document.querySelector('#jobs progress')?.value === 50")
    page.see("document.getElementById('overall').value === 50")
    assert site.complete(job)
    page.see("document.querySelectorAll('#history tr').length === 1")
    page.click("Download", "document.getElementById('history')")
    assert page.loaded("*.pdf").read_bytes().startswith(b"%PDF")
    page.see("document.querySelector('#history td:nth-child(4)')?.textContent === '1'")

    page.choose(0, 1, 2)
    page.click("Export")
    until(lambda: len(site.exports.jobs()) == 5, "the batch")
    assert site.work() == 3
    page.see("document.querySelectorAll('#history tr').length === 4")
    page.picture(tmp_path / "page.png")
    page.click("Download all as ZIP")
    with zipfile.ZipFile(page.loaded("*.zip")) as archive:
        assert archive.namelist() == ["Résumé.pdf", "Résumé (2).pdf", "Letter -b.pdf"]
        assert archive.testzip() is None
    assert page.run("document.getElementById('message').textContent") == ""
