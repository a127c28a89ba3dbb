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
from core.decoding.forward.fused_llama import get_fused_llama
from core.device_memory import is_out_of_memory
from core.errors import InsideError
from core.interpretability.native_text_pass import TextRemainder, native_text_pass
from core.interpretability.step_query import StepQuery
from core.interpretability.text_pass import new_forward, token_rows
from core.models.decoder_layers import get_layers, layer_path, replace_layers
from core.models.loaded_model import LoadedModel
from resources.language import tr

if TYPE_CHECKING:
    from core.models.hf_protocols import Network

LayerHook = Callable[[int, tuple[object, ...], object], None]
"""Told of a layer's number, what it was given and what it gave."""


class LayerReader:
    """A model whose layers can be watched. Raises InsideError where no list of them is found."""

    def __init__(self, model: LoadedModel) -> None:
        path = layer_path(model)
        if path is None:
            raise _unsupported_error(model, tr("its layers do not stand in one list."))
        self._model, self._path = model, path
        self._states: list[torch.Tensor] = []
        self._last_output: object = None
        """What the last layer gave, in the form in which it gives it."""
        self._constant_output: object = None
        """What the layer that computes nothing gives."""
        self._fused = get_fused_llama(model)
        """The quicker way through the same layers, where there is one."""
        self._native = None if self._fused is None else native_text_pass(model, self._fused)
        """A quicker one still, where that is built."""

    def read(self, question: StepQuery, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        """States [L + 1, n, D] of the last `count` tokens before a step (the embedding's output first), and the logits
        [V] behind its last one, float32. Raises InsideError."""
        encoded, before = question.encoded, question.before
        if self._fused is not None:
            if self._native is not None:
                passed = self._native.states([TextRemainder(0, before)])[:, -count:]
            else:
                passed = self._fused.layer_states(token_rows(self._model, [before]), DynamicCache())[:, 0, -count:]
            return passed, (self._native or self._fused).logits(passed[-1, -1:])[0]
        perceived = question.media_inputs
        room = len(before) + (perceived.leading_positions if perceived is not None else 0)
        forward = new_forward(self._observed_model, room, [encoded] if encoded else (), perceived)
        self._states.clear()
        logits = forward(token_rows(self._model, [before])).last[0]
        states, self._states = self._states, []
        whole = [state for state in states if state.dim() == 3 and state.shape[:2] == (1, room)]
        if len(whole) != self._model.layers + 1 or len({state.shape[-1] for state in whole}) != 1:
            raise _unsupported_error(
                self._model, tr("its layers do not hand on one state of one width for each token.")
            )
        return torch.stack([state[0, -count:] for state in whole]), logits

    def apply_head(self, states: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, V] that the network's end gives for states [n, D] of any layer, behind a text that was
        read."""
        if self._fused is not None:
            return (self._native or self._fused).logits(states)
        self._constant_output = _like_output(self._last_output, states[:, None])
        ids = torch.zeros(len(states), 1, dtype=torch.long, device=self._model.device)
        given: dict[str, object] = {"input_ids": ids}
        if self._model.is_encoder_decoder:
            source = MoEModelOutput(last_hidden_state=states[:, None])  # nobody reads it: the layers are none
            given = {"decoder_input_ids": ids, "encoder_outputs": source}
        logits: torch.Tensor = self._identity_network(**given, use_cache=False, return_dict=True).logits
        return logits[:, -1].float()

    def check_head(self, states: torch.Tensor, logits: torch.Tensor) -> None:
        """Raises InsideError unless the last layer's states [L + 1, n, D] at the last place give `logits` [V]."""
        try:
            found = self.apply_head(states[-1, -1:])[0]
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise _unsupported_error(self._model, tr("its end cannot be run by itself.")) from error
        if found.shape != logits.shape or not are_close(self._model, found, logits):
            raise _unsupported_error(
                self._model, tr("what its last layer writes is not all that its scores are made of.")
            )

    def _record(self, number: int, given: tuple[object, ...], gave: object) -> None:
        if number == 0:
            self._states += [first for first in given if isinstance(first, torch.Tensor)][:1]
        self._last_output = gave
        self._states.append(_output_state(gave))

    @cached_property
    def _observed_model(self) -> LoadedModel:
        """The model with layers that tell of each pass through them."""
        layers = get_layers(self._model, self._path)
        return self._with_layers([_observed_layer(number, layer, self._record) for number, layer in enumerate(layers)])

    @cached_property
    def _identity_network(self) -> Network:
        """The network with layers that give what they are told to; as many as it has, for what stands around them may
        count on each (Gemma 4's inputs of each layer)."""
        return self._with_layers([self._constant_layer(layer) for layer in get_layers(self._model, self._path)]).model

    def _constant_layer(self, layer: torch.nn.Module) -> torch.nn.Module:
        twin = copy.copy(layer)
        vars(twin)["forward"] = lambda *given, **more: self._constant_output
        return twin

    def _with_layers(self, layers: list[torch.nn.Module]) -> LoadedModel:
        twin = replace_layers(self._model, self._path, layers)
        found = {name: known for name, known in self._model.remembered.items() if isinstance(known, (bool, str))}
        twin.remembered.update(found)  # what was tried on the model need not be tried again
        return twin


def _observed_layer(number: int, layer: torch.nn.Module, hook: LayerHook) -> torch.nn.Module:
    """The layer, telling of each pass through it; the layer itself is left as it is."""
    twin, forward = copy.copy(layer), layer.forward

    def watched(*given: object, **more: object) -> object:
        gave = forward(*given, **more)
        hook(number, (*given, *more.values()), gave)
        return gave

    vars(twin)["forward"] = watched
    return twin


def _output_state(gave: Any) -> torch.Tensor:
    """A layer's state, which comes alone or before other things."""
    state: torch.Tensor = gave if isinstance(gave, torch.Tensor) else gave[0]
    return state


def _like_output(gave: Any, state: torch.Tensor) -> object:
    return state if isinstance(gave, torch.Tensor) else (state, *gave[1:])


def _unsupported_error(model: LoadedModel, reason: str) -> InsideError:
    return InsideError(
        tr("The layers of {model} cannot be read as choices: {reason}").format(model=model.name, reason=reason),
        tr("Leaving out parts of the text (occlusion) works with every model."),
    )
