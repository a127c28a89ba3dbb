// A pass of a few tokens through a decoder: the operations of its module in their order.
#pragma once
#include "attention.h"
#include "matmul_blocks.h"
#include "matmul_columns.h"
#include "matmul_int4.h"
#include "matmul_int8.h"
#include "matmul_panels.h"

// A matrix of any kind times a few vectors.

template <typename Weight>
inline void floats_of(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    if (matrix.layout == IN_PANELS) through_panels<Weight>(matrix, of.values, of.rows, found, apart, begin, end);
    else if (matrix.layout == COLUMN_MAJOR) through_columns<Weight>(matrix, of, found, apart, begin, end);
    else floats<Weight>(matrix, of, found, apart, begin, end);
}

// down x [rows, rank] of every part of the outputs that adapters change, one after another.
inline void compress(const Matrix& matrix, const Vectors& of, Buffer<float>& found) {
    int64_t whole = 0, from = 0;
    for (int64_t i = 0; i < matrix.low_ranks; ++i) whole += matrix.low_rank[i].rank;
    found.resize(of.rows * whole);
    for (int64_t i = 0; i < matrix.low_ranks; ++i) {
        const LowRank& part = matrix.low_rank[i];
        const Matrix down = {FLOAT32, part.rank, matrix.inputs, part.down, nullptr, nullptr, nullptr, 0, 0, nullptr};
        floats<float>(down, of, &found[from], part.rank, 0, part.rank);
        from += of.rows * part.rank;
    }
}

// What adapters change of the outputs from `begin` to `end`, which lack the bias of the matrix. The sums have the same
// order for any number of rows.
inline void adapt(const Matrix& matrix, const float* low, int64_t rows, float* found, int64_t apart, int64_t begin, int64_t end) {
    for (int64_t i = 0; i < matrix.low_ranks; ++i) {
        const LowRank& part = matrix.low_rank[i];
        const int64_t first = std::max(begin, int64_t(part.first)), last = std::min(end, int64_t(part.first + part.outputs));
        for (int64_t row = 0; row < rows && first < last; ++row) {
            float* __restrict to = found + row * apart;
            const int64_t own = part.first;
            if (part.rank && part.gain != nullptr)
                for (int64_t output = first; output < last; ++output) to[output] *= part.gain[output - own];
            for (int64_t number = 0; number < part.rank; ++number) {
                const float factor = low[row * part.rank + number];
                const float* __restrict up = part.up + number * part.outputs;
                for (int64_t output = first; output < last; ++output) to[output] = multiply_add(factor, up[output - own], to[output]);
            }
            if (part.rank && part.bias != nullptr)
                for (int64_t output = first; output < last; ++output) to[output] += part.bias[output - own];
        }
        low += rows * part.rank;
    }
}

// found[row · apart + output] for every output of the matrix.
inline void multiply(const Matrix& matrix, Vectors& of, float* found, int64_t apart, int64_t threads) {
    of.has_one_thread = threads <= 1;
    if (matrix.kind == INT8) SHIFT ? of.shift() : of.join();
    if (matrix.kind == INT4) of.deal();
    if (matrix.kind >= BLOCK_KINDS) of.quantize_blocks(threads);
    static thread_local Buffer<float> compressed;
    if (matrix.low_ranks) compress(matrix, of, compressed);
    const float* low = compressed.data();
    int64_t block = matrix.layout == IN_PANELS ? BESIDE * PANEL : 64;
    if (matrix.layout == COLUMN_MAJOR) block = std::max<int64_t>(block, (matrix.outputs / std::max<int64_t>(threads, 1) / LANES + 1) * LANES);
    const int64_t blocks = (matrix.outputs + block - 1) / block;
    for_each_part(blocks, matrix.outputs * matrix.inputs > 100000 ? threads : 1, [&](int64_t part) {
        const int64_t begin = part * block, end = std::min(begin + block, int64_t(matrix.outputs));
        if (matrix.kind == FLOAT32) floats_of<float>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == BFLOAT16) floats_of<bfloat16>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == FLOAT16) floats_of<float16>(matrix, of, found, apart, begin, end);
        else if (matrix.kind >= BLOCK_KINDS) multiply_blocks(matrix, of.blocks, found, apart, begin, end);
        else if (matrix.kind == INT4) fours(matrix, of, found, apart, begin, end);
        else if (SHIFT) shifted(matrix, of, found, apart, begin, end);
        else eights(matrix, of, found, apart, begin, end);
        if (matrix.low_ranks) adapt(matrix, low, of.rows, found, apart, begin, end);
        if (matrix.bias != nullptr)
            for (int64_t row = 0; row < of.rows; ++row)
                for (int64_t output = begin; output < end; ++output) found[row * apart + output] += matrix.bias[output];
    });
}

