// Structs that describe a decoder and a pass. core/native/native_library.py has the same fields in the same order.
#pragma once
#include <cstdint>

enum NormKind : int64_t { NO_NORM, ROOT_MEAN_SQUARE, LAYER_NORM };
enum WeightKind : int64_t { FLOAT32, BFLOAT16, INT8, FLOAT16, INT4 };
constexpr int64_t BLOCK_KINDS = 256;    // block formats of GGUF files are this much more than ggml's type id (block_formats.h)
enum ActKind : int64_t { SILU, GELU_TANH, GELU_ERF, RELU };
// Order of a matrix of floats: [outputs, inputs]; the same with interleaved rows (matmul_panels.h), padded with zeros to
// whole panels; [inputs, outputs] (matmul_columns.h).
enum MatrixLayout : int64_t { ROW_MAJOR, IN_PANELS, COLUMN_MAJOR };

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
    int64_t layout;         // of floats; others are in row-major order
    int64_t low_ranks;      // parts of the outputs that adapters change
    const LowRank* low_rank;
};

// A mixture of experts: each token goes through the `chosen` likeliest of them, by the softmax of the router's outputs.
struct Mixture {
    int64_t experts, chosen, normalized;    // normalized: whether the chosen ones' weights are divided by their sum
    Matrix router;
    const Matrix* up;       // [experts, ups of the layer]
    const Matrix* down;     // [experts]
};

struct Layer {
    Norm norm, q_norm, k_norm, norm_out, norm_mlp, norm_mlp_out;    // each may be of no kind
    int64_t projections;    // 1 or 3 matrices for queries, keys and values
    Matrix project[3];
    Matrix out;
    int64_t ups;            // 1 or 2 matrices, of gate and up where it is gated
    Matrix up[2];
    Matrix down;
    int64_t gated, parallel, window, rope;  // window: 0 for none; rope: index of the rotary table, -1 for none
    int64_t joint_heads;    // whether q_norm and k_norm are of all heads together instead of each
    int64_t norms_sums;     // whether norm and norm_mlp follow the residual additions instead of preceding their halves
    double residual_scale;  // factor of both halves' outputs
    Mixture mixture;        // instead of up and down where it has experts
};

// Cosines and sines of the positions from `first` on, [positions, turned], for the first `turned` numbers of a head.
struct RotaryTable {
    const float* cos;
    const float* sin;       // negated for the first number of each pair
    int64_t turned, first, adjacent;    // adjacent: pairs are neighbors instead of half of `turned` apart
};

// Where the heads lie in the joined queries, keys and values of a token; a group is the queries of one key-value head.
struct HeadLayout {
    int64_t next_group, keys, values, next_key;     // next_key: from one key (or value) head to the next
};

struct Model {
    int64_t layers, hidden, heads, kv_heads, width, act, rounds;  // rounds: to bfloat16 after each operation
    double scaling, attention_cap, logit_scale, logit_cap;      // caps: 0 for none
    HeadLayout layout;
    const Layer* layer;
    const RotaryTable* rotary;
    const float* key_bias;      // [heads, key_biases], added to the scores on the key of a position; null for none
    int64_t key_biases;
    Norm norm;                  // may be of no kind
    Matrix narrow;              // after the last norm; no outputs for none
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

// Attention over many tokens of several texts, each after its prefix of a cached text (ragged_attention.h).
struct RaggedAttention {
    int64_t heads, kv_heads, width;     // width: a multiple of 32
    double scaling;
    Norm q_norm, k_norm;
    const float* cos;       // [positions, width]
    const float* sin;       // the same, its first half negated
    int64_t texts, last_only, threads, capacity;  // capacity: tokens from one head of the cache to the next
    const int64_t* prefix_lengths;  // [texts]: cached tokens that a text begins with
    const int64_t* counts;  // [texts]: its own tokens after them
    const float* keys;      // of the cache [kv_heads, capacity, width]; not read if all prefix lengths are 0
    const float* values;
    float* joined;          // [own tokens of all, heads + 2 kv_heads, width]; queries and keys are turned in it
    float* read;            // [the same or texts, heads, width]
};

// The exported functions; decodescope.cpp describes them.
#if defined(_WIN32)
#define DECODESCOPE extern "C" __declspec(dllexport)
#else
#define DECODESCOPE extern "C" __attribute__((visibility("default")))
#endif

DECODESCOPE int64_t decodescope_version();
DECODESCOPE int64_t decodescope_halves();
DECODESCOPE int64_t decodescope_shift();
DECODESCOPE int64_t decodescope_panel();
DECODESCOPE int64_t decodescope_step(const Model* model, const Pass* pass);
DECODESCOPE int64_t decodescope_multiply(
    const Matrix* matrix, const int8_t* halves, const float* steps, int64_t rows, float* found, int64_t threads
);
DECODESCOPE int64_t decodescope_multiply_blocks(
    const Matrix* matrix, const float* vectors, int64_t rows, float* found, int64_t threads
);
DECODESCOPE void decodescope_rows(const Matrix* matrix, const int64_t* ids, int64_t count, float* found);
DECODESCOPE int64_t decodescope_read(
    const float* const* scores, int64_t stages, int64_t rows, int64_t vocabulary, const int64_t* chosen, int64_t n, float* found
);
DECODESCOPE int64_t decodescope_ragged_attention(const RaggedAttention* pass);
DECODESCOPE void decodescope_norm(const float* hidden, const Norm* norm, int64_t rows, int64_t width, float* normed);
DECODESCOPE int64_t decodescope_product(
    const Matrix* matrix, const float* vectors, int64_t rows, float* found, int64_t apart, int64_t adds, int64_t threads
);
DECODESCOPE int64_t decodescope_gated(
    const Matrix* gate, const Matrix* up, const float* vectors, int64_t rows, float* found, int64_t threads
);
DECODESCOPE void decodescope_choices(const float* scores, int64_t rows, int64_t vocabulary, const int64_t* chosen, float* found);
DECODESCOPE void decodescope_spread(const float* scores, int64_t rows, int64_t vocabulary, double* found);
DECODESCOPE int64_t decodescope_likely(
    const float* scores, int64_t vocabulary, double threshold, int64_t most, int64_t* tokens, float* found
);
DECODESCOPE void decodescope_parts(
    const float* scores, int64_t vocabulary, double lowest, double highest, int64_t parts, int64_t* found
);
DECODESCOPE int64_t decodescope_passages(
    const int64_t* text, int64_t count, const int8_t* breaks, int64_t vocabulary, int64_t least, int64_t longest, int64_t* found
);
