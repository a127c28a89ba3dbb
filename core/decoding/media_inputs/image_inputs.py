"""Image inputs of a vision encoder or prefix: pixel values, and the positions of patches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any, TypeGuard

import torch

from decodescope.core import media
from decodescope.core.decoding.media_inputs.media_inputs import MediaInputs
from decodescope.core.decoding.prompt import default_template, encode, fill_chat_template
from decodescope.core.errors import MediaRefusedError, PromptError
from decodescope.core.events import MediumPlace, MediumRead
from decodescope.core.media import MediaFile
from decodescope.core.models.chat_templates import render_chat, requires_parts
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.models.model_files import is_library_failure
from decodescope.core.models.text_decoder import media_input_of, position_function
from decodescope.resources.language import join_names, tr


def prepare_image(model: LoadedModel, files: Sequence[MediaFile]) -> MediaInputs:
    """Prepare the one image of a model that takes pixel values. Raises MediaError."""
    file = files[0]
    pixels = _pixel_values(model, file)
    place: MediumPlace = "before" if media_input_of(model.model, model.modalities) == "before" else "encoder"
    perceived = MediaInputs(model, (), (file,), {"pixel_values": pixels})
    rows, columns, count = _patch_grid(perceived, place)
    perceived.media = (
        MediumRead(str(file.path), "picture", file.digest, place, 0, count - 1, rows, columns, file.width, file.height),
    )
    perceived.leading_positions = count if place == "before" else 0
    return perceived


def _pixel_values(model: LoadedModel, file: MediaFile) -> torch.Tensor:
    processor: Any = getattr(model.processor, "image_processor", model.processor)
    try:
        pixels: torch.Tensor = processor(media.picture(file.path), return_tensors="pt")["pixel_values"]
    except (ValueError, TypeError, KeyError) as error:  # image processors fail on unusual sizes, such as one pixel wide
        raise MediaRefusedError(
            tr("{model} cannot process {file}: {error}").format(model=model.name, file=file.path.name, error=error),
            tr("Choose another image."),
        ) from error
    return pixels.to(model.device, model.dtype)


def _patch_grid(media_inputs: MediaInputs, medium_place: MediumPlace) -> tuple[int, int, int]:
    """Return rows and columns of patches and the number of positions, which may include a leading summary token."""
    config = media_inputs.model.model.config
    vision = config.vision_config if medium_place == "before" else media_inputs.model.model.get_encoder().config
    height, width = media_inputs.inputs["pixel_values"].shape[-2:]
    patch = getattr(vision, "patch_size", None)
    rows, columns = (height // patch, width // patch) if isinstance(patch, int) and patch else (0, 0)
    if medium_place == "before":
        return rows, columns, rows * columns + 1
    with torch.inference_mode():
        count = int(media_inputs.states["last_hidden_state"].shape[1])
    return (rows, columns, count) if rows * columns <= count else (0, 0, count)


_NON_IMAGE_OUTPUTS = frozenset({"input_ids", "attention_mask", "labels"})
"""Processor outputs that are not image inputs; PaliGemma's processor also returns training labels."""
_PREFIX_FAMILIES = frozenset({"paligemma"})
"""Families with bidirectional attention on the prompt, whose positions start at 1."""
_DELIMITER_PREFIXES = ("vision", "image")
"""Prefixes of the `_start_token_id` and `_end_token_id` fields that name the tokens around an image (Qwen, GLM)."""


def insert_images(model: LoadedModel, prompt: object, files: Sequence[MediaFile]) -> tuple[list[int], MediaInputs]:
    """Return the prompt's ids with image tokens, and the inputs of the first pass.

    Images come before a text or at its placeholders; in a chat before its first question. Ids may include image tokens
    already. Raises PromptError, MediaError.
    """
    pictures = [media.picture(file.path) for file in files]
    read = _run_processor(model, _text_with_placeholders(model, prompt, len(files)), pictures, files)
    ids = [int(token) for token in read["input_ids"][0].tolist()]
    counts = _image_token_counts(model, ids, pictures, files)
    if not isinstance(prompt, str) and not _is_chat(prompt):
        ids = _checked_ids(model, prompt, sum(counts))
    inputs = {
        name: _to_device(model, value) for name, value in read.items()
        if name not in _NON_IMAGE_OUTPUTS and name in model.forward_parameters and isinstance(value, torch.Tensor)
    }  # fmt: skip
    perceived = MediaInputs(model, _media_read(model, ids, counts, files, read), tuple(files), inputs)
    perceived.prompt_length = len(ids)
    perceived.image_indices = tuple(place for place, token in enumerate(ids) if token == _image_token(model))
    perceived.position_shift = _position_ids(perceived, torch.tensor([ids], device=model.device))[1]
    return ids, perceived


