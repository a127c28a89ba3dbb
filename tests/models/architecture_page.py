"""docs/models.md, generated from the results of the trials."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from decodescope import core
from tests.models.trial import DIFFERS, EQUAL, RAW, REFUSED, RUNS, STRATEGIES

PAGE = Path(__file__).parents[2] / "docs" / "models.md"
HEAD = """# Supported models

Written by `python -m tests.models --write` from trials of every decoder and encoder–decoder class of transformers
{version}, each a tiny model with random weights: {tried} were tried, {skipped} could not be made tiny without knowing
them. `python -m tests.models` repeats the trials; do not edit this page by hand.

- **=** gives the same text as `generate`, token for token; for contrastive search and DoLa the text that their
  definition gives, with the whole text read again for every token
- **+** runs; there is no reference to compare with, or the cache is an approximation
- a number: not supported, for the reason with that number below
- **≠** gives another text
- **!** failed with an unexpected error
"""
MEDIA_HEAD = """
## Models that take sounds or pictures

Every class of transformers that generates text from a sound or a picture, each with a file of noise: {tried} model
types were tried, {refused} are not supported, for the reasons below.
"""
NATIVE_HEAD = """
## Native decode step

Written by `python -m tests.models --native` and `--write`: decoders with random weights and the depth of the published
model named, their width reduced to fit small machines where that model is large. A figure is the speed of the native
step divided by that of the module, in tokens per second, one text, one thread, measured in turns; a number in
parentheses is the reason why the module is used instead.
"""
_WEIGHTS = ("float32", "bfloat16", "int8", "int4")
_SIGNS = {EQUAL: "=", RUNS: "+", DIFFERS: "≠", RAW: "!"}


class RefusalReasons:
    """Sentences, numbered as they are met."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def cell(self, found: Sequence[str]) -> str:
        """The sign of a result, or the number of its reason."""
        state, note = found
        if state != REFUSED:
            return _SIGNS[state]
        if note not in self.known:
            self.known.append(note)
        return str(self.known.index(note) + 1)


def page(results: Sequence[dict[str, Any]], media: Sequence[dict[str, Any]], native: Sequence[dict[str, Any]]) -> str:
    """Return the whole page; `media`: results of audio and image families; `native`: speeds of the native step."""
    tried = [one for one in results if "skipped" not in one]
    skipped = [one for one in results if "skipped" in one]
    reasons = RefusalReasons()
    head = HEAD.format(version=version("transformers"), tried=len(tried), skipped=len(skipped))
    parts = [
        head,
        *_tables(tried, reasons, ""),
        *_native(native, reasons),
        *_media(media, reasons),
        "\n## Reasons\n",
        *(f"{number}. {reason}" for number, reason in enumerate(reasons.known, 1)),
        "\n## Not tried\n",
        *(f"- `{one['kind']}`: {one['skipped']}" for one in skipped),
    ]
    return "\n".join(parts) + "\n"


def _tables(tried: Sequence[dict[str, Any]], reasons: RefusalReasons, deeper: str) -> Iterator[str]:
    """Strategies, and caches with two of them; `deeper`: what goes before their headings' own marks."""
    caches = _cache_titles(tried)
    yield f"{deeper}## Strategies, on the dynamic cache\n"
    strategies = [(core.strategies.registry[name].title, name) for name in STRATEGIES]
    yield from _table(tried, strategies, _strategies, reasons)
    yield f"\n{deeper}## Caches, greedy\n"
    yield from _table(tried, caches, _greedy, reasons)
    yield f"\n{deeper}## Caches, with drafts (prompt lookup)\n"
    yield from _table(tried, caches, _drafted, reasons)


def _native(results: Sequence[dict[str, Any]], reasons: RefusalReasons) -> Iterator[str]:
    """Return the table of the native step: families by kinds of weights."""
    yield NATIVE_HEAD
    yield f"| family | like | layers · width | {' | '.join(_WEIGHTS)} |"
    yield f"| --- | --- | --- |{' --- |' * len(_WEIGHTS)}"
    for one in results:
        cells = (_native_cell(one["weights"][name], reasons) for name in _WEIGHTS)
        yield f"| {one['title']} | {one['like']} | {one['layers']} · {one['width']} | {' | '.join(cells)} |"


def _native_cell(found: dict[str, Any], reasons: RefusalReasons) -> str:
    if "reason" in found:
        return f"({reasons.cell((REFUSED, 'No native step: ' + found['reason']))})"
    speedup: float = found["speedup"]
    return f"{speedup:.1f}" if speedup < 10 else f"{speedup:.0f}"


def _media(results: Sequence[dict[str, Any]], reasons: RefusalReasons) -> Iterator[str]:
    """Return the section on audio and image families: what works, and why others are rejected."""
    tried = [one for one in results if "skipped" not in one]
    refused: dict[str, list[str]] = {}
    for one in results:
        if "skipped" in one:
            refused.setdefault(one["skipped"], []).append(f"`{one['kind']}`")
    yield MEDIA_HEAD.format(tried=len(tried), refused=sum(map(len, refused.values())))
    yield from _tables(tried, reasons, "#")
    yield "\n### Not supported\n"
    yield from (f"- {', '.join(kinds)}: {why}" for why, kinds in sorted(refused.items()))


def _cache_titles(tried: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Title and name of each that was tried with every model."""
    registry = core.caches.registry
    return [(registry[name].title, name) for name in registry if all(name in _greedy(one) for one in tried)]


def _strategies(one: dict[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = one["strategies"]
    return found


def _greedy(one: dict[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = one["caches"]["greedy"]
    return found


def _drafted(one: dict[str, Any]) -> dict[str, Sequence[str]]:
    found: dict[str, Sequence[str]] = one["caches"]["prompt_lookup"]
    return found


def _table(
    tried: Iterable[dict[str, Any]],
    columns: Sequence[tuple[str, str]],
    cells: Callable[[dict[str, Any]], dict[str, Sequence[str]]],
    reasons: RefusalReasons,
) -> Iterator[str]:
    """A row for all model types whose cells are the same: there are two hundred."""
    yield f"| model types | {' | '.join(title for title, _ in columns)} |"
    yield f"| --- |{' --- |' * len(columns)}"
    rows: dict[tuple[str, ...], list[str]] = {}
    for one in tried:
        found = cells(one)
        rows.setdefault(tuple(reasons.cell(found[name]) for _, name in columns), []).append(one["kind"])
    for row, kinds in sorted(rows.items(), key=lambda item: -len(item[1])):
        yield f"| {', '.join(f'`{kind}`' for kind in kinds)} | {' | '.join(row)} |"
