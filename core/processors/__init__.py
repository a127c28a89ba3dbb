"""All processors between a model's scores and the choice; `registry` finds them, one per file, in pipeline order.

Importing this package does not import torch.
"""

from decodescope.core.processors.base import Context, Processor
from decodescope.core.registry import Registry

registry: Registry[Processor] = Registry(__name__, "PROCESSOR")

__all__ = ["Context", "Processor", "registry"]
