"""Settings of llama.cpp and KoboldCpp: read and written, and everything unsupported is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decodescope import resources
from decodescope.app.storage import presets, programs

CHANGED: dict[str, Any] = {
    "temperature": 0.7, "top_k": 33, "top_p": 0.8, "min_p": 0.02, "typical_p": 0.9, "repetition_penalty": 1.2,
    "dry_multiplier": 0.8, "dry_base": 2.0, "dry_allowed_length": 3, "dry_range": 200, "xtc_probability": 0.5,
    "xtc_threshold": 0.2, "top_n_sigma": 1.5, "max_new_tokens": 77, "stop_strings": ["END"],
}  # fmt: skip
ORDER = ["dry_multiplier", "repetition_penalty", "top_k", "typical_p", "top_p", "min_p", "temperature", "top_n_sigma",
         "xtc_probability"]  # fmt: skip


def preset(tmp_path: Path, data: object) -> presets.Preset:
    path = tmp_path / "other.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return presets.load_preset(path)


def without(preset: presets.Preset) -> str:
    return " ".join(preset.unsupported)


@pytest.mark.parametrize("name", programs.WRITABLE_PROGRAMS)
def test_exported_settings_are_read_back(name: str, tmp_path: Path) -> None:
    values = {**CHANGED, "stages": ORDER}
    data, left = programs.export_settings(programs.WRITABLE_PROGRAMS[name], "sampling", values)
    assert left == ()
    read = preset(tmp_path, data)
    assert read.program == name
    assert {key: read.values[key] for key in values} == values
    assert read.unsupported == ()
    assert read.rejected == ()


@pytest.mark.parametrize("name", programs.WRITABLE_PROGRAMS)
@pytest.mark.parametrize(
    "values",
    [{"dynatemp_low": 0.5, "dynatemp_high": 1.5, "dynatemp_exponent": 2.0}, {"mirostat_tau": 3.0, "mirostat_eta": 0.2}],
    ids=["heat", "mirostat"],
)
def test_dynamic_temperature_and_mirostat_survive_round_trip(
    name: str, values: dict[str, float], tmp_path: Path
) -> None:
    data, left = programs.export_settings(programs.WRITABLE_PROGRAMS[name], "sampling", values)
    assert left == (("mirostat_tau",) if "mirostat_tau" in values else ()), "there the cut moves otherwise"
    read = preset(tmp_path, data)
    assert {key: read.values[key] for key in values} == pytest.approx(values)


@pytest.mark.parametrize(
    ("name", "written", "left"),
    [
        ("llama.cpp", {"frequency_penalty": 0.3, "presence_penalty": -0.4}, ("frequency_penalty", "presence_penalty")),
        ("KoboldCpp", {"presence_penalty": -0.4}, ("presence_penalty", "frequency_penalty")),
    ],
)
def test_exported_count_penalties_are_written_and_their_difference_is_named(
    name: str, written: dict[str, float], left: tuple[str, ...], tmp_path: Path
) -> None:
    program, values = programs.WRITABLE_PROGRAMS[name], {"frequency_penalty": 0.3, "presence_penalty": -0.4}
    data, found = programs.export_settings(program, "sampling", values)
    assert {one: data[one] for one in values if one in data} == written
    assert sorted(found) == sorted(left)
    notes = " ".join(programs.export_notes(program, values))
    assert [one for one in values if f"{one}: there it also counts the tokens of the prompt." in notes] == [*written]
    read = preset(tmp_path, data)
    assert {one: read.values[one] for one in written} == written
    off, found = programs.export_settings(program, "sampling", dict.fromkeys(values, 0.0))
    assert found == ()
    assert {off[one] for one in written} == {0.0}


def test_penalties_of_llama_cpp_keep_one_place_in_the_order(tmp_path: Path) -> None:
    file = {"samplers": ["top_k", "penalties"], "top_k": 5, "frequency_penalty": 0.5, "repeat_penalty": 1.1}
    read = preset(tmp_path, file)
    assert read.values["stages"] == ["top_k", "repetition_penalty", "frequency_penalty"]
    read = preset(tmp_path, {**file, "samplers": ["top_k"]})
    assert (read.values["frequency_penalty"], read.values["repetition_penalty"]) == (0.0, 1.0)
    split = {"top_k": 5, "repetition_penalty": 1.1, "frequency_penalty": 0.5,
             "stages": ["repetition_penalty", "top_k", "frequency_penalty"]}  # fmt: skip
    _, left = programs.export_settings(programs.WRITABLE_PROGRAMS["llama.cpp"], "sampling", split)
    assert "stages" in left


def test_default_sampler_chains_exist_as_presets() -> None:
    folder = resources.path("presets")
    llama, kobold = (presets.load_preset(folder / f"{name}.json") for name in ("Balanced", "Wide choice"))
    assert (llama.program, llama.notice) == ("llama.cpp", "")
    assert (llama.values["top_k"], llama.values["top_p"], llama.values["min_p"]) == (40, 0.95, 0.05)
    assert llama.values["stages"][-1] == "temperature"
    assert (kobold.program, kobold.notice) == ("KoboldCpp", "")
    assert (kobold.values["temperature"], kobold.values["top_k"], kobold.values["top_p"]) == (0.75, 100, 0.92)
    assert kobold.values["stages"][0] == "dry_multiplier"
    assert kobold.values["stages"][-1] == "xtc_probability"


def test_omitted_sampler_is_disabled(tmp_path: Path) -> None:
    read = preset(tmp_path, {"samplers": ["top_k", "temperature"], "top_k": 5, "top_p": 0.5, "repeat_penalty": 1.3})
    assert (read.values["top_k"], read.values["top_p"], read.values["repetition_penalty"]) == (5, 1.0, 1.0)
    assert read.values["stages"] == ["top_k", "temperature"]


def test_server_default_settings_are_read(tmp_path: Path) -> None:
    reported = {"default_generation_settings": {"params": {"temperature": 0.3, "top_k": 7, "n_predict": 12}}}
    read = preset(tmp_path, reported)
    assert (read.values["temperature"], read.values["top_k"], read.values["max_new_tokens"]) == (0.3, 7, 12)


def test_unsupported_settings_are_reported(tmp_path: Path) -> None:
    llama = {"n_predict": 5, "presence_penalty": 0.5, "mirostat": 3, "repeat_penalty": 1.1, "repeat_last_n": 64,
             "samplers": ["top_k", "infill"], "cache_prompt": True, "dry_sequence_breakers": ["."],
             "seed": 7}  # fmt: skip
    reported = without(preset(tmp_path, llama))
    for name in ("presence_penalty", "mirostat 3", "repeat_last_n", "infill", "cache_prompt", "breakers", "seed"):
        assert name in reported
    kobold = {"rep_pen": 1.0, "tfs": 0.9, "top_a": 0.2, "smoothing_factor": 0.3, "sampler_order": [6, 9], "memory": "x"}
    reported = without(preset(tmp_path, kobold))
    for name in ("tfs", "top_a", "smoothing_factor", "9", "memory"):
        assert name in reported
    read = preset(tmp_path, {"rep_pen": 1.0, "tfs": 1, "top_a": 0})
    assert read.notice == ""


@pytest.mark.parametrize("value", ["hot", True, [1], {}])
def test_non_number_value_keeps_default_and_is_reported(value: object, tmp_path: Path) -> None:
    read = preset(tmp_path, {"rep_pen": 1.0, "temperature": value})
    assert read.values["temperature"] == 0.75
    assert "temperature is not a number and was left at 0.75." in read.notice


def test_value_out_of_range_is_dropped_and_reported(tmp_path: Path) -> None:
    read = preset(tmp_path, {"rep_pen": 1.0, "top_p": 4.0})
    assert "top_p" not in read.values
    assert "top_p" in read.notice


def test_temperature_zero_is_greedy(tmp_path: Path) -> None:
    assert preset(tmp_path, {"n_predict": 9, "temperature": 0}).strategy == "greedy"
    data, _ = programs.export_settings(programs.WRITABLE_PROGRAMS["llama.cpp"], "greedy", {"max_new_tokens": 9})
    assert data["temperature"] == 0


@pytest.mark.parametrize("text", ["[]", "{", '"a"'])
def test_invalid_file_raises_preset_problem(text: str, tmp_path: Path) -> None:
    with pytest.raises(presets.PresetProblem):
        preset(tmp_path, text)


def test_export_reports_settings_unsupported_by_program() -> None:
    values = {"top_h": 0.4, "eta_cutoff": 0.01, "temperature": 0.9}
    _, left = programs.export_settings(programs.WRITABLE_PROGRAMS["KoboldCpp"], "sampling", values)
    assert set(left) == {"top_h", "eta_cutoff"}
    _, left = programs.export_settings(programs.WRITABLE_PROGRAMS["llama.cpp"], "beam_search", {"num_beams": 4})
    assert left == ("Beam search",)


def test_generation_config_is_not_attributed_to_program(tmp_path: Path) -> None:
    read = preset(tmp_path, {"do_sample": True, "typical_p": 0.5, "mirostat": 1})
    assert read.program == ""
    assert preset(tmp_path, {"temperature": 0.5, "do_sample": True}).program == ""


@pytest.mark.parametrize("name", programs.WRITABLE_PROGRAMS)
def test_order_of_two_stages_keeps_other_stages_enabled(name: str, tmp_path: Path) -> None:
    """Dragging in the funnel stores such an order; stages that are not listed keep their position."""
    values = {"temperature": 1.3, "top_p": 0.8, "min_p": 0.1, "stages": ["top_p", "temperature"]}
    data, left = programs.export_settings(programs.WRITABLE_PROGRAMS[name], "sampling", values)
    assert left == (("stages",) if name == "KoboldCpp" else ()), "there min-p goes with top-p"
    read = preset(tmp_path, data)
    assert (read.values["top_p"], read.values["min_p"], read.values["temperature"]) == (0.8, 0.1, 1.3)
    order = [stage for stage in read.values["stages"] if stage in ("top_p", "min_p", "temperature")]
    assert order[0] == "top_p"
    assert order[1:] == (["min_p", "temperature"] if name == "KoboldCpp" else ["temperature", "min_p"])


@pytest.mark.parametrize("name", programs.WRITABLE_PROGRAMS)
def test_export_reports_unsupported_stage_order(name: str) -> None:
    program = programs.WRITABLE_PROGRAMS[name]
    assert programs.export_settings(program, "sampling", {"temperature": 1.5, "top_k": 40, "top_p": 1.0})[1] == ()
    odd = {"xtc_probability": 0.5, "top_k": 40, "stages": ["xtc_probability", "top_k"]}
    assert programs.export_settings(program, "sampling", odd)[1] == (("stages",) if name == "KoboldCpp" else ())
    assert programs.export_settings(program, "sampling", {"top_k": 40, "stages": ["nonsense"]})[1] == ()


BESIDE = {"temperature": 0.7, "dynatemp_range": 0.2, "top_k": 5, "top_p": 0.5, "min_p": 0.1, "xtc_probability": 0.5,
          "dry_multiplier": 0.8, "dry_allowed_length": 3}  # fmt: skip


@pytest.mark.parametrize("mode", [1, 2])
def test_llama_cpp_mirostat_keeps_only_temperature(mode: int, tmp_path: Path) -> None:
    """common_sampler_init: with mirostat its chain is temp and mirostat, whatever `samplers` and the rest say."""
    file = {**BESIDE, "repeat_penalty": 1.3, "typical_p": 0.5, "top_n_sigma": 1.0, "mirostat": mode, "mirostat_tau": 3,
            "samplers": ["dry", "top_k"], "presence_penalty": 1}  # fmt: skip
    read = preset(tmp_path, file)
    off = {"top_k": 0, "top_p": 1.0, "xtc_probability": 0.0, "dry_multiplier": 0.0, "repetition_penalty": 1.0,
           "typical_p": 1.0, "temperature": 0.7, "mirostat_tau": 3}  # fmt: skip
    assert {name: read.values[name] for name in off} == off
    assert not {"min_p", "top_n_sigma", "dynatemp_high"} & read.values.keys()
    assert read.values["stages"] == ["temperature", "mirostat_tau"]
    assert "llama.cpp always ignores penalties, DRY, XTC" in without(read)
    assert "among the remaining tokens" in without(read)
    assert ("mirostat 1" in without(read)) == (mode == 1)
    assert "presence_penalty" not in without(read), "it does nothing there either"


def test_koboldcpp_mirostat_keeps_only_dry_penalty_and_temperature(tmp_path: Path) -> None:
    """SampleLogits: DRY first, then the penalty, the temperature and mirostat, whatever `sampler_order` says."""
    file = {**BESIDE, "rep_pen": 1.3, "rep_pen_range": 10**6, "typical": 0.5, "nsigma": 1.0, "tfs": 0.5, "mirostat": 2,
            "sampler_order": [5, 0, 6]}  # fmt: skip
    read = preset(tmp_path, file)
    stored = {"top_k": 0, "top_p": 1.0, "xtc_probability": 0.0, "typical_p": 1.0, "dry_multiplier": 0.8,
            "dry_allowed_length": 3, "repetition_penalty": 1.3, "temperature": 0.7}  # fmt: skip
    assert {name: read.values[name] for name in stored} == stored
    assert not {"min_p", "top_n_sigma", "dynatemp_high"} & read.values.keys()
    order = [name for name in read.values["stages"] if name not in ("top_n_sigma", "xtc_probability")]
    assert order == ["dry_multiplier", "repetition_penalty", "temperature", "mirostat_tau"]
    assert "KoboldCpp always ignores XTC" in without(read)


@pytest.mark.parametrize("name", programs.WRITABLE_PROGRAMS)
def test_export_with_mirostat_reports_ignored_settings(name: str) -> None:
    values = {"mirostat_tau": 2.0, "top_k": 40, "dry_multiplier": 0.8, "dry_base": 2.0, "repetition_penalty": 1.2,
              "dynatemp_low": 0.5, "dynatemp_high": 1.5, "xtc_threshold": 0.3}  # fmt: skip
    _, left = programs.export_settings(programs.WRITABLE_PROGRAMS[name], "sampling", values)
    own = {"stages"} if name == "KoboldCpp" else {"dry_multiplier", "dry_base", "repetition_penalty"}
    assert set(left) == {"mirostat_tau", "top_k", "dynatemp_high"} | own, "KoboldCpp has DRY first"
    reported = " ".join(programs.export_notes(programs.WRITABLE_PROGRAMS[name], values))
    assert f"{name} always ignores" in reported
    assert programs.export_notes(programs.WRITABLE_PROGRAMS[name], {"top_k": 40}) == ()


@pytest.mark.parametrize("value", [5, [[1]], [{}], {"a": 1}, 10**400, [None], "top_k;;x", True])
@pytest.mark.parametrize(
    "name", ["samplers", "sampler_order", "dry_sequence_breakers", "stop", "stop_sequence", "temperature", "n_predict"]
)
def test_value_of_wrong_type_does_not_stop_reading(name: str, value: object, tmp_path: Path) -> None:
    for own in ("repeat_penalty", "rep_pen"):
        assert preset(tmp_path, {own: 1.0, name: value}).program
