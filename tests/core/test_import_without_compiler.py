"""Importing transformers does not load a compiler for decorators such as `torch.compile`."""

import pytest
import torch

from decodescope.core.models.lazy_import import without_torch_compile


def test_torch_compile_is_deferred_to_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[str, dict[str, object]]] = []

    def compile_now(function, **options):
        compiled.append((function.__name__, options))
        return function

    monkeypatch.setattr(torch, "compile", compile_now)
    with without_torch_compile():

        @torch.compile
        def plain(x):
            return x + 1

        @torch.compile(dynamic=True)
        def told(x):
            return x + 2

    assert torch.compile is compile_now
    assert compiled == []
    assert (plain(1), plain(2), told(1)) == (2, 3, 3)
    assert compiled == [("plain", {}), ("told", {"dynamic": True})]


def test_failed_import_restores_torch_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    really = torch.compile
    with pytest.raises(ImportError), without_torch_compile():
        raise ImportError
    assert torch.compile is really
