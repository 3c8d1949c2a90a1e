"""Counts are right without a network, survive hostile text, and estimates are near for every script."""

import base64
import json
import os
import random
import subprocess
import sys
import uuid

import pytest

from watchkeeper.context import tokens
from watchkeeper.context.tokens import PIECE, Tokenizer, estimate, message_tokens, pieces, tokenizer_for

PROSE = {
    "English": "While a dialog is open the browser holds the scripts of the page, so ordinary tools wait until the "
    "time is over. Please sum up yesterday's meeting in a short report: budget, schedule and open questions.",
    "German": "Solange ein Dialog geöffnet ist, hält der Browser die Skripte der Seite an; gewöhnliche Werkzeuge "
    "warten deshalb, bis die Frist abläuft. Bitte fassen Sie die gestrige Besprechung in einem Bericht zusammen.",
    "French": "Tant qu'une boîte de dialogue est ouverte, le navigateur suspend les scripts de la page ; les outils "
    "ordinaires attendent donc jusqu'à l'expiration du délai.",
    "Polish": "Dopóki okno dialogowe jest otwarte, przeglądarka wstrzymuje skrypty strony, dlatego zwykłe narzędzia "
    "czekają aż do upływu czasu.",
    "Russian": "Браузер останавливает выполнение сценариев страницы, пока открыто диалоговое окно, поэтому обычные "
    "инструменты ждут до истечения времени. Имена файлов и номера заказов должны сохраниться.",
    "Greek": "Ο περιηγητής σταματά την εκτέλεση των σεναρίων της σελίδας όσο ένα παράθυρο διαλόγου είναι ανοιχτό.",
    "Arabic": "يتوقف المتصفح عن تنفيذ البرامج النصية للصفحة أثناء فتح مربع الحوار، ولذلك تنتظر الأدوات العادية.",
    "Hindi": "जब तक संवाद बॉक्स खुला रहता है, ब्राउज़र पृष्ठ की स्क्रिप्ट को रोक देता है।",
    "Chinese": "浏览器在打开对话框时会阻塞页面的脚本线程，因此普通的自动化工具会一直等待，"
    "直到超时为止。上下文压缩之后，所有的文件名、编号和用户的原话都必须保留下来。",
    "Japanese": "ブラウザはダイアログが開いている間、ページのスクリプトを停止します。"
    "会話の記録を圧縮しても、ファイル名や番号は失われません。",
    "Korean": "브라우저는 대화 상자가 열려 있는 동안 페이지의 스크립트를 멈춥니다. "
    "그래서 일반적인 도구는 시간 초과가 될 때까지 기다립니다.",
}
_random = random.Random(7)
DATA = {
    "code": "def total(self, orders: list[Order]) -> Decimal:\n    return sum((o.net for o in orders), Decimal(0))\n"
    * 8,
    "JSON": json.dumps([{"id": _random.randrange(10**9), "ok": True, "tags": ["x", "y"]} for _ in range(40)]),
    "CSV": "\n".join(",".join(str(_random.randrange(10**5)) for _ in range(8)) for _ in range(40)),
    "base64": base64.b64encode(_random.randbytes(1_500)).decode(),
    "hex": _random.randbytes(1_000).hex(),
    "UUIDs": "\n".join(str(uuid.UUID(int=_random.getrandbits(128))) for _ in range(40)),
    "page snapshot": "\n".join(
        f'  - link "Products and services" [ref=e{_random.randrange(2000)}] -> /path/{_random.randrange(1000)}'
        for _ in range(40)
    ),
}


@pytest.mark.parametrize("kind", [*PROSE, *DATA])
def test_the_estimate_is_within_a_quarter_of_the_count(kind):
    text = (PROSE | DATA)[kind]
    assert 0.75 <= estimate(text) / tokenizer_for().count(text) <= 1.25


def test_counts_are_those_of_the_published_encodings():
    # Examples from the tokenizer's own documentation and from counting by hand.
    assert tokenizer_for("gpt-4").count("hello world") == 2
    assert tokenizer_for("gpt-4o").count("hello world") == 2
    assert tokenizer_for("gpt-4").count("<|endoftext|>") > 1
    assert tokenizer_for().count("") == 0


def test_claude_counts_are_labelled_estimates_a_fifth_above_o200k():
    claude = tokenizer_for("anthropic/claude-sonnet-4.5")
    text = DATA["code"]
    assert claude.label == "o200k_base x 1.2 (estimate)"
    assert not claude.exact
    assert claude.count(text) == -(-Tokenizer("o200k_base").count(text) * 12 // 10)


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5-mini", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("o3", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("", "cl100k_base"),
    ],
)
def test_a_model_is_counted_with_its_own_encoding(model, encoding):
    assert tokenizer_for(model).encoding == encoding


@pytest.mark.parametrize("character", [" ", "\n", "a", "-", "漢", "é", "\U0001f600", "\u200b", "\0"])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_a_million_equal_characters_are_counted(character, encoding):
    assert Tokenizer(encoding).count(character * 1_000_000) > 1_000


def test_pieces_join_to_the_text_and_are_small():
    text = "word and Wort und слово и 漢字 " * 30_000
    parts = list(pieces(text))
    assert "".join(parts) == text
    assert max(len(p.encode()) for p in parts) <= PIECE
    plain = "a line of text\n" * 20_000
    assert "".join(pieces(plain)) == plain
    # Cutting where a line ends costs nothing.
    assert sum(map(tokenizer_for().count, pieces(plain))) == tokenizer_for().count(plain)


def test_a_lone_surrogate_is_counted():
    assert tokenizer_for().count("broken \ud83d text") > 2
    assert estimate("broken \ud83d text") > 2


def test_images_cost_a_fixed_amount_not_their_bytes():
    url = "data:image/png;base64," + "A" * 400_000
    message = {
        "role": "user",
        "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": url}}],
    }
    assert message_tokens(message, tokenizer_for().count) < 1_100


def test_damaged_ranks_give_labelled_estimates_and_no_call_to_the_network(monkeypatch):
    monkeypatch.setattr(tokens, "_encoders", {})
    monkeypatch.setattr(tokens, "_unusable", {})
    monkeypatch.setattr(tokens.gzip, "decompress", lambda data: b"damaged")
    tokenizer = tokenizer_for("gpt-4")
    assert tokenizer.count("hello world") == estimate("hello world")
    assert not tokenizer.exact
    assert "damaged" in tokenizer.label


def test_loading_needs_no_network_and_leaves_the_environment_alone(tmp_path):
    program = (
        "import socket, os, sys\n"
        "def refuse(*a, **k): raise AssertionError('the network was used')\n"
        "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
        "from watchkeeper.context import estimate\n"
        "assert 'tiktoken' not in sys.modules, 'loaded before it was needed'\n"
        "estimate('abc'); assert 'tiktoken' not in sys.modules\n"
        "from watchkeeper.context.tokens import tokenizer_for\n"
        "before = dict(os.environ)\n"
        "print(tokenizer_for('gpt-4o').count('hello world'), tokenizer_for('gpt-4').count('hello world'))\n"
        "assert dict(os.environ) == before\n"
        "assert not os.listdir(os.environ['TMPDIR'])\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path / "home")}
    environment.pop("TIKTOKEN_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["2", "2"]
