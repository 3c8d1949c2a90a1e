"""Patterns of real pages, each on a small page that behaves like them."""

from pathlib import Path

import pytest
from fakes.page_text import look, ref
from fakes.site import Site
from fakes.waits import Start, frames

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.errors import DialogOpened
from watchkeeper.supervisor.page import (
    NotInteractable,
    PageLoading,
    click,
    effects,
    hover,
    press,
    screenshot,
    scroll,
    take_snapshot,
    type_text,
    wait_for,
)

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
WAIT_S = 15.0


def pattern(name: str) -> str:
    return (Path(__file__).parent / "pages" / "patterns" / f"{name}.html").read_text("utf-8")


async def test_a_consent_overlay_in_a_foreign_frame_is_named_and_can_be_closed(
    supervisor: Supervisor, site: Site
) -> None:
    site.page(
        "/consent",
        "<h2>We value your privacy</h2><button onclick=\"parent.postMessage('ok', '*')\">Accept all</button>",
    )
    await supervisor.navigate(site.page("/", pattern("consent")))
    await frames(supervisor, 2)
    text = await look(supervisor)
    with pytest.raises(NotInteractable, match=r'covered by e\d+ iframe "Consent"'):
        await click(supervisor, ref(text, "Buy"))
    await click(supervisor, ref(text, "Accept all"))
    await frames(supervisor, 1)
    await click(supervisor, ref(text, "Buy"))
    assert await supervisor.evaluate("window.bought") == 1


async def test_a_virtualised_list_shows_new_rows_as_it_is_scrolled_and_old_refs_are_stale(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(site.page("/", pattern("virtual")))
    text = await look(supervisor)
    first = ref(text, "Row 0")
    await scroll(supervisor, ref(text, "Rows"), pixels=9000)
    later = await look(supervisor)
    assert '"Row 0"' not in later
    await click(supervisor, ref(later, "Row 305"))
    assert await supervisor.evaluate("window.chosen") == "Row 305"
    with pytest.raises(Exception, match=r'button "Row 0"\) is no longer on the page; nearest'):
        await click(supervisor, first)


async def test_an_endless_page_grows_as_it_is_scrolled(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", pattern("endless")))
    before = await take_snapshot(supervisor)
    assert '"Post 40"' not in before.text
    for _ in range(2):
        await scroll(supervisor, to="bottom")
        count = await supervisor.evaluate("n")
        assert (await wait_for(supervisor, text=f"Post {count - 1}", timeout=WAIT_S)).met
    assert (await wait_for(supervisor, text="Post 40", timeout=WAIT_S)).met
    changed = await take_snapshot(supervisor, since=before.snapshot_id)
    assert '"Post 40"' in changed.text
    assert '"Post 5"' not in changed.text


async def test_a_single_page_application_says_where_a_click_led(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", pattern("single_page")))
    done = await click(supervisor, ref(await look(supervisor), "About"))
    assert done.effects.moved_to == site.url("/about")
    assert done.effects.arrivals == ()
    assert 'h1 "About"' in await look(supervisor)


async def test_an_element_that_is_drawn_anew_under_the_pointer_is_still_clicked(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(site.page("/", pattern("redrawn")))
    done = await click(supervisor, ref(await look(supervisor), "Card"))
    assert await supervisor.evaluate("window.hit") == 1
    assert "landed" not in done.said


async def test_targets_behind_sticky_headers_and_in_nested_scrollers_are_brought_out(
    supervisor: Supervisor, site: Site
) -> None:
    await supervisor.navigate(site.page("/", pattern("sticky")))
    await click(supervisor, ref(await look(supervisor), "Inner"))
    assert await supervisor.evaluate("window.hit") == 1


async def test_an_autocomplete_is_typed_into_and_its_option_chosen(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", pattern("autocomplete")))
    field = ref(await look(supervisor), "City")
    await type_text(supervisor, "par", field)
    assert (await wait_for(supervisor, text="Parma", timeout=WAIT_S)).met
    text = await look(supervisor)
    assert 'combobox "City" expanded focused = "par"' in text
    await click(supervisor, ref(text, "Parma"))
    assert await supervisor.evaluate("box.value") == "Parma"
    await type_text(supervisor, "", field)
    await press(supervisor, "Control+A", field)
    await type_text(supervisor, "par")
    assert (await wait_for(supervisor, text="Paris", timeout=WAIT_S)).met
    await press(supervisor, "ArrowDown Enter")
    assert await supervisor.evaluate("box.value") == "Paris"


async def test_a_nested_menu_opens_level_by_level(supervisor: Supervisor, site: Site) -> None:
    await supervisor.navigate(site.page("/", pattern("menu")))
    for name in ("File", "Export"):
        await hover(supervisor, ref(await look(supervisor), name))
    await click(supervisor, ref(await look(supervisor), "PDF"))
    assert await supervisor.evaluate("window.hit") == 1


@pytest.mark.parametrize("bridge", ["debugger", "never"])
async def test_nothing_is_done_behind_an_open_dialog_and_everything_says_so_at_once(
    start: Start, site: Site, bridge: str
) -> None:
    supervisor = await start(bridge=bridge)
    page = "<button onclick=\"confirm('Delete?')\">Delete</button><input aria-label=Name><p>words</p>"
    await supervisor.navigate(site.page("/", page))
    text = await look(supervisor)
    await click(supervisor, ref(text, "Delete"))
    for attempt in (
        lambda: click(supervisor, ref(text, "Name")),
        lambda: type_text(supervisor, "x", ref(text, "Name")),
        lambda: press(supervisor, "Enter"),
        lambda: wait_for(supervisor, text="never there", timeout=WAIT_S),
    ):
        with pytest.raises(DialogOpened):
            await attempt()
    shown = await take_snapshot(supervisor)
    assert '"Name"' in shown.text
    assert shown.stale is (bridge == "never")
    assert (await screenshot(supervisor)).data
    await supervisor.answer_dialog("dismiss")
    await click(supervisor, ref(text, "Name"))


async def test_a_page_that_waits_for_a_response_is_told_as_waiting_and_comes_back(
    supervisor: Supervisor, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effects, "LOAD_WAIT_S", 0.3)
    site.hang("/hang")
    await supervisor.navigate(site.page("/", "<a href=/hang>Report</a><button onclick='window.hit = 1'>Other</button>"))
    text = await look(supervisor)
    done = await click(supervisor, ref(text, "Report"))
    assert [a.state for a in done.effects.arrivals] == ["waiting"]
    shown = await take_snapshot(supervisor)
    assert shown.stale
    assert "response from" in shown.text
    assert 'link "Report"' in shown.text
    with pytest.raises(PageLoading, match="/hang"):
        await click(supervisor, ref(text, "Other"))
    assert not (await wait_for(supervisor, text="never there", timeout=0.3)).met
    await supervisor.call("Page.stopLoading")
    await click(supervisor, ref(text, "Other"))
    assert await supervisor.evaluate("window.hit") == 1
