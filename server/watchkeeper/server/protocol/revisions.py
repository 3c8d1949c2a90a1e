"""What a client's revision of the protocol does not know is left out of what it gets: it could not use it, and some
models pay for it.

Rules: pure, and the standard library only, for ``boot`` answers by the same rules. The SDK shapes results for two eras,
and leaves the differences between the older revisions to us. Structured results are the business of ``clients``.

Source: https://modelcontextprotocol.io/specification/2025-11-25/changelog, and those of the revisions before
"""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]
BROUGHT: dict[str, dict[str, tuple[Path, ...]]] = {
    "2025-03-26": {
        "initialize": (("capabilities", "completions"),),
        "tools/list": (("tools", "annotations"),),
    },
    "2025-06-18": {
        "initialize": (("serverInfo", "title"),),
        "tools/list": (("tools", "title"),),
        "resources/list": (("resources", "title"),),
        "resources/templates/list": (("resourceTemplates", "title"),),
        "prompts/list": (("prompts", "title"), ("prompts", "arguments", "title")),
    },
    "2025-11-25": {
        "initialize": tuple(("serverInfo", name) for name in ("description", "icons", "websiteUrl")),
        "tools/list": (("tools", "icons"),),
        "resources/list": (("resources", "icons"),),
        "resources/templates/list": (("resourceTemplates", "icons"),),
        "prompts/list": (("prompts", "icons"),),
    },
}
"""By revision and method: where a result has what that revision brought. Lists on the way are gone through."""
STRUCTURED = "2025-06-18"
"""The first revision that has structured results and output schemas."""
PROGRESS_MESSAGES = "2025-03-26"
"""The first revision in which progress may have a message."""


def fitting(method: str, result: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """``result`` as a client of this revision knows it; what is given is not changed. Names of revisions are dates."""
    fit = dict(result)
    for brought_by, of_methods in BROUGHT.items():
        if revision < brought_by:
            for path in of_methods.get(method, ()):
                fit = _without(fit, path)
    return fit


def _without(value: Any, path: Path) -> Any:
    if isinstance(value, list):
        return [_without(item, path) for item in value]
    name, *rest = path
    if not isinstance(value, dict) or name not in value:
        return value
    if rest:
        return {**value, name: _without(value[name], tuple(rest))}
    return {key: item for key, item in value.items() if key != name}
