"""Transcripts of other programs, in and out: OpenAI JSON and JSONL, Anthropic JSON, Claude Code sessions."""

from .files import dump_transcript, encode_transcript, load_transcript, read_transcript, resolve_transcript
from .model import FORMS, Form, Problem, Transcript, TranscriptError, without_origin

__all__ = [
    "FORMS",
    "Form",
    "Problem",
    "Transcript",
    "TranscriptError",
    "dump_transcript",
    "encode_transcript",
    "load_transcript",
    "read_transcript",
    "resolve_transcript",
    "without_origin",
]
