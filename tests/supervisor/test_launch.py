"""The command line, what a failed start is explained as, and profile folders."""

import os
import socket
from pathlib import Path

import pytest

from watchkeeper.supervisor.backends import LocalEndpoint, failures, local, profile
from watchkeeper.supervisor.backends.launch import Machine, Reach, arguments
from watchkeeper.supervisor.backends.process import read_port_file
from watchkeeper.supervisor.backends.profile import KeptProfile, TemporaryProfile
from watchkeeper.supervisor.errors import InvalidArgument, LaunchFailed

DESKTOP = Machine("linux", is_root=False, has_display=True, shm_free=8 << 30)
CONTAINER = Machine("linux", is_root=True, has_display=False, shm_free=64 << 20)
WINDOWS = Machine("win32", is_root=False, has_display=True)
MAC = Machine("darwin", is_root=False, has_display=True)


def line(
    machine: Machine = DESKTOP,
    *extra: str,
    headless: bool = True,
    temporary: bool = True,
    reach: Reach = "pipe",
    proxy: str | None = None,
) -> list[str]:
    return arguments(
        machine, profile="/p", temporary=temporary, headless=headless, reach=reach, extra=extra, proxy=proxy
    )


def test_every_browser_is_quiet_has_its_profile_and_a_process_per_site() -> None:
    for machine in (DESKTOP, CONTAINER, WINDOWS, MAC):
        assert {
            "--user-data-dir=/p",
            "--site-per-process",
            "--no-first-run",
            "--no-default-browser-check",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-quic",
        } <= set(line(machine))


def test_the_sandbox_is_off_for_root_on_linux_or_when_asked_for_and_never_otherwise() -> None:
    assert "--no-sandbox" in line(CONTAINER)
    assert line(DESKTOP, "--no-sandbox").count("--no-sandbox") == 1
    for machine in (DESKTOP, WINDOWS, MAC, Machine("darwin", is_root=True, has_display=True)):
        assert "--no-sandbox" not in line(machine)


def test_a_small_shared_memory_is_gone_round_and_a_large_one_is_used() -> None:
    assert "--disable-dev-shm-usage" in line(CONTAINER)
    assert "--disable-dev-shm-usage" not in line(DESKTOP)
    assert "--disable-dev-shm-usage" not in line(MAC)


def test_headless_goes_without_a_graphics_card_and_a_window_with_one() -> None:
    assert {"--headless=new", "--disable-gpu"} <= set(line(headless=True))
    assert not {"--headless=new", "--disable-gpu"} & set(line(headless=False))
    wayland = Machine("linux", is_root=False, has_display=True, wayland_only=True)
    assert "--ozone-platform-hint=auto" in line(wayland, headless=False)


def test_no_port_is_open_where_a_pipe_serves() -> None:
    assert "--remote-debugging-pipe" in line(reach="pipe")
    assert not any(arg.startswith("--remote-debugging-port") for arg in line(reach="pipe"))
    assert "--remote-debugging-port=0" in line(WINDOWS, reach="port")


def test_a_kept_profile_opens_a_window_and_uses_the_keyring_of_the_person() -> None:
    kept, temporary = line(temporary=False), line(temporary=True)
    assert kept[-1] == "about:blank"
    assert not {"--no-startup-window", "--password-store=basic", "--use-mock-keychain"} & set(kept)
    assert {"--no-startup-window", "--password-store=basic", "--use-mock-keychain"} <= set(temporary)


def test_extra_arguments_come_last_and_disabled_features_are_joined() -> None:
    args = line(DESKTOP, "--lang=de", "--disable-features=One,Two")
    assert args[-1] == "--lang=de"
    features = [arg for arg in args if arg.startswith("--disable-features=")]
    assert len(features) == 1
    assert features[0].endswith(",One,Two")
    assert "Translate" in features[0]


