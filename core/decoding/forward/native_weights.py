"""A decoder's weights for the native step: their addresses, and references that keep them alive."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from decodescope.core.decoding.forward.fused_layers import (
    AdaptedLinears,
    BlockLinears,
    FeedForwardMlp,
    FloatLinear,
    GatedMlp,
    LayerNorm,
    MixtureMlp,
    QuantizedLinears,
    RootMeanSquare,
    TensorFunction,
    WeightAndBias,
    activation_name,
)
from decodescope.core.decoding.forward.module_map import DecoderLayer, DecoderModules, UnsupportedArchitecture, reject
from decodescope.core.decoding.forward.rotary import RotaryTable
from decodescope.core.models.adapters.low_rank_path import LowRankPath
from decodescope.core.models.gguf.block_formats import NATIVE
from decodescope.core.models.quantized.packed_matrices import Int4RowMatrix, Int8RowMatrix
from decodescope.core.native import native_library
from decodescope.core.native.tensor_address import optional_address, tensor_address

_DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}
_SUPPORTED_DTYPES = (torch.float32, torch.bfloat16)


class NativeWeights:
    """`model` contains addresses only: the tensors they point to live as long as this object."""

    def __init__(
        self,
        modules: DecoderModules,
        dtype: torch.dtype,
        hidden: int,
        copies: bool,
        exact_dtypes: Sequence[torch.dtype] = (),
        panel_rows: int = 0,
    ) -> None:
        """Describe the weights. Raises UnsupportedArchitecture.

        `copies`: matrices of another layout may be copied. Matrices that are exact in a dtype of `exact_dtypes` are
        stored in it, so that fewer bytes are read with the same result. `panel_rows` > 0: interleave that many rows, in
        copies.
        """
        self._tensors: list[torch.Tensor] = []
        self._paths: list[tuple[native_library.LowRankStruct, LowRankPath]] = []
        """Each struct with its path."""
        self._path_tensors: list[torch.Tensor] = []
        self._low_rank_arrays: list[ctypes.Array[native_library.LowRankStruct]] = []
        self._arrays: list[Any] = []
        self._modules, self.dtype, self._copies, self._shorter = modules, dtype, copies, exact_dtypes
        self._panel = panel_rows
        self.has_shorter_weights = False
        """Whether any matrix is stored in fewer bits."""
        self.is_in_panels = panel_rows > 0
        """Whether rows of matrices are interleaved."""
        self._kinds = list(modules.ropes)
        self._tables: list[tuple[RotaryTable, RotaryTable] | None] = [None] * len(self._kinds)
        self._rotary = (native_library.RotaryTableStruct * len(self._kinds))()
        self._has_fixed_rotation = all(rope.is_fixed for rope in modules.ropes.values())
        self._layers = (native_library.LayerStruct * len(modules.layers))(*map(self._layer_struct, modules.layers))
        act = {_activation_name(layer.mlp) for layer in modules.layers}
        reject(len(act) != 1, "several activations")
        (head,) = self._matrices(modules.head)
        self.vocabulary: int = head.outputs
        self._length = 0
        self.model = native_library.ModelStruct(
            layers=len(modules.layers),
            hidden=hidden,
            heads=modules.heads,
            kv_heads=modules.kv_heads,
            width=modules.width,
            act=native_library.ACTIVATIONS[act.pop()],
            rounds=int(dtype == torch.bfloat16),
            scaling=modules.scaling,
            attention_cap=modules.attention_cap or 0.0,
            logit_scale=modules.logit_scale,
            logit_cap=modules.logit_cap or 0.0,
            layout=_head_layout(modules),
            layer=self._layers,
            rotary=self._rotary,
            norm=self._norm_struct(modules.norm),
            head=head,
        )
        if modules.narrow is not None:
            (self.model.narrow,) = self._matrices(modules.narrow)
        self.refresh_paths()

    def refresh_paths(self) -> None:
        """Use the present factors of adapters, whose strengths may have changed."""
        self._path_tensors.clear()
        for struct, path in self._paths:
            struct.rank = path.rank
            if not path.is_active:
                continue
            down, up, gain, bias = path.down, path.up, path.gain, path.bias
            assert down is not None
            assert up is not None
            struct.down = tensor_address(down, torch.float32)
            struct.up = tensor_address(up, torch.float32, path.rank * path.outputs)
            struct.gain = optional_address(gain, torch.float32, path.outputs)
            struct.bias = optional_address(bias, torch.float32, path.outputs)
            self._path_tensors += [tensor for tensor in (down, up, gain, bias) if tensor is not None]

    def extend_tables(self, start: int, stop: int, positions: torch.Tensor | None = None) -> None:
        """Make the tables cover a pass over the positions from `start` to `stop`, or over `positions` in that range.
        Raises IndexError for positions beyond the model's maximum.
        """
        length = stop
        if positions is not None and not self._has_fixed_rotation:
            start, stop = int(positions.min()), int(positions.max()) + 1
        for index, kind in enumerate(self._kinds):
            table, known = self._modules.ropes[kind].lookup(start, stop), self._tables[index]
            if known is None or known[0] is not table:
                self._set_table(index, table, self._modules.ropes[kind].is_adjacent)
        if self._modules.slopes is not None and length > self._length:
            self._length = max(512, 2 * length)
            bias = self._modules.key_bias(self._length)
            assert bias is not None
            self._bias = bias.to(self.dtype).float().contiguous()
            self.model.key_bias = tensor_address(self._bias, torch.float32, self._modules.heads * self._length)
            self.model.key_biases = self._length

    def _set_table(self, index: int, table: RotaryTable, is_adjacent: bool) -> None:
        """Use a table, float32 and rounded like the weights."""
        cos, sin = (part.to(self.dtype).float().contiguous() for part in (table.cos, table.sin))
        self._tables[index] = table, RotaryTable(cos, sin, table.first)
        self._rotary[index] = native_library.RotaryTableStruct(
            tensor_address(cos, torch.float32),
            tensor_address(sin, torch.float32, cos.numel()),
            cos.shape[-1],
            table.first,
            int(is_adjacent),
        )

    def _layer_struct(self, layer: DecoderLayer) -> Any:
        project = self._matrices(layer.project)
        (out,) = self._matrices(layer.out)
        rows = sum(matrix.outputs for matrix in project)
        reject(
            rows != (self._modules.heads + 2 * self._modules.kv_heads) * self._modules.width, "heads of another width"
        )
        reject(layer.has_joint_norms and self._modules.is_interleaved, "joint norms of interleaved heads")
        made = native_library.LayerStruct(
            norm=self._norm_struct(layer.norm),
            q_norm=self._norm_struct(layer.q_norm),
            k_norm=self._norm_struct(layer.k_norm),
            norm_out=self._norm_struct(layer.norm_out),
            norm_mlp=self._norm_struct(layer.norm_mlp),
            norm_mlp_out=self._norm_struct(layer.norm_mlp_out),
            projections=len(project),
            project=(native_library.MatrixStruct * 3)(*project),
            out=out,
            parallel=layer.is_parallel,
            window=layer.window or 0,
            rope=self._kinds.index(layer.rope) if layer.rope in self._kinds else -1,
            joint_heads=layer.has_joint_norms,
            norms_sums=layer.norms_sums,
            residual_scale=layer.residual_scale,
        )
        self._set_mlp(made, layer.mlp)
        return made

    def _set_mlp(self, made: Any, mlp: TensorFunction) -> None:
        if isinstance(mlp, MixtureMlp):
            ups = [self._matrices(expert.gate_up) for expert in mlp.experts]
            downs = [self._matrices(expert.down)[0] for expert in mlp.experts]
            (router,) = self._matrices(mlp.router)
            flat = [matrix for parts in ups for matrix in parts]
            all_ups = (native_library.MatrixStruct * len(flat))(*flat)
            all_downs = (native_library.MatrixStruct * len(downs))(*downs)
            self._arrays += (all_ups, all_downs)
            made.mixture = native_library.MixtureStruct(
                len(downs), mlp.chosen, mlp.is_normalized, router,
                *(ctypes.cast(part, ctypes.POINTER(native_library.MatrixStruct)) for part in (all_ups, all_downs)),
            )  # fmt: skip
            made.ups, made.gated = len(ups[0]), True
            return
        if not isinstance(mlp, (GatedMlp, FeedForwardMlp)):
            raise UnsupportedArchitecture("a feed-forward half of another kind")
        up = self._matrices(mlp.gate_up if isinstance(mlp, GatedMlp) else mlp.up)
        made.ups, made.up = len(up), (native_library.MatrixStruct * 2)(*up)
        (made.down,) = self._matrices(mlp.down)
        made.gated = isinstance(mlp, GatedMlp)

    def _norm_struct(self, norm: TensorFunction | None) -> Any:
        if norm is None:
            return native_library.NormStruct()
        if isinstance(norm, RootMeanSquare):
            kind, bias = "root_mean_square", None
        elif isinstance(norm, LayerNorm):
            kind, bias = "layer_norm", norm.bias
        else:
            raise UnsupportedArchitecture("a norm of another kind")
        return native_library.NormStruct(
            native_library.NORMS[kind], self._float32_address(norm.weight), self._float32_address(bias), norm.eps
        )

    def _matrices(self, maps: TensorFunction) -> list[Any]:
        if isinstance(maps, AdaptedLinears):
            matrices = self._matrices(maps.maps)
            self._add_paths(matrices, maps)
            return matrices
        if isinstance(maps, FloatLinear):
            return [self._float_matrix(pair) for pair in maps.parts]
        if isinstance(maps, BlockLinears):
            reject(any(matrix.fmt.name not in NATIVE for matrix in maps.matrices), "blocks without a native kernel")
            blocks = zip(maps.matrices, maps.biases, strict=True)
            return [matrix.to_struct(self._float32_address(bias)) for matrix, bias in blocks]
        reject(not isinstance(maps, QuantizedLinears), "linear maps of another kind")
        assert isinstance(maps, QuantizedLinears)
        pairs = zip(maps.matrices, maps.biases, strict=True)
        return [_row_major_matrix(matrix).to_struct(self._float32_address(bias)) for matrix, bias in pairs]

    def _add_paths(self, matrices: Sequence[native_library.MatrixStruct], maps: AdaptedLinears) -> None:
        start = 0
        for matrix in matrices:
            own = [(first - start, path) for first, path in maps.paths if start <= first < start + matrix.outputs]
            start += matrix.outputs
            if not own:
                continue
            structs = (native_library.LowRankStruct * len(own))()
            for struct, (first, path) in zip(structs, own, strict=True):
                struct.first, struct.outputs = first, path.outputs
                self._paths.append((struct, path))
            self._low_rank_arrays.append(structs)
            matrix.low_ranks, matrix.low_rank = len(own), ctypes.addressof(structs)

    def _float_matrix(self, pair: WeightAndBias) -> Any:
        weight, bias = pair
        reject(weight.dtype not in _SUPPORTED_DTYPES or weight.device.type != "cpu", "weights of another kind")
        layout = "in_panels" if self.is_in_panels else "row_major"
        if not weight.is_contiguous() and not self._copies:
            reject(not weight.t().is_contiguous(), "a large matrix in another order")
            laid, layout = weight, "column_major"
        else:
            short = self._to_exact_dtype(weight.contiguous())
            laid = _to_panels(short, self._panel) if self.is_in_panels else short
        self._tensors.append(laid)
        return native_library.MatrixStruct(
            native_library.WEIGHTS[_DTYPE_NAMES[laid.dtype]],
            *weight.shape,
            _weights_address(laid),
            self._float32_address(bias),
            layout=native_library.LAYOUTS[layout],
        )

    def _to_exact_dtype(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the same numbers in fewer bits if that is exact."""
        for dtype in self._shorter if weight.dtype == torch.float32 else ():
            short = weight.detach().to(dtype)
            if torch.equal(short.float(), weight):
                self.has_shorter_weights = True
                return short
        return weight

    def _float32_address(self, tensor: torch.Tensor | None) -> int | None:
        """Return the address of a float32 copy."""
        if tensor is None:
            return None
        exact = tensor.detach().float().contiguous()
        self._tensors.append(exact)
        return tensor_address(exact, torch.float32)


