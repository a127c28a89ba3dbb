"""Several threads load at once: the window's worker, and a lab beside it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from decodescope import core


def test_models_loaded_at_once_are_whole() -> None:
    """transformers changes settings of the whole process while it builds a module."""

    def load(_index: int) -> bool:
        network = core.load("storyteller").model
        return network.get_output_embeddings().weight is network.get_input_embeddings().weight

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(load, range(12)))
