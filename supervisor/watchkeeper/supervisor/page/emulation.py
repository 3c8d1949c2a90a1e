"""What the page believes of its surroundings: size, colours, place, time, network.

Rules: holds for the selected tab until it is set anew; ``None`` leaves a thing as it is. A size of 0 gives the window
back its own.

Source: https://chromedevtools.github.io/devtools-protocol/tot/Emulation/
"""

from collections.abc import Mapping
from typing import Any, Literal

from ..errors import InvalidArgument
from .port import PagePort
from .state import state_of, top_frame

LARGEST = 10_000


async def emulate(
    port: PagePort,
    *,
    width: int | None = None,
    height: int | None = None,
    scale: float = 1.0,
    mobile: bool = False,
    colors: Literal["light", "dark"] | None = None,
    reduced_motion: bool | None = None,
    media: Literal["screen", "print"] | None = None,
    locale: str | None = None,
    timezone: str | None = None,
    location: tuple[float, float] | None = None,
    offline: bool | None = None,
    user_agent: str | None = None,
) -> list[str]:
    """Set what is given; says what was set. Raises InvalidArgument, ProtocolError (an unknown time zone or locale)."""
    session = top_frame(port).session_id

    async def send(method: str, params: Mapping[str, Any] | None = None) -> None:
        await port.call(method, params or {}, session_id=session)

    done: list[str] = []
    if (width is None) != (height is None):
        raise InvalidArgument("A size has a width and a height.", "Give both.")
    if width is not None and height is not None:
        if not (0 <= width <= LARGEST and 0 <= height <= LARGEST):
            raise InvalidArgument(f"{width} x {height} is out of range.", f"0 to {LARGEST:,} CSS pixels.")
        if width == 0 or height == 0:
            await send("Emulation.clearDeviceMetricsOverride")
            done.append("the window has its own size again")
        else:
            size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
            await send("Emulation.setDeviceMetricsOverride", size)
            await send("Emulation.setTouchEmulationEnabled", {"enabled": mobile})
            done.append(f"the viewport is {width} x {height}{' (mobile)' if mobile else ''}")
    if colors is not None or reduced_motion is not None or media is not None:
        told = state_of(port).emulated_media
        if colors is not None:
            told["prefers-color-scheme"] = colors
        if reduced_motion is not None:
            told["prefers-reduced-motion"] = "reduce" if reduced_motion else "no-preference"
        if media is not None:
            told["media"] = media
        features = [{"name": name, "value": value} for name, value in told.items() if name != "media"]
        await send("Emulation.setEmulatedMedia", {"media": told.get("media", ""), "features": features})
        done.append("media: " + ", ".join(told.values()))
    if locale is not None:
        await send("Emulation.setLocaleOverride", {"locale": locale} if locale else {})
        done.append(f"the locale is {locale or 'its own again'}")
    if timezone is not None:
        await send("Emulation.setTimezoneOverride", {"timezoneId": timezone})
        done.append(f"the time zone is {timezone or 'its own again'}")
    if location is not None:
        latitude, longitude = location
        if not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
            raise InvalidArgument("There is no such place.", "Latitude -90 to 90, longitude -180 to 180.")
        place = {"latitude": latitude, "longitude": longitude, "accuracy": 10}
        await send("Emulation.setGeolocationOverride", place)
        await port.call("Browser.grantPermissions", {"permissions": ["geolocation"]})
        done.append(f"the place is {latitude}, {longitude}, and pages may ask for it")
    if offline is not None:
        await send("Network.enable")
        conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await send("Network.emulateNetworkConditions", conditions)
        done.append("the network is off" if offline else "the network is on")
    if user_agent is not None:
        await send("Emulation.setUserAgentOverride", {"userAgent": user_agent})
        done.append("the user agent is set")
    if not done:
        raise InvalidArgument("Nothing to set.", "Give at least one of the arguments.")
    return done
