"""How many tokens the shortest text of a grammar takes, at least: found from what every one of its texts contains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial
from typing import Any

from core.grammar.grammar_setting import kind_of, schema_of
from core.grammar.lark_length import lark_lower_bound
from core.grammar.length_bounds import BYTE_MEASURES, BoundMeasures, LowerBound
from core.grammar.regex_length import regex_lower_bound
from core.grammar.schema_length import schema_lower_bound
from core.grammar.token_coverage import TokenCoverage

_KEY = "covering"


def min_tokens(
    value: Mapping[str, Any], vocabulary: Sequence[bytes | None], limit: int,
    remembered: MutableMapping[str, object] | None = None,
) -> int | None:  # fmt: skip
    """Fewest tokens that any text of the grammar can have, or less; 0 where `limit` tokens are surely enough, None
    where there is no text at all.

    A lower bound: texts of so many tokens need not exist. `remembered` keeps what is found out about the vocabulary,
    which takes long where it is large.
    """
    kind, covering = kind_of(value), partial(_cached_coverage, vocabulary, {} if remembered is None else remembered)
    if kind == "choice":
        words = [word.encode() for word in value[kind]]
        if min(map(len, words)) <= limit:
            return 0
        return min(map(covering().min_spelling, words))
    if kind == "lark":
        return _bound_from_parts(partial(lark_lower_bound, value[kind]), covering, limit)
    if kind == "regex":
        return _bound_from_parts(partial(regex_lower_bound, value[kind]), covering, limit)
    return _bound_from_parts(partial(schema_lower_bound, schema_of(value[kind])), covering, limit)


def _cached_coverage(vocabulary: Sequence[bytes | None], remembered: MutableMapping[str, object]) -> TokenCoverage:
    known = remembered.get(_KEY)
    if not isinstance(known, TokenCoverage):
        remembered[_KEY] = known = TokenCoverage(vocabulary)
    return known


def _bound_from_parts(
    shortest: Callable[[BoundMeasures], LowerBound], get_coverage: Callable[[], TokenCoverage], limit: int
) -> int | None:
    """The bytes alone come first: what tokens cover takes long to find out, and is rarely asked."""
    found = shortest(BYTE_MEASURES)
    if found.bytes <= limit:
        return 0
    if math.isinf(found.bytes):
        return None
    covering = get_coverage()
    found = shortest(BoundMeasures(
        lambda part: LowerBound(len(part), covering.min_covering(part) - 1),
        lambda count, letters: LowerBound(count, max(covering.min_for_letters(count, letters) - 1, 0)),
    ))  # fmt: skip
    return max(1 + int(found.inner_tokens), covering.min_for_any(int(found.bytes)))
