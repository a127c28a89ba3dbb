"""Hooks on a model's `generate`: instance attributes that exist only while the model is captured.

transformers calls the helper methods of `generate` through the instance, so that an attribute of the instance sees
their arguments and results without a change to a class. The processors and criteria of a call are replaced by lists
that apply them one by one, in the same order, to the same tensors.
"""

from __future__ import annotations

import functools
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import torch
from transformers import GenerationConfig
from transformers.generation.logits_process import LogitsProcessorList
from transformers.generation.stopping_criteria import StoppingCriteriaList

from decodescope.core.generate_recording.beam_recorder import BeamRecorder
from decodescope.core.generate_recording.call_recorder import CallInputs, CallRecorder, ProcessedStep, SampleRecorder
from decodescope.core.generate_recording.draft_recorder import DraftRecorder
from decodescope.core.generate_recording.run_writer import strategy_name
from decodescope.core.generate_recording.stage_headings import heading_of, is_transformers_own, with_kind
from decodescope.core.models.text_decoder import cache_name
from decodescope.core.system.torch_state import library_settings
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import Event
    from decodescope.core.generate_recording.run_writer import CapturedPrompt
    from decodescope.core.models.loaded_model import LoadedModel

_Method: TypeAlias = Callable[..., Any]
"""A method of transformers, whose arguments are passed on as they are."""
_BEAM_STRATEGIES = ("beam_search", "beam_sampling")
_DRAFT_STRATEGIES = ("assisted", "prompt_lookup", "early_exit", "prediction_heads")


class CallObserver(Protocol):
    """Receives the runs of a model's `generate` calls (`core.generate_capture.capture.Capture`)."""

    loaded: LoadedModel
    top_n: int

    def new_run(self, prompt: CapturedPrompt, config: GenerationConfig, strategy: str) -> Callable[[Event], None]:
        """Start a run; return the function that receives its events."""

    def end_call(self, recorder: object, failure: BaseException | None) -> None:
        """Receive the end of a call, with the exception that ended it."""

    def note_trouble(self, error: Exception) -> None:
        """Receive the error because of which a call is not recorded further."""


@dataclass(slots=True)
class _Call:
    """A `generate` call in progress in this thread."""

    captures: Sequence[CallObserver]
    started: float
    custom: str = ""
    """Name of the caller's own decoding function."""
    chooses_tokens: bool = False
    """Whether that function chooses the tokens; it may also call `generate` itself."""
    has_assistant: bool = False
    mask: torch.Tensor | None = None
    recorder: CallRecorder | None = None
    muted: int = 0
    """Above 0 while drafts are made, whose processors and passes are not those of the text."""
    failed: bool = False
    records_passes: bool = False
    """Whether the caller's function decodes without transformers' processors, so that passes are recorded."""

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


def warn_not_recorded(error: Exception) -> None:
    """Issue a warning with the reason why a call is not recorded."""
    warnings.warn(
        tr("A generate call could not be recorded: {error}. Its result is not affected.").format(
            error=f"{type(error).__name__}: {error}"
        ),
        RuntimeWarning, stacklevel=4,
    )  # fmt: skip


class _RecordingProcessors(LogitsProcessorList):
    """The processors of a call, which record the scores after each."""

    def __init__(
        self, processors: Sequence[Callable[..., torch.Tensor]], call: _Call, config: GenerationConfig
    ) -> None:
        super().__init__(processors)
        self._call, self._config = call, config

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor, **kwargs: object) -> torch.Tensor:
        if not self._call.is_recording:
            return super().__call__(input_ids, scores, **kwargs)
        length, trace, headings = input_ids.shape[-1], [scores.detach().clone()], []
        for processor in self:
            is_own = is_transformers_own(processor)
            if not is_own and trace[-1] is scores:
                trace[-1] = scores.detach().clone()  # it may modify its input
            scores = LogitsProcessorList([processor])(input_ids, scores, **kwargs)
            heading = heading_of(processor, self._config)
            if not is_own and _removes_tokens(trace[-1], scores):
                heading = with_kind(heading, "ban")
            trace.append(scores.detach())
            headings.append(heading)
        recorder = self._call.recorder
        assert recorder is not None
        _observed(self._call, lambda: recorder.processed(input_ids, ProcessedStep(length, trace, headings)))
        return scores


