"""Sample: an agent finds out why customers of a web shop are charged twice, with shell, files, database and browser."""

from __future__ import annotations

import random

from .builder import Sample

SYSTEM = """You are a software agent working in the repository of the web shop "Nordlicht". You have a shell, a file editor, read access to the production replica and a browser.
Rules of the house: never write to production; every change has a test; commit messages are in English; ask before adding a dependency."""

PAYMENT = '''"""Talks to the payment provider."""

from decimal import Decimal

from shop.gateway import Gateway, GatewayTimeout
from shop.models import Attempt, Order

MAX_ATTEMPTS = 3
RETRY_AFTER = (2, 5, 11)  # seconds


class PaymentService:
    def __init__(self, gateway: Gateway, clock) -> None:
        self.gateway = gateway
        self.clock = clock

    def charge(self, order: Order, amount: Decimal) -> Attempt:
        last = None
        for number in range(MAX_ATTEMPTS):
            key = f"{order.number}-{number}"
            try:
                answer = self.gateway.charge(order.token, amount, idempotency_key=key)
            except GatewayTimeout as error:
                last = error
                self.clock.sleep(RETRY_AFTER[number])
                continue
            return Attempt.succeeded(order, answer.charge_id, amount)
        return Attempt.failed(order, reason=str(last))
'''

GATEWAY = '''"""HTTP client of the payment provider."""

import httpx

from shop.settings import GATEWAY_TIMEOUT_S, GATEWAY_URL


class GatewayTimeout(Exception):
    pass


class Gateway:
    def __init__(self, client: httpx.Client | None = None) -> None:
        self.client = client or httpx.Client(base_url=GATEWAY_URL, timeout=GATEWAY_TIMEOUT_S)

    def charge(self, token, amount, *, idempotency_key):
        try:
            response = self.client.post(
                "/v3/charges",
                json={"source": token, "amount_cents": int(amount * 100), "currency": "EUR"},
                headers={"Idempotency-Key": idempotency_key},
            )
        except httpx.ReadTimeout as error:
            raise GatewayTimeout(f"no answer within {GATEWAY_TIMEOUT_S} s") from error
        response.raise_for_status()
        return Charge.from_json(response.json())
'''

TEST = """def test_a_timeout_is_retried_with_the_same_key(gateway, clock, order):
    gateway.will_time_out_after_charging(times=1)
    PaymentService(gateway, clock).charge(order, Decimal("59.90"))
    assert len(set(gateway.keys)) == 1
    assert gateway.charged_cents == 5990
"""


