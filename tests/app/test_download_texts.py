"""Texts about a Hub model before it is downloaded."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decodescope.app.features.downloads.panel import model_page
from decodescope.core.catalog import HubModel

FOUND = HubModel("a/b", "0" * 40, "", 1, "Llama", 1, False, False, (), (), False, judged=True, needed=2**30, free=2**31)


@pytest.mark.parametrize(
    ("fits", "fits_as", "told"),
    [
        (True, "", "Fits: 1.0 GiB of 2.0 GiB free"),
        (False, "bfloat16", "Fits with 16-bit weights: 1.0 GiB of 2.0 GiB free"),
        (False, "int8", "Fits with 8-bit weights: 1.0 GiB of 2.0 GiB free"),
        (False, "int4", "Fits with 4-bit weights: 1.0 GiB of 2.0 GiB free"),
        (False, "", "Does not fit: 1.0 GiB of 2.0 GiB free"),
    ],
)
def test_fit_text_names_weights_in_which_model_fits(fits: bool, fits_as: str, told: str) -> None:
    found = replace(FOUND, fits=fits, fits_as=fits_as, figures="needs 1.0 GiB of 2.0 GiB free")
    assert model_page.short_fit_text(found) == told
    assert ("Weights…" in model_page.fit_text(found)) == bool(fits_as)
