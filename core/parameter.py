"""One setting: the data that editors, checks and explanations need. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from decodescope.core.common.lightweight_dataclass import plain
from decodescope.core.common.setting_values import FORM_DESCRIPTIONS, TokenIdForm, has_form, ids_in, to_plain_value
from decodescope.core.common.text import cut_short
from decodescope.core.errors import ParameterError
from decodescope.core.grammar.grammar_setting import grammar_format_problem
from decodescope.core.system.optional_deps import Extra
from decodescope.resources.language import join_names, mark, tr

_MAX_QUOTED_LENGTH = 60
"""Maximum length of a value quoted in an error."""

LENGTH, DRAFTS, RANDOMNESS, FILTERS, REPETITION, WORDS, THINKING, STOPPING, WATERMARK, OTHER = (
    mark("Length"), mark("Drafts"), mark("Randomness"), mark("Filters"), mark("Repetition"), mark("Words"),
    mark("Thinking"), mark("Stopping"), mark("Watermark"), mark("Other"),
)  # fmt: skip
"""Titles of groups of settings, in the order of the settings panel."""

Settings = Mapping[str, Any]
"""Values by setting name; each `Parameter` defines the type of its value."""
ParameterKind = Literal[
    "int", "float", "bool", "choice", "text", "lines", "tokens", "names", "grammar", "words", "word_values"
]
"""`lines`: one string per line (stop strings); `tokens`: a list of token ids or of phrases; `names`: an ordered list of
some of its choices, each at most once; `grammar`: one of `core.grammar.grammar_setting.KINDS` with its content;
`words`: a list of words; `word_values`: a list of [word, number].
"""


@plain(frozen=True)
class Parameter:
    """One setting: everything needed to draw an editor for it, check it and explain it."""

    name: str
    """Field of GenerationConfig, or key in `Request.options` if `option` is true."""
    title: str
    kind: ParameterKind
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    soft_minimum: float | None = None
    soft_maximum: float | None = None
    """Range of the slider; typed values may be between `minimum` and `maximum`."""
    logarithmic: bool = False
    """Whether equal distances on the slider are equal factors; requires a start above 0."""
    step: float | None = None
    choices: tuple[object, ...] = ()
    form: TokenIdForm | None = None
    """Form of the token ids (`tokens`; default "ids"); for a choice or text: a form that is accepted instead."""
    exclusive: bool = False
    """Whether the minimum itself is excluded."""
    option: bool = False
    advanced: bool = False
    """Shown only on demand."""
    unset: object = None
    """Value that switches the setting off, if that is not the default."""
    extra: Extra | None = None
    """Extra of this program that the setting requires."""
    group: str = ""
    """Title of its group in the settings panel; empty: see `core.strategies.setting_group`."""


def check(parameter: Parameter, value: object) -> None:
    """Check type and range of one setting. Raises ParameterError with the value and the allowed range."""
    value = to_plain_value(value)
    wrong = _CHECKS[parameter.kind](parameter, value)
    if wrong is not None:
        shown = quote_text(value) if isinstance(value, str) else short_repr(value)
        cause = wrong.cause.format(title=tr(parameter.title), parameter=parameter.name, value=shown)
        raise ParameterError(cause, wrong.remedy, parameter.name)


def check_values(parameters: Iterable[Parameter], settings: Settings) -> None:
    """Check the values of these settings, as far as they are set. Raises ParameterError for the first wrong one."""
    for parameter in parameters:
        if (value := settings.get(parameter.name)) is not None:
            check(parameter, value)


def quote_text(text: str) -> str:
    """Quote a text in an error: short, and with line breaks and terminal control characters escaped."""
    signs = (
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text[: _MAX_QUOTED_LENGTH + 1]
    )
    return f"“{cut_short(''.join(signs), _MAX_QUOTED_LENGTH)}”"


def short_repr(value: object) -> str:
    """Return a value's repr, shortened for an error."""
    try:
        words = repr(value)
    except ValueError:  # Python refuses to print integers of more than 4,300 digits
        return tr("a number of thousands of digits")
    return words if len(words) <= _MAX_QUOTED_LENGTH else f"{words[: _MAX_QUOTED_LENGTH - 1]}…"


def display_name(value: object) -> str:
    """Return a name as quoted in an error, or the repr of a value that is not a string."""
    return value if isinstance(value, str) else short_repr(value)


class _Rejection(NamedTuple):
    remedy: str
    cause: str


def _reject(remedy: str) -> _Rejection:
    return _Rejection(remedy, tr("{title} ({parameter}) is {value}."))


