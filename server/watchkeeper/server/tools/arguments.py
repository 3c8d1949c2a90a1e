"""Arguments of a call against a tool's schema, with errors in our own words.

Rules: nothing runs with arguments that do not fit. Each error names the argument, what it expects, and the nearest name
where one is unknown; values are shown short. One leniency: where an object or a list is expected, a text that is the
JSON of one is taken, because some clients write nested arguments so.

Source: https://json-schema.org/draft/2020-12 (the dialect of MCP)
"""

import difflib
import json
import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..errors import ToolError
from .spec import Arguments, Json, ToolSpec

TASK_ID_CAP = 64
"""Checked here and not said in the schemas: nobody wants a longer one, and every tool would pay for it."""
_TYPES = {
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
}


def checked(spec: ToolSpec, arguments: Mapping[str, Any] | None) -> Arguments:
    """The arguments as the handler gets them. Raises ToolError ``invalid_arguments``."""
    given = {name: _decoded(spec.properties.get(name, {}), value) for name, value in (arguments or {}).items()}
    problems = list(_problems(spec, given))
    if problems:
        raise ToolError(
            "invalid_arguments",
            f"{spec.name}: {'; '.join(problems)}. Nothing was done.",
            f"Arguments: {_signature(spec)}.",
        )
    return given


def _problems(spec: ToolSpec, given: Json) -> Iterator[str]:
    for name in given:
        if name not in spec.properties:
            near = difflib.get_close_matches(name, spec.properties, 1)
            yield f"unknown argument {name[:60]!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
    for name in spec.required:
        if name not in given:
            yield f"{name!r} is missing"
    for name, schema in spec.properties.items():
        if name in given:
            yield from _of_value(name, schema, given[name])
    task_id = given.get("task_id")
    if isinstance(task_id, str) and not 0 < len(task_id) <= TASK_ID_CAP:
        yield f"'task_id' must be 1 to {TASK_ID_CAP} characters"


def _of_value(name: str, schema: Json, value: Any) -> Iterator[str]:
    if not _is_json(schema, value):
        yield f"{name!r} must be JSON, which knows neither NaN nor Infinity"
        return
    if _plainly_fits(schema, value):
        return
    # Only the first problem of an argument: the others mostly follow from it.
    error = next(iter(_validator(json.dumps(schema)).iter_errors(value)), None)
    if error is None:
        return
    at = name + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    yield f"{at!r} must be {_expected(error)}, not {_short(error.instance)}"


_PLAIN = {"type", "enum", "minLength", "maxLength", "minimum", "maximum", "description"}


def _plainly_fits(schema: Json, value: Any) -> bool:
    """Whether a text, number or truth value fits the simplest rules; what this cannot vouch for, the library judges.

    The library takes 60 ms to import, which the first page would wait for.
    """
    kind = schema.get("type")
    if schema.keys() - _PLAIN or value not in schema.get("enum", (value,)):
        return False
    if isinstance(value, str):
        low, high = schema.get("minLength", 0), schema.get("maxLength", len(value))
        return kind in ("string", None) and low <= len(value) <= high and (kind is not None or "enum" in schema)
    if isinstance(value, bool):
        return kind == "boolean" and "enum" not in schema
    if isinstance(value, int) or (isinstance(value, float) and kind == "number"):
        return kind in ("integer", "number") and schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return False


def _expected(error: Any) -> str:
    rule, limit, schema = error.validator, error.validator_value, error.schema
    if rule == "type":
        return " or ".join(_TYPES[kind] for kind in ([limit] if isinstance(limit, str) else limit))
    if rule == "enum":
        return "one of " + ", ".join(map(repr, limit))
    if rule in ("minimum", "maximum"):
        low, high = schema.get("minimum"), schema.get("maximum")
        return f"from {low:g} to {high:g}" if low is not None and high is not None else f"{rule} {limit:g}"
    if rule == "maxLength":
        return f"at most {limit} characters"
    if rule == "minLength":
        return "not empty" if limit == 1 else f"at least {limit} characters"
    return f"as its schema says ({rule}: {_short(limit)})"


def _is_json(schema: Json, value: Any) -> bool:
    """Python reads NaN and Infinity from JSON; no limit holds for them, and no browser takes them."""
    if isinstance(value, float):
        return math.isfinite(value)
    if schema.get("type") != "object":
        return True
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _signature(spec: ToolSpec) -> str:
    return ", ".join(name if name in spec.required else f"{name}?" for name in spec.properties)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else f"{text[:60]}… ({len(text)} characters)"


def _decoded(schema: Json, value: Any) -> Any:
    if isinstance(value, str) and schema.get("type") in ("object", "array") and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))