@pytest.mark.parametrize(
    ("extra", "setting"),
    [
        ("--user-data-dir=/x", "browser.user_data_dir"),
        ("--headless", "browser.headless"),
        ("--headless=old", "browser.headless"),
        ("--remote-debugging-port=9222", "browser.cdp_url"),
        ("--remote-debugging-pipe", "browser.cdp_url"),
        ("--proxy-server=x:1", "browser.proxy"),
        ("lang=de", "--lang=de"),
        ("https://example.com", "begins with --"),
    ],
)
def test_an_extra_argument_that_is_ours_or_no_flag_is_refused_with_what_to_use(extra: str, setting: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        line(DESKTOP, extra)
    assert setting in refused.value.hint


@pytest.mark.parametrize("proxy", ["proxy:3128", "http://proxy:3128", "socks5://127.0.0.1:1080", "https://p:1/"])
def test_a_proxy_is_handed_over(proxy: str) -> None:
    assert f"--proxy-server={proxy}" in line(proxy=proxy)


@pytest.mark.parametrize("proxy", ["http://me:hunter2@proxy:1", "hunter2 x", "http://:1/hunter2", "p:99999/hunter2"])
def test_a_proxy_that_cannot_be_used_is_refused_without_showing_it(proxy: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        line(proxy=proxy)
    assert "hunter2" not in f"{refused.value!r}"


@pytest.mark.parametrize(
    ("printed", "code", "kind", "says"),
    [
        (
            "[1:1:1201/02:ERROR:content/browser/zygote_host/zygote_host_impl_linux.cc:103] Running as root without"
            " --no-sandbox is not supported. See https://crbug.com/638180.",
            1,
            "sandbox",
            "sandbox cannot start",
        ),
        (
            "[1:1:FATAL:zygote_host_impl_linux.cc(127)] No usable sandbox! Update your kernel or see ...",
            -5,
            "sandbox",
            "sandbox cannot start",
        ),
        (
            "[1:1:ERROR:ui/ozone/platform/x11/ozone_platform_x11.cc:257] Missing X server or $DISPLAY\n"
            "[1:1:ERROR:ui/aura/env.cc:253] The platform failed to initialize.  Exiting.",
            1,
            "no_display",
            "no display",
        ),
        (
            "[1:1:ERROR:chrome/browser/process_singleton_posix.cc:349] Failed to create /p/SingletonLock: File exists",
            21,
            "profile_in_use",
            "in use",
        ),
        ("Opening in existing browser session.", 0, "profile_in_use", "in use"),
        (
            "/opt/chrome: error while loading shared libraries: libnss3.so: cannot open shared object file: No such...",
            127,
            "missing_library",
            "libnss3.so",
        ),
        (
            "/opt/chrome: /lib/libc.so.6: version `GLIBC_2.34' not found (required by /opt/chrome)",
            1,
            "missing_library",
            "GLIBC_2.34",
        ),
        (
            "Command '/usr/bin/chromium-browser' requires the chromium snap to be installed.",
            10,
            "snap",
            "snap",
        ),
        (
            "DevTools remote debugging requires a non-default data directory. Specify this using --user-data-dir.",
            None,
            "default_profile",
            "default profile",
        ),
        ("sh: 1: exec: /opt/chrome: Exec format error", 126, "not_executable", "cannot be run"),
        ("", None, "timeout", "did not answer within 7 s"),
        ("line one\nline two", 3, "unknown", "exit code 3). It printed: line one | line two"),
        ("", -11, "unknown", "killed by SIGSEGV"),
    ],
)
def test_a_failed_start_is_explained_by_what_the_browser_printed(
    printed: str, code: int | None, kind: str, says: str
) -> None:
    error = failures.explain(printed, code, 7)
    assert error.kind == kind
    assert says in error.message
    assert error.hint


def test_what_a_failing_browser_printed_is_cut_to_its_end_without_the_noise_of_a_missing_desktop() -> None:
    printed = "\n".join(f"line {n} " + "x" * 300 for n in range(1000)) + "\n[1:ERROR:dbus/bus.cc:405] no bus\nthe end"
    shown = failures.tail(printed)
    assert shown.endswith("the end")
    assert "dbus" not in shown
    assert len(shown) <= failures.DETAIL_CHARS


def test_a_version_that_is_too_old_is_named_and_others_pass() -> None:
    with pytest.raises(LaunchFailed, match=r"Chrome/88\.0\.1") as refused:
        failures.check_version("Chrome/88.0.1")
    assert refused.value.kind == "too_old"
    for product in (f"Chrome/{failures.MINIMUM_MAJOR}.0.0.0", "HeadlessChrome/156.0.1.2", "Something else"):
        failures.check_version(product)


def test_the_port_file_is_read_when_it_is_whole(tmp_path: Path) -> None:
    assert read_port_file(tmp_path) is None
    for partial in ("", "4", "x\n/devtools/browser/1", "41001\n"):
        (tmp_path / "DevToolsActivePort").write_text(partial)
        assert read_port_file(tmp_path) is None
    (tmp_path / "DevToolsActivePort").write_text("41001\n/devtools/browser/1")
    assert read_port_file(tmp_path) == "ws://127.0.0.1:41001/devtools/browser/1"


def test_a_folder_left_by_an_owner_that_is_gone_is_removed_by_the_next_profile(tmp_path: Path) -> None:
    left = TemporaryProfile(tmp_path)
    (left.path / "Default").mkdir()
    alive = TemporaryProfile(tmp_path)
    assert left.path.exists()
    left._lock.close()  # what the end of a process does
    (tmp_path / "watchkeeper-profile-link").symlink_to(tmp_path)
    (tmp_path / "watchkeeper-profile-file").write_text("not ours")
    TemporaryProfile(tmp_path).remove()
    assert not left.path.exists()
    assert alive.path.exists()
    assert (tmp_path / "watchkeeper-profile-file").exists()
    alive.remove()
    assert not alive.path.exists()


def test_a_kept_folder_is_made_for_its_owner_alone_and_never_removed(tmp_path: Path) -> None:
    kept = KeptProfile(str(tmp_path / "a" / "b"))
    assert kept.path.stat().st_mode & 0o777 == 0o700
    kept.remove()
    assert kept.path.exists()


def test_a_kept_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidArgument, match="cannot be used as a folder"):
        KeptProfile(str(tmp_path / "file"))


def test_a_mark_in_a_kept_folder_counts_when_its_process_lives_here(tmp_path: Path) -> None:
    mark = tmp_path / "SingletonLock"
    mark.symlink_to(f"{socket.gethostname()}-{os.getpid()}")
    with pytest.raises(LaunchFailed, match=f"process {os.getpid()}"):
        KeptProfile(str(tmp_path))
    for stale in (f"{socket.gethostname()}-{2**22 + 1}", "another-host-1", "nonsense"):
        mark.unlink()
        mark.symlink_to(stale)
        assert profile.profile_user(tmp_path) is None


def test_a_name_without_a_folder_is_looked_up_and_a_bundle_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "Thing.app" / "Contents" / "MacOS" / "Thing"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert local.resolve_executable("Thing") == program
    assert local.resolve_executable(str(tmp_path / "Thing.app")) == program


def test_a_local_endpoint_shows_neither_its_proxy_nor_its_extra_arguments() -> None:
    endpoint = LocalEndpoint("/b", True, "/profile", ("--header=hunter2",), "http://u:hunter2@p:1")
    assert "hunter2" not in f"{endpoint} {endpoint!r}"
    assert "/profile" in str(endpoint)
