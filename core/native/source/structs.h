// What a decoder is made of, as Python describes it (core/native/native_library.py has the same fields in the same order).
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

struct Matrix {
    int64_t kind, outputs, inputs;
    const void* weights;    // [outputs, inputs]; of int4, see matmul_int4.h; of blocks, the rows of the file, at any address
    const float* bias;      // may be null
    const void* scales;     // of int8, float32, one a row; of int4, bfloat16: a row's scales, one a group, then offsets
    const int32_t* sums;    // of int8, SHIFT times the sum of a row; null where that is none
    int64_t in_panels;      // of floats: whether rows lie side by side (matmul_panels.h), none up to whole panels
};

struct Layer {
    Norm norm, q_norm, k_norm, norm_out, norm_mlp, norm_mlp_out;
    int64_t projections;    // 1 or 3 matrices for queries, keys and values
    Matrix project[3];
    Matrix out;
    int64_t ups;            // 1 or 2 matrices, of gate and up where it is gated
    Matrix up[2];
    Matrix down;
    int64_t gated, parallel, window, turned;   // window, turned: 0 for none; numbers of a head that are turned
    const float* cos;       // [positions, turned]
    const float* sin;       // the same, its first half negated
};

struct Model {
    int64_t layers, hidden, heads, kv_heads, width, act, rounds;  // rounds: to bfloat16 behind every operation
    double scaling, logit_cap;
    const Layer* layer;
    Norm norm;
    Matrix head;
};

// One pass over `count` tokens of each of `texts` texts, `past` tokens behind their beginnings.
struct Pass {
    int64_t texts, count, past, keep, threads;
    float* hidden;              // [texts, count, hidden]: what is embedded; overwritten
    float* logits;              // [texts, keep, vocabulary]
    void* const* old_keys;      // a layer each, [texts, kv_heads, >= past, width]; the same as the new ones: in place
    void* const* old_values;
    void* const* new_keys;      // [texts, kv_heads, >= past + count, width]
    void* const* new_values;
    const int64_t* old_capacities;  // tokens from one head to the next, a layer each
    const int64_t* new_capacities;
    const float* mask;          // of one text, [count, past + count], added to what a query is to a key; may be null:
                                // then each token sees itself and what is before it
    const int64_t* positions;   // [count]; may be null: then they follow the past
};
