"""Declared secrets: typed where they belong, shown nowhere."""

import base64
import json
import logging
import re
import sys
from typing import Any, Literal
from urllib.parse import quote

import pytest
from fakes.site import Site
from fakes.waits import frames

from watchkeeper.server.observability.logs import Redacted
from watchkeeper.server.security.declared_secrets import DeclaredSecrets
from watchkeeper.server.settings import Settings
from watchkeeper.server.settings_sources import SettingsError, load

from .conftest import Agent, StartAgent

VALUE = 'hunter2 & "more"\\ü'
FORM = "<input id=u aria-label=User><input id=p type=password aria-label=Password>"


def secrets(hosts: tuple[str, ...] = ("127.0.0.1",)) -> dict[str, Any]:
    return {"secrets": {"bank": {"value": VALUE, "hosts": hosts}}}


def ref_of(tree: str, name: str) -> str:
    line = next(line for line in tree.splitlines() if f'"{name}"' in line)
    return line.split()[0]


async def shown(acting: Agent) -> str:
    """The page, once its frames are there."""
    for _ in range(20):
        tree = str((await acting("browser_snapshot")).structured["snapshot"])
        if '"Password"' in tree:
            break
    return tree


@pytest.mark.anyio
@pytest.mark.chrome
async def test_a_secret_is_typed_by_name_and_appears_in_no_result(agent: StartAgent, site: Site) -> None:
    acting = await agent(browser=secrets(), server={"toolsets": ("core", "actions", "capture", "state")})
    await acting("browser_navigate", url=site.page("/", FORM))
    tree = await shown(acting)
    replies = []
    for name in ("User", "Password"):
        for keys in (False, True):
            await acting("browser_evaluate", expression="u.value = p.value = ''")
            reply = await acting("browser_type", ref=ref_of(tree, name), text="secret:bank", keys=keys)
            assert not reply.is_error, reply.text
            right = f"[u.value, p.value].includes({json.dumps(VALUE)})"
            assert (await acting("browser_evaluate", expression=right)).structured["value"] is True
            replies += [reply, await acting("browser_snapshot")]
    for expression in (
        "u.value",
        "p.value",
        "({[p.value]: [p.value]})",
        "'a' + p.value + 'b'",
        "encodeURIComponent(p.value)",
        "JSON.stringify(p.value)",
        "btoa(unescape(encodeURIComponent(p.value)))",
        "document.title = p.value",
        "console.error(p.value)",
        "location.hash = p.value",
        "(() => { throw new Error(p.value) })()",
    ):
        replies.append(await acting("browser_evaluate", expression=expression))
        replies.append(await acting.cdp("Runtime.evaluate", expression=expression))
    await acting.cdp("Runtime.evaluate", expression="setTimeout(() => prompt(p.value, p.value))")
    replies += [await acting("browser_snapshot"), await acting("browser_dialog", action="accept")]
    replies += [await acting("browser_console", all=True), await acting("browser_tabs", action="list")]
    for reply in replies:
        said = reply.text + json.dumps(reply.structured, ensure_ascii=False)
        for form in (VALUE, "hunter2", quote(VALUE), base64.b64encode(VALUE.encode()).decode()):
            assert form not in said, said[:500]
    assert any("[secret:bank]" in reply.text for reply in replies)


@pytest.mark.anyio
@pytest.mark.chrome
async def test_a_secret_is_typed_into_no_frame_of_another_host_nor_below_one(agent: StartAgent, site: Site) -> None:
    acting = await agent(browser=secrets())
    site.page("/form", FORM)
    heard = "<input aria-label=User autofocus oninput='document.title = 1'>"
    for around, form in (("{site}", "{other}"), ("{other}", "{site}"), ("{other}", "{other}")):
        top = site.page("/top", f"{heard}<iframe src='{form}/form'></iframe>")
        url = site.other("/top") if around == "{other}" else top
        await acting("browser_navigate", url=url)
        tree = await shown(acting)
        reply = await acting("browser_type", ref=ref_of(tree, "Password"), text="secret:bank")
        assert reply.is_error and reply.structured["error"]["code"] == "secret_refused", (around, form, reply.text)
        assert "localhost" in reply.text
        (inner,) = re.findall(r"frame (f\d+)", tree)
        value = await acting("browser_evaluate", expression="p.value", frame_id=inner)
        assert value.structured.get("value") == "", tree
    await acting("browser_navigate", url=site.page("/top", "<iframe src='{site}/form'></iframe>"))
    assert not (await acting("browser_type", ref=ref_of(await shown(acting), "Password"), text="secret:bank")).is_error
    unknown = await acting("browser_type", ref=ref_of(await shown(acting), "Password"), text="secret:other")
    assert unknown.structured["error"]["code"] == "unknown_secret" and "bank" in unknown.text


