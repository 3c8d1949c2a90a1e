"""What servers do when it gets difficult: the same misfortune and the same written criterion for everybody.

Rules: each scene has a server of its own. It passes or it does not, by what an agent can read in results and by what
the page told its server; what was seen is kept beside the verdict. A server that has no tool for the question is "–".
"""

import contextlib
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.client import Client, Reply
from bench.pages import Pages
from bench.servers import Call, Installed

LIMIT_S = 60.0
"""After which many clients give a call up."""
SOON_S = 15.0
_FAILURE = re.compile(r"unable to|could not|failed|timed? ?out|timeout|net::ERR", re.IGNORECASE)


@dataclass(frozen=True)
class Verdict:
    """``passed`` is None where there is no tool for it."""

    passed: bool | None
    seen: str


@dataclass(frozen=True)
class Scene:
    name: str
    criterion: str
    play: "Callable[[Stage], Verdict]"


class Stage:
    """A server at the beginning of a scene: started, with the first page open."""

    def __init__(self, server: Installed, client: Client, pages: Pages) -> None:
        self.kind = server.kind
        self.client = client
        self.pages = pages

    def call(self, call: Call, within: float = SOON_S) -> Reply:
        return self.client.call(*call, within=within)

    def go(self, path: str, within: float = SOON_S) -> Reply:
        return self.call(self.kind.navigate(self.pages.url(path)), within)

    def look(self, within: float = SOON_S) -> Reply:
        return self.call(self.kind.look(), within)

    def page_text(self) -> Reply:
        """What is on the page, whatever else there is to look at."""
        if self.kind.snapshot is not None:
            return self.call(self.kind.snapshot)
        return self.look()


def _brief(reply: Reply) -> str:
    if reply.silent:
        return f"no answer within {reply.seconds:.0f} s"
    return f"{'error' if reply.error else 'result'} after {reply.seconds:.1f} s: {' '.join(reply.text.split())[:160]}"


def _says_failure(reply: Reply) -> bool:
    """An error, or a result whose words say that it did not work: a model reads both."""
    return not reply.silent and (reply.error or _FAILURE.search(reply.text) is not None)


def _closed_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _alert(stage: Stage) -> Verdict:
    stage.pages.forget()
    stage.go("/alert")
    closed = stage.pages.reported(lambda what: what == "closed", 3.0)
    if closed:
        return Verdict(False, "closed before anybody was asked")
    look = stage.look()
    if "ALERT-7319" not in look.text:
        return Verdict(False, f"the next look does not have it: {_brief(look)}")
    if stage.kind.answer is None:
        return Verdict(False, "told, but there is no tool that answers")
    stage.call(stage.kind.answer(True, None))
    went = stage.pages.reported(lambda what: what == "closed", SOON_S)
    return Verdict(
        went is not None, "told, answered, the page went on" if went else "told, but the answer did not help"
    )


def _prompt(stage: Stage) -> Verdict:
    if stage.kind.answer is None:
        return Verdict(None, "no tool that answers")
    stage.pages.forget()
    reply = stage.go("/prompt")
    if reply.silent:
        return Verdict(False, f"the navigation gave {_brief(reply)}")
    if "PROMPT-5501" not in reply.text and "PROMPT-5501" not in (look := stage.look()).text:
        return Verdict(
            False, f"neither the navigation ({reply.seconds:.1f} s) nor the next look has it: {_brief(look)}"
        )
    stage.call(stage.kind.answer(True, "typed-42"))
    got = stage.pages.reported(lambda what: what.startswith("got "), SOON_S)
    if got is None:
        return Verdict(False, "told, but the page never went on")
    return Verdict(got[1] == "got typed-42", f"told after {reply.seconds:.1f} s; the page {got[1]}")


def _elsewhere(stage: Stage) -> Verdict:
    stage.pages.forget()
    stage.go("/alert")
    if stage.pages.reported(lambda what: what == "closed", 3.0):
        return Verdict(False, "the dialog was closed before anybody was asked")
    reply = stage.go("/second", LIMIT_S)
    if reply.silent:
        return Verdict(False, f"the navigation gave {_brief(reply)}")
    there = stage.page_text()
    arrived = "Second page" in there.text
    if reply.error and not arrived:
        if "dialog" not in reply.text.lower() and "ALERT-7319" not in reply.text:
            return Verdict(False, f"refused without the reason: {_brief(reply)}")
        if stage.kind.answer is None:
            return Verdict(False, "refused, and there is no tool that answers")
        stage.call(stage.kind.answer(True, None))
        stage.go("/second")
        arrived = "Second page" in stage.page_text().text
        return Verdict(arrived, "refused with the reason; after the answer it arrived" if arrived else "never arrived")
    if arrived:
        return Verdict(not reply.error, "went on to the page" if not reply.error else "said it failed, and it had not")
    return Verdict(False, f"said that it went, and it did not: {_brief(reply)}; then {_brief(there)}")


