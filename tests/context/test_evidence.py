"""A harvest keeps what people typed and what an agent will need, in any language and trade, within its budget."""

import json
import random

import pytest

from watchkeeper.context.core.evidence import harvest
from watchkeeper.context.tokens import tokenizer_for

COUNT = tokenizer_for().count


class Talk:
    """A conversation being written: typed words, agent turns, tool calls with results."""

    def __init__(self):
        self.messages = []

    def user(self, text):
        self.messages.append({"role": "user", "content": text})

    def agent(self, text):
        self.messages.append({"role": "assistant", "content": text})

    def tool(self, name, arguments, result):
        call_id = f"call_{len(self.messages)}"
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        call = {"id": call_id, "type": "function", "function": function}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": result})


def filler(seed, lines, words):
    """Tool output that nobody will ask for again."""
    rng = random.Random(seed)
    return "\n".join(" ".join(rng.choices(words, k=9)) for _ in range(lines))


LATIN = ["river", "stone", "cloud", "amber", "field", "north", "quiet", "paper", "window", "garden", "winter"]
CYRILLIC = ["река", "камень", "облако", "поле", "север", "бумага", "окно", "сад", "утро", "зима", "гавань"]
HAN = ["天气晴朗", "河流很长", "山上有雪", "窗外下雨", "早上好", "花园里有树", "北方的冬天", "纸张很薄"]


def support():
    t = Talk()
    t.user("Customer Ilse Braun says order ORD-58213-B never arrived. Please find out and refund if it is lost.")
    t.tool("lookup_order", {"order": "ORD-58213-B"}, "status: shipped\ncarrier: NordPost\ntracking NP4471902265DE\n")
    for n in range(12):
        t.tool("search_help", {"query": f"policy {n}"}, filler(n, 60, LATIN))
    t.agent("Tracking NP4471902265DE stopped in Kassel on 2027-01-19; the parcel counts as lost, so $86.40 go back.")
    t.user("Good. But never refund to the card, she asked for store credit.")
    for n in range(12):
        t.tool("search_help", {"query": f"credit {n}"}, filler(100 + n, 60, LATIN))
    needed = ["ORD-58213-B", "NP4471902265DE", "$86.40", "never refund to the card, she asked for store credit"]
    return t.messages, needed


def browsing():
    t = Talk()
    t.user("Compare the two cheapest night trains from Vienna to Rome on 14 March and book nothing yet.")
    url = "https://rail.example/search?from=VIE&to=ROM&date=2027-03-14"
    t.tool("browser_navigate", {"url": url}, filler(1, 150, LATIN))
    t.tool("browser_snapshot", {}, filler(2, 200, LATIN) + "\nbutton 'Nightjet NJ 40295' ref=e118 price 79,90€\n")
    t.agent("NJ 40295 leaves 19:18 and costs 79,90€ (ref e118).")
    for n in range(20):
        t.tool("browser_click", {"ref": f"e{n}"}, filler(10 + n, 80, LATIN))
    return t.messages, [url, "NJ 40295", "79,90€", "book nothing yet"]


def data_work():
    t = Talk()
    t.user("In sales_q4.parquet the totals by region do not match finance_export.csv; find the rows.")
    t.tool("python", {"code": "df = load_frame('sales_q4.parquet')\ndf.groupby('region_code').net_amount.sum()"}, "")
    t.tool("python", {"code": "print(len(df))"}, "184223\n")
    for n in range(15):
        rng = random.Random(n)
        rows = "\n".join(f"{rng.randint(1, 9)} {rng.random():.4f} {rng.random():.4f}" for _ in range(150))
        t.tool("python", {"code": f"df.sample({n})"}, rows)
    t.agent("The 311 rows with `refund_flag` set twice explain the gap of 40219.75 in region_code EMEA-7.")
    t.tool("python", {"code": "df.describe()"}, filler(7, 200, LATIN))
    return t.messages, ["sales_q4.parquet", "finance_export.csv", "refund_flag", "40219.75", "net_amount"]


def russian():
    t = Talk()
    t.user("Проверь, почему платёж №774120 клиента Орловой не прошёл, и ничего не возвращай без меня.")
    t.tool(
        "журнал", {"запрос": "774120"}, "ошибка шлюза ERR-5120: превышено время ожидания\nузел pay-gw-03.internal.ru\n"
    )
    for n in range(20):
        t.tool("поиск", {"запрос": f"тема {n}"}, filler(n, 60, CYRILLIC))
    t.agent("Причина: узел pay-gw-03.internal.ru отвечал дольше 30 секунд; решено повторить через «Резервный шлюз».")
    for n in range(8):
        t.tool("поиск", {"запрос": f"ещё {n}"}, filler(50 + n, 60, CYRILLIC))
    return t.messages, [
        "№774120",
        "ERR-5120",
        "pay-gw-03.internal.ru",
        "Резервный шлюз",
        "ничего не возвращай без меня",
    ]


def chinese():
    t = Talk()
    t.user("请检查订单 DD-20270214-06 为什么没有发货，没有我的同意不要退款。")
    t.tool("查询订单", {"订单号": "DD-20270214-06"}, "仓库：杭州二号仓\n状态：库存不足\n负责人：周文静\n")
    for n in range(20):
        t.tool("搜索", {"词": f"主题{n}"}, filler(n, 60, HAN))
    t.agent("原因是「杭州二号仓」库存不足，周文静答应 2027-02-20 补货，金额 ¥3,600。")
    for n in range(8):
        t.tool("搜索", {"词": f"其他{n}"}, filler(90 + n, 60, HAN))
    return t.messages, ["DD-20270214-06", "杭州二号仓", "周文静", "2027-02-20", "¥3,600", "没有我的同意不要退款"]


