"""Settings shared by several strategies, by GenerationConfig's names; processor settings are defined with the
processors.
"""

from __future__ import annotations

from decodescope.core import processors
from decodescope.core.parameter import LENGTH, OTHER, RANDOMNESS, STOPPING, Parameter
from decodescope.core.processors.base import Panel
from decodescope.core.processors.pipeline_stages import OPTION
from decodescope.resources.language import mark

NEW_TOKENS = Parameter(
    "max_new_tokens", mark("New tokens"), "int", 120,
    mark("Maximum number of tokens to generate. Generation also stops at the model's end token."),
    minimum=1, maximum=1_000_000, soft_maximum=400, step=1, group=LENGTH,
)  # fmt: skip

MAX_TIME = Parameter(
    "max_time", mark("Time limit (s)"), "float", None,
    mark("Stop after this many seconds; the current token is still finished."),
    minimum=0.0, maximum=86_400.0, soft_maximum=60.0, step=0.5, exclusive=True, advanced=True, group=STOPPING,
)  # fmt: skip
STOP_STRINGS = Parameter(
    "stop_strings", mark("Stop at text"), "lines", None,
    mark("Stop as soon as one of these strings is written; one per line."), advanced=True, group=STOPPING,
)  # fmt: skip
SEQUENCES = Parameter(
    "num_return_sequences", mark("Number of sequences"), "int", 1,
    mark("How many sequences to generate from the same prompt at the same time."),
    minimum=1, maximum=1_000_000, soft_maximum=8, step=1, advanced=True, group=LENGTH,
)  # fmt: skip
KEYED_NOISE = Parameter(
    "keyed_noise", mark("Keyed noise"), "bool", False,
    mark("Draw with random numbers that depend only on seed, position and token, so that runs with other "
        "settings can be compared token by token. The probabilities are the same."),
    option=True, advanced=True, group=RANDOMNESS,
)  # fmt: skip
EOS = Parameter(
    "eos_token_id", mark("End tokens"), "tokens", None,
    mark("Ids of the tokens that end a text; by default the model's own."), advanced=True, group=STOPPING,
)  # fmt: skip


STAGES = Parameter(
    OPTION, mark("Stage order"), "names", None,
    mark("The stages named here are applied in this order, in the positions they have among all stages. By "
        "default the order is that of transformers."),
    choices=tuple(processors.registry), option=True, advanced=True, group=OTHER,
)  # fmt: skip


def _panel_parameters(panel: Panel) -> tuple[Parameter, ...]:
    """Return the settings of the processors shown in a panel, each followed by its related settings."""
    found = sorted((p for p in processors.registry.values() if p.panel == panel), key=lambda p: p.shown)
    return tuple(one for p in found if p.parameter is not None for one in (p.parameter, *p.extra_parameters))


SAMPLING = _panel_parameters("sampling")
SAMPLING_ADVANCED = _panel_parameters("sampling_advanced")
PENALTIES = _panel_parameters("penalties")
EVERYWHERE = (*_panel_parameters("length"), MAX_TIME, STOP_STRINGS, EOS, *_panel_parameters("more"), STAGES)
"""Settings that every strategy supports besides its own."""

COMMON_SETTINGS = frozenset(one.name for one in (NEW_TOKENS, MAX_TIME, STOP_STRINGS, EOS, STAGES))
"""Names of the settings of all strategies that belong to no processor."""

STAGE_SETTINGS = frozenset({
    STAGES.name, *(p.name for stage in processors.registry.values() if stage.parameter for p in (stage.parameter,
    *stage.extra_parameters)),
})  # fmt: skip
"""Names of the settings that determine a step's pipeline."""

BEAMS = Parameter(
    "num_beams", mark("Beams"), "int", 4,
    mark("Number of beams followed at the same time. More beams find likelier texts but take more time."),
    minimum=1, maximum=100_000, soft_maximum=16, step=1,
)  # fmt: skip
LENGTH_PENALTY = Parameter(
    "length_penalty", mark("Length penalty"), "float", 1.0,
    mark("Finished texts are ranked by log-probability ÷ length^penalty: values above 0 favour longer "
        "texts, below 0 shorter ones; 0 ranks by log-probability alone."),
    minimum=-100.0, maximum=100.0, soft_minimum=-2.0, soft_maximum=3.0, step=0.1,
)  # fmt: skip
EARLY_STOPPING = Parameter(
    "early_stopping", mark("Early stopping"), "choice", False,
    mark("True: stop once as many texts have ended as there are beams. False: stop when a better one is "
        "unlikely. never: stop when a better one is impossible."),
    choices=(False, True, "never"),
)  # fmt: skip
RETURN_SEQUENCES = Parameter(
    "num_return_sequences", mark("Sequences shown"), "int", 1,
    mark("How many of the best sequences to return; at most the number of beams."),
    minimum=1, maximum=100_000, soft_maximum=16, step=1, group=LENGTH,
)  # fmt: skip
BEAM_SETTINGS = (BEAMS, LENGTH_PENALTY, EARLY_STOPPING, RETURN_SEQUENCES)
"""Settings that every beam strategy supports."""
