"""Hooks on a model's `generate`: instance attributes that exist only while the model is captured.

transformers calls the helper methods of `generate` through the instance, so that an attribute of the instance sees
their arguments and results without a change to a class. The processors and criteria of a call are replaced by lists
that apply them one by one, in the same order, to the same tensors.
"""

from __future__ import annotations

import copy
import functools
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import torch
from transformers import GenerationConfig
from transformers.generation.logits_process import LogitsProcessorList
from transformers.generation.stopping_criteria import StoppingCriteriaList
from transformers.generation.utils import GenerationMixin

from decodescope.core.decoding.banned_tokens import removes_tokens, without_banned
from decodescope.core.errors import ModelError
from decodescope.core.generate_recording.beam_recorder import BeamRecorder
from decodescope.core.generate_recording.call_facts import (
    GeneratorStart,
    listed,
    other_inputs,
    peft_adapters,
    read_generator,
)
from decodescope.core.generate_recording.call_recorder import CallInputs, CallRecorder, ProcessedStep, SampleRecorder
from decodescope.core.generate_recording.draft_recorder import DraftRecorder
from decodescope.core.generate_recording.pass_recorder import PassRecorder
from decodescope.core.generate_recording.run_writer import RunOrigin, objects_of, strategy_name
from decodescope.core.generate_recording.stage_headings import heading_of, is_transformers_own, with_kind
from decodescope.core.models import catalog
from decodescope.core.models.text_decoder import cache_name
from decodescope.core.models.weight_samples import differs_from_files, hash_weights
from decodescope.core.system.torch_state import library_settings
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core.decoding.processor_pipeline import StageHeading
    from decodescope.core.events import Event
    from decodescope.core.generate_recording.call_recorder import NewRun, RunDescription
    from decodescope.core.models.loaded_model import LoadedModel

_Method: TypeAlias = Callable[..., Any]
"""A method of transformers, whose arguments are passed on as they are."""
_BEAM_STRATEGIES = ("beam_search", "beam_sampling")
_DRAFT_STRATEGIES = ("assisted", "prompt_lookup", "early_exit", "prediction_heads")


class CallObserver(Protocol):
    """Receives the runs of a model's `generate` calls (`core.generate_capture.capture.Capture`)."""

    top_n: int

    def loaded_for(self, module: torch.nn.Module) -> LoadedModel:
        """Return the model whose `generate` is recorded: the captured one, or one inside it."""

    def new_run(self, described: RunDescription) -> Callable[[Event], None]:
        """Start a run; return the function that receives its events."""

    def end_loop(self, loop: CallRecorder, failure: BaseException | None) -> None:
        """Receive the end of a decoding loop, with the exception that ended it."""

    def note_trouble(self, error: Exception) -> None:
        """Receive the error because of which a call is not recorded further."""

    def note_incomplete(self, reason: str) -> None:
        """Receive why what was recorded is not what a call returned."""


@dataclass(slots=True)
class _Call:
    """A `generate` call in progress in this thread."""

    captures: Sequence[CallObserver]
    started: float
    kwargs: Mapping[str, object]
    parent: _Call | None = None
    custom: str = ""
    """Name of the caller's own decoding function."""
    chooses_tokens: bool = False
    """Whether that function chooses the tokens; it may also call `generate` itself."""
    assistant: str = ""
    """Class of the draft model."""
    own_loop: bool = False
    """Whether the model's class has a `generate` of its own, which may run several loops and assemble the result."""
    ids: torch.Tensor | None = None
    """Decoder ids [rows, T] before the loop."""
    mask: torch.Tensor | None = None
    inputs: tuple[str, ...] = ()
    """Names of what the model reads besides token ids."""
    processors: tuple[object, ...] = ()
    criteria: tuple[object, ...] = ()
    """The caller's own ones."""
    recorder: CallRecorder | None = None
    """The loop in progress."""
    passes: PassRecorder | None = None
    """The passes of the caller's function, as long as it uses no processors."""
    ended: list[CallRecorder] = field(default_factory=list)
    """Earlier loops of the call, and those inside it."""
    muted: int = 0
    """Above 0 while drafts are made, whose processors and passes are not those of the text."""
    failed: bool = False

    @property
    def is_recording(self) -> bool:
        """Whether hooks should note what they see."""
        return self.recorder is not None and not self.muted and not self.failed


_calls = threading.local()


