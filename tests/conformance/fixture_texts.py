"""The resources, prompts and completions that the conformance scenarios ask for.

Rules: each is what its scenario describes and no more. Addresses, names and texts are the scenarios' own.
"""

import json
import re

import mcp_types as types
from fixture_questions import answer_of, ask_form, asked
from fixture_tools import Context, embedded, red_pixel
from mcp.shared.exceptions import MCPError

RESOURCES = {
    "test://static-text": "text/plain",
    "test://static-binary": "image/png",
    "test://watched-resource": "text/plain",
}
TEMPLATE = re.compile(r"test://template/([^/]+)/data")


async def list_resources(context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(
        resources=[
            types.Resource(uri="test://static-text", name="text", description="A text.", mime_type="text/plain"),
            types.Resource(uri="test://static-binary", name="picture", description="A pixel.", mime_type="image/png"),
            types.Resource(
                uri="test://watched-resource", name="watched", description="A text.", mime_type="text/plain"
            ),
        ]
    )


async def list_templates(
    context: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    made = types.ResourceTemplate(
        uri_template="test://template/{id}/data", name="data", description="By id.", mime_type="application/json"
    )
    return types.ListResourceTemplatesResult(resource_templates=[made])


async def read_resource(context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    texts = {
        "test://static-text": "This is the content of the static text resource.",
        "test://watched-resource": "Watched.",
    }
    if uri in texts:
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="text/plain", text=texts[uri])]
        )
    if uri == "test://static-binary":
        return types.ReadResourceResult(
            contents=[types.BlobResourceContents(uri=uri, mime_type="image/png", blob=red_pixel())]
        )
    if found := TEMPLATE.fullmatch(uri):
        data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
        return types.ReadResourceResult(
            contents=[types.TextResourceContents(uri=uri, mime_type="application/json", text=json.dumps(data))]
        )
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


async def subscribe(context: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


async def unsubscribe(context: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    return types.EmptyResult()


def _argument(name: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description="For testing.", required=True)


PROMPTS = [
    types.Prompt(name="test_simple_prompt", description="Without arguments."),
    types.Prompt(
        name="test_prompt_with_arguments", description="With two.", arguments=[_argument("arg1"), _argument("arg2")]
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource", description="A resource.", arguments=[_argument("resourceUri")]
    ),
    types.Prompt(name="test_prompt_with_image", description="A picture."),
    types.Prompt(name="test_input_required_result_prompt", description="Asks the client first."),
]


async def get_prompt(
    context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    given = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _messages("This is a simple prompt for testing.")
        case "test_prompt_with_arguments":
            return _messages(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'")
        case "test_prompt_with_embedded_resource":
            resource = embedded(given.get("resourceUri", ""), "text/plain", "Embedded resource content for testing.")
            return _messages(resource, "Please process the embedded resource above.")
        case "test_prompt_with_image":
            image = types.ImageContent(type="image", data=red_pixel(), mime_type="image/png")
            return _messages(image, "Please analyze the image above.")
        case "test_input_required_result_prompt":
            answer = answer_of(params, "user_context", types.ElicitResult)
            if answer is None:
                return asked({"user_context": ask_form("What context should the prompt use?", "context")})
            return _messages(f"Context: {answer.content}")
    raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")


async def complete(context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [value for value in ("testing", "test", "paris") if value.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


def _messages(*contents: types.ContentBlock | str) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[
            types.PromptMessage(
                role="user",
                content=types.TextContent(type="text", text=content) if isinstance(content, str) else content,
            )
            for content in contents
        ]
    )
