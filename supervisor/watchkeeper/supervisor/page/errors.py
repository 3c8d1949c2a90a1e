"""Errors of acting on a page: they say what is in the way, and what would work."""

from ..core.quoting import quoted
from ..errors import SupervisorError


class PageError(SupervisorError):
    """An element, or a snapshot, that cannot be had or acted on."""

    code = "page_error"


class UnknownRef(PageError):
    """No element has this ref any more, or never had. The message names the nearest one, where there is one."""

    code = "unknown_ref"


class NotInteractable(PageError):
    """The element is there and cannot be acted on; ``reason`` is ``hidden``, ``disabled``, ``covered``, ``moving``,
    ``outside``, ``readonly`` or ``wrong_kind``."""

    code = "not_interactable"

    def __init__(self, message: str, hint: str, *, reason: str) -> None:
        super().__init__(message, hint)
        self.reason = reason


class UnknownCursor(PageError):
    """The cursor or ``since`` names a snapshot that is not kept any more."""

    code = "unknown_cursor"


class PageLoading(PageError):
    """The page waits for the response of a navigation; until it comes, the page answers nothing."""

    code = "page_loading"

    def __init__(self, url: str, seconds: float) -> None:
        address = quoted(url[:200])
        super().__init__(
            f"The page has waited {seconds:.0f} s for a response from {address} and answers nothing until then.",
            "Wait for it with browser_wait, go elsewhere with browser_navigate, or give the page back with "
            "browser_cdp Page.stopLoading.",
        )
