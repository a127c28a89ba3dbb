"""Describe a finished run by numbers: texts with their ends and scores, measures, metrics."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from decodescope.core.errors import PluginError

if TYPE_CHECKING:
    from decodescope.core.events import BeamCandidate, Event, Finished, Hypothesis, TokenChosen

_NAT = math.log(2)


def distinct(ids: Sequence[Hashable], n: int) -> float | None:
    """Return distinct-n (Li et al. 2016): distinct n-grams ÷ n-grams; None for a text of fewer than n tokens."""
    grams = [tuple(ids[at : at + n]) for at in range(len(ids) - n + 1)]
    return len(set(grams)) / len(grams) if grams else None


def mean_entropy(tokens: Sequence[TokenChosen]) -> float | None:
    """Return the mean entropy of the model's own distribution per token, in bits."""
    return _none_if_nan(sum(token.entropy for token in tokens) / len(tokens) / _NAT) if tokens else None


def mean_log_probability(tokens: Sequence[TokenChosen | BeamCandidate]) -> float | None:
    """Return the mean natural log probability per token by the model alone; perplexity is exp of its negative.

    `tokens`: those of a text, or the candidates on a path of a beam search.
    """
    return _none_if_nan(sum(token.raw_log_probability for token in tokens) / len(tokens)) if tokens else None


def _none_if_nan(mean: float) -> float | None:
    """Return None for NaN, used for values that a remote engine does not report."""
    return None if math.isnan(mean) else mean


def uses_seed(events: Iterable[Event]) -> bool:
    """Return whether random numbers can have had an effect on a run of the program's own strategies: those draw them
    only with `do_sample`. An engine may not repeat its texts exactly in any case.
    """
    from decodescope.core.events import RunStarted

    started = next((event for event in events if isinstance(event, RunStarted)), None)
    return started is None or bool(started.engine) or bool(dict(started.settings).get("do_sample"))


def describe_run(events: Sequence[Event]) -> tuple[dict[str, Any], list[PluginError]]:
    """Return strategy, cache and effective settings of a run, complete or not, its texts with their measures, and its
    metrics; and the errors of measures.
    """
    from decodescope.core.events import Finished, RunStarted

    started = next((event for event in events if isinstance(event, RunStarted)), None)
    last = events[-1] if events and isinstance(events[-1], Finished) else None
    found: dict[str, Any] = {}
    if started is not None:
        found = {"strategy": started.strategy, "cache": started.cache, "settings": dict(started.settings)}
    errors: list[PluginError] = []
    texts = list(_describe_texts(events, last, errors))
    found |= {"text": texts[0]["text"] if texts else "", "texts": texts}
    return found if last is None else found | {"metrics": asdict(last.metrics)}, errors


def _describe_texts(
    events: Sequence[Event], last: Finished | None, errors: list[PluginError]
) -> Iterator[dict[str, Any]]:
    """Yield each text of a run, best first, with the reason of its end, its score and its measures."""
    from decodescope.core import measures
    from decodescope.core.events import BeamsRanked, BeamStep, SequenceFinished, TokenChosen

    chosen = [event for event in events if isinstance(event, TokenChosen)]
    ends = {event.sequence: event for event in events if isinstance(event, SequenceFinished)}
    ranked = [one for event in events if isinstance(event, BeamsRanked) for one in event.hypotheses]
    nodes = {one.node: one for event in events if isinstance(event, BeamStep) for one in event.candidates}
    if last is None:
        yield {"text": "".join(token.text for token in chosen if token.sequence == 0)}
        return
    for place, (ids, text) in enumerate(zip(last.sequences, last.texts, strict=True)):
        sequence = last.order[place] if place < len(last.order) else place
        tokens = [token for token in chosen if token.sequence == sequence]
        path = _beam_path(next((one for one in ranked if one.ids == ids), None), nodes)
        values, problems = measures.measure(measures.MeasuredText(text, tokens))
        errors += problems
        end = ends[sequence].reason if sequence in ends else path[0].ended if path else None
        yield {
            "text": text,
            "finish": end,
            "tokens": len(ids),
            "score": last.scores[place] if last.scores is not None else None,
            "mean_log_probability": mean_log_probability(path or tokens),
            "measures": dict(values),
        }


def _beam_path(hypothesis: Hypothesis | None, nodes: Mapping[int, BeamCandidate]) -> list[BeamCandidate]:
    """Return the candidates on the path of a hypothesis, last first."""
    path: list[BeamCandidate] = []
    node = hypothesis.node if hypothesis is not None else 0
    while node in nodes:
        path.append(nodes[node])
        node = nodes[node].parent
    return path
