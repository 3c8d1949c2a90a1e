"""Every error code that may reach a caller, with its meaning, for the page that lists them.

Rules: where a class of errors has a code of its own, its docstring is the meaning, and nothing is said here. Codes that
are given where an error is raised are declared here; a test reads the sources and names those that are missing.
"""

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from watchkeeper.context.errors import ContextError
from watchkeeper.supervisor.errors import SupervisorError
from watchkeeper.supervisor.page import errors as _page_errors  # noqa: F401 - its classes join the tree

Group = Literal["browser", "page", "tools", "files", "server", "install", "context"]

BASES = frozenset({"supervisor_error", "page_error", "dialog_error", "context_error"})
"""Never raised as such: what stands for a whole branch of the tree."""

GIVEN: Mapping[Group, Mapping[str, str]] = {
    "tools": {
        "invalid_arguments": "The arguments do not fit the tool's schema. Nothing was done.",
        "timeout": "The call, or the command below it, did not end within its time and was stopped.",
        "no_task": "The task has no browser yet, or it ended because nobody used it.",
        "too_many_tasks": "As many tasks are open as `browser.max_tasks` allows.",
        "too_many_calls": "As many calls of this client run as `server.max_calls` allows. Nothing was done.",
        "policy_is_set": "The dialog policy of a task is set when it starts, and this task has another one.",
        "unknown_secret": "No secret of this name is declared in `browser.secrets`.",
        "secret_refused": "The field's frame, or one around it, is of no host that the secret is bound to.",
        "no_download": "No download was started.",
        "cannot_ask": "`server.ask_person` wants a person's consent, and the client offers no way to ask for it.",
        "person_declined": "A person was asked and refused. Nothing was done.",
        "person_cancelled": "A person was asked and closed the question without an answer. Nothing was done.",
        "person_timeout": "A person was asked and did not answer within `server.ask_person_timeout_s`.",
        "bad_answer": "What the client sent as a person's answer does not fit the question. Nothing was done.",
        "no_longer_so": "What a person was asked about changed before the answer came. Nothing was done.",
        "answer_used": "A person's answer is good for one call, and was used for one. Nothing was done.",
        "too_long_to_ask": "More would run than a person can be shown, so nobody was asked. Nothing was done.",
        "too_many_questions": "Too many questions wait for a person's answer. Nothing was done.",
        "shutting_down": "The server is ending and takes no new calls.",
        "internal_error": "A fault of Watchkeeper. The server's log (stderr) has it under the number in the message.",
    },
    "files": {
        "path_refused": "The path lies outside of the allowed folders, after resolving links.",
        "cannot_read": "The file cannot be read.",
        "cannot_write": "The file cannot be written.",
        "too_large": "The file is larger than such a file can sensibly be.",
        "too_many_files": "The folder is full of files of the name that was to be written.",
        "not_a_state": "The file is not a sign-in state that `browser_storage` saved.",
    },
    "server": {
        "missing_package": "A package that a setting needs is not installed; the message says which extra brings it.",
        "invalid_setting": "Two settings do not go together; the message names them.",
        "cannot_listen": "The address or port cannot be listened on; mostly another program has it.",
        "token_needed": "Another address than loopback needs `server.auth_tokens`.",
        "bad_token_name": "The holder of a token cannot be called so.",
        "weak_token": "A token is too short to be safe.",
        "shared_token": "Two names have the same token.",
        "nothing_to_do": "`watchkeeper archive prune` was given no limit, so nothing was deleted.",
        "unknown_session": "The archive has no conversation of this name. Nothing was deleted.",
    },
    "context": {
        "engine_tool_failed": "A tool of the context engine says that it failed; the message is the engine's own.",
        "not_an_engine": "What was loaded is no context engine.",
        "engine_name_differs": "The engine calls itself something else than the name it was chosen by.",
        "bad_tool": "The engine offers a tool that is not declared as tools have to be.",
        "tool_name_taken": "The engine offers a tool whose name another tool has.",
        "archive_closed": "The archive has been closed.",
        "archive_unusable": "The archive's file or database cannot be opened, or its driver is not installed.",
        "bad_cursor": "The cursor continues nothing here: it was changed, or is of another search.",
        "bad_pattern": "The pattern is not a regular expression.",
        "bad_session": "This cannot name a conversation.",
        "no_messages": "There is no message in the transcript.",
        "node_overlaps": "Somebody else has summarised these messages meanwhile.",
        "not_json": "A message cannot be written as JSON.",
        "transcript_not_found": "There is no such transcript.",
        "transcript_unreadable": "The transcript cannot be read.",
        "transcript_not_written": "The transcript cannot be written there.",
        "unknown_form": "There is no such form of transcripts.",
        "unknown_handle": "Nothing in the archive has this handle, or it was deleted.",
    },
    "install": {
        "bad_input": "What the client gave its hook is not what it should be.",
        "no_archive": "The archive is off, so there is nothing for the hook to write to.",
        "no_hooks": "This client has no hooks.",
        "ambiguous": "The client is installed more than once, and it is not clear which is meant.",
        "no_such_scope": "The client has no entries of this scope.",
        "busy": "The client, or another program, holds its file at the moment.",
        "changed_meanwhile": "The client's file was changed while the change was looked at. Nothing was written.",
        "not_a_config_file": "The client's file is not what it should be. Nothing was written.",
        "not_ours": "An entry of this name starts something else. It was left alone.",
        "not_understood": "The client's file cannot be read, or not changed without touching something else.",
        "not_stdio": "Clients start the server over stdio; another transport cannot be installed.",
        "secret_in_project": "A secret would have been written into a file that others share.",
        "secret_in_hook": "A secret would have been written into a command line that others see.",
        "temporary": "The program runs from a place that will not last, so no client can be pointed at it.",
    },
}


def codes() -> Mapping[str, tuple[Group, str]]:
    """Every code in alphabetical order, with its group and what it means."""
    found: dict[str, tuple[Group, str]] = {}
    for kind in (*_below(SupervisorError), *_below(ContextError)):
        code = kind.__dict__.get("code")
        if isinstance(code, str) and code not in BASES:
            found.setdefault(code, (_group(kind), _meaning(kind)))
    for group, meanings in GIVEN.items():
        found |= {code: (group, meaning) for code, meaning in meanings.items()}
    return dict(sorted(found.items()))


def table() -> str:
    """As Markdown, for docs/troubleshooting.md."""
    rows = ["| code | of | what it means |", "|---|---|---|"]
    rows += [f"| `{code}` | {group} | {meaning} |" for code, (group, meaning) in codes().items()]
    return "\n".join(rows)


def _below(kind: type[Exception]) -> Iterator[type[Exception]]:
    for inner in kind.__subclasses__():
        yield inner
        yield from _below(inner)


def _group(kind: type[Exception]) -> Group:
    if issubclass(kind, ContextError):
        return "context"
    return "page" if kind.__module__.endswith(".page.errors") else "browser"


def _meaning(kind: type[Exception]) -> str:
    """The first paragraph of the docstring, on one line, with code in single backticks."""
    first = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")[0]
    return re.sub(r"\s+", " ", first).replace("``", "`").replace("|", "\\|")
