"""The whole job in miniature: rows that a tiny model can read, and a person who types every command of it."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import desk_world
import pytest

from ledger.book import Ledger
from ledger.ed25519 import PrivateKey
from runners.cli.main import main
from verifiers.rewards.desk_calls import Call
from verifiers.rewards.desk_records import Order
from verifiers.rewards.desk_rules import expected_call

ORIGIN = "example.com/small-desk"
WAIT_S = 300.0
SYSTEM = "You are a desk. Reply with one JSON tool call."
WORDINGS = (
    "Please cancel my order, it was placed by mistake and nobody wants these things any more",
    "I changed my mind about the lamp yesterday evening, stop everything before it gets shipped out",
    "Would you kindly call off what I bought, another shop had exactly this for less",
    "My sister already owns such a bed, so there is no reason left to send ours",
    "Drop the purchase from last week, we are moving abroad and cannot take anything along",
    "Undo it all, the colour looked different on my screen than on the printed catalogue",
    "We ordered twice because the page hung, remove this second one from your books today",
    "Nothing of this is needed since our office closed, withdraw the request as you think best",
    "A birthday surprise was spoiled, therefore kindly revoke whatever stands under that number",
    "Our dog passed away, do not deliver the bed, and accept thanks for being understanding",
)
QUESTIONS = (
    "When do I see my money again", "How soon is a refund here", "What day am I repaid then",
    "Is reimbursement quick with you", "Tell me the waiting time please", "Will funds return at once",
    "Say how fast this gets settled", "Which delay should one expect", "May I count on it by Friday",
    "Does paying back take weeks",
)  # fmt: skip
SFT = {
    "steps": 6, "batch_size": 4, "learning_rate": 0.01, "lora_rank": 4, "lora_alpha": 8,
    "max_length": 256, "threads": 1,
}  # fmt: skip
EVAL = {"desk_cases": 4, "dialogue_cases": 2, "max_new_tokens": 24, "threads": 1}


def small_rows() -> list[dict[str, Any]]:
    """Ten customers with five rows each: twins of chat rows and desk cases, and one dialogue."""
    return [row for number in range(len(WORDINGS)) for row in _customer(number)]


def _customer(number: int) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    customer = f"customer-{number}"
    for status in ("pending", "delivered"):
        order = desk_world.order(
            order_id=f"#W{number}-{status}", owner_id=customer, caller_id=customer, status=status
        )
        made += [_desk(number, order), _chat(number, order)]
    return [*made, _dialogue(number)]


def _prompt(number: int, order: Order) -> list[dict[str, str]]:
    text = f"{WORDINGS[number]}. Owner: caller. Status: {order.status}."
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}]


def _desk(number: int, order: Order) -> dict[str, Any]:
    name = f"desk-{number}-{order.status}"
    return desk_world.desk_case(
        name, order, desk_world.CANCEL,
        twin=f"twin-{number}", request=WORDINGS[number], messages=_prompt(number, order),
    )  # fmt: skip


def _chat(number: int, order: Order) -> dict[str, Any]:
    answer: Call = expected_call(order, desk_world.CANCEL)
    messages = [*_prompt(number, order), {"role": "assistant", "content": answer.text()}]
    return {
        "id": f"chat-{number}-{order.status}",
        "messages": messages,
        "family": "cancel",
        "customer_id": order.caller_id,
        "order_id": order.order_id,
    }


def _dialogue(number: int) -> dict[str, Any]:
    return {
        "id": f"dialogue-{number}",
        "kind": "dialogue",
        "family": "refund_time",
        "customer_id": f"customer-{number}",
        "policy_facts": ["Gift cards are refunded immediately."],
        "messages": [{"role": "user", "content": f"{QUESTIONS[number]}?"}],
        "reference": "You paid with a gift card, so it is refunded immediately.",
        "must_avoid": ["5 to 7 business days"],
    }


def write_lines(path: Path, values: list[dict[str, Any]]) -> Path:
    """The values as JSON Lines."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def make_judge(folder: Path, tokenizer_of: Path) -> Path:
    """A tiny model of another family that shares the tokenizer of the first."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tokenizer_of)
    torch.manual_seed(11)
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        initializer_range=0.2,
    )
    transformers.Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@dataclass(frozen=True)
class Answer:
    """What a command left behind: exit code, and its JSON object."""

    code: int
    object: dict[str, Any]

    @property
    def result(self) -> dict[str, Any]:
        """The result; a command that failed fails the test."""
        assert "result" in self.object, self.object
        return self.object["result"]

    @property
    def error(self) -> dict[str, Any]:
        """The error."""
        assert "error" in self.object, self.object
        return self.object["error"]


@dataclass
class Person:
    """Somebody with a folder who types commands.

    Attributes:
        folder: holds the ledger, keys, state, shelf and configuration files.
        ids: ids of the records made so far, by what they are.
    """

    folder: Path
    ids: dict[str, str] = field(default_factory=dict)

    @property
    def ledger(self) -> Path:
        """The ledger folder."""
        return self.folder / "ledger"

    def environment(self) -> dict[str, str]:
        """Variables that keep everything inside the folder."""
        return {
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "EVIDENCE_MODELS": str(self.folder / "shelf"),
            "EVIDENCE_LEDGER": str(self.ledger),
        }

    def types(self, *words: object) -> Answer:
        """Type a command with `--json`; the variables above are set by whoever owns the process."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*map(str, words), "--json"])
        return Answer(code, json.loads(out.getvalue()))

    def types_apart(self, *words: object) -> Answer:
        """Type a command in a process of its own, which is gone when this returns."""
        command = [sys.executable, "-P", "-m", "runners.cli.main", *map(str, words), "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        return Answer(done.returncode, json.loads(done.stdout))

    def gets(self, *words: object) -> dict[str, Any]:
        """Type a command that must succeed; its result."""
        answer = self.types(*words)
        assert answer.code == 0, answer.object
        return answer.result

    def opens(self) -> Ledger:
        """The ledger, to append with the person's own key."""
        key = PrivateKey.load(next((self.folder / "config").rglob("writer.pem")))
        return Ledger.open(
            self.ledger, key=key, state_dir=self.folder / "state" / "evidence-ledger"
        )

    def verify(self) -> Answer:
        """Verify the ledger with its blobs."""
        return self.types("verify", "--level", "blobs", "--workers", 1)

    def copied_to(self, folder: Path) -> Person:
        """The same person on another day: everything copied."""
        shutil.copytree(self.folder, folder, ignore=shutil.ignore_patterns("models"))
        return Person(folder, dict(self.ids))

    def writes(self, name: str, values: dict[str, Any]) -> Path:
        """A configuration file in JSON."""
        path = self.folder / name
        path.write_text(json.dumps(values), encoding="utf-8")
        return path

    # --- the chapters of the job -----------------------------------------------------------------

    def begins(self, model: Path, judge: Path) -> None:
        """A ledger and two models."""
        self.gets("init", self.ledger, "--origin", ORIGIN)
        self.ids["model"] = self.gets("model", "add", model, "--licence", "CC0-1.0")["model"]
        self.ids["judge"] = self.gets("model", "add", judge, "--licence", "CC0-1.0")["model"]

    def ingests(self, rows: list[dict[str, Any]]) -> str:
        """The rows from a file; the dataset."""
        path = write_lines(self.folder / "rows.jsonl", rows)
        self.ids["dataset"] = self.gets("data", "ingest", path, "--licence", "CC0-1.0")["dataset"]
        return self.ids["dataset"]

    def splits(self, *more: object) -> str:
        """The dataset by customer; the split."""
        words = ("--by", "customer_id", "--fractions", "60,20,20", "--seed", 1)
        found = self.gets("data", "split", self.ids["dataset"], *words, *more)
        self.ids["split"] = found["split"]
        return self.ids["split"]

    def plans(self, **settings: Any) -> Answer:
        """A plan of supervised fine-tuning."""
        named = {"split": self.ids["split"], "model": self.ids["model"]}
        answer = self.types("plan", "sft", self.writes("sft.json", {**named, **SFT, **settings}))
        if answer.code == 0:
            self.ids["plan"] = answer.result["plan"]
        return answer

    def launches(self) -> dict[str, Any]:
        """The plan's run in the background, watched to its end; how it stood right after its launch."""
        launched = self.types_apart("run", "launch", self.ids["plan"]).result
        self.ids["run"] = launched["run"]
        found = self.waits(lambda status: status["state"] != "running")
        self.ids["checkpoint"] = found["checkpoint"]
        self.writes("launched.json", launched)
        return launched

    def waits(self, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The run's status once it is as awaited."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            status = self.gets("run", "status", self.ids["run"])
            if until(status):
                return status
            time.sleep(0.1)
        raise TimeoutError(f"run {self.ids['run']} did not come to what was awaited")

    def judges(self) -> None:
        """A protocol, base and adapter under it, the comparison, the refused promotion."""
        named = {"name": "held-out", "split": self.ids["split"], "judge": self.ids["judge"]}
        config = self.writes("eval.json", {**named, **EVAL})
        self.ids["protocol"] = self.gets("eval", "register", config)["protocol"]
        for arm, subject in (("base", "model"), ("adapter", "checkpoint")):
            words = ("eval", "run", self.ids["protocol"], self.ids[subject])
            self.ids[arm] = self.gets(*words)["evaluation"]
        compared = self.gets("eval", "compare", self.ids["base"], self.ids["adapter"])
        self.ids["comparison"] = compared["comparison"]
        self.ids["refusal"] = self.types("promote", self.ids["checkpoint"]).result["refusal"]


def made_models(folder: Path) -> tuple[Path, Path]:
    """A tiny model to train and a tiny judge of another family."""
    model = pytest.importorskip("tiny").make_model(folder / "tiny")
    return model, make_judge(folder / "tiny-judge", model)


def do_the_job(folder: Path) -> Person:
    """The whole job in a new folder, the run in the background; the variables are set by the caller."""
    model, judge = made_models(folder / "models")
    person = Person(folder)
    person.begins(model, judge)
    person.ingests(small_rows())
    person.splits()
    person.ids["audit"] = person.gets("data", "audit", person.ids["split"])["audit"]
    person.plans()
    person.launches()
    person.judges()
    person.gets("seal")
    person.writes("ids.json", person.ids)
    return person


def needs_torch() -> None:
    """Skip where the train extra is not installed; nothing is imported to find out."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs the train extra")


def settle(patch: pytest.MonkeyPatch, person: Person) -> None:
    """Let commands of this process and its children mean a person's folder."""
    for name in ("EVIDENCE_KEY", "EVIDENCE_KEY_PASSPHRASE"):
        patch.delenv(name, raising=False)
    for name, value in person.environment().items():
        patch.setenv(name, value)
