"""One setting: what an editor, a check and an explanation of it need. Knows no torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from core.common.lightweight_dataclass import plain
from core.common.setting_values import FORM_DESCRIPTIONS, TokenIdForm, has_form, ids_in, to_plain_value
from core.common.text import cut_short
from core.errors import ParameterError
from core.grammar.grammar_setting import grammar_format_problem
from core.system.optional_deps import Extra
from resources.language import mark, tr

_MAX_QUOTED_LENGTH = 60
"""Most characters of a value that an error repeats."""

Settings = Mapping[str, Any]
"""Values by the names of their settings; which types they have, each `Parameter` says."""
ParameterKind = Literal["int", "float", "bool", "choice", "text", "lines", "tokens", "names", "grammar"]
"""`lines`: one string a line (stop strings); `tokens`: a list of token ids or of phrases; `names`: a list of some
of its choices, each at most once, in an order that matters; `grammar`: one of `core.grammar.grammar_setting.KINDS`
with what it
is made of."""


@plain(frozen=True)
class Parameter:
    """One setting: enough to draw an editor for it, to check it and to explain it."""

    name: str
    """GenerationConfig's field, or the key in `Request.options` when `option` is true."""
    title: str
    kind: ParameterKind
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    soft_minimum: float | None = None
    soft_maximum: float | None = None
    """Where a slider begins and ends; typing may go on to `minimum` and `maximum`."""
    logarithmic: bool = False
    """Equal ways on the slider are equal factors, not equal differences; it begins above 0."""
    step: float | None = None
    choices: tuple[object, ...] = ()
    form: TokenIdForm | None = None
    """What it is made of where it holds token ids (`tokens`: "ids" unless said); of a choice or a text: what may stand
    there instead."""
    exclusive: bool = False
    """The minimum itself is not allowed."""
    option: bool = False
    advanced: bool = False
    """Unfolded on demand."""
    unset: object = None
    """Value that switches the setting off, where that is not the default."""
    extra: Extra | None = None
    """The extra of this program without which it cannot be used."""


def check(parameter: Parameter, value: object) -> None:
    """Type and range of one setting. Raises ParameterError naming both."""
    value = to_plain_value(value)
    wrong = _CHECKS[parameter.kind](parameter, value)
    if wrong is not None:
        shown = quote_text(value) if isinstance(value, str) else short_repr(value)
        cause = wrong.cause.format(title=tr(parameter.title), parameter=parameter.name, value=shown)
        raise ParameterError(cause, wrong.remedy, parameter.name)


def quote_text(text: str) -> str:
    """A text as an error quotes it: short, and without what would break the line or speak to a terminal."""
    signs = (
        sign if sign.isprintable() else sign.encode("unicode_escape").decode()
        for sign in text[: _MAX_QUOTED_LENGTH + 1]
    )
    return f"“{cut_short(''.join(signs), _MAX_QUOTED_LENGTH)}”"


def short_repr(value: object) -> str:
    """A value as an error quotes it."""
    try:
        words = repr(value)
    except ValueError:  # Python does not write numbers of more than 4,300 digits
        return tr("a number of thousands of digits")
    return words if len(words) <= _MAX_QUOTED_LENGTH else f"{words[: _MAX_QUOTED_LENGTH - 1]}…"


def display_name(value: object) -> str:
    """What should be a name, as an error quotes it in marks of its own."""
    return value if isinstance(value, str) else short_repr(value)


def known_names_sentence(names: Iterable[str]) -> str:
    """What to choose from where a name is not known, as a sentence."""
    return tr("It knows: {names}.").format(names=", ".join(names) or tr("none"))


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
    return _Rejection(_range_remedy(parameter), tr("{title} ({parameter}) is {value}, out of its range."))


def _range_remedy(parameter: Parameter) -> str:
    """What a number has to be, as a sentence."""
    low, high, is_whole = parameter.minimum, parameter.maximum, parameter.kind == "int"
    if low is None or high is None:
        return tr("It must be a whole number.") if is_whole else tr("It must be a number.")
    sentence = {
        (True, True): mark("It must be a whole number above {low} to {high}."),
        (True, False): mark("It must be a whole number from {low} to {high}."),
        (False, True): mark("It must be a number above {low} to {high}."),
        (False, False): mark("It must be a number from {low} to {high}."),
    }[is_whole, parameter.exclusive]
    return tr(sentence).format(low=format_limit(low), high=format_limit(high))


def format_limit(value: float) -> str:
    """The end of a range, as an error names it: `1,000,000`, `0.05`."""
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _check_bool(parameter: Parameter, value: object) -> _Rejection | None:
    return None if isinstance(value, bool) else _reject(tr("Use true or false."))


def _check_choice(parameter: Parameter, value: object) -> _Rejection | None:
    if value in parameter.choices or (parameter.form is not None and has_form(parameter.form, value)):
        return None
    return _reject(tr("Choose one of: {names}.").format(names=", ".join(str(choice) for choice in parameter.choices)))


def _check_text(parameter: Parameter, value: object) -> _Rejection | None:
    if parameter.form is not None and has_form(parameter.form, value):
        return None
    return None if isinstance(value, str) and "\0" not in value else _reject(tr("Give a text."))


def _check_lines(parameter: Parameter, value: object) -> _Rejection | None:
    several = isinstance(value, (list, tuple)) and all(isinstance(line, str) for line in value)
    return None if several or isinstance(value, str) else _reject(tr("Give a text, or a list of texts."))


def _check_tokens(parameter: Parameter, value: object) -> _Rejection | None:
    form = parameter.form or "ids"
    return None if has_form(form, value) else _reject(tr("Give {shape}.").format(shape=tr(FORM_DESCRIPTIONS[form])))


def _check_names(parameter: Parameter, value: object) -> _Rejection | None:
    """Their type; which names there are, and which orders can be, is said by what takes them."""
    several = isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)
    return None if several else _reject(tr("Give a list of names."))


def _check_grammar(parameter: Parameter, value: object) -> _Rejection | None:
    reason = grammar_format_problem(value)
    return _Rejection(tr("Correct it, or switch the grammar off."), _escape_braces(reason)) if reason else None


def _escape_braces(text: str) -> str:
    """As it is, through `format`."""
    return text.replace("{", "{{").replace("}", "}}")


_CHECKS: dict[ParameterKind, Callable[[Parameter, object], _Rejection | None]] = {
    "int": _check_number, "float": _check_number, "bool": _check_bool, "choice": _check_choice, "text": _check_text, "lines": _check_lines,
    "tokens": _check_tokens, "names": _check_names, "grammar": _check_grammar,
}  # fmt: skip


def check_vocabulary(parameter: Parameter, value: object, vocabulary: int) -> None:
    """The ids of a value that `check` has passed, against a model's vocabulary. Raises ParameterError."""
    outside = [i for i in ids_in(parameter.form or "ids", value) if i >= vocabulary]
    if outside:
        cause = tr("{title} ({parameter}) holds the token id {id}, and the model knows 0 to {last:,}.").format(
            title=tr(parameter.title), parameter=parameter.name, id=outside[0], last=vocabulary - 1
        )
        raise ParameterError(cause, tr("Use ids of this model's own tokenizer."), parameter.name)
