"""What a person is asked before a tool acts, where ``server.ask_person`` says so. Knows nothing of MCP's messages.

Rules: the person sees exactly what would happen, in one piece, or it does not happen. What is a page's stands fenced,
and secrets are masked. An answer is for its question only: when that reads otherwise by the time of the answer, it is
good for nothing. Ways around are asked about as well: raw commands that open addresses, give files or answer dialogs,
and a dialog policy that would answer without asking.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from . import render
from .errors import ToolError
from .security.hosts import canonical
from .settings import AskedOf, Settings
from .tools.spec import DEFAULT_TASK, Arguments, ToolSpec

if TYPE_CHECKING:
    from watchkeeper.supervisor.core.view import Dialog

    from .tasks import Tasks

SHOWN_WHOLE = 8_000
"""Characters of what would run that a person is shown; more is not asked about, and so not run."""
APPROVED_HOSTS = 1_000
"""Hosts that are remembered as approved, for each principal; beyond that the person is asked again."""
ASKED: Mapping[AskedOf, tuple[str, str]] = {
    "dialogs": (
        "`browser_dialog` for confirm, prompt and beforeunload; a `dialog_policy` that answers by itself; raw commands "
        "by which a held dialog could be answered",
        "the page's words, its address, the proposed answer; may change answer and text",
    ),
    "scripts": ("`browser_evaluate`, `browser_cdp`", "the script or command, whole, and the page it is for"),
    "uploads": ("`browser_files` with upload, raw commands that give files", "the paths of the files, and the page"),
    "secrets": ("`browser_type` with `secret:NAME`", "the name of the secret, the field, and the page"),
    "hosts": (
        "`browser_navigate`, `browser_tabs` and raw commands that open an address",
        "the address; a host that was agreed to is not asked about again until the server ends",
    ),
}
"""What is asked about, and what the person sees; docs/protocol.md is made from it."""
ANSWERS_DIALOGS = ("Debugger.", "Fetch.")
"""Domains by whose commands a dialog that a bridge holds could be answered."""
SETTING = "server.ask_person"


@dataclass(frozen=True, slots=True)
class Field:
    """Something that the person may change before accepting. ``choices`` empty: any text."""

    name: str
    title: str
    default: str
    choices: tuple[str, ...] = ()


Chosen = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Question:
    """``message`` is what the person reads; ``subject`` what it is about: two questions of the same subject are the
    same question. ``accepted`` gives the arguments as the person wants them."""

    of: AskedOf
    subject: str
    message: str
    fields: tuple[Field, ...] = ()
    accepted: Callable[[Arguments, Chosen], Arguments] = lambda arguments, chosen: arguments


class Person(Protocol):
    """Who can be asked, through the client that made the call."""

    async def ask(self, question: Question) -> Chosen:
        """What the person chose for the fields, having accepted.

        Raises: ToolError ``cannot_ask``, ``person_declined``, ``person_cancelled``, ``person_timeout``, and others
        where the answer is good for nothing; AnswerComesLater.
        """
        ...


class AnswerComesLater(Exception):
    """The person is asked by the client, which then calls again."""


class Nobody:
    """Where no client is: nobody can be asked, so nothing that needs it is done."""

    async def ask(self, question: Question) -> Chosen:
        raise cannot_ask(question, "Nobody can be asked here.")


class Questions:
    """Of one server; remembers which hosts were approved.

    Raises: ToolError ``invalid_setting``.
    """

    def __init__(self, settings: Settings, tasks: "Tasks") -> None:
        self._asked = frozenset(settings.server.ask_person)
        policy = settings.browser.dialog_policy
        if "dialogs" in self._asked and policy != "must_respond":
            raise ToolError(
                "invalid_setting",
                f"{SETTING} has dialogs, and browser.dialog_policy is {policy}, which answers them without asking.",
                "Leave browser.dialog_policy at must_respond, or take dialogs out.",
            )
        self._tasks = tasks
        self._approved: dict[str, set[str]] = {}

    def about(self, spec: ToolSpec, principal: str, given: Arguments) -> Question | None:
        """The question that a call needs answered first; None where it needs none.

        Raises: ToolError ``too_long_to_ask``.
        """
        if not self._asked:
            return None
        match spec.name:
            case "browser_dialog" if "dialogs" in self._asked:
                return self._dialog(principal, given)
            case "browser_navigate" | "browser_tabs":
                return self._opening(principal, given)
            case "browser_evaluate" if "scripts" in self._asked:
                wants = f"to run this script{_where(given)}"
                return self._run(spec, principal, given, wants, given["expression"], "scripts")
            case "browser_cdp":
                return self._command(spec, principal, given)
            case "browser_files" if "uploads" in self._asked and given["action"] == "upload":
                files = "\n".join(json.dumps(path, ensure_ascii=False) for path in given.get("paths", ()))
                return self._run(spec, principal, given, "to give these files to the page", files, "uploads")
            case "browser_type" if "secrets" in self._asked and given["text"].startswith("secret:"):
                what = f"{given['text']} into the field {given['ref']}"
                return self._run(spec, principal, given, "to type a secret of yours", what, "secrets")
        return None

    # --- one for each tool --------------------------------------------------------------------------------------------

    def _dialog(self, principal: str, given: Arguments) -> Question | None:
        task_id = given.get("task_id", DEFAULT_TASK)
        supervisor = self._tasks.peek(principal, task_id)
        if supervisor is None:
            return None
        view = supervisor.snapshot()
        wished = given.get("dialog_id")
        fitting = [dialog for dialog in view.pending_dialogs if wished in (None, dialog.id)]
        if not view.pending_dialogs and wished is None and any(tab.stuck for tab in view.tabs):
            said = "A tab answers nothing: perhaps a dialog is open there, which cannot be read."
            subject = json.dumps(["stuck", task_id, *(tab.tab_id for tab in view.tabs if tab.stuck)])
            return Question("dialogs", subject, f"{said}\nThe assistant wants to {given['action']} it.")
        if len(fitting) != 1 or fitting[0].answering or fitting[0].type == "alert":
            return None  # the tool says what is wrong; an alert takes no decision
        return _about_dialog(fitting[0], task_id, given, self._tasks.secrets.masked)

    def _opening(self, principal: str, given: Arguments) -> Question | None:
        """An address on a host that was not approved before, and a policy that would answer dialogs unasked."""
        policy = given.get("dialog_policy", "must_respond")
        url = given.get("url") if given.get("action", "new") == "new" else None
        answers = "dialogs" in self._asked and policy != "must_respond"
        host = self._new_host(principal, url)
        if not answers and not host:
            return None
        lines = [f"The assistant wants to open {self._shown(url or '')}"] if host else []
        if host:
            lines.append(f"{host} was not opened with your consent before, since the server started.")
        if answers:
            lines.append(f"The assistant wants every dialog of a new task answered by itself: {policy}.")

        def accepted(arguments: Arguments, chosen: Chosen) -> Arguments:
            self._approve(principal, host)
            return arguments

        subject = json.dumps([given.get("task_id", DEFAULT_TASK), url if host else "", policy if answers else ""])
        return Question("hosts" if host else "dialogs", subject, "\n".join(lines), accepted=accepted)

    def _command(self, spec: ToolSpec, principal: str, given: Arguments) -> Question | None:
        from watchkeeper.supervisor.core.methods import NAMES_FILES, OPENS_URLS

        method = given["method"]
        why: AskedOf
        if "scripts" in self._asked:
            why = "scripts"
        elif "dialogs" in self._asked and method.startswith(ANSWERS_DIALOGS):
            why = "dialogs"
        elif "uploads" in self._asked and method in NAMES_FILES:
            why = "uploads"
        elif "hosts" in self._asked and method in OPENS_URLS:
            why = "hosts"
        else:
            return None
        params = json.dumps(given.get("params", {}), ensure_ascii=False, indent=2)
        wants = f"to send the browser this command{_where(given)}"
        return self._run(spec, principal, given, wants, f"{method}\n{params}", why)

    def _run(
        self, spec: ToolSpec, principal: str, given: Arguments, wants: str, what: str, of: AskedOf
    ) -> Question | None:
        task_id = given.get("task_id", DEFAULT_TASK)
        supervisor = self._tasks.peek(principal, task_id)
        if supervisor is None:
            return None  # nothing can be done, and the tool says so
        if len(what) > SHOWN_WHOLE:
            raise ToolError(
                "too_long_to_ask",
                f"A person has to see all of this before it is done ({SETTING}: {of}), and {len(what)} characters are "
                f"more than the {SHOWN_WHOLE} that a person is shown. Nothing was done.",
                "Do it in smaller steps.",
            )
        top = supervisor.snapshot().frame_tree.top
        page = top.url if top else ""
        lines = [
            f"The assistant wants {wants}:",
            render.fenced(self._tasks.secrets.masked(what), "exactly this"),
            f"Page: {self._shown(page)}",
        ]
        # Of the address what is before the path: pages change the rest of it while somebody reads.
        subject = json.dumps([spec.name, task_id, page.split("/")[:3], what])
        return Question(of, subject, "\n".join(lines))

    # --- hosts --------------------------------------------------------------------------------------------------------

    def _new_host(self, principal: str, url: str | None) -> str:
        """The host, where the person is to be asked about it; empty otherwise."""
        if "hosts" not in self._asked or url is None or url.startswith("about:blank"):
            return ""
        host = _host(url)
        return "" if host in self._approved.get(principal, ()) else host

    def _approve(self, principal: str, host: str) -> None:
        approved = self._approved.setdefault(principal, set())
        if host and len(approved) < APPROVED_HOSTS:
            approved.add(host)

    def _shown(self, url: str) -> str:
        return render.address(str(self._tasks.secrets.masked(url))) or "about:blank"


def _where(given: Arguments) -> str:
    """The frame or tab, which the assistant names: in quotes, for its words are not ours either."""
    names = [f" in {render.quoted(given[name], 80)}" for name in ("frame_id", "target_id") if name in given]
    return "".join(names)


def _host(url: str) -> str:
    """As browsers read it: other readers may take the name of a user for the host, and its consent for this one."""
    from ada_url import URL

    try:
        parsed = URL(url.strip())
    except ValueError:
        return "this address"  # which is refused afterwards
    return canonical(parsed.hostname) or f"{parsed.protocol.rstrip(':')} address"


def _about_dialog(dialog: "Dialog", task_id: str, given: Arguments, masked: Callable[[Any], Any]) -> Question:
    proposed = given["action"]
    text = given.get("prompt_text", dialog.default_prompt)
    shown = render.sound(masked(text))
    leaves = "  (accept leaves the page)" if dialog.type == "beforeunload" else ""
    lines = [
        f"A page asks ({dialog.type}) at {render.address(masked(dialog.url))}:",
        render.fenced(masked(dialog.message)[:SHOWN_WHOLE], "words of the page"),
        f"The assistant wants to {proposed} it{leaves}.",
    ]
    fields = [Field("answer", "Answer", proposed, ("accept", "dismiss"))]
    if dialog.type == "prompt":
        if proposed == "accept":
            lines.append(f"With the text {render.quoted(shown)}.")
        fields.append(Field("prompt_text", "Text, where it is accepted", shown))

    def accepted(arguments: Arguments, chosen: Chosen) -> Arguments:
        action = chosen.get("answer", proposed)
        answer = {key: value for key, value in arguments.items() if key != "prompt_text"}
        if dialog.type == "prompt" and action == "accept":
            # What the person left as it was shown stays what the assistant gave, masks and all.
            answer["prompt_text"] = text if chosen.get("prompt_text", shown) == shown else chosen["prompt_text"]
        return {**answer, "action": action, "dialog_id": dialog.id}

    facts = [task_id, dialog.id, dialog.type, dialog.opened_at, dialog.message, dialog.url]
    return Question("dialogs", json.dumps(facts), "\n".join(lines), tuple(fields), accepted)


def cannot_ask(question: Question, why: str) -> ToolError:
    return ToolError(
        "cannot_ask",
        f"A person has to agree to this first ({SETTING}: {question.of}). {why} Nothing was done.",
        f"Use a client that offers elicitation, or take {question.of} out of {SETTING}.",
    )


def no_longer_so() -> ToolError:
    return ToolError(
        "no_longer_so",
        "What the person was asked about is not there any more, or is not as it was. Nothing was done.",
        "Look with browser_snapshot (recent_dialogs says how a dialog ended), then call again if it is still needed.",
    )
