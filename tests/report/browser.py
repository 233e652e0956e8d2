"""A browser without a window that does what a test says: only for pages whose script must be seen to work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from select import select
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_PATIENCE = 30.0  # seconds


class Browser:
    """Chromium, spoken to through its debugging pipe; it is offline and saves files to ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        theirs, self._to = os.pipe()
        self._from, back = os.pipe()
        flags = "--headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe --window-size=1100,1400"
        command = f'exec "{BROWSER}" {flags} --user-data-dir="{folder}/profile" about:blank 3<&{theirs} 4>&{back}'
        self._process = subprocess.Popen(
            ["bash", "-c", command], pass_fds=(theirs, back), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(back)
        self._rest, self._id, self._session = b"", 0, ""
        self.seen: list[dict[str, Any]] = []
        target = next(t for t in self.do("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        session, self._session = self._session, ""
        self.do("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder), eventsEnabled=True)
        self._session = session
        for domain in ("Page", "Runtime", "Network"):
            self.do(f"{domain}.enable")

    def open(self, path: Path) -> None:
        self.do("Page.navigate", url=path.resolve().as_uri())
        self.wait("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression, waited for."""
        found = self.do("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, event: str, **values: str) -> dict[str, Any]:
        while True:
            for one in self.seen:
                if one["method"] == event and values.items() <= one["params"].items():
                    self.seen.remove(one)
                    return one["params"]
            self._read()

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        self._id += 1
        said = {"id": self._id, "method": method, "params": params}
        if self._session:
            said["sessionId"] = self._session
        os.write(self._to, json.dumps(said).encode() + b"\0")
        while (found := self._read()).get("id") != self._id:
            pass
        assert "error" not in found, found["error"]
        return found["result"]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
        os.close(self._to)
        os.close(self._from)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select([self._from], [], [], _PATIENCE)[0], "the browser does not answer"
            more = os.read(self._from, 1 << 16)
            assert more, "the browser is gone"
            self._rest += more
        line, self._rest = self._rest.split(b"\0", 1)
        found: dict[str, Any] = json.loads(line)
        if "method" in found:
            self.seen.append(found)
        return found
