"""What people typed is told apart from what a host wrote, and is cut visibly and fairly."""

from watchkeeper.context.core.quotes import MAX_QUOTE, abridge, choose_quotes, typed_text


def test_tagged_blocks_and_notices_are_not_typed():
    assert typed_text("<reminder>\nUse the tools.\n</reminder>") == ""
    assert typed_text("# Rules for /srv/app\n\n<RULES>\nBe brief.\n</RULES>") == ""
    assert typed_text("[Request interrupted]") == ""


def test_what_stands_beside_a_tagged_block_is_typed():
    assert typed_text("<context>\nrepo: x\n</context>\n\nplease rename it") == "please rename it"


def test_pasted_markup_stays():
    text = "why is this empty?\n<div class='a'>\n</div>"
    assert typed_text(text) == text


def test_a_document_after_a_tool_result_is_loaded_but_a_short_interjection_is_typed():
    document = "# Skill\n\n" + "Do this and that. " * 200
    assert typed_text(document, after_tool=True) == ""
    assert typed_text(document, after_tool=False) == document.strip()
    assert typed_text("stop, use the other file", after_tool=True) == "stop, use the other file"


def test_a_cut_says_how_much_is_missing_and_keeps_both_ends():
    text = "begin " + "word " * 500 + "end"
    short = abridge(text, 300)
    assert short.startswith("begin word") and short.endswith("word end")
    assert "characters…]" in short and len(short) < 360


def test_short_messages_stay_whole_when_a_long_one_fills_the_room():
    typed = [(0, "first request"), (1, "x y " * 2_000), (2, "use port 8443"), (3, "newest word")]
    quotes, omitted = choose_quotes(typed, 1_500)
    texts = [q.text for q in quotes]
    assert omitted == 0
    assert texts[0] == "first request" and texts[2] == "use port 8443" and texts[3] == "newest word"
    assert 500 < len(texts[1]) < 1_500 and quotes[1].cut > 0


def test_when_messages_must_go_the_first_and_the_newest_stay():
    typed = [(i, f"message {i}: " + "detail " * 40) for i in range(50)]
    quotes, omitted = choose_quotes(typed, 2_000)
    indices = [q.index for q in quotes]
    assert indices[0] == 0 and indices[-1] == 49
    assert omitted == 50 - len(quotes) > 0


def test_no_quote_is_longer_than_the_limit_of_one_message():
    quotes, _ = choose_quotes([(0, "a b " * 5_000)], 1_000_000)
    assert len(quotes[0].text) < MAX_QUOTE + 60
