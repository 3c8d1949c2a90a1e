"""A reply as the result of ``tools/call``: the form that reaches this client's model, as JSON.

Rules: an error is whole in its text in every form. Here and nowhere else, for a call is answered before the SDK is
there as well.

Source: https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result
"""

import base64

from ..dispatch import Reply
from ..tools.spec import Json
from .clients import Form


def call_result(reply: Reply, form: Form) -> Json:
    text = reply.text if form != "structured" or reply.is_error else "See the structured content."
    images = (
        {"type": "image", "data": base64.b64encode(image.data).decode(), "mimeType": image.mime}
        for image in reply.images
    )
    result: Json = {"content": [{"type": "text", "text": text}, *images], "isError": reply.is_error}
    return result if form == "text" else {**result, "structuredContent": reply.structured}
