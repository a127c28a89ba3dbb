"""Jinja's sandbox with a budget: loops, calls, filters, operators, comparisons and output are charged.

Templates may use what transformers allows (its own environment has no limits): the same extensions and functions,
except a few filters for web pages.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, Sized, ValuesView
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from decodescope.resources.language import tr

if TYPE_CHECKING:
    from jinja2.parser import Parser

_SECONDS = 5.0
"""Processor time."""
_ITEM, _PRODUCT = 8, 2**12
"""Units for inspecting one item of a container; product of factor bits that costs one unit."""
_CHECK, _STEP = 20_000, 100
"""The clock is read after this many units; every charge counts at least as a step."""
_DIGITS = re.compile(r"\d+")
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


class TemplateLimitError(TemplateError):
    """A template needs more time or text than allowed."""


class TemplateBudget:
    """A budget of units, which are characters and program steps. It can only decrease."""

    def __init__(self, units: int) -> None:
        self._left = units
        self._unchecked = 0
        self._deadline = time.thread_time() + _SECONDS

    def charge(self, units: int) -> None:
        """Charge `units`. Raises TemplateLimitError if the budget or the thread's processor time is exceeded.

        The time of other threads and programs does not count.
        """
        self._left -= units
        if self._left < 0:
            raise TemplateLimitError(tr("it produces more text or takes more steps than any chat needs"))
        self._unchecked += _STEP + units
        if self._unchecked < _CHECK:
            return
        self._unchecked = 0
        if time.thread_time() > self._deadline:
            raise TemplateLimitError(tr("it takes longer than {seconds:g} seconds").format(seconds=_SECONDS))

    def charge_copy(self, value: object) -> None:
        """Charge for a shallow copy of a sequence."""
        if isinstance(value, (list, tuple)):
            self.charge(1 + len(value))
        else:
            self.charge_read(value)

    def charge_read(self, *values: object) -> int:
        """Charge for reading values fully, and return the cost. Nested values count each time they are reached.

        A list that contains itself twice, and that list twice again, costs as much as its printed length.
        """
        total, waiting = 0, list(values)
        count = len(waiting)
        while waiting:
            value = waiting.pop()
            total += _own_size(value) + (_ITEM if count <= 0 else 0)
            count -= 1
            if total > self._left:
                self.charge(total)
            if isinstance(value, dict):
                waiting.extend(value.keys())
                waiting.extend(value.values())
            elif isinstance(value, _CONTAINERS):
                waiting.extend(value)
        self.charge(total)
        return total

    def charge_repeated(self, value: object, others: Iterable[object], formats: Iterable[object] = ()) -> None:
        """Charge for an operation that may repeat its arguments for each part of `value`, or as often as a number says:
        padding, formatting, joining. `formats` are format strings, in which numbers are widths.
        """
        others = list(others)
        amount = sum(abs(int(number)) for number in _numbers(others)) + _widths(formats)
        self.charge(self.charge_read(value) * (1 + self.charge_read(*others) + amount))

    def charge_replace(self, text: str, old: object, new: object) -> None:
        """Charge for replacing every occurrence of one text by another."""
        self.charge(1 + len(text))
        if isinstance(old, str) and isinstance(new, str):
            self.charge(text.count(old) * len(new))

    def charge_operator(self, operator: str, left: object, right: object) -> None:
        """Charge for `left operator right`."""
        if operator == "*" and isinstance(left, Sequence) != isinstance(right, Sequence):
            text, times = (left, right) if isinstance(left, Sequence) else (right, left)
            self.charge(self.charge_read(text) * max(1, int(times) if isinstance(times, int) else 1))
        elif operator == "*" and isinstance(left, int) and isinstance(right, int):
            self.charge(1 + left.bit_length() * right.bit_length() // _PRODUCT)
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            self.charge(left.bit_length() * max(1, right))
        elif operator == "%" and isinstance(left, (str, bytes)):
            self.charge_repeated(left, right if isinstance(right, tuple) else (right,), (left,))
        elif operator == "+" and isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            self.charge_copy(left)
            self.charge_copy(right)
        else:
            self.charge_read(left, right)


def _own_size(value: object) -> int:
    if isinstance(value, (str, bytes, range)):
        return 1 + len(value)
    return 1 + (value.bit_length() // 8 if isinstance(value, int) else 0)


def _numbers(values: Iterable[object]) -> list[int | float]:
    return [value for value in values if isinstance(value, (int, float)) and abs(value) < float("inf")]


def _widths(values: Iterable[object]) -> int:
    """Return the sum of numbers in format strings (`%1000d`, `{:>1000}`), where they are widths."""
    texts = (value.decode("latin-1") if isinstance(value, bytes) else value for value in values)
    formats = [value for value in texts if isinstance(value, str) and ("%" in value or "{" in value)]
    return sum(int(digits[:12]) for text in formats for digits in _DIGITS.findall(text))


BUDGET: ContextVar[TemplateBudget] = ContextVar("meter")
"""Budget of the template being compiled or rendered."""
_WEIGH, _LOOP = "_weigh", "_loop"
_MACRO, _ITERATION = 300, 16
"""Units for calling a macro and for one loop iteration, whatever they contain."""
_FOR_WEB_PAGES = ("urlize", "striptags", "xmlattr", "pprint")
_MULTIPLYING = {
    "replace", "join", "indent", "center", "format", "tojson", "wordwrap", "batch", "slice", "round", "map",
}  # fmt: skip
"""Filters whose result may be longer than all their inputs together."""
_FORMATTING = {"format", "format_map"}
"""Methods whose object is a format string."""
_LINEAR = {
    "capitalize", "casefold", "copy", "count", "endswith", "find", "get", "index", "isalnum", "isalpha", "isdigit",
    "islower", "isspace", "istitle", "isupper", "items", "keys", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
    "swapcase", "title", "upper", "values",
}  # fmt: skip
"""Methods whose result is no longer than their object; for all others the worst case is assumed."""


class _ChargeInserter(NodeTransformer):
    """Adds charges where jinja has no hook: around loops, comparisons and concatenations."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, _LOOP, [], [], None, None).set_lineno(node.lineno)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _charged(node.expr)
        for operand in node.ops:
            operand.expr = _charged(operand.expr)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Concat:
        self.generic_visit(node)
        node.nodes = [_charged(part) for part in node.nodes]
        return node

    def visit_List(self, node: nodes.List | nodes.Dict) -> nodes.Expr:
        self.generic_visit(node)
        return _charged(node)

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Expr:
        self.generic_visit(node)
        return _charged(node) if node.ctx == "load" else node


