"""Lines that tell of errors and of decisions, recognised in several languages.

Rules this module keeps:

- A cue only raises what is worth keeping anyway; a line is never kept or dropped for a cue alone.
- Cues are few and common: words every trade uses for failing and for choosing.
"""

from __future__ import annotations

import re
from typing import Final

_ERROR: Final = re.compile(
    r"\b(?:error|exception|traceback|fatal|panic|failed|failure|denied|refused|timed out|not found|undefined)\b"
    r"|\w(?:Error|Exception)\b|\bE\d{3,5}\b|错误|失败|异常|超时|エラー|失敗|오류|실패|ошибк|сбой|не удалось|исключени"
    r"|\b(?:fehler|fehlgeschlagen|erreur|échec|falló|falha|erro)\b",
    re.IGNORECASE,
)
_DECISION: Final = re.compile(
    r"\b(?:decided|decision|chose|choose|instead of|rather than|because|root cause|turns out|the fix|must not|do not|"
    r"never|always|agreed|prefer|confirmed)\b"
    r"|决定|改为|因为|原因|不要|必须|確認|решил|решено|потому что|причина|вместо|нельзя|обязательно"
    r"|\b(?:entschieden|weil|stattdessen|décidé|parce que|decidió|porque|em vez de)\b",
    re.IGNORECASE,
)


def tells_error(text: str) -> bool:
    """Whether the text speaks of something that failed."""
    return _ERROR.search(text) is not None


def tells_decision(text: str) -> bool:
    """Whether the text speaks of a choice, its reason, or a rule."""
    return _DECISION.search(text) is not None
