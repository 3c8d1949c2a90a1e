"""Actions on a real page: what they do, what they refuse, and what they say they started."""

from pathlib import Path

import pytest
from fakes.page_text import look, ref
from fakes.site import Site
from fakes.waits import Start, frames

from watchkeeper.supervisor import Supervisor
from watchkeeper.supervisor.errors import InvalidArgument
from watchkeeper.supervisor.page import (
    NotInteractable,
    check,
    click,
    drag,
    evaluate_on,
    fill,
    hover,
    press,
    scroll,
    select,
    type_text,
    upload,
)

pytestmark = [pytest.mark.anyio, pytest.mark.chrome]
PAGES = Path(__file__).parent / "pages" / "act"


async def opened(supervisor: Supervisor, site: Site, name: str) -> str:
    await supervisor.navigate(site.page("/", (PAGES / f"{name}.html").read_text("utf-8")))
    return await look(supervisor)


async def test_clicks_of_every_kind_arrive_as_they_were_meant(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "pointer")
    await click(supervisor, ref(text, "plain"))
    await click(supervisor, ref(text, "double"), count=2)
    await click(supervisor, ref(text, "context"), button="right")
    await click(supervisor, ref(text, "modified"), modifiers=["Control", "shift"])
    await click(supervisor, ref(text, "vanishing"))
    assert await supervisor.evaluate("hits") == ["plain", "double", "context", "mod+ctrl+shift", "gone"]
    for wrong in ({"button": "fourth"}, {"count": 0}, {"modifiers": ["Hyper"]}):
        with pytest.raises(InvalidArgument):
            await click(supervisor, ref(text, "plain"), **wrong)  # type: ignore[arg-type]


async def test_an_element_is_brought_to_where_it_can_be_hit(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "pointer")
    for name in ("far away", "moving", "pulsing", "in scroller", "half covered"):
        await click(supervisor, ref(text, name))
    assert await supervisor.evaluate("hits") == ["far", "moving", "pulse", "scrolled", "edge"]


async def test_what_cannot_be_acted_on_is_refused_with_the_reason(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "pointer")
    refused: dict[str, NotInteractable] = {}
    await supervisor.evaluate("document.getElementById('dbl').style.visibility = 'hidden'")
    for name in ("covered", "disabled", "forever moving", "double"):
        with pytest.raises(NotInteractable) as caught:
            await click(supervisor, ref(text, name))
        refused[name] = caught.value
    assert {name: error.reason for name, error in refused.items()} == {
        "covered": "covered",
        "disabled": "disabled",
        "forever moving": "moving",
        "double": "hidden",
    }
    assert f'covered by {ref(text, "Cookie notice")} dialog "Cookie notice"' in refused["covered"].message
    assert await supervisor.evaluate("hits") == []
    await click(supervisor, ref(text, "covered"), force=True)


async def test_a_menu_that_appears_on_hover_can_be_used(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "pointer")
    await hover(supervisor, ref(text, "hover me"))
    await click(supervisor, ref(await look(supervisor), "menu item"))
    assert await supervisor.evaluate("hits") == ["menu"]


async def test_a_click_that_lands_on_something_else_says_so(supervisor: Supervisor, site: Site) -> None:
    page = """<button onclick="window.hit = 1">Target</button>
      <div id=veil role=dialog aria-label=Veil style="position:fixed;inset:0;display:none"></div>
      <script>document.addEventListener('mousemove', () => veil.style.display = 'block')</script>"""
    await supervisor.navigate(site.page("/", page))
    done = await click(supervisor, ref(await look(supervisor), "Target"))
    assert "landed on" in done.said
    assert '"Veil"' in done.said
    assert await supervisor.evaluate("window.hit ?? 0") == 0


async def test_dragging_works_with_the_pointer_and_with_html_drag_and_drop(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "pointer")
    await drag(supervisor, ref(text, "handle"), ref(text, "pointer zone"))
    await drag(supervisor, ref(text, "card"), ref(text, "bin"))
    refused = await drag(supervisor, ref(text, "card"), ref(text, "wall"))
    assert await supervisor.evaluate("hits") == ["pointer-dropped", "dropped the card"]
    assert "did not accept" in refused.said


async def test_scrolling_moves_the_page_or_the_part_that_was_named(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "pointer")
    assert "now at" in (await scroll(supervisor)).said
    assert await supervisor.evaluate("scrollY") > 100
    await scroll(supervisor, to="bottom")
    assert await supervisor.evaluate("scrollY + innerHeight >= document.body.scrollHeight - 1")
    assert "any further" in (await scroll(supervisor, pages=1)).said
    await scroll(supervisor, to="top")
    await scroll(supervisor, ref(text, "in scroller"), pixels=150)
    assert await supervisor.evaluate("[scrollY, document.getElementById('box').scrollTop]") == [0, 150]
    await scroll(supervisor, ref(text, "far away"))
    assert await supervisor.evaluate("scrollY") > 1000


