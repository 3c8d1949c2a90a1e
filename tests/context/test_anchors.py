"""Identifiers are recognised by shape, in any script, and copied character for character."""

import pytest

from watchkeeper.context.core.anchors import MAX_CHUNK, extract


@pytest.mark.parametrize(
    ("text", "anchor", "kind"),
    [
        ("see https://shop.example/orders/77?tab=items, then pay", "https://shop.example/orders/77?tab=items", "url"),
        ("write to mara.lind@example.org today", "mara.lind@example.org", "email"),
        ("at /srv/app/jobs/retry.py:42: in run", "/srv/app/jobs/retry.py", "path"),
        (r"open C:\Users\mara\notes\plan.txt now", r"C:\Users\mara\notes\plan.txt", "path"),
        ("edit `pricing_rules.yaml` first", "pricing_rules.yaml", "file"),
        ("reverted in 9fceb02d", "9fceb02d", "sha"),
        ("job 123e4567-e89b-12d3-a456-426614174000 hangs", "123e4567-e89b-12d3-a456-426614174000", "uuid"),
        ("closes #4821", "#4821", "ref"),
        ("ticket SUP-20931 is yours", "SUP-20931", "ref"),
        ("pinned to v2.14.0-rc1", "v2.14.0-rc1", "version"),
        ("due 2027-03-14 at noon", "2027-03-14", "date"),
        ("refund $1,249.50 in full", "$1,249.50", "money"),
        ("raise retryBudget slowly", "retryBudget", "symbol"),
        ("set MAX_IN_FLIGHT to two", "MAX_IN_FLIGHT", "symbol"),
        ("row count 48213 after the join", "48213", "number"),
        ('he saw "Payment could not be taken" twice', "Payment could not be taken", "quote"),
        ("Счёт №88417 от 05.02.2027 не оплачен", "№88417", "ref"),
        ("Счёт №88417 от 05.02.2027 не оплачен", "05.02.2027", "date"),
        ("нажмите «Повторить оплату» ещё раз", "Повторить оплату", "quote"),
        ("订单号：DD-20270214-06，金额 ¥3,600。", "DD-20270214-06", "id"),
        ("订单号：DD-20270214-06，金额 ¥3,600。", "¥3,600", "money"),
        ("请打开「退款申请」页面", "退款申请", "quote"),
        ("保存到 报表/二月销售.xlsx 里", "报表/二月销售.xlsx", "path"),
    ],
)
def test_an_identifier_is_found_with_its_kind(text, anchor, kind):
    assert extract(text).get(anchor) == kind


def test_ordinary_prose_has_no_anchors():
    assert extract("We looked at it again and, well, nothing was wrong with either/or of them.") == {}


def test_an_address_is_not_also_reported_as_a_path():
    assert list(extract("https://docs.example/guide/setup/linux").values()) == ["url"]


def test_a_blob_without_blanks_is_not_searched_for_names():
    assert extract("iVBORw0KGgo/AAAA_BBBB" * MAX_CHUNK) == {}
