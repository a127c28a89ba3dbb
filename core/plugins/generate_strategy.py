"""A `custom_generate` folder as a strategy: its function runs with the model, and the run's events come from recording
its calls.
"""

from __future__ import annotations

import copy
import inspect
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from decodescope.core.common.hf_generation import KNOWN_FIELDS, GenerateEquivalent
from decodescope.core.parameter import Parameter, Settings
from decodescope.core.plugins.generate_folder import FolderSource
from decodescope.core.plugins.guarded_thread import GuardedThread
from decodescope.core.plugins.signature_settings import (
    argument_setting,
    describe_arguments,
    docstring_summary,
    named_arguments,
)
from decodescope.core.strategies.base import Strategy
from decodescope.core.strategies.parameters import EVERYWHERE, NEW_TOKENS, PENALTIES, SAMPLING, SAMPLING_ADVANCED
from decodescope.core.system.plugin_code import PluginLocation, make_plugin_error
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    import torch

    from decodescope.core.decoding.run import DecodingRun
    from decodescope.core.events import Event
    from decodescope.core.generate_recording.call_recorder import CallRecorder, RunDescription
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.request import Request

DO_SAMPLE = Parameter(
    "do_sample", mark("Sample"), "bool", False,
    mark("Draw tokens at random by their probabilities, if the function does so."),
)  # fmt: skip
_PASSED_ON = frozenset({
    "model", "self", "input_ids", "inputs", "attention_mask", "decoder_input_ids", "generation_config", "tokenizer",
    "logits_processor", "stopping_criteria", "prefix_allowed_tokens_fn", "synced_gpus", "assistant_model", "streamer",
    "negative_prompt_ids", "negative_prompt_attention_mask", "use_model_defaults", "past_key_values", "cache",
    "cache_params", "position_ids", "inputs_embeds", "token_type_ids", "assistant_tokenizer", "custom_generate",
    "trust_remote_code", "kwargs",
})  # fmt: skip
"""Arguments of `generate` that the run provides or leaves out; all others of a function become settings."""
_CACHES = ("dynamic", "model_specific")


class GenerateFunction:
    """The function of a folder, with its arguments as settings. Raises UnsupportedSignatureError for a signature that
    no settings can fill.
    """

    def __init__(self, function: Callable[..., object], source: FolderSource) -> None:
        self.function, self.source = function, source
        self.name = re.sub(r"\W", "_", source.title).lower().lstrip("_0123456789")[:60] or "custom_generate"
        code = getattr(inspect.unwrap(function), "__code__", None)
        is_own = code is not None and code.co_filename == str(source.path)
        self.location = PluginLocation(source.title, str(source.path), code.co_firstlineno if code and is_own else 0)
        arguments = list(named_arguments(function, "generate"))
        self.takes = {argument.name for argument in arguments}
        self.required = [one.name for one in arguments if one.default is one.empty and one.name != "model"]
        self.takes_all = any(
            argument.kind is argument.VAR_KEYWORD for argument in inspect.signature(function).parameters.values()
        )
        doc = getattr(function, "__doc__", "")
        self.summary = docstring_summary(doc)
        described = describe_arguments(doc)
        self.settings: dict[str, Parameter] = {}
        """Setting of each argument of its own."""
        for argument in arguments:
            if argument.name not in _PASSED_ON | KNOWN_FIELDS:
                own = argument_setting(self.name, argument, described.get(argument.name, ""), "generate")
                if own is not None:
                    self.settings[argument.name] = own

    def own_arguments(self, options: Settings) -> dict[str, object]:
        """Return the values of its own arguments that differ from their defaults."""
        given = {name: options.get(setting.name) for name, setting in self.settings.items()}
        return {
            name: value for name, value in given.items() if value is not None and value != self.settings[name].default
        }

    def arguments(self, run: DecodingRun) -> dict[str, object]:
        """Return the arguments of a call, by name, as transformers passes them to a `custom_generate` folder."""
        import torch

        config = copy.deepcopy(run.config)
        config.max_new_tokens = run.stopping.max_new
        ids = torch.tensor([run.start_ids], device=run.device)
        found: dict[str, object] = dict.fromkeys(self.required)
        text = torch.tensor([run.prompt_ids], device=run.device) if run.model.is_encoder_decoder else ids
        if run.model.is_encoder_decoder:
            found["decoder_input_ids"] = ids
        found["inputs" if "inputs" in self.takes and "input_ids" not in self.takes else "input_ids"] = text
        found |= {"attention_mask": torch.ones_like(text), "generation_config": config}
        if "tokenizer" in self.takes:
            found["tokenizer"] = run.model.tokenizer
        found |= {name: getattr(config, name) for name in self.takes & KNOWN_FIELDS if hasattr(config, name)}
        found |= {
            name: run.request.options.get(setting.name, setting.default) for name, setting in self.settings.items()
        }
        return {name: value for name, value in found.items() if self.takes_all or name in self.takes}


