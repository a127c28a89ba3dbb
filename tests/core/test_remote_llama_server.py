"""llama.cpp's own server, as the package `xllamacpp` brings it, on a GGUF made from a bundled model."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.errors import EngineRefusedError, ParameterError
from decodescope.core.events import Notice
from decodescope.core.models.model_saving import save_gguf
from decodescope.core.remote.remote_model import RemoteModel
from tests.core.remote_requests import chosen_tokens
from tests.core.test_remote_transformers_serve import free_port, reached

NAME = "storyteller"
BEGINNING = "Once upon a time there was"
CONTEXT = 1024
SERVER = """
import sys, threading, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
params.model_alias, params.n_gpu_layers, params.cpuparams.n_threads = {"storyteller"}, 0, 1
server = xllamacpp.Server(params)
threading.Event().wait()
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp (llama.cpp's server) is missing"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteModel]:
    file = save_gguf(core.load(NAME), tmp_path_factory.mktemp("gguf") / "storyteller.gguf", "F32")
    port = free_port()
    paths = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), _folder_of("xllamacpp"))))
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(file), str(port), str(CONTEXT)], env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield reached(f"http://127.0.0.1:{port}/v1#{NAME}", server)
    finally:
        server.terminate()
        server.wait(20)


def _folder_of(package: str) -> str:
    found = find_spec(package)
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parents[1])


def notices(result: core.Result) -> list[str]:
    return [event.message for event in result.events if isinstance(event, Notice)]


def run(
    served: RemoteModel, prompt: object = BEGINNING, top_n: int = 5, seed: int = 0, **config: object
) -> core.Result:
    return core.run(served, core.Request(prompt, {"max_new_tokens": 24, **config}, top_n=top_n, seed=seed))


SETTINGS = (
    {}, {"repetition_penalty": 1.3, "max_new_tokens": 80}, {"dry_multiplier": 0.8, "max_new_tokens": 80},
    {"dry_multiplier": 0.8, "dry_range": 20, "max_new_tokens": 80}, {"stop_strings": ["nd then"], "max_new_tokens": 80},
    {"stop_strings": ["dog."], "max_new_tokens": 60},
)  # fmt: skip


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_greedy_text_and_probabilities_equal_the_local_ones(served: RemoteModel, settings: dict[str, object]) -> None:
    options = {name: value for name, value in settings.items() if name.startswith("dry_")}
    config = {name: value for name, value in settings.items() if name not in options}
    strategy = "greedy" if options else None
    request = core.Request(BEGINNING, {"max_new_tokens": 24, **config}, strategy, options, top_n=5)
    ours, reference = core.run(core.load(NAME), request), core.run(served, request)
    assert (reference.texts, reference.sequences) == (ours.texts, ours.sequences)
    for result, reported in zip(chosen_tokens(ours.events), chosen_tokens(reference.events), strict=True):
        assert (reported.id, reported.piece) == (result.id, result.piece)
        assert reported.raw_log_probability == pytest.approx(result.raw_log_probability, abs=2e-3)
        assert [one.id for one in reported.alternatives[:1]] == [
            one.id for one in sorted(result.alternatives, key=lambda one: -one.raw_log_probability)[:1]
        ]


def test_each_sampler_reduced_to_one_token_gives_the_greedy_text(served: RemoteModel) -> None:
    """A cut that leaves one token writes the greedy text, whichever it is: each of them acts there."""
    greedy = run(served).texts
    for cut in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}, {"temperature": 0.001, "top_k": 0}):
        assert run(served, do_sample=True, **cut).texts == greedy, cut


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**40 + 3])
def test_a_seed_repeats_its_text(served: RemoteModel, seed: int) -> None:
    first, again = (run(served, do_sample=True, temperature=1.5, seed=seed).texts for _ in range(2))
    assert first == again


def test_every_token_of_a_character_is_reported(served: RemoteModel) -> None:
    tokenizer = core.load(NAME).tokenizer
    written = "日本éß 🦊"
    result = run(served, "Mia said: ", max_new_tokens=40, grammar={"choice": [written]})
    assert result.texts == [written]
    spelled = tokenizer.decode(result.sequences[0], skip_special_tokens=True)
    assert spelled == written
    assert len(result.sequences[0]) >= len(written.encode()) > len(written)
    assert not any("not complete" in one for one in notices(result))
    assert "".join(one.text for one in chosen_tokens(result.events)) == written


def test_answer_ending_inside_a_character_causes_a_notice(served: RemoteModel) -> None:
    result = run(served, "Mia said: ", max_new_tokens=5, grammar={"choice": ["日本"]})
    assert result.texts == ["日"]
    assert any("Tokens of this answer without an id: 2" in one for one in notices(result))


def test_branch_continues_the_displayed_text(served: RemoteModel) -> None:
    first = run(served, "Mia said: ", max_new_tokens=40, grammar={"choice": ["日本é"]})
    ids = first.sequences[0]
    begun = next(number for number, one in enumerate(chosen_tokens(first.events), 1) if one.text == "日")
    branch = core.run(served, core.Request("Mia said: ", {"max_new_tokens": 4}, beginning=ids[:begun]))
    straight = run(served, "Mia said: 日", max_new_tokens=4)
    assert branch.texts == straight.texts
    cut = core.run(served, core.Request("Mia said: ", {"max_new_tokens": 4}, beginning=ids[: begun + 1]))
    assert cut.texts == straight.texts  # half a character is not shown
    with pytest.raises(ParameterError, match="only part of a character"):
        core.run(served, core.Request("Mia said: ", {"max_new_tokens": 4}, beginning=[ids[1]]))


def test_control_tokens_have_their_names(served: RemoteModel) -> None:
    names = {
        one.id: one.text
        for event in chosen_tokens(run(served, "Mia said: “Größe, café — naïve!” 🦊", top_n=100).events)
        for one in event.alternatives
    }
    tokenizer = core.load(NAME).tokenizer
    controls = {number for number in names if number in tokenizer.all_special_ids}
    assert controls
    assert {number: names[number] for number in controls} == {one: tokenizer.decode([one]) for one in controls}


def test_a_chat_is_answered_with_its_tokens(served: RemoteModel) -> None:
    result = run(served, [{"role": "user", "content": "Hello é"}], max_new_tokens=8)
    assert "".join(one.text for one in chosen_tokens(result.events)) == result.texts[0]
    assert all(one.id >= 0 and one.alternatives for one in chosen_tokens(result.events))


def test_server_refusals_are_reported_in_their_own_wording(served: RemoteModel) -> None:
    with pytest.raises(EngineRefusedError, match="exceeds the available context"):
        run(served, "Once " * 2 * CONTEXT)
    with pytest.raises(EngineRefusedError, match="invalid tokens"):
        run(served, [5, 999_999])
    assert run(served).texts  # the connection is as good as before
