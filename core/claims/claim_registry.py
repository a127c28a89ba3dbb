"""The claims of all strategies, processors and caches, those of plug-ins included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from decodescope.core import caches, processors, strategies
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.common.claim import Claim
from decodescope.core.errors import StudyError
from decodescope.core.parameter import quote_text
from decodescope.resources.language import join_names, tr

EntryKind = Literal["strategy", "processor", "cache"]


class ClaimEntry(NamedTuple):
    """A claim with the registry entry that carries it."""

    name: str
    """The claim's name; with the entry's name in front where two entries use the same name."""
    claim: Claim
    kind: EntryKind
    entry: str
    """Name of the strategy, processor or cache."""

    @property
    def subject(self) -> str:
        """Title of the strategy, of the processor's setting, or of the cache, in the current language."""
        if self.kind == "strategy":
            return tr(strategies.registry[self.entry].title)
        if self.kind == "cache":
            return tr(caches.registry[self.entry].title)
        parameter = processors.registry[self.entry].parameter
        return tr(parameter.title) if parameter is not None else self.entry


def _entries() -> Iterator[tuple[EntryKind, str, Claim]]:
    for strategy in strategies.registry.values():
        yield from (("strategy", strategy.name, claim) for claim in strategy.claims)
    for processor in processors.registry.values():
        yield from (("processor", processor.name, claim) for claim in processor.claims)
    for cache in caches.registry.values():
        yield from (("cache", cache.name, claim) for claim in cache.claims)


def all_claims() -> Mapping[str, ClaimEntry]:
    """Return all claims by name, in the order of the registries."""
    found: dict[str, ClaimEntry] = {}
    for kind, entry, claim in _entries():
        name = claim.name if claim.name not in found else f"{entry}/{claim.name}"
        found[name] = ClaimEntry(name, claim, kind, entry)
    return found


def claims_of(entry: str, kind: EntryKind | None = None) -> tuple[ClaimEntry, ...]:
    """Return the claims of a strategy, processor or cache by its name; `kind` where a name could be of several."""
    return tuple(one for one in all_claims().values() if one.entry == entry and kind in (None, one.kind))


def claims_about(subject: str) -> tuple[ClaimEntry, ...]:
    """Return the claims about `strategy.NAME`, `param.NAME` or `cache.NAME`, as the glossary names its subjects."""
    kind, _, name = subject.partition(".")
    kinds: Mapping[str, EntryKind] = {"strategy": "strategy", "param": "processor", "cache": "cache"}
    return claims_of(name, kinds[kind]) if kind in kinds else ()


def named_claim(name: object) -> ClaimEntry:
    """Return the claim with this name. Raises StudyError with similar names."""
    claims = all_claims()
    if isinstance(name, str) and name in claims:
        return claims[name]
    raise StudyError(
        tr("There is no claim called {name}.").format(name=quote_text(str(name))) + did_you_mean(str(name), claims),
        tr("Choose one of: {names}.").format(names=join_names(claims)), key="name",
    )  # fmt: skip