def checkout() -> Sample:
    """About 30,000 tokens; ends with the person's next request."""
    rng = random.Random(20_260_114)
    s = Sample()
    s.system(SYSTEM)
    s.user(
        "Since Monday some customers are charged twice for one order. Support ticket is NL-48213, the first report is order "
        "2026-0107-5531 (59.90 EUR, charged at 09:14:07 and 09:14:20). Please find the cause. Important: do not refund "
        "anything yourself, Katrin from accounting does that from a list we give her. And leave shop/legacy/ alone, it is "
        "being removed by another team."
    )
    s.need("NL-48213", "2026-0107-5531", "Katrin", "shop/legacy/")
    s.calls(
        "I will look at what was deployed since Monday, and at the payment code.",
        ("run", {"command": "git log --since=2026-01-10 --oneline --stat -- shop/ | head -120"}, _git_log(rng)),
        ("read_file", {"path": "shop/payment.py"}, _numbered(PAYMENT)),
        ("read_file", {"path": "shop/gateway.py"}, _numbered(GATEWAY)),
    )
    s.need("8c41f7e", "shop/payment.py")
    s.calls(
        "The idempotency key contains the number of the attempt, so a retry after a timeout is a new charge. Checking "
        "against the data whether that explains all cases.",
        (
            "sql",
            {
                "database": "replica-2",
                "query": "select order_number, charge_id, amount_cents, created_at, idempotency_key from charges where "
                "created_at >= '2026-01-12' and order_number in (select order_number from charges group by 1 having "
                "count(*) > 1) order by order_number, created_at",
            },
            _charges(rng),
        ),
        ("run", {"command": "kubectl logs deploy/shop-web --since=48h | grep -i 'gateway' | tail -n 140"}, _log(rng)),
    )
    s.need("replica-2", "GATEWAY_TIMEOUT_S")
    s.agent(
        'The cause is found: commit 8c41f7e ("Payment: distinct keys per attempt") put the number of the attempt into the '
        "idempotency key, and on the same day GATEWAY_TIMEOUT_S went from 30 to 8. The provider charges, answers after "
        "9-12 seconds, we give up at 8 and try again with another key. 37 orders are affected, all since 2026-01-12 08:52."
    )
    s.user(
        "Good find. Keep the timeout at 8 s (the checkout page must answer fast), but make the key stable per order and "
        'amount. Zusatz von Katrin: "Bitte die Liste als CSV mit Semikolon, Betrag mit Komma, Datei doppelbelastungen.csv, '
        'und Kunden aus der Schweiz (CHF) getrennt, Konto 4711-08." Also look at the checkout page itself, a customer '
        "says that the button can be pressed twice."
    )
    s.need("doppelbelastungen.csv", "4711-08", "stable per order")
    s.calls(
        "First a failing test, then the page.",
        (
            "edit_file",
            {"path": "tests/test_payment.py", "after": "def test_a_declined_card", "text": TEST},
            "tests/test_payment.py: 6 lines added",
        ),
        ("run", {"command": "pytest tests/test_payment.py -x -q"}, _pytest_failure(rng)),
        (
            "browser_navigate",
            {"url": "https://staging.nordlicht.example/checkout?cart=7f3a-91"},
            "Checkout - Nordlicht (200)",
        ),
    )
    for page in range(5):
        s.calls(
            None,
            ("browser_snapshot", {"full": True}, _snapshot(rng, page)),
            ("browser_console", {"level": "warning"}, _console(rng, page)),
        )
    s.need("ref=e1147", "data-once", "checkout.bundle.9d2c.js")
    s.agent(
        "The page: the button [ref=e1147] has no data-once attribute since checkout.bundle.9d2c.js; the guard in "
        "static/js/submit_guard.js is loaded but finds no element. Two quick clicks send two POST /api/v2/orders. That "
        "makes a second order, not a second charge of one order, so it is a different fault: I will note it as NL-48260."
    )
    s.need("static/js/submit_guard.js", "NL-48260", "/api/v2/orders")
    for number in range(10):
        path = f"shop/flows/step_{number:02d}.py"
        s.calls(
            "Looking for other callers that build their own keys." if number == 0 else None,
            ("read_file", {"path": path}, _numbered(_module(rng, number))),
            ("run", {"command": f"rg -n 'idempotency_key' {path} tests/flows"}, _grep(rng, number)),
        )
    s.need("shop/flows/step_07.py", "KEY_SALT_2024")
    s.agent(
        "Only shop/flows/step_07.py builds a key of its own: it adds KEY_SALT_2024, which must stay, because gift cards "
        "that were begun before the change are completed with it."
    )
    s.calls(
        "Changing the key.",
        (
            "edit_file",
            {
                "path": "shop/payment.py",
                "replace": 'key = f"{order.number}-{number}"',
                "with": 'key = f"{order.number}-{int(amount * 100)}"',
            },
            "shop/payment.py: 1 line changed",
        ),
        ("run", {"command": "pytest tests -q"}, _pytest_ok(rng)),
        (
            "run",
            {
                "command": "git switch -c fix/nl-48213-stable-key && git commit -qam 'Payment: one key per order and amount'"
            },
            "[fix/nl-48213-stable-key 3e90ab2] Payment: one key per order and amount\n 2 files changed, 8 insertions(+), 1 deletion(-)",
        ),
    )
    s.need("fix/nl-48213-stable-key", "3e90ab2")
    s.user("Now write the list for Katrin as she asked, and open the merge request. Who are the Swiss customers in it?")
    return s


def _numbered(text: str) -> str:
    return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.splitlines(), 1))


def _git_log(rng: random.Random) -> str:
    words = ["Cart", "Search", "Mail", "Stock", "Admin", "Invoices", "Images", "Vouchers"]
    does = ["round prices once", "cache the sidebar", "log less", "drop unused column", "faster list", "new wording"]
    lines = []
    for n in range(26):
        sha = f"{rng.getrandbits(28):07x}"
        what = f"{rng.choice(words)}: {rng.choice(does)}"
        if n == 9:
            sha, what = "8c41f7e", "Payment: distinct keys per attempt"
        if n == 11:
            sha, what = "b20d96a", "Settings: GATEWAY_TIMEOUT_S 30 -> 8"
        lines.append(f"{sha} {what}")
        for _ in range(rng.randint(1, 3)):
            lines.append(
                f" shop/{what.split(':')[0].lower()}_{rng.randint(1, 9)}.py | {rng.randint(2, 60)} {'+' * rng.randint(1, 20)}"
            )
    return "\n".join(lines)


