"""Sample: a support agent moves a customer's installation. Chinese, Russian and English; no code at all."""

from __future__ import annotations

import random

from .builder import Sample


def support() -> Sample:
    """About 20,000 tokens."""
    rng = random.Random(5)
    s = Sample()
    s.system("你是客服助手，可以查询工单、合同和仓库系统。回答使用客户的语言。不得承诺合同以外的折扣。")
    s.user(
        "客户编号 HZ-20418（杭州明远仪器）要求把三台设备从旧厂房搬到新厂房，地址是滨江区聚才路 88 号 3 幢。"
        "设备序列号：MX700-11873、MX700-11874、MX720-02291。客户希望在 3 月 6 日之前完成，不能在周末施工。请先查合同里搬迁服务的条款。"
    )
    s.need("HZ-20418", "聚才路 88 号 3 幢", "MX720-02291", "3 月 6 日", "不能在周末施工")
    for n in range(16):
        s.calls(
            f"正在查询第 {n + 1} 份文件。",
            ("contracts", {"customer": "HZ-20418", "section": n + 1}, _contract(rng, n)),
        )
    s.agent(
        "合同 KT-2023-0917 第 7.4 条：每年一次免费搬迁，距离不超过 40 公里；校准另收 3,200 元/台。两处厂房相距 23 公里。"
    )
    s.need("KT-2023-0917", "7.4", "3,200 元/台")
    s.user(
        "Коллеги из Новосибирска тоже спрашивают: для их установки МХ720-02305 нужен кран не менее 5 тонн, пропуск оформляет "
        "Ирина Соколова до 27 февраля, телефон дежурного 8-383-555-01-44. Добавьте это в план и проверьте склад запчастей."
    )
    s.need("МХ720-02305", "Ирина Соколова", "27 февраля", "8-383-555-01-44")
    for n in range(18):
        s.calls(None, ("warehouse", {"site": "NSK" if n % 2 else "HGH", "page": n + 1}, _stock(rng, n)))
    s.agent(
        "Деталь B-4471 (уплотнение) есть только на складе HGH, полка R-17, 2 штуки; срок доставки в Новосибирск 9 дней."
    )
    s.need("B-4471", "R-17")
    for n in range(10):
        s.calls(
            "查看工单历史。" if n == 0 else None, ("tickets", {"customer": "HZ-20418", "page": n + 1}, _tickets(rng, n))
        )
    s.user(
        "Please write one plan for both moves now, each part in the language of its customer, with dates and part numbers."
    )
    return s


def _contract(rng: random.Random, n: int) -> str:
    subjects = ["保修", "备件", "校准", "培训", "软件升级", "现场服务", "搬迁", "付款", "保密", "责任限制"]
    lines = [f"合同 KT-2023-0917 第 {n + 1} 章 {subjects[n % len(subjects)]}"]
    for clause in range(1, 9):
        days, amount = rng.randint(3, 90), rng.randint(2, 90) * 100
        lines.append(
            f"{n + 1}.{clause} 乙方应在收到书面通知后 {days} 个工作日内完成{subjects[(n + clause) % len(subjects)]}服务，"
            f"费用不超过人民币 {amount:,} 元；超出部分由双方另行书面约定。"
        )
    if n == 6:
        lines.append("7.4 甲方每个合同年度享有一次免费搬迁，运输距离不超过 40 公里；搬迁后的校准按 3,200 元/台收取。")
    return "\n".join(lines)


def _stock(rng: random.Random, n: int) -> str:
    names = ["уплотнение", "насос", "датчик", "кабель", "фильтр", "плата", "ремень", "подшипник"]
    lines = ["артикул   наименование     полка   количество   поставка"]
    for _ in range(14):
        part = f"{rng.choice('ABCDE')}-{rng.randint(1000, 9999)}"
        lines.append(
            f"{part}    {rng.choice(names):<12} {rng.choice('KLMNPQ')}-{rng.randint(10, 40)}    {rng.randint(0, 60)} шт.   "
            f"{rng.randint(1, 28):02d}.{rng.randint(2, 4):02d}.2026"
        )
    if n == 8:
        lines.append("B-4471    уплотнение   R-17    2 шт.   только HGH")
    return "\n".join(lines)


def _tickets(rng: random.Random, n: int) -> str:
    states = ["已关闭", "处理中", "等待客户", "等待备件"]
    lines = []
    for _ in range(9):
        number = rng.randint(10_000, 99_999)
        lines.append(
            f"工单 {number}：MX700-{rng.randint(11_000, 11_999)} 报警 E-{rng.randint(10, 99)}，{rng.choice(states)}，工程师编号 {rng.randint(100, 400)}"
        )
    return "\n".join(lines)


__all__ = ["support"]
