"""Sentences of the memory, speculation and comparison views: each figure is held against the events of real runs.

The figures are computed here from the measured bytes, the drafted tokens and the token ids, not by the code that words
them. A sentence that no claim below knows is a failure too.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import transformers as t

from decodescope import core
from decodescope.app.session.engine import CoreEngine
from decodescope.app.state.comparison.candidates import ComparisonCandidate
from decodescope.app.state.comparison.results import start_comparison
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, Outcome, RunRequest
from decodescope.app.views.compare.comparison_kinds import entry_summary
from decodescope.app.views.memory.cached_tokens import token_rows, token_tooltip
from decodescope.app.views.memory.report import cache_report
from decodescope.app.views.speculation.cards import acceptance_by_position
from decodescope.app.views.speculation.round_report import describe_round, drafter_names, node_report, speed_rows
from decodescope.core import words
from decodescope.core.events import CacheMeasured, DraftNode, DraftRound, Finished, Metrics
from decodescope.core.strategies import registry
from decodescope.resources import depth
from tests.ui.scripted import end_token, started, token

PROMPT = "Once upon a time, there was a little fox who lived"
DRAFT, OTHER_DRAFT = "storyteller-draft", "storyteller-draft-b"


@cache
def engine() -> CoreEngine:
    return CoreEngine()


def make_run(model: str, strategy: str, cache: str = "dynamic", drafts: Sequence[str] = (), prompt: str = PROMPT,
             cache_options: Any = None, **settings: Any) -> Run:  # fmt: skip
    chosen = registry[strategy]
    defaults = {p.name: p.default for p in chosen.parameters if p.default is not None}
    request = RunRequest(
        prompt, defaults | {"max_new_tokens": 48} | settings, strategy, cache=cache, cache_options=cache_options or {},
        load=LoadRequest(model), draft_names=tuple(drafts), seed=3,
    )  # fmt: skip
    engine().load(request.load)
    run = Run(request)
    for event in engine().stream(request, threading.Event()):
        run.apply([event])
    run.outcome = Outcome("completed")
    return run


# Memory

NUMBER, SIZE = r"([\d,]+)", r"([\d.]+ (?:B|KiB|MiB))"
SLIDING = {"cache": "model_specific", "min_new_tokens": 48}
MEMORY_RUNS: dict[str, dict[str, Any]] = {
    "dynamic": {},
    "three texts": {"strategy": "sampling", "num_return_sequences": 3},
    "beams": {"strategy": "beam_search", "num_beams": 4},
    "drafts": {"strategy": "assisted", "drafts": (DRAFT,)},
    "static": {"cache": "static"},
    "quantized": {"cache": "quantized", "cache_options": {"residual_length": 32}},
    "sinks": {"cache": "sink", "cache_options": {"window_length": 24, "num_sink_tokens": 3}},
    "sinks, beams": {"strategy": "beam_search", "num_beams": 3, "cache": "sink",
                     "cache_options": {"window_length": 24, "num_sink_tokens": 3}},
    "disk": {"cache": "offloaded"},
    "recurrent": {"model": "storyteller-mamba"},
    "window": {"model": "storyteller-window", "cache": "sliding_window", "max_new_tokens": 70},
    "window, full layers": {"model": "gemma3", **SLIDING},
    "window, full layers, static": {"model": "gemma3", "cache": "static", "min_new_tokens": 48},
    "states, full layers": {"model": "lfm2", "min_new_tokens": 48},
    "encoder": {"model": "summarizer", "cache": "encoder_decoder"},
}  # fmt: skip


@pytest.fixture(scope="module")
def hybrids(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Tiny random models of which some layers only have a window or a state, with the storyteller's tokenizer."""
    tokenizer = t.AutoTokenizer.from_pretrained(core.catalog.BUNDLED / "storyteller")
    shape = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 256, "bos_token_id": 1,
        "eos_token_id": 2, "pad_token_id": 0,
    }  # fmt: skip
    full = ["full_attention"] * 2
    layers = [kind for pair in zip(["sliding_attention"] * 2, full, strict=True) for kind in pair]
    gemma = t.Gemma3TextConfig(**shape, head_dim=8, sliding_window=16, layer_types=layers)
    states = t.Lfm2Config(**shape, layer_types=[kind.replace("sliding_attention", "conv") for kind in layers])
    found = {}
    for name, model in (("gemma3", t.Gemma3ForCausalLM(gemma)), ("lfm2", t.Lfm2ForCausalLM(states))):
        folder: Path = tmp_path_factory.mktemp(name)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        found[name] = str(folder)
    return found


