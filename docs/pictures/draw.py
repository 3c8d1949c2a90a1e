"""Draws the pictures of docs/how-it-works.md:

    python docs/pictures/draw.py           write them
    python docs/pictures/draw.py --check   fail where one is not as it would be drawn

Names of commands, codes and times in them are those of the code; a test looks for them there.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from svg import Picture

HERE = Path(__file__).parent


def parts() -> Picture:
    p = Picture(
        820,
        470,
        "The three parts and what is between them",
        "Clients speak MCP to the server. The server uses the supervisor, which speaks CDP to a browser, and the "
        "context part, which has an archive and may have a model. Supervisor and context do not know each other.",
    )
    p.box(20, 40, 150, 96, "clients", "Claude Desktop\nscripts in CI\nthe Inspector")
    p.box(
        270,
        24,
        300,
        128,
        "server",
        "tools, declared once\nstdio, streamable HTTP, SSE\n"
        "settings, tokens, rules for addresses\nthe only part that knows MCP",
        "ours",
    )
    p.arrow(170, 88, 270, 88, "MCP", both=True)
    p.box(640, 40, 160, 96, "a person", "watches, signs in,\nis asked", "plain")
    p.arrow(570, 88, 640, 88, both=True, dashed=True)

    p.box(
        90,
        230,
        290,
        128,
        "supervisor",
        "one view of a browser for each task\nshell: transport, deadlines, calls",
        "ours",
        top=True,
    )
    p.box(110, 306, 250, 42, "", "core: step(state, input, now)", "pure")
    p.box(
        450,
        230,
        290,
        128,
        "context",
        "engines, one for each conversation\nshell: files, archive, models",
        "ours",
        top=True,
    )
    p.box(470, 306, 250, 42, "", "core: regions, record, repair", "pure")
    p.arrow(340, 152, 250, 230)
    p.arrow(500, 152, 590, 230)
    p.text(286, 186, "call, snapshot,", size=11, end=True)
    p.text(270, 202, "navigate, answer_dialog", size=11, end=True)
    p.text(556, 186, "ContextHost.handle(call)", size=11)
    p.text(574, 202, "gives messages and a report", size=11)
    p.line(415, 236, 415, 352, dashed=True)
    p.text(415, 222, "never import each other", size=11, quiet=True, middle=True)

    p.box(20, 408, 170, 46, "browser", "Chromium family")
    p.box(220, 408, 160, 46, "the network", "through the gate")
    p.arrow(150, 358, 110, 408, "CDP: pipe or WebSocket", both=True)
    p.arrow(190, 431, 220, 431)
    p.box(450, 408, 140, 46, "archive", "SQLite, PostgreSQL")
    p.box(610, 408, 130, 46, "a model", "only if configured")
    p.arrow(530, 358, 520, 408, both=True)
    p.arrow(660, 358, 675, 408, dashed=True)
    return p


def dialog() -> Picture:
    p = Picture(
        820,
        570,
        "The life of a dialog under the debugger bridge",
        "A page calls confirm. Our function stops at a debugger statement; the supervisor reads the question, ends the "
        "calls that wait, and resumes the page with the answer that the agent gives.",
    )
    lanes = {"page": 90, "chromium": 290, "supervisor": 500, "agent": 720}
    names = {
        "page": "the page's script",
        "chromium": "Chromium",
        "supervisor": "supervisor: step",
        "agent": "tool call, agent",
    }
    for key, x in lanes.items():
        p.box(x - 78, 16, 156, 32, names[key], kind="ours" if key == "supervisor" else "plain")
        p.line(x, 48, x, 554, dashed=True)

    def say(y: float, one: str, other: str, said: str, *, dashed: bool = False) -> None:
        p.arrow(lanes[one], y, lanes[other], y, said, dashed=dashed)

    say(78, "agent", "supervisor", "browser_click")
    say(98, "supervisor", "chromium", "Input.dispatchMouseEvent")
    say(122, "page", "chromium", 'confirm("Sure?")')
    p.box(20, 134, 140, 28, "", "stops at debugger", "warn")
    say(156, "chromium", "supervisor", "Debugger.paused")
    say(186, "supervisor", "chromium", "evaluateOnCallFrame: read")
    say(212, "chromium", "supervisor", "type, message, default")
    p.box(424, 224, 152, 28, "", "d-1 is pending", "warn")
    say(274, "supervisor", "agent", "dialog_opened: d-1")
    p.text(720, 291, "the call ends at once", size=11, quiet=True, middle=True, free=True)
    p.box(
        200, 300, 600, 30, "", "snapshots, screenshots and scripts are answered all the while, in this page too", "pure"
    )
    say(356, "agent", "supervisor", "browser_dialog(accept)")
    p.box(424, 366, 152, 28, "", "intent is recorded", "warn")
    say(412, "supervisor", "chromium", "evaluateOnCallFrame: write")
    say(438, "chromium", "supervisor", "written")
    say(462, "supervisor", "chromium", "Debugger.resume")
    say(488, "chromium", "page", "confirm() gives true")
    say(488, "chromium", "supervisor", "Debugger.resumed")
    p.box(424, 498, 152, 26, "", "closed_by: agent", "pure")
    say(546, "supervisor", "agent", "delivered: true", dashed=False)
    return p


def frames() -> Picture:
    p = Picture(
        820,
        400,
        "Frames, processes and sessions",
        "A tab with a frame of the same site and one of another site, which has a frame itself. Each process has a CDP "
        "session; every frame has a short name that leads to the right session and execution context.",
    )
    p.text(20, 30, "what is on the page", size=13, bold=True)
    p.text(370, 30, "where it lives", size=13, bold=True)
    p.text(600, 30, "how it is reached", size=13, bold=True)
    p.box(20, 46, 310, 330, "f1  shop.example", kind="plain", top=True)
    p.box(40, 84, 270, 66, "f2  shop.example/help", "same site: the same process", "plain")
    p.box(40, 166, 270, 190, "f3  pay.example", "another site: a process of its own", "warn", top=True)
    p.box(62, 226, 226, 108, "f4  bank.example", "inside of it, of a third site:\nanother process again", "pure")

    p.box(370, 60, 180, 74, "process 1", "documents f1 and f2\na context for each", "plain")
    p.box(370, 176, 180, 74, "process 2", "document f3\nits context", "warn")
    p.box(370, 292, 180, 74, "process 3", "document f4\nits context", "pure")
    p.box(600, 60, 200, 74, "session of the page", "Page, Runtime, DOM, …\ndialogs are reported here", "plain")
    p.box(600, 176, 200, 74, "session of f3", "attached by itself, held\nuntil it is prepared", "warn")
    p.box(600, 292, 200, 74, "session of f4", "attached through f3's\nsession, not the page's", "pure")
    for y in (97, 213, 329):
        p.arrow(600, y, 550, y, both=True)
    p.arrow(700, 134, 700, 176, "setAutoAttach")
    p.arrow(700, 250, 700, 292, "setAutoAttach")
    p.arrow(310, 117, 370, 97)
    p.arrow(310, 200, 370, 213)
    p.arrow(288, 290, 370, 329)
    return p


def call() -> Picture:
    p = Picture(
        820,
        560,
        "The way of a call, its deadlines, and what can end it",
        "A tool call is checked, routed and sent. Its answer, or one of six other ends, comes back as a result that "
        "begins with the dialogs that are open.",
    )
    p.box(30, 20, 220, 56, "tools/call", "browser_evaluate, browser_click …")
    p.box(30, 110, 220, 74, "checks", "arguments against the schema,\ncalls at once, a person's consent", "ours")
    p.box(
        30, 218, 220, 74, "the tool's limit", "timeout, or call_timeout_s 30,\nand 20 s to tell what came of it", "ours"
    )
    p.box(
        30,
        326,
        220,
        92,
        "where it goes",
        "frame → session and context,\nrefused methods and addresses,\nno call behind a dialog is sent",
        "ours",
    )
    p.box(30, 452, 220, 74, "sent, with a number", "waits among PendingCommands,\nwith a deadline of its own", "ours")
    for y in (76, 184, 292, 418):
        p.arrow(140, y, 140, y + 34)
    p.text(410, 36, "ends", size=13, bold=True)
    p.text(600, 36, "what the agent is told", size=13, bold=True)
    ends = (
        (110, "refused", "the arguments do not fit", "invalid_arguments", "nothing was done"),
        (176, "refused", "a dialog holds the page", "dialog_opened", "… so it was not sent"),
        (242, "answered", "the browser's reply", "the result", "or protocol_error"),
        (308, "interrupted", "a dialog opens", "dialog_opened", "may have taken effect"),
        (374, "gone", "crash, close, lost connection", "target_crashed …", "target_closed, connection_lost"),
        (440, "too late", "no answer in time", "timeout", "says what was waited for"),
        (506, "cancelled", "by the client, or at the end", "no result", "nothing is left half done"),
    )
    for y, what, why, code, more in ends:
        kind = "pure" if what == "answered" else "warn"
        p.box(320, y - 48, 230, 54, what, why, kind)
        p.box(580, y - 48, 220, 54, code, more, "plain")
        p.arrow(550, y - 21, 580, y - 21)
    p.line(285, 89, 285, 485, width=1.5)
    for y, *_ in ends:
        p.arrow(285, y - 21, 320, y - 21)
    p.line(250, 485, 285, 485, width=1.5)
    p.line(250, 147, 285, 147, width=1.5)
    p.line(250, 372, 285, 372, width=1.5)
    p.text(410, 548, "Every result begins with the dialogs that are open now.", size=12, middle=True, quiet=True)
    return p


def compression() -> Picture:
    p = Picture(
        820,
        420,
        "How a conversation is compressed",
        "Head, middle and tail of a conversation. The middle becomes a record of quotations; head, last request and "
        "tail stay; originals may go to the archive.",
    )
    p.text(30, 32, "what comes in", size=13, bold=True)
    p.text(560, 32, "what goes out", size=13, bold=True)
    p.box(30, 48, 200, 40, "", "instructions (system)", "plain")
    p.box(30, 92, 200, 40, "", "first exchange", "plain")
    p.box(30, 140, 200, 150, "the middle", "calls, results, answers,\nearlier records,\nwhat people typed", "warn")
    p.box(30, 298, 200, 34, "", "last request of the person", "plain")
    p.box(30, 336, 200, 66, "the newest", "tail, and calls that run", "plain")

    p.box(
        300,
        140,
        200,
        150,
        "read as it was",
        "what people typed\nlines with identifiers,\nnumbers, rare words\n"
        "an index of what is left\na model's sections, if set",
        "ours",
    )
    p.arrow(230, 215, 300, 215, "harvest")
    p.box(300, 334, 200, 44, "archive, if on", "every original, as it was", "pure")
    p.arrow(400, 290, 400, 334)
    p.text(406, 307, "originals", size=11)

    p.box(560, 48, 230, 40, "", "instructions + one note", "plain")
    p.box(560, 92, 230, 40, "", "first exchange", "plain")
    p.box(
        560,
        140,
        230,
        150,
        "the record",
        "[CONTEXT COMPACTION]\nquotations, in order\nhandles into the archive\n[END OF CONTEXT COMPACTION]",
        "ours",
    )
    p.box(560, 298, 230, 34, "", "last request, as it was", "plain")
    p.box(560, 336, 230, 66, "the newest", "old tool output as stubs, where\nthe budget wants it", "plain")
    p.arrow(500, 215, 560, 215, "fits")
    p.arrow(500, 345, 560, 284, dashed=True)
    p.text(508, 352, "handles", size=11, free=True)
    p.arrow(230, 68, 560, 68)
    p.arrow(230, 112, 560, 112)
    p.arrow(230, 318, 560, 318)
    p.arrow(230, 391, 560, 391)
    return p


PICTURES: dict[str, Callable[[], Picture]] = {
    "parts": parts,
    "dialog": dialog,
    "frames": frames,
    "call": call,
    "compression": compression,
}


def main(arguments: list[str]) -> int:
    different = 0
    for name, drawn in PICTURES.items():
        path, svg = HERE / f"{name}.svg", drawn().svg()
        if path.exists() and path.read_text("utf-8") == svg:
            continue
        different += 1
        if "--check" in arguments:
            sys.stdout.write(f"{path.name} is not as it would be drawn\n")
        else:
            path.write_text(svg, "utf-8")
    return int(bool(different) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