struct Rooms {
    Buffer<float> normed, joined, read, added, wide, gated, spare, last;
    Buffer<float> routed, left, chosen_rows, expert_out;   // of a mixture: `routed` holds weights [rows, experts]
    Buffer<int64_t> chosen;
    Vectors vectors;
};

inline void round_all(const Model& model, Buffer<float>& values) {
    if (model.rounds)
        for (float& value : values) {
            const bfloat16 near = nearest(value);
            value = one(&near);
        }
}

inline void norm_row(const Norm& norm, const float* from, int64_t width, float* to) {
    float mean = 0, squares = 0;
    if (norm.kind == LAYER_NORM) {
        for (int64_t i = 0; i < width; ++i) mean += from[i];
        mean /= float(width);
    }
    Lanes sums = {};
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) {
        const Lanes apart = load(from + i) - all(mean);
        sums += apart * apart;
    }
    for (; i < width; ++i) squares += (from[i] - mean) * (from[i] - mean);
    const float scale = 1.0f / std::sqrt((squares + sum(sums)) / float(width) + float(norm.eps));
    for (i = 0; i < width; ++i) to[i] = (from[i] - mean) * scale * norm.weight[i];
    if (norm.bias != nullptr)
        for (i = 0; i < width; ++i) to[i] += norm.bias[i];
}

inline void norm_all(const Model& model, const Norm& norm, const float* from, int64_t rows, int64_t width, Buffer<float>& to) {
    if (norm.kind == NO_NORM) {
        to.assign(from, from + rows * width);
        return;
    }
    to.resize(rows * width);
    for (int64_t row = 0; row < rows; ++row) norm_row(norm, from + row * width, width, &to[row * width]);
    round_all(model, to);
}

inline float near(const Model& model, float value) {
    if (!model.rounds) return value;
    const bfloat16 kept = nearest(value);
    return one(&kept);
}

inline void add(const Model& model, float* to, const Buffer<float>& more, double scale = 1.0) {
    if (scale == 1.0)
        for (int64_t i = 0; i < more.size(); ++i) to[i] += more[i];
    else
        for (int64_t i = 0; i < more.size(); ++i) to[i] += near(model, more[i] * float(scale));
    if (model.rounds)
        for (int64_t i = 0; i < more.size(); ++i) to[i] = near(model, to[i]);
}

// [rows, sum of outputs] of several matrices side by side.
inline void multiply_all(
    const Model& model, const Matrix* matrices, int64_t count, const Buffer<float>& of, int64_t rows, Buffer<float>& found,
    Vectors& vectors, int64_t threads
) {
    int64_t whole = 0, from = 0;
    for (int64_t i = 0; i < count; ++i) whole += matrices[i].outputs;
    found.resize(rows * whole);
    vectors.aim(of.data(), rows, matrices[0].inputs);
    for (int64_t i = 0; i < count; from += matrices[i++].outputs) multiply(matrices[i], vectors, &found[from], whole, threads);
    round_all(model, found);
}

// Turns pairs of numbers of a head; with halves, the first of a pair is in the first half.
inline void turn(const Model& model, const RotaryTable& table, float* head, int64_t place) {
    const int64_t width = table.turned, half = width / 2;
    const float *cos = table.cos + (place - table.first) * width, *sin = table.sin + (place - table.first) * width;
    if (table.adjacent) {
        for (int64_t i = 0; i < width; i += 2) {
            const float first = head[i], second = head[i + 1];
            head[i] = near(model, first * cos[i]) + near(model, second * sin[i]);
            head[i + 1] = near(model, second * cos[i + 1]) + near(model, first * sin[i + 1]);
        }
        return;
    }
    for (int64_t i = 0; i < half; ++i) {
        const float first = head[i], second = head[i + half];
        head[i] = near(model, first * cos[i]) + near(model, second * sin[i]);
        head[i + half] = near(model, second * cos[i + half]) + near(model, first * sin[i + half]);
    }
}

