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
from runners.environment import child_environment
from runners.train.serving.vllm_client import MODEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

READY_S = 300.0
LOOK_S = 0.5
END_S = 20.0
LOG_TAIL_BYTES = 2000
SERVER = "vllm.entrypoints.openai.api_server"
ENVIRONMENT = {
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


class VllmServer:
    """A running server; use it in a `with` block. It is of our process group: whoever ends that, ends it.

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
            str(python), "-m", SERVER, "--model", str(model), "--served-model-name", MODEL,
            "--host", "127.0.0.1", "--port", str(self.port), "--dtype", dtype,
            "--max-model-len", str(max_model_tokens), "--max-num-seqs", "32", "--enforce-eager",
            "--logprobs-mode", "processed_logprobs", "--no-enable-prefix-caching",
            "--no-enable-chunked-prefill", "--max-num-batched-tokens", str(max(8192, max_model_tokens)),
        ]  # fmt: skip
        environment = child_environment(os.environ, threads) | ENVIRONMENT
        del environment["PYTHONPATH"]  # our modules are no business of the other environment
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
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
            code = self._process.poll()
            if code is not None or elapsed_s > READY_S:
                why = (
                    f"ended with {code}"
                    if code is not None
                    else f"is not ready after {READY_S:.0f} s"
                )
                raise EvidenceError(
                    "SAMPLER_FAILED", f"the server {why}; its log ends: {self._last_words()}"
                )
            with suppress(requests.RequestException):
                if (
                    requests.get(f"{self.url}/health", timeout=LOOK_S).status_code
                    == requests.codes.ok
                ):
                    return
            progress(elapsed_s)
            time.sleep(LOOK_S)

    def close(self) -> None:
        """End the server; its engine's processes watch it and end with it."""
        self._process.terminate()
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