def _to_device(model: LoadedModel, value: torch.Tensor) -> torch.Tensor:
    return value.to(model.device, model.dtype) if value.is_floating_point() else value.to(model.device)


def _image_token(model: LoadedModel) -> int:
    """Return the image placeholder token."""
    config = model.model.config
    names = ("image_token_id", "image_token_index")
    found = next((value for name in names if isinstance(value := getattr(config, name, None), int)), None)
    if found is None:
        raise MediaRefusedError(
            tr("{model} does not define an image token.").format(model=model.name),
            tr("Copy or download config.json again."),
        )
    return found


def _image_placeholder(model: LoadedModel) -> str:
    """Return the text placeholder of one image."""
    processor = model.processor
    mark = getattr(processor, "boi_token", None) or getattr(processor, "image_token", None)
    mark = str(mark or model.tokenizer.convert_ids_to_tokens(_image_token(model)))
    return mark.join(_image_delimiters(model))


def _image_delimiters(model: LoadedModel) -> tuple[str, str]:
    """Return the tokens before and after an image, if the configuration names them."""
    config = model.model.config
    for name in _DELIMITER_PREFIXES:
        first, last = (getattr(config, f"{name}_{side}_token_id", None) for side in ("start", "end"))
        if isinstance(first, int) and isinstance(last, int):
            return model.tokenizer.convert_ids_to_tokens(first), model.tokenizer.convert_ids_to_tokens(last)
    return "", ""


def _is_chat(prompt: object) -> TypeGuard[Sequence[Mapping[str, str]]]:
    return isinstance(prompt, Sequence) and bool(prompt) and all(isinstance(item, Mapping) for item in prompt)


def _text_with_placeholders(model: LoadedModel, prompt: object, count: int) -> str:
    """Return the prompt's text with a placeholder for each image."""
    mark = _image_placeholder(model)
    if _is_chat(prompt):
        return _render_chat_with_images(model, prompt, count)
    text = prompt if isinstance(prompt, str) else ""
    before, after = _image_delimiters(model)
    bare = mark.removeprefix(before).removesuffix(after)
    return text if bare and bare in text else f"{mark * count}{text}"


def _render_chat_with_images(model: LoadedModel, messages: Sequence[Mapping[str, str]], count: int) -> str:
    """Render a chat with images before the text of the first question. Raises PromptError."""
    template = getattr(model.processor, "chat_template", None) or getattr(model.tokenizer, "chat_template", None)
    if not template:
        raise PromptError(
            tr("{model} has no chat template, so a chat cannot be converted to tokens.").format(model=model.name),
            tr("Write the prompt as plain text, or choose a chat model."),
        )
    template = default_template(model.name, template)
    first = next((place for place, one in enumerate(messages) if one.get("role") == "user"), 0)
    return fill_chat_template(model.name, lambda: _render_messages(model, template, messages, first, count))


def _render_messages(
    model: LoadedModel, template: str, messages: Sequence[Mapping[str, str]], first: int, count: int
) -> str:
    """Render a chat with `count` images before the text of message number `first`."""
    shown: list[dict[str, object]] = []
    special = model.tokenizer.special_tokens_map
    has_parts = requires_parts(template, special)
    for place, one in enumerate(messages):
        marks = count if place == first else 0
        if not marks:
            shown.append(dict(one))
        elif has_parts:
            parts = [{"type": "image"}] * marks
            shown.append({"role": one.get("role"), "content": [*parts, {"type": "text", "text": one.get("content")}]})
        else:  # text-only template: placeholders are part of the text
            shown.append(
                {"role": one.get("role"), "content": f"{_image_placeholder(model) * marks}{one.get('content')}"}
            )
    return render_chat(template, shown, special)


def _run_processor(model: LoadedModel, text: str, pictures: Sequence[object], files: Sequence[MediaFile]) -> Any:
    """Run the model's processor on text and images. Raises MediaRefusedError."""
    begin = getattr(model.tokenizer, "bos_token", None)
    more = {"add_special_tokens": False} if begin and text.startswith(begin) else {}  # templates add it themselves
    try:
        return model.processor(text=[text], images=list(pictures), return_tensors="pt", **more)
    except BaseException as error:  # processors fail in different ways: extra placeholders, images of one pixel
        if not is_library_failure(error):
            raise
        raise MediaRefusedError(
            tr("{model} cannot process {file}: {error}").format(
                model=model.name, file=join_names(file.path.name for file in files), error=error
            ),
            tr("Choose another image, or use as many placeholders in the prompt as there are images."),
        ) from error


