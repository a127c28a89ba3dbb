"""The tokenizer of a model folder."""

from __future__ import annotations

import logging
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from core.errors import TokenizerMissingError
from core.models.library_errors import full_message, readable_reason
from core.models.model_files import is_file
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