@pytest.mark.anyio
@pytest.mark.chrome
async def test_what_stands_in_password_fields_is_shown_by_no_script_and_no_raw_command(
    agent: StartAgent, site: Site
) -> None:
    acting = await agent()
    site.page("/inner", "<input type=password id=q value='inner-one'>")
    page = (
        "<input type=password id=p value='correct horse'><input id=u value=user><iframe src='{other}/inner'></iframe>"
    )
    await acting("browser_navigate", url=site.page("/", page))
    await frames(acting.supervisor, 2)
    replies = [
        await acting("browser_snapshot"),
        await acting("browser_evaluate", expression="[p.value, {a: `x${p.value}y`}, u.value]"),
        await acting("browser_evaluate", expression="q.value", frame_id="f2"),
        await acting.cdp("Runtime.evaluate", expression="p.value"),
        await acting.cdp("DOMSnapshot.captureSnapshot", computedStyles=[]),
        await acting.cdp("DOM.getDocument", depth=-1, pierce=True),
        await acting.cdp("Accessibility.getFullAXTree"),
    ]
    for reply in replies:
        assert not reply.is_error, reply.text
        said = reply.text + json.dumps(reply.structured)
        assert "correct horse" not in said and "inner-one" not in said, said[:400]
    assert replies[1].structured["value"] == ["[password]", {"a": "x[password]y"}, "user"]


def test_a_secret_needs_hosts_and_some_length() -> None:
    given = {"browser.secrets.bank.value": "long enough", "browser.secrets.bank.hosts": "a.test, *.b.test"}
    found = load(given, {}).settings.browser.secrets["bank"]
    assert found.hosts == ("a.test", "*.b.test")
    assert "long enough" not in repr(found) + str(load(given, {}).settings)
    for left_out in given:
        with pytest.raises(SettingsError) as refused:
            load({name: value for name, value in given.items() if name != left_out}, {})
        assert "long enough" not in str(refused.value)
    with pytest.raises(SettingsError) as refused:
        load({**given, "browser.secrets.bank.value": "short"}, {})
    assert "short" not in str(refused.value)


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_log_has_neither_declared_secrets_nor_tokens_nor_what_steers_a_terminal(
    form: Literal["text", "json"],
) -> None:
    mask = DeclaredSecrets(Settings.model_validate({"browser": secrets()})).masked
    formatter = Redacted(form, mask)
    said = (
        f"typed {VALUE}, wss://host/?token=abcdefghijklmnop1234 \x1b[2J\x9b31m Authorization: Bearer abcdefghijklmnop12"
    )
    try:
        raise ValueError(VALUE)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, said, None, sys.exc_info())
    shown = formatter.format(record)
    for secret in (VALUE, "hunter2", "abcdefghijklmnop", "\x1b", "\x9b"):
        assert secret not in shown, shown
    assert "[secret:bank]" in shown and "Traceback" in shown


def test_values_within_one_another_are_masked_whole() -> None:
    declared = {"a": {"value": "secret", "hosts": ("x",)}, "b": {"value": "secret-and-more", "hosts": ("x",)}}
    masked = DeclaredSecrets(Settings.model_validate({"browser": {"secrets": declared}})).masked
    assert masked({"secret": ["it is secret-and-more", 1, None]}) == {"[secret:a]": ["it is [secret:b]", 1, None]}
