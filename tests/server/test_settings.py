"""Settings: four sources, one precedence, and errors that the person can act on."""

from pathlib import Path

import pytest

from watchkeeper.server.settings import CONFIG_VARIABLE, Settings, all_settings, shown
from watchkeeper.server.settings_sources import SettingsError, load

CDP = "WATCHKEEPER_BROWSER__CDP_URL"


def problems(
    options: dict[str, str] | None = None, environment: dict[str, str] | None = None, config: Path | None = None
) -> list[str]:
    with pytest.raises(SettingsError) as raised:
        load(options, environment or {}, config)
    return raised.value.problems


def test_the_command_line_wins_over_the_environment_over_the_file_over_the_default(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("browser:\n  dialog_timeout_s: 10\n  max_tasks: 10\n  call_timeout_s: 10\n")
    environment = {"WATCHKEEPER_BROWSER__MAX_TASKS": "20", "WATCHKEEPER_BROWSER__CALL_TIMEOUT_S": "20"}
    loaded = load({"browser.call_timeout_s": "30"}, environment, file)
    browser = loaded.settings.browser
    assert (browser.dialog_timeout_s, browser.max_tasks, browser.call_timeout_s, browser.idle_timeout_s) == (
        10,
        20,
        30,
        1800,
    )
    sources = {setting.name: loaded.source(setting) for setting in all_settings()}
    assert sources["browser.dialog_timeout_s"] == f"file {file}"
    assert sources["browser.max_tasks"] == "environment variable WATCHKEEPER_BROWSER__MAX_TASKS"
    assert sources["browser.call_timeout_s"] == "command line"
    assert sources["browser.idle_timeout_s"] == "default"


def test_a_variable_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("server: {port: 1234}")
    assert load({}, {CONFIG_VARIABLE: str(file)}).settings.server.port == 1234


def test_lists_and_mappings_can_be_written_as_text() -> None:
    settings = load(
        {"browser.extra_args": "--a, --b=1"},
        {
            "WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE": "one",
            "WATCHKEEPER_SERVER__AUTH_TOKENS__BOB": "two",
            "WATCHKEEPER_CONTEXT__ENGINES": '{"lcm": {"path": "/x"}}',
        },
    ).settings
    assert settings.browser.extra_args == ("--a", "--b=1")
    assert {name: token.get_secret_value() for name, token in settings.server.auth_tokens.items()} == {
        "alice": "one",
        "bob": "two",
    }
    assert settings.context.engines == {"lcm": {"path": "/x"}}


def test_an_empty_variable_is_as_if_it_were_not_set() -> None:
    assert load({}, {CDP: "", "WATCHKEEPER_BROWSER__HEADLESS": ""}).settings == Settings()


@pytest.mark.parametrize(
    ("options", "environment", "said"),
    [
        ({"browser.cdpurl": "x"}, {}, "did you mean browser.cdp_url?"),
        ({}, {"WATCHKEEPER_BROWSER__HEADLES": "1"}, "did you mean browser.headless?"),
        ({}, {"WATCHKEEPER_PORT": "1"}, "did you mean server.port?"),
        ({"browser.threshold": "1"}, {}, "did you mean compression.threshold?"),
        ({"zzz.qqq": "1"}, {}, "`watchkeeper config` lists those that exist."),
        ({"server.port": "70000"}, {}, "expected a whole number from 0 to 65,535, got '70000'"),
        ({"compression.threshold": "0"}, {}, "expected a number above 0, up to 1, got '0'"),
        ({"browser.headless": "perhaps"}, {}, "expected true or false, got 'perhaps'"),
        ({"browser.backend": "camofox"}, {}, "expected one of: auto, local, cdp, browserbase, got 'camofox'"),
        ({"server.auth_tokens": "{"}, {}, "expected a mapping, written as JSON"),
    ],
)
def test_what_is_wrong_is_told_with_the_way_out(
    options: dict[str, str], environment: dict[str, str], said: str
) -> None:
    [problem] = problems(options, environment)
    assert said in problem


def test_unknown_keys_in_a_file_are_told_all_at_once(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("browser: {headles: true}\nsrver: {port: 1}\ncompression: 3\n")
    told = problems(config=file)
    assert len(told) == 3
    assert all(str(file) in problem for problem in told)


@pytest.mark.parametrize("content", ["- a\n", "a: [", "browser: !!python/object/apply:os.system ['true']"])
def test_a_file_that_is_no_mapping_is_refused_by_name(tmp_path: Path, content: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)
    [problem] = problems(config=file)
    assert str(file) in problem


def test_a_missing_file_is_told() -> None:
    assert "cannot be read" in problems(config=Path("/nowhere/settings.yaml"))[0]


def test_secrets_are_never_shown_neither_in_errors_nor_in_reprs() -> None:
    told = problems(
        {"server.auth_tokens": '{"alice": ["hunter2hunter2"]}', "server.port": "x"}, {CDP: "ws://u:hunter2@h"}
    )
    assert "hunter2" not in " ".join(told)
    settings = load({}, {"WATCHKEEPER_SERVER__AUTH_TOKENS__ALICE": "hunter2hunter2"}).settings
    assert "hunter2" not in repr(settings)


def test_every_setting_has_help_and_a_default_that_is_within_its_range() -> None:
    for setting in all_settings():
        assert setting.help.endswith((".", "…")), setting.name
        assert setting.expects, setting.name
        if setting.choices and setting.kind is not tuple:
            assert setting.default in setting.choices
        if not setting.secret and setting.kind is not dict and setting.default is not None:
            loaded = load({setting.name: shown(setting.default).replace("(none)", "")}, {})
            assert setting.value(loaded.settings) == setting.default, setting.name


def test_settings_that_do_not_go_together_are_told() -> None:
    with pytest.raises(SettingsError) as raised:
        load({"auxiliary.compression.provider": "openai"}, environment={})
    assert raised.value.problems == ["auxiliary.compression: provider openai needs a model as well."]
