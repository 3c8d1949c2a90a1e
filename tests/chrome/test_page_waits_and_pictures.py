"""Waits, pictures, history, requests, downloads, storage and emulation on a real browser."""

import asyncio
import json
import struct
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from fakes.page_text import look, ref
from fakes.site import Site
from fakes.waits import Start, frames

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.errors import CallTimeout, EvaluationFailed, InvalidArgument
from watchkeeper.supervisor.page import (
    PageError,
    Picture,
    click,
    downloads_of,
    emulate,
    evaluate_on,
    go,
    load_state,
    network_log,
    pdf,
    save_state,
    screenshot,
    wait_for,
)

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
GUARD_S = 20.0


async def test_a_wait_ends_when_the_text_comes_in_any_frame(supervisor: Supervisor, site: Site) -> None:
    site.page("/inner", "<p id=p></p>")
    for origin in ("{site}", "{other}"):
        await supervisor.navigate(site.page("/", f"<p id=p>Loading</p><iframe src='{origin}/inner'></iframe>"))
        view = await frames(supervisor, 2)
        waiting = asyncio.create_task(wait_for(supervisor, text="All  done", timeout=GUARD_S))
        gone = asyncio.create_task(wait_for(supervisor, gone="loading", timeout=GUARD_S))
        await supervisor.evaluate("p.textContent = 'All done'", frame_id=view.frames[1].frame_id)
        assert (await waiting).met
        assert not gone.done()
        await supervisor.evaluate("p.remove()")
        assert (await gone).met


