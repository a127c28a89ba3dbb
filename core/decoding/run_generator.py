"""The random generator of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from decodescope.core.common.generator_state import decode_state
from decodescope.core.errors import ParameterError
from decodescope.core.models.model_files import readable_reason
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.request import Request


def make_generator(request: Request, device: torch.device) -> torch.Generator:
    """Return the random generator of a run, in the state that the request gives. Raises ParameterError."""
    generator = torch.Generator(device).manual_seed(request.seed)
    if request.generator_state:
        try:
            state = torch.frombuffer(bytearray(decode_state(request.generator_state)), dtype=torch.uint8)
            generator.set_state(state)
        except (ValueError, RuntimeError, TypeError) as error:
            raise ParameterError(
                tr("The state of the random generator is not one of {device}: {error}").format(
                    device=device.type, error=readable_reason(error)
                ),
                tr("Run the request on the kind of device on which it was captured, or set a seed instead."),
                "generator_state",
            ) from None
    return generator
