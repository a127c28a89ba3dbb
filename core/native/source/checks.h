// Checks of the arguments of exported functions, in debug builds only: addresses, their alignment, sizes.
#pragma once
#include "block_formats.h"
#include "buffer.h"
#include "structs.h"

#ifdef DECODESCOPE_CHECKS
constexpr bool HAS_CHECKS = true;
#else
constexpr bool HAS_CHECKS = false;
#endif

// An array of `count` items is there, unless it is empty, and aligned as the items have to be.
template <typename Item>
inline void check_array(const Item* place, int64_t count) {
    CHECK(count >= 0);
    CHECK(count == 0 || place != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(place) % alignof(Item) == 0);
}

inline void check_norm(const Norm& norm, int64_t width) {
    if (norm.kind == NO_NORM) return;
    CHECK(norm.kind == ROOT_MEAN_SQUARE || norm.kind == LAYER_NORM);
    check_array(norm.weight, width);
    check_array(norm.bias, 0);
}

// Items of a matrix in blocks may lie at any address; the others are aligned.
inline void check_matrix(const Matrix& matrix) {
    CHECK(matrix.outputs > 0 && matrix.inputs > 0 && matrix.weights != nullptr);
    check_array(matrix.bias, 0);
    if (matrix.kind >= BLOCK_KINDS) {
        bool is_known = false;
        with_format(matrix.kind, [&](auto format) { is_known = matrix.inputs % decltype(format)::WEIGHTS == 0; });
        CHECK(is_known && matrix.layout == ROW_MAJOR);
    } else if (matrix.kind == FLOAT32) {
        check_array(static_cast<const float*>(matrix.weights), matrix.outputs);
    } else if (matrix.kind == INT8) {
        check_array(static_cast<const float*>(matrix.scales), matrix.outputs);
        check_array(matrix.sums, 0);
    } else if (matrix.kind == INT4) {
        CHECK(matrix.inputs % 32 == 0);
        check_array(static_cast<const bfloat16*>(matrix.scales), matrix.outputs);
    } else {
        CHECK(matrix.kind == BFLOAT16 || matrix.kind == FLOAT16);
        check_array(static_cast<const uint16_t*>(matrix.weights), matrix.outputs);
    }
    check_array(matrix.low_rank, matrix.low_ranks);
    for (int64_t i = 0; i < matrix.low_ranks; ++i) {
        const LowRank& part = matrix.low_rank[i];
        CHECK(part.first >= 0 && part.outputs >= 0 && part.first + part.outputs <= matrix.outputs);
        check_array(part.down, part.rank * matrix.inputs);
        check_array(part.up, part.rank * part.outputs);
    }
}

inline void check_layer(const Model& model, const Layer& layer) {
    CHECK(layer.projections == 1 || layer.projections == 3);
    for (int64_t i = 0; i < layer.projections; ++i) check_matrix(layer.project[i]);
    check_matrix(layer.out);
    if (!layer.norms_sums) check_norm(layer.norm, model.hidden);
    CHECK(layer.window >= 0 && (layer.rope < 0 || model.rotary != nullptr));
    if (layer.rope >= 0) CHECK(model.rotary[layer.rope].turned <= model.width && model.rotary[layer.rope].turned % 2 == 0);
    if (layer.mixture.experts > 0) return;
    CHECK(layer.ups == 1 || layer.ups == 2);
    for (int64_t i = 0; i < layer.ups; ++i) check_matrix(layer.up[i]);
    check_matrix(layer.down);
}

inline void check_step(const Model& model, const Pass& pass) {
    if (!HAS_CHECKS) return;
    CHECK(model.heads > 0 && model.kv_heads > 0 && model.heads % model.kv_heads == 0 && model.width > 0 && model.hidden > 0);
    CHECK(pass.texts > 0 && pass.count > 0 && pass.past >= 0 && pass.keep >= 0 && pass.keep <= pass.count);
    check_array(model.layer, model.layers);
    for (int64_t number = 0; number < model.layers; ++number) {
        check_layer(model, model.layer[number]);
        CHECK(pass.new_keys[number] != nullptr && pass.new_values[number] != nullptr);
        CHECK(pass.new_capacities[number] >= pass.past + pass.count && pass.old_capacities[number] >= pass.past);
    }
    check_matrix(model.head);
    check_array(pass.hidden, pass.texts * pass.count * model.hidden);
    check_array(pass.logits, pass.texts * pass.keep * model.head.outputs);
}

inline void check_product(const Matrix& matrix, const void* vectors, int64_t rows, const float* found) {
    if (!HAS_CHECKS) return;
    CHECK(rows >= 0 && vectors != nullptr);
    check_matrix(matrix);
    check_array(found, rows * matrix.outputs);
}

inline void check_scores(const float* scores, int64_t rows, int64_t vocabulary) {
    if (!HAS_CHECKS) return;
    CHECK(rows >= 0 && vocabulary > 0);
    check_array(scores, rows * vocabulary);
}

inline void check_ragged(const RaggedAttention& pass, int64_t multiple) {
    if (!HAS_CHECKS) return;
    CHECK(pass.heads > 0 && pass.kv_heads > 0 && pass.heads % pass.kv_heads == 0 && pass.width % multiple == 0);
    check_array(pass.prefix_lengths, pass.texts);
    check_array(pass.counts, pass.texts);
    for (int64_t text = 0; text < pass.texts; ++text)
        CHECK(pass.counts[text] > 0 && (pass.prefix_lengths[text] == 0 || (pass.keys != nullptr && pass.values != nullptr)));
    check_array(pass.joined, pass.texts);
    check_array(pass.read, pass.texts);
}