class _Generation(Extension):
    """Supports `{% generation %}`, which marks assistant text for training; here its text is rendered unchanged."""

    tags = {"generation"}  # noqa: RUF012 (as jinja declares it)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the nodes between the tags."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Namespace(Namespace):
    """Jinja's namespace without names that reach into Python."""

    def __init__(self, /, *args: Mapping[str, object], **kwargs: object) -> None:
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_name(name)
        super().__init__(attributes)

    def __setitem__(self, name: str, value: object) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # its values were never charged together


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(tr("a namespace cannot contain {name!r}").format(name=name))


def _charged(node: nodes.Expr) -> nodes.Expr:
    if isinstance(node, nodes.Const):
        return node
    weighed = nodes.Filter(node, _WEIGH, [], [], None, None)
    weighed.set_lineno(node.lineno)
    return weighed


def _charge_one(value: object) -> object:
    BUDGET.get().charge_read(value)
    return value


def _loop(values: Iterable[object]) -> Iterable[object]:
    """Return the values of a loop, charged in advance if their number is known."""
    meter = BUDGET.get()
    if isinstance(values, Sized):
        meter.charge(_ITERATION * len(values))
        return values
    return _metered_iterator(values)


def _metered_iterator(values: Iterable[object]) -> Iterable[object]:
    for value in values:
        BUDGET.get().charge(_ITERATION)
        yield value


def _concat(pieces: Iterable[str]) -> str:
    parts, meter = [], BUDGET.get()
    for piece in pieces:
        meter.charge(1 + len(piece))
        parts.append(piece)
    return "".join(parts)


def _charging(name: str, function: Callable[..., object]) -> Callable[..., object]:
    """Return a filter or test that charges first. Some receive the context before their value."""
    skip = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def paid(*args: object, **kwargs: object) -> object:
        values, meter = [*args[skip:], *kwargs.values()], BUDGET.get()
        if name == "replace" and len(values) == 3 and isinstance(values[0], str):
            meter.charge_replace(values[0], values[1], values[2])
        elif name in _MULTIPLYING and values:
            meter.charge_repeated(values[0], values[1:], values[:1] if name == "format" else ())
        else:
            meter.charge_read(*values)
        return function(*args, **kwargs)

    return paid


def _charge_call(meter: TemplateBudget, function: Callable[..., object], args: list[object]) -> None:
    method = getattr(function, "__wrapped__", function)  # the sandbox wraps str.format
    owner = getattr(method, "__self__", None)
    if isinstance(owner, str) and method.__name__ == "replace" and len(args) >= 2:
        meter.charge_replace(owner, args[0], args[1])
    elif isinstance(owner, (str, bytes, int, float, list, tuple, dict)) and method.__name__ not in _LINEAR:
        meter.charge_repeated(owner, args, (owner,) if method.__name__ in _FORMATTING else ())
    else:
        meter.charge_repeated("", args, args) if function is _strftime_now else meter.charge_read(owner, *args)


def _dict(*args: Mapping[str, object], **kwargs: object) -> dict[str, object]:
    return dict(*args, **kwargs)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write JSON as transformers does: jinja's own filter escapes HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """Compiles and renders templates under the budget in `BUDGET`."""

    concat = staticmethod(_concat)
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols], finalize=_charge_one
        )
        for name in _FOR_WEB_PAGES:
            del self.filters[name]
        self.filters = {name: _charging(name, function) for name, function in self.filters.items()}
        self.filters |= {_WEIGH: _charge_one, _LOOP: _loop, "tojson": _charging("tojson", _tojson)}
        self.tests = {name: _charging(name, test) for name, test in self.tests.items() if callable(test)}
        self.globals = {
            "range": self.globals["range"], "dict": _dict, "namespace": _Namespace, "raise_exception": _raise,
            "strftime_now": _strftime_now,
        }  # fmt: skip

    def call_binop(self, context: Context, operator: str, left: object, right: object) -> object:
        """Charge for an arithmetic operator, which may also join or repeat texts."""
        BUDGET.get().charge_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Callable[..., object], *args: object, **kwargs: object) -> object:
        """Charge for calling a function, method or macro."""
        meter = BUDGET.get()
        if isinstance(__obj, (Macro, LoopContext)):
            meter.charge(_MACRO)  # operations on its arguments are charged separately
        else:
            _charge_call(meter, __obj, [*args, *kwargs.values()])
        return super().call(__context, __obj, *args, **kwargs)

    def getitem(self, obj: object, argument: object) -> object:
        """Charge for a slice as a copy, or for reading a nested key."""
        if isinstance(argument, slice):
            BUDGET.get().charge_copy(obj)
        else:
            BUDGET.get().charge_read(argument)
        return super().getitem(obj, argument)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        return super()._generate(_ChargeInserter().visit(source), name, filename, defer_init)
