"""Valid, plausible and invalid values of settings and files."""

from __future__ import annotations

from hypothesis import strategies as st

ODD = (
    None, True, False, 0, 1, 2, 3, 5, -1, -2, 7.5, 0.0, 0.5, -0.5, 1e-9, 1e308, float("nan"), float("inf"),
    2**31, 2**63, 10**30, -(10**30), "", "x", "5", "auto", "null", "\ud800", "a\0b", "x" * 500, b"x",
    [], {}, [0], [-1], [5], [2**63], ["x"], [None], [[5]], [[]], [[5, 6], [7]], [[0.5]], {"x": 1}, {"5": 0.5},
    [5, "x"], [[["x"]]],
)  # fmt: skip
"""Of every type, at every edge."""
JSON_ODD = tuple(value for value in ODD if not isinstance(value, bytes))

odd = st.sampled_from(ODD)
json_odd = st.one_of(st.sampled_from(JSON_ODD), st.integers(-10, 3000), st.text(max_size=8))
numbers = st.one_of(st.integers(0, 8), st.floats(0, 3), st.sampled_from((1, 2, 3, 0.5, 0.9, 1.2)))