def _current_call() -> _Call | None:
    stack: list[_Call] = getattr(_calls, "stack", [])
    return stack[-1] if stack else None


def is_call_in_progress() -> bool:
    """Return whether this thread is inside a captured `generate`."""
    return _current_call() is not None


def _observed(call: _Call | None, observe: Callable[[], object]) -> None:
    """Run the recording part of a hook; an error there ends the recording, never the caller's `generate`."""
    if call is None or call.failed:
        return
    try:
        with library_settings():
            observe()
    except Exception as error:
        call.failed = True
        for capture in call.captures:
            capture.note_trouble(error)


class IncompleteRecordingError(Exception):
    """The recorded ids are not those that `generate` returned."""


def warn_incomplete(reason: str) -> None:
    """Issue a warning with the reason why the recording is not what `generate` returned."""
    _warn(tr("The recording is incomplete: {reason} The result is not affected.").format(reason=reason))


def warn_not_recorded(error: Exception) -> None:
    """Issue a warning with the reason why a call is not recorded."""
    _warn(
        tr("A generate call could not be recorded: {error}. Its result is not affected.").format(
            error=f"{type(error).__name__}: {error}"
        )
    )


_LIBRARIES = frozenset({"decodescope", "transformers", "torch", "peft", "contextlib"})


def _warn(text: str) -> None:
    """Issue a warning at the line of the caller's program."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, RuntimeWarning, stacklevel=level)


class _RecordingProcessors(LogitsProcessorList):
    """The processors of a call, which record the scores after each."""

    def __init__(
        self, processors: Sequence[Callable[..., torch.Tensor]], call: _Call, config: GenerationConfig
    ) -> None:
        super().__init__(processors)
        self._call, self._config = call, config
        self._banning: set[int] = set()
        """Positions of the caller's own processors that have removed a token in this loop."""
        self._headings: list[StageHeading] = []
        """Shared by all steps, so that a stage has the same kind at each."""

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor, **kwargs: object) -> torch.Tensor:
        call, recorder = self._call, self._call.recorder
        if not call.is_recording or recorder is None:
            return super().__call__(input_ids, scores, **kwargs)
        call.passes = None
        trace = _StageTrace(self._banning, self._headings)
        _observed(call, lambda: recorder.begin(input_ids))  # before a processor that generates, or fails
        _observed(call, lambda: trace.start(scores))
        for number, processor in enumerate(self):
            if not is_transformers_own(processor):
                _observed(call, functools.partial(trace.keep, scores))
            scores = LogitsProcessorList([processor])(input_ids, scores, **kwargs)
            heading = functools.partial(heading_of, processor, self._config)
            _observed(call, functools.partial(trace.add, number, processor, heading, scores))
        if call.recorder is recorder and call.is_recording:
            step = ProcessedStep(input_ids.shape[-1], trace.scores, self._headings)
            _observed(call, lambda: recorder.processed(input_ids, step))
        return scores


class _StageTrace:
    """The scores of one step, before the first processor and after each."""

    def __init__(self, banning: set[int], headings: list[StageHeading]) -> None:
        """`banning` and `headings` are those of the whole loop."""
        self.scores: list[torch.Tensor] = []
        self._banning, self._headings = banning, headings

    def start(self, scores: torch.Tensor) -> None:
        """Copy the model's scores."""
        self.scores = [scores.detach().to(torch.float32, copy=True)]

    def keep(self, scores: torch.Tensor) -> None:
        """Copy the last scores if they are those that a processor of the caller is about to receive: it may modify its
        input.
        """
        if self.scores[-1].data_ptr() == scores.data_ptr():
            self.scores[-1] = self.scores[-1].clone()

    def add(
        self, number: int, processor: object, make_heading: Callable[[], StageHeading], scores: torch.Tensor
    ) -> None:
        """Add the scores after a processor."""
        heading, is_own = make_heading(), is_transformers_own(processor)
        if not is_own:
            if number not in self._banning and removes_tokens(self.scores[-1], scores):
                self._banning.add(number)
            if number in self._banning:
                heading = with_kind(heading, "ban")
        self._headings[number:] = [heading, *self._headings[number + 1 :]]
        is_plain = is_own and scores.dtype is torch.float32
        self.scores.append(scores.detach() if is_plain else without_banned(scores.detach()))


