"""What a person reads who is asked for consent: the page's words are never taken for ours, whatever they imitate."""

import json

import pytest

from watchkeeper.server.questions import SHOWN_WHOLE, Question, _about_dialog
from watchkeeper.supervisor.core.view import Dialog

from .corpus import MARK, PAYLOADS, escapes, unsound


def about(kind: str, message: str, default: str = "") -> Question:
    dialog = Dialog("d-1", kind, message, default, f"http://a.test/{message[:100]}", "F", "t1", 1.0)
    return _about_dialog(dialog, "default", {"action": "accept"}, lambda value: value)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_page_says_nothing_to_the_person_outside_of_fence_and_quotes(payload: str) -> None:
    for question in (about("confirm", payload), about("prompt", payload, payload)):
        assert escapes(question.message, longest=2 * SHOWN_WHOLE) == []
        assert MARK in question.message or len(payload) > SHOWN_WHOLE
        assert unsound([question.message, *(field.default for field in question.fields)]) is None


def test_the_same_dialog_is_the_same_question_and_another_is_another() -> None:
    assert about("confirm", "Pay 1?").subject == about("confirm", "Pay 1?").subject
    assert about("confirm", "Pay 1?").subject != about("confirm", "Pay 10?").subject
    assert json.loads(about("confirm", "Pay 1?").subject)[0] == "default"
