"""A model without its weights: its configuration, its tokenizer and its shape, to reckon with before it is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

from core.models import catalog
from core.models.devices import choose_device, choose_dtype
from core.models.loading import check_code, load_tokenizer
from core.models.model import LoadedModel


class Blueprint(LoadedModel):
    """Takes no memory to speak of and cannot be run; `device` is where the model would be."""

    planned = torch.device("cpu")

    @property
    def device(self) -> torch.device:
        """Where the weights would be."""
        return self.planned


def blueprint(
    name: str | Path, *, device: str = "auto", dtype: str = "auto", allow_remote_code: bool = False
) -> Blueprint:
    """What `core.load` of the same arguments would give, as a module on torch's meta device.

    Raises ModelError subclasses, DeviceError or ParameterError.
    """
    path = catalog.locate(str(name))
    check_code(catalog.read_config(path), path, allow_remote_code)
    where = choose_device(device)
    config = AutoConfig.from_pretrained(path, trust_remote_code=allow_remote_code, local_files_only=True)
    auto: Any = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    with torch.device("meta"):
        network = auto.from_config(config, dtype=choose_dtype(dtype, where, path), trust_remote_code=allow_remote_code)
    model = Blueprint(network, load_tokenizer(path, allow_remote_code), catalog.display_name(str(name), path), path)
    model.planned = where
    return model
