"""Jinja's sandbox with a meter in it: loops, calls, filters, operators, comparisons and output all pay.

What a template may do is what transformers lets it do (its own environment has no limits): the same extensions, the
same functions. A few filters for web pages are missing.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sized
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

from core.models.templates.template_budget import TemplateBudget
from resources.language import tr

if TYPE_CHECKING:
    from jinja2.parser import Parser

BUDGET: ContextVar[TemplateBudget] = ContextVar("meter")
"""Of the template that is being compiled or rendered."""
_WEIGH, _LOOP = "_weigh", "_loop"
_MACRO, _ITERATION = 300, 16
"""Units of calling a macro and of one round of a loop, whatever stands in them."""
_FOR_WEB_PAGES = ("urlize", "striptags", "xmlattr", "pprint")
_MULTIPLYING = {
    "replace", "join", "indent", "center", "format", "tojson", "wordwrap", "batch", "slice", "round", "map",
}  # fmt: skip
"""Filters whose result may be longer than all that they are given together."""
_LINEAR = {
    "capitalize", "casefold", "copy", "count", "endswith", "find", "get", "index", "isalnum", "isalpha", "isdigit",
    "islower", "isspace", "istitle", "isupper", "items", "keys", "lower", "lstrip", "partition", "removeprefix",
    "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip",
    "swapcase", "title", "upper", "values",
}  # fmt: skip
"""Methods whose result is no longer than what they are called on; of all others the worst is believed."""


class _ChargeInserter(NodeTransformer):
    """Puts the meter where jinja itself has no place for it: around loops, comparisons and what is put together."""

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
    """`{% generation %}` marks what the assistant wrote, for training; here its text is all that matters."""

    tags = {"generation"}  # noqa: RUF012 (as jinja declares it)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The text between the marks, as it is."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Namespace(Namespace):
    """Jinja's, without names that reach into Python."""

    def __init__(self, /, *args: Mapping[str, object], **kwargs: object) -> None:
        attributes = dict(*args, **kwargs)
        for name in attributes:
            _check_name(name)
        super().__init__(attributes)

    def __setitem__(self, name: str, value: object) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"  # its values were never weighed together


def _check_name(name: object) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise SecurityError(tr("a namespace cannot hold {name!r}").format(name=name))


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
    """What a loop goes over, paid for in advance where its length is known."""
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
    """A filter or test that pays first. Some get the context before what they work on."""
    skip = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def paid(*args: object, **kwargs: object) -> object:
        values, meter = [*args[skip:], *kwargs.values()], BUDGET.get()
        if name == "replace" and len(values) == 3 and isinstance(values[0], str):
            meter.charge_replace(values[0], values[1], values[2])
        elif name in _MULTIPLYING and values:
            meter.charge_repeated(values[0], values[1:])
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
        meter.charge_repeated(owner, args)
    else:
        meter.charge_repeated("", args) if function is _strftime_now else meter.charge_read(owner, *args)


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
    """As transformers writes it: jinja's own escapes what web pages would take for tags."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """Compiles and renders under the meter that `BUDGET` holds."""

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
        """An operator of arithmetic, which also joins and repeats texts."""
        BUDGET.get().charge_operator(operator, left, right)
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Callable[..., object], *args: object, **kwargs: object) -> object:
        """A function, a method or a macro."""
        meter = BUDGET.get()
        if isinstance(__obj, (Macro, LoopContext)):
            meter.charge(_MACRO)  # what it does with its arguments pays for itself
        else:
            _charge_call(meter, __obj, [*args, *kwargs.values()])
        return super().call(__context, __obj, *args, **kwargs)

    def getitem(self, obj: object, argument: object) -> object:
        """A slice is a copy; a key of many parts is read whole."""
        if isinstance(argument, slice):
            BUDGET.get().charge_copy(obj)
        else:
            BUDGET.get().charge_read(argument)
        return super().getitem(obj, argument)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        return super()._generate(_ChargeInserter().visit(source), name, filename, defer_init)
