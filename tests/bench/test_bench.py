"""The bench still works: its quick form with Watchkeeper alone, and what it computes and draws."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parent.parent.parent
GUARD_S = 110.0
sys.path.insert(0, str(ROOT))

from bench import __main__ as command  # noqa: E402
from bench.conversations import of_messages  # noqa: E402
from bench.figures import Figure, exponent  # noqa: E402
from bench.plot import plot  # noqa: E402
from bench.report import Results, publish  # noqa: E402
from bench.servers import OURS, PEERS, found  # noqa: E402


@pytest.mark.chrome
def test_the_quick_form_measures_and_writes_tables_and_pictures(tmp_path: Path) -> None:
    arguments = ["--quick", "--peers", "none", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "measurements.json").read_text("utf-8"))
    assert told["no figure because"] == {}
    assert told["calls"]["answer → page goes on, ms"]["watchkeeper"]["n"] == 2
    assert {verdict["passed"] for scene in told["behaviours"].values() for verdict in scene.values()} == {True}
    assert {row["method"] for row in told["compression"]} >= {"watchkeeper", "last", "central"}
    assert {line["cost"] for line in told["growth"]} >= {"navigate", "search", "compress to 8,000 tokens"}
    assert len(list(tmp_path.glob("measured-*.svg"))) > 5
    page = (tmp_path / "measurements.md").read_text("utf-8")
    assert "## Calls" in page and "## Compression" in page and str(ROOT) not in page


def test_the_exponent_tells_growth_from_fixed_cost() -> None:
    sizes = [10, 100, 1_000, 10_000, 100_000]
    assert exponent([(n, 5 + 0.01 * n) for n in sizes]) == pytest.approx(1, abs=0.25)
    assert exponent([(n, n * n) for n in sizes]) == pytest.approx(2)
    assert exponent([(n, 7) for n in sizes]) == pytest.approx(0)
    assert exponent([(1, 1), (2, 2)]) is None


def test_a_figure_gives_median_and_spread() -> None:
    assert Figure((3, 1, 2, 10)).as_dict() == {"median": 2.5, "q1": 1.75, "q3": 4.75, "min": 1, "max": 10, "n": 4}
    assert str(Figure((0.1234, 0.5, 1234.5))) == "0.500 (0.123–1,234)"


def test_a_picture_holds_every_point_between_its_ticks() -> None:
    picture = ElementTree.fromstring(plot("a & b", "size", "ms", [("one", [(3, 0.2), (700, 90)]), ("two", [(5, 0)])]))
    points = picture.findall("{http://www.w3.org/2000/svg}circle")
    assert len(points) == 2  # nothing is at zero on a logarithmic axis
    assert all(70 <= float(p.attrib["cx"]) <= 604 and 46 <= float(p.attrib["cy"]) <= 348 for p in points)


def test_conversations_are_the_same_every_time() -> None:
    assert of_messages(9) == of_messages(9)
    assert len(of_messages(9)) in range(9, 13)


def test_peers_are_found_in_the_folder_that_is_named_and_nowhere_else(tmp_path: Path) -> None:
    program = tmp_path / "peers" / "one" / "node_modules" / ".bin" / "chrome-devtools-mcp"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    servers, missing = found(tmp_path / "peers", "/browser", tmp_path)
    assert [server.name for server in servers] == ["watchkeeper", "chrome-devtools-mcp"]
    assert servers[1].command[0] == str(program)
    assert set(missing) == {kind.name for kind in PEERS} - {"chrome-devtools-mcp"}
    assert OURS.name not in missing


@pytest.mark.parametrize(
    "wrong", (["--only", "nothing"], ["--peers-dir", "/nowhere"], ["--only", "calls", "--publish"])
)
def test_wrong_options_end_the_command_before_anything_is_measured(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.parsed(wrong)
    assert ended.value.code == 2


def test_publishing_lists_the_page_in_the_index_once(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "README.md").write_text(
        "| [tools.md](tools.md) | tools |\n| [comparison.md](comparison.md) | others |\n"
    )
    results = Results(about={"cores": "2", "load before": "0.1"})
    for _ in range(2):
        publish(results, tmp_path)
    lines = (tmp_path / "README.md").read_text().splitlines()
    assert [line.split("]")[0][3:] for line in lines] == ["tools.md", "measurements.md", "comparison.md"]
    assert "Others used the machine" not in (tmp_path / "measurements.md").read_text()
