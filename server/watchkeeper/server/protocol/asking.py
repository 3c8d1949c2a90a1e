"""Asking a person through the client, in the way of each era: a request of the server's own until 2025-11-25, and since
2026-07-28 a result that says what is missing, after which the client calls again.

Rules: the person's time is no part of the call's; it is bounded by ``server.ask_person_timeout_s``. The state that a
client brings back is sealed with a key of this process and bound to the tool, its arguments and the principal (the
SDK's ``RequestStateBoundary``); here it is bound to the question and to its time, and is good once. How many questions
a principal may have open is capped. A client that cannot ask gets an error, and nothing is done.

Sources: https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation,
https://modelcontextprotocol.io/specification/2026-07-28/basic/utilities/mrtr
"""

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ..errors import ToolError
from ..questions import AnswerComesLater, Chosen, Person, Question, cannot_ask, no_longer_so

if TYPE_CHECKING:
    from mcp.server.request_state import RequestStateBoundary

Context = ServerRequestContext[Any, Any]
KEY = "person"
FIRST_WITH_ELICITATION = "2025-06-18"
FIRST_WITH_DEFAULTS = "2025-11-25"
MAX_OPEN = 100
"""Questions that one principal may have unanswered."""
TELL_EVERY_S = 10.0
"""How often a client that asked for progress hears that the person is still being waited for."""
TEXT_CAP = 10_240
log = logging.getLogger(__name__)