async def test_a_wait_in_vain_says_so_and_is_no_longer_than_it_was_given(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", "<p>Here</p>"))
    for wish in ({"text": "Nowhere"}, {"gone": "here"}, {"url": "*/other"}):
        waited = await wait_for(supervisor, timeout=0.3, **wish)  # type: ignore[arg-type]
        assert not waited.met
        assert waited.said.startswith("not within 0.3 s")
        assert waited.seconds < GUARD_S
    for wrong in ({}, {"text": "a", "url": "b"}, {"text": " "}):
        with pytest.raises(InvalidArgument):
            await wait_for(supervisor, **wrong)  # type: ignore[arg-type]


async def test_waits_go_on_over_a_navigation(supervisor: Supervisor, site: Site) -> None:
    site.page("/next", "<p>Arrived</p><button>Late</button>")
    await supervisor.navigate(site.page("/", "<script>setTimeout(() => location.href = '/next', 100)</script>"))
    assert (await wait_for(supervisor, text="arrived", timeout=GUARD_S)).met
    assert (await wait_for(supervisor, url="*/next", timeout=GUARD_S)).met
    late = ref(await look(supervisor), "Late")
    waiting = asyncio.create_task(wait_for(supervisor, ref_gone=late, timeout=GUARD_S))
    await supervisor.evaluate("document.querySelector('button').hidden = true")
    assert (await waiting).met


async def test_silence_on_the_network_is_waited_for(supervisor: Supervisor, site: Site) -> None:
    arrived, release = threading.Event(), threading.Event()

    def slow(request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        arrived.set()
        release.wait(GUARD_S)
        return 200, {"Content-Type": "application/json"}, b'{"rows": 3}'

    site.pages["/api"] = slow
    await supervisor.navigate(site.page("/", "<p>p</p>"))
    log = network_log(supervisor)
    await log.start()
    await supervisor.evaluate("void fetch('/api')")
    assert await asyncio.to_thread(arrived.wait, GUARD_S)
    await supervisor.evaluate("0")  # events come in order: the request is known now
    assert not (await wait_for(supervisor, quiet=True, timeout=0.8)).met
    release.set()
    assert (await wait_for(supervisor, quiet=True, timeout=GUARD_S)).met
    (request,) = log.requests(url="/api")
    assert (request.status, request.mime, request.failure) == (200, "application/json", "")
    assert await log.body(request.number) == ('{"rows": 3}', 11)
    assert [r for r in log.requests(failed=True) if not r.url.endswith("/favicon.ico")] == []
    with pytest.raises(InvalidArgument):
        await log.body(999)


def size_of(picture: Picture) -> tuple[int, int]:
    assert picture.data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture.data[16:24])
    return width, height


async def test_pictures_are_of_what_was_asked_and_fit_their_budget(supervisor: Supervisor, site: Site) -> None:
    box = "<canvas aria-label=Box width=120 height=80 style='border:5px solid'></canvas>"
    site.page("/inner", f"<div style='height:900px'></div>{box}")
    page = "<body style='margin:0;height:3000px'><h1>T</h1><iframe src='{other}/inner' width=400 height=300></iframe>"
    await supervisor.navigate(site.page("/", page))
    await frames(supervisor, 2)
    seen = await screenshot(supervisor)
    width, height = await supervisor.evaluate("[innerWidth, innerHeight]")
    assert abs(size_of(seen)[0] - width) <= 20
    whole = await screenshot(supervisor, full_page=True, max_pixels=10**8)
    assert size_of(whole)[1] == 3000
    small = await screenshot(supervisor, full_page=True, max_pixels=100_000)
    assert size_of(small)[0] * size_of(small)[1] <= 102_000
    assert "scaled" in small.note
    canvas = await screenshot(supervisor, ref=ref(await look(supervisor), "Box"))
    assert size_of(canvas) == (130, 90)
    assert (await screenshot(supervisor, format="jpeg")).data.startswith(b"\xff\xd8")
    for wrong in ({"format": "bmp"}, {"ref": "e1", "full_page": True}):
        with pytest.raises(InvalidArgument):
            await screenshot(supervisor, **wrong)  # type: ignore[arg-type]
    assert height > 0


@pytest.mark.parametrize("bridge", ["debugger", "never"])
async def test_a_page_is_pictured_also_while_a_dialog_is_open(start: Start, site: Site, bridge: str) -> None:
    supervisor = await start(bridge=bridge)
    await supervisor.navigate(site.page("/", "<h1>Shown</h1><button onclick='alert(1)'>Alert</button>"))
    await click(supervisor, ref(await look(supervisor), "Alert"))
    assert (await screenshot(supervisor)).data.startswith(b"\x89PNG")
    await supervisor.answer_dialog("accept")


async def test_a_page_is_printed(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", "<h1>Print me</h1>"))
    assert (await pdf(supervisor)).startswith(b"%PDF")


async def test_history_says_where_one_arrived_or_that_there_is_no_further(supervisor: Supervisor, site: Site) -> None:
    one, two = site.page("/one", "<title>One</title>"), site.page("/two", "<title>Two</title>")
    await supervisor.navigate(one)
    await supervisor.navigate(two)
    assert [a.title for a in (await go(supervisor, "back")).effects.arrivals] == ["One"]
    assert [a.title for a in (await go(supervisor, "forward")).effects.arrivals] == ["Two"]
    assert [a.title for a in (await go(supervisor, "reload")).effects.arrivals] == ["Two"]
    with pytest.raises(PageError):
        await go(supervisor, "forward")


async def test_downloads_land_in_their_folder_under_a_harmless_name(
    supervisor: Supervisor, site: Site, tmp_path: Path
) -> None:
    release = threading.Event()

    def file(request: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        release.wait(GUARD_S)
        name = "attachment; filename*=UTF-8''..%2F..%2Freport%20%E2%80%AE.csv"
        return 200, {"Content-Disposition": name}, b"a,b\n" * 5000

    site.pages["/file"] = file
    await supervisor.navigate(site.page("/", "<a href=/file>Report</a>"))
    downloads = downloads_of(supervisor)
    with pytest.raises(InvalidArgument):
        await downloads.save_to(tmp_path / "nowhere")
    await downloads.save_to(tmp_path)
    release.set()
    text = await look(supervisor)
    for _ in range(2):
        await click(supervisor, ref(text, "Report"))
    for number in (1, 2):
        done = await downloads.wait(number, GUARD_S)
        assert (done.state, done.received) == ("completed", 20_000)
        assert done.path is not None
        assert done.path.parent == tmp_path
    assert len(list(tmp_path.iterdir())) == 2
    assert all("\u202e" not in path.name and path.suffix == ".csv" for path in tmp_path.iterdir())


async def test_a_sign_in_can_be_saved_and_loaded_into_another_task(start: Start, site: Site) -> None:
    first = await start()
    await first.navigate(site.page("/", "<script>localStorage.token ??= 'T1'; document.cookie = 'sid=42'</script>"))
    state = json.loads(json.dumps(await save_state(first)))
    assert state["origins"] == [
        {"origin": site.url("").rstrip("/"), "localStorage": [{"name": "token", "value": "T1"}]}
    ]
    second = await start()
    await second.navigate("about:blank")
    assert await load_state(second, state) == (1, 1)
    site.page("/", "signed in?")
    await second.navigate(site.url("/"))
    assert await second.evaluate("[localStorage.token, document.cookie]") == ["T1", "sid=42"]
    with pytest.raises(InvalidArgument):
        await load_state(second, {"cookies": [{"name": "x"}]})


async def test_surroundings_are_as_they_were_set(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", "<meta name=viewport content='width=device-width'>p"))
    await emulate(supervisor, width=412, height=915, mobile=True, colors="dark", timezone="Asia/Tokyo", locale="de-DE")
    await emulate(supervisor, reduced_motion=True)
    told = await supervisor.evaluate(
        "[innerWidth, ...['(prefers-color-scheme: dark)', '(prefers-reduced-motion)'].map(q => matchMedia(q).matches),"
        " new Intl.DateTimeFormat().resolvedOptions().timeZone, (1.5).toLocaleString()]"
    )
    assert told == [412, True, True, "Asia/Tokyo", "1,5"]
    await emulate(supervisor, offline=True)
    assert await supervisor.evaluate("fetch('/').then(() => 'on', () => 'off')") == "off"
    for wrong in ({}, {"width": 5}, {"width": -1, "height": 5}, {"location": (100.0, 0.0)}):
        with pytest.raises(InvalidArgument):
            await emulate(supervisor, **wrong)  # type: ignore[arg-type]


async def test_a_script_gets_the_element_in_the_pages_own_world(supervisor: Supervisor, site: Site) -> None:
    page = "<button id=b>B</button><script>b.secret = {answer: 42}</script>"
    await supervisor.navigate(site.page("/", page))
    name = ref(await look(supervisor), "B")
    assert await evaluate_on(supervisor, "async (e) => e.secret", name) == {"answer": 42}
    with pytest.raises(EvaluationFailed, match="boom"):
        await evaluate_on(supervisor, "() => { throw new Error('boom') }", name)
    with pytest.raises(CallTimeout):
        await evaluate_on(supervisor, "() => new Promise(() => {})", name, timeout=0.3)
