"""A class decorated with `plain` behaves like the dataclass with the same fields."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, astuple, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from decodescope.core.common.lightweight_dataclass import plain


@plain(frozen=True)
class PlainRecord:
    """One of ours."""

    name: str
    size: int = 3
    marks: list[str] = field(default_factory=list, metadata={"check": "any"})
    beyond: object = None

    @property
    def doubled(self) -> int:
        return 2 * self.size


@dataclass(frozen=True, slots=True)
class Dataclass:
    """The standard dataclass that `PlainRecord` must equal."""

    name: str
    size: int = 3
    marks: list[str] = field(default_factory=list, metadata={"check": "any"})
    beyond: object = None


@plain()
class MutableRecord:
    """One that changes."""

    name: str = "a"
    parts: list[int] = field(default_factory=list)


@plain()
class Longer(MutableRecord):
    """One more field."""

    rest: int = 0


@plain(frozen=True, eq=False)
class Only:
    """One that is equal to itself alone."""

    name: str


GIVEN: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    (("a",), {}),
    (("a", 5), {}),
    (("a", 5, ["x"], None), {}),
    ((), {"name": "a"}),
    (("a",), {"beyond": 1, "size": 0}),
)


@pytest.mark.parametrize(("values", "named"), GIVEN)
def test_construction_equals_that_of_a_dataclass(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    ours, reference = PlainRecord(*values, **named), Dataclass(*values, **named)
    assert asdict(ours) == asdict(reference)
    assert astuple(ours) == astuple(reference)
    assert repr(ours) == repr(reference).replace("Dataclass", "PlainRecord")


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), (("a", 1, [], None, 2), {}), (("a",), {"name": "b"}), (("a",), {"colour": 1}), ((), {"size": 1})],
)
@pytest.mark.parametrize("made", [PlainRecord, Dataclass])
def test_invalid_constructor_arguments_raise_type_error(
    made: Callable[..., object], values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError):
        made(*values, **named)


def test_fields_equal_those_of_a_dataclass() -> None:
    assert is_dataclass(PlainRecord)
    assert [(own.name, own.metadata) for own in fields(PlainRecord)] == [
        (own.name, own.metadata) for own in fields(Dataclass)
    ]
    assert PlainRecord.__match_args__ == Dataclass.__match_args__
    assert not hasattr(PlainRecord("a"), "__dict__")
    assert PlainRecord("a").doubled == 6
    assert [own.name for own in fields(Longer)] == ["name", "parts", "rest"]


def test_default_lists_are_not_shared() -> None:
    MutableRecord().parts.append(1)
    assert MutableRecord().parts == []


def test_equality_and_hash_follow_the_fields() -> None:
    assert PlainRecord("a") == PlainRecord("a", 3)
    assert PlainRecord("a") != PlainRecord("a", 4)
    assert PlainRecord("a") != Dataclass("a")
    assert MutableRecord("a") != Longer("a")
    assert hash(PlainRecord("a", 1, (), None)) == hash(PlainRecord("a", 1, (), None))  # type: ignore[arg-type]  # may be hashed
    with pytest.raises(TypeError):
        hash(PlainRecord("a"))  # a list cannot be
    with pytest.raises(TypeError):
        hash(MutableRecord())


def test_class_without_eq_compares_by_identity() -> None:
    one, other = Only("a"), Only("a")
    assert one != other
    assert {one: 1, other: 2}[one] == 1
    with pytest.raises(FrozenInstanceError):
        one.name = "b"  # type: ignore[misc]  # that is what is tried


def test_frozen_instance_cannot_be_changed() -> None:
    place = PlainRecord("a")
    with pytest.raises(FrozenInstanceError):
        place.name = "b"  # type: ignore[misc]  # that is what is tried
    with pytest.raises(FrozenInstanceError):
        del place.name
    assert place == PlainRecord("a")


def test_mutable_instance_can_be_changed() -> None:
    draft = Longer("a", [1])
    draft.name = "b"
    assert draft == Longer("b", [1], 0)
    with pytest.raises(AttributeError):
        draft.colour = "red"  # type: ignore[attr-defined]  # there is no room for it


@pytest.mark.parametrize("one", [PlainRecord("a", 2, ["x"]), Longer("a", [1], 2)])
def test_copies_are_equal(one: PlainRecord | Longer) -> None:
    for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one)), replace(one)):
        assert other == one
        assert other is not one
    assert replace(one, name="b").name == "b"


def test_repr_of_a_recursive_instance() -> None:
    draft = MutableRecord("a")
    draft.parts.append(draft)  # type: ignore[arg-type]  # no number
    assert repr(draft) == "MutableRecord(name='a', parts=[...])"


def test_methods_defined_by_the_class_are_kept() -> None:
    @plain(frozen=True)
    class Loud:
        a: int

        def __repr__(self) -> str:
            return "LOUD"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    assert repr(Loud(1)) == "LOUD"
    assert Loud(1) == Loud(2)
    assert hash(Loud(1)) == 7


def test_unsupported_features_are_refused_with_the_class_name() -> None:
    with pytest.raises(TypeError, match=r"Checked.__post_init__"):

        @plain()
        class Checked:
            a: int

            def __post_init__(self) -> None:
                raise AssertionError

    with pytest.raises(TypeError, match=r"NotGiven\.a"):

        @plain()
        class NotGiven:
            a: int = field(default=0, init=False)


@dataclass(frozen=True)
class StandardQuery:
    """The standard dataclass that `PlainQuery` must equal."""

    cancel: list[int] = field(default_factory=list, kw_only=True, repr=False, compare=False)


@dataclass(frozen=True)
class StandardSearch(StandardQuery):
    text: str
    size: int = field(default=2, repr=False)
    _: KW_ONLY
    note: str = ""


@plain(frozen=True)
class PlainQuery:
    cancel: list[int] = field(default_factory=list, kw_only=True, repr=False, compare=False)


@plain(frozen=True)
class PlainSearch(PlainQuery):
    text: str
    size: int = field(default=2, repr=False)
    _: KW_ONLY
    note: str = ""


@pytest.mark.parametrize("made", [StandardSearch, PlainSearch])
def test_options_of_fields_are_those_of_a_dataclass(made: Callable[..., Any]) -> None:
    one = made("a", 3, cancel=[1], note="b")
    assert (one.text, one.size, one.cancel, one.note) == ("a", 3, [1], "b")
    assert one == made("a", 3, note="b") != made("a", 3)
    assert hash(one) == hash(made("a", 3, note="b"))
    assert repr(one) == f"{made.__name__}(text='a', note='b')"
    assert replace(one, size=4).cancel == [1]
    with pytest.raises(TypeError):
        made("a", 3, "b")
    with pytest.raises(TypeError):
        made("a", text="b")