def _image_token_counts(
    model: LoadedModel, ids: Sequence[int], pictures: Sequence[object], files: Sequence[MediaFile]
) -> list[int]:
    """Return the number of tokens of each image."""
    mark = _image_token(model)
    if len(pictures) == 1:
        return [list(ids).count(mark)]
    alone = (
        _run_processor(model, _image_placeholder(model), [one], [file])
        for one, file in zip(pictures, files, strict=True)
    )
    return [int((read["input_ids"] == mark).sum()) for read in alone]


def _checked_ids(model: LoadedModel, prompt: object, count: int) -> list[int]:
    """Check ids that include image tokens already. Raises PromptError."""
    ids = encode(model, prompt, unbounded=True)
    if ids.count(_image_token(model)) != count:
        raise PromptError(
            tr("The prompt's ids contain {found:,} image tokens, but the images need {count:,}.").format(
                found=ids.count(_image_token(model)), count=count
            ),
            tr("Pass the prompt as text, or use the ids of an earlier run with these images."),
        )
    return ids


def _media_read(
    model: LoadedModel, ids: Sequence[int], counts: Sequence[int], files: Sequence[MediaFile], read: object
) -> tuple[MediumRead, ...]:
    """Return the position of each image."""
    places = [place for place, token in enumerate(ids) if token == _image_token(model)]
    entries, begun = list[MediumRead](), 0
    for number, (count, file) in enumerate(zip(counts, files, strict=True)):
        own = places[begun : begun + count]
        begun += count
        if own:
            rows, columns = _token_grid(model, own, read, number)
            entries.append(MediumRead(
                str(file.path), "picture", file.digest, "prompt", own[0], own[-1], rows, columns, file.width,
                file.height,
            ))  # fmt: skip
    return tuple(entries)


def _token_grid(model: LoadedModel, places: Sequence[int], read: Any, number: int) -> tuple[int, int]:
    """Return rows and columns of an image with contiguous tokens; (0, 0) if unknown."""
    if any(after - before != 1 for before, after in pairwise(places)):
        return 0, 0
    grids = read.get("image_grid_thw")
    if grids is not None:
        merged = int(getattr(model.model.config.vision_config, "spatial_merge_size", 1) or 1)
        rows, columns = (int(side) // merged for side in grids[number][1:].tolist())
        return (rows, columns) if rows * columns == len(places) else (0, 0)
    side = isqrt(len(places))
    return (side, side) if side * side == len(places) else (0, 0)


def first_pass_inputs(media_inputs: MediaInputs, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the additional inputs of the first pass over `ids` [1, n].

    The prompt may have been extended by the answer's prefix, which is plain text.
    """
    positions, _ = _position_ids(media_inputs, ids)
    placed = {} if positions is None else {"position_ids": positions}
    return {**media_inputs.inputs, **_token_types(media_inputs, ids), **placed}


def _token_types(media_inputs: MediaInputs, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return token types by the names of the module's arguments: which tokens belong to an image.

    PaliGemma marks the tokens after the prompt instead, because prompt tokens attend to each other.
    """
    kinds = torch.zeros_like(ids)
    if media_inputs.model.model.config.model_type in _PREFIX_FAMILIES:
        kinds[:, media_inputs.prompt_length :] = 1
    else:
        kinds[:, list(media_inputs.image_indices)] = 1
    names = {"mm_token_type_ids", "token_type_ids"} & media_inputs.model.forward_parameters
    return dict.fromkeys(names, kinds)


def _position_ids(media_inputs: MediaInputs, ids: torch.Tensor) -> tuple[torch.Tensor | None, int]:
    """Return position ids [3, 1, n] and the offset of what follows; for models with sequential positions None and the
    index of the first position.
    """
    position = position_function(media_inputs.model.model)
    if position is None:
        return None, int(media_inputs.model.model.config.model_type in _PREFIX_FAMILIES)
    grids = {name: value for name, value in media_inputs.inputs.items() if name.endswith("_grid_thw")}
    placed, shift = position(ids, mm_token_type_ids=_token_types(media_inputs, ids).get("mm_token_type_ids"), **grids)
    return placed, int(shift.flatten()[0])