def make_strategy(function: GenerateFunction) -> Strategy:
    """Return the strategy of a folder; it is used only by requests that name it."""

    def decode(run: DecodingRun) -> Iterator[Event]:
        yield from _decode(run, function)

    def rejection_reason(model: LoadedModel, request: Request | None) -> str | None:
        if request is not None and request.cache not in _CACHES:
            return tr("A custom_generate function creates its own cache. Select the dynamic one.")
        if request is not None and request.media:
            return tr("A custom_generate function gets the prompt as text only.")
        return None

    shared = (*SAMPLING, *PENALTIES, *SAMPLING_ADVANCED, *EVERYWHERE)
    return Strategy(
        name=function.name,
        title=function.source.title.replace("_", " ").replace("-", " ").strip().capitalize() or function.name,
        summary=function.summary or tr("Runs custom_generate/generate.py of the folder {folder}.").format(
            folder=function.source.title
        ),
        parameters=(
            *function.settings.values(), NEW_TOKENS, DO_SAMPLE, *(one for one in shared if not one.option)
        ),
        decode=decode,
        flags={"num_beams": 1, "num_return_sequences": 1},
        defaults={"do_sample": False},
        order=300,
        rejection_reason=rejection_reason,
    )  # fmt: skip


def generate_equivalent(function: GenerateFunction, request: Request) -> GenerateEquivalent:
    """Return the arguments with which transformers' own `generate` runs the folder."""
    own = function.own_arguments(request.options)
    return GenerateEquivalent(
        {"custom_generate": str(function.source.folder), "trust_remote_code": True, **own},
        note=tr("custom_generate runs the code of the folder with your permissions."),
    )


class _RunStopped(BaseException):
    """Raised in the function when it calls the model after the run was stopped."""


class _FunctionCallObserver:
    """Receives the events of the one run that the function makes (`CallObserver`)."""

    def __init__(self, run: DecodingRun) -> None:
        self.loaded, self.top_n = run.model, run.request.top_n
        self.put: Callable[[Event], None] = lambda event: None
        self.trouble: Exception | None = None
        self.has_run = False

    def loaded_for(self, module: torch.nn.Module) -> LoadedModel:
        """Return the model of the run."""
        return self.loaded

    def new_run(self, described: RunDescription) -> Callable[[Event], None]:
        """Return the function that receives the events. Raises ValueError for a second run."""
        if self.has_run:
            raise ValueError(tr("it calls generate more than once"))
        self.has_run = True
        return self.put

    def end_loop(self, loop: CallRecorder, failure: BaseException | None) -> None:
        """End the text that a stop interrupted."""
        if isinstance(failure, _RunStopped) and self.trouble is None:
            loop.finish(None)

    def note_trouble(self, error: Exception) -> None:
        """Keep the reason why the run cannot be recorded further."""
        self.trouble = error

    def note_incomplete(self, reason: str) -> None:
        """Keep the reason why the recorded text is not the function's."""
        self.trouble = self.trouble or ValueError(reason)