inline void norm_heads(const Model& model, const Norm& norm, float* from, int64_t width) {
    if (norm.kind == NO_NORM) return;
    norm_row(norm, from, width, from);
    for (int64_t i = 0; i < width && model.rounds; ++i) from[i] = near(model, from[i]);
}

// A query head of a token's joined queries, keys and values.
inline float* query_of(const Model& model, float* token, int64_t head) {
    const int64_t group = model.heads / model.kv_heads;
    return token + head / group * model.layout.next_group + head % group * model.width;
}

// Queries and keys of one token, normed and turned to their places.
inline void place_heads(const Model& model, const Layer& layer, float* token, int64_t place) {
    const HeadLayout& layout = model.layout;
    if (layer.joint_heads) {
        norm_heads(model, layer.q_norm, token, model.heads * model.width);
        norm_heads(model, layer.k_norm, token + layout.keys, model.kv_heads * model.width);
    }
    for (int64_t head = 0; head < model.heads + model.kv_heads; ++head) {
        const bool is_query = head < model.heads;
        float* numbers = is_query ? query_of(model, token, head) : token + layout.keys + (head - model.heads) * layout.next_key;
        if (!layer.joint_heads) norm_heads(model, is_query ? layer.q_norm : layer.k_norm, numbers, model.width);
        if (layer.rope >= 0) turn(model, model.rotary[layer.rope], numbers, place);
    }
}

template <typename Kept>
void attend_all(const Model& model, const Layer& layer, int64_t number, const Pass& pass, Rooms& rooms) {
    const int64_t width = model.width, group = model.heads / model.kv_heads;
    const int64_t token = (model.heads + 2 * model.kv_heads) * width, rows = pass.texts * pass.count;
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t i = row % pass.count;
        place_heads(model, layer, &rooms.joined[row * token], pass.positions ? pass.positions[i] : pass.past + i);
    }
    round_all(model, rooms.joined);
    rooms.read.resize(rows * model.heads * width);
    for_each_part(pass.texts * model.kv_heads, pass.past > 256 ? pass.threads : 1, [&](int64_t head) {
        static thread_local Buffer<float> shares;
        static thread_local Buffer<Query> queries;
        const int64_t text = head / model.kv_heads, own = head % model.kv_heads, end = pass.past + pass.count;
        Kept* keys = moved<Kept>(pass.old_keys, pass.new_keys, number, head, model, pass);
        Kept* values = moved<Kept>(pass.old_values, pass.new_values, number, head, model, pass);
        float* joined = &rooms.joined[text * pass.count * token];
        for (int64_t i = 0; i < pass.count; ++i) {
            const float* kept = joined + i * token + own * model.layout.next_key;
            keep(keys + (pass.past + i) * width, kept + model.layout.keys, width);
            keep(values + (pass.past + i) * width, kept + model.layout.values, width);
        }
        shares.resize(QUERIES * end), queries.clear();
        for (int64_t i = 0; i < pass.count; ++i) {
            const int64_t last = end_of(pass, i), first = layer.window ? std::max<int64_t>(0, last - int64_t(layer.window)) : 0;
            const float* mask = pass.mask ? pass.mask + i * end : nullptr;
            for (int64_t query = own * group; query < (own + 1) * group; ++query)
                queries.push_back({query_of(model, joined + i * token, query), mask,
                                   model.key_bias ? model.key_bias + query * model.key_biases : nullptr, first, last,
                                   &rooms.read[((text * pass.count + i) * model.heads + query) * width],
                                   &shares[int64_t(queries.size()) % QUERIES * end]});
        }
        attend(queries, keys, values, width, Scoring{float(model.scaling), float(model.attention_cap)});
    });
    round_all(model, rooms.read);
}

