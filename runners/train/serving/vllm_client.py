"""Ask a vLLM server for completions with token ids and log-probabilities, and renew its weights.

The server is somebody else's program: each reply is bounded and checked before anything is made of it. A reply that
lacks log-probabilities, or whose ids are not the ones it was asked about, is refused; nothing is filled in.

    POST /v1/completions   prompt as ids, `return_token_ids`, `logprobs` 0 (of the token that was sampled)
    POST /collective_rpc   `reload_weights` from a folder; the server must run with VLLM_SERVER_DEV_MODE=1
"""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import requests

from ledger.errors import EvidenceError, UsageError
from runners.train.serving.samples import Ask, Drawing, Sampled
from verifiers.data.json_text import loads_unique

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MODEL = "policy"
MAX_REPLY_BYTES = 64 << 20
MAX_REPLY_DEPTH = 16
CONNECT_S = 10.0
READ_S = 600.0
AT_ONCE = 16
CHUNK_BYTES = 1 << 16
STOPS = {"stop": "end", "length": "length"}
VOCABULARY = range(2**31)
PLAIN = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
"""What a server might take from the model's own generation settings, and nobody planned."""


class VllmSampler:
    """A vLLM server that is addressed by URL.

    Args:
        url: where it listens, `http://127.0.0.1:8000`.
        weights: a folder that the server can read under the same path: each renewal is written there.
        read_s: how long one reply may take, in seconds.
    """

    def __init__(self, url: str, weights: Path, *, read_s: float = READ_S) -> None:
        self.url = url.rstrip("/")
        self.weights = weights
        self._read_s = read_s
        self._http = requests.Session()
        self._http.trust_env = (
            False  # no proxy and no password of the user's stands between us and a loopback server
        )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def sample(self, asks: Sequence[Ask], drawing: Drawing) -> list[Sampled]:
        """A completion for each ask, in order.

        Raises:
            EvidenceError: `SAMPLER_REPLY`, a reply lacks what is needed or contradicts itself.
            UsageError: `SAMPLER_UNREACHABLE`.
        """
        found = self.each(asks, drawing)
        refused = [item for item in found if isinstance(item, EvidenceError)]
        if refused:
            raise refused[0]
        return [item for item in found if isinstance(item, Sampled)]

    def each(self, asks: Sequence[Ask], drawing: Drawing) -> list[Sampled | EvidenceError]:
        """For each ask its completion, or why the reply to it is none.

        Raises:
            EvidenceError: `SAMPLER_REPLY`, the server answered with an error, or with no JSON.
            UsageError: `SAMPLER_UNREACHABLE`.
        """
        with ThreadPoolExecutor(min(AT_ONCE, max(1, len(asks)))) as pool:
            return list(pool.map(lambda ask: self._completion(ask, drawing), asks))

    def score(self, ids: Sequence[int]) -> list[float]:
        """The log-probability of each token after the first, under the server's weights.

        Raises:
            EvidenceError: `SAMPLER_REPLY`.
            UsageError: `SAMPLER_UNREACHABLE`.
        """
        body = {
            "model": MODEL,
            "prompt": list(ids),
            "max_tokens": 1,
            "temperature": 1.0,
            "prompt_logprobs": 0,
        }
        choice = _only_choice(self._post("/v1/completions", body))
        scores = choice.get("prompt_logprobs")
        if not isinstance(scores, list) or len(scores) != len(ids):
            raise _wrong("prompt_logprobs", len(ids), scores)
        return [_scored(entry, token) for entry, token in zip(scores[1:], ids[1:], strict=True)]

    def renew(self, write: Callable[[Path], str]) -> str:
        """Write new weights into the folder and have the server load them; their digest, as `write` says it.

        Raises:
            EvidenceError: `SAMPLER_REPLY`, the server refused.
            UsageError: `SAMPLER_UNREACHABLE`.
        """
        digest = write(self.weights)
        call = {"method": "reload_weights", "kwargs": {"weights_path": str(self.weights)}}
        self._post("/collective_rpc", call)
        return digest

    def _completion(self, ask: Ask, drawing: Drawing) -> Sampled | EvidenceError:
        body = {
            "model": MODEL,
            "prompt": list(ask.prompt),
            "max_tokens": drawing.max_new_tokens,
            "temperature": drawing.temperature,
            "top_p": drawing.top_p,
            "top_k": drawing.top_k or -1,
            "min_p": drawing.min_p,
            "seed": ask.seed,
            "logprobs": 0,
            "return_token_ids": True,
            "stop_token_ids": list(drawing.ends),
            **PLAIN,
        }
        reply = self._post("/v1/completions", body)
        try:
            return _sampled(_only_choice(reply), ask, drawing)
        except EvidenceError as error:
            return error

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        try:
            with self._http.post(
                self.url + path,
                data=json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
                timeout=(CONNECT_S, self._read_s),
                stream=True,
                allow_redirects=False,
            ) as reply:
                data = _bounded(reply)
                status = reply.status_code
        except requests.RequestException as error:
            raise UsageError(
                "SAMPLER_UNREACHABLE", f"{self.url}{path}: {type(error).__name__}"
            ) from None
        if status != requests.codes.ok:
            said = data[:200].decode("utf-8", "replace")
            raise EvidenceError("SAMPLER_REPLY", f"{path} answered {status}: {said!r}")
        try:
            return loads_unique(data, MAX_REPLY_DEPTH) if data.strip() else None
        except EvidenceError as error:
            raise EvidenceError("SAMPLER_REPLY", f"{path}: {error.message}") from None


