"""Almost valid folders are listed, estimated, loaded and run, or rejected with a clear error."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.models import catalog, model_entry
from tests.fuzz.folders import FileChange, cases, damaged, make_folders
from tests.fuzz.outcomes import check_cases, long, short

WORDS = 2048
"""Token count of the storyteller; families whose small model has fewer receive ids."""
CHAT = [{"role": "user", "content": "Who is there?"}]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make_folders(tmp_path_factory.mktemp("folders"))


def use(folder: Path) -> None:
    """Do everything that the program does with an opened folder."""
    entry = catalog.describe(folder, "model", "folder")
    model_entry.fits(entry, tokens=100)
    config = GenerationConfig(max_new_tokens=3)
    plan = core.blueprint(folder)
    request = core.Request("Once" if plan.vocabulary >= WORDS else [5, 6], config)
    core.estimate(plan, request)
    model = core.load(folder)
    for _ in islice(core.stream(model, request), 100):
        pass
    if plan.vocabulary >= WORDS and model.tokenizer is not None and model.tokenizer.chat_template:
        core.encode(model, CHAT)


def use_damaged(case: tuple[str, list[FileChange]], good: dict[str, Path], where: Path) -> None:
    kind, done = case
    use(damaged(good[kind], where / "model", done))


@pytest.mark.slow
def test_damaged_folders_run_or_raise_core_errors(good: dict[str, Path], tmp_path: Path) -> None:
    check_cases(short(40), cases, lambda case: use_damaged(case, good, tmp_path))


def test_null_in_an_aliased_size_raises_config_invalid(good: dict[str, Path], tmp_path: Path) -> None:
    """Regression test: T5 stores its width as d_model."""
    change = FileChange("config.json", "set", "hidden_size", [None])
    with pytest.raises(core.errors.ConfigInvalidError):
        use(damaged(good["t5"], tmp_path / "model", [change]))


@pytest.mark.fuzz
def test_many_damaged_folders_run_or_raise_core_errors(good: dict[str, Path], tmp_path: Path) -> None:
    check_cases(long(0.4), cases, lambda case: use_damaged(case, good, tmp_path))
