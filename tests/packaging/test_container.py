"""The Dockerfile, as far as it can be checked where no image is built."""

import fnmatch
import json
import os
import re
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from fakes.distribution import ROOT, run

from watchkeeper.server.settings import Settings, all_settings

LINES = (ROOT / "Dockerfile").read_text("utf-8").replace("\\\n", " ").splitlines()
STEPS = [line.split(maxsplit=1) for line in LINES if line.strip() and not line.startswith("#")]


def steps(name: str) -> list[str]:
    return [rest for word, rest in STEPS if word == name]


def sent(name: str) -> bool:
    """Whether this path of the checkout reaches the builder: the last rule of .dockerignore that fits decides."""
    kept = True
    for rule in (ROOT / ".dockerignore").read_text("utf-8").split("\n"):
        if rule and not rule.startswith("#") and fnmatch.fnmatch(name, rule.removeprefix("!").removeprefix("**/")):
            kept = rule.startswith("!")
    return kept


def test_what_is_copied_exists_and_is_sent_to_the_builder() -> None:
    copied = [name for rest in steps("COPY") if not rest.startswith("--from") for name in rest.split()[:-1]]
    assert {"pyproject.toml", "README.md", "constraints.txt", "server", "supervisor", "context"} <= set(copied)
    for name in copied:
        assert (ROOT / name).exists() and sent(name), name
    assert not sent(".git") and not sent(".venv") and not sent("tests") and not sent("__pycache__")


def test_what_is_copied_is_enough_to_build(tmp_path: Path) -> None:
    for rest in steps("COPY"):
        for name in () if rest.startswith("--from") else rest.split()[:-1]:
            (tmp_path / name).symlink_to(ROOT / name)
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "made", cwd=tmp_path)
    assert len(list((tmp_path / "made").glob("*.whl"))) == 1


def test_the_server_is_an_ordinary_user_and_the_browser_keeps_its_sandbox() -> None:
    words = [word for word, _ in STEPS]
    assert steps("USER") == ["watchkeeper"] and words.index("USER") < words.index("ENTRYPOINT")
    assert "no-sandbox" not in "\n".join(LINES)
    # Ours to say, because Python as process 1 takes in only its own children.
    assert json.loads(steps("ENTRYPOINT")[0])[:2] == ["tini", "--"]


def test_the_image_is_built_of_named_versions_and_leaves_no_lists_behind() -> None:
    for image in steps("FROM"):
        assert re.match(r"[\w/.-]+:\d+\.\d+-slim-\w+( |$)", image), image
    for installs in (rest for rest in steps("RUN") if "apt-get" in rest):
        assert "--no-install-recommends" in installs and installs.index("apt-get update") == 0
        assert "rm -rf /var/lib/apt/lists/*" in installs
    assert int(steps("EXPOSE")[0]) == Settings().server.port


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    ("transport", "there", "healthy"), [("http", True, True), ("http", False, False), ("", False, True)]
)
def test_health_is_asked_for_over_http_only(transport: str, there: bool, healthy: bool) -> None:
    command = steps("HEALTHCHECK")[0].partition("CMD ")[2]
    assert {"WATCHKEEPER_SERVER__TRANSPORT", "WATCHKEEPER_SERVER__PORT"} <= {s.variable for s in all_settings()}
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_port
        if not there:
            server.shutdown()
            server.server_close()
        environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "WATCHKEEPER_SERVER__TRANSPORT": transport,
            "WATCHKEEPER_SERVER__PORT": str(port),
        }
        asked = subprocess.run(["sh", "-c", command], env=environment, capture_output=True, timeout=60)
        if there:
            server.shutdown()
    assert (asked.returncode == 0) == healthy, asked.stderr


def test_the_seccomp_profile_lets_the_browser_build_its_sandbox_and_no_more_than_docker_would() -> None:
    profile = json.loads((ROOT / "docker" / "seccomp.json").read_text("utf-8"))
    (refused,) = profile["syscalls"]
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW" and refused["action"] == "SCMP_ACT_ERRNO"
    names = refused["names"]
    assert names == sorted(set(names))
    assert not {"clone", "clone3", "unshare", "setns", "chroot", "ptrace", "seccomp", "prctl"} & set(names)
    for way_out in (
        "bpf",
        "init_module",
        "kexec_load",
        "keyctl",
        "mount",
        "open_by_handle_at",
        "perf_event_open",
        "reboot",
    ):
        assert way_out in names