def _weights_address(weights: torch.Tensor) -> int:
    """Return the address of a matrix, contiguous or transposed."""
    return tensor_address(weights if weights.is_contiguous() else weights.t(), weights.dtype)


def _to_panels(weight: torch.Tensor, rows: int) -> torch.Tensor:
    """Return [panels, K, rows] of weights [N, K], zero-padded to whole panels."""
    whole = F.pad(weight.detach(), (0, 0, 0, -len(weight) % rows))
    return whole.view(-1, rows, weight.shape[1]).transpose(1, 2).contiguous()


def _row_major_matrix(matrix: object) -> Int8RowMatrix | Int4RowMatrix:
    if not isinstance(matrix, (Int8RowMatrix, Int4RowMatrix)):
        raise UnsupportedArchitecture("packed in blocks")
    return matrix


def _head_layout(modules: DecoderModules) -> Any:
    """Return where heads lie in a token's joined projections."""
    width, group = modules.width, modules.heads // modules.kv_heads
    if modules.is_interleaved:
        step = (group + 2) * width
        return native_library.HeadLayoutStruct(step, group * width, (group + 1) * width, step)
    keys = modules.heads * width
    return native_library.HeadLayoutStruct(group * width, keys, keys + modules.kv_heads * width, width)


def _activation_name(mlp: object) -> str:
    if isinstance(mlp, MixtureMlp):
        mlp = mlp.experts[0]
    assert isinstance(mlp, (GatedMlp, FeedForwardMlp))
    name = activation_name(mlp.act)
    if name is None:
        raise UnsupportedArchitecture("an activation of another kind")
    return name
