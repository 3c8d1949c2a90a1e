"""Frames in the core: the tree over all processes, through every way in which frames come, move and go."""

from fakes.browser_events import (
    PAGE,
    SESSION,
    after,
    attached,
    context,
    detached,
    frame_attached,
    frame_detached,
    navigated,
    run,
)

from watchkeeper.supervisor.core.commands import SeedFrames, Send
from watchkeeper.supervisor.core.inputs import Event, Replied
from watchkeeper.supervisor.core.state import BrowserState
from watchkeeper.supervisor.core.view import FRAMES_SHOWN, Frame, view


def frames(state: BrowserState) -> dict[str, Frame]:
    return {frame.frame_id: frame for frame in view(state).frames}


CROSS = (
    frame_attached("CHILD"),
    attached("CHILD", "S-CHILD", parent=SESSION, kind="iframe"),
    frame_detached("CHILD", "swap"),
    navigated("CHILD", "http://b.test/", "L9", "S-CHILD"),
)


def test_a_frame_that_moves_to_another_process_stays_in_the_tree_with_its_new_session() -> None:
    child = frames(after(*CROSS))["CHILD"]
    assert (child.is_oopif, child.session_id, child.parent_frame_id) == (True, "S-CHILD", PAGE)
    assert (child.url, child.short) == ("http://b.test/", "f2")


def test_a_frame_that_moves_back_belongs_to_its_parents_session_again() -> None:
    state = after(*CROSS, detached("S-CHILD", parent=SESSION), frame_attached("CHILD"))
    state = after(navigated("CHILD", "http://a.test/in", "L10"), state=state)
    child = frames(state)["CHILD"]
    assert (child.is_oopif, child.session_id, child.url) == (False, SESSION, "http://a.test/in")


def test_an_out_of_process_frame_that_is_removed_leaves_the_tree() -> None:
    assert list(frames(after(*CROSS, detached("S-CHILD", parent=SESSION)))) == [PAGE]
    assert list(frames(after(*CROSS, frame_detached("CHILD")))) == [PAGE]


def test_a_frame_takes_its_descendants_with_it() -> None:
    state = after(frame_attached("A"), frame_attached("B", "A"), frame_attached("C", "B"), frame_attached("D"))
    assert list(frames(after(frame_detached("A"), state=state))) == [PAGE, "D"]


def test_a_new_document_drops_the_frames_of_the_old_one() -> None:
    assert list(frames(after(frame_attached("A"), frame_attached("B", "A"), navigated(loader="L2")))) == [PAGE]


def test_a_new_document_drops_frames_also_when_its_lifecycle_began_before() -> None:
    init = Event(SESSION, "Page.lifecycleEvent", {"frameId": PAGE, "loaderId": "L2", "name": "init"})
    assert list(frames(after(frame_attached("A"), init, navigated(loader="L2")))) == [PAGE]


def test_a_document_has_loaded_only_by_its_own_events() -> None:
    def lived(loader: str, name: str) -> Event:
        return Event(SESSION, "Page.lifecycleEvent", {"frameId": PAGE, "loaderId": loader, "name": name})

    state = after(lived("L1", "init"), lived("L1", "load"))
    assert state.frames.by_id[PAGE].reached("load")
    state = after(lived("L2", "init"), navigated(loader="L2"), lived("L1", "networkIdle"), state=state)
    assert not state.frames.by_id[PAGE].reached("load")
    state = after(lived("L2", "init"), lived("L2", "load"), state=state)
    assert state.frames.by_id[PAGE].reached("load")


def test_frames_that_were_there_before_we_came_are_seeded_from_the_tree() -> None:
    tree = {
        "frame": {"id": PAGE, "url": "http://a.test/", "loaderId": "L1"},
        "childFrames": [{"frame": {"id": "OLD", "parentId": PAGE, "url": "http://a.test/old", "loaderId": "L5"}}],
    }
    state = after(frame_attached("MISSED-REMOVAL"), Replied(SeedFrames(SESSION), {"frameTree": tree}))
    assert list(frames(state)) == [PAGE, "OLD"]
    assert frames(state)["OLD"].url == "http://a.test/old"


def test_seeding_leaves_frames_of_other_processes_alone() -> None:
    tree = {"frame": {"id": PAGE, "url": "http://a.test/", "loaderId": "L1"}}
    assert "CHILD" in frames(after(*CROSS, Replied(SeedFrames(SESSION), {"frameTree": tree})))


