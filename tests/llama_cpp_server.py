"""The server of llama.cpp in a process of its own, by the package `xllamacpp`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.core.test_remote_transformers_serve import free_port

IS_INSTALLED = find_spec("xllamacpp") is not None
_SCRIPT = """
import sys, threading, xllamacpp
path, port, context, threads = sys.argv[1], *map(int, sys.argv[2:])
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx, params.n_gpu_layers = path, port, context, 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
server = xllamacpp.Server(params)
threading.Event().wait()
"""


class LlamaCppServer:
    """A running server for one GGUF file; a context manager that ends it.

    Raises RuntimeError with the server's messages if it ends before it answers.
    """

    def __init__(self, path: Path, threads: int = 1, context: int = 256) -> None:
        spec, self.port = find_spec("xllamacpp"), free_port()
        assert spec is not None
        assert spec.origin is not None
        paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(Path(spec.origin).parents[1]))))
        self._log = tempfile.TemporaryFile()  # a pipe that nothing reads would stop the server when it is full
        arguments = [sys.executable, "-c", _SCRIPT, *map(str, (path, self.port, context, threads))]
        self._process = subprocess.Popen(
            arguments, env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.DEVNULL, stderr=self._log
        )
        self._wait_until_ready()

    def complete(self, prompt: list[int], new_tokens: int, top_n: int) -> dict[str, Any]:
        """Return the server's answer to a greedy completion that does not end early."""
        body = {
            "prompt": prompt, "n_predict": new_tokens, "temperature": 0, "n_probs": top_n, "ignore_eos": True,
            "cache_prompt": False,
        }  # fmt: skip
        return self._post("completion", body)

    def tokenize(self, text: str, adds_special: bool = False) -> list[int]:
        """Return the server's token ids of a text, special tokens in it recognized."""
        found: list[int] = self._post("tokenize", {"content": text, "add_special": adds_special})["tokens"]
        return found

    def fill_template(self, messages: list[dict[str, str]]) -> str:
        """Return the server's prompt for a chat."""
        return str(self._post("apply-template", {"messages": messages})["prompt"])

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=600) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait_until_ready(self) -> None:
        for _ in range(1200):
            if self._process.poll() is not None:
                self._log.seek(0)
                raise RuntimeError(self._log.read().decode(errors="replace")[-2000:])
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1):
                    return
            except OSError:
                time.sleep(0.05)  # another process, which nothing here can signal
        self.close()
        raise RuntimeError("the server did not start")
