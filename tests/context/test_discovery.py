"""Finding and loading engines: by name only, in order, with errors that say where was looked."""

import importlib.metadata
import logging
import sys
import textwrap

import pytest

from watchkeeper.context import discovery
from watchkeeper.context.discovery import check_tools, list_engines, load_engine
from watchkeeper.context.engine import ContextEngine
from watchkeeper.context.errors import ContextError, EngineFailed, UnknownEngine

ENGINE = """
    from watchkeeper.context.engine import ContextEngine

    class Mine(ContextEngine):
        def __init__(self, {takes}):
            self.given = {given}

        @property
        def name(self):
            return "{name}"

        def update_from_response(self, usage): ...

        def should_compress(self, prompt_tokens=None):
            return False

        def compress(self, messages, current_tokens=None, focus_topic=None, force=False, memory_context=""):
            return messages
"""


def code(name, takes="", given="None"):
    return textwrap.dedent(ENGINE.format(name=name, takes=takes or "*_", given=given))


def plugin(root, name, source, about=None):
    folder = root / "context_engine" / name
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text(about or f"name: {name}\ndescription: an engine\nversion: 1.2.3\n")
    (folder / "__init__.py").write_text(source)
    return folder


@pytest.fixture
def entries(monkeypatch, tmp_path):
    """Installs entry points for the test: {name: source of a module with `register`}."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(**modules):
        points = []
        for name, source in modules.items():
            (tmp_path / f"wk_test_{name}.py").write_text(textwrap.dedent(source))
            sys.modules.pop(f"wk_test_{name}", None)
            points.append(importlib.metadata.EntryPoint(name, f"wk_test_{name}:register", discovery.ENTRY_POINTS))
        monkeypatch.setattr(discovery, "entry_points", lambda group: points if group == discovery.ENTRY_POINTS else [])

    return install


def test_listing_reads_metadata_and_imports_nothing(tmp_path, entries):
    boom = "raise RuntimeError('imported')"
    plugin(tmp_path, "mine", boom)
    plugin(tmp_path, "odd", boom, "name: other\ndescription: d\nversion: 1\n")
    plugin(tmp_path, "broken", boom, "{")
    plugin(tmp_path, "short", boom, "name: short\n")
    entries(away=boom)
    found = {info.name: info for info in list_engines([tmp_path, tmp_path / "nowhere"])}
    assert list(found) == ["compressor", "broken", "mine", "odd", "short", "lcm", "away"]
    assert (found["mine"].description, found["mine"].version, found["mine"].source) == (
        "an engine",
        "1.2.3",
        "directory",
    )
    assert (found["lcm"].source, found["compressor"].source, found["away"].source) == (
        "shipped",
        "built-in",
        "entry point",
    )
    assert "its directory 'odd'" in found["odd"].problem
    assert "cannot be read" in found["broken"].problem
    assert "lacks description, version" in found["short"].problem
    assert not found["mine"].problem


def test_a_directory_engine_is_given_what_its_signature_takes(tmp_path):
    plugin(tmp_path, "full", code("full", "context_length, settings", "(context_length, settings)"))
    plugin(tmp_path, "bare", code("bare"))
    plugin(tmp_path, "all", code("all", "**kw", "sorted(kw)"))
    offered = {"directories": [tmp_path], "context_length": 9, "settings": {"a": 1}, "archive": "the archive"}
    assert load_engine("full", **offered).given == (9, {"a": 1})
    assert load_engine("bare", **offered).given is None
    assert load_engine("all", **offered).given == ["archive", "context_length", "settings"]


def test_the_first_directory_wins_and_modules_of_the_same_name_stay_apart(tmp_path):
    for place in ("one", "two"):
        folder = plugin(tmp_path / place, "mine", "from .inner import WHERE\n" + code("mine", given="WHERE"))
        (folder / "inner.py").write_text(f"WHERE = {place!r}")
    assert load_engine("mine", directories=[tmp_path / "one", tmp_path / "two"]).given == "one"
    assert load_engine("mine", directories=[tmp_path / "two", tmp_path / "one"]).given == "two"


def test_the_shipped_engine_is_found_like_any_other_and_a_directory_may_replace_it(tmp_path):
    engine = load_engine("lcm", context_length=50_000, settings={"fanout": 3})
    assert (engine.name, engine.context_length, engine.settings.fanout) == ("lcm", 50_000, 3)
    plugin(tmp_path, "lcm", code("lcm", given="'replaced'"))
    assert load_engine("lcm", directories=[tmp_path]).given == "replaced"


def test_register_offers_an_engine_or_its_class_and_a_second_one_is_refused(tmp_path, caplog):
    plugin(tmp_path, "mine", code("mine", given="'first'") + textwrap.dedent("""
        def register(ctx):
            assert (ctx.context_length, ctx.settings) == (7, {"k": "v"})
            assert ctx.register_context_engine(Mine) is True
            assert ctx.register_context_engine(Mine()) is False
    """))  # fmt: skip
    with caplog.at_level(logging.WARNING):
        engine = load_engine("mine", directories=[tmp_path], context_length=7, settings={"k": "v"})
    assert engine.given == "first"
    assert "second context engine" in caplog.text


def test_entry_points_are_asked_last_and_only_the_one_of_that_name_is_imported(tmp_path, entries):
    entries(
        mine=code("mine", given="'entry'") + "\ndef register(ctx): ctx.register_context_engine(Mine())",
        other="raise RuntimeError('imported')",
    )
    assert load_engine("mine").given == "entry"
    plugin(tmp_path, "mine", code("mine", given="'directory'"))
    assert load_engine("mine", directories=[tmp_path]).given == "directory"


def test_an_engine_behind_an_entry_point_of_another_name_is_found_by_its_own(entries):
    entries(
        plugin_a="def register(ctx): pass",
        plugin_b=code("hidden", given="'b'") + "\ndef register(ctx): ctx.register_context_engine(Mine)",
    )
    assert load_engine("hidden").given == "b"


def test_a_name_that_nothing_has_names_the_places_searched_and_what_there_is(tmp_path):
    with pytest.raises(UnknownEngine) as caught:
        load_engine("lmc", directories=[tmp_path])
    assert str(tmp_path / "context_engine") in caught.value.message
    assert "entry points watchkeeper.plugins" in caught.value.message
    assert "compressor, lcm" in caught.value.hint


@pytest.mark.parametrize("name", ["../lcm", "lcm/", "", ".", "a b", "lcm\n", "x" * 80])
def test_a_name_cannot_lead_out_of_the_directories(tmp_path, name):
    with pytest.raises(UnknownEngine):
        load_engine(name, directories=[tmp_path])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import not_there_at_all", "ModuleNotFoundError"),
        ("raise SystemExit(3)", "SystemExit"),
        ("def f(:", "SyntaxError"),
        ("x = 1", "must export one subclass"),
        (code("one") + code("two").replace("Mine", "Yours"), "Mine, Yours"),
        (code("other"), "calls itself 'other'"),
        (code("mine", "needs_more"), "missing 1 required"),
        (code("mine").replace("def compress", "def squeeze"), "abstract"),
        ("def register(ctx): pass", "registers no context engine"),
        ("def register(ctx): ctx.register_context_engine(5)", "is no ContextEngine"),
        (
            code("mine") + "    def get_tool_schemas(self): return [{'name': 'x'}]",
            "is not {name, description, parameters}",
        ),
    ],
)
def test_a_plugin_that_fails_is_an_error_and_never_the_built_in_instead(tmp_path, source, says):
    plugin(tmp_path, "mine", source)
    with pytest.raises(EngineFailed) as caught:
        load_engine("mine", directories=[tmp_path])
    assert says in caught.value.message
    assert caught.value.hint


def test_bad_metadata_of_the_chosen_engine_is_an_error(tmp_path):
    plugin(tmp_path, "mine", code("mine"), "name: mine\ndescription: d\n")
    with pytest.raises(EngineFailed, match="lacks version"):
        load_engine("mine", directories=[tmp_path])


def test_tool_names_that_are_taken_or_repeated_are_refused(tmp_path):
    def tool(name):
        return {"name": name, "description": "d", "parameters": {"type": "object"}}

    class Tools(ContextEngine):
        name = "tools"

        def update_from_response(self, usage): ...
        def should_compress(self, prompt_tokens=None): ...
        def compress(self, messages, **_): ...
        def get_tool_schemas(self):
            return [tool("recall"), tool("note")]

    assert [t["name"] for t in check_tools(Tools(), {"browser_click"})] == ["recall", "note"]
    with pytest.raises(ContextError, match="'note', but there is one"):
        check_tools(Tools(), {"note"})
    Tools.get_tool_schemas = lambda self: [tool("a"), tool("a")]
    with pytest.raises(ContextError, match="'a', but there is one"):
        check_tools(Tools(), ())
