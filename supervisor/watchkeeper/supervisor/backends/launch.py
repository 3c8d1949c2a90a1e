"""The command line with which a browser of ours is started.

Rules: pure: what is known of machine and person comes in, the arguments come out. Flags that decide how we reach the
browser, and which profile it has, are ours alone; whatever else the person adds comes last and wins.

Source: https://github.com/GoogleChrome/chrome-launcher/blob/main/docs/chrome-flags-for-tools.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from ..egress.policy import ProxyRoute
from ..errors import InvalidArgument

Reach = Literal["pipe", "port"]

QUIET = (
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-search-engine-choice-screen",
    "--disable-sync",
    "--hide-crash-restore-bubble",
    "--metrics-recording-only",
    "--disable-breakpad",
    # Never --disable-crashpad-for-testing: with it Chromium 156 loses the renderer of every http page (ERR_ABORTED).
)
"""No greetings, no traffic of the browser's own, no crash reports."""

PREDICTABLE = (
    # QUIC passes by proxies, ours that checks addresses included.
    "--disable-quic",
    # Frames of other sites get a process of their own on desktops anyway, unless a policy or a trial says otherwise;
    # with this the frame tree has the same form everywhere.
    "--site-per-process",
    # Native questions that no protocol command can answer: "page unresponsive", "send the form again?".
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    # Tabs of several tasks are in the background all the time; they run at full speed.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
)

DISABLED_FEATURES = (
    "Translate",
    "MediaRouter",
    "OptimizationHints",
    "CalculateNativeWinOcclusion",
    "AutofillServerCommunication",
)
"""Bubbles and prompts (translation, local network), downloads of hints, sleep of covered windows on Windows, and what
forms look like, told to the browser's vendor."""

OURS: Mapping[str, str] = {
    "--user-data-dir": "browser.user_data_dir",
    "--headless": "browser.headless",
    "--proxy-server": "browser.proxy",
    "--proxy-auto-detect": "browser.proxy",
    "--proxy-bypass-list": "browser.proxy",
    "--proxy-pac-url": "browser.proxy",
    "--no-proxy-server": "browser.proxy",
    "--remote-debugging-pipe": "browser.cdp_url",
    "--remote-debugging-port": "browser.cdp_url",
    "--remote-debugging-address": "browser.cdp_url",
}
"""Flags that are refused as extra arguments, and the setting that says the same."""

SMALL_SHM = 512 * 1024 * 1024
"""Bytes free in ``/dev/shm`` below which Chromium's tabs crash on ordinary pages; containers have 64 MiB by default."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the command line depends on. ``shm_free``: bytes, None where there is no ``/dev/shm``."""

    platform: str
    is_root: bool
    has_display: bool
    wayland_only: bool = False
    shm_free: int | None = None


def arguments(
    machine: Machine,
    *,
    profile: str,
    temporary: bool,
    headless: bool,
    reach: Reach,
    extra: Sequence[str] = (),
    proxy: str | None = None,
    route: ProxyRoute | None = None,
) -> list[str]:
    """Everything after the executable. ``temporary``: the profile ends with the browser. ``route``: a proxy of ours,
    which goes on to ``proxy``.

    Raises: InvalidArgument when ``extra`` or ``proxy`` cannot be used.
    """
    check_extra(extra)
    args = [f"--user-data-dir={profile}", *QUIET, *PREDICTABLE]
    args.append("--remote-debugging-pipe" if reach == "pipe" else "--remote-debugging-port=0")
    if headless:
        args += ["--headless=new", "--disable-gpu", "--mute-audio"]
    elif machine.wayland_only:
        args.append("--ozone-platform-hint=auto")
    if temporary:
        # No window of its own (each task opens its own), and no question from the desktop's keyring for a profile that
        # keeps nothing.
        args += ["--no-startup-window", "--password-store=basic", "--use-mock-keychain"]
    if sandbox_is_off(machine, extra):
        args.append("--no-sandbox")
    if machine.shm_free is not None and machine.shm_free < SMALL_SHM:
        args.append("--disable-dev-shm-usage")
    if proxy is not None:
        check_proxy(proxy)
    if route is not None:
        args += [f"--proxy-server={route.server}", f"--proxy-bypass-list={route.bypass}"]
        args += ["--webrtc-ip-handling-policy=disable_non_proxied_udp"] if route.relayed_only else []
    elif proxy is not None:
        args.append(f"--proxy-server={proxy}")
    # The last --disable-features would replace the others, so they are joined.
    features = [*DISABLED_FEATURES]
    for arg in extra:
        if arg.startswith("--disable-features="):
            features += arg.partition("=")[2].split(",")
    args.append(f"--disable-features={','.join(features)}")
    args += [arg for arg in extra if not arg.startswith("--disable-features=") and arg not in args]
    if not temporary:
        args.append("about:blank")
    return args


def sandbox_is_off(machine: Machine, extra: Sequence[str]) -> bool:
    """Chromium refuses to run as root with its sandbox; as anybody else the sandbox stays unless the person says so."""
    return "--no-sandbox" in extra or (machine.platform.startswith("linux") and machine.is_root)


def check_extra(extra: Sequence[str]) -> None:
    """Raises: InvalidArgument."""
    for arg in extra:
        if not arg.startswith("--") or "\0" in arg:
            raise InvalidArgument(
                f"browser.extra_args has {arg.partition('=')[0]!r}, which is not a flag.",
                "Each begins with -- and stands alone, as in --lang=de.",
            )
        setting = OURS.get(arg.partition("=")[0])
        if setting is not None:
            raise InvalidArgument(
                f"browser.extra_args may not contain {arg.partition('=')[0]}.", f"Use the setting {setting} instead."
            )


def check_proxy(proxy: str) -> str:
    """Raises: InvalidArgument, whose message shows nothing of the value."""
    try:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        valid = bool(parts.hostname) and parts.port != 0 and parts.path in ("", "/")
    except ValueError:
        valid = False
    if not valid or any(c.isspace() for c in proxy):
        raise InvalidArgument("browser.proxy is not an address.", "Give it as host:port or scheme://host:port.")
    if parts.username or parts.password:
        raise InvalidArgument(
            "browser.proxy contains a user name or password, which browsers do not take there.",
            "Give the address alone, and the credentials in browser.http_credentials.",
        )
    return proxy
