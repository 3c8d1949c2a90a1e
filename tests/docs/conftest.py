"""What the documents take for granted: a site under test, a browser with a debugging port, a server over HTTP.

Rules: each is started when a page first speaks of its address, and ended with the module. The address in a document is
replaced by the real one, and nothing else is.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fakes.foreign_chromium import FLAGS
from fakes.raw_client import COMMAND, clean
from fakes.site import Site

from watchkeeper.supervisor import find_browser

GUARD_S = 60.0
SITE, CHROME, SERVER = "127.0.0.1:8000", "127.0.0.1:9222", "127.0.0.1:8765"
PAGES = {
    "/": "<title>Shop</title><h1>Welcome to the shop</h1><iframe src='{other}/help'></iframe>",
    "/help": "<title>Help</title><h2>Ask us</h2><script>window.inside = 'the help page'</script>",
    "/broken": "<title>Broken</title><h1>Basket</h1><script>undefinedFunction()</script>",
    "/asks": "<title>Asks</title><h1>Files</h1><script>setTimeout(() => confirm('Delete 3 files?'), 0)</script>",
    "/form": "<title>Sign in</title><label>Name <input></label><button>Sign in</button>",
}


def _site(rest: ExitStack) -> str:
    made = rest.enter_context(Site())
    made.pages |= PAGES
    return f"127.0.0.1:{made.port}"


def _ended(process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(GUARD_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(GUARD_S)
    finally:
        process.stderr.close()


def _started(rest: ExitStack, *command: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=clean())
    rest.callback(_ended, process)
    return process


def _chrome(rest: ExitStack, folder: Path) -> str:
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    _started(
        rest,
        str(find_browser()),
        *FLAGS,
        *root,
        "--remote-debugging-port=0",
        f"--user-data-dir={folder}",
        "about:blank",
    )
    told = folder / "DevToolsActivePort"
    until = time.monotonic() + GUARD_S
    while not (told.exists() and told.read_text().strip()):
        assert time.monotonic() < until, "the browser did not come up"
        time.sleep(0.02)
    return f"127.0.0.1:{told.read_text().split()[0]}"


def _server(rest: ExitStack) -> str:
    process = _started(rest, *COMMAND, "serve", "--transport=http", "--port=0", "--browser.headless=true")
    assert process.stderr is not None
    found = re.search(r"http://([^/\s]+)", process.stderr.readline())
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """``real(text)``: the text with the addresses of what runs here."""
    addresses: dict[str, str] = {}
    with ExitStack() as rest:
        start = {
            SITE: lambda: _site(rest),
            CHROME: lambda: _chrome(rest, tmp_path_factory.mktemp("chrome")),
            SERVER: lambda: _server(rest),
        }

        def replaced(text: str) -> str:
            for address, begin in start.items():
                if address in text:
                    if address not in addresses:
                        addresses[address] = begin()
                    text = text.replace(address, addresses[address])
            return text

        yield replaced


@pytest.fixture
def reader(tmp_path: Path) -> dict[str, str]:
    """The environment of a reader who begins: no settings, an empty home, our command on the path."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in clean().items() if not name.startswith("XDG_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**kept, "HOME": str(home), "PATH": path, "COLUMNS": "80"}
