"""Weights that are worthless under a digest that fits: signed and consistent in themselves, and found by their own codes."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from other_plans import another_plan
from test_forgeries import Forger, is_found_alone, publish

from ledger.blobs import SAFETENSORS
from ledger.record import Record
from verifiers.learning.learner_state import ADAPTER_FILE, CONFIG_FILE, OPTIMIZER_FILE
from verifiers.learning.tensors import file_state_digest

pytestmark = pytest.mark.slow  # whoever comes first waits for the job


_THERE = {"scheduler": False, "sampler": False}
"""What of an honest last checkpoint does not fit step 1."""


def _honest_bytes(forger: Forger, path: str) -> bytes:
    files = {item["path"]: item["digest"] for item in forger.get("checkpoint").body["files"]}
    return forger.ledger.blobs.read(files[path])


def _saved_as(
    forger: Forger,
    data: bytes,
    others: dict[str, bytes | None] | None = None,
    run: Record | None = None,
    there: dict[str, bool] | None = None,
) -> Record:
    """A run of one update whose acknowledged state is that of these bytes, and whose checkpoint holds them.

    Of its other files some have other bytes, some are more than there were, and those without bytes are left out.
    """
    run = run or forger.opens_a_run()
    batch = forger.batches(run, forger.ledger.of_kind("batch.built")[0].body["rows"])
    honest = forger.ledger.of_kind("update.acknowledged")[0].body
    after = {"scheme": "tensors", "value": file_state_digest(io.BytesIO(data))}
    refs: dict[str, str | list[str]] = {"run": run.id, "batch": [batch.id]}
    update = forger.ledger.append("update.acknowledged", {**honest, "after": after}, refs)
    files = [dict(item) for item in forger.get("checkpoint").body["files"]]
    for path, content in {ADAPTER_FILE: data, **(others or {})}.items():
        files = [item for item in files if item["path"] != path]
        if content is not None:
            blob = forger.ledger.blobs.put(content, SAFETENSORS)
            files.append({"path": path, "digest": blob.digest, "size": blob.size})
    files.sort(key=lambda item: item["path"])
    return publish(forger, run, update, files, there)


def _tensors_of(forger: Forger) -> dict[str, Any]:
    return dict(safetensors_numpy().load(_honest_bytes(forger, ADAPTER_FILE)))


def safetensors_numpy() -> Any:
    """The library's own reader and writer."""
    return pytest.importorskip("safetensors.numpy")


def _an_adapter_without_tensors(forger: Forger) -> Record:
    return _saved_as(forger, safetensors_numpy().save({}))


def _an_adapter_that_learnt_nothing(forger: Forger) -> Record:
    tensors = _tensors_of(forger)
    zeroed = {name: a * 0 if ".lora_B." in name else a for name, a in tensors.items()}
    return _saved_as(forger, safetensors_numpy().save(zeroed))


def _an_adapter_with_a_layer_too_few(forger: Forger) -> Record:
    tensors = _tensors_of(forger)
    kept = {name: array for name, array in tensors.items() if "layers.1." not in name}
    return _saved_as(forger, safetensors_numpy().save(kept))


def _an_adapter_that_is_not_finite(forger: Forger) -> Record:
    tensors = _tensors_of(forger)
    return _saved_as(
        forger,
        safetensors_numpy().save({name: array + math.inf for name, array in tensors.items()}),
    )


def _an_adapter_of_another_base(forger: Forger) -> Record:
    value = json.loads(_honest_bytes(forger, CONFIG_FILE))
    config = json.dumps({**value, "base_model_name_or_path": "another"}).encode()
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), {CONFIG_FILE: config})


def _an_adapter_of_another_scale(forger: Forger) -> Record:
    value = json.loads(_honest_bytes(forger, CONFIG_FILE))
    config = json.dumps({**value, "lora_alpha": 80_000}).encode()
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), {CONFIG_FILE: config})


def _an_adapter_for_other_places(forger: Forger) -> Record:
    value = json.loads(_honest_bytes(forger, CONFIG_FILE))
    config = json.dumps({**value, "target_modules": ["nothing"]}).encode()
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), {CONFIG_FILE: config})


def _an_adapter_without_its_configuration(forger: Forger) -> Record:
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), {CONFIG_FILE: None})


def _a_pickle_beside_the_weights(forger: Forger) -> Record:
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), {"optimizer.pt": b"pickled"})


def _ends_with(
    forger: Forger, change: Callable[[dict[str, Any]], dict[str, Any]], **account: Any
) -> Record:
    """A second run of one update that completes, what it leaves changed; everything before is honest."""
    plan = another_plan(forger.ledger, forger.get("plan"), budget_updates=1, steps=1, save_steps=7)
    body = {**forger.get("run").body, "seen": forger.ledger.seen().model_dump()}
    run = forger.ledger.append("run.launched", body, {"plan": plan.id})
    checkpoint = _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), run=run, there=_THERE)
    honest = forger.ledger.of_kind("run.ended")[0].body
    counters = {**honest["counters"], "updates": 1, "datums": checkpoint.body["spent_datums"]}
    weights = {**honest["weights"], "state": checkpoint.body["state"]}
    refs: dict[str, str | list[str]] = {
        "run": run.id, "last_update": str(checkpoint.ref("update")), "checkpoint": checkpoint.id,
    }  # fmt: skip
    ended = {**honest, "counters": counters, "weights": change(weights), "metrics": None, **account}
    return forger.ledger.append("run.ended", ended, refs)


