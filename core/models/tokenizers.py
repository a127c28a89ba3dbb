"""The tokenizer of a model folder."""

from __future__ import annotations

import inspect
import logging
import sys
from pathlib import Path
from typing import Any

import transformers
from transformers import (
    AutoFeatureExtractor,
    AutoImageProcessor,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)
from transformers.models.auto import processing_auto

from core.errors import ProcessorMissingError, TokenizerMissingError
from core.models.modalities import Takes
from core.models.model_files import full_message, is_file, readable_reason
from resources.language import mark, tr

log = logging.getLogger(__name__)

_FILES = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
    "source.spm", "tokenizer_config.json",
)  # fmt: skip
_REMEDY = mark("Copy or download the model's tokenizer files again.")


def load_tokenizer(path: Path, allow_remote_code: bool) -> PreTrainedTokenizerBase | None:
    """The tokenizer in the folder, or None when it holds none. Raises TokenizerMissingError when it is broken."""
    if not any(is_file(path / name) for name in _FILES):
        return None
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=allow_remote_code, local_files_only=True)
        _check_methods(tokenizer)
    except BaseException as error:  # every class fails in a way of its own
        if not is_library_failure(error):
            raise
        log.debug("tokenizer of %s", path, exc_info=True)
        raise TokenizerMissingError(
            tr("The tokenizer in {file} cannot be loaded: {error}").format(
                file=path.name, error=readable_reason(error)
            ),
            tr(_REMEDY),
            full_message(error),
        ) from error
    _check_vocabulary(path, tokenizer)
    return tokenizer


def _check_vocabulary(path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """That its tokens come from a file: without one, many classes make a vocabulary of their special tokens alone,
    and read every prompt as nothing. Raises TokenizerMissingError."""
    own = set(tokenizer.vocab_files_names.values())
    if own and not any(is_file(path / name) for name in {"tokenizer.json", "tekken.json", *own}):
        raise TokenizerMissingError(
            tr("{folder} says which kind of tokenizer it has, and lacks the file of its tokens ({names}).").format(
                folder=path.name, names=", ".join(sorted(own))
            ),
            tr(_REMEDY),
        )


def is_library_failure(error: BaseException) -> bool:
    """Whether a library failed, in Python or in Rust (whose panics are no Exception), and nobody asked to stop."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _check_methods(tokenizer: PreTrainedTokenizerBase) -> None:
    """Everything that a run asks of it once, so that what is broken shows now and not in the middle of a text."""
    tokenizer.decode([0, 1], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    tokenizer.convert_ids_to_tokens([0])
    frozenset(tokenizer.all_special_ids)


_PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_PIXEL_MODELS = frozenset({"blip", "git"})
"""Models that take pixels as they are: no mark of the prompt stands for them."""


def load_processor(path: Path, config: PreTrainedConfig, modalities: Takes, allow_remote_code: bool) -> object:
    """transformers' own for the folder; None for a model of text alone, and for one that can do without where the
    folder holds none. Raises ProcessorMissingError."""
    if not modalities.media:
        return None
    if not any(is_file(path / name) for name in _PROCESSOR_FILES):
        if not modalities.needs:
            return None
        raise ProcessorMissingError(
            tr("{folder} holds no {file}, so its sounds and pictures cannot be read.").format(
                folder=path.name, file=_PROCESSOR_FILES[0]
            ),
            tr("Copy or download the model again, whole."),
        )
    try:
        return _processor_class(config, modalities).from_pretrained(
            path, trust_remote_code=allow_remote_code, local_files_only=True
        )
    except BaseException as error:  # every class fails in a way of its own
        if not is_library_failure(error):
            raise
        log.debug("processor of %s", path, exc_info=True)
        raise ProcessorMissingError(
            tr("What reads sounds and pictures for {folder} cannot be loaded: {error}").format(
                folder=path.name, error=error
            ),
            tr("Copy or download {file} again.").format(file=_PROCESSOR_FILES[0]),
            f"{type(error).__name__}: {error}",
        ) from error


def _processor_class(config: PreTrainedConfig, takes: Takes) -> Any:
    """The part that is needed: a tokenizer is loaded by itself, with its own errors."""
    if takes.sound:
        return AutoFeatureExtractor
    if config.is_encoder_decoder or config.model_type in _PIXEL_MODELS:
        return AutoImageProcessor
    return text_image_processor(config.model_type)


def text_image_processor(kind: str) -> object:
    """The class that reads text and pictures together for a family, by its `model_type`."""
    names: dict[str, str] = vars(processing_auto)["PROCESSOR_MAPPING_NAMES"]
    whole = getattr(transformers, names[kind])
    return _without_video(whole) if "video_processor" in whole.get_attributes() else whole


def _without_video(whole: Any) -> object:
    """The processor of a family that takes films too, which need libraries that pictures do not (torchvision, and
    num2words for the number of a film's pictures)."""
    module = sys.modules[whole.__module__]
    if getattr(module, "num2words", whole) is None:
        vars(module)["num2words"] = str

    class Pictures(whole):  # type: ignore[misc]  # whichever class a family has
        """Of text and pictures."""

        def __init__(
            self, image_processor: object = None, tokenizer: object = None, chat_template: object = None, **more: object
        ) -> None:
            whole.__init__(self, image_processor, tokenizer, video_processor=None, chat_template=chat_template, **more)

        @staticmethod
        def validate_init_kwargs(processor_config: object, valid_kwargs: object) -> object:
            """What a folder's file sets: transformers would look for its names in the parameters above alone."""
            return whole.validate_init_kwargs(processor_config=processor_config, valid_kwargs=names)

    init = inspect.signature(whole.__init__)
    kept = [one for name, one in init.parameters.items() if name != "video_processor"]
    names = [one.name for one in kept]
    vars(Pictures.__init__)["__signature__"] = init.replace(parameters=kept)  # by which its own values are saved
    return Pictures