def _bounded(reply: requests.Response) -> bytes:
    data = bytearray()
    for chunk in reply.iter_content(CHUNK_BYTES):
        data += chunk
        if len(data) > MAX_REPLY_BYTES:
            raise EvidenceError("SAMPLER_REPLY", f"a reply is longer than {MAX_REPLY_BYTES} bytes")
    return bytes(data)


def _only_choice(reply: Any) -> dict[str, Any]:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise EvidenceError("SAMPLER_REPLY", "a reply has not exactly one choice", field="choices")
    return choices[0]


def _sampled(choice: dict[str, Any], ask: Ask, drawing: Drawing) -> Sampled:
    """A completion out of a reply, each of its parts looked at."""
    if choice.get("prompt_token_ids") != list(ask.prompt):
        raise EvidenceError(
            "SAMPLER_REPLY", "the reply is to another prompt", field="prompt_token_ids"
        )
    ids = choice.get("token_ids")
    if not isinstance(ids, list) or not all(
        type(item) is int and item in VOCABULARY for item in ids
    ):
        raise EvidenceError("SAMPLER_REPLY", "the reply has no token ids", field="token_ids")
    if not 0 < len(ids) <= drawing.max_new_tokens:
        raise _wrong("token_ids", f"1 to {drawing.max_new_tokens}", ids)
    told = choice.get("logprobs")
    logprobs = told.get("token_logprobs") if isinstance(told, dict) else None
    if not isinstance(logprobs, list) or len(logprobs) != len(ids):
        raise _wrong("logprobs.token_logprobs", len(ids), logprobs)
    stop = STOPS.get(str(choice.get("finish_reason")))
    if stop is None:
        raise EvidenceError("SAMPLER_REPLY", "the completion did not end", field="finish_reason")
    if drawing.ends and ids[-1] in drawing.ends:
        stop = "end"  # the last token that fits may be one
    elif drawing.ends and stop == "end":
        raise EvidenceError(
            "SAMPLER_REPLY", "the completion ended without a token for it", field="finish_reason"
        )
    return Sampled(tuple(ids), tuple(_logprob(value) for value in logprobs), stop)


def _scored(entry: Any, token: int) -> float:
    found = entry.get(str(token)) if isinstance(entry, dict) else None
    return _logprob(found.get("logprob") if isinstance(found, dict) else None)


def _logprob(value: Any) -> float:
    """A log-probability; a rounding error above 0 is none."""
    if type(value) not in (int, float) or not math.isfinite(value) or value > 1e-6:
        raise EvidenceError(
            "SAMPLER_REPLY",
            "a log-probability is missing, not finite or above 0",
            field="logprobs",
            actual=str(value)[:40],
        )
    return min(0.0, float(value))


def _wrong(field: str, expected: object, found: object) -> EvidenceError:
    actual = str(len(found)) if isinstance(found, list) else "none"
    return EvidenceError(
        "SAMPLER_REPLY",
        "the reply has another number of them than it has tokens",
        field=field,
        expected=str(expected),
        actual=actual,
    )
