"""A vLLM server of our own on this machine: started on a loopback port, watched until it is ready, ended with us.

vLLM wants other versions of some libraries than training does, so it lives in an environment of its own, whose
interpreter is named. Its settings here make a completion depend on its own seed alone: no prefix cache, no chunked
prefill (which a seed for each request breaks on a CPU), whole batches.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import requests

from ledger.errors import EvidenceError, UsageError
from runners.environment import child_environment, interpreter
from runners.train.serving.vllm_client import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READY_S = 300.0
LOOK_S = 0.5
END_S = 20.0
LOG_TAIL_BYTES = 2000
GUARD = "runners.train.serving.guard"
SERVER = "vllm.entrypoints.openai.api_server"
ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


class VllmServer:
    """A running server; use it in a `with` block. It is of our process group: whoever ends that, ends it.

    Between us and it stands `guard`, which ends it when we are gone, however we went.

    Args:
        python: the interpreter of the environment that has vLLM.
        model: the folder of the model that it starts with.
        log_path: file that gets all it prints.
        max_model_tokens: the longest prompt with completion.
        threads: for its numeric libraries.
        dtype: of weights and computation.
    """

    def __init__(
        self,
        python: Path,
        model: Path,
        log_path: Path,
        *,
        max_model_tokens: int,
        threads: int,
        dtype: str = "float32",
    ) -> None:
        if not os.access(python, os.X_OK):
            raise UsageError(
                "SAMPLER_UNREACHABLE", f"{python} is no interpreter", field="vllm_python"
            )
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log_path = log_path
        command = [
            interpreter(), "-P", "-m", GUARD, str(python), "-m", SERVER, "--model", str(model), "--served-model-name", MODEL,
            "--host", "127.0.0.1", "--port", str(self.port), "--dtype", dtype,
            "--max-model-len", str(max_model_tokens), "--max-num-seqs", "32", "--enforce-eager",
            "--logprobs-mode", "processed_logprobs", "--no-enable-prefix-caching",
            "--no-enable-chunked-prefill", "--max-num-batched-tokens", str(max(8192, max_model_tokens)),
            "--generation-config", "vllm", "--disable-uvicorn-access-log", "--disable-log-stats",
        ]  # fmt: skip
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=child_environment(os.environ, threads) | ENVIRONMENT,
                cwd=log_path.parent,  # its interpreter looks for modules where it stands
            )

    def wait_ready(self, progress: Callable[[float], None] = lambda _: None) -> None:
        """Wait until the server answers.

        Args:
            progress: called now and then with the seconds waited.

        Raises:
            EvidenceError: `SAMPLER_FAILED`, it ended, or was not ready in `READY_S`; its last words are named.
        """
        began = time.monotonic()
        while True:
            elapsed_s = time.monotonic() - began
            if self._process.poll() is not None or elapsed_s > READY_S:
                raise self.failure(f"is not ready after {READY_S:.0f} s")
            with suppress(requests.RequestException):
                if (
                    requests.get(f"{self.url}/health", timeout=LOOK_S).status_code
                    == requests.codes.ok
                ):
                    return
            progress(elapsed_s)
            time.sleep(LOOK_S)

    def failure(self, otherwise: str, wait_s: float = 0.0) -> EvidenceError:
        """What became of a server that does not answer: how it ended, and the end of its log.

        Args:
            otherwise: what is said of one that still runs.
            wait_s: how long it may take to end.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        code = self._process.poll()
        why = otherwise if code is None else f"ended with {code}"
        return EvidenceError(
            "SAMPLER_FAILED", f"the server {why}; its log ends: {self._last_words()}"
        )

    def close(self) -> None:
        """End the server: its guard sees that we let go; its engine's processes watch it and end with it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _last_words(self) -> str:
        with self._log_path.open("rb") as log:
            log.seek(max(0, self._log_path.stat().st_size - LOG_TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").strip().splitlines()
        return " | ".join(lines[-3:])[-500:]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
