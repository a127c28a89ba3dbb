"""Plots without a picture: the shape as a sentence, ticks, tables, and the visible part."""

from __future__ import annotations

import pytest

from decodescope.app.widgets.plots import BYTES, PlotArea, PlotAxis, PlotBars, PlotLine, PlotSpec
from decodescope.app.widgets.plots.plot_axes import round_step, tick_text, tick_values
from decodescope.app.widgets.plots.plot_descriptions import describe_plot, describe_position, plot_table
from decodescope.core import words

WRITTEN, HELD = PlotAxis("generated tokens", integers_only=True), PlotAxis("bytes in the cache", words.size, BYTES)


def window() -> PlotSpec:
    """A cache that fills up to 64 tokens, in two parts, below one that keeps everything."""
    xs = tuple(float(x) for x in range(0, 201, 8))
    values = tuple(min(x, 64) * 1024.0 for x in xs)
    areas = (PlotArea("keys", "kept", values), PlotArea("values", "finished", values))
    return PlotSpec(WRITTEN, HELD, xs, areas, (PlotLine("dynamic cache", "faint", ((0.0, 0.0), (200.0, 409600.0))),))


def test_curve_is_described_in_sentences() -> None:
    assert describe_plot(window()) == (
        "Total rises from 0 B at 0 to 128 KiB at 64 and stays there to 200. "
        "Dynamic cache rises from 0 B at 0 to 400 KiB at 200."
    )


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (((0.0, 5.0), (9.0, 5.0)), "Surprise stays at 5."),
        (((0.0, 5.0), (9.0, 2.0)), "Surprise falls from 5 at 0 to 2 at 9."),
        (((0.0, 5.0), (4.0, 1.0), (9.0, 6.0)), "Surprise goes from 5 at 0 to 6 at 9; lowest 1 at 4, highest 6 at 9."),
    ],
)
def test_curve_shape_is_described_in_words(points: tuple[tuple[float, float], ...], told: str) -> None:
    assert describe_plot(PlotSpec(lines=(PlotLine("surprise", "accent", points),))) == told


def test_bars_are_described_by_name() -> None:
    names = PlotAxis("cache", labels=("Dynamic", "Static", "Sink"))
    few = PlotSpec(PlotAxis("speed"), names, bars=(PlotBars("", "accent", (3.0, 1.0, 2.0)),), is_horizontal=True)
    assert describe_plot(few) == "Dynamic: 3, Static: 1, Sink: 2."
    layers = PlotAxis("layer", labels=tuple(str(n) for n in range(1, 13)))
    assert (
        describe_plot(PlotSpec(layers, HELD, bars=(PlotBars("", "accent", (2048.0,) * 12),)))
        == "12 bars of 2.0 KiB each."
    )
    assert "lowest layer 1 with 1, highest layer 12 with 12" in describe_plot(
        PlotSpec(layers, bars=(PlotBars("", "accent", tuple(map(float, range(1, 13)))),))
    )
    assert describe_position(few, 2) == "Sink: 2"
    assert describe_plot(PlotSpec()) == "Nothing to show yet."


def test_describe_position_lists_all_values() -> None:
    assert describe_position(window(), 32).split("\n") == ["32 generated tokens", "keys 32.0 KiB", "values 64.0 KiB",
                                            "dynamic cache 64.0 KiB"]  # fmt: skip


def test_a_table_has_every_value() -> None:
    rows = plot_table(window())
    assert rows[0] == ["generated tokens", "keys", "values", "dynamic cache"]
    assert rows[2] == [8.0, 8192.0, 8192.0, pytest.approx(16384.0)]
    assert len(rows) == 27


def test_between_clips_plot_to_visible_range() -> None:
    part = window().between(60.0, 100.0)
    assert (part.xs[0], part.xs[-1]) == (60.0, 100.0)
    assert part.areas[0].values[0] == 60 * 1024.0
    assert part.lines[0].points == ((60.0, pytest.approx(122880.0)), (100.0, pytest.approx(204800.0)))
    assert part.height == window().height, "the scale stays"


def test_tick_values_are_round_in_their_unit() -> None:
    top = 400 * 1024.0
    values = tick_values(HELD, 0.0, top, top, 6)
    assert [tick_text(HELD, value, top) for value in values] == ["0", "100", "200", "300", "400"]
    assert tick_values(WRITTEN, 7.0, 12.0, 100.0, 8) == [7, 8, 9, 10, 11, 12]
    assert tick_text(WRITTEN, 1200.0, 2000.0) == "1,200"
    names = PlotAxis(labels=tuple("abcdefgh"))
    assert [tick_text(names, value, 8.0) for value in tick_values(names, -0.5, 7.5, 8.0, 4)] == ["a", "c", "e", "g"]


@pytest.mark.parametrize(("span", "most", "step"), [(10, 5, 2), (1, 4, 0.5), (7, 8, 1), (0.9, 9, 0.1), (400, 8, 50)])
def test_round_step_has_few_digits(span: float, most: int, step: float) -> None:
    assert round_step(span, most) == pytest.approx(step)