// act(gate) · up where there is a gate, else act(up), [rows, width] of `wide`.
inline void activate(const Model& model, bool gated, int64_t rows, int64_t width, const Buffer<float>& wide, Buffer<float>& found) {
    found.resize(rows * width);
    for (int64_t row = 0; row < rows; ++row) {
        const float* from = &wide[row * width * (gated ? 2 : 1)];
        float* to = &found[row * width];
        for (int64_t i = 0; i < width; i += LANES) {
            float part[LANES] = {};
            const int64_t count = std::min(LANES, width - i);
            copy_items(from + i, count, part);
            store(part, bent(model.act, load(part)));
            copy_items<float>(part, count, to + i);
        }
    }
    if (gated) {
        round_all(model, found);
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t i = 0; i < width; ++i) found[row * width + i] *= wide[(2 * row + 1) * width + i];
    }
    round_all(model, found);
}

// Turns a token's outputs of the router into weights of the experts: their softmax, 0 for all but the likeliest.
inline void route(const Mixture& mixture, float* weights, Buffer<float>& left) {
    softmax(weights, mixture.experts);
    left.assign(weights, weights + mixture.experts);
    std::fill(weights, weights + mixture.experts, 0.0f);
    float total = 0;
    for (int64_t i = 0; i < mixture.chosen; ++i) {
        const int64_t best = std::max_element(left.begin(), left.end()) - left.begin();
        weights[best] = left[best], total += left[best], left[best] = -1.0f;
    }
    for (int64_t expert = 0; expert < mixture.experts && mixture.normalized; ++expert) weights[expert] /= total;
}

// The chosen experts' outputs, summed in the order of the experts, as the module does.
inline void mix_experts(const Model& model, const Layer& layer, const Buffer<float>& of, const Pass& pass, Rooms& rooms) {
    const Mixture& mixture = layer.mixture;
    const int64_t rows = pass.texts * pass.count, width = model.hidden;
    multiply_all(model, &mixture.router, 1, of, rows, rooms.routed, rooms.vectors, pass.threads);
    for (int64_t row = 0; row < rows; ++row) route(mixture, &rooms.routed[row * mixture.experts], rooms.left);
    rooms.spare.assign(rows * width, 0.0f);
    for (int64_t expert = 0; expert < mixture.experts; ++expert) {
        rooms.chosen.clear(), rooms.chosen_rows.clear();
        for (int64_t row = 0; row < rows; ++row) {
            if (rooms.routed[row * mixture.experts + expert] == 0) continue;
            rooms.chosen.push_back(row);
            rooms.chosen_rows.insert(rooms.chosen_rows.end(), &of[row * width], &of[row * width] + width);
        }
        const int64_t count = int64_t(rooms.chosen.size());
        if (count == 0) continue;
        const Matrix& down = mixture.down[expert];
        multiply_all(model, mixture.up + expert * layer.ups, layer.ups, rooms.chosen_rows, count, rooms.wide, rooms.vectors, pass.threads);
        activate(model, layer.gated, count, down.inputs, rooms.wide, rooms.gated);
        multiply_all(model, &down, 1, rooms.gated, count, rooms.expert_out, rooms.vectors, pass.threads);
        for (int64_t i = 0; i < count; ++i) {
            const float weight = near(model, rooms.routed[rooms.chosen[i] * mixture.experts + expert]);
            float* to = &rooms.spare[rooms.chosen[i] * width];
            for (int64_t j = 0; j < width; ++j) to[j] = near(model, to[j] + near(model, weight * rooms.expert_out[i * width + j]));
        }
    }
}

inline void attention_half(const Model& model, const Layer& layer, int64_t number, const Pass& pass, Rooms& rooms) {
    const int64_t rows = pass.texts * pass.count;
    norm_all(model, layer.norms_sums ? Norm{} : layer.norm, pass.hidden, rows, model.hidden, rooms.normed);
    multiply_all(model, layer.project, layer.projections, rooms.normed, rows, rooms.joined, rooms.vectors, pass.threads);
    if (model.rounds) attend_all<bfloat16>(model, layer, number, pass, rooms);
    else attend_all<float>(model, layer, number, pass, rooms);
    multiply_all(model, &layer.out, 1, rooms.read, rows, rooms.added, rooms.vectors, pass.threads);
    if (layer.norm_out.kind != NO_NORM) norm_all(model, layer.norm_out, Buffer<float>(rooms.added).data(), rows, model.hidden, rooms.added);
}

