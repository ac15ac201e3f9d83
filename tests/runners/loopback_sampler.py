"""A completions server on loopback over a real model in miniature: vLLM's wire, sampled with transformers.

It answers what the client needs and nothing else. `faults` makes it misbehave as servers do: it leaves
log-probabilities out, answers to another prompt, keeps its old weights, sends a reply without end, and so on.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

FLOOD_BYTES = 65 << 20


class Gone(Exception):
    """The server does not answer any more."""


class LoopbackSampler:
    """The model and what it does with a request."""

    def __init__(self, folder: Path) -> None:
        self.faults: set[str] = set()
        self.reloads = 0
        self.completions = 0
        self.most_completions = 10**9
        self._lock = threading.Lock()
        self._load(folder)

    def wrong(self) -> tuple[bytes, int] | None:
        """The bytes and the status of a reply that is none, where it is to be so."""
        replies = {
            "a reply without end": (b" ", 200, FLOOD_BYTES),
            "an error": (b"CUDA out of memory", 500, 1),
            "no JSON": (b'{"choices": [NaN]}', 200, 1),
            "elsewhere": (b"", 307, 1),
        }
        for fault in self.faults & replies.keys():
            data, status, times = replies[fault]
            return data * times, status
        return None

    def dies(self) -> None:
        """It is gone in the middle of a draw."""
        raise Gone

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        """The reply to a request, as an object."""
        with self._lock:
            if path == "/collective_rpc":
                assert body["method"] == "reload_weights"
                self.reloads += 1
                if "keeps its weights" not in self.faults:
                    self._load(Path(body["kwargs"]["weights_path"]))
                return {"results": [None]}
            if "prompt_logprobs" in body:
                return {"choices": [self._scored(body["prompt"])]}
            if self.completions >= self.most_completions:
                self.dies()
            self.completions += 1
            return {"choices": [self._faulty(self._completion(body))]}

    def _load(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    def _logprobs(self, ids: list[int]) -> torch.Tensor:
        with torch.no_grad():
            logits: torch.Tensor = self._model(torch.tensor([ids])).logits[0].float()
        return torch.log_softmax(logits, -1)

    def _scored(self, ids: list[int]) -> dict[str, Any]:
        table = self._logprobs(ids)
        scores = [
            {str(token): {"logprob": table[place, token].item()}}
            for place, token in enumerate(ids[1:])
        ]
        return {"prompt_logprobs": [None, *scores]}

    def _completion(self, body: dict[str, Any]) -> dict[str, Any]:
        random = torch.Generator().manual_seed(body["seed"])
        ids, new, told = list(body["prompt"]), [], []
        reason = "length"
        for _ in range(body["max_tokens"]):
            row = self._logprobs(ids)[-1]
            token = int(torch.multinomial(row.exp(), 1, generator=random))
            told.append(row[token].item())
            new.append(token)
            ids.append(token)
            if token in (self._model.config.eos_token_id, *body.get("stop_token_ids", ())):
                reason = "stop"
                break
        return {
            "prompt_token_ids": body["prompt"],
            "token_ids": new,
            "logprobs": {"token_logprobs": told},
            "finish_reason": reason,
        }

    def _faulty(self, choice: dict[str, Any]) -> dict[str, Any]:
        told = choice["logprobs"]["token_logprobs"]
        if "one reply without log-probabilities" in self.faults and self.completions == 2:
            choice["logprobs"] = None
        faults: dict[str, dict[str, Any]] = {
            "no log-probabilities": {"logprobs": None},
            "one log-probability too few": {"logprobs": {"token_logprobs": told[1:]}},
            "a log-probability above 0": {"logprobs": {"token_logprobs": [0.5, *told[1:]]}},
            "a log-probability that is null": {"logprobs": {"token_logprobs": [None, *told[1:]]}},
            "another prompt": {"prompt_token_ids": [*choice["prompt_token_ids"], 1]},
            "no token ids": {"token_ids": None},
            "token ids as text": {"token_ids": [str(item) for item in choice["token_ids"]]},
            "more tokens than the limit": {"token_ids": choice["token_ids"] * 100},
            "an aborted completion": {"finish_reason": "abort"},
        }
        for fault in self.faults & faults.keys():
            choice |= faults[fault]
        return choice


def handler_of(sampler: LoopbackSampler) -> type[BaseHTTPRequestHandler]:
    """What answers its requests."""

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        def do_GET(self) -> None:
            """Say that we are there, and what we are."""
            self._send(b'{"version": "0.0.loopback"}')

        def do_POST(self) -> None:
            """Answer, or misbehave."""
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            wrong = sampler.wrong()
            if wrong is not None:
                self._send(*wrong)
            else:
                self._answer(body)

        def _answer(self, body: dict[str, Any]) -> None:
            try:
                self._send(json.dumps(sampler.answer(self.path, body)).encode())
            except Gone:
                self.close_connection = True  # without a word

        def _send(self, data: bytes, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if status == 307:
                self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    return Handler


@contextmanager
def serving(sampler: LoopbackSampler, port: int = 0) -> Iterator[str]:
    """The server's address while it serves."""
    server = ThreadingHTTPServer(("127.0.0.1", port), handler_of(sampler))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
