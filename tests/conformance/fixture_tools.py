"""The tools that the conformance scenarios call, those that ask the client something excepted.

Rules: each does what its scenario describes and no more. Names, texts and schemas are the scenarios' own.
"""

import asyncio
import base64
import io
import json
import struct
import wave
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

Context = ServerRequestContext[Any, Any]
Result = types.CallToolResult | types.InputRequiredResult
Run = Callable[[Context, types.CallToolRequestParams], Awaitable[Result]]
Json = dict[str, Any]
PAUSE_S = 0.05


@dataclass(frozen=True)
class FixtureTool:
    listed: types.Tool
    run: Run


TOOLS: dict[str, FixtureTool] = {}


def tool(name: str, description: str, schema: Json | None = None) -> Callable[[Run], Run]:
    """Registers what follows under ``name``."""

    def register(run: Run) -> Run:
        given = {"type": "object", "properties": {}} if schema is None else schema
        TOOLS[name] = FixtureTool(types.Tool(name=name, description=description, input_schema=given), run)
        return run

    return register


def said(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def red_pixel() -> str:
    """A PNG of one red pixel, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\x00\xff\x00\x00")
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def silence() -> str:
    """A WAV of a few silent samples, in base64."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 8)
    return base64.b64encode(file.getvalue()).decode()


def embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    resource = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=resource)


@tool("test_simple_text", "Gives a text.")
async def simple_text(context: Context, params: types.CallToolRequestParams) -> Result:
    return said("This is a simple text response for testing.")


@tool("test_image_content", "Gives a picture.")
async def image(context: Context, params: types.CallToolRequestParams) -> Result:
    return types.CallToolResult(content=[types.ImageContent(type="image", data=red_pixel(), mime_type="image/png")])


@tool("test_audio_content", "Gives a sound.")
async def audio(context: Context, params: types.CallToolRequestParams) -> Result:
    return types.CallToolResult(content=[types.AudioContent(type="audio", data=silence(), mime_type="audio/wav")])


@tool("test_embedded_resource", "Gives a resource.")
async def embedded_resource(context: Context, params: types.CallToolRequestParams) -> Result:
    text = "This is an embedded resource content."
    return types.CallToolResult(content=[embedded("test://embedded-resource", "text/plain", text)])


@tool("test_multiple_content_types", "Gives a text, a picture and a resource.")
async def mixed(context: Context, params: types.CallToolRequestParams) -> Result:
    return types.CallToolResult(
        content=[
            types.TextContent(type="text", text="Multiple content types test:"),
            types.ImageContent(type="image", data=red_pixel(), mime_type="image/png"),
            embedded("test://mixed-content-resource", "application/json", json.dumps({"test": "data", "value": 123})),
        ]
    )


@tool("test_error_handling", "Always fails.")
async def failing(context: Context, params: types.CallToolRequestParams) -> Result:
    return said("This tool intentionally returns an error for testing", is_error=True)


@tool("test_tool_with_progress", "Tells its progress three times.")
async def with_progress(context: Context, params: types.CallToolRequestParams) -> Result:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100)
        await asyncio.sleep(PAUSE_S)
    return said("Told three times.")


@tool("test_tool_with_logging", "Logs three times.")
async def with_logging(context: Context, params: types.CallToolRequestParams) -> Result:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await context.session.send_log_message("info", text, related_request_id=context.request_id)
        await asyncio.sleep(PAUSE_S)
    return said("Logged three times.")


@tool("test_logging_tool", "Logs, where the request asked for it.")
async def logging_tool(context: Context, params: types.CallToolRequestParams) -> Result:
    await context.session.send_log_message("info", "A log message.", related_request_id=context.request_id)
    return said("Logged, if you wished.")


@tool("test_reconnection", "Closes its stream before it answers; the answer comes where the client resumes.")
async def reconnection(context: Context, params: types.CallToolRequestParams) -> Result:
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
    await asyncio.sleep(PAUSE_S)
    return said("Reconnection test completed successfully.")


@tool(
    "test_x_mcp_header",
    "Has a parameter that clients repeat in a header.",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "required": ["region"]},
)
async def x_mcp_header(context: Context, params: types.CallToolRequestParams) -> Result:
    return said(f"Region: {(params.arguments or {})['region']}")


@tool(
    "json_schema_2020_12_tool",
    "Tool with JSON Schema 2020-12 features",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)
async def json_schema(context: Context, params: types.CallToolRequestParams) -> Result:
    return said(json.dumps(params.arguments))
