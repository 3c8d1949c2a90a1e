"""The demo: starts the server as any client would, and goes through what it promises."""

import json
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from .site import serve_pages
from .story import Story, say, structured, text_of

SAMPLE = Path(__file__).with_name("transcript.json")
LIMIT_S = 120.0
TARGET_TOKENS = 4_000
DIALOG_WAIT_S = 15.0
AT_ONCE_S = 5.0
DIALOGS_SHOWN = 2
NEEDED_LATER = (
    "HARB-2291",
    "e3f9a61",
    "pulls/387",
    "refunds-2026-03-08.csv",
    "tariff_2019.py",
    "maria.k@ferry.example",
)


async def demo(options: Mapping[str, str]) -> int:
    """``options``: settings for the server, as on its command line. The exit status: 0 when every claim held."""
    say("Watchkeeper over stdio, on a real browser. Every line with [ok] was checked.")
    arguments = ["-m", "watchkeeper.server", *(f"--{name}={value}" for name, value in options.items())]
    if "browser.headless" not in options:
        arguments.append("--browser.headless=true")
    server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
    with serve_pages() as front, anyio.fail_after(LIMIT_S):
        async with Client(server, read_timeout_seconds=LIMIT_S) as client:
            story = Story(client)
            for chapter in (
                partial(_sees_every_frame, story, front),
                partial(_dialogs_do_not_block, story),
                partial(_a_dialog_ends_a_call, story),
                partial(_a_frame_of_another_site_asks, story),
                partial(_shrinks_without_forgetting, story),
            ):
                try:
                    await chapter()
                except Exception as error:  # noqa: BLE001 - what came back was not what the chapter goes on with
                    story.claim("this chapter could be told to its end", False, repr(error))
    say(f"\n{story.held} claims held, {story.failed} did not.")
    return int(story.failed > 0)


async def _sees_every_frame(story: Story, front: str) -> None:
    story.chapter("A page with two frames, one of another site")
    await story.call("browser_navigate", url=front)
    result = await story.call("browser_snapshot")
    page = structured(result)
    for words in ("Harbour office", "Last entry: all hands well.", "Wind: north, 4."):
        story.claim(f"the snapshot shows {words!r}", words in page["snapshot"], page["snapshot"])
    frames = {frame.get("name"): frame for frame in page["frame_tree"]["children"]}
    story.claim("the frame of the same site shares the page's process", frames["log"]["is_oopif"] is False, frames)
    story.claim("the frame of another site has a process of its own", frames["weather"]["is_oopif"] is True, frames)
    log = await story.evaluate("window.secret", frame_id=frames["log"]["short"])
    story.claim("JavaScript ran in the frame of the same site", log == "the log says 1,204 miles", log)
    weather = await story.evaluate("window.secret", frame_id=frames["weather"]["short"])
    story.claim("JavaScript ran in the frame of another site", weather == "a storm from the west", weather)
    refused = await story.call("browser_cdp", method="Runtime.evaluate", params={"expression": "1"}, frame_id="f99")
    story.claim("an unknown frame is an error, not a guess", bool(refused.is_error), text_of(refused))


async def _dialogs_do_not_block(story: Story) -> None:
    story.chapter("Dialogs: seen, answered, and the page got the answer")
    for kind, question, action, text, gives in (
        ("alert", ["Tide is turning"], "accept", None, "alert() gave undefined"),
        ("confirm", ["Cast off?"], "accept", None, "confirm() gave true"),
        ("confirm", ["Throw the cargo overboard?"], "dismiss", None, "confirm() gave false"),
        ("prompt", ["Name of the ship?", "Nobody"], "accept", "Argo", 'prompt() gave "Argo"'),
    ):
        written = ", ".join(map(repr, [kind, *question]))
        await story.evaluate(f"setTimeout(() => ask({written}), 0); 'asked'", show=0)
        await _pending(story)
        page = structured(await story.call("browser_snapshot", show=DIALOGS_SHOWN))
        [dialog] = page["pending_dialogs"]
        story.claim(
            f"the {kind} is pending, with its words", (dialog["type"], dialog["message"]) == (kind, question[0]), dialog
        )
        answer: dict[str, Any] = {"action": action} | ({"prompt_text": text} if text else {})
        answered = await story.call("browser_dialog", **answer)
        story.claim("the answer was delivered", structured(answered).get("delivered") is True, text_of(answered))
        shown = await story.evaluate("document.getElementById('answer').textContent", show=0)
        story.claim(f"the page says: {gives}", shown == gives, shown)
    recent = structured(await story.call("browser_snapshot", show=0))["recent_dialogs"]
    ends = [(dialog["type"], dialog["closed_by"], dialog["response"]["action"]) for dialog in recent[-4:]]
    story.claim(
        "all four are remembered, with how they ended",
        ends
        == [
            ("alert", "agent", "accept"),
            ("confirm", "agent", "accept"),
            ("confirm", "agent", "dismiss"),
            ("prompt", "agent", "accept"),
        ],
        ends,
    )


