// Structs that describe a decoder and a pass. core/native/native_library.py has the same fields in the same order.
#pragma once
#include <cstdint>

enum NormKind : int64_t { NO_NORM, ROOT_MEAN_SQUARE, LAYER_NORM };
enum WeightKind : int64_t { FLOAT32, BFLOAT16, INT8, FLOAT16, INT4 };
constexpr int64_t BLOCK_KINDS = 256;    // block formats of GGUF files are this much more than ggml's type id (block_formats.h)
enum ActKind : int64_t { SILU, GELU_TANH, GELU_ERF, RELU };

struct Norm {
    int64_t kind;
    const float* weight;
    const float* bias;  // may be null
    double eps;
};

// What adapters add to some outputs of a matrix: gain · Wx + bias of W + up (down x) + bias.
struct LowRank {
    int64_t first, outputs, rank;   // from the output `first` on
    const float* down;  // [rank, inputs]
    const float* up;    // [rank, outputs]
    const float* gain;  // [outputs]; may be null
    const float* bias;  // [outputs]; may be null
};

struct Matrix {
    int64_t kind, outputs, inputs;
    const void* weights;    // [outputs, inputs]; int4: see matmul_int4.h; blocks: rows as in the file, at any address
    const float* bias;      // may be null
    const void* scales;     // int8: float32 [outputs]; int4: bfloat16 [outputs, 2, groups], scales before offsets
    const int32_t* sums;    // int8: SHIFT times the sum of each row; null if SHIFT is 0
    int64_t in_panels;      // floats: whether rows are interleaved (matmul_panels.h), padded with zeros to whole panels
    int64_t low_ranks;      // parts of the outputs that adapters change
    const LowRank* low_rank;
};

struct Layer {
    Norm norm, q_norm, k_norm, norm_out, norm_mlp, norm_mlp_out;
    int64_t projections;    // 1 or 3 matrices for queries, keys and values
    Matrix project[3];
    Matrix out;
    int64_t ups;            // 1 or 2 matrices, of gate and up where it is gated
    Matrix up[2];
    Matrix down;
    int64_t gated, parallel, window, turned;   // window: 0 for none; turned: rotated numbers per head, 0 for none
    const float* cos;       // [positions, turned]
    const float* sin;       // [positions, turned], the first half negated
};

struct Model {
    int64_t layers, hidden, heads, kv_heads, width, act, rounds;  // rounds: to bfloat16 after each operation
    double scaling, logit_cap;
    const Layer* layer;
    Norm norm;
    Matrix head;
};

// One pass over `count` tokens of each of `texts` texts, of which `past` tokens are cached.
struct Pass {
    int64_t texts, count, past, keep, threads;
    float* hidden;              // [texts, count, hidden]: embeddings; overwritten
    float* logits;              // [texts, keep, vocabulary]
    void* const* old_keys;      // per layer [texts, kv_heads, >= past, width]; equal to the new ones: in place
    void* const* old_values;
    void* const* new_keys;      // [texts, kv_heads, >= past + count, width]
    void* const* new_values;
    const int64_t* old_capacities;  // per layer, the distance of two heads in tokens
    const int64_t* new_capacities;
    const float* mask;          // [count, past + count], added to the attention scores; null for causal attention
    const int64_t* positions;   // [count]; null if they follow the cached tokens
};
