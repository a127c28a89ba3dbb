"""A decoder's weights for the native step: their addresses, and references that keep them alive."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional as F

from core.decoding.forward.fused_layers import (
    AdaptedLinears,
    BlockLinears,
    FeedForwardMlp,
    FloatLinear,
    GatedMlp,
    LayerNorm,
    QuantizedLinears,
    RootMeanSquare,
    TensorFunction,
    WeightAndBias,
    activation_name,
)
from core.decoding.forward.module_map import DecoderLayer, DecoderModules, Rotation, UnsupportedArchitecture
from core.models.adapters.low_rank_path import LowRankPath
from core.models.gguf.block_formats import NATIVE
from core.models.quantized.packed_matrices import Int4RowMatrix, Int8RowMatrix
from core.native import native_library

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
        _reject(modules.attention_cap is not None, "capped attention")
        self._tensors: list[torch.Tensor] = []
        self._paths: list[tuple[native_library.LowRankStruct, LowRankPath, bool]] = []
        """Each struct with its path, and whether its outputs are reordered from by head to by kind."""
        self._path_tensors: list[torch.Tensor] = []
        self._low_rank_arrays: list[ctypes.Array[native_library.LowRankStruct]] = []
        self._modules, self._dtype, self._copies, self._shorter = modules, dtype, copies, exact_dtypes
        self._panel = panel_rows
        self.has_shorter_weights = False
        """Whether any matrix is stored in fewer bits."""
        self.is_in_panels = panel_rows > 0
        """Whether rows of matrices are interleaved."""
        self._layers = (native_library.LayerStruct * len(modules.layers))(*map(self._layer_struct, modules.layers))
        act = {_activation_name(layer.mlp) for layer in modules.layers}
        _reject(len(act) != 1, "several activations")
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
            logit_cap=modules.logit_cap or 0.0,
            layer=self._layers,
            norm=self._norm_struct(modules.norm),
            head=head,
        )
        self.refresh_paths()

    def refresh_paths(self) -> None:
        """Use the present factors of adapters, whose strengths may have changed."""
        self._path_tensors.clear()
        for struct, path, regroups in self._paths:
            struct.rank = path.rank
            if not path.is_active:
                continue
            assert path.down is not None
            assert path.up is not None
            up, gain, bias = (
                tensor if tensor is None or not regroups else self._group_by_kind(tensor.t()).t().contiguous()
                for tensor in (path.up, path.gain, path.bias)
            )
            assert up is not None
            struct.down, struct.up = path.down.data_ptr(), up.data_ptr()
            struct.gain = None if gain is None else gain.data_ptr()
            struct.bias = None if bias is None else bias.data_ptr()
            self._path_tensors += [tensor for tensor in (path.down, up, gain, bias) if tensor is not None]

    def extend_tables(self, length: int) -> None:
        """Make the rotary tables cover at least `length` positions."""
        if length <= self._length or not self._modules.ropes:
            return
        self._length = max(512, 2 * length)
        self._tables = {kind: self._table(kind) for kind in self._modules.ropes}
        for own, layer in zip(self._layers, self._modules.layers, strict=True):
            if layer.rope in self._tables:
                cos, sin = self._tables[layer.rope]
                own.cos, own.sin, own.turned = cos.data_ptr(), sin.data_ptr(), cos.shape[-1]

    def _table(self, kind: str) -> Rotation:
        """Return float32 cos and signed sin, rounded like the weights."""
        cos, sin = self._modules.rotary_table(kind, self._length)
        return cos.to(self._dtype).float().contiguous(), sin.to(self._dtype).float().contiguous()

    def _layer_struct(self, layer: DecoderLayer) -> Any:
        mlp = layer.mlp
        if not isinstance(mlp, (GatedMlp, FeedForwardMlp)):
            raise UnsupportedArchitecture("a feed-forward half of another kind")
        up = self._matrices(mlp.gate_up if isinstance(mlp, GatedMlp) else mlp.up)
        project = self._matrices(layer.project, layer.is_interleaved)
        (out,), (down,) = self._matrices(layer.out), self._matrices(mlp.down)
        return native_library.LayerStruct(
            norm=self._norm_struct(layer.norm),
            q_norm=self._norm_struct(layer.q_norm),
            k_norm=self._norm_struct(layer.k_norm),
            norm_out=self._norm_struct(layer.norm_out),
            norm_mlp=self._norm_struct(layer.norm_mlp),
            norm_mlp_out=self._norm_struct(layer.norm_mlp_out),
            projections=len(project),
            project=(native_library.MatrixStruct * 3)(*project),
            out=out,
            ups=len(up),
            up=(native_library.MatrixStruct * 2)(*up),
            down=down,
            gated=isinstance(mlp, GatedMlp),
            parallel=layer.is_parallel,
            window=layer.window or 0,
        )

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

    def _matrices(self, maps: TensorFunction, interleaved: bool = False) -> list[Any]:
        if isinstance(maps, AdaptedLinears):
            matrices = self._matrices(maps.maps, interleaved)
            self._add_paths(matrices, maps, interleaved)
            return matrices
        if isinstance(maps, FloatLinear):
            return [self._float_matrix(pair, interleaved) for pair in maps.parts]
        if isinstance(maps, BlockLinears):
            _reject(interleaved, "blocks whose rows are interleaved")
            _reject(any(matrix.fmt.name not in NATIVE for matrix in maps.matrices), "blocks without a native kernel")
            blocks = zip(maps.matrices, maps.biases, strict=True)
            return [matrix.to_struct(self._float32_address(bias)) for matrix, bias in blocks]
        _reject(interleaved or not isinstance(maps, QuantizedLinears), "linear maps of another kind")
        assert isinstance(maps, QuantizedLinears)
        pairs = zip(maps.matrices, maps.biases, strict=True)
        return [_row_major_matrix(matrix).to_struct(self._float32_address(bias)) for matrix, bias in pairs]

    def _add_paths(self, matrices: Sequence[native_library.MatrixStruct], maps: AdaptedLinears, regroups: bool) -> None:
        start = 0
        for matrix in matrices:
            own = [(first - start, path) for first, path in maps.paths if start <= first < start + matrix.outputs]
            start += matrix.outputs
            if not own:
                continue
            structs = (native_library.LowRankStruct * len(own))()
            for struct, (first, path) in zip(structs, own, strict=True):
                struct.first, struct.outputs = first, path.outputs
                self._paths.append((struct, path, regroups))
            self._low_rank_arrays.append(structs)
            matrix.low_ranks, matrix.low_rank = len(own), ctypes.addressof(structs)

    def _float_matrix(self, pair: WeightAndBias, interleaved: bool) -> Any:
        weight, bias = pair
        if interleaved:
            weight, bias = self._group_by_kind(weight), None if bias is None else self._group_by_kind(bias)
        _reject(weight.dtype not in _SUPPORTED_DTYPES or weight.device.type != "cpu", "weights of another kind")
        if not weight.is_contiguous():
            _reject(not self._copies, "a large matrix that lies another way")
            weight = weight.contiguous()
        short = self._to_exact_dtype(weight)
        laid = _to_panels(short, self._panel) if self.is_in_panels else short
        self._tensors.append(laid)
        return native_library.MatrixStruct(
            native_library.WEIGHTS[_DTYPE_NAMES[laid.dtype]],
            *weight.shape,
            laid.data_ptr(),
            self._float32_address(bias),
            in_panels=int(self.is_in_panels),
        )

    def _to_exact_dtype(self, weight: torch.Tensor) -> torch.Tensor:
        """Return the same numbers in fewer bits if that is exact."""
        for dtype in self._shorter if weight.dtype == torch.float32 else ():
            short = weight.detach().to(dtype)
            if torch.equal(short.float(), weight):
                self.has_shorter_weights = True
                return short
        return weight

    def _group_by_kind(self, tensor: torch.Tensor) -> torch.Tensor:
        """Reorder rows from head by head (query, key and value of each) to by kind."""
        _reject(not self._copies, "a large matrix that lies another way")
        heads = tensor.view(self._modules.heads, 3, self._modules.width, *tensor.shape[1:])
        return heads.transpose(0, 1).reshape(tensor.shape)

    def _float32_address(self, tensor: torch.Tensor | None) -> int | None:
        """Return the address of a float32 copy."""
        if tensor is None:
            return None
        exact = tensor.detach().float().contiguous()
        self._tensors.append(exact)
        return exact.data_ptr()


def _to_panels(weight: torch.Tensor, rows: int) -> torch.Tensor:
    """Return [panels, K, rows] of weights [N, K], zero-padded to whole panels."""
    whole = F.pad(weight.detach(), (0, 0, 0, -len(weight) % rows))
    return whole.view(-1, rows, weight.shape[1]).transpose(1, 2).contiguous()


def _row_major_matrix(matrix: object) -> Int8RowMatrix | Int4RowMatrix:
    if not isinstance(matrix, (Int8RowMatrix, Int4RowMatrix)):
        raise UnsupportedArchitecture("packed in blocks")
    return matrix


def _activation_name(mlp: object) -> str:
    assert isinstance(mlp, (GatedMlp, FeedForwardMlp))
    name = activation_name(mlp.act)
    if name is None:
        raise UnsupportedArchitecture("an activation of another kind")
    return name


def _reject(condition: bool, why: str) -> None:
    if condition:
        raise UnsupportedArchitecture(why)