async def test_every_kind_of_field_can_be_filled(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "forms")
    values = {
        "plain": "new ü 漢字", "area": "two\nlines", "secret": "hunter2", "email": "a@b.c", "number": "42",
        "date": "2024-05-06", "time": "10:11", "range": "40", "color": "#ff0000",
    }  # fmt: skip
    for name, value in values.items():
        done = await fill(supervisor, ref(text, name), value)
        assert done.said.startswith("filled")
        assert value not in done.said, "a value that was taken as given is not repeated"
        assert await supervisor.evaluate(f"document.querySelector('[aria-label={name}]').value") == value
    await fill(supervisor, ref(text, "rich"), "new text")
    assert await supervisor.evaluate("document.querySelector('[contenteditable]').innerText") == "new text"
    assert 'now holds "abc"' in (await fill(supervisor, ref(text, "short"), "abcdef")).said
    assert (await fill(supervisor, ref(text, "plain"), "")).said.startswith("emptied")
    assert await supervisor.evaluate("plain.value") == ""


async def test_fields_that_a_framework_controls_take_what_is_filled_and_typed(
    supervisor: Supervisor, site: Site
) -> None:
    text = await opened(supervisor, site, "forms")
    field = ref(text, "controlled")
    done = await fill(supervisor, field, "hello")
    assert await supervisor.evaluate("controlledState()") == "HELLO"
    assert 'now holds "HELLO"' in done.said
    await type_text(supervisor, " you", field)
    assert await supervisor.evaluate("controlledState()") == "HELLO YOU"


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("readonly", "x", "readonly"),
        ("disabled", "x", "disabled"),
        ("date", "tomorrow", "wrong_kind"),
        ("box", "x", "wrong_kind"),
    ],
)
async def test_a_field_that_cannot_take_a_value_says_why(
    supervisor: Supervisor, site: Site, field: str, value: str, reason: str
) -> None:
    text = await opened(supervisor, site, "forms")
    with pytest.raises(NotInteractable) as caught:
        await fill(supervisor, ref(text, field), value)
    assert caught.value.reason == reason
    assert await supervisor.evaluate("events.length") == 0


async def test_typing_sends_keys_and_inserts_what_no_key_types(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "forms")
    area = ref(text, "area")
    await type_text(supervisor, "Añ 漢 😀!\n", area)
    assert await supervisor.evaluate("document.querySelector('textarea').value") == "oldAñ 漢 😀!\n"
    keys = [e for e in await supervisor.evaluate("events") if e.startswith("key:")]
    assert keys == ["key:S-A", "key: ", "key: ", "key:S-!", "key:Enter"]
    await press(supervisor, "Control+A Delete", area)
    assert await supervisor.evaluate("document.querySelector('textarea').value") == ""
    done = await fill(supervisor, ref(text, "plain"), "go", submit=True)
    assert done.said.endswith("pressed Enter")
    assert await supervisor.evaluate("out.textContent") == "submit"


async def test_options_are_chosen_by_label_or_value(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "forms")
    one, many = ref(text, "one"), ref(text, "many")
    assert '"Banana" selected' in (await select(supervisor, one, ["banana"])).said
    assert "already" in (await select(supervisor, one, ["b"])).said
    await select(supervisor, many, ["x", "z"])
    assert await supervisor.evaluate(
        "[...document.querySelectorAll('select')].map(s => [...s.selectedOptions].length)"
    ) == [1, 2]
    with pytest.raises(NotInteractable) as caught:
        await select(supervisor, one, ["Durian"])
    assert '"Apple", "Banana", "Cherry"' in caught.value.hint
    for values in (["Cherry"], ["a", "b"]):
        with pytest.raises(NotInteractable):
            await select(supervisor, one, values)


async def test_checking_changes_what_is_not_so_already(supervisor: Supervisor, site: Site) -> None:
    text = await opened(supervisor, site, "forms")
    for name in ("box", "radio one", "styled box"):
        assert (await check(supervisor, ref(text, name))).said.endswith("checked now")
        assert "already" in (await check(supervisor, ref(text, name))).said
    await check(supervisor, ref(text, "box"), False)
    checked = "[...document.querySelectorAll('input[type=checkbox],input[type=radio]')].map(i => i.checked)"
    assert await supervisor.evaluate(checked) == [False, True, False, True]
    for name, wish in (("stubborn", True), ("radio one", False), ("plain", True)):
        with pytest.raises(NotInteractable):
            await check(supervisor, ref(text, name), wish)


async def test_files_go_to_inputs_and_to_choosers_that_a_button_opens(
    supervisor: Supervisor, site: Site, tmp_path: Path
) -> None:
    text = await opened(supervisor, site, "forms")
    paths = []
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(name)
        paths.append(str(tmp_path / name))
    await upload(supervisor, ref(text, "file"), paths[:1])
    await upload(supervisor, ref(text, "files"), paths)
    counts = "[...document.querySelectorAll('input[type=file]')].map(i => i.files.length)"
    assert await supervisor.evaluate(counts) == [1, 2]
    await upload(supervisor, ref(text, "Choose a file"), paths[1:])
    assert await supervisor.evaluate("out.textContent") == "chosen b.txt"
    with pytest.raises(InvalidArgument):
        await upload(supervisor, ref(text, "file"), [str(tmp_path / "none")])
    with pytest.raises(NotInteractable):
        await upload(supervisor, ref(text, "plain"), paths[:1])


