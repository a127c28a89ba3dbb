"""How many tokens the shortest text of a grammar takes, at least: found from what every one of its texts contains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

from core.grammar.grammar_setting import kind_of, schema_of
from core.grammar.lark_length import shortest_of_lark
from core.grammar.length_bounds import LENGTHS, BoundMeasures, LowerBound
from core.grammar.regex_length import least_match
from core.grammar.schema_length import shortest_of_schema
from core.grammar.token_coverage import Covering

_KEY = "covering"


def least_tokens(
    value: Mapping[str, Any], vocabulary: Sequence[bytes | None], limit: int,
    remembered: MutableMapping[str, object] | None = None,
) -> int | None:  # fmt: skip
    """Fewest tokens that any text of the grammar can have, or less; 0 where `limit` tokens are surely enough, None
    where there is no text at all.

    A lower bound: texts of so many tokens need not exist. `remembered` keeps what is found out about the vocabulary,
    which takes long where it is large.
    """
    kind, covering = kind_of(value), partial(_covering, vocabulary, {} if remembered is None else remembered)
    if kind == "choice":
        words = [word.encode() for word in value[kind]]
        if min(map(len, words)) <= limit:
            return 0
        return min(map(covering().of, words))
    if kind == "lark":
        return _of_parts(partial(shortest_of_lark, value[kind]), covering, limit)
    if kind == "regex":
        return _of_parts(partial(least_match, value[kind]), covering, limit)
    return _of_parts(partial(shortest_of_schema, schema_of(value[kind])), covering, limit)


def _covering(vocabulary: Sequence[bytes | None], remembered: MutableMapping[str, object]) -> Covering:
    known = remembered.get(_KEY)
    if not isinstance(known, Covering):
        remembered[_KEY] = known = Covering(vocabulary)
    return known


def _of_parts(shortest: Callable[[BoundMeasures], LowerBound], asked: Callable[[], Covering], limit: int) -> int | None:
    """The bytes alone come first: what tokens cover takes long to find out, and is rarely asked."""
    found = shortest(LENGTHS)
    if found.bytes <= limit:
        return 0
    if math.isinf(found.bytes):
        return None
    covering = asked()
    found = shortest(BoundMeasures(
        lambda part: LowerBound(len(part), covering.over(part) - 1),
        lambda count, letters: LowerBound(count, max(covering.of_letters(count, letters) - 1, 0)),
    ))  # fmt: skip
    return max(1 + int(found.seams), covering.of_any(int(found.bytes)))
