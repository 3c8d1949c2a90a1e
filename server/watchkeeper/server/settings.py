"""Every setting, declared once: name, default, range and help.

Rules: a setting is one field here, and nowhere else; ``watchkeeper config``, docs/settings.md, the command line and the
bundle's ``user_config`` are made from it. Only what works is declared, and only values that work are offered. Times are
seconds (``_s``). What a field's help says in one or two sentences is all that the documentation says, so it must do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator
from pydantic.fields import FieldInfo

from watchkeeper.supervisor.core.dialogs import DialogPolicy
from watchkeeper.supervisor.options import BridgeChoice

# Values that are offered, in one place; DialogPolicy and BridgeChoice are the supervisor's own.
Backend = Literal["auto", "local", "cdp", "browserbase"]
TailMode = Literal["legacy", "lean"]
Provider = Literal["none", "openai", "anthropic"]
CacheTtl = Literal["5m", "1h"]
Transport = Literal["stdio", "http"]
Results = Literal["auto", "text", "structured", "both"]
Toolset = Literal["core", "actions", "capture", "state"]
AskedOf = Literal["dialogs", "scripts", "uploads", "secrets", "hosts"]
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
Telemetry = Literal["none", "otlp"]

ENV_PREFIX = "WATCHKEEPER_"
CONFIG_VARIABLE = "WATCHKEEPER_CONFIG"


def _listed(value: Any) -> Any:
    """Environment and command line give texts: ``a, b`` is a list of two."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Texts = Annotated[tuple[str, ...], BeforeValidator(_listed)]
AskPerson = Annotated[tuple[AskedOf, ...], BeforeValidator(_listed)]
Toolsets = Annotated[tuple[Toolset, ...], BeforeValidator(_listed)]


def _setting(default: Any, help: str, *, secret: bool = False, **limits: Any) -> Any:
    return Field(default, description=help, json_schema_extra={"secret": True} if secret else None, **limits)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Secret(Section):
    """A value that may be typed by name; ``hosts`` as in ``browser.allowed_hosts``."""

    value: SecretStr = Field(min_length=6)
    hosts: Texts = Field(min_length=1)


class BrowserSettings(Section):
    backend: Backend = _setting(
        "auto",
        "Where browsers come from. auto: cdp when browser.cdp_url is set, else a browser started on this machine.",
    )
    cdp_url: str | None = _setting(
        None, "CDP address of a running browser: http://host:port, ws://… or wss://….", secret=True
    )
    executable: str | None = _setting(None, "Browser to start; the first one found when not set.")
    headless: bool | None = _setting(None, "Without a window; when not set, where there is no display.")
    user_data_dir: str | None = _setting(
        None, "Profile folder that is kept, so that sign-ins last; a temporary one when not set."
    )
    dialog_policy: DialogPolicy = _setting(
        "must_respond",
        "What happens to alert, confirm, prompt and beforeunload: wait for browser_dialog, or answer at once.",
    )
    dialog_timeout_s: float = _setting(
        300, "After this time a dialog that nobody answered is dismissed, and reported so.", ge=1, le=86_400
    )
    bridge: BridgeChoice = _setting(
        "auto",
        "How dialogs are held: auto picks what the engine can; never leaves them to the browser, "
        "whose page then answers nothing while one is open.",
    )
    allowed_hosts: Texts = _setting(
        (), "Hosts that may be opened: example.com, *.example.com, localhost:3000. All when empty."
    )
    blocked_hosts: Texts = _setting((), "Hosts that may not be opened, in the same form; wins over allowed_hosts.")
    allow_file_urls: bool = _setting(False, "Whether file: addresses may be opened.")
    allow_private_network: bool | None = _setting(
        None,
        "Whether loopback and private addresses may be opened; "
        "when not set, yes where the server listens on loopback only.",
    )
    call_timeout_s: float = _setting(30, "Time limit of a call that names none.", ge=1, le=300)
    secrets: dict[str, Secret] = _setting(
        {},
        "Values that are typed by name (secret:NAME) and never shown: `NAME: {value: …, hosts: example.com}`, "
        "of at least 6 characters, each bound to the hosts whose frames may get it.",
        secret=True,
    )
    idle_timeout_s: float = _setting(
        1800, "A task that is not used for so long ends, and its browser with it; 0: never.", ge=0, le=604_800
    )
    max_tasks: int = _setting(64, "How many tasks each client's token may have open at once.", ge=1, le=1000)
    proxy: str | None = _setting(None, "Proxy of browsers that are started here: [scheme://]host:port.", secret=True)
    extra_args: Texts = _setting((), "More command line arguments for browsers that are started here.")
    locale: str | None = _setting(None, "Language of browsers that are started here: en-US, de.")
    ignore_certificate_errors: bool = _setting(
        False, "Accept invalid TLS certificates in browsers that are started here."
    )


