"""Settings that several strategies share, by GenerationConfig's names; those of processors stand in their files."""

from __future__ import annotations

from core import processors
from core.parameter import Parameter
from core.processors.base import Panel
from core.processors.pipeline_stages import OPTION
from resources.language import mark

NEW_TOKENS = Parameter(
    "max_new_tokens", mark("New tokens"), "int", 120,
    mark("The most tokens to write. The run also ends when the model writes its end token."),
    minimum=1, maximum=1_000_000, soft_maximum=400, step=1,
)  # fmt: skip

MAX_TIME = Parameter(
    "max_time", mark("Time limit (s)"), "float", None,
    mark("Stop after this many seconds; the token under way is still finished."),
    minimum=0.0, maximum=86_400.0, soft_maximum=60.0, step=0.5, exclusive=True, advanced=True,
)  # fmt: skip
STOP_STRINGS = Parameter(
    "stop_strings", mark("Stop at text"), "lines", None,
    mark("Stop as soon as one of these is written, one a line."), advanced=True,
)  # fmt: skip
SEQUENCES = Parameter(
    "num_return_sequences", mark("Texts at once"), "int", 1,
    mark("How many texts to write side by side from the same prompt."),
    minimum=1, maximum=1_000_000, soft_maximum=8, step=1, advanced=True,
)  # fmt: skip
EOS = Parameter(
    "eos_token_id", mark("End tokens"), "tokens", None,
    mark("Token ids that end a text; unset, the model's own."), advanced=True,
)  # fmt: skip


STAGES = Parameter(
    OPTION, mark("Order of the stages"), "names", None,
    mark("The stages named here act in this order, in the places that they have among all. Unset, the order is that "
         "of transformers."),
    choices=tuple(processors.registry), option=True, advanced=True,
)  # fmt: skip


def _panel_parameters(panel: Panel) -> tuple[Parameter, ...]:
    """Settings of the processors that are shown there, each with what stands beside it."""
    found = sorted((p for p in processors.registry.values() if p.panel == panel), key=lambda p: p.shown)
    return tuple(one for p in found if p.parameter is not None for one in (p.parameter, *p.beside))


SAMPLING = _panel_parameters("sampling")
SAMPLING_ADVANCED = _panel_parameters("sampling_advanced")
PENALTIES = _panel_parameters("penalties")
EVERYWHERE = (*_panel_parameters("length"), MAX_TIME, STOP_STRINGS, EOS, *_panel_parameters("more"), STAGES)
"""What every strategy understands besides its own settings."""

STAGE_SETTINGS = frozenset({
    STAGES.name, *(p.name for stage in processors.registry.values() if stage.parameter for p in (stage.parameter,
    *stage.beside)),
})  # fmt: skip
"""Names of what decides how the funnel of a step looks."""

BEAMS = Parameter(
    "num_beams", mark("Beams"), "int", 4,
    mark("How many hypotheses are followed side by side. More find likelier texts and take more work."),
    minimum=1, maximum=100_000, soft_maximum=16, step=1,
)  # fmt: skip
LENGTH_PENALTY = Parameter(
    "length_penalty", mark("Length penalty"), "float", 1.0,
    mark("Finished texts are ranked by log-probability ÷ length^penalty: above 0 longer ones gain, below 0 shorter "
         "ones; 0 ranks by log-probability alone."),
    minimum=-100.0, maximum=100.0, soft_minimum=-2.0, soft_maximum=3.0, step=0.1,
)  # fmt: skip
EARLY_STOPPING = Parameter(
    "early_stopping", mark("Early stopping"), "choice", False,
    mark("True: stop once as many texts have ended as there are beams. False: stop when none better is likely. "
         "never: stop when none better is possible."),
    choices=(False, True, "never"),
)  # fmt: skip
RETURN_SEQUENCES = Parameter(
    "num_return_sequences", mark("Texts shown"), "int", 1,
    mark("How many of the best texts to return; at most as many as beams."),
    minimum=1, maximum=100_000, soft_maximum=16, step=1,
)  # fmt: skip
BEAM_SETTINGS = (BEAMS, LENGTH_PENALTY, EARLY_STOPPING, RETURN_SEQUENCES)
"""What every beam strategy understands."""