def _check_number(parameter: Parameter, value: object) -> _Rejection | None:
    low, high = parameter.minimum, parameter.maximum
    if isinstance(value, int if parameter.kind == "int" else (int, float)) and not isinstance(value, bool):
        below = low is not None and (value < low or (parameter.exclusive and value == low))
        if not below and not (high is not None and value > high) and value == value:
            return None
    return _Rejection(_range_remedy(parameter), tr("{title} ({parameter}) is {value}, which is out of range."))


def _range_remedy(parameter: Parameter) -> str:
    """Return a sentence on the allowed numbers."""
    low, high, is_whole = parameter.minimum, parameter.maximum, parameter.kind == "int"
    if low is None or high is None:
        return tr("It must be an integer.") if is_whole else tr("It must be a number.")
    sentence = {
        (True, True): mark("It must be an integer greater than {low} and at most {high}."),
        (True, False): mark("It must be an integer from {low} to {high}."),
        (False, True): mark("It must be a number greater than {low} and at most {high}."),
        (False, False): mark("It must be a number from {low} to {high}."),
    }[is_whole, parameter.exclusive]
    return tr(sentence).format(low=format_limit(low), high=format_limit(high))


def format_limit(value: float) -> str:
    """Format the end of a range for an error: `1,000,000`, `0.05`."""
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _check_bool(parameter: Parameter, value: object) -> _Rejection | None:
    return None if isinstance(value, bool) else _reject(tr("Use True or False."))


def _check_choice(parameter: Parameter, value: object) -> _Rejection | None:
    if value in parameter.choices or (parameter.form is not None and has_form(parameter.form, value)):
        return None
    return _reject(tr("Choose one of: {names}.").format(names=join_names(str(choice) for choice in parameter.choices)))


def _check_text(parameter: Parameter, value: object) -> _Rejection | None:
    if parameter.form is not None and has_form(parameter.form, value):
        return None
    return None if isinstance(value, str) and "\0" not in value else _reject(tr("Pass a string."))


def _check_lines(parameter: Parameter, value: object) -> _Rejection | None:
    several = isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value)
    return None if several or isinstance(value, str) else _reject(tr("Pass a string, or a list of strings."))


def _check_tokens(parameter: Parameter, value: object) -> _Rejection | None:
    form = parameter.form or "ids"
    return None if has_form(form, value) else _reject(tr("Pass {shape}.").format(shape=tr(FORM_DESCRIPTIONS[form])))


def _check_words(parameter: Parameter, value: object) -> _Rejection | None:
    if isinstance(value, (list, tuple)) and all(isinstance(word, str) and word and "\0" not in word for word in value):
        return None
    return _reject(tr("Pass a list of words."))


def _check_word_values(parameter: Parameter, value: object) -> _Rejection | None:
    def is_pair(pair: object) -> bool:
        """Return whether it is a word and a finite number."""
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or isinstance(pair[1], bool):
            return False
        word, number = pair
        is_number = isinstance(number, (int, float)) and -_MAX_BIAS <= number <= _MAX_BIAS
        return isinstance(word, str) and bool(word.strip()) and "\0" not in word and is_number

    if isinstance(value, (list, tuple)) and all(map(is_pair, value)):
        return None
    return _reject(tr("Pass a list of [word, number]; numbers from −{most:,} to {most:,}.").format(most=_MAX_BIAS))


_MAX_BIAS = 10_000


def _check_names(parameter: Parameter, value: object) -> _Rejection | None:
    """Check the type only; the user of the setting checks which names and orders are valid."""
    several = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return None if several else _reject(tr("Pass a list of names."))


def _check_grammar(parameter: Parameter, value: object) -> _Rejection | None:
    reason = grammar_format_problem(value)
    return _Rejection(tr("Correct it, or turn the grammar off."), _escape_braces(reason)) if reason else None


def _escape_braces(text: str) -> str:
    """Escape braces for `format`."""
    return text.replace("{", "{{").replace("}", "}}")


_CHECKS: dict[ParameterKind, Callable[[Parameter, object], _Rejection | None]] = {
    "int": _check_number,
    "float": _check_number,
    "bool": _check_bool,
    "choice": _check_choice,
    "text": _check_text,
    "lines": _check_lines,
    "tokens": _check_tokens,
    "names": _check_names,
    "grammar": _check_grammar,
    "words": _check_words,
    "word_values": _check_word_values,
}


def check_vocabulary(parameter: Parameter, value: object, vocabulary: int) -> None:
    """Check the token ids of a value, already accepted by `check`, against a model's vocabulary. Raises
    ParameterError.
    """
    outside = [i for i in ids_in(parameter.form or "ids", value) if i >= vocabulary]
    if outside:
        cause = tr("{title} ({parameter}) contains the token id {id}, but the model's ids are 0 to {last:,}.").format(
            title=tr(parameter.title), parameter=parameter.name, id=outside[0], last=vocabulary - 1
        )
        raise ParameterError(cause, tr("Use ids from this model's own tokenizer."), parameter.name)