class _RecordingCriteria(StoppingCriteriaList):
    """The stopping criteria of a call, which record which of them is met."""

    def __init__(self, criteria: Sequence[Callable[..., torch.Tensor]], call: _Call) -> None:
        super().__init__(criteria)
        self._call = call

    def __call__(self, input_ids: torch.Tensor, scores: object, **kwargs: object) -> object:
        recorder = self._call.recorder
        if not self._call.is_recording or recorder is None:
            return super().__call__(input_ids, scores, **kwargs)
        done = StoppingCriteriaList()(input_ids, scores)
        met = []
        for criterion in self:
            found = StoppingCriteriaList([criterion])(input_ids, scores, **kwargs)
            met.append((criterion, found))
            done = done | found
        _observed(self._call, lambda: recorder.stopped(
            input_ids, done.tolist(), [(criterion, found.tolist()) for criterion, found in met]
        ))  # fmt: skip
        return done


class _Hook:
    """A replacement for a method of one instance."""

    def __init__(self, owner: torch.nn.Module, name: str, replacement: _Method) -> None:
        self._owner, self._name = weakref.ref(owner), name
        self._replacement = replacement
        functools.update_wrapper(self, getattr(owner, name))

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._replacement(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, object]) -> object:
        """Return the method of the copy: a class that copies itself does not leave the hooks out."""
        owner = self._owner()
        twin = memo.get(id(owner), owner)
        return MethodType(getattr(type(twin), self._name), twin)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (self._owner(), self._name)


