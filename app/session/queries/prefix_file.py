"""Saves a prefix to a file, or loads one from a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from decodescope.app.session.queries.base import Query, Report
from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.errors import CacheError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope import core
    from decodescope.app.session.local_models import LocalModels


class PrefixResult(NamedTuple):
    """A saved or loaded prefix: tokens, bytes, and its text, to be used as a prompt (empty: none)."""

    path: str
    tokens: int
    bytes: int
    text: str = ""


@plain(frozen=True)
class PrefixQuery(Query):
    """Query to save a prefix to a file, or to load one from a file."""

    path: str
    budget: int
    """Bytes available for cached prefixes; 0 if none are kept."""
    ids: tuple[int, ...] | None = None
    """Token ids of the text whose prefix is saved. None: load."""

    def run(self, models: LocalModels, report: Report) -> PrefixResult:
        """Save the tokens that this model has read to a file, or load such a file. Raises CacheError."""
        if self.ids is None:
            models.load(self.load)
        model, store = models.loaded_for(self.load), models.prefix_store(self.budget)
        if store is None:
            raise CacheError(
                tr("The prefix cache is off."),
                tr("Turn on “Reuse cached prefixes of earlier runs” in the settings."),
            )
        if self.ids is not None:
            prefix = store.longest_prefix(model, self.ids)
            store.save(self.path, model, prefix)
            return PrefixResult(self.path, len(prefix.ids), prefix.bytes)
        prefix = store.load(self.path, model)
        return PrefixResult(self.path, len(prefix.ids), prefix.bytes, _text_for(model, prefix.ids))

    def remote_result(self, model: str) -> object:
        """Raise CacheError, as the cache stays on the engine."""
        raise CacheError(
            tr("The cache of {model} is on another machine.").format(model=model),
            tr("Prefixes can be saved only for models in this machine's memory."),
        )


def _text_for(model: core.LoadedModel, ids: Sequence[int]) -> str:
    """Return a text whose tokens begin like `ids`; empty if there is none, e.g. for chat markers."""
    from decodescope import core

    if model.tokenizer is None:
        return ""
    text: str = model.tokenizer.decode(list(ids), skip_special_tokens=True)
    shared = core.shared_length(core.encode(model, text, unbounded=True), ids) if text else 0
    return text if shared > len(ids) // 2 else ""
