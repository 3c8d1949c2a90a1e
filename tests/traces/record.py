"""Record traces from a real Chromium, by hand, when browsers change: ``python tests/traces/record.py [name ...]``.

Each scenario drives a supervisor and leaves ``tests/traces/NAME.jsonl``; ``tests/supervisor/core/test_traces.py`` says
what must come of it. The form is described in ``tests/fakes/traces.py``.
"""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from fakes.site import Site
from fakes.traces import FOLDER, Recorder
from fakes.waits import WAIT_S, frames, pending, quiet

from watchkeeper.supervisor import LocalEndpoint, Supervisor, SupervisorOptions, SupervisorRegistry
from watchkeeper.supervisor.core.commands import Send
from watchkeeper.supervisor.core.inputs import Failed, Input, Replied
from watchkeeper.supervisor.errors import DialogOpened, SupervisorError
from watchkeeper.supervisor.options import BridgeChoice
from watchkeeper.supervisor.shell import _outcome

Scenario = Callable[[Supervisor, Site], Awaitable[None]]
SCENARIOS: dict[str, tuple[BridgeChoice, Scenario]] = {}


def scenario(bridge: BridgeChoice) -> Callable[[Scenario], Scenario]:
    def named(made: Scenario) -> Scenario:
        SCENARIOS[made.__name__] = (bridge, made)
        return made

    return named


async def past_dialogs(supervisor: Supervisor, expression: str, frame: int = 0) -> None:
    """Run a script although a dialog may be open; nobody waits for its end."""
    session = supervisor.snapshot().frames[frame].session_id
    with contextlib.suppress(SupervisorError):
        await supervisor.browser.runner.call(session, "Runtime.evaluate", {"expression": expression}, timeout=1)


@scenario("never")
async def process_swaps(supervisor: Supervisor, site: Site) -> None:
    site.page("/inner", "inner")
    await supervisor.navigate(site.page("/", "<iframe src='/inner'></iframe>"))
    await frames(supervisor, 2)
    for url in (site.other("/inner"), site.url("/inner"), site.other("/inner")):
        await supervisor.evaluate(f"document.querySelector('iframe').src = {url!r}")
        await supervisor.wait_for(lambda v, url=url: v if v.frames[1:] and v.frames[1].url == url else None, WAIT_S)
    await supervisor.wait_for(lambda v: v if v.frames[1].is_oopif else None, WAIT_S)


@scenario("debugger")
async def dialog_in_nested_process(supervisor: Supervisor, site: Site) -> None:
    site.page("/nest", "<iframe src='{site}/inner'></iframe>")
    site.page("/inner", "inner")
    await supervisor.navigate(site.page("/", "<iframe src='{other}/nest'></iframe>"))
    view = await frames(supervisor, 3)
    with contextlib.suppress(DialogOpened):
        await supervisor.evaluate("prompt('Name?', 'x')", frame_id=view.frames[2].frame_id)
    await supervisor.answer_dialog("accept", "Ada")


@scenario("never")
async def back_from_the_cache(supervisor: Supervisor, site: Site) -> None:
    site.page("/inner", "inner")
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", "<iframe src='/inner'></iframe><iframe src='{other}/inner'></iframe>"))
    await frames(supervisor, 3)
    await supervisor.navigate(site.url("/next"))
    history = await supervisor.call("Page.getNavigationHistory")
    entry = history["entries"][history["currentIndex"] - 1]["id"]
    await supervisor.call("Page.navigateToHistoryEntry", {"entryId": entry})
    await frames(supervisor, 3)