NESTED = (
    "<style>body{{margin:0}}iframe{{border:7px solid;padding:5px;margin-top:{top}px}}</style>"
    "<iframe src='{src}' width=600 height=400></iframe><p style='height:2000px'>"
)


@pytest.mark.parametrize(
    "way", [("{site}", "{site}"), ("{other}", "{other}"), ("{other}", "{site}"), ("{site}", "{other}")]
)
async def test_elements_in_nested_frames_of_any_process_are_hit(
    supervisor: Supervisor, site: Site, way: tuple[str, str]
) -> None:
    site.page(
        "/leaf",
        "<div style='height:700px'>tall</div><button onclick='window.hit = 1'>Leaf</button><input aria-label=Field>",
    )
    site.page("/middle", NESTED.format(top=900, src=f"{way[1]}/leaf"))
    await supervisor.navigate(site.page("/", NESTED.format(top=1500, src=f"{way[0]}/middle")))
    view = await frames(supervisor, 3)
    text = await look(supervisor)
    await click(supervisor, ref(text, "Leaf"))
    assert await supervisor.evaluate("window.hit", frame_id=view.frames[2].frame_id) == 1
    await fill(supervisor, ref(text, "Field"), "deep")
    await type_text(supervisor, "er", ref(text, "Field"))
    assert await evaluate_on(supervisor, "(e) => e.value", ref(text, "Field")) == "deeper"


async def test_a_frame_that_its_parent_covers_is_told_as_covered(supervisor: Supervisor, site: Site) -> None:
    site.page("/leaf", "<button>Inside</button>")
    veil = "<div role=dialog aria-label=Consent style='position:fixed;inset:0;background:#fff'></div>"
    page = f"<iframe src='{{other}}/leaf'></iframe>{veil}"
    await supervisor.navigate(site.page("/", page))
    await frames(supervisor, 2)
    text = await look(supervisor)
    with pytest.raises(NotInteractable, match=r"covered by .*Consent"):
        await click(supervisor, ref(text, "Inside"))


async def test_what_an_action_started_is_part_of_its_answer(supervisor: Supervisor, site: Site) -> None:
    site.page("/next", "<title>Next page</title><h1>Next</h1>")
    site.pages["/missing"] = lambda request: (404, {"Content-Type": "text/html"}, b"<title>No such page</title>")
    site.pages["/file"] = lambda request: (200, {"Content-Disposition": "attachment; filename=report.csv"}, b"a,b")
    page = """<a href="/next">Go on</a><a href="/missing">Broken</a><a href="http://127.0.0.1:9/">Refused</a>
    <a href="/next" target="_blank">New tab</a><a href="/file">Report</a><a href="#part">Part</a>
    <button onclick="alert('Hello')">Alert</button><form action="/next"><button>Submit</button></form>
    <button onclick="setTimeout(() => location.href = '/next')">Script</button><button>Nothing</button>"""
    home = site.page("/", page)
    await supervisor.navigate(home)
    text = await look(supervisor)
    assert (await click(supervisor, ref(text, "Nothing"))).effects.lines() == []
    part = await click(supervisor, ref(text, "Part"))
    assert part.effects.moved_to == f"{home}#part"
    report = await click(supervisor, ref(text, "Report"))
    assert report.effects.downloads == ("report.csv",)
    tab = await click(supervisor, ref(text, "New tab"))
    assert [opened_tab.opener for opened_tab in tab.effects.tabs] == ["t1"]
    alert = await click(supervisor, ref(text, "Alert"))
    assert [(d.type, d.message) for d in alert.effects.dialogs] == [("alert", "Hello")]
    await supervisor.answer_dialog("accept")
    for name, title, status, state in (
        ("Go on", "Next page", 200, "loaded"),
        ("Broken", "No such page", 404, "loaded"),
        ("Submit", "Next page", 200, "loaded"),
        ("Script", "Next page", 200, "loaded"),
        ("Refused", "", 0, "failed"),
    ):
        await supervisor.navigate(home)
        done = await click(supervisor, ref(await look(supervisor), name))
        assert [(a.title, a.status, a.state) for a in done.effects.arrivals] == [(title, status, state)], name


async def test_a_native_dialog_ends_the_action_that_opened_it(start: Start, site: Site) -> None:
    supervisor = await start(bridge="never")
    await supervisor.navigate(
        site.page("/", "<button onclick=\"out.textContent = confirm('Sure?')\">Ask</button><p id=out>")
    )
    done = await click(supervisor, ref(await look(supervisor), "Ask"))
    assert 'confirm "Sure?"' in done.text
    await supervisor.answer_dialog("accept")
    assert await supervisor.evaluate("out.textContent") == "true"