class Asked(AnswerComesLater):
    """``result`` is what the call is answered with."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__()
        self.result = result


class OpenQuestions:
    """Questions whose answer comes with another call: each is answered once, and in time."""

    def __init__(self, wait_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.wait_s = wait_s
        self._clock = clock
        self._open: dict[str, dict[str, float]] = {}

    def put(self, principal: str, question: Question) -> str:
        """The state that the client is to bring back. Raises ToolError ``too_many_questions``."""
        now = self._clock()
        mine = {once: until for once, until in self._open.get(principal, {}).items() if until > now}
        if len(mine) >= MAX_OPEN:
            raise ToolError(
                "too_many_questions",
                f"{MAX_OPEN} questions wait for a person's answer, as many as may. Nothing was done.",
                "Wait until some are answered, or their time is over.",
            )
        once = secrets.token_urlsafe(12)
        self._open[principal] = {**mine, once: now + self.wait_s}
        return json.dumps({"once": once, "until": now + self.wait_s, "about": _digest(question)})

    def take(self, principal: str, state: str, question: Question) -> None:
        """The answer to this question has come. Raises ToolError where it is good for nothing."""
        known: Mapping[str, Any] = json.loads(state)
        if known["until"] <= self._clock():
            raise timed_out(self.wait_s)
        if self._open.get(principal, {}).pop(known["once"], None) is None:
            raise ToolError(
                "answer_used",
                "This answer of the person was used already; it is good for one call. Nothing was done.",
                "Call again without it: the person is asked anew.",
            )
        if not secrets.compare_digest(known["about"], _digest(question)):
            raise no_longer_so()


def person(
    context: Context,
    params: types.CallToolRequestParams,
    principal: str,
    open_questions: OpenQuestions,
) -> Person:
    """Who can be asked about this call."""
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return Newest(context, params, principal, open_questions)
    return Older(context, open_questions.wait_s)


class Newest:
    """A connection of 2026-07-28 or newer: the answer comes with another call."""

    def __init__(
        self, context: Context, params: types.CallToolRequestParams, principal: str, questions: OpenQuestions
    ) -> None:
        self._context = context
        self._principal = principal
        self._questions = questions
        self._state = params.request_state
        self._response = (params.input_responses or {}).get(KEY)

    async def ask(self, question: Question) -> Chosen:
        _check_capability(self._context, question)
        if self._state is None or self._response is None:
            state = self._questions.put(self._principal, question)
            request = types.ElicitRequest(params=_form(question, self._context.protocol_version))
            raise Asked(types.InputRequiredResult(input_requests={KEY: request}, request_state=state))
        self._questions.take(self._principal, self._state, question)
        if not isinstance(self._response, types.ElicitResult):
            raise _bad_answer("It is no answer to this kind of question.")
        return _chosen(question, self._response)


class Older:
    """A connection of an older revision: the client is asked while the call waits."""

    def __init__(self, context: Context, wait_s: float) -> None:
        self._context = context
        self._wait_s = wait_s

    async def ask(self, question: Question) -> Chosen:
        _check_capability(self._context, question)
        answer: types.ElicitResult | Exception | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._tell)
            with anyio.move_on_after(self._wait_s):
                try:
                    form = _form(question, self._context.protocol_version)
                    answer = await self._context.session.elicit_form(
                        form.message, form.requested_schema, self._context.request_id
                    )
                except (MCPError, ValidationError) as error:
                    answer = error
            group.cancel_scope.cancel()
        match answer:
            case None:
                raise timed_out(self._wait_s)
            case MCPError():
                raise cannot_ask(question, f"The client refused to ask: {answer.error.message[:200]}.")
            case Exception():
                raise _bad_answer("It is no answer to this kind of question.")
        return _chosen(question, answer)

    async def _tell(self) -> None:
        waited = 0.0
        while True:
            await self._context.session.report_progress(waited, None, "Waiting for a person's answer")
            await anyio.sleep(TELL_EVERY_S)
            waited += TELL_EVERY_S


def boundary(wait_s: float, audience: str) -> "RequestStateBoundary":
    """The middleware that seals what clients bring back. Lives longer than the answers, whose end is told by us."""
    from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

    return RequestStateBoundary(RequestStateSecurity.ephemeral(ttl=2 * wait_s + 60), default_audience=audience)


def timed_out(wait_s: float) -> ToolError:
    return ToolError(
        "person_timeout",
        f"The person did not answer within {wait_s:g} s. Nothing was done.",
        "Ask whether they are there, then call again; server.ask_person_timeout_s gives them more time.",
    )


def _check_capability(context: Context, question: Question) -> None:
    offered = context.session.client_capabilities
    elicitation = offered.elicitation if offered else None
    if elicitation is None or context.protocol_version < FIRST_WITH_ELICITATION:
        raise cannot_ask(question, "This client offers no elicitation.")
    if elicitation.form is None and elicitation.url is not None:  # neither named: forms, as it was at first
        raise cannot_ask(question, "This client can show addresses only, no questions.")


def _form(question: Question, version: str) -> types.ElicitRequestFormParams:
    properties: dict[str, Any] = {}
    for field in question.fields:
        properties[field.name] = {"type": "string", "title": field.title}
        if field.choices:
            properties[field.name]["enum"] = list(field.choices)
        if version >= FIRST_WITH_DEFAULTS:
            properties[field.name]["default"] = field.default
    return types.ElicitRequestFormParams(
        message=question.message, requested_schema={"type": "object", "properties": properties}
    )


def _chosen(question: Question, answer: types.ElicitResult) -> Chosen:
    """What an accepted form says. A field that was left out is as it was proposed."""
    log.info("a person was asked (%s): %s", question.of, answer.action)
    if answer.action == "decline":
        raise ToolError(
            "person_declined",
            "The person refused this. Nothing was done.",
            "Do not try the same in another way; ask what they want instead.",
        )
    if answer.action == "cancel":
        raise ToolError(
            "person_cancelled",
            "The person closed the question without an answer. Nothing was done.",
            "Say what you need it for before you call again.",
        )
    content, chosen = answer.content or {}, {}
    for field in question.fields:
        value = content.get(field.name, field.default)
        if not isinstance(value, str) or len(value) > TEXT_CAP or (field.choices and value not in field.choices):
            raise _bad_answer(f"{field.name} is not what was asked for.")
        chosen[field.name] = value
    return chosen


def _bad_answer(why: str) -> ToolError:
    return ToolError(
        "bad_answer",
        f"The client's answer cannot be used. {why} Nothing was done.",
        "Call again: the person is asked anew.",
    )


def _digest(question: Question) -> str:
    return hashlib.sha256(question.subject.encode("utf-8", "surrogatepass")).hexdigest()