@scenario("never")
async def crash_with_a_dialog(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", "<script>if (!location.hash) setTimeout(() => confirm('?'), 1)</script>"))
    view = await pending(supervisor)
    with contextlib.suppress(SupervisorError):
        await supervisor.browser.runner.call(view.frames[0].session_id, "Page.crash", {}, timeout=5)
    await supervisor.wait_for(lambda v: v if v.tabs[0].crashed else None, WAIT_S)
    await supervisor.navigate(site.url("/#again"))


@scenario("debugger")
async def popup_with_a_dialog(supervisor: Supervisor, site: Site) -> None:
    site.page("/popup", "<script>setTimeout(() => confirm('Popup'), 50)</script>")
    await supervisor.navigate(site.page("/", "opener"))
    await supervisor.evaluate(f"void window.open({site.other('/popup')!r})")
    await pending(supervisor)
    await supervisor.answer_dialog("dismiss")


@scenario("never")
async def dialog_of_a_page_that_is_left(supervisor: Supervisor, site: Site) -> None:
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", "<script>onpagehide = () => confirm('Really?')</script>"))
    await supervisor.navigate(site.url("/next"))
    await supervisor.answer_dialog("accept")
    await supervisor.wait_for(lambda v: v if v.frames and v.frames[0].url.endswith("/next") else None, WAIT_S)


@scenario("never")
async def displaced_dialog(supervisor: Supervisor, site: Site) -> None:
    site.page("/inner", "<script>setTimeout(() => confirm('inner'), 1)</script>")
    await supervisor.navigate(site.page("/", "<iframe src='{other}/inner'></iframe>"))
    await pending(supervisor)
    await past_dialogs(supervisor, "void setTimeout(() => confirm('outer'), 1)")
    await supervisor.wait_for(lambda v: v if v.recent_dialogs and v.pending_dialogs else None, WAIT_S)
    await supervisor.answer_dialog("accept")


@scenario("never")
async def removed_frame_with_a_dialog(supervisor: Supervisor, site: Site) -> None:
    site.page("/inner", "<script>setTimeout(() => confirm('inner'), 1)</script>")
    await supervisor.navigate(site.page("/", "<iframe src='{other}/inner'></iframe>"))
    await pending(supervisor)
    await past_dialogs(supervisor, "document.querySelector('iframe').remove()")
    await quiet(supervisor)
    with contextlib.suppress(DialogOpened):
        await supervisor.evaluate("confirm('after')")
    await supervisor.answer_dialog("accept")


@scenario("never")
async def navigation_ends_a_dialog(supervisor: Supervisor, site: Site) -> None:
    site.page("/next", "next")
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => confirm('?'), 1)</script>"))
    await pending(supervisor)
    await supervisor.call("Page.navigate", {"url": site.url("/next")})
    await supervisor.wait_for(lambda v: v if v.frames and v.frames[0].url.endswith("/next") else None, WAIT_S)


@scenario("never")
async def page_navigates_after_another_client_dismissed(supervisor: Supervisor, site: Site) -> None:
    site.page("/next", "next")
    text = "<script>setTimeout(() => { confirm('?'); location = '/next' }, 1)</script>"
    await supervisor.navigate(site.page("/", text))
    view = await pending(supervisor)
    runner = supervisor.browser.runner
    await runner.call(view.frames[0].session_id, "Page.handleJavaScriptDialog", {"accept": False}, timeout=5)
    await supervisor.wait_for(lambda v: v if v.frames and v.frames[0].url.endswith("/next") else None, WAIT_S)


def listen(supervisor: Supervisor, recorder: Recorder) -> None:
    """Put the recorder between the shell and the core."""
    feed, browser = supervisor.feed, supervisor.browser
    send = browser.runner.send

    def heard(happened: Input) -> None:
        if not isinstance(happened, Replied | Failed):
            recorder.heard(happened, browser.now())
        feed(happened)

    def sent(command: Send) -> None:
        tag = command.tag

        def finish(outcome: Any) -> None:
            if tag is not None:
                told = _outcome(tag, outcome)
                assert isinstance(told, Replied | Failed)
                recorder.replied(command, told, browser.now())
                supervisor.feed(told)

        send(command.session_id, command.method, command.params, finish, timeout=10)

    supervisor.feed = heard  # type: ignore[method-assign]
    supervisor._send = sent  # type: ignore[method-assign]


async def record(name: str) -> None:
    bridge, made = SCENARIOS[name]
    registry = SupervisorRegistry(options=SupervisorOptions(bridge=bridge))
    with Site() as site:
        supervisor = await registry.get_or_start("task", LocalEndpoint(headless=True))
        about = {"trace": name, "browser": supervisor.browser.product, "bridge": bridge, "policy": "must_respond"}
        recorder = Recorder(about, site.port)
        listen(supervisor, recorder)
        try:
            await made(supervisor, site)
            text = recorder.text()
        finally:
            await registry.stop_all()
    (FOLDER / f"{name}.jsonl").write_text(text)
    print(f"{name}: {len(recorder.lines)} inputs, {len(text):,} bytes")  # noqa: T201


async def main() -> None:
    for name in sys.argv[1:] or SCENARIOS:
        await record(name)


if __name__ == "__main__":
    asyncio.run(main())
