"""What every layer of a network wrote while it read a text, and what the network's own end makes of any layer's state.

A logit lens (nostalgebraist 2020) puts a layer's state through final norm and head. Which modules those are, and what
stands between them (a projection, a scale, a cap on the logits), each architecture says otherwise. So nothing is looked
for: the network itself is run with layers that compute nothing and hand on the state in question. All that is asked of
it is a list of layers; and the last layer's state has to give the scores that the network gave.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache
from transformers.modeling_outputs import MoEModelOutput

from core.caches.tensors.continuation_probe import are_close
from core.decoding.forward.fused_llama import lean_llama
from core.device_memory import is_out_of_memory
from core.errors import InsideError
from core.interpretability.native_text_pass import TextRemainder, wide
from core.interpretability.step_query import StepQuery
from core.interpretability.text_pass import fresh, rows
from core.models.decoder_layers import layer_path, layers_at, with_layers
from core.models.loaded_model import LoadedModel
from resources.language import tr

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

Passed = Callable[[int, tuple[object, ...], object], None]
"""Told of a layer's number, what it was given and what it gave."""


class Layers:
    """A model whose layers can be watched. Raises InsideError where no list of them is found."""

    def __init__(self, model: LoadedModel) -> None:
        path = layer_path(model)
        if path is None:
            raise _no_lens(model, tr("its layers do not stand in one list."))
        self._model, self._path = model, path
        self._states: list[torch.Tensor] = []
        self._last: object = None
        """What the last layer gave, in the form in which it gives it."""
        self._given: object = None
        """What the layer that computes nothing gives."""
        self._lean = lean_llama(model)
        """The quicker way through the same layers, where there is one."""
        self._wide = None if self._lean is None else wide(model, self._lean)
        """A quicker one still, where that is built."""

    def read(self, question: StepQuery, places: int) -> tuple[torch.Tensor, torch.Tensor]:
        """States [L + 1, n, D] of the last `places` tokens before a step (the embedding's output first), and the logits
        [V] behind its last one, float32. Raises InsideError."""
        encoded, before = question.encoded, question.before
        if self._lean is not None:
            if self._wide is not None:
                passed = self._wide.states([TextRemainder(0, before)])[:, -places:]
            else:
                passed = self._lean.states(rows(self._model, [before]), DynamicCache())[:, 0, -places:]
            return passed, (self._wide or self._lean).score(passed[-1, -1:])[0]
        perceived = question.perceived
        room = len(before) + (perceived.before if perceived is not None else 0)
        forward = fresh(self._watched, room, [encoded] if encoded else (), perceived)
        self._states.clear()
        logits = forward(rows(self._model, [before])).last[0]
        states, self._states = self._states, []
        whole = [state for state in states if state.dim() == 3 and state.shape[:2] == (1, room)]
        if len(whole) != self._model.layers + 1 or len({state.shape[-1] for state in whole}) != 1:
            raise _no_lens(self._model, tr("its layers do not hand on one state of one width for each token."))
        return torch.stack([state[0, -places:] for state in whole]), logits

    def end(self, states: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, V] that the network's end gives for states [n, D] of any layer, behind a text that was
        read."""
        if self._lean is not None:
            return (self._wide or self._lean).score(states)
        self._given = _in_the_form_of(self._last, states[:, None])
        ids = torch.zeros(len(states), 1, dtype=torch.long, device=self._model.device)
        given: dict[str, object] = {"input_ids": ids}
        if self._model.is_encoder_decoder:
            source = MoEModelOutput(last_hidden_state=states[:, None])  # nobody reads it: the layers are none
            given = {"decoder_input_ids": ids, "encoder_outputs": source}
        logits: torch.Tensor = self._bare(**given, use_cache=False, return_dict=True).logits
        return logits[:, -1].float()

    def check(self, states: torch.Tensor, logits: torch.Tensor) -> None:
        """Raises InsideError unless the last layer's states [L + 1, n, D] at the last place give `logits` [V]."""
        try:
            found = self.end(states[-1, -1:])[0]
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise _no_lens(self._model, tr("its end cannot be run by itself.")) from error
        if found.shape != logits.shape or not are_close(self._model, found, logits):
            raise _no_lens(self._model, tr("what its last layer writes is not all that its scores are made of."))

    def _note(self, number: int, given: tuple[object, ...], gave: object) -> None:
        if number == 0:
            self._states += [first for first in given if isinstance(first, torch.Tensor)][:1]
        self._last = gave
        self._states.append(_state_of(gave))

    @cached_property
    def _watched(self) -> LoadedModel:
        """The model with layers that tell of each pass through them."""
        layers = layers_at(self._model, self._path)
        return self._twin([_watched(number, layer, self._note) for number, layer in enumerate(layers)])

    @cached_property
    def _bare(self) -> Network:
        """The network with layers that give what they are told to; as many as it has, for what stands around them may
        count on each (Gemma 4's inputs of each layer)."""
        return self._twin([self._idle(layer) for layer in layers_at(self._model, self._path)]).model

    def _idle(self, layer: torch.nn.Module) -> torch.nn.Module:
        twin = copy.copy(layer)
        vars(twin)["forward"] = lambda *given, **more: self._given
        return twin

    def _twin(self, layers: list[torch.nn.Module]) -> LoadedModel:
        twin = with_layers(self._model, self._path, layers)
        found = {name: known for name, known in self._model.remembered.items() if isinstance(known, (bool, str))}
        twin.remembered.update(found)  # what was tried on the model need not be tried again
        return twin


def _watched(number: int, layer: torch.nn.Module, passed: Passed) -> torch.nn.Module:
    """The layer, telling of each pass through it; the layer itself is left as it is."""
    twin, forward = copy.copy(layer), layer.forward

    def watched(*given: object, **more: object) -> object:
        gave = forward(*given, **more)
        passed(number, (*given, *more.values()), gave)
        return gave

    vars(twin)["forward"] = watched
    return twin


def _state_of(gave: Any) -> torch.Tensor:
    """A layer's state, which comes alone or before other things."""
    state: torch.Tensor = gave if isinstance(gave, torch.Tensor) else gave[0]
    return state


def _in_the_form_of(gave: Any, state: torch.Tensor) -> object:
    return state if isinstance(gave, torch.Tensor) else (state, *gave[1:])


def _no_lens(model: LoadedModel, reason: str) -> InsideError:
    return InsideError(
        tr("The layers of {model} cannot be read as choices: {reason}").format(model=model.name, reason=reason),
        tr("Leaving out parts of the text (occlusion) works with every model."),
    )
