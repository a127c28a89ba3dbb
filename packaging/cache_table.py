"""Write docs/cache-compatibility.md: which cache supports which kind of model and which strategy.

Run from the repository's root: python packaging/cache_table.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from decodescope import core  # noqa: E402  # the root has to be on the path first
from tests.core import tiny  # noqa: E402

PAGE = ROOT / "docs" / "cache-compatibility.md"
KINDS = {
    "llama": "Full attention, rotary positions (Llama, Qwen)",
    "gpt2": "Full attention, learned positions (GPT-2)",
    "mistral": "A window in every layer (Mistral)",
    "gemma3": "A window in some layers (Gemma)",
    "t5": "Encoder–decoder (T5, Bart)",
    "mamba": "Recurrent state (Mamba)",
}
HEAD = """# Which cache serves what

Written by `packaging/cache_table.py` from what the caches and strategies say of themselves; do not edit by hand.
A number stands for a reason below.
"""


def request(strategy: str, cache: str, model: core.LoadedModel) -> core.Request:
    """A request with what the strategy cannot do without."""
    drafters = (model,) if core.strategies.registry[strategy].takes_drafters else ()
    options = {"must_contain": "5"} if strategy == "constrained_beam_search" else {}
    return core.Request(tiny.prompt(), strategy=strategy, cache=cache, drafters=drafters, options=options)


def why_not(kind: str, strategy: str, cache: str) -> str | None:
    """Why a cell of the tables is not allowed, without the model's name; None when it is."""
    model = tiny.shared(kind)
    entry = core.strategies.registry[strategy]
    reason = core.caches.registry[cache].unsupported_reason(model, entry.needs) or entry.unsupported_reason(
        model, request(strategy, cache, model)
    )
    return reason.replace(model.name, "the model") if reason else None


class Reasons:
    """Sentences, numbered in the order they are met."""

    def __init__(self) -> None:
        self.known: list[str] = []

    def cell(self, reason: str | None) -> str:
        """`yes` or the number of the reason."""
        if reason is None:
            return "yes"
        if reason not in self.known:
            self.known.append(reason)
        return f"[{self.known.index(reason) + 1}](#reasons)"


def grid(title: str, columns: list[str], rows: list[tuple[str, list[str]]]) -> str:
    """A Markdown table."""
    lines = [f"| {title} | {' | '.join(columns)} |", f"| --- |{' --- |' * len(columns)}"]
    return "\n".join(lines + [f"| {name} | {' | '.join(cells)} |" for name, cells in rows]) + "\n"


def page() -> str:
    """The whole document."""
    reasons, caches = Reasons(), core.caches.registry
    titles = [f"{backend.title}{'' if backend.exact else ' *'}" for backend in caches.values()]
    models = [
        (title, [reasons.cell(why_not(kind, "greedy", cache)) for cache in caches]) for kind, title in KINDS.items()
    ]
    parts = [HEAD, "## By model\n", grid("Model", titles, models)]
    for kind in ("llama", "gemma3", "t5", "mamba"):
        rows = [
            (entry.title, [reasons.cell(why_not(kind, name, cache)) for cache in caches])
            for name, entry in core.strategies.registry.items()
        ]
        parts += [f"## By strategy: {KINDS[kind][0].lower()}{KINDS[kind][1:]}\n", grid("Strategy", titles, rows)]
    parts += ["\\* forgets or rounds: the text may differ from that of the dynamic cache. All others write the same.\n"]
    parts += ["## Reasons\n", "\n".join(f"{n}. {sentence}" for n, sentence in enumerate(reasons.known, 1)) + "\n"]
    return "\n".join(parts)


def main() -> int:
    """Write the page, or compare it with what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    text = page()
    if parser.parse_args().check:
        return int(not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