def _hang(stage: Stage) -> Verdict:
    reply = stage.go("/hang", LIMIT_S)
    if reply.silent:
        return Verdict(False, f"the navigation gave {_brief(reply)}")
    look = stage.page_text()
    failed = _says_failure(reply)
    seen = f"the navigation ended after {reply.seconds:.0f} s{'' if failed else ', as if it had worked'}"
    return Verdict(failed and not look.silent and not look.error, f"{seen}; then {_brief(look)}")


def _frame(stage: Stage) -> Verdict:
    if stage.kind.in_frame is None:
        return Verdict(None, "no tool for it")
    stage.go("/around")
    snapshot = stage.page_text()
    calls = stage.kind.in_frame(snapshot.text, "window.kept")
    if not calls:
        return Verdict(False, f"the frame is not in the snapshot: {_brief(snapshot)}")
    reply = [stage.call(call) for call in calls][-1]
    return Verdict("4242" in reply.text and not reply.error, _brief(reply))


def _killed(stage: Stage) -> Verdict:
    if not stage.client.kill_browser():
        return Verdict(None, "there was no browser process to end")
    first = stage.go("/second", LIMIT_S)
    seen = f"first {_brief(first)}"
    if "Second page" in stage.page_text().text:
        return Verdict(True, seen)
    kind = stage.kind
    for call in (kind.navigate(stage.pages.url("/second")), kind.snapshot or kind.look()):
        reply = stage.call(kind.recovered(lambda asked: stage.call(asked).text, call), LIMIT_S)
        seen += f"; then {_brief(reply)}"
    return Verdict("Second page" in reply.text and not reply.error, seen)


def _refused(stage: Stage) -> Verdict:
    reply = stage.call(stage.kind.navigate(f"http://127.0.0.1:{_closed_port()}/"), LIMIT_S)
    again = stage.go("/second", LIMIT_S)
    works = not again.error and "Second page" in stage.page_text().text
    return Verdict(
        _says_failure(reply) and works,
        f"{_brief(reply)}; the next page {'came' if works else 'did not come'}",
    )


SCENES: tuple[Scene, ...] = (
    Scene(
        "an alert while no call runs",
        "The page opens it after its load. It waits to be answered; the next look has its text within 15 s; the dialog "
        "tool closes it, and the page goes on.",
        _alert,
    ),
    Scene(
        "a prompt while a page loads",
        "The navigation ends within 15 s; its result or the next look has the question; the answer's text "
        "reaches the page.",
        _prompt,
    ),
    Scene(
        "opening a page while a dialog is open",
        "The call ends within 60 s and is true: it arrived, or it says that a dialog is in the way and arrives once "
        "that is answered.",
        _elsewhere,
    ),
    Scene(
        "an address that never answers",
        "The navigation ends within 60 s and says that it failed, as an error or in words, and the next look at "
        "the page works within 15 s.",
        _hang,
    ),
    Scene(
        "JavaScript in an iframe of another site",
        "A script run in that frame gives a value that only that frame has.",
        _frame,
    ),
    Scene(
        "the browser is killed",
        "The next navigation, or the one after it, arrives within 60 s.",
        _killed,
    ),
    Scene(
        "a page that cannot be loaded",
        "Navigating to a closed port says that it failed, as an error or in words, and the next page loads.",
        _refused,
    ),
)


def measure(
    servers: Sequence[Installed], pages: Pages, scenes: Sequence[Scene], progress: Callable[[str], None]
) -> dict[str, dict[str, Verdict]]:
    """Scene -> server -> verdict."""
    found: dict[str, dict[str, Verdict]] = {}
    for number, scene in enumerate(scenes, 1):
        progress(f"{scene.name}, {number} of {len(scenes)}")
        found[scene.name] = {server.name: _played(scene, server, pages) for server in servers}
    return found


def _played(scene: Scene, server: Installed, pages: Pages) -> Verdict:
    with Client(server.command, server.environment) as client:
        stage = Stage(server, client, pages)
        with contextlib.suppress(TimeoutError):
            client.initialize()
            first = stage.go("/", LIMIT_S)
            if not first.error:
                return scene.play(stage)
        return Verdict(False, "the first page could not be opened")