class _PassCounter:
    """A forward hook that counts passes outside `generate`."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_given: object) -> None:
        if not torch.compiler.is_compiling() and _current_call() is None:
            self.count += 1

    def __deepcopy__(self, memo: dict[int, object]) -> object:
        return _do_nothing


def _do_nothing(*_given: object) -> None:
    """Replace a forward hook in a copy of the model."""


def _without_hooks(model: torch.nn.Module, reduce: _Method, protocol: int) -> object:
    """Return how to rebuild a copy of a captured model, for `copy.deepcopy` and `pickle`, without any hook."""
    found = reduce(protocol)
    if isinstance(found, str) or len(found) < 3 or not isinstance(found[2], dict):
        return found
    state = {name: value for name, value in found[2].items() if not isinstance(value, _Hook)}
    hooks = state.get("_forward_hooks")
    if isinstance(hooks, dict):
        own = [key for key, hook in hooks.items() if isinstance(hook, _PassCounter)]
        state["_forward_hooks"] = type(hooks)((key, hook) for key, hook in hooks.items() if key not in own)
    return (*found[:2], state, *found[3:])


class GenerateHooks:
    """The hooks of one model, installed while at least one capture of it is active."""

    _installed: ClassVar[weakref.WeakKeyDictionary[torch.nn.Module, weakref.ref[GenerateHooks]]] = (
        weakref.WeakKeyDictionary()
    )
    """The hooks of each model. Only the model's attributes refer to them, so that a captured model can be freed."""
    _lock = threading.RLock()

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._captures: list[tuple[int, CallObserver]] = []
        """(thread that entered it, capture)."""
        self._previous: dict[str, object] = {}
        """Instance attributes that the hooks hide."""
        self._counter = _PassCounter()
        self._counting: Any = None
        self._weights: tuple[str, bool] = ("", False)
        """The last hash of the weights, and whether they differ from the files."""

    @classmethod
    def passes_outside(cls, model: torch.nn.Module) -> int:
        """Return how often a captured model was called without `generate`."""
        hooks = cls._of(model)
        return 0 if hooks is None else hooks._counter.count

    @classmethod
    def attach(cls, model: torch.nn.Module, capture: CallObserver) -> None:
        """Record the calls of `model` for `capture` from now on."""
        with cls._lock:
            hooks = cls._of(model)
            if hooks is None:
                hooks = cls(model)
                cls._installed[model] = weakref.ref(hooks)
                hooks._install()
            hooks._captures.append((threading.get_ident(), capture))

    @classmethod
    def detach(cls, model: torch.nn.Module, capture: CallObserver) -> None:
        """Stop recording for `capture`; the last one removes the hooks."""
        with cls._lock:
            hooks = cls._of(model)
            if hooks is None:
                return
            hooks._captures = [pair for pair in hooks._captures if pair[1] is not capture]
            if not hooks._captures:
                hooks._remove()
                del cls._installed[model]

    @classmethod
    def record_call(
        cls, model: torch.nn.Module, original: _Method, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> object:
        """Call `original`, the `generate` of a model that is captured already, and record it."""
        hooks = cls._of(model)
        return original(*args, **kwargs) if hooks is None else hooks._generate(original, *args, **kwargs)

    @classmethod
    def _of(cls, model: torch.nn.Module) -> GenerateHooks | None:
        with cls._lock:
            reference = cls._installed.get(model)
        return None if reference is None else reference()

    def _install(self) -> None:
        replacements: dict[str, _Method] = {
            "generate": self._generate,
            "_expand_inputs_for_generation": self._expand_inputs,
            "_get_logits_processor": self._get_processors,
            "_get_stopping_criteria": self._get_criteria,
            "_update_model_kwargs_for_generation": self._update_kwargs,
            "_get_candidate_generator": self._get_candidate_generator,
            "_get_top_k_continuations": self._top_k_continuations,
            "_get_running_beams_for_next_iteration": self._running_beams,
            "_update_finished_beams": self._finished_beams,
            "_check_early_stop_heuristic": self._early_stop,
            "_beam_search_has_unfinished_sequences": self._has_unfinished_beams,
            "generate_batch": self._generate_batch,
            "__reduce_ex__": functools.partial(_without_hooks, self._model),
        }
        held = vars(self._model)
        for name, replace in replacements.items():
            original = getattr(self._model, name, None)
            if original is None:  # another release of transformers
                continue
            if name in held:
                self._previous[name] = held[name]
            # Not setattr, which would register a callable with parameters as a module.
            held[name] = _Hook(self._model, name, functools.partial(replace, original))
        self._count_passes()

    def _count_passes(self) -> None:
        self._counting = self._model.register_forward_hook(self._counter)

    def _remove(self) -> None:
        self._counting.remove()
        held = vars(self._model)
        for name in [name for name, value in held.items() if isinstance(value, _Hook)]:
            del held[name]
        held.update(self._previous)

    def _captures_of_thread(self) -> list[CallObserver]:
        """Return the captures that this thread entered; if there are none, all of them."""
        with self._lock:
            own = [capture for thread, capture in self._captures if thread == threading.get_ident()]
            return own or [capture for _, capture in self._captures]

    # The call as a whole

    def _generate(self, original: _Method, *args: object, **kwargs: object) -> object:
        outer = _current_call()
        if outer is not None and outer.muted:
            return original(*args, **kwargs)
        given = kwargs.get("custom_generate")
        call = _Call(
            self._captures_of_thread(), time.perf_counter(), kwargs, outer,
            custom=_function_name(given) or (outer.custom if outer is not None else ""), chooses_tokens=bool(given),
            assistant=_class_name(kwargs.get("assistant_model")),
            own_loop=_has_own_generate(self._model),
        )  # fmt: skip
        stack = _calls.__dict__.setdefault("stack", [])
        stack.append(call)
        watch = None
        if given:
            watch = self._model.register_forward_hook(functools.partial(self._custom_pass, call), with_kwargs=True)
        failure: BaseException | None = None
        result = None
        try:
            result = original(*args, **kwargs)
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            if watch is not None:
                watch.remove()
            stack.pop()
            self._end_call(call, args, result, failure)

    def _end_call(self, call: _Call, args: Sequence[object], result: object, failure: BaseException | None) -> None:
        ids = getattr(result, "sequences", result)
        ids = ids if isinstance(ids, torch.Tensor) and ids.dim() == 2 and not ids.is_floating_point() else None
        if failure is None:
            _observed(call, lambda: self._finish(call, ids))
        elif call.recorder is None and call.passes is None and not call.ended:
            _observed(call, lambda: self._begin_failed(call, args))
        if failure is not None and call.recorder is not None and not call.recorder.runs and call.ids is not None:
            recorder, start = call.recorder, call.ids
            _observed(call, lambda: recorder.begin(start))
        for loop in (call.recorder, call.passes):
            if loop is not None and loop.runs:
                self._end_loop(call, loop, failure)
        if call.parent is not None:
            call.parent.ended += call.ended
        if failure is None and not call.failed:
            reason = self._difference(call, ids, result)
            for capture in call.captures if reason else ():
                capture.note_incomplete(reason)

    def _finish(self, call: _Call, ids: torch.Tensor | None) -> None:
        """Write what is known only at the end of the call."""
        if call.recorder is not None and call.recorder.runs:
            call.recorder.finish(ids)
        if call.passes is not None and (call.recorder is None or not call.recorder.runs):
            call.passes.finish(ids)

    @staticmethod
    def _end_loop(call: _Call, loop: CallRecorder, failure: BaseException | None) -> None:
        call.ended.append(loop)
        for capture in call.captures:
            capture.end_loop(loop, failure)

    def _next_loop(self, call: _Call) -> None:
        """End the loop in progress: another one begins in the same call."""
        for loop in (call.recorder, call.passes):
            if loop is not None and loop.runs:
                _observed(call, functools.partial(loop.finish, None))
                self._end_loop(call, loop, None)
        call.recorder = call.passes = None

    def _begin_failed(self, call: _Call, args: Sequence[object]) -> None:
        """Start the run of a call that failed before its loop, so that the failure is recorded."""
        config = call.kwargs.get("generation_config")
        ids = args[0] if args else call.kwargs.get("inputs", call.kwargs.get("input_ids"))
        if not isinstance(ids, torch.Tensor) or ids.dim() != 2 or ids.is_floating_point():
            return
        if not isinstance(config, GenerationConfig):
            config = self._loaded(call).generation_config
        known = {name: value for name, value in call.kwargs.items() if name in vars(config)}
        config = copy.copy(config)
        vars(config).update(known)
        is_source = self._loaded(call).is_encoder_decoder
        self._begin(call, config, ids if is_source else None, SampleRecorder)
        assert call.recorder is not None
        call.recorder.begin(ids[:, :0] if is_source else ids)

    def _difference(self, call: _Call, ids: torch.Tensor | None, result: object) -> str:
        """Return why the recorded texts are not the returned ones; empty if they are."""
        loops = [loop for loop in call.ended if loop.runs]
        name = call.custom or "generate"
        if not loops:
            if ids is None and result is not None and not isinstance(result, torch.Tensor):
                return tr("{name} returns no token ids and runs no decoding loop of this model.").format(name=name)
            if call.kwargs.get("cache_implementation") == "paged":
                return tr(_BATCH_REASON)
            prompt = call.ids if call.ids is not None else call.kwargs.get("input_ids", call.kwargs.get("inputs"))
            if ids is not None and isinstance(prompt, torch.Tensor) and ids.shape[1] <= prompt.shape[1]:
                return ""  # no new token
            if call.passes is not None and call.passes.has_passes:
                return tr(_PASSES_REASON).format(name=name)
            return tr("{name} calls neither this model nor its generate.").format(name=name)
        if ids is None:
            return ""
        rows = ids.tolist()
        if any(loop.explains(rows) for loop in loops):
            return ""
        is_assembled = len(loops) > 1 or call.own_loop
        if is_assembled and all(_is_assembled(row, loops) for row in rows):
            return ""
        if call.passes is not None and call.passes.runs:
            return tr(_PASSES_REASON).format(name=name)
        return (
            tr("{name} returned other ids than its {count} recorded loops chose.").format(name=name, count=len(loops))
            if len(loops) > 1
            else tr("{name} returned other ids than the recorded loop chose.").format(name=name)
        )

    def _generate_batch(self, original: _Method, *args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs)
        if _current_call() is None:
            for capture in self._captures_of_thread():
                capture.note_incomplete(tr(_BATCH_REASON))
        return result

    def _loaded(self, call: _Call) -> LoadedModel:
        return call.captures[0].loaded_for(self._model)

    def _begin(
        self, call: _Call, config: GenerationConfig, source: torch.Tensor | None,
        recorder_class: type[CallRecorder] | None = None,
    ) -> None:  # fmt: skip
        name = strategy_name(config, bool(call.assistant))
        if recorder_class is None:
            recorder_class = SampleRecorder
            if not call.chooses_tokens:
                recorder_class = (
                    BeamRecorder if name in _BEAM_STRATEGIES else DraftRecorder if name in _DRAFT_STRATEGIES
                    else SampleRecorder
                )  # fmt: skip
        inputs, new_run = self._call_inputs(call, config, source), self._new_run(call)
        call.recorder = recorder_class(self._loaded(call), inputs, new_run)
        if call.chooses_tokens:
            call.passes = PassRecorder(self._loaded(call), inputs, new_run, call.ids)

    def _call_inputs(self, call: _Call, config: GenerationConfig, source: torch.Tensor | None) -> CallInputs:
        name = strategy_name(config, bool(call.assistant))
        top_n = max(capture.top_n for capture in call.captures)
        generator = read_generator(self._loaded(call).device)
        outer = call.parent
        while outer is not None and outer.recorder is None:
            outer = outer.parent
        return CallInputs(
            config, call.custom or name, call.started, top_n, source, call.mask, call.chooses_tokens,
            functools.partial(self._origin, call, config, name, generator), None if outer is None else outer.recorder,
        )  # fmt: skip

    @staticmethod
    def _new_run(call: _Call) -> NewRun:
        return functools.partial(_new_runs, call.captures)

    def _origin(
        self, call: _Call, config: GenerationConfig, strategy: str, generator: GeneratorStart, prompts: int
    ) -> RunOrigin:
        """Return what is known about a call besides its prompt and its settings."""
        facts = [*listed("processor", call.processors), *listed("criterion", call.criteria)]
        if call.custom:
            facts.append(("function", call.custom))
        facts += [("inputs", name) for name in call.inputs]
        facts += [("setting", name) for name in objects_of(config)]
        if call.assistant:
            facts.append(("assistant", call.assistant))
        if self._model.training:
            facts.append(("mode", "training"))
        if config.do_sample:
            if prompts > 1:
                facts.append(("rows", str(prompts)))
            if strategy in _DRAFT_STRATEGIES or not generator.is_known:
                facts.append(("draws", strategy))
        found = hash_weights(self._model)
        if found != self._weights[0]:
            folder = folder_of(self._loaded(call))
            self._weights = found, folder is not None and differs_from_files(self._model, folder)
        if self._weights[1]:
            facts.append(("files", self._loaded(call).name))
        facts.append(("weights", found))
        return RunOrigin(
            tuple(facts), generator if config.do_sample else GeneratorStart(generator.seed),
            peft_adapters(self._model), found,
        )  # fmt: skip

    # Helper methods of `generate`

    def _expand_inputs(self, original: _Method, *args: object, **kwargs: object) -> object:
        found, call = original(*args, **kwargs), _current_call()
        if call is not None and not call.muted:
            mask = kwargs.get("attention_mask")
            call.mask = mask if isinstance(mask, torch.Tensor) else None
            call.ids = found[0] if isinstance(found, tuple) and isinstance(found[0], torch.Tensor) else None
            call.inputs = other_inputs(kwargs)
        return found

    def _get_processors(self, original: _Method, *args: object, **kwargs: object) -> object:
        found, call = original(*args, **kwargs), _current_call()
        config = kwargs.get("generation_config", args[0] if args else None)
        if call is None or call.muted or call.failed or not isinstance(config, GenerationConfig):
            return found
        self._next_loop(call)
        source = kwargs.get("encoder_input_ids")
        reads_text = isinstance(source, torch.Tensor) and source.dim() == 2 and not source.is_floating_point()
        is_encoder_decoder = self._loaded(call).is_encoder_decoder
        ids = source if reads_text and is_encoder_decoder and isinstance(source, torch.Tensor) else None
        if is_encoder_decoder and ids is None:
            call.inputs = (*call.inputs, str(getattr(self._model, "main_input_name", "inputs")))
        elif not call.inputs and call.ids is not None and not call.ids.shape[1]:
            call.inputs = ("inputs_embeds",)
        if kwargs.get("negative_prompt_ids") is not None:
            call.inputs = (*call.inputs, "negative_prompt_ids")
        call.processors = _own_processors(kwargs)
        _observed(call, lambda: self._begin(call, config, ids))
        return _RecordingProcessors(found, call, config) if call.is_recording else found

    def _get_criteria(self, original: _Method, *args: object, **kwargs: object) -> object:
        found, call = original(*args, **kwargs), _current_call()
        if call is None or not call.is_recording:
            return found
        given = kwargs.get("stopping_criteria")
        call.criteria = tuple(given) if isinstance(given, Sequence) else ()
        return _RecordingCriteria(found, call)

    def _update_kwargs(self, original: _Method, outputs: object, *args: object, **kwargs: object) -> object:
        result, call = original(outputs, *args, **kwargs), _current_call()
        if call is not None and call.is_recording and call.recorder is not None:
            recorder, cache = call.recorder, getattr(outputs, cache_name(self._model), None)
            _observed(call, lambda: recorder.forward(cache))
        return result

    def _get_candidate_generator(self, original: _Method, *args: object, **kwargs: object) -> object:
        call = _current_call()
        if call is not None:
            call.muted += 1  # the drafter may prepare processors of its own
        try:
            drafter = original(*args, **kwargs)
        finally:
            if call is not None:
                call.muted -= 1
        if call is None or not call.is_recording or not isinstance(call.recorder, DraftRecorder):
            return drafter
        recorder, get_candidates, update = call.recorder, drafter.get_candidates, drafter.update_candidate_strategy

        def get(input_ids: torch.Tensor, *more: object, **options: object) -> object:
            started = time.perf_counter()
            call.muted += 1
            try:
                found = get_candidates(input_ids, *more, **options)
            finally:
                call.muted -= 1
            _observed(call, lambda: recorder.drafted(input_ids, found[0], found[1], started))
            return found

        def verify(input_ids: torch.Tensor, scores: torch.Tensor, *more: object, **options: object) -> object:
            _observed(call, lambda: recorder.verified(input_ids, scores))
            call.muted += 1
            try:
                return update(input_ids, scores, *more, **options)
            finally:
                call.muted -= 1

        drafter.get_candidates, drafter.update_candidate_strategy = get, verify
        return drafter

    # Helper methods of beam search

    def _top_k_continuations(self, original: _Method, *args: object, **kwargs: object) -> object:
        found = original(*args, **kwargs)
        scores, sequences, rows = found
        self._observe_beams(lambda beams: beams.chosen(scores, sequences, rows, _whole(kwargs["cur_len"])))
        return found

    def _running_beams(self, original: _Method, *args: object, **kwargs: object) -> object:
        found = original(*args, **kwargs)
        self._observe_beams(lambda beams: beams.continued(found[0], found[2]))
        return found

    def _finished_beams(self, original: _Method, *args: object, **kwargs: object) -> object:
        found = original(*args, **kwargs)
        self._observe_beams(lambda beams: beams.ended(found[0], found[3], _whole(kwargs["decoder_prompt_len"])))
        return found

    def _early_stop(self, original: _Method, *args: object, **kwargs: object) -> object:
        found = original(*args, **kwargs)
        self._observe_beams(lambda beams: beams.note_improvement(found[:, 0].tolist()))
        return found

    def _has_unfinished_beams(self, original: _Method, *args: object, **kwargs: object) -> object:
        found = original(*args, **kwargs)
        self._observe_beams(lambda beams: beams.step_done(bool(found)))
        return found

    def _observe_beams(self, observe: Callable[[BeamRecorder], object]) -> None:
        call = _current_call()
        if call is not None and call.is_recording and isinstance(call.recorder, BeamRecorder):
            recorder = call.recorder
            _observed(call, lambda: observe(recorder))

    # The caller's own loop

    def _custom_pass(
        self, call: _Call, module: torch.nn.Module, args: tuple[object, ...], kwargs: Mapping[str, object],
        output: object,
    ) -> None:  # fmt: skip
        """Record a pass of a decoding function that does not use transformers' processors."""
        if torch.compiler.is_compiling() or _current_call() is not call or call.failed or call.muted:
            return
        if call.recorder is None or not call.recorder.runs:
            _observed(call, lambda: self._note_custom_pass(call, args, kwargs, output))

    def _note_custom_pass(
        self, call: _Call, args: tuple[object, ...], kwargs: Mapping[str, object], output: object
    ) -> None:
        is_encoder_decoder = self._loaded(call).is_encoder_decoder
        logits, ids = getattr(output, "logits", None), kwargs.get("input_ids", args[0] if args else None)
        if is_encoder_decoder:
            ids = kwargs.get("decoder_input_ids")
        if not isinstance(logits, torch.Tensor) or logits.dim() != 3 or not isinstance(ids, torch.Tensor):
            return
        if call.passes is None:
            call.passes = self._pass_recorder(call, is_encoder_decoder)
        cache: Any = getattr(output, cache_name(self._model), None)
        given: Any = kwargs.get(cache_name(self._model))
        call.passes.passed(ids, logits, given if cache is None else cache)

    def _pass_recorder(self, call: _Call, is_encoder_decoder: bool) -> PassRecorder:
        """Return the recorder for a folder's function, which gets the arguments of `generate` as they are."""
        config, mask = call.kwargs.get("generation_config"), call.kwargs.get("attention_mask")
        if not isinstance(config, GenerationConfig):
            config = self._loaded(call).generation_config
        call.mask = mask if isinstance(mask, torch.Tensor) else None
        prompt = call.kwargs.get("input_ids", call.kwargs.get("inputs"))
        ids = prompt if isinstance(prompt, torch.Tensor) and not prompt.is_floating_point() else None
        call.processors = _own_processors(call.kwargs)
        inputs = self._call_inputs(call, config, ids if is_encoder_decoder else None)
        return PassRecorder(self._loaded(call), inputs, self._new_run(call), None if is_encoder_decoder else ids)


_PASSES_REASON = mark(
    "the decoding function {name} does not choose one token per pass, so the passes of the model do not explain its "
    "tokens."
)
_BATCH_REASON = mark("generate_batch schedules requests in passes of its own, which are not recorded. Call generate.")


def _new_runs(captures: Sequence[CallObserver], described: RunDescription) -> Callable[[Event], None]:
    """Start a run in every capture; return the function that passes on its events."""
    receivers = [capture.new_run(described) for capture in captures]

    def emit(event: Event) -> None:
        for receive in receivers:
            receive(event)

    return receivers[0] if len(receivers) == 1 else emit


def _own_processors(kwargs: Mapping[str, object]) -> tuple[object, ...]:
    """Return the processors that the caller passed to `generate`."""
    given, allowed = kwargs.get("logits_processor"), kwargs.get("prefix_allowed_tokens_fn")
    own = tuple(given) if isinstance(given, Sequence) else ()
    return own if allowed is None else (*own, allowed)


def _is_assembled(row: Sequence[int], loops: Sequence[CallRecorder]) -> bool:
    """Return whether a row consists of parts of recorded texts, at most two more than there are loops."""
    padding = frozenset().union(*(loop.padding for loop in loops))
    pool = [loop.start_ids(number) + ids for loop in loops for number, ids in enumerate(loop.recorded_rows())]
    rest = [token for token in row if token not in padding]
    pool = [[token for token in ids if token not in padding] for ids in pool]
    parts, place = 0, 0
    while place < len(rest):
        longest = max((_common_length(rest, place, ids) for ids in pool), default=0)
        parts, place = parts + 1, place + longest
        if not longest or parts > len(pool) + 2:
            return False
    return True


def _common_length(row: Sequence[int], place: int, ids: Sequence[int]) -> int:
    """Return the length of the longest part of `ids` that `row` has at `place`."""
    best = 0
    for first, token in enumerate(ids):
        if token == row[place]:
            length = 1
            while (
                place + length < len(row) and first + length < len(ids) and row[place + length] == ids[first + length]
            ):
                length += 1
            best = max(best, length)
    return best


def _has_own_generate(model: torch.nn.Module) -> bool:
    return getattr(type(model), "generate", None) is not GenerationMixin.generate


def _class_name(value: object) -> str:
    return "" if value is None else type(value).__name__


def _whole(value: object) -> int:
    """Return an integer argument."""
    assert isinstance(value, int)
    return value


def _function_name(given: object) -> str:
    """Return the name of a decoding function or of the folder that contains it; empty without one."""
    if not given:
        return ""
    if isinstance(given, str):
        return given.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    return str(getattr(given, "__name__", "") or type(given).__name__)


def generating_module(model: LoadedModel | torch.nn.Module) -> torch.nn.Module | None:
    """Return the module whose `generate` runs: the model itself, or the one inside a wrapper (an adapter, a compiled
    module); None if there is none.
    """
    return next(iter(generating_modules(model)), None)


def generating_modules(model: object) -> list[torch.nn.Module]:
    """Return all such modules: a model of pictures may leave `generate` to the language model inside it."""
    module = getattr(model, "model", model) if not isinstance(model, torch.nn.Module) else model
    if not isinstance(module, torch.nn.Module):
        return []
    return [inner for inner in module.modules() if hasattr(type(inner), "_get_logits_processor")]


def folder_of(model: LoadedModel) -> Path | None:
    """Return the folder that a model was loaded from; None if it is not on this disk."""
    origin = getattr(model.model.config, "_name_or_path", "")
    if model.path is not None or not origin:
        return model.path
    try:
        return catalog.locate(origin)
    except ModelError:
        return None
