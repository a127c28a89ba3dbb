"""The vocabulary of a GGUF file as llama.cpp itself reads it, through the C interface in the package `xllamacpp`.

The library runs in a process of its own, because some files end it.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

IS_INSTALLED = find_spec("xllamacpp") is not None and sys.platform == "linux" and find_library("gomp") is not None
_SPECIAL = (
    "bos", "eos", "eot", "sep", "nl", "pad", "mask", "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep",
)  # fmt: skip
_PARAMETER_BYTES = 2048
"""More than llama_model_params has, whose fields differ between versions: it is only passed on."""


class VocabularyFacts(NamedTuple):
    """Properties of a vocabulary as llama.cpp assumes them."""

    ends: list[int]
    """Ids that end a text."""
    special: dict[str, int]
    """Ids of special tokens; −1 if there is none."""
    adds: dict[str, bool]
    """Whether it adds BOS, EOS and SEP."""
    pieces: list[bytes]
    """Bytes of each token."""
    hidden: list[bool]
    """Whether a token is left out of texts without special tokens."""


class LlamaCppVocabulary:
    """A process that reads vocabularies; a context manager that ends it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._path: Path | None = None

    def load(self, path: Path) -> str:
        """Read a file. Return llama.cpp's reason for refusing it, or an empty text."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        return str(self._request("load", path=str(path)))

    def tokenize(
        self, texts: Iterable[str | bytes], adds_special: bool = False, parses_special: bool = True
    ) -> list[list[int]]:
        """Return the ids of each text."""
        data = [(text.encode() if isinstance(text, str) else text).hex() for text in texts]
        found: list[list[int]] = self._request("tokenize", texts=data, special=adds_special, parse=parses_special)
        return found

    def detokenize(self, sequences: Sequence[Sequence[int]], removes_special: bool = False) -> list[bytes]:
        """Return the text of each sequence of ids, without special tokens if they are to be removed."""
        found = self._request("detokenize", sequences=[list(ids) for ids in sequences], remove=removes_special)
        return [bytes.fromhex(text) for text in found]

    def facts(self) -> VocabularyFacts:
        """Return what is assumed about the vocabulary."""
        found = self._request("facts")
        pieces = [bytes.fromhex(piece) for piece in found["pieces"]]
        return VocabularyFacts(found["ends"], found["special"], found["adds"], pieces, found["hidden"])

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, name: str, **arguments: Any) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"name": name, **arguments}).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            code = self._process.wait()
            self.close()
            if name == "load":
                return f"the process ended with {code}"
            raise RuntimeError(f"{name}: the process ended with {code}")
        return json.loads(answer)


class _Parameters(ctypes.Structure):
    _fields_ = [("content", ctypes.c_byte * _PARAMETER_BYTES)]


class _VocabularyWorker:
    """Answers the requests of `LlamaCppVocabulary`."""

    def __init__(self) -> None:
        spec = find_spec("xllamacpp")
        assert spec is not None
        assert spec.origin is not None
        self.library = ctypes.CDLL(str(Path(spec.origin).with_name("xllamacpp.abi3.so")))
        self.messages: list[str] = []
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(self._log)
        for name in ("llama_model_load_from_file", "llama_model_get_vocab"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.library.llama_model_default_params.restype = _Parameters
        self.library.llama_log_set(self._callback, None)
        self.library.llama_backend_init()
        self.parameters = self.library.llama_model_default_params()
        self.model = self.vocabulary = ctypes.c_void_p()

    def _log(self, level: int, text: bytes, _: object) -> None:
        self.messages.append(f"{level} {text.decode('utf-8', 'replace')}")

    def load(self, path: str) -> str:
        if self.model:
            self.library.llama_model_free(self.model)
        self.messages.clear()
        self.model = ctypes.c_void_p(self.library.llama_model_load_from_file(path.encode(), self.parameters))
        if not self.model:
            return "".join(one[2:] for one in self.messages if one.startswith("4"))[-600:] or "refused"
        self.vocabulary = ctypes.c_void_p(self.library.llama_model_get_vocab(self.model))
        return ""

    def tokenize(self, texts: list[str], special: bool, parse: bool) -> list[list[int]]:
        found = []
        for text in map(bytes.fromhex, texts):
            capacity = len(text) * 4 + 16
            ids = (ctypes.c_int32 * capacity)()
            count = self.library.llama_tokenize(self.vocabulary, text, len(text), ids, capacity, special, parse)
            found.append(list(ids[:count]) if count >= 0 else [-1])
        return found

    def detokenize(self, sequences: list[list[int]], remove: bool) -> list[str]:
        found = []
        for sequence in sequences:
            ids, capacity = (ctypes.c_int32 * len(sequence))(*sequence), 1 << 16
            text = ctypes.create_string_buffer(capacity)
            count = self.library.llama_detokenize(
                self.vocabulary, ids, len(sequence), text, capacity, remove, not remove
            )
            found.append(text.raw[: max(count, 0)].hex())
        return found

    def facts(self) -> dict[str, Any]:
        library, vocabulary = self.library, self.vocabulary
        count = library.llama_vocab_n_tokens(vocabulary)
        library.llama_vocab_is_eog.restype = ctypes.c_bool
        pieces, hidden = [], []
        text = ctypes.create_string_buffer(1 << 14)
        for number in range(count):
            size = library.llama_token_to_piece(vocabulary, number, text, len(text), 0, True)
            pieces.append(text.raw[: max(size, 0)].hex())
            shown = library.llama_token_to_piece(vocabulary, number, text, len(text), 0, False)
            hidden.append(bool(size) and not shown)
        adds = {}
        for name in ("bos", "eos", "sep"):
            get = getattr(library, f"llama_vocab_get_add_{name}")
            get.restype = ctypes.c_bool
            adds[name] = bool(get(vocabulary))
        return {
            "ends": [number for number in range(count) if library.llama_vocab_is_eog(vocabulary, number)],
            "special": {name: getattr(library, f"llama_vocab_{name}")(vocabulary) for name in _SPECIAL},
            "adds": adds, "pieces": pieces, "hidden": hidden,
        }  # fmt: skip


def _answer_requests() -> None:
    answers, nothing = os.fdopen(os.dup(1), "w"), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # the library writes to the standard output before it ends the process
    worker = _VocabularyWorker()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(worker, request.pop("name"))(**request)), file=answers, flush=True)


if __name__ == "__main__":
    _answer_requests()