def _weights_left_of_another_norm(forger: Forger) -> Record:
    return _ends_with(forger, lambda weights: {**weights, "norm": "1.5"})


def _weights_left_of_more_numbers(forger: Forger) -> Record:
    return _ends_with(forger, lambda weights: {**weights, "parameters": 7})


def _weights_left_with_a_line_too_few(forger: Forger) -> Record:
    def change(weights: dict[str, Any]) -> dict[str, Any]:
        return {**weights, "tensors": forger.blob(forger.lines(weights["tensors"])[1:])}

    return _ends_with(forger, change)


def _an_optimizer_that_is_not_finite(forger: Forger) -> Record:
    moments = dict(safetensors_numpy().load(_honest_bytes(forger, OPTIMIZER_FILE)))
    name = next(name for name in moments if name.startswith("exp_avg."))
    moments[name] = moments[name] * math.nan
    others: dict[str, bytes | None] = {OPTIMIZER_FILE: safetensors_numpy().save(moments)}
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), others, there=_THERE)


def _a_file_that_no_checkpoint_has(forger: Forger) -> Record:
    more: dict[str, bytes | None] = {"notes.txt": b"what else was learnt"}
    return _saved_as(forger, _honest_bytes(forger, ADAPTER_FILE), more, there=_THERE)


def _figures_of_another_run(forger: Forger) -> Record:
    honest = forger.ledger.of_kind("run.ended")[0].body
    return _ends_with(forger, lambda weights: weights, metrics=honest["metrics"])


def _rows_that_the_plan_does_not_count(forger: Forger) -> Record:
    honest = forger.ledger.of_kind("run.ended")[0].body["rows"]
    rows = {**honest, "dropped": honest["dropped"] + 1}
    return _ends_with(forger, lambda weights: weights, rows=rows)


def _a_model_of_another_tree(forger: Forger) -> Record:
    return forger.again(forger.get("model"), tree=forger.get("checkpoint").body["tree"])


def _a_budget_beyond_the_schedule(forger: Forger) -> Record:
    plan = forger.get("plan")
    return another_plan(
        forger.ledger, plan, budget_updates=plan.body["budget_updates"] + 1, seed=4712
    )


def _nothing_forged(forger: Forger) -> Record:
    return _ends_with(forger, lambda weights: weights)


FORGERIES: list[tuple[Callable[[Forger], Record], str]] = [
    (_an_adapter_without_tensors, "WEIGHTS_EMPTY"),
    (_an_adapter_that_learnt_nothing, "ADAPTER_UNTRAINED"),
    (_an_adapter_with_a_layer_too_few, "WEIGHTS_OTHER"),
    (_an_adapter_that_is_not_finite, "WEIGHTS_NOT_FINITE"),
    (_an_adapter_of_another_base, "BASE_OTHER"),
    (_an_adapter_of_another_scale, "CHECKPOINT_WRONG"),
    (_an_adapter_for_other_places, "CHECKPOINT_WRONG"),
    (_an_adapter_without_its_configuration, "CHECKPOINT_WRONG"),
    (_a_pickle_beside_the_weights, "CHECKPOINT_WRONG"),
    (_weights_left_of_another_norm, "COMPLETION_WRONG"),
    (_weights_left_of_more_numbers, "COMPLETION_WRONG"),
    (_weights_left_with_a_line_too_few, "COMPLETION_WRONG"),
    (_an_optimizer_that_is_not_finite, "OPTIMIZER_WRONG"),
    (_a_file_that_no_checkpoint_has, "CHECKPOINT_WRONG"),
    (_figures_of_another_run, "ACCOUNT_WRONG"),
    (_rows_that_the_plan_does_not_count, "ACCOUNT_WRONG"),
    (_a_model_of_another_tree, "MODEL_WRONG"),
    (_a_budget_beyond_the_schedule, "PLAN_WRONG"),
    (_nothing_forged, ""),
]


@pytest.mark.parametrize(
    ("forge", "code"),
    [pytest.param(*row, id=row[0].__name__.replace("_", " ").strip()) for row in FORGERIES],
)
def test_worthless_weights_are_found(person, forge, code):
    """Each way in which weights can be worthless under a fitting digest is the one finding; saved honestly there is none."""
    with person.opens() as ledger:
        forger = Forger(ledger, person.ids)
        forged = forge(forger)
        if code:
            is_found_alone(person, forger, forged, code, "V18")
            return
        ledger.seal()
    assert person.verify().result["findings"] == []