class ContextSettings(Section):
    engine: str = _setting("compressor", "The active context engine; `watchkeeper engines` lists them.")
    plugin_dirs: Texts = _setting((), "Folders that are searched for engines, before those that are shipped.")
    engines: dict[str, dict[str, Any]] = _setting(
        {}, "Each engine's own settings, by its name; the engine checks them."
    )
    archive: bool = _setting(False, "Keep the original messages of what is compressed, in a file for your eyes only.")
    archive_keep_days: float | None = _setting(
        None,
        "When the server opens the archive, conversations last added to longer ago are deleted; none when not set.",
        gt=0,
        le=100_000,
    )
    archive_keep_megabytes: float | None = _setting(
        None,
        "When the server opens the archive, the oldest conversations are deleted until the rest fits; none when not "
        "set.",
        gt=0,
        le=10_000_000,
    )


class CompressionSettings(Section):
    enabled: bool = _setting(True, "Whether mode `auto` may compress at all.")
    threshold: float = _setting(0.5, "Share of the context length at which compression is due.", gt=0, le=1)
    target_ratio: float = _setting(
        0.2, "Share of the threshold that stays verbatim at the end (legacy tail).", ge=0.1, le=0.8
    )
    protect_last_n: int = _setting(20, "How many last messages stay at least (legacy tail).", ge=1, le=10_000)
    tail_mode: TailMode = _setting(
        "legacy", "What stays verbatim: much of the end (legacy), or little, with a richer summary (lean)."
    )
    prune_threshold: int | None = _setting(
        None,
        "Tokens from which mode `prune` clears old tool results; at any size when not set.",
        ge=1,
        le=100_000_000,
    )
    context_length: int | None = _setting(
        None, "Tokens of the model's window; by the model's name when not set, else 200,000.", ge=1_000, le=100_000_000
    )


class SummarizerSettings(Section):
    provider: Provider = _setting(
        "none",
        "Model that helps to summarise; none: extracts only, and nothing leaves this machine. openai: any "
        "OpenAI-compatible endpoint.",
    )
    model: str | None = _setting(None, "The provider's name of the model.")
    base_url: str | None = _setting(None, "Address of an OpenAI-compatible endpoint; the provider's own when not set.")
    api_key: SecretStr | None = _setting(
        None, "Key for the provider; else OPENAI_API_KEY or ANTHROPIC_API_KEY.", secret=True
    )
    timeout_s: float = _setting(60, "Time limit of one attempt to summarise.", ge=1, le=600)

    @model_validator(mode="after")
    def _complete(self) -> "SummarizerSettings":
        if self.provider != "none" and self.model is None:
            raise ValueError(f"provider {self.provider} needs a model as well")
        return self


class AuxiliarySettings(Section):
    compression: SummarizerSettings = SummarizerSettings()


class CachingSettings(Section):
    cache_ttl: CacheTtl = _setting("5m", "How long prompt cache marks ask the provider to keep the prefix.")


