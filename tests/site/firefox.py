"""Firefox without a driver: it speaks WebDriver BiDi itself, over one socket."""

import json
import re
import shutil
import subprocess
import time
from pathlib import Path

import websocket

NAMES = ("firefox", "firefox-esr")
KEYS = {"ArrowRight": "\ue014", "ArrowLeft": "\ue012"}


def find() -> str | None:
    """Return the path of an installed Firefox."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Firefox:
    """A headless Firefox with one page; what it logs as an error is in ``problems``."""

    def __init__(self, path: str, profile: Path, patience: float = 120.0) -> None:
        self.patience = patience
        self.log = (profile / "stderr.txt").open("w+", encoding="utf8")
        command = [path, "--headless", "--no-remote", "--profile", str(profile)]
        self.process = subprocess.Popen(
            [*command, "--remote-debugging-port", "0"], stdout=self.log, stderr=self.log
        )
        try:
            self.socket = websocket.create_connection(
                f"{self._address(profile)}/session", timeout=patience, suppress_origin=True
            )
            self.count = 0
            self.problems: list[str] = []
            self.send("session.new", capabilities={})
            self.send("session.subscribe", events=["log.entryAdded"])
            self.page = self.send("browsingContext.getTree")["contexts"][0]["context"]
        except BaseException:
            self.process.kill()
            raise

    def _address(self, profile: Path) -> str:
        """Wait until Firefox says where it listens."""
        until = time.monotonic() + self.patience
        while time.monotonic() < until and self.process.poll() is None:
            said = (profile / "stderr.txt").read_text("utf8")
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)", said):
                return found[1]
            time.sleep(0.1)
        raise RuntimeError(f"Firefox does not listen: {said}")

    def send(self, method: str, **params: object) -> dict:
        """Send a command; return its result, and note what the page logs meanwhile."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": params}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.problems.append(answer["params"]["text"])
            if answer.get("id") == self.count:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]

    def open(self, url: str) -> None:
        """Go to a page and wait for its load event."""
        self.send("browsingContext.navigate", context=self.page, url=url, wait="complete")

    def evaluate(self, code: str) -> object:
        """Return what an expression gives, a promise's value included."""
        answer = self.send(
            "script.evaluate",
            expression=f"(async () => JSON.stringify((await ({code})) ?? null))()",
            target={"context": self.page},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait(self, code: str) -> None:
        """Wait until an expression is true."""
        until = time.monotonic() + self.patience
        while not self.evaluate(code):
            if time.monotonic() > until:
                raise TimeoutError(f"never true in Firefox: {code}")
            time.sleep(0.05)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        value = KEYS.get(key, key)
        keys = [{"type": kind, "value": value} for kind in ("keyDown", "keyUp")]
        source = {"type": "key", "id": "keyboard", "actions": keys}
        self.send("input.performActions", context=self.page, actions=[source])

    def click(self, element: str) -> None:
        """Press the left button over the element that an expression gives."""
        x, y = self.evaluate(
            f"(element => {{ element.scrollIntoView({{ block: 'center' }});"
            "const box = element.getBoundingClientRect();"
            f"return [box.x + box.width / 2, box.y + box.height / 2]; }})({element})"
        )
        steps = [
            {"type": "pointerMove", "x": round(x), "y": round(y)},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerUp", "button": 0},
        ]
        source = {"type": "pointer", "id": "mouse", "actions": steps}
        self.send("input.performActions", context=self.page, actions=[source])

    def close(self) -> None:
        """End this Firefox."""
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=30)
        self.log.close()
