"""Fixtures shared by tests of the core."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.native import kernel_build, library_choice, native_library
from tests import fake_remote_engine, native_level
from tests.fake_remote_engine import FakeEngine


@pytest.fixture(scope="session")
def compiled(needs_compiler: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache folder with the native library, hardly optimized: compiled once, in several seconds."""
    path = tmp_path_factory.mktemp("compiled")
    with _cache_in(path):
        assert core.build_kernels().state == ("built" if native_level.is_compiled() else "ready")
    return path


@pytest.fixture(scope="module")
def folder(compiled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Cache folder of a module's own with a copy of the native library."""
    path = tmp_path_factory.mktemp("built")
    shutil.copytree(compiled, path, dirs_exist_ok=True)
    with _cache_in(path):
        assert core.build_kernels().state == "ready"
        yield path


@contextmanager
def _cache_in(path: Path) -> Iterator[None]:
    before = native_library._HOLDER
    native_library._HOLDER = native_library._LibraryHolder()  # another module may have opened its own
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(path))
        patch.setenv(library_choice.LEVEL_VARIABLE, native_level.requested())
        patch.setattr(library_choice, "SHIPPED", native_level.folder())
        patch.setattr(kernel_build, "FLAGS", tuple("-O0" if flag == "-O3" else flag for flag in kernel_build.FLAGS))
        yield
    native_library._HOLDER = before


@pytest.fixture
def built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The built step, found by this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.setenv(library_choice.LEVEL_VARIABLE, native_level.requested())
    monkeypatch.setattr(library_choice, "SHIPPED", native_level.folder())
    monkeypatch.setattr(native_library, "_HOLDER", native_library._LibraryHolder())


@pytest.fixture(scope="session")
def storyteller() -> core.LoadedModel:
    """The bundled model, loaded once; tests do not change it."""
    return core.load("storyteller")


@pytest.fixture
def machine() -> Iterator[FakeEngine]:
    """An engine on a server of this computer, as vLLM responds."""
    with fake_remote_engine.running() as running:
        yield running


@pytest.fixture(scope="module")
def tiny() -> core.LoadedModel:
    """Two layers, storyteller's words."""
    import torch
    import transformers as t

    tokenizer = t.AutoTokenizer.from_pretrained(core.catalog.BUNDLED / "storyteller")
    torch.manual_seed(0)
    config = t.LlamaConfig(
        vocab_size=2048, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    return core.wrap(t.LlamaForCausalLM(config), tokenizer, "tiny")
