"""Finding browsers: by path, on every platform, without starting anything."""

import sys
from pathlib import Path

import pytest

from watchkeeper.supervisor.backends import find
from watchkeeper.supervisor.backends.find import Found, candidates, find_browsers

HOME = Path("/home/me")


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_on_windows_every_root_is_searched_for_every_browser_in_order_of_preference() -> None:
    environment = {
        "PROGRAMFILES": r"C:\Program Files",
        "PROGRAMFILES(X86)": r"C:\Program Files (x86)",
        "LOCALAPPDATA": r"C:\Users\me\AppData\Local",
    }
    found = [(f.kind, str(f.path)) for f in candidates("win32", environment, HOME)]
    assert found[:3] == [
        ("chrome", r"C:\Program Files\Google\Chrome\Application\chrome.exe"),
        ("chrome", r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe"),
        ("chrome", r"C:\Users\me\AppData\Local\Google\Chrome\Application\chrome.exe"),
    ]
    assert ("edge", r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe") in found
    assert ("brave", r"C:\Program Files\BraveSoftware\Brave-Browser\Application\brave.exe") in found
    assert [kind for kind, _ in found] == sorted(
        (kind for kind, _ in found), key=["chrome", "chromium", "edge", "brave"].index
    )


def test_on_windows_a_root_that_is_not_set_is_passed_over() -> None:
    assert len(list(candidates("win32", {"PROGRAMFILES": r"C:\Program Files"}, HOME))) == 4


def test_on_macos_the_programs_inside_the_bundles_are_named_for_all_users_and_for_one() -> None:
    found = [(f.kind, str(f.path)) for f in candidates("darwin", {}, HOME)]
    assert found[:2] == [
        ("chrome", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        ("chrome", "/home/me/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    ]
    assert ("edge", "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge") in found
    assert ("brave", "/Applications/Brave Browser.app/Contents/MacOS/Brave Browser") in found


@pytest.mark.skipif(sys.platform != "linux", reason="links and PATH as on Linux")
class TestOnLinux:
    @pytest.fixture(autouse=True)
    def nothing_else_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(find, "LINUX_FOLDERS", str(tmp_path / "standard"))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def test_nothing_installed_finds_nothing(self) -> None:
        assert find_browsers() == []
        assert find.find_browser() is None

    def test_chrome_goes_before_chromium_edge_and_brave(self, tmp_path: Path) -> None:
        for name in ("brave-browser", "microsoft-edge", "chromium", "google-chrome"):
            program(tmp_path / "bin" / name)
        assert [found.kind for found in find_browsers()] == ["chrome", "chromium", "edge", "brave"]
        assert find.find_browser() == tmp_path / "bin" / "google-chrome"

    def test_a_browser_with_several_names_is_found_once(self, tmp_path: Path) -> None:
        real = program(tmp_path / "opt" / "chrome")
        (tmp_path / "bin").mkdir()
        for name in ("google-chrome", "google-chrome-stable"):
            (tmp_path / "bin" / name).symlink_to(real)
        assert find_browsers() == [Found("chrome", tmp_path / "bin" / "google-chrome-stable")]

    def test_a_short_path_variable_hides_no_browser_of_the_system(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program(tmp_path / "standard" / "chromium")
        monkeypatch.delenv("PATH")
        assert find.find_browser() == tmp_path / "standard" / "chromium"

    def test_what_cannot_be_run_is_no_browser(self, tmp_path: Path) -> None:
        program(tmp_path / "bin" / "chromium").chmod(0o644)
        (tmp_path / "bin" / "google-chrome").mkdir()
        assert find_browsers() == []

    def test_what_test_tools_downloaded_comes_last_and_the_newest_of_it_first(self, tmp_path: Path) -> None:
        cache = tmp_path / "home" / ".cache" / "ms-playwright"
        for revision in ("chromium-999", "chromium-1200", "chromium-1187"):
            program(cache / revision / "chrome-linux" / "chrome")
        program(cache / "chromium_headless_shell-1300" / "chrome-linux" / "headless_shell")
        program(tmp_path / "bin" / "brave")
        found = [str(f.path.relative_to(tmp_path)) for f in find_browsers()]
        assert found == [
            "bin/brave",
            "home/.cache/ms-playwright/chromium-1200/chrome-linux/chrome",
            "home/.cache/ms-playwright/chromium-1187/chrome-linux/chrome",
            "home/.cache/ms-playwright/chromium-999/chrome-linux/chrome",
        ]