def _removes_tokens(before: torch.Tensor, after: torch.Tensor) -> bool:
    if before.shape != after.shape:
        return False
    return bool((torch.isneginf(after) & ~torch.isneginf(before)).any())


class _RecordingCriteria(StoppingCriteriaList):
    """The stopping criteria of a call, which record which of them is met."""

    def __init__(self, criteria: Sequence[Callable[..., torch.Tensor]], call: _Call) -> None:
        super().__init__(criteria)
        self._call = call

    def __call__(self, input_ids: torch.Tensor, scores: object, **kwargs: object) -> object:
        if not self._call.is_recording:
            return super().__call__(input_ids, scores, **kwargs)
        done = StoppingCriteriaList()(input_ids, scores)
        met = []
        for criterion in self:
            found = StoppingCriteriaList([criterion])(input_ids, scores, **kwargs)
            met.append((criterion, found))
            done = done | found
        recorder = self._call.recorder
        assert recorder is not None
        _observed(self._call, lambda: recorder.stopped(
            input_ids, done.tolist(), [(criterion, found.tolist()) for criterion, found in met]
        ))  # fmt: skip
        return done


class _Hook:
    """A replacement for a method of one instance. A copy of the model gets the method itself."""

    def __init__(self, owner: torch.nn.Module, name: str, replacement: _Method) -> None:
        self._owner, self._name = weakref.ref(owner), name
        self._replacement = replacement
        functools.update_wrapper(self, getattr(owner, name))

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._replacement(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, object]) -> object:
        owner = self._owner()
        twin = memo.get(id(owner), owner)
        return MethodType(getattr(type(twin), self._name), twin)

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (self._owner(), self._name)


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
        replacements = {
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

    def _remove(self) -> None:
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
        if outer is not None and (outer.muted or outer.failed):
            return original(*args, **kwargs)
        captures, given = self._captures_of_thread(), kwargs.get("custom_generate")
        name = _function_name(given) or (outer.custom if outer is not None else "")
        has_assistant = kwargs.get("assistant_model") is not None
        call = _Call(captures, time.perf_counter(), name, bool(given), has_assistant)
        stack = _calls.__dict__.setdefault("stack", [])
        stack.append(call)
        watch = None
        if isinstance(given, str) and outer is None:
            watch = self._model.register_forward_hook(functools.partial(self._custom_pass, call, kwargs),
                                                      with_kwargs=True)  # fmt: skip
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
            self._end_call(call, result, failure)

    def _end_call(self, call: _Call, result: object, failure: BaseException | None) -> None:
        recorder = call.recorder
        if recorder is not None and failure is None:
            ids = getattr(result, "sequences", result)
            ids = ids if isinstance(ids, torch.Tensor) else None
            _observed(call, lambda: recorder.finish(ids))
        if recorder is not None:
            for capture in call.captures:
                capture.end_call(recorder, failure)

    def _begin(self, call: _Call, config: GenerationConfig, source: torch.Tensor | None) -> None:
        name = strategy_name(config, call.has_assistant)
        model = call.captures[0].loaded
        recorder_class: type[CallRecorder] = SampleRecorder
        if not call.chooses_tokens:
            recorder_class = (
                BeamRecorder if name in _BEAM_STRATEGIES else DraftRecorder if name in _DRAFT_STRATEGIES
                else SampleRecorder
            )  # fmt: skip
        top_n = max(capture.top_n for capture in call.captures)
        inputs = CallInputs(config, call.custom or name, call.started, top_n, source, call.mask)
        call.recorder = recorder_class(model, inputs, functools.partial(_new_runs, call.captures))

    # Helper methods of `generate`

    def _expand_inputs(self, original: _Method, *args: object, **kwargs: object) -> object:
        call = _current_call()
        if call is not None and not call.muted and call.recorder is None:
            mask = kwargs.get("attention_mask")
            call.mask = mask if isinstance(mask, torch.Tensor) else None
        return original(*args, **kwargs)

    def _get_processors(self, original: _Method, *args: object, **kwargs: object) -> object:
        found, call = original(*args, **kwargs), _current_call()
        config = kwargs.get("generation_config", args[0] if args else None)
        if call is None or call.muted or call.failed or call.recorder is not None:
            return found
        if not isinstance(config, GenerationConfig):
            return found
        source = kwargs.get("encoder_input_ids")
        reads_text = isinstance(source, torch.Tensor) and source.dim() == 2 and not source.is_floating_point()
        is_source = reads_text and call.captures[0].loaded.is_encoder_decoder
        ids = source if is_source and isinstance(source, torch.Tensor) else None
        _observed(call, lambda: self._begin(call, config, ids))
        return _RecordingProcessors(found, call, config) if call.is_recording else found

    def _get_criteria(self, original: _Method, *args: object, **kwargs: object) -> object:
        found, call = original(*args, **kwargs), _current_call()
        if call is None or not call.is_recording:
            return found
        return _RecordingCriteria(found, call)

    def _update_kwargs(self, original: _Method, outputs: object, *args: object, **kwargs: object) -> object:
        result, call = original(outputs, *args, **kwargs), _current_call()
        if call is not None and call.is_recording and call.recorder is not None:
            recorder, cache = call.recorder, getattr(outputs, cache_name(self._model), None)
            _observed(call, lambda: recorder.forward(cache))
        return result

    def _get_candidate_generator(self, original: _Method, *args: object, **kwargs: object) -> object:
        drafter, call = original(*args, **kwargs), _current_call()
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
        self, call: _Call, call_kwargs: Mapping[str, object], module: torch.nn.Module,
        args: tuple[object, ...], kwargs: Mapping[str, object], output: object,
    ) -> None:  # fmt: skip
        """Record a pass of a decoding function that does not use transformers' processors."""
        inner = _current_call()
        if inner is not call or call.failed or call.muted or (call.recorder is not None and not call.records_passes):
            return
        _observed(call, lambda: self._note_custom_pass(call, call_kwargs, args, kwargs, output))

    def _note_custom_pass(
        self,
        call: _Call,
        call_kwargs: Mapping[str, object],
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        output: object,
    ) -> None:
        is_encoder_decoder = call.captures[0].loaded.is_encoder_decoder
        logits, ids = getattr(output, "logits", None), kwargs.get("input_ids", args[0] if args else None)
        if is_encoder_decoder:
            ids = kwargs.get("decoder_input_ids")
        if not isinstance(logits, torch.Tensor) or logits.dim() != 3 or not isinstance(ids, torch.Tensor):
            return
        if call.recorder is None:
            config, mask = call_kwargs.get("generation_config"), call_kwargs.get("attention_mask")
            if not isinstance(config, GenerationConfig):
                config = call.captures[0].loaded.generation_config
            call.mask = mask if isinstance(mask, torch.Tensor) else None
            source = call_kwargs.get("input_ids", call_kwargs.get("inputs")) if is_encoder_decoder else None
            self._begin(call, config, source if isinstance(source, torch.Tensor) else None)
            call.records_passes = True
        recorder = call.recorder
        assert isinstance(recorder, SampleRecorder)
        recorder.records_passes = True
        last, cache = logits[:, -1].detach().float().clone(), getattr(output, cache_name(self._model), None)
        recorder.custom_pass(ids, last, cache)


def _new_runs(
    captures: Sequence[CallObserver], prompt: CapturedPrompt, config: GenerationConfig, strategy: str
) -> Callable[[Event], None]:
    """Start a run in every capture; return the function that passes on its events."""
    receivers = [capture.new_run(prompt, config, strategy) for capture in captures]

    def emit(event: Event) -> None:
        for receive in receivers:
            receive(event)

    return receivers[0] if len(receivers) == 1 else emit


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
    module = getattr(model, "model", model) if not isinstance(model, torch.nn.Module) else model
    if not isinstance(module, torch.nn.Module):
        return None
    return next((inner for inner in module.modules() if hasattr(type(inner), "_get_logits_processor")), None)