// Reads what the norm before attention gave where the halves are parallel and there is no second norm.
inline void thinking_half(const Model& model, const Layer& layer, const Pass& pass, Rooms& rooms) {
    const int64_t rows = pass.texts * pass.count;
    if (!layer.parallel || layer.norm_mlp.kind != NO_NORM)
        norm_all(model, layer.norms_sums ? Norm{} : layer.norm_mlp, pass.hidden, rows, model.hidden, rooms.normed);
    if (layer.mixture.experts) mix_experts(model, layer, rooms.normed, pass, rooms);
    else {
        multiply_all(model, layer.up, layer.ups, rooms.normed, rows, rooms.wide, rooms.vectors, pass.threads);
        activate(model, layer.gated, rows, layer.down.inputs, rooms.wide, rooms.gated);
        multiply_all(model, &layer.down, 1, rooms.gated, rows, rooms.spare, rooms.vectors, pass.threads);
    }
    if (layer.norm_mlp_out.kind != NO_NORM) norm_all(model, layer.norm_mlp_out, Buffer<float>(rooms.spare).data(), rows, model.hidden, rooms.spare);
}

// The residual addition of a half, and the norm of the sum where it comes after it.
inline void add_half(const Model& model, const Layer& layer, const Norm& norm, const Buffer<float>& more, const Pass& pass) {
    add(model, pass.hidden, more, layer.residual_scale);
    if (!layer.norms_sums) return;
    for (int64_t row = 0; row < pass.texts * pass.count; ++row)
        norm_heads(model, norm, pass.hidden + row * model.hidden, model.hidden);
}

inline void through(const Model& model, const Layer& layer, int64_t number, const Pass& pass, Rooms& rooms) {
    attention_half(model, layer, number, pass, rooms);
    if (!layer.parallel) add_half(model, layer, layer.norm, rooms.added, pass);
    thinking_half(model, layer, pass, rooms);
    if (layer.parallel) add(model, pass.hidden, rooms.added, layer.residual_scale);
    add_half(model, layer, layer.norm_mlp, rooms.spare, pass);
}

// Logits [count], rounded, scaled and capped.
inline void finish_logits(const Model& model, float* logits, int64_t count) {
    if (model.rounds)
        for (int64_t i = 0; i < count; ++i) logits[i] = near(model, logits[i]);
    if (model.logit_scale != 1.0)
        for (int64_t i = 0; i < count; ++i) logits[i] = near(model, logits[i] * float(model.logit_scale));
    if (model.logit_cap != 0.0) cap_all(logits, count, float(model.logit_cap));
}

inline void score(const Model& model, const Pass& pass, Rooms& rooms) {
    rooms.last.resize(pass.texts * pass.keep * model.hidden);
    for (int64_t text = 0; text < pass.texts; ++text)
        copy_items(pass.hidden + ((text + 1) * pass.count - pass.keep) * model.hidden, pass.keep * model.hidden,
                   &rooms.last[text * pass.keep * model.hidden]);
    const int64_t rows = pass.texts * pass.keep;
    norm_all(model, model.norm, rooms.last.data(), rows, model.hidden, rooms.normed);
    const bool is_narrow = model.narrow.outputs > 0;
    if (is_narrow) multiply_all(model, &model.narrow, 1, rooms.normed, rows, rooms.spare, rooms.vectors, pass.threads);
    rooms.vectors.aim((is_narrow ? rooms.spare : rooms.normed).data(), rows, model.head.inputs);
    multiply(model.head, rooms.vectors, pass.logits, model.head.outputs, pass.threads);
    const int64_t part = 4096, count = rows * model.head.outputs;
    for_each_part((count + part - 1) / part, model.rounds || model.logit_cap != 0.0 ? pass.threads : 1, [&](int64_t number) {
        finish_logits(model, pass.logits + number * part, std::min(part, count - number * part));
    });
}
