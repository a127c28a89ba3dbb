"""Load the tokenizer of a model folder."""

from __future__ import annotations

import inspect
import json
import logging
import re
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

from decodescope.core.errors import ModelFileError, ProcessorMissingError, TokenizerMissingError
from decodescope.core.models.gguf.gguf_file import GgufFile
from decodescope.core.models.gguf.tokenizer import load_gguf_tokenizer
from decodescope.core.models.gguf.vocabulary import MAX_TOKEN_CHARACTERS
from decodescope.core.models.modalities import Modalities
from decodescope.core.models.model_files import (
    INDEX_BYTES,
    full_message,
    is_file,
    is_library_failure,
    read_bytes,
    readable_reason,
)
from decodescope.resources.language import join_names, mark, tr

log = logging.getLogger(__name__)

_FILES = (
    "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
    "source.spm", "tokenizer_config.json",
)  # fmt: skip
_REMEDY = mark("Copy or download the model's tokenizer files again.")
_UPDATE = mark(
    "A newer version of the libraries may have written it: update transformers and tokenizers (pip install -U "
    "transformers tokenizers). Otherwise, copy or download the model's tokenizer files again."
)
_UNKNOWN_PART = re.compile(
    r"untagged enum|unknown (variant|field)|missing field|not (a )?(supported|known)|unsupported|does not exist"
    r"|unrecognized|invalid type|version",
    re.IGNORECASE,
)
"""Parts of the libraries' messages about kinds of tokenizers, or of their parts, that they do not support."""


def load_tokenizer(
    path: Path, allow_remote_code: bool, gguf: GgufFile | None = None
) -> PreTrainedTokenizerBase | None:  # fmt: skip
    """Load the tokenizer in the folder, or return None if there is none. Raises TokenizerMissingError if it is
    broken.
    """
    if gguf is not None:
        return load_gguf_tokenizer(gguf)
    if not any(is_file(path / name) for name in _FILES):
        return None
    _check_lengths(path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=allow_remote_code, local_files_only=True)
        _check_methods(tokenizer)
    except BaseException as error:  # classes raise different exceptions
        if not is_library_failure(error):
            raise
        log.debug("tokenizer of %s", path, exc_info=True)
        raise TokenizerMissingError(
            tr("The tokenizer in {file} cannot be loaded: {error}").format(
                file=path.name, error=readable_reason(error)
            ),
            tr(_UPDATE) if _is_newer(path, error) else tr(_REMEDY),
            full_message(error),
        ) from error
    _check_vocabulary(path, tokenizer)
    return tokenizer


def _is_newer(path: Path, error: BaseException) -> bool:
    """Return whether the files are complete JSON, and the libraries do not support what it describes."""
    if not _UNKNOWN_PART.search(str(error)):
        return False
    for file in filter(is_file, (path / name for name in _FILES if name.endswith(".json"))):
        try:
            json.loads(read_bytes(file, INDEX_BYTES))
        except (OSError, ModelFileError, ValueError, RecursionError):
            return False
    return True


def _check_lengths(path: Path) -> None:
    """Check the lengths of the tokens of unigram vocabularies, in tokenizer.json or a file of SentencePiece.

    Raises TokenizerMissingError.
    """
    for file in filter(is_file, (path / name for name in _FILES)):
        try:
            data = read_bytes(file, INDEX_BYTES) if file.suffix in (".model", ".json") else b""
        except (OSError, ModelFileError):
            continue  # the library reports it
        if file.suffix == ".model":
            longest = _longest_message(data)
        else:
            longest = _longest_in_json(data) if b'"Unigram"' in data else 0
        if longest > MAX_TOKEN_CHARACTERS:
            raise TokenizerMissingError(
                tr("The tokenizer in {file} cannot be loaded: {error}").format(
                    file=path.name, error=tr("it has a token of {count:,} characters").format(count=longest)
                ),
                tr(_REMEDY),
            )


def _longest_in_json(data: bytes) -> int:
    """Return the length of the longest piece of a unigram model in tokenizer.json; 0 if it has none."""
    try:
        return max((len(piece) for piece, _ in json.loads(data)["model"]["vocab"]), default=0)
    except (ValueError, TypeError, KeyError, RecursionError):
        return 0  # the library reports it


