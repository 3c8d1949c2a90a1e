"""The sample conversations are valid, the same every time, and survive compression with what their next step needs."""

import pytest

from watchkeeper.context import InvalidArgument, compress_messages
from watchkeeper.context.core.validity import check
from watchkeeper.context.samples import SAMPLES, load_sample, sample
from watchkeeper.context.tokens import tokenizer_for, total_tokens

COUNT = tokenizer_for().count


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_valid_long_and_made_the_same_every_time(name):
    messages = load_sample(name)
    assert check(messages) == []
    assert messages == load_sample(name)
    assert 10_000 < total_tokens(messages, COUNT) < 45_000
    text = str(messages)
    assert [fact for fact in sample(name).needed if fact not in text] == []


@pytest.mark.parametrize("name", SAMPLES)
def test_nine_of_ten_facts_survive_in_an_eighth_of_the_tokens(name):
    s = sample(name)
    result = compress_messages(s.messages, total_tokens(s.messages, COUNT) // 8)
    text = "\n".join(str(m) for m in result.messages)
    missing = [fact for fact in s.needed if fact not in text]
    assert len(missing) <= 0.1 * len(s.needed), missing


@pytest.mark.parametrize("name", SAMPLES)
def test_what_people_typed_survives_word_for_word(name):
    messages = load_sample(name)
    text = "\n".join(str(m["content"]) for m in compress_messages(messages, 4_000).messages).replace("\n> ", "\n")
    for message in messages:
        if message["role"] == "user":
            assert message["content"] in text


def test_an_unknown_sample_is_refused_with_those_that_exist():
    with pytest.raises(InvalidArgument, match="nonsense") as caught:
        load_sample("nonsense")
    assert "checkout" in caught.value.hint
