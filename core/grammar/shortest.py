"""How many tokens the shortest text of a grammar takes, at least: found from what every one of its texts contains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from core.grammar.covering import Covering
from core.grammar.lark_length import shortest_of_lark
from core.grammar.least import LENGTHS, Least, Measures
from core.grammar.schema_length import shortest_of_schema
from core.grammar.setting import kind_of, schema_of
from core.grammar.width import least_match


def least_tokens(value: Mapping[str, Any], vocabulary: Sequence[bytes | None], limit: int) -> int | None:
    """Fewest tokens that any text of the grammar can have, or less; 0 where `limit` tokens are surely enough, None
    where there is no text at all.

    A lower bound: texts of so many tokens need not exist.
    """
    kind = kind_of(value)
    if kind == "choice":
        words = [word.encode() for word in value[kind]]
        if min(map(len, words)) <= limit:
            return 0
        covering = Covering(vocabulary)
        return min(map(covering.of, words))
    if kind == "lark":
        return _of_parts(partial(shortest_of_lark, value[kind]), vocabulary, limit)
    if kind == "regex":
        return _of_parts(partial(least_match, value[kind]), vocabulary, limit)
    return _of_parts(partial(shortest_of_schema, schema_of(value[kind])), vocabulary, limit)


def _of_parts(shortest: Callable[[Measures], Least], vocabulary: Sequence[bytes | None], limit: int) -> int | None:
    """The bytes alone come first: what tokens cover takes long to find out, and is rarely asked."""
    found = shortest(LENGTHS)
    if found.bytes <= limit:
        return 0
    if math.isinf(found.bytes):
        return None
    covering = Covering(vocabulary)
    found = shortest(Measures(
        lambda part: Least(len(part), covering.over(part) - 1),
        lambda count, letters: Least(count, max(covering.of_letters(count, letters) - 1, 0)),
    ))  # fmt: skip
    return max(1 + int(found.seams), covering.of_any(int(found.bytes)))
