"""The thread pool of the native library: forks, several callers, and the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch

from decodescope.core.models.gguf.block_matrix import BlockMatrix
from decodescope.core.native import native_library
from tests.core.test_gguf_blocks import matrix_of

pytestmark = pytest.mark.usefixtures("needs_compiler", "built")


@pytest.fixture
def factors() -> tuple[BlockMatrix, torch.Tensor]:
    """A matrix that is large enough for two threads, and twelve vectors."""
    torch.set_num_threads(2)  # put back for every test
    assert native_library.library() is not None
    return matrix_of("Q4_0", 512, 512), torch.randn(12, 512, generator=torch.Generator().manual_seed(0))


def products(matrix: BlockMatrix, vectors: torch.Tensor) -> torch.Tensor:
    return matrix.multiply(vectors)


@pytest.mark.filterwarnings("ignore:This process")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_products_after_a_fork_equal_those_before(factors: tuple[BlockMatrix, torch.Tensor]) -> None:
    """The child has none of the threads of its parent."""
    wanted = products(*factors)
    process = os.fork()
    if process == 0:
        os._exit(0 if torch.equal(products(*factors), wanted) else 1)
    _, status = os.waitpid(process, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert torch.equal(products(*factors), wanted)


def test_products_of_several_callers_at_once_are_right(factors: tuple[BlockMatrix, torch.Tensor]) -> None:
    wanted, found = products(*factors), []
    callers = [
        threading.Thread(target=lambda: found.extend(products(*factors) for _ in range(20))) for _ in range(3)
    ]  # fmt: skip
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 60
    assert all(torch.equal(own, wanted) for own in found)


PRODUCT = """
import torch
from decodescope.core.models.gguf.block_matrix import BlockMatrix
from decodescope.core.models.gguf.gguf_file import FORMATS
from decodescope.core.native import native_library

torch.set_num_threads(2)
assert native_library.library() is not None
fmt = next(one for one in FORMATS.values() if one.name == "Q4_0")
blocks = torch.zeros(512, 512 // fmt.block_weights * fmt.block_bytes, dtype=torch.uint8)
BlockMatrix(blocks, fmt, 512).multiply(torch.ones(12, 512))
"""


def test_process_ends_while_threads_wait() -> None:
    answer = subprocess.run([sys.executable, "-c", PRODUCT], capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stderr
