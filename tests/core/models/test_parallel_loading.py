"""Several threads load models at once: the worker of the window and a lab."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from decodescope import core


def test_models_loaded_in_parallel_have_complete_weights() -> None:
    """transformers changes settings of the whole process while it builds a module."""

    def load(_index: int) -> bool:
        network = core.load("storyteller").model
        return network.get_output_embeddings().weight is network.get_input_embeddings().weight

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(load, range(12)))
