"""The tools that ask the client something: by a request of their own in older revisions, by an answer that wants more
input since 2026-07-28.

Rules: each does what its scenario describes and no more. Names, texts and schemas are the scenarios' own. A capability
that the client has not declared is not used.
"""

from typing import Any, TypeVar

import mcp_types as types
from fixture_tools import Context, Json, Result, said, tool
from mcp.shared.exceptions import MCPError

Answer = TypeVar("Answer", types.ElicitResult, types.CreateMessageResult, types.ListRootsResult)
Params = types.CallToolRequestParams | types.GetPromptRequestParams


def form(**properties: Json) -> types.ElicitRequestedSchema:
    return {"type": "object", "properties": properties, "required": list(properties)}


def ask_form(message: str, *names: str, kind: str = "string") -> types.ElicitRequest:
    schema = form(**{name: {"type": kind} for name in names})
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def ask_model(text: str, max_tokens: int = 100) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def asked(requests: dict[str, Any], state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def answer_of(params: Params, key: str, kind: type[Answer]) -> Answer | None:
    """The client's answer, where it is there and of the right kind."""
    found = (params.input_responses or {}).get(key)
    return found if isinstance(found, kind) else None


def needed(context: Context, name: str) -> None:
    """Raises MCPError where the client has not declared this capability."""
    declared = context.session.client_capabilities
    if declared is None or getattr(declared, name) is None:
        data: Json = {"requiredCapabilities": {name: {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, f"The client does not offer {name}.", data)


# --- by requests of their own, up to 2025-11-25 -----------------------------------------------------------------------


@tool(
    "test_sampling",
    "Asks the client's model.",
    {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
)
async def sampling(context: Context, params: types.CallToolRequestParams) -> Result:
    needed(context, "sampling")
    text = str((params.arguments or {}).get("prompt", ""))
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    answer = await context.session.create_message([message], max_tokens=100, related_request_id=context.request_id)
    return said(f"LLM response: {_text(answer)}")


async def _elicit(context: Context, message: str, schema: types.ElicitRequestedSchema, said_first: str) -> Result:
    needed(context, "elicitation")
    answer = await context.session.elicit(message, schema, related_request_id=context.request_id)
    return said(f"{said_first}: action={answer.action}, content={answer.content}")


@tool(
    "test_elicitation",
    "Asks the person.",
    {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
)
async def elicitation(context: Context, params: types.CallToolRequestParams) -> Result:
    schema = form(
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    return await _elicit(context, str((params.arguments or {}).get("message", "")), schema, "User response")


@tool("test_elicitation_sep1034_defaults", "Asks the person, with a default for each type.")
async def elicitation_defaults(context: Context, params: types.CallToolRequestParams) -> Result:
    schema = form(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await _elicit(context, "Please accept the defaults.", schema, "Elicitation completed")


@tool("test_elicitation_sep1330_enums", "Asks the person, with each form of a choice.")
async def elicitation_enums(context: Context, params: types.CallToolRequestParams) -> Result:
    plain = ["option1", "option2", "option3"]

    def titled(title: str) -> list[Json]:
        order = ("First", "Second", "Third")
        return [{"const": f"value{at}", "title": f"{nth} {title}"} for at, nth in enumerate(order, 1)]

    schema = form(
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled("Option")},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled("Choice")}},
    )
    return await _elicit(context, "Please choose.", schema, "Elicitation completed")


# --- by answers that want more input, since 2026-07-28 ----------------------------------------------------------------


@tool("test_missing_capability", "Cannot work without sampling.")
async def missing_capability(context: Context, params: types.CallToolRequestParams) -> Result:
    needed(context, "sampling")
    return said("The client offers sampling.")


@tool("test_streaming_elicitation", "Tells its progress, then asks the person.")
async def streaming_elicitation(context: Context, params: types.CallToolRequestParams) -> Result:
    needed(context, "elicitation")
    await context.session.report_progress(1, 2)
    return asked({"user_name": ask_form("What is your name?", "name")})


@tool("test_input_required_result_elicitation", "Asks for a name.")
async def needs_name(context: Context, params: types.CallToolRequestParams) -> Result:
    answer = answer_of(params, "user_name", types.ElicitResult)
    if answer is None:
        return asked({"user_name": ask_form("What is your name?", "name")})
    return said(f"Hello, {(answer.content or {}).get('name')}!")


@tool("test_input_required_result_sampling", "Asks the client's model.")
async def needs_model(context: Context, params: types.CallToolRequestParams) -> Result:
    answer = answer_of(params, "capital_question", types.CreateMessageResult)
    if answer is None:
        return asked({"capital_question": ask_model("What is the capital of France?")})
    return said(_text(answer))


@tool("test_input_required_result_list_roots", "Asks for the client's roots.")
async def needs_roots(context: Context, params: types.CallToolRequestParams) -> Result:
    answer = answer_of(params, "client_roots", types.ListRootsResult)
    if answer is None:
        return asked({"client_roots": types.ListRootsRequest()})
    return said(", ".join(str(root.uri) for root in answer.roots))


@tool("test_input_required_result_request_state", "Asks, and gives its state to the client.")
async def keeps_state(context: Context, params: types.CallToolRequestParams) -> Result:
    if params.request_state is None:
        return asked({"confirm": ask_form("Please confirm", "ok", kind="boolean")}, "confirming")
    return said("state-ok" if params.request_state == "confirming" else "That is another state.")


@tool("test_input_required_result_tampered_state", "Asks, and refuses a state that was changed.")
async def keeps_sealed_state(context: Context, params: types.CallToolRequestParams) -> Result:
    return await keeps_state(context, params)


@tool("test_input_required_result_multiple_inputs", "Asks three things at once.")
async def needs_much(context: Context, params: types.CallToolRequestParams) -> Result:
    name = answer_of(params, "user_name", types.ElicitResult)
    greeting = answer_of(params, "greeting", types.CreateMessageResult)
    roots = answer_of(params, "client_roots", types.ListRootsResult)
    if name is None or greeting is None or roots is None:
        requests = {
            "user_name": ask_form("What is your name?", "name"),
            "greeting": ask_model("Generate a greeting", 50),
            "client_roots": types.ListRootsRequest(),
        }
        return asked(requests, "three questions")
    return said(f"{_text(greeting)} {name.content} {[str(root.uri) for root in roots.roots]}")


@tool("test_input_required_result_multi_round", "Asks twice.")
async def asks_twice(context: Context, params: types.CallToolRequestParams) -> Result:
    if params.request_state is None:
        return asked({"step1": ask_form("Step 1: What is your name?", "name")}, "first round")
    if params.request_state == "first round":
        return asked({"step2": ask_form("Step 2: What is your favorite color?", "color")}, "second round")
    return said("Both questions are answered.")


@tool("test_input_required_result_capabilities", "Asks only in ways that the client offers.")
async def asks_as_offered(context: Context, params: types.CallToolRequestParams) -> Result:
    declared = context.session.client_capabilities
    requests: dict[str, Any] = {}
    if declared is not None and declared.elicitation is not None:
        requests["user_name"] = ask_form("What is your name?", "name")
    if declared is not None and declared.sampling is not None:
        requests["greeting"] = ask_model("Generate a greeting")
    return asked(requests) if requests else said("The client can be asked nothing.")


def _text(answer: types.CreateMessageResult) -> str:
    return answer.content.text if isinstance(answer.content, types.TextContent) else answer.content.type