async def _a_dialog_ends_a_call(story: Story) -> None:
    story.chapter("A dialog that opens while a call runs ends that call at once")
    started = time.monotonic()
    result = await story.call(
        "browser_cdp", method="Runtime.evaluate", params={"expression": "confirm('Drop anchor?')"}
    )
    took = time.monotonic() - started
    error: dict[str, Any] = structured(result).get("error", {})
    story.claim(
        f"it ended, after {took * 1000:.0f} ms, saying why",
        error.get("code") == "dialog_opened" and took < AT_ONCE_S,
        error,
    )
    story.claim("the result names the dialog", "Drop anchor?" in text_of(result), text_of(result))
    story.claim("it was dismissed", not (await story.call("browser_dialog", action="dismiss")).is_error)


async def _a_frame_of_another_site_asks(story: Story) -> None:
    story.chapter("A prompt from the frame of another site")
    page = structured(await story.call("browser_snapshot", show=0))
    frame = next(f for f in page["frame_tree"]["children"] if f.get("name") == "weather")
    await story.evaluate("setTimeout(() => ask('prompt', 'Where to?'), 0); 1", show=0, frame_id=frame["short"])
    dialog = await _pending(story)
    story.claim("the dialog says which frame asks", dialog["frame_id"] == frame["frame_id"], dialog)
    await story.call("browser_dialog", action="accept", prompt_text="Ithaca", dialog_id=dialog["id"])
    shown = await story.evaluate("document.getElementById('answer').textContent", frame_id=frame["short"])
    story.claim("the frame got the answer", shown == 'prompt() gave "Ithaca"', shown)
    again = await story.call("browser_dialog", action="accept")
    story.claim("it cannot be answered twice", structured(again).get("error", {}).get("code") == "no_dialog_open")


async def _shrinks_without_forgetting(story: Story) -> None:
    story.chapter("A long conversation, compressed without a model")
    messages: list[dict[str, Any]] = json.loads(SAMPLE.read_text("utf-8"))
    say(f'\n> compress_context(messages=[{len(messages)} messages], mode="force", target_tokens={TARGET_TOKENS})')
    result = await story.call(
        "compress_context", show=0, messages=messages, mode="force", target_tokens=TARGET_TOKENS, output="summary"
    )
    found = structured(result)
    report, summary = found.get("report", {}), found.get("summary", "")
    for line in text_of(result).split("\n\n")[0].splitlines():
        say(f"  {line}")
    story.claim("it is smaller, and within its target", 0 < report.get("tokens_after", 0) <= TARGET_TOKENS, report)
    story.claim("it is valid for OpenAI, Anthropic and Gemini", report.get("valid") is True, report)
    kept = report.get("kept", {})
    typed, known = kept.get("user_characters"), kept.get("user_characters_known")
    story.claim("every word that the person typed is still there", bool(known) and typed == known, kept)
    for needed in NEEDED_LATER:
        story.claim(f"what is needed later is still there: {needed}", needed in summary, summary)


async def _pending(story: Story) -> dict[str, Any]:
    """The dialog that is open, once one is."""
    with anyio.fail_after(DIALOG_WAIT_S):
        while True:
            page = structured(await story.call("browser_snapshot", show=0, max_tokens=100))
            if page["pending_dialogs"]:
                dialog: dict[str, Any] = page["pending_dialogs"][0]
                return dialog
