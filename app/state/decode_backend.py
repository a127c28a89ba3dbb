"""Who takes the steps of the model in memory: PyTorch, or machine code that was built for this processor; in words."""

from __future__ import annotations

from typing import NamedTuple

from resources.language import mark, tr

AVAILABLE_STATES = ("ready", "built")
"""States in which the machine code is there."""
_NATIVE_SENTENCE = mark("Steps are taken in machine code that was built for this processor.")
_UNSUPPORTED_SENTENCE = mark("PyTorch takes the steps: the machine code has no way through a model of this kind.")
_SENTENCES = {
    "ready": mark("Machine code for this processor is there."),
    "built": mark("Machine code for this processor is there."),
    "missing": mark("PyTorch takes the steps. Machine code for this processor is built when nothing else is to do."),
    "cancelled": mark("PyTorch takes the steps. Machine code for this processor is built when nothing else is to do."),
    "building": mark("PyTorch takes the steps. Machine code for this processor is being built meanwhile."),
    "off": mark("PyTorch takes the steps: machine code is switched off."),
    "no_compiler": mark(
        "PyTorch takes the steps. With a C++ compiler (g++ or clang++) on this machine they could be taken in machine "
        "code, which is quicker."
    ),
    "failed": mark("PyTorch takes the steps: machine code could not be built on this machine."),
}


class BackendRequest(NamedTuple):
    """Asks whether the model of that name, which is held ready, has its steps taken in machine code."""

    model: str


class DecodeBackend(NamedTuple):
    """What is known of it."""

    state: str
    """Of the machine code: `building`, or as `core.Quickened` says."""
    uses_native_code: bool | None = None
    """Whether the model in memory has its steps taken so; None while that is not known."""
    details: str = ""
    """What the compiler said where it failed."""

    @property
    def sentence(self) -> str:
        """The same for a reader."""
        if self.state in AVAILABLE_STATES and self.uses_native_code is not None:
            return tr(_NATIVE_SENTENCE if self.uses_native_code else _UNSUPPORTED_SENTENCE)
        return tr(_SENTENCES[self.state])
