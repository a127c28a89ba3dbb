"""The runs shown in the guide's pictures, without a window."""

from __future__ import annotations

import threading

from decodescope.app.album.picture import Picture
from decodescope.app.session.engine import CoreEngine
from decodescope.app.state.run import Run
from decodescope.app.state.worker_messages import LoadRequest, RunRequest
from decodescope.app.storage import examples
from decodescope.core import strategies

_SEED = 42
"""What a new window begins with."""


class GuideRuns:
    """Makes them, each once."""

    def __init__(self) -> None:
        self._engine = CoreEngine()
        self._examples = {example.id: example for example in examples.load_examples()}
        self._made: dict[tuple[int, str, int | None], Run] = {}

    def of(self, picture: Picture, strategy: str = "", tokens: int | None = None) -> Run:
        """Return a picture's run, or its prompt with another strategy, limited to `tokens` new tokens."""
        key = (picture.number, strategy, tokens)
        if key not in self._made:
            request = self._request(picture, strategy, tokens)
            self._engine.load(request.load)
            run = Run(request)
            run.apply(self._engine.stream(request, threading.Event()))
            self._made[key] = run
        return self._made[key]

    def _request(self, picture: Picture, name: str, tokens: int | None) -> RunRequest:
        example = self._examples[picture.example]
        strategy = strategies.registry[name or picture.strategy or example.strategy]
        values = {p.name: p.default for p in strategy.parameters if p.default is not None} | dict(strategy.defaults)
        own = {**example.params, **picture.parameters}
        values |= {
            key: value
            for key, value in own.items()
            if key in strategy.parameter_names and (not name or key == "max_new_tokens")
        }
        if tokens is not None:
            values["max_new_tokens"] = tokens
        return RunRequest(
            tuple(example.messages) if example.is_chat else example.prompt, values, strategy.name,
            cache=picture.cache or "dynamic", cache_options=dict(picture.cache_parameters), steady=True,
            seed=_SEED if example.seed is None else example.seed, draft_names=() if name else example.drafters,
            load=LoadRequest(picture.model or example.model), media=example.files,
        )  # fmt: skip
