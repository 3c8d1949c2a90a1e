"""Speed may change, output may not: what compressions give is held byte for byte.

A change that is meant to alter what is kept replaces the digests, and says so in its message.
"""

import hashlib
import json
import random

import pytest

from watchkeeper.context import compress_messages
from watchkeeper.context.core import anchors
from watchkeeper.context.samples import load_sample

GOLDEN = {
    ("checkout", 2_000): "31df3b457259bee2",
    ("checkout", 8_000): "6ec52a20d9c5d964",
    ("research", 2_000): "d4d84cb18bd9f357",
    ("research", 8_000): "3b3548e77f423112",
    ("support", 2_000): "9c7612a21841df22",
    ("support", 8_000): "66f58726bfe94648",
}
SHAPES = (
    "v1.2.3 1,234 $5 €12.50 12% foo_bar fooBar HTTPServer a.py src/ ../ #12 ABC-12 АБ-7 deadbeef1 2024-01-02 "
    "1.2.2024 123e4567-e89b-12d3-a456-426614174000 日本 имя пример.рф №5 = - _ / . : ! 9 100 é ² ٣ host.com:80 "
    "a.b T03:04:05Z 5元"
)


@pytest.mark.parametrize(("name", "budget"), GOLDEN)
def test_a_sample_is_compressed_to_the_same_bytes_as_ever(name: str, budget: int) -> None:
    messages = compress_messages(load_sample(name), budget).messages
    digest = hashlib.sha256(json.dumps(messages, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:16]
    assert digest == GOLDEN[name, budget], "the output changed: if that is meant, replace the digest"


def test_patterns_that_are_not_tried_would_not_have_matched() -> None:
    rng = random.Random(7)
    everything = anchors._piece(-1)
    for _ in range(20_000):
        chunk = "".join(rng.choices(SHAPES.split(), k=rng.randrange(1, 6)))
        tried = [(m.lastgroup, m.span()) for m in anchors._pieces_of(chunk)]
        assert tried == [(m.lastgroup, m.span()) for m in everything.finditer(chunk)], chunk