def whole(figure: str) -> int:
    return int(figure.replace(",", ""))


class Measurements:
    """Measurements of a cache, and values that follow from them and from the model's shape."""

    def __init__(self, run: Run, folder: str, rows: int) -> None:
        self.events = [event for event in run.events if isinstance(event, CacheMeasured)]
        shape = t.AutoConfig.from_pretrained(folder)
        heads = getattr(shape, "num_attention_heads", 1)  # a recurrent model has none
        self.layer = 2 * 4 * rows * (getattr(shape, "num_key_value_heads", None) or heads) * (
            getattr(shape, "head_dim", None) or shape.hidden_size // heads
        )  # fmt: skip
        """Bytes of the keys and values of one token in one layer, in float32, for all texts."""
        self.all_layers: int = self.layer * shape.num_hidden_layers

    def part(self, at: CacheMeasured, name: str) -> int:
        return sum(size for _, part, size in at.parts if part == name)

    def read(self, at: CacheMeasured) -> int:
        return at.held[-1][1] if at.held else at.tokens

    def growth(self) -> float:
        """Bytes that a token added between the last two measurements."""
        a, b = next((a, b) for a, b in reversed(list(pairwise(self.events))) if b.tokens > a.tokens)
        return (b.bytes - a.bytes) / (b.tokens - a.tokens)

    def is_constant(self, part: str) -> bool:
        return len({self.part(event, part) for event in self.events}) == 1

    def on_disk(self, at: CacheMeasured) -> int:
        return sum(size for place, _, size in at.parts if place == "disk")

    def peak_of_blocks(self, at: CacheMeasured, block: int) -> int:
        """Most bytes up to this measurement of a cache that packs whole blocks; between measurements too."""
        packed, exact = at.tokens // block * block, self.part(at, "residual")
        each = (at.bytes - exact) / packed if packed else 0
        lengths = range(self.events[0].tokens, at.tokens + 1)
        return round(max((n // block * block * each + n % block * self.all_layers for n in lengths), default=0))

    def full(self, at: CacheMeasured) -> int:
        """Bytes of a cache that keeps everything."""
        return self.all_layers * self.read(at)


def _is_sink(m: Measurements, at: CacheMeasured, sinks: str, latest: str, full: str) -> bool:
    spans = at.held
    return (spans[0] == (0, int(sinks)) and spans[-1][1] - spans[-1][0] == int(latest)
            and full == words.size(m.full(at)))  # fmt: skip


def _is_window(m: Measurements, at: CacheMeasured, room: str, full: str) -> bool:
    held = sum(stop - start for start, stop in at.held) if at.held else 0
    return held <= int(room) and (held == int(room) or held in (0, m.read(at))) and full == words.size(m.full(at))


def _is_quantized(m: Measurements, at: CacheMeasured, block: str, bits: str, waiting: int, full: str) -> bool:
    exact = m.part(at, "residual") / m.all_layers
    return exact == waiting and at.tokens % int(block) == waiting and full == words.size(m.full(at))


MEMORY_CLAIMS: list[tuple[str, Callable[..., bool]]] = [
    (rf"Every token adds {NUMBER} bytes; nothing is ever dropped\.",
     lambda m, at, each: whole(each) == m.growth() and at.bytes == whole(each) * at.tokens),
    (rf"{NUMBER} bytes per token × {NUMBER} tokens; nothing is evicted\.",
     lambda m, at, each, length: at.bytes == whole(each) * whole(length) and whole(length) == at.tokens),
    (rf"{SIZE} store the prompt once for all {NUMBER} texts\. From the next step on, each has its own copy, and every "
     rf"step adds {NUMBER} bytes\.",
     lambda m, at, size, texts, each: size == words.size(at.bytes) and m.growth() == whole(each)
     and whole(each) * at.tokens == at.bytes * whole(texts)),
    (rf"{NUMBER} bytes: one row for {NUMBER} texts\. From the next step on {NUMBER} rows, {NUMBER} bytes per step\.",
     lambda m, at, size, texts, rows, each: whole(size) == at.bytes and texts == rows
     and whole(each) * at.tokens == at.bytes * whole(texts)),
    (rf"Every token adds {NUMBER} bytes; some layers keep a state of {SIZE} instead, which does not grow\.",
     lambda m, at, each, state: whole(each) == m.growth() and m.is_constant("state")
     and state == words.size(m.part(at, "state"))),
    (rf"{NUMBER} bytes per token × {NUMBER} tokens \+ {NUMBER} bytes of states\.",
     lambda m, at, each, length, state: whole(each) * whole(length) + whole(state) == at.bytes),
    (rf"Everything read is folded into a state of {SIZE}; it does not grow with the text\.",
     lambda m, at, size: size == words.size(at.bytes) and m.is_constant("state")),
    (rf"Recurrent state: {NUMBER} bytes, independent of the text length\.",
     lambda m, at, size: whole(size) == at.bytes and m.is_constant("state")),
    (rf"Room for {NUMBER} tokens was reserved at once; (.+? %) of it is used\.",
     lambda m, at, room, used: len({event.bytes for event in m.events}) == 1
     and used == words.percent(at.tokens / whole(room))),
    (rf"{NUMBER} of {NUMBER} allocated positions are used, (.+? %)\.",
     lambda m, at, length, room, used: whole(length) == at.tokens and used == words.percent(at.tokens / whole(room))),
    (rf"There is room for {NUMBER} tokens; none dropped yet\. When it is full, the oldest go first\.",
     lambda m, at, room: m.read(at) <= whole(room) and at.held == ((0, m.read(at)),)),
    (rf"{NUMBER} of {NUMBER} positions are used; nothing is evicted yet\.",
     lambda m, at, length, room: m.read(at) == whole(length) <= whole(room)),
    (rf"The first {NUMBER} tokens are kept as sinks, and of the rest only the latest {NUMBER}\. A full cache would "
     rf"take {SIZE} by now\.", _is_sink),
    (rf"{NUMBER} sinks \+ the latest {NUMBER} of {NUMBER} positions; a dynamic cache would take {NUMBER} bytes\.",
     lambda m, at, sinks, latest, length, full: whole(length) == m.read(at) and whole(full) == m.full(at)
     and _is_sink(m, at, sinks, latest, words.size(whole(full)))),
    (rf"Windowed layers store only the latest {NUMBER} tokens; a full cache would take {SIZE}\.", _is_window),
    (rf"Windowed layers store w − 1 = {NUMBER} positions; a full cache would take {NUMBER} bytes\.",
     lambda m, at, room, full: whole(full) == m.full(at) and _is_window(m, at, room, words.size(whole(full)))),
    (rf"{SIZE} are on disk; between two steps only one layer at a time is in memory\.",
     lambda m, at, size: size == words.size(m.on_disk(at))
     and at.bytes - m.on_disk(at) <= m.layer * (at.tokens + 1)),
    (rf"{NUMBER} bytes on disk; between two steps one layer at a time is in memory\.",
     lambda m, at, size: whole(size) == m.on_disk(at)),
    (rf"{SIZE} store the encoder's output and never change; the rest grows by {NUMBER} bytes per token\.",
     lambda m, at, size, each: m.is_constant("cross") and size == words.size(m.part(at, "cross"))
     and m.part(at, "self") == whole(each) * at.tokens),
    (rf"Cross-attention: {NUMBER} bytes, constant; self-attention: {NUMBER} bytes per token\.",
     lambda m, at, size, each: whole(size) == m.part(at, "cross")
     and m.part(at, "self") == whole(each) * at.tokens),
    (rf"Every {NUMBER} tokens are quantized to {NUMBER} bits; the latest {NUMBER} are not quantized yet\. Unquantized, "
     rf"all would take {SIZE}\.",
     lambda m, at, block, bits, waiting, full: _is_quantized(m, at, block, bits, int(waiting), full)),
    (rf"Every {NUMBER} tokens are quantized to {NUMBER} bits; the latest one is not quantized yet\. Unquantized, all "
     rf"would take {SIZE}\.", lambda m, at, block, bits, full: _is_quantized(m, at, block, bits, 1, full)),
    (rf"Every {NUMBER} tokens are quantized to {NUMBER} bits, now all of them\. Unquantized, all would take {SIZE}\.",
     lambda m, at, block, bits, full: _is_quantized(m, at, block, bits, 0, full)),
    (rf"{NUMBER} positions in {NUMBER} bits, {NUMBER} in full precision, blocks of {NUMBER}; a dynamic cache would "
     rf"take {NUMBER} bytes\.",
     lambda m, at, packed, bits, waiting, block, full: whole(packed) + whole(waiting) == at.tokens
     and _is_quantized(m, at, block, bits, whole(waiting), words.size(whole(full)))),
]  # fmt: skip


def check_claims(said: str, claims: list[tuple[str, Callable[..., bool]]], *facts: Any) -> Iterator[int]:
    """Return the numbers of the claims in a text; fail for a false claim or a text without one."""
    rest = str(said)
    while rest:
        for number, (pattern, is_true) in enumerate(claims):
            if match := re.match(rf"{pattern}(?: |$)", rest, re.DOTALL):
                assert is_true(*facts, *(group or "" for group in match.groups())), said
                rest = rest[match.end() :]
                yield number
                break
        else:
            pytest.fail(f"no known claim: {rest!r} in {said!r}")


@pytest.mark.every(4)
@pytest.mark.parametrize("name", MEMORY_RUNS)
def test_memory_view_sentences_match_events(name: str, hybrids: dict[str, str]) -> None:
    settings = {"model": "storyteller", "strategy": "greedy", **MEMORY_RUNS[name]}
    model = settings["model"] = hybrids.get(settings["model"], settings["model"])
    rows = settings.get("num_beams") or settings.get("num_return_sequences") or 1
    run = make_run(**settings)
    known = Measurements(run, str(core.catalog.locate(model)), rows)
    history, made, largest = run.cache_history, set[int](), 0
    written = {0: 0} | {event.step: event.step for event in known.events}
    assert len(known.events) > 1
    for event in known.events:
        largest = max(largest, event.bytes)
        x = next(point.x for point in history.points if point.bytes == event.bytes and point.x >= written[event.step])
        for level in (depth.USUAL, depth.EXACT):
            with depth.depth_context(level):
                report = cache_report(history, run, x)
            assert report is not None
            made |= set(check_claims(report.sentence, MEMORY_CLAIMS, known, event))
        assert report.token == words.size(event.bytes)
        peak = re.search(r"peak ([\d.]+ \w+)", report.facts)
        assert peak is not None
        assert peak[1] in {words.size(largest), words.size(event.peak), words.size(known.peak_of_blocks(event, 32))}
        listed = [row.cells for row in report.rows]
        parts = [whole(size) for (_, size), row in zip(listed, report.rows, strict=True) if not row.faint]
        assert sum(parts) == event.bytes
        by_token = [whole(size) for (_, size), row in zip(listed, report.rows, strict=True)
                    if row.faint and size.replace(",", "").isdigit()]  # fmt: skip
        if by_token and history.plan is not None and history.plan.capacity is None:
            assert sum(by_token) == event.bytes, listed
        _check_cells(history, run, x, event)
    assert made


def _check_cells(history: Any, run: Run, x: int, event: CacheMeasured) -> None:
    """Check that the bytes in all token tooltips add up to the cache, without its extra buffers."""
    said = 0
    for row in token_rows(history, run, x):
        for index in range(len(row.states)):
            if found := re.search(r": ([\d,]+) bytes(?:, reserved| now|$)", token_tooltip(history, run, row, index)):
                said += whole(found[1])
    besides = sum(size for _, part, size in event.parts if part == "state")
    on_disk = any(place == "disk" for place, _, _ in event.parts)
    if (
        said
        and not on_disk
        and not any(part == "cross" for _, part, _ in event.parts)
        and not (history.plan is not None and history.plan.capacity and history.plan.window)
    ):
        assert said == event.bytes - besides


# Speculation

SPECULATION_RUNS: dict[str, dict[str, Any]] = {
    "draft": {"strategy": "assisted", "drafts": (DRAFT,)},
    "draft, sampled": {"strategy": "assisted", "drafts": (DRAFT,), "do_sample": True, "temperature": 1.3},
    "two drafts and the text, sampled": {
        "strategy": "assisted", "drafts": (DRAFT, OTHER_DRAFT), "with_lookup": True, "do_sample": True,
        "max_new_tokens": 120,
    },
    "tree": {"strategy": "token_tree", "drafts": (DRAFT,)},
    "tree of two, sampled": {
        "strategy": "token_tree", "drafts": (DRAFT, OTHER_DRAFT), "do_sample": True, "temperature": 1.4,
        "max_new_tokens": 120,
    },
    "text": {"strategy": "prompt_lookup", "prompt": "The fox ran. The fox ran. The fox ran. The"},
    "own layers": {"strategy": "early_exit", "assistant_early_exit": 4},
    "lookahead": {"strategy": "lookahead"},
}  # fmt: skip
NAME = r"(“.+?”|⟨.+?⟩|[Aa] line break|[Aa] space|[Ww]hite space|[Aa]n empty token)"
SHARE = r"((?:over |under |[<>≈] )?[\d.]+ %)"


def _length(entry: DraftRound) -> int:
    return max(node.depth for node in entry.nodes)


def _is_path(entry: DraftRound) -> bool:
    """The accepted nodes are a path from the text on, each drafted after the one before it."""
    nodes = {node.node: node for node in entry.nodes}
    return [nodes[n].parent for n in entry.accepted] == [0, *entry.accepted[:-1]][: len(entry.accepted)]


def _after_path(entry: DraftRound) -> list[DraftNode]:
    end = entry.accepted[-1] if entry.accepted else 0
    return [node for node in entry.nodes if node.parent == end]


ENDINGS = (
    rf"(,|;) (?:(?:and )?{NAME} came as a bonus from the same pass|"
    rf"the model replaced the first rejected one with {NAME}|the text ended there)\."
)


def _is_round(entry: DraftRound, count: str, tree_depth: str, kept: str, bonus: str, correction: str) -> bool:
    compared = [node for node in _after_path(entry) if node.fate == "refused"]
    return (
        whole(count) == len(entry.nodes)
        and (int(tree_depth) == _length(entry) < len(entry.nodes) if tree_depth else _length(entry) == len(entry.nodes))
        and {"it was rejected": 0, "none was accepted": 0, "it was accepted": 1}.get(kept.lower(), -1)
        in (-1, len(entry.accepted))
        and (not (found := re.match(r"(?:all )?(\d+) (?:was|were) accepted", kept.lower()))
             or int(found[1]) == len(entry.accepted))
        and (not kept.startswith("All") or len(entry.accepted) == len(entry.nodes))
        and _is_path(entry)
        and (not bonus or (entry.extra_kind == "bonus" and not _after_path(entry)
                           and words.quote(entry.extra_piece, entry.extra_special) == bonus))
        and (not correction or (entry.extra_kind == "correction" and bool(compared)
                                and entry.extra_id not in {node.id for node in compared if node.ratio is None}
                                and words.quote(entry.extra_piece, entry.extra_special) == correction))
        and bool(bonus or correction or entry.extra_kind == "none")
    )  # fmt: skip


def _is_reproduced_choice(node: DraftNode, ratio: str, number: str, verb: str) -> bool:
    return (
        node.ratio is not None and node.die is not None and f"{node.ratio:.{len(ratio) - 2}f}" == ratio
        and f"{node.die:.{len(number) - 2}f}" == number and float(number) != float(ratio)
        and (float(number) < float(ratio)) == (verb == "accepted") == (node.fate == "accepted")
    )  # fmt: skip


def _compares(entry: DraftRound, node: DraftNode, who: str, name: str, share: str, target: str) -> bool:
    shares = words.format_share_pair(node.draft_probability, node.target_probability)
    return words.quote(node.piece, node.special) == name and (share, target) == tuple(shares)


def _would_write(entry: DraftRound, node: DraftNode, other: str) -> bool:
    """The token that the target alone writes after the node's parent."""
    siblings = [one for one in entry.nodes if one.parent == node.parent and one.fate == "accepted"]
    chosen = {words.quote(one.piece, one.special) for one in siblings}
    if not chosen and node in _after_path(entry) and entry.extra_kind == "correction":
        chosen = {words.quote(entry.extra_piece, entry.extra_special)}
    return other in chosen and words.quote(node.piece, node.special) != other


NODE_CLAIMS: list[tuple[str, Callable[..., bool]]] = [
    (rf"((?:The drafter|Drafter).*?) gave {NAME} {SHARE}(?: \([A-C](?: and [A-C])* proposed it too\))?, the model "
     rf"{SHARE}\.", _compares),
    (rf"((?:The drafter|Drafter).*?) gave {NAME} {SHARE}(?: \([A-C](?: and [A-C])* proposed it too\))?\. It was not "
     r"compared: (.+?)\.",
     lambda e, n, who, name, share, reason: n.fate == "unreached" and words.quote(n.piece, n.special) == name
     and {"a token before it was not accepted": n.parent not in (0, *e.accepted),
          "another token was accepted in its place": any(
              one.parent == n.parent and one.fate == "accepted" for one in e.nodes),
          "the text had ended": e.extra_kind == "none"}[reason]),
    (r"The model rates it at least as likely as the drafter, so it is always accepted\.",
     lambda e, n: n.fate == "accepted" and n.target_probability >= n.draft_probability * 0.999),
    (r"Of the probability that the tokens tried before it left, it has at least as much as the drafter gave it, so it "
     r"is always accepted\.",
     lambda e, n: n.fate == "accepted" and n.target_probability < n.draft_probability and n.ratio == 1
     and (len(n.proposers) > 1 or any(one.parent == n.parent and one.fate == "refused" for one in e.nodes))),
    (r"Accepted if the random number is below ([\d.]+); it was ([\d.]+), so it was (accepted|rejected)\.",
     lambda e, n, ratio, die, verb: _is_reproduced_choice(n, ratio, die, verb)),
    (r"The model alone would choose it here, so it was accepted\.",
     lambda e, n: n.fate == "accepted" and n.node in e.accepted and n.target_probability >= max(
         one.target_probability for one in e.nodes if one.parent == n.parent)),
    (rf"The model alone would choose {NAME} here, so it was rejected\.", _would_write),
    (r"The model alone would choose another token here, so it was rejected\.", lambda e, n: n.fate == "refused"),
]  # fmt: skip
ROUND = (rf"Round (\d+): (\d+) tokens? drafted(?: in a tree of depth (\d+))?, (?:all|and) verified in one pass of the "
         rf"model\. (.+?){ENDINGS}")  # fmt: skip


@pytest.mark.every(2)
@pytest.mark.parametrize("name", SPECULATION_RUNS)
def test_speculation_view_sentences_match_events(name: str) -> None:
    run = make_run("storyteller", **SPECULATION_RUNS[name])
    rounds, drafters = run.rounds.rounds, drafter_names(run.request)
    assert rounds
    accepted = examined = 0
    for number, entry in enumerate(rounds):
        said = describe_round(entry, drafters)
        match = re.match(ROUND, said, re.DOTALL)
        assert match is not None, said
        shown, count, tree_depth, kept, _, bonus, correction = match.groups()
        assert int(shown) == number + 1
        assert _is_round(entry, count, tree_depth, kept, bonus or "", correction or ""), said
        written = run.tokens[entry.step : entry.step + len(entry.accepted)]
        by_number = {node.node: node for node in entry.nodes}
        assert [token.id for token in written] == [by_number[node].id for node in entry.accepted]
        for node in entry.nodes:
            list(check_claims(node_report(entry, node.node, drafters).sentence, NODE_CLAIMS, entry, node))
        accepted += len(entry.accepted)
        examined += len(entry.accepted) + (entry.extra_kind == "correction")
    assert run.finished is not None
    metrics = run.finished.metrics
    rows = {row[0]: row[2] for row in speed_rows(run.finished, None)}
    if all(entry.extra_kind != "none" for entry in rounds):  # the metrics count what a limit of the text cut off
        assert metrics.acceptance_rate == accepted / examined
        assert rows["accepted"] == words.percent(accepted / examined)
    assert rows["tokens / pass"] == f"{len(run.tokens) / metrics.target_passes:,.1f}"
    bars = acceptance_by_position(run.rounds).bars[0]
    for at, share in enumerate(bars.values, 1):
        examined = [entry for entry in rounds if any(n.depth == at and n.fate != "unreached" for n in entry.nodes)]
        assert share == sum(len(entry.accepted) >= at for entry in examined) / len(examined)


def test_drafter_choice_sentence_matches_measured_speeds() -> None:
    """With longer texts several drafters are compared; the one that was used is the best, or named as an exception."""
    run = make_run(
        "storyteller", "assisted", drafts=(DRAFT, OTHER_DRAFT), several="choose", max_new_tokens=150,
        do_sample=True, min_new_tokens=150,
    )  # fmt: skip
    chosen = [entry.choice for entry in run.rounds.rounds if entry.choice is not None]
    assert chosen
    for entry in run.rounds.rounds:
        choice = entry.choice
        if choice is None:
            continue
        best = choice.worths.index(max(choice.worths))
        said = describe_round(entry, drafter_names(run.request))
        if "the best so far" in said:
            assert choice.asked == best
            assert f"{choice.worths[best]:.2f} times as fast" in said
        elif "has been faster so far" in said:
            assert f"{'AB'[best]} ({(DRAFT, OTHER_DRAFT)[best]}) has been faster" in said
            assert choice.asked != best
        elif "to measure its speed-up" in said:
            assert choice.times[choice.asked] < 2
        assert re.search(rf"drafter\s{'AB'[choice.asked]}\b", said, re.IGNORECASE)


# Comparison


def _entry_pair(one: Run, other: Run, state: str = "done") -> tuple[Any, Any, Any]:
    runs = enumerate((one, other))
    candidates = [ComparisonCandidate(str(n), f"Run {n}", "", run.request, run=run) for n, run in runs]
    comparison = start_comparison(candidates)
    comparison.start()
    comparison.entries[1].state = state  # type: ignore[assignment]
    return comparison, *comparison.entries


@pytest.mark.every(2)
@pytest.mark.parametrize("settings", [{}, {"temperature": 1.6}, {"top_k": 2}, {"repetition_penalty": 1.4}])
def test_a_summary_names_the_first_difference(settings: dict[str, Any]) -> None:
    plain = make_run("storyteller", "greedy")
    other = make_run("storyteller", "sampling" if settings else "greedy", **settings)
    comparison, _, entry = _entry_pair(plain, other)
    said = entry_summary(comparison, entry)
    ours, theirs = ([token.id for token in run.tokens] for run in (other, plain))
    if ours == theirs:
        assert said == f"same {len(ours)} tokens"
        return
    match = re.fullmatch(r"differs at (\d+): (.+), not (.+)", said)
    assert match is not None, said
    place = int(match[1]) - 1
    assert ours[:place] == theirs[:place]
    assert ours[place : place + 1] != theirs[place : place + 1]
    assert match[2] != match[3]


def test_the_end_of_a_stopped_text_is_no_difference() -> None:
    plain, begun = (make_run("storyteller", "greedy", max_new_tokens=count) for count in (48, 11))
    for one, other, how in ((plain, begun, "stopped; "), (begun, plain, "")):
        comparison, reference, entry = _entry_pair(one, other)
        (entry if how else reference).state = "stopped"
        assert entry_summary(comparison, entry) == f"{how}same first 11 tokens"
    comparison, _, entry = _entry_pair(plain, begun)
    assert re.fullmatch("differs at 12: the end, not “.+”", entry_summary(comparison, entry))


def test_equal_looking_tokens_are_distinguished_by_id() -> None:
    runs = []
    for number in (71, 72):
        run = Run(RunRequest("Once", strategy="greedy", load=LoadRequest("storyteller")))
        run.apply([started(), replace(token(0, " a", 0.5), id=number), end_token(1)])
        run.apply([Finished("completed", ((),), (" a",), Metrics(9, 2, 2.0, 0.25, None, 40.0, 12))])
        run.outcome = Outcome("completed")
        runs.append(run)
    comparison, _, entry = _entry_pair(*runs)
    assert entry_summary(comparison, entry) == "differs at 1: “␣a” (token 72), not “␣a” (token 71)"
