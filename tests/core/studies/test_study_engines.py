"""Studies on engines: several requests at a time, raw replies, and engines that fail or are killed in the middle."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.errors import StudyError
from decodescope.core.studies import Study, StudyProgress
from decodescope.core.studies import runner as study_runner
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer

NAMES = ("Tom", "Lily", "Mia", "Ben", "Sam", "Max", "Sue", "Ann", "Tim", "Joe")


def write(folder: Path, engines: list[str], text: str = "", new_tokens: int = 6) -> Path:
    path = folder / "study.toml"
    prompts = ", ".join(f'"Once upon a time, {name}"' for name in NAMES)
    path.write_text(
        f"engines = {json.dumps(engines)}\nin_flight = 2\nseeds = 3\n{text}[prompts]\ntexts = [{prompts}]\n"
        f'[settings]\nmax_new_tokens = {new_tokens}\n[[cells]]\nstrategy = "greedy"\n'
        '[[cells]]\nstrategy = "sampling"\ntemperature = 1.2\n',
        "utf-8",
    )
    return path


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_runner, "_PAUSES", (0.05, 0.1))


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not IS_INSTALLED:
        pytest.skip("xllamacpp is not installed")
    return core.save_gguf(core.load("storyteller"), tmp_path_factory.mktemp("gguf") / "story.gguf", "F32")


@pytest.fixture
def servers(gguf: Path) -> Iterator[list[LlamaCppServer]]:
    started = [LlamaCppServer(gguf) for _ in range(2)]
    yield started
    for server in started:
        server.close()


def address(server: LlamaCppServer) -> str:
    return f"http://127.0.0.1:{server.port}/v1"


def test_engine_killed_in_the_middle_loses_nothing(servers: list[LlamaCppServer], tmp_path: Path) -> None:
    path, notices = write(tmp_path, [address(one) for one in servers], new_tokens=12), list[str]()
    is_killed = threading.Event()

    def watch(progress: StudyProgress) -> None:
        notices.append(progress.notice)
        addresses = {one.get("address") for one in study._store.results.values()}
        if len(addresses) == 2 and not is_killed.is_set():
            is_killed.set()
            servers[0]._process.kill()

    with Study(path) as study:
        study.run(watch)
        rows = study.rows()
    assert is_killed.is_set()
    assert len(rows) == 10 * (1 + 3)
    assert {row["address"] for row in rows} == {address(one) for one in servers}
    assert any("does not answer" in notice for notice in notices)
    keys = [json.loads(line)["key"] for line in (study.folder / study_runner.RESULTS).read_text("utf-8").splitlines()]
    assert len(keys) == len(set(keys)) == 40
    local = core.load("storyteller")
    for row in rows:
        messages = [json.loads(line) for line in (study.folder / row["reply"]).read_text("utf-8").splitlines()]
        assert messages
        if "<|" not in row["text"]:  # the engine leaves out special tokens
            assert "".join(choice["text"] for one in messages for choice in one.get("choices", ())) == row["text"]
        if row["cell"]["strategy"] == "greedy":
            assert row["text"] == core.run(local, core.Request(row["prompt"], {"max_new_tokens": 12})).texts[0]
    assert len(study.summary().identities) == 2


def test_study_without_engines_keeps_results_and_continues(servers: list[LlamaCppServer], tmp_path: Path) -> None:
    path = write(tmp_path, [address(servers[0])], "recordings = false\n")

    def kill(progress: StudyProgress) -> None:
        if progress.done >= 6:
            servers[0]._process.kill()

    with Study(path) as study:
        with pytest.raises(StudyError, match="No engine is left"):
            study.run(kill)
        first = {row["key"]: row["text"] for row in study.rows()}
    assert 0 < len(first) < 40
    # the other engine takes its place: results belong to the model, not to the machine
    text = path.read_text("utf-8").replace(f'engines = ["{address(servers[0])}"]', "")
    model = f'models = [{{name = "{address(servers[0])}", engines = ["{address(servers[1])}"]}}]\n'
    path.write_text(model + text, "utf-8")
    with Study(path) as study:
        study.run()
        rows = {row["key"]: row["text"] for row in study.rows()}
    assert len(rows) == 40
    assert {key: rows[key] for key in first} == first


def test_refused_request_fails_alone(servers: list[LlamaCppServer], tmp_path: Path) -> None:
    path = write(tmp_path, [address(servers[0])])
    text = path.read_text("utf-8").replace('"Once upon a time, Tom"', f'"{"Once " * 400}"')  # longer than the context
    path.write_text(text, "utf-8")
    with Study(path) as study:
        study.run()
        summary = study.summary()
    assert [cell.failed for cell in summary.cells] == [3, 3]
    assert [cell.texts for cell in summary.cells] == [9, 27]


def test_run_many_and_score_many_on_an_engine_equal_single_calls(servers: list[LlamaCppServer]) -> None:
    model = core.load(address(servers[0]))
    requests = [core.Request(f"Once, {name}", {"max_new_tokens": 4}, top_n=2) for name in NAMES[:4]]
    assert [one.texts for one in core.run_many(model, requests, in_flight=3)] == [
        core.run(model, request).texts for request in requests
    ]
