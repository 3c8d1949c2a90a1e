"""Sample: an agent cleans measurements of a river station and finds a sensor that was swapped. Data work, few names."""

from __future__ import annotations

import random

from .builder import Sample


def research() -> Sample:
    """About 15,000 tokens."""
    rng = random.Random(77)
    s = Sample()
    s.system(
        "You are a research assistant with a Python kernel. Show numbers with their units. Never overwrite raw data."
    )
    s.user(
        "The dataset is in data/raw/elbe_2025.parquet, 14 stations, 10-minute values of water level (cm), temperature "
        "(degC) and turbidity (NTU). Prepare it for the flood model: hourly medians, gaps up to 3 h interpolated, the rest "
        "left empty. Report everything odd. Turbidity over 4,000 NTU is impossible at these stations. The reviewer insists "
        "on the Hampel filter with window 25 and threshold 3.5, nothing else."
    )
    s.need("data/raw/elbe_2025.parquet", "Hampel", "window 25", "3.5", "4,000 NTU")
    for station in range(14):
        code = f"df.query('station == {501 + station}').describe(percentiles=[.01, .05, .5, .95, .99])"
        s.calls(
            f"Station {501 + station}." if station else "Looking at each station.",
            ("python", {"code": code}, _describe(rng, station)),
        )
    s.agent(
        "Station 509 is odd: its temperature follows the level of station 506 with a correlation of 0.97 from 2025-03-18 "
        "13:40 on, and its level is that of 506 shifted by 212 cm. Most likely the cables of logger DL-7 were swapped."
    )
    s.need("509", "DL-7", "2025-03-18 13:40", "212 cm", "0.97")
    for n in range(12):
        code = f"flag_hampel(df, station={501 + n}, window=25, threshold=3.5).groupby('month').agg(['sum', 'mean'])"
        s.calls(None, ("python", {"code": code}, _table(rng, n)))
    s.user(
        "Confirmed by Mrs. Havlova from the water office: on 18 March a technician (ticket ELB-0318-2) swapped channels 2 "
        "and 5 of DL-7. Swap them back from that time on and mark the hour itself as missing. Write to "
        "data/clean/elbe_2025_hourly_v3.parquet, because v2 was already published."
    )
    s.need("ELB-0318-2", "channels 2 and 5", "elbe_2025_hourly_v3.parquet", "Havlova")
    for n in range(10):
        code = f"check_gaps(hourly, station={501 + n}, longest='3h')"
        s.calls(None, ("python", {"code": code}, _gaps(rng, n)))
    s.agent("All stations are clean but 512: a gap of 61 h from 2025-07-02 04:00 stays empty, as agreed (over 3 h).")
    s.need("61 h", "2025-07-02 04:00", "512")
    s.user("Now write the methods section, with the settings of the filter and everything odd that we found.")
    return s


def _describe(rng: random.Random, station: int) -> str:
    lines = ["            level_cm   temperature_degC   turbidity_NTU"]
    for row in ("count", "mean", "std", "min", "1%", "5%", "50%", "95%", "99%", "max"):
        lines.append(f"{row:<8} {rng.uniform(80, 640):12.3f} {rng.uniform(-1, 27):16.3f} {rng.uniform(1, 3800):16.3f}")
    if station == 8:
        lines.append("max turbidity 5,212.0 NTU at 2025-03-18 13:50 (above the possible)")
    lines += [
        f"missing {day}: {rng.randint(0, 30)} of 144 values"
        for day in (f"2025-{m:02d}-{rng.randint(1, 28):02d}" for m in range(1, 13))
    ]
    return "\n".join(lines)


def _table(rng: random.Random, n: int) -> str:
    lines = [f"station {501 + n}", "month   level.sum level.mean  temp.sum temp.mean  turb.sum turb.mean"]
    for month in range(1, 13):
        cells = "  ".join(f"{rng.randint(0, 90):9d} {rng.random() / 50:9.5f}" for _ in range(3))
        lines.append(f"2025-{month:02d} {cells}")
    return "\n".join(lines)


def _gaps(rng: random.Random, n: int) -> str:
    lines = [f"station {501 + n}: gaps over 3 h"]
    for _ in range(rng.randint(6, 14)):
        month, day, hour = rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23)
        lines.append(f"  2025-{month:02d}-{day:02d} {hour:02d}:00  {rng.randint(4, 30)} h  channel {rng.randint(1, 8)}")
    return "\n".join(lines)


__all__ = ["research"]
