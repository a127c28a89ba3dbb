"""The training events as curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from decodescope.app.widgets.plots import PlotAxis, PlotDots, PlotLine, PlotSpec
from decodescope.core import labs, words
from decodescope.resources.language import tr

Points = tuple[tuple[float, float], ...]


def format_nats(value: float) -> str:
    """Format nats: `1.25 nats`."""
    return tr("{value:.3g} nats").format(value=value)


def format_deviations(value: float) -> str:
    """Format standard deviations: `+1.25 SD`."""
    return tr("{value:+.2f} SD").format(value=value)


def training_curve(
    name: str, colour: str, points: Points, format_value: Callable[[float], str], total: int, dots: Points = ()
) -> PlotSpec:
    """Return one line over the training steps, with optional single values as dots."""
    if not points and not dots:
        return PlotSpec()
    lines = (PlotLine(name, colour, points),) if points else ()
    more = (PlotDots(tr("held-out"), "finished", dots),) if dots else ()
    return PlotSpec(
        PlotAxis(tr("steps"), integers_only=True),
        PlotAxis(format_value=format_value),
        lines=lines,
        dots=more,
        right=float(max(total, 1)),
    )


def sft_plot(events: Sequence[object]) -> PlotSpec:
    """Return the training and held-out loss."""
    steps = [one for one in events if isinstance(one, labs.preference.SftStep)]
    checks = [one for one in events if isinstance(one, labs.preference.SftChecked)]
    total = max((one.total for one in checks), default=0)
    losses = tuple((float(one.step), one.loss) for one in steps)
    return training_curve(
        tr("loss"), "accent", losses, format_nats, total, tuple((float(one.step), one.loss) for one in checks)
    )


def reward_plots(events: Sequence[object]) -> tuple[PlotSpec, PlotSpec]:
    """Return the training and held-out loss, and the accuracy on held-out pairs."""
    steps = [one for one in events if isinstance(one, labs.preference.RewardStep)]
    checks = [one for one in events if isinstance(one, labs.preference.RewardChecked)]
    total = max((one.total for one in steps), default=0)
    losses = tuple((float(one.step), one.loss) for one in steps)
    accuracies = tuple((float(one.step), one.accuracy) for one in checks)
    loss = training_curve(
        tr("loss"), "accent", losses, format_nats, total, tuple((float(one.step), one.loss) for one in checks)
    )
    return loss, training_curve(tr("accuracy"), "finished", accuracies, words.whole_percent, total)


def ppo_plots(events: Sequence[object]) -> tuple[PlotSpec, PlotSpec, PlotSpec, PlotSpec]:
    """Return the curves of reward, KL, entropy and value loss."""
    steps = [one for one in events if isinstance(one, labs.preference.PpoStep)]
    total = max((one.total for one in steps), default=0)

    def of(
        name: str, colour: str, format_value: Callable[[float], str], value: Callable[[labs.preference.PpoStep], float]
    ) -> PlotSpec:
        return training_curve(name, colour, tuple((float(one.step), value(one)) for one in steps), format_value, total)

    return (
        of(tr("reward"), "finished", format_deviations, lambda one: one.gain),
        of(tr("KL"), "refused", format_nats, lambda one: one.kl),
        of(tr("entropy"), "kept", format_nats, lambda one: one.entropy),
        of(tr("value loss"), "accent", lambda value: f"{value:.3g}", lambda one: one.value_loss),
    )


def best_of_plot(events: Sequence[object]) -> PlotSpec:
    """Return the KL of best-of-n, measured and as its upper bound."""
    results = [one for one in events if isinstance(one, labs.preference.BestOf)]
    if not results:
        return PlotSpec()
    bound = PlotLine(tr("bound"), "muted", tuple((float(one.n), one.bound) for one in results), (4.0, 3.0))
    measured = PlotLine(tr("as measured"), "refused", tuple((float(one.n), one.kl) for one in results))
    return PlotSpec(PlotAxis("n", integers_only=True), PlotAxis(format_value=format_nats), lines=(bound, measured))