TRADES = [support, browsing, data_work, russian, chinese]


@pytest.mark.parametrize("trade", TRADES)
def test_what_will_be_needed_survives_a_tight_budget(trade):
    messages, needed = trade()
    total = COUNT(json.dumps(messages, ensure_ascii=False))
    text = harvest(messages, budget=600, count=COUNT).render()
    assert total > 5_000
    assert [thing for thing in needed if thing not in text] == []


@pytest.mark.parametrize("trade", TRADES)
@pytest.mark.parametrize("budget", [60, 250, 1_000, 4_000])
def test_the_budget_holds_and_the_same_input_gives_the_same_harvest(trade, budget):
    messages, _ = trade()
    kept = harvest(messages, budget=budget, count=COUNT)
    assert COUNT(kept.render()) == kept.tokens <= budget
    assert kept == harvest(messages, budget=budget, count=COUNT)


def test_every_quoted_line_is_found_in_its_message():
    messages, _ = support()
    for line in harvest(messages, budget=1_500, count=COUNT).evidence:
        source = " ".join(json.dumps(messages[line.index], ensure_ascii=False).replace("\\n", " ").split())
        for piece in line.text.split(", " if line.listed else "\n"):
            assert piece in source


def test_what_stays_visible_is_not_repeated():
    messages, _ = support()
    alone = harvest(messages, budget=300, count=COUNT)
    beside = harvest(messages, budget=300, count=COUNT, visible=[{"role": "assistant", "content": "NP4471902265DE"}])
    shown = lambda kept: "\n".join(line.text for line in kept.evidence if line.listed)  # noqa: E731
    assert any("NP4471902265DE" in line.text for line in alone.evidence)
    assert "NP4471902265DE" not in shown(beside)


def test_a_line_repeated_in_many_results_is_quoted_once():
    t = Talk()
    t.user("watch the deploy")
    for n in range(30):
        t.tool("logs", {"n": n}, "worker retry_budget exhausted on shard eu-17b\n")
    text = harvest(t.messages, budget=500, count=COUNT).render()
    assert text.count("retry_budget exhausted") == 1


def test_a_focus_topic_gets_most_of_the_evidence():
    t = Talk()
    t.user("We have two problems.")
    for n in range(60):
        t.tool(
            "read", {"path": f"billing/invoice_{n}.py"}, f"def invoice_total_{n}(): billing rounds tax_rate_{n} late\n"
        )
        t.tool(
            "read", {"path": f"login/session_{n}.py"}, f"def renew_token_{n}(): login keeps cookie_jar_{n} too long\n"
        )
    plain = harvest(t.messages, budget=900, count=COUNT)
    focused = harvest(t.messages, budget=900, count=COUNT, focus_topic="the login cookie problem")
    assert share_from(plain, t.messages, "login") < 0.55
    assert 0.6 <= share_from(focused, t.messages, "login") <= 0.75


def share_from(kept, messages, word):
    """The share of the evidence that comes from messages with the word."""
    sizes = [(COUNT(line.text), word in json.dumps(messages[line.index])) for line in kept.evidence]
    return sum(size for size, about in sizes if about) / sum(size for size, _ in sizes)


def test_text_that_a_host_put_into_a_user_turn_is_not_quoted_as_typed():
    t = Talk()
    t.user("<environment>\ncwd: /srv/app\n</environment>")
    t.user("rename the flag")
    kept = harvest(t.messages, budget=500, count=COUNT)
    assert [quote.text for quote in kept.user_quotes] == ["rename the flag"]


def test_errors_and_decisions_among_the_evidence_can_be_told():
    t = Talk()
    t.user("go on")
    t.tool("run", {"cmd": "make check"}, "ValueError: bad checksum_seed in loader.py\nall quiet in writer_pool\n")
    t.agent("We keep writer_pool as it is because checksum_seed was never set.")
    kept = harvest(t.messages, budget=800, count=COUNT)
    assert any("bad checksum_seed" in line.text for line in kept.errors)
    assert [line.speaker for line in kept.decisions] == ["assistant"]


def test_odd_messages_are_read_without_failing():
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "look at /srv/a/b.txt"}, {"type": "image_url"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "not json /srv/c/d.txt"}},
            {"id": "2", "type": "function", "function": {"name": "g", "arguments": ""}},
        ]},
        {"role": "tool", "tool_call_id": "1", "content": ""},
        {"role": "tool", "tool_call_id": "unknown", "content": "x" * 300_000},
    ]  # fmt: skip
    text = harvest(messages, budget=300, count=COUNT).render()
    assert "/srv/a/b.txt" in text and "/srv/c/d.txt" in text
    assert harvest([], budget=300, count=COUNT).render() == ""


def test_coverage_counts_what_is_shown():
    messages, _ = data_work()
    small = harvest(messages, budget=120, count=COUNT).coverage
    large = harvest(messages, budget=4_000, count=COUNT).coverage
    assert large.anchors_known == small.anchors_known >= large.anchors_kept > small.anchors_kept
    assert large.user_messages == large.user_messages_quoted == 1