def _charges(rng: random.Random) -> str:
    rows = ["order_number\tcharge_id\tamount_cents\tcreated_at\tidempotency_key"]
    for n in range(37):
        order = "2026-0107-5531" if n == 0 else f"2026-01{rng.randint(12, 14)}-{rng.randint(1000, 9999)}"
        cents = 5990 if n == 0 else rng.randint(900, 24_000)
        second = rng.randint(0, 40)
        for attempt in range(2):
            at = f"2026-01-1{rng.randint(2, 4)} {rng.randint(8, 21):02d}:{rng.randint(0, 59):02d}:{second + 13 * attempt:02d}"
            currency = "-CHF" if n in (5, 19, 30) else ""
            rows.append(f"{order}\tch_{rng.getrandbits(40):010x}\t{cents}\t{at}\t{order}-{attempt}{currency}")
    return "\n".join(rows) + "\n(74 rows)"


def _log(rng: random.Random) -> str:
    lines = []
    for n in range(130):
        pod = f"shop-web-6b9f-{rng.choice(['x2k', 'p7q', 'm4d'])}"
        took = rng.uniform(0.3, 12.4)
        kind = (
            "WARNING gateway: no answer within 8 s, trying again" if took > 8 else "INFO gateway: POST /v3/charges 201"
        )
        lines.append(
            f"2026-01-13T{9 + n // 30:02d}:{n * 2 % 60:02d}:{rng.randint(0, 59):02d}Z {pod} {kind} took={took:.2f}s request={rng.getrandbits(32):08x}"
        )
    return "\n".join(lines)


def _pytest_failure(rng: random.Random) -> str:
    return (
        "F\n=================================== FAILURES ===================================\n"
        "________________ test_a_timeout_is_retried_with_the_same_key ________________\n\n"
        "    assert len(set(gateway.keys)) == 1\n"
        "E   AssertionError: assert 2 == 1\n"
        "E    +  where 2 = len({'2026-0001-0001-0', '2026-0001-0001-1'})\n\n"
        "tests/test_payment.py:88: AssertionError\n"
        f"1 failed, {rng.randint(20, 30)} deselected in 0.84s"
    )


def _pytest_ok(rng: random.Random) -> str:
    lines = [f"tests/flows/test_step_{n:02d}.py {'.' * rng.randint(8, 40)}" for n in range(30)]
    return "\n".join([*lines, "412 passed, 3 xfailed in 48.31s"])


def _snapshot(rng: random.Random, page: int) -> str:
    titles = ["Cart", "Address", "Delivery", "Payment", "Review"]
    goods = ["wool blanket", "storm lantern", "tea tin", "reading lamp", "enamel mug", "rain jacket", "map of Lapland"]
    lines = [f"- document: {titles[page]} - Nordlicht"]
    for n in range(75):
        ref = f"e{1000 + page * 40 + n}"
        thing = rng.choice(goods)
        kind = rng.choice(["link", "text", "spinbutton", "img", "listitem"])
        lines.append(f'  - {kind} "{thing}, {rng.randint(9, 180)}.{rng.randint(0, 9)}0 EUR" [ref={ref}]')
    if page == 4:
        lines.append('  - button "Buy now, 59.90 EUR" [ref=e1147] onclick=submitOrder()')
        lines.append("  - script /static/checkout.bundle.9d2c.js")
    return "\n".join(lines)


def _console(rng: random.Random, page: int) -> str:
    lines = [f"[warning] font Karla-{rng.randint(300, 700)}.woff2 was preloaded but not used within a few seconds"]
    if page == 4:
        lines.append("[warning] submit_guard: no element with data-once found (static/js/submit_guard.js:14)")
    return "\n".join(lines)


def _module(rng: random.Random, number: int) -> str:
    names = ["voucher", "stock", "address", "parcel", "invoice", "points", "currency", "gift_card", "review", "archive"]
    name = names[number]
    lines = [f'"""Checkout step {number}: {name}."""', "", "from shop.models import Order", ""]
    if number == 7:
        lines += ["KEY_SALT_2024 = 'nl-gift'  # gift cards begun before 2025 are completed with it", ""]
    for n in range(12):
        limit = rng.randint(2, 900)
        lines += [
            f"def {name}_{rng.choice(['check', 'apply', 'load', 'price', 'mail'])}_{n}(order: Order) -> bool:",
            f"    if order.total_cents < {limit * 10} or order.{name}_state == {rng.randint(1, 9)}:",
            f"        raise {name.title().replace('_', '')}Refused({limit}, order.number)",
            f"    return order.{name}_count <= {rng.randint(1, 40)}",
            "",
        ]
    return "\n".join(lines)


def _grep(rng: random.Random, number: int) -> str:
    if number != 7:
        return (
            f"tests/flows/test_step_{number:02d}.py:{rng.randint(10, 200)}: # idempotency_key comes from PaymentService"
        )
    return (
        'shop/flows/step_07.py:51:    key = f"{order.number}-{card.serial}-{KEY_SALT_2024}"\n'
        "shop/flows/step_07.py:52:    gateway.charge(card.token, amount, idempotency_key=key)"
    )


__all__ = ["checkout"]