class _ModelWatch:
    """Hooks on the module while the function runs: whether it computes, and the end of a run that is stopped."""

    def __init__(self, module: torch.nn.Module, should_stop: Callable[[], bool]) -> None:
        self._depth = 0
        self._should_stop = should_stop
        self._handles = (
            module.register_forward_pre_hook(self._before), module.register_forward_hook(self._after, always_call=True)
        )  # fmt: skip

    def is_computing(self) -> bool:
        """Return whether the module computes now."""
        return self._depth > 0

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def _before(self, *_given: object) -> None:
        if self._should_stop():
            raise _RunStopped
        self._depth += 1

    def _after(self, *_given: object) -> None:
        self._depth = max(self._depth - 1, 0)


def _decode(run: DecodingRun, function: GenerateFunction) -> Iterator[Event]:
    """Run the function in a thread of its own and yield what is recorded. Raises PluginError."""
    from decodescope.core.decoding.sequences import FinishedSequence
    from decodescope.core.events import Finished, RunStarted
    from decodescope.core.generate_recording.generate_hooks import GenerateHooks, generating_module

    module, is_closed, recorder = generating_module(run.model), threading.Event(), _FunctionCallObserver(run)
    assert module is not None  # every model that is loaded generates text

    def call(put: Callable[[Event], None]) -> None:
        recorder.put = put
        GenerateHooks.attach(module, recorder)
        with suppress(_RunStopped):
            _call(run, function, module, recorder)

    def should_stop() -> bool:
        return run.is_cancelled() or is_closed.is_set() or recorder.trouble is not None

    run.results = [FinishedSequence((), "")]
    watch = _ModelWatch(module, should_stop)
    thread = GuardedThread(None, run.cancel, watch.is_computing)
    try:
        for event in thread.iterate(call):
            if isinstance(event, Finished):
                run.take_results(event)
            elif not isinstance(event, RunStarted):
                yield event
    finally:
        is_closed.set()
        thread.close()
        watch.remove()
        GenerateHooks.detach(module, recorder)
    if recorder.trouble is not None:
        raise make_plugin_error(function.location, str(recorder.trouble)) from recorder.trouble


def _call(
    run: DecodingRun, function: GenerateFunction, module: torch.nn.Module, recorder: _FunctionCallObserver
) -> None:  # fmt: skip
    """Call the function with the run's seed. Raises PluginError for a result without token ids."""
    import torch

    from decodescope.core.decoding.run_generator import make_generator
    from decodescope.core.generate_recording.generate_hooks import GenerateHooks
    from decodescope.core.system.torch_state import library_settings, settings_undone

    def generate(*, custom_generate: str, **given: object) -> object:
        return function.function(model=module, **given)

    devices = [run.device] if run.device.type == "cuda" else []
    with library_settings(), torch.random.fork_rng(devices), torch.no_grad():
        torch.manual_seed(run.request.seed)
        if run.request.generator_state:
            state = make_generator(run.request, run.device).get_state()
            if devices:
                torch.cuda.set_rng_state(state, run.device)
            else:
                torch.set_rng_state(state)
        given = {"custom_generate": function.source.title, **function.arguments(run)}
        with settings_undone():
            found = GenerateHooks.record_call(module, generate, (), given)
    ids = getattr(found, "sequences", found)
    if not isinstance(ids, torch.Tensor) or ids.dim() != 2:
        problem = tr("it returned None instead of token ids")
        if found is not None:
            problem = tr("it returned {kind} instead of token ids").format(kind=type(found).__name__)
        raise make_plugin_error(function.location, problem)
    if not recorder.has_run and ids.shape[1] > len(run.start_ids):
        raise make_plugin_error(function.location, tr("it does not choose one token per pass of the model"))
