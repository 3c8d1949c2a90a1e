"""Secrets that the person declared: typed by name, into frames of their hosts only, and shown to nobody.

Rules: ``secret:NAME`` stands for a value of ``browser.secrets`` in what is typed. It is typed only where the frame of
the element and every frame around it belong to the secret's hosts: a page around could otherwise take the focus, and
with it the keys. Values, also as they look in addresses, JSON and Base64, are masked in every result and in the log.
"""

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ToolError
from ..settings import Settings
from .hosts import canonical, matches

if TYPE_CHECKING:
    from watchkeeper.supervisor import Supervisor

PREFIX = "secret:"
_SHORT = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}
_PORTS = {"http:": 80, "https:": 443}


class DeclaredSecrets:
    """One for a server."""

    def __init__(self, settings: Settings) -> None:
        self._declared = settings.browser.secrets
        by_length = sorted(self._declared.items(), key=lambda item: -len(item[1].value.get_secret_value()))
        self._masks = [f"[{PREFIX}{name}]" for name, _ in by_length]
        # The longest first: one value may hold another.
        forms = [f"({_forms(secret.value.get_secret_value())})" for _, secret in by_length]
        self._pattern = re.compile("|".join(forms)) if forms else None
        self._signs = [sign for _, secret in by_length for sign in _signs(secret.value.get_secret_value())]

    async def typed(self, text: str, supervisor: "Supervisor", ref: str) -> str:
        """What is to be typed for ``text`` into the element of ``ref``.

        Raises: ToolError ``unknown_secret``, ``secret_refused``; UnknownRef.
        """
        if not text.startswith(PREFIX):
            return text
        name = text[len(PREFIX) :]
        secret = self._declared.get(name)
        if secret is None:
            known = ", ".join(self._declared) or "none"
            raise ToolError(
                "unknown_secret", f"There is no secret {name[:60]!r}.", f"Declared in browser.secrets: {known}."
            )
        from watchkeeper.supervisor.page.targets import call

        target, _ = await call(supervisor, ref, "describeNumber")
        frames = {frame.frame_id: frame for frame in supervisor.snapshot().frames}
        frame_id: str | None = target.frame.frame_id
        while frame_id is not None:
            frame = frames.get(frame_id)
            address = "" if frame is None else frame.origin if frame.origin.startswith("http") else frame.url
            if frame is None or not _belongs(address, secret.hosts):
                raise ToolError(
                    "secret_refused",
                    f"The secret {name!r} may not be typed there: {address[:200] or 'that frame'} is not one of its "
                    "hosts. Nothing was typed.",
                    f"It is bound to {', '.join(secret.hosts)} (browser.secrets), frames around the field included.",
                )
            frame_id = frame.parent_frame_id
        return secret.value.get_secret_value()

    def masked(self, value: Any) -> Any:
        """A text, or a JSON value, without the secrets."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            if not any(sign in value for sign in self._signs):
                return value
            return self._pattern.sub(lambda found: self._masks[(found.lastindex or 1) - 1], value)
        if isinstance(value, Mapping):
            return {self.masked(key): self.masked(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.masked(inner) for inner in value]
        return value


def _forms(value: str) -> str:
    """A pattern for a value as it may stand in results: each character as it is, or escaped as addresses and JSON (also
    JSON within JSON) do it. Base64 is found where the value stands alone in it."""
    return "|".join(["".join(map(_character, value)), re.escape(_base64(value)) + "={0,2}"])


def _signs(value: str) -> tuple[str, str]:
    """What a text holds that has the value in it, in one form or another: quick to look for."""
    runs = re.findall(r"[A-Za-z0-9]+", value)
    return max(runs, key=len, default=""), _base64(value)


def _base64(value: str) -> str:
    return base64.b64encode(value.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _character(character: str) -> str:
    if character.isascii() and character.isalnum():
        return character
    raw = character.encode("utf-8", "surrogatepass")
    forms = [re.escape(character), "(?i:" + "".join(f"%{byte:02x}" for byte in raw) + ")"]
    if character in '"\\/':
        forms.append(rf"\\+{re.escape(character)}")
    if character in _SHORT:
        forms.append(rf"\\+{_SHORT[character]}")
    if character == " ":
        forms.append(re.escape("+"))
    units = character.encode("utf-16-be", "surrogatepass")
    forms.append("(?i:" + "".join(rf"\\+u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)) + ")")
    return f"(?:{'|'.join(forms)})"


def _belongs(address: str, hosts: tuple[str, ...]) -> bool:
    from ada_url import URL

    try:
        parsed = URL(address)
    except ValueError:
        return False
    if parsed.protocol not in _PORTS:
        return False
    return matches(hosts, canonical(parsed.hostname), int(parsed.port) if parsed.port else _PORTS[parsed.protocol])
