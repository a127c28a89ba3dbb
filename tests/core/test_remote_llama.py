"""llama-cpp-python's server on a GGUF made from a bundled model: its greedy text is ours, token for token. Needs
`llama-cpp-python[server]` and `gguf`, which this program does not; run with `-m fuzz`."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from decodescope import core
from decodescope.core.events import Notice
from decodescope.core.remote.remote_model import RemoteModel
from tests import gguf_files
from tests.core.remote_requests import chosen_tokens
from tests.core.test_remote_transformers_serve import free_port, reached

NEEDED = ("llama_cpp", "gguf", "uvicorn", "fastapi", "sse_starlette", "starlette_context", "pydantic_settings")
NAME = "storyteller"
BEGINNINGS = (
    "Once upon a time, there was a little", "The old dog slept by the door.",
    "Mia said: “Größe, café — naïve!” \N{FOX FACE}",
)  # fmt: skip

pytestmark = [
    pytest.mark.fuzz,
    pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="llama-cpp-python[server] or gguf is missing"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteModel]:
    file = gguf_files.write(core.load(NAME), tmp_path_factory.mktemp("gguf") / "storyteller.gguf", "f32")
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "llama_cpp.server", "--model", str(file), "--model_alias", NAME, "--n_ctx", "512",
         "--n_threads", "1", "--logits_all", "true", "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield reached(f"http://127.0.0.1:{port}/v1#{NAME}", server)
    finally:
        server.terminate()
        server.wait(20)


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_greedy_text_equals_the_local_one_token_for_token(served: RemoteModel, beginning: str) -> None:
    request = core.Request(beginning, {"max_new_tokens": 60}, "greedy", top_n=5)
    ours, reference = core.run(core.load(NAME), request), core.run(served, request)
    assert reference.texts == ours.texts
    assert not [event for event in reference.events if isinstance(event, Notice)]
    result, reported = chosen_tokens(ours.events), chosen_tokens(reference.events)
    assert [one.text for one in reported] == [one.text for one in result]
    for own, other in zip(result, reported, strict=True):
        assert other.raw_log_probability == pytest.approx(own.raw_log_probability, abs=2e-3)
        assert [one.text for one in other.alternatives[:1]] == [one.text for one in own.alternatives[:1]]


def test_temperature_and_stop_strings_are_applied_by_the_server(served: RemoteModel) -> None:
    settings = {"max_new_tokens": 40, "do_sample": True, "temperature": 0.7, "top_p": 0.9, "stop_strings": ["."]}
    first, again = (core.run(served, core.Request(BEGINNINGS[0], settings, seed=3)) for _ in range(2))
    assert first.texts == again.texts
    assert all("." not in text for text in first.texts)
    assert all(math.isnan(one.probability) for one in chosen_tokens(first.events))