def test_a_frame_of_another_process_takes_over_what_its_own_renderer_lists() -> None:
    inner = {"frame": {"id": "GRANDCHILD", "parentId": "CHILD", "url": "http://b.test/in", "loaderId": "L12"}}
    root = {"id": "CHILD", "parentId": PAGE, "url": "http://b.test/", "loaderId": "L9"}
    listed = Replied(SeedFrames("S-CHILD"), {"frameTree": {"frame": root, "childFrames": [inner]}})
    known = frames(after(*CROSS, listed))
    assert known["GRANDCHILD"].parent_frame_id == "CHILD" and known["CHILD"].parent_frame_id == PAGE


def test_a_slow_renderer_that_still_lists_a_frame_which_moved_away_does_not_get_it_back() -> None:
    inner = {"frame": {"id": "GRANDCHILD", "parentId": "CHILD", "url": "about:blank", "loaderId": "L7"}}
    child = {
        "frame": {"id": "CHILD", "parentId": PAGE, "url": "about:blank", "loaderId": "L6"},
        "childFrames": [inner],
    }
    tree = {"frame": {"id": PAGE, "url": "http://a.test/", "loaderId": "L1"}, "childFrames": [child]}
    late = Replied(SeedFrames(SESSION), {"frameTree": tree})
    for moment in range(2, len(CROSS) + 1):
        state = after(*CROSS[:moment], late, *CROSS[moment:])
        known = frames(state)
        assert set(known) == {PAGE, "CHILD"}, moment
        assert (known["CHILD"].is_oopif, known["CHILD"].session_id, known["CHILD"].url) == (
            True,
            "S-CHILD",
            "http://b.test/",
        ), moment


def test_a_page_that_comes_back_from_the_cache_is_asked_for_its_frames() -> None:
    _, commands = run([navigated(loader="L0", kind="BackForwardCacheRestore")])
    assert commands == [Send(SESSION, "Page.getFrameTree", tag=SeedFrames(SESSION))]


def test_an_attached_frame_can_never_become_its_own_ancestor() -> None:
    state = after(frame_attached("A"), frame_attached("B", "A"), frame_attached("A", "B"), frame_attached("A", "A"))
    assert frames(state)["A"].parent_frame_id == PAGE


def test_contexts_follow_their_frames_and_sessions() -> None:
    state = after(context(1), context(2, is_default=False), frame_attached("A"), context(3, "A"))
    main = state.frames.main_context(PAGE)
    assert main is not None and main.number == 1
    gone = Event(SESSION, "Runtime.executionContextDestroyed", {"executionContextId": 1})
    assert after(gone, state=state).frames.main_context(PAGE) is None
    assert after(frame_detached("A"), state=state).frames.main_context("A") is None
    cleared = Event(SESSION, "Runtime.executionContextsCleared", {})
    assert not after(cleared, state=state).frames.contexts


def test_the_tree_is_bounded_and_says_so() -> None:
    state = after(*(frame_attached(f"F{n:02}") for n in range(FRAMES_SHOWN + 9)))
    tree = view(state).frame_tree.as_dict()
    assert (len(tree["children"]) + 1, tree["truncated"], tree["total"]) == (FRAMES_SHOWN, True, FRAMES_SHOWN + 10)
    assert len(view(state).frames) == FRAMES_SHOWN + 10
    assert view(after(frame_attached("A"))).frame_tree.as_dict()["truncated"] is False


def test_deeply_nested_processes_are_cut_from_the_tree_and_counted() -> None:
    nested = [
        attached(
            f"F{depth}",
            f"S{depth}",
            parent=f"S{depth - 1}" if depth > 1 else SESSION,
            kind="iframe",
            parentFrameId=f"F{depth - 1}" if depth > 1 else PAGE,
        )
        for depth in (1, 2, 3)
    ]
    tree = view(after(*nested)).frame_tree
    assert [frame.frame_id for frame in tree.children] == ["F1", "F2"]
    assert (tree.truncated, tree.total) == (True, 4)


def test_a_page_that_awaits_a_response_is_known_until_it_comes_or_is_given_up() -> None:
    began = Event(SESSION, "Page.frameStartedNavigating", {"frameId": PAGE, "loaderId": "L2", "url": "http://a.test/2"})
    state = after(began)
    assert state.frames.by_id[PAGE].awaits_response
    assert not after(navigated(loader="L2"), state=state).frames.by_id[PAGE].awaits_response
    stopped = Event(SESSION, "Page.frameStoppedLoading", {"frameId": PAGE})
    assert not after(stopped, state=state).frames.by_id[PAGE].awaits_response
    within = {"frameId": PAGE, "loaderId": "L3", "navigationType": "sameDocument"}
    assert not after(Event(SESSION, "Page.frameStartedNavigating", within)).frames.by_id[PAGE].awaits_response
