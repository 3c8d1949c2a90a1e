"""Summarisers: the port, and what implements it. The extractive floor needs none and is always there."""

from .port import FailureKind, Summarizer, SummarizerFailed, Summary, SummaryRequest

__all__ = ["FailureKind", "Summarizer", "SummarizerFailed", "Summary", "SummaryRequest"]
