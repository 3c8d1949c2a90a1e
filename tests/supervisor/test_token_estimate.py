"""The estimate of tokens errs on the high side, and not by much."""

import pytest

from watchkeeper.supervisor.token_estimate import rough_cost


@pytest.mark.parametrize(
    ("text", "exact"),  # cl100k
    [
        ("".join(f'row "r{i}c0" "r{i}c1" "r{i}c2"\n' for i in range(40)), 760),
        ("".join(f'e{i} link "Link number {i}"\n' for i in range(40)), 360),
        ("lorem ipsum dolor sit amet " * 40, 202),
        ("def total(rows: list[Row]) -> int:\n    return sum(row.price for row in rows)\n" * 10, 210),
        ("https://example.com/path/to/page?id=12345&x=abcdef0123456789 " * 10, 191),
        ("漢字テスト日本語の文章です。これは例です。" * 10, 180),
        ("Привет, как дела? Это тест длинного русского текста. " * 10, 231),
        ("", 0),
    ],
)
def test_it_is_between_the_exact_count_and_half_as_much_again(text: str, exact: int) -> None:
    assert exact * 0.97 <= rough_cost(text) <= exact * 1.5 + 1
