"""How long a leakage audit of 100,000 rows takes, in processor seconds and by the clock; nothing here fails a build.

    python tools/bench/audit.py [ROWS]

Prints one JSON object. The limit is 10 seconds on two cores. The rows are chat rows of 20 to 60 words, a quarter of
them made from a few thousand templates, with a customer and an order each, 80 in 100 of them for training.
"""

from __future__ import annotations

import json
import random
import sys
import time
from typing import Any

from verifiers.data.identity import row_digest
from verifiers.data.leakage import audit, entity_fields

LIMIT_S = 10.0
ROWS = 100_000
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


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    rows = make_rows(count)
    roles = ("train",) * 8 + ("validation", "test")
    role_of = {row_digest(row): roles[number % 10] for number, row in enumerate(rows)}
    entities = entity_fields(rows)
    begun, cpu = time.perf_counter(), time.process_time()
    found = audit(rows, role_of, entities)
    wall_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    report = {
        "rows": count,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "limit_s": LIMIT_S if count == ROWS else None,
        "levels": found.levels,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
