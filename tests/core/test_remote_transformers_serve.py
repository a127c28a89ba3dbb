"""The engine that transformers brings, started on a bundled model: its greedy text is ours. Needs the packages of
`transformers[serving]`, which this program does not; run with `-m fuzz`."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers.utils.import_utils import is_serve_available

from decodescope import core
from decodescope.core.errors import EngineUnreachableError
from decodescope.core.events import TokenChosen
from decodescope.core.remote.remote_model import RemoteModel, connect

STORYTELLER = Path(core.__file__).parents[1] / "resources" / "models" / "storyteller"
START = 120.0
"""Seconds it may take to begin."""

pytestmark = [pytest.mark.fuzz, pytest.mark.skipif(not is_serve_available(), reason="transformers[serving] is missing")]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def served() -> Iterator[RemoteModel]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "transformers.cli.transformers",
        "serve",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    server = subprocess.Popen(
        [*command, "--device", "cpu", "--dtype", "float32"], env={**os.environ, "HF_HUB_OFFLINE": "1"},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield reached(f"http://127.0.0.1:{port}/v1#{STORYTELLER}", server)
    finally:
        server.terminate()
        server.wait(20)


def reached(address: str, server: subprocess.Popen[bytes]) -> RemoteModel:
    end = time.monotonic() + START
    while True:
        try:
            return connect(address)
        except EngineUnreachableError:
            if server.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.5)


@pytest.mark.parametrize("settings", [{}, {"no_repeat_ngram_size": 3}, {"repetition_penalty": 1.3}], ids=str)
def test_greedy_text_of_transformers_serve_equals_the_local_one(
    served: RemoteModel, settings: dict[str, object]
) -> None:
    request = core.Request("Once upon a time, there was a little", {"max_new_tokens": 60, **settings}, "greedy")
    ours, reference = core.run(core.load("storyteller"), request), core.run(served, request)
    assert served.kind.name == "transformers"
    assert reference.texts == ours.texts
    assert reference.metrics.new_tokens == ours.metrics.new_tokens
    assert reference.metrics.prompt_tokens == ours.metrics.prompt_tokens
    assert all(not event.alternatives for event in reference.events if isinstance(event, TokenChosen))
