"""A leakage audit of 100,000 rows: chat rows of 20 to 60 words, a quarter of them made from a few thousand templates.

Each row has a customer and an order; 80 in 100 are for training. By the clock it may take ten seconds on two cores;
the processor's seconds are reported beside, since the machine is often shared.
"""

from __future__ import annotations

import random
from typing import Any

from benches.report import Row, Settings, timed
from verifiers.data.identity import row_digest
from verifiers.data.leakage import audit, entity_fields

LIMIT_S = 10.0
ROWS = {True: 100_000, False: 10_000}
ROUNDS = 3
VOCABULARY = 8_000
TEMPLATES = 4_000


def make_rows(count: int) -> list[dict[str, Any]]:
    """Rows from a fixed seed: no two alike, some of one template."""
    source = random.Random(7)  # noqa: S311 - choices, no secrets
    vocabulary = [
        "".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=source.randint(2, 9)))
        for _ in range(VOCABULARY)
    ]
    weights = [1 / (rank + 3) for rank in range(VOCABULARY)]
    templates = [source.choices(vocabulary, weights, k=30) for _ in range(TEMPLATES)]
    rows = []
    for number in range(count):
        words = source.choices(vocabulary, weights, k=source.randint(20, 60))
        if number % 4 == 0:
            words = [*source.choice(templates), *words[:20]]
        order = f"#W{source.randrange(10**7):07}"
        text = f"{' '.join(words).capitalize()}, order {order}."
        answer = " ".join(source.choices(vocabulary, weights, k=20))
        turns = [
            {"role": "system", "content": "You are a support agent."},
            {"role": "user", "content": text},
            {"role": "assistant", "content": answer},
        ]
        rows.append(
            {"id": f"r{number}", "messages": turns, "customer_id": f"c{number}", "order_id": order}
        )
    return rows


def run(settings: Settings) -> list[Row]:
    """The best of some rounds, by the clock and by the processor."""
    count = ROWS[settings.full]
    rows = make_rows(count)
    roles = ("train",) * 8 + ("validation", "test")
    role_of = {row_digest(row): roles[number % 10] for number, row in enumerate(rows)}
    entities = entity_fields(rows)
    spent = []
    for number in range(ROUNDS):
        settings.say(f"auditing {count:,} rows, round {number + 1} of {ROUNDS}")
        found, took = timed(audit, rows, role_of, entities)
        assert found.settings["entities"] == ["customer_id", "order_id"]  # the whole audit was done
        spent.append(took)
    limit = LIMIT_S if settings.full else None
    details = {"best_of": ROUNDS, "rounds": [item.as_json() for item in spent]}
    name = f"leakage audit, {count:,} rows"
    return [
        Row(
            name, round(min(item.wall_s for item in spent), 2), "s", "less", limit, details=details
        ),
        Row(f"{name}, processor", round(min(item.cpu_s for item in spent), 2), "s", "less", limit),
    ]