def _longest_message(data: bytes) -> int:
    """Return the length in bytes of the longest piece, with its score, at the beginning of a SentencePiece file: of the
    fields with number 1 (https://github.com/google/sentencepiece, sentencepiece_model.proto); 0 for another format.
    """
    longest = place = 0
    while data[place : place + 1] == b"\n":
        length, shift, place = 0, 0, place + 1
        while place < len(data) and shift < 64:
            length |= (data[place] & 127) << shift
            place, shift = place + 1, shift + 7
            if data[place - 1] < 128:
                break
        longest, place = max(longest, length), place + length
    return longest


def _check_vocabulary(path: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    """Check that the tokens come from a file: otherwise many classes make a vocabulary of special tokens only, which
    reads every prompt as empty. Raises TokenizerMissingError.
    """
    own = set(tokenizer.vocab_files_names.values())
    if own and not any(is_file(path / name) for name in {"tokenizer.json", "tekken.json", *own}):
        raise TokenizerMissingError(
            tr("{folder} names its tokenizer type, but its vocabulary file is missing ({names}).").format(
                folder=path.name, names=join_names(sorted(own))
            ),
            tr(_REMEDY),
        )


def _check_methods(tokenizer: PreTrainedTokenizerBase) -> None:
    """Call every tokenizer method that runs use, so that a broken tokenizer is detected now."""
    tokenizer.decode([0, 1], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    tokenizer.convert_ids_to_tokens([0])
    frozenset(tokenizer.all_special_ids)


_PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_PIXEL_MODELS = frozenset({"blip", "git"})
"""Models that read pixels directly, without an image token in the prompt."""


def load_processor(path: Path, config: PreTrainedConfig, modalities: Modalities, allow_remote_code: bool) -> object:
    """Load transformers' processor of the folder. Raises ProcessorMissingError.

    Return None for a text-only model, and if the folder has none and the model works without it.
    """
    if not modalities.media:
        return None
    if not any(is_file(path / name) for name in _PROCESSOR_FILES):
        if not modalities.needs:
            return None
        raise ProcessorMissingError(
            tr("{folder} contains no {file}, so audio and images cannot be processed.").format(
                folder=path.name, file=_PROCESSOR_FILES[0]
            ),
            tr("Copy or download the complete model again."),
        )
    try:
        return _processor_class(config, modalities).from_pretrained(
            path, trust_remote_code=allow_remote_code, local_files_only=True
        )
    except BaseException as error:  # classes raise different exceptions
        if not is_library_failure(error):
            raise
        log.debug("processor of %s", path, exc_info=True)
        raise ProcessorMissingError(
            tr("The processor for audio and images of {folder} cannot be loaded: {error}").format(
                folder=path.name, error=readable_reason(error)
            ),
            tr("Copy or download {file} again.").format(file=_PROCESSOR_FILES[0]),
            f"{type(error).__name__}: {error}",
        ) from error


def _processor_class(config: PreTrainedConfig, takes: Modalities) -> Any:
    """Return the class of the required part; the tokenizer is loaded separately, with its own errors."""
    if takes.sound:
        return AutoFeatureExtractor
    if config.is_encoder_decoder or config.model_type in _PIXEL_MODELS:
        return AutoImageProcessor
    return text_image_processor(config.model_type)


def text_image_processor(kind: str) -> object:
    """Return the class that processes text and images together for a family, by its `model_type`."""
    names: dict[str, str] = vars(processing_auto)["PROCESSOR_MAPPING_NAMES"]
    whole = getattr(transformers, names[kind])
    return _without_video(whole) if "video_processor" in whole.get_attributes() else whole


def _without_video(whole: Any) -> object:
    """Return a processor class without video, which needs libraries that images do not (torchvision, and num2words for
    the number of frames).
    """
    module = sys.modules[whole.__module__]
    if getattr(module, "num2words", whole) is None:
        vars(module)["num2words"] = str

    class Pictures(whole):  # type: ignore[misc]  # whichever class a family has
        """Processor of text and images."""

        def __init__(
            self, image_processor: object = None, tokenizer: object = None, chat_template: object = None, **more: object
        ) -> None:
            whole.__init__(self, image_processor, tokenizer, video_processor=None, chat_template=chat_template, **more)

        @staticmethod
        def validate_init_kwargs(processor_config: object, valid_kwargs: object) -> object:
            """Validate against the original class's parameters; transformers would only look at those of this class."""
            return whole.validate_init_kwargs(processor_config=processor_config, valid_kwargs=names)

    init = inspect.signature(whole.__init__)
    parameters = [one for name, one in init.parameters.items() if name != "video_processor"]
    names = [one.name for one in parameters]
    vars(Pictures.__init__)["__signature__"] = init.replace(
        parameters=parameters
    )  # transformers saves the values by this signature
    return Pictures