class ServerSettings(Section):
    transport: Transport = _setting("stdio", "stdio, or http: streamable HTTP at /mcp and SSE at /sse.")
    host: str = _setting("127.0.0.1", "Address to listen on; any other than loopback needs server.auth_tokens.")
    port: int = _setting(8765, "Port to listen on; 0: any free one, told on stderr.", ge=0, le=65_535)
    results: Results = _setting(
        "auto",
        "Form of results. auto: text for clients that put a model behind it, text and structured content for others.",
    )
    auth_tokens: dict[str, SecretStr] = _setting(
        {}, "Bearer tokens by the name of who holds them; each name has tasks of its own.", secret=True
    )
    allowed_hosts: Texts = _setting((), "More host names by which clients reach this server, beside its own.")
    allowed_origins: Texts = _setting((), "Origins of web pages that may call this server, beside loopback.")
    allowed_dirs: Texts = _setting(
        (),
        "Folders in which files may be read and written; when empty the current one, "
        "or one of Watchkeeper's own where that would be / or the home folder.",
    )
    max_message_mb: int = _setting(16, "Largest message that is taken from a client, in MiB.", ge=1, le=1024)
    max_requests_per_s: float = _setting(
        100,
        "How many HTTP requests a second each token (or address) may send; five seconds' worth at once.",
        gt=0,
        le=1e6,
    )
    max_calls: int = _setting(64, "How many calls each client's token may have running at once.", ge=1, le=10_000)
    toolsets: Toolsets = _setting(("core", "actions", "capture"), "Which tools are offered.")
    ask_person: AskPerson = _setting(
        (),
        "What a person is asked about first, by clients with elicitation; others are refused it. dialogs: answers; "
        "scripts: browser_evaluate and browser_cdp; uploads: files; secrets: typing one; hosts: opening pages of hosts "
        "not agreed to before (where links and scripts lead is not asked).",
    )
    ask_person_timeout_s: float = _setting(
        240, "How long a person is waited for; this time is no part of the call's own.", ge=5, le=86_400
    )
    log_level: LogLevel = _setting("warning", "What is logged, on stderr and in server.log_file.")
    log_file: str | None = _setting(
        None,
        "A file that gets what is logged as well, for its owner's eyes only; at 10 MiB a new one begins, and three "
        "older ones stay.",
    )
    log_format: LogFormat = _setting("text", "Form of log lines: text for people, or json, one object a line.")
    telemetry: Telemetry = _setting(
        "none",
        "Where spans go. otlp: to the OpenTelemetry collector that OTEL_EXPORTER_OTLP_ENDPOINT names, over HTTP; needs "
        "watchkeeper[telemetry].",
    )


class Settings(Section):
    browser: BrowserSettings = BrowserSettings()
    context: ContextSettings = ContextSettings()
    compression: CompressionSettings = CompressionSettings()
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    prompt_caching: CachingSettings = CachingSettings()
    server: ServerSettings = ServerSettings()


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as people see it. ``name`` is dotted: ``browser.cdp_url``."""

    name: str
    field: FieldInfo

    @property
    def help(self) -> str:
        return self.field.description or ""

    @property
    def default(self) -> Any:
        return self.field.default

    @property
    def secret(self) -> bool:
        extra = self.field.json_schema_extra
        return isinstance(extra, dict) and bool(extra.get("secret"))

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return ENV_PREFIX + self.name.replace(".", "__").upper()

    @property
    def choices(self) -> tuple[str, ...]:
        """The values that are offered; empty where any of the type goes."""
        kinds = (self.field.annotation, *get_args(self.field.annotation))
        return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())

    @property
    def kind(self) -> type:
        """``bool``, ``int``, ``float``, ``str``, ``tuple`` (a list of texts) or ``dict``."""
        kinds = [k for k in get_args(self.field.annotation) or (self.field.annotation,) if k is not type(None)]
        whole: Any = get_origin(self.field.annotation)
        if whole is tuple or whole is dict:
            return tuple if whole is tuple else dict
        return kinds[0] if isinstance(kinds[0], type) else str

    @property
    def limits(self) -> tuple[float | None, float | None]:
        low = next((m.ge for m in self.field.metadata if isinstance(m, Ge)), None)
        high = next((m.le for m in self.field.metadata if isinstance(m, Le)), None)
        return low, high  # type: ignore[return-value]

    @property
    def expects(self) -> str:
        """What may be given, in words."""
        if self.choices:
            several = "a list of: " if self.kind is tuple else "one of: "
            return several + ", ".join(self.choices)
        low, high = self.limits
        number = {int: "a whole number", float: "a number"}.get(self.kind)
        if number:
            within = f" from {low:,} to {high:,}" if low is not None and high is not None else ""
            if low is None and high is not None:
                within = f" above 0, up to {high:,}"
            return number + within
        return {bool: "true or false", tuple: "a list of texts", dict: "a mapping"}.get(self.kind, "a text")

    def value(self, settings: Settings) -> Any:
        found: Any = settings
        for part in self.name.split("."):
            found = getattr(found, part)
        return found


def all_settings() -> tuple[Setting, ...]:
    """Every setting, in the order of declaration."""
    return tuple(_walk(Settings, ""))


def _walk(section: type[BaseModel], prefix: str) -> Iterator[Setting]:
    for name, field in section.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _walk(kind, f"{prefix}{name}.")
        else:
            yield Setting(f"{prefix}{name}", field)


def shown(value: Any) -> str:
    """A value as people write it."""
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "(none)"
    if isinstance(value, dict):
        return ", ".join(map(str, value)) or "(none)"
    return f"{value:g}" if isinstance(value, float) else str(value)
