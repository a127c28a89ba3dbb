// A pass of a few tokens through a decoder: the operations of its module in their order.
#pragma once
#include "activations.h"
#include "attention.h"
#include "matmul_blocks.h"
#include "matmul_int4.h"
#include "matmul_int8.h"
#include "matmul_panels.h"

// A matrix of any kind times a few vectors.

template <typename Weight>
inline void floats_of(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    if (matrix.in_panels) through_panels<Weight>(matrix, of.values, of.rows, found, apart, begin, end);
    else floats<Weight>(matrix, of, found, apart, begin, end);
}

// down x [rows, rank] of every part of the outputs that adapters change, one after another.
inline void compress(const Matrix& matrix, const Vectors& of, std::vector<float>& found) {
    long whole = 0, from = 0;
    for (long i = 0; i < matrix.low_ranks; ++i) whole += matrix.low_rank[i].rank;
    found.resize(of.rows * whole);
    for (long i = 0; i < matrix.low_ranks; ++i) {
        const LowRank& part = matrix.low_rank[i];
        const Matrix down = {FLOAT32, part.rank, matrix.inputs, part.down, nullptr, nullptr, nullptr, 0, 0, nullptr};
        floats<float>(down, of, &found[from], part.rank, 0, part.rank);
        from += of.rows * part.rank;
    }
}

// What adapters change of the outputs from `begin` to `end`, which lack the bias of the matrix. The sums have the same
// order for any number of rows.
inline void adapt(const Matrix& matrix, const float* low, long rows, float* found, long apart, long begin, long end) {
    for (long i = 0; i < matrix.low_ranks; ++i) {
        const LowRank& part = matrix.low_rank[i];
        const long first = std::max(begin, long(part.first)), last = std::min(end, long(part.first + part.outputs));
        for (long row = 0; row < rows && first < last; ++row) {
            float* __restrict to = found + row * apart;
            const long own = part.first;
            if (part.rank && part.gain != nullptr)
                for (long output = first; output < last; ++output) to[output] *= part.gain[output - own];
            for (long number = 0; number < part.rank; ++number) {
                const float factor = low[row * part.rank + number];
                const float* __restrict up = part.up + number * part.outputs;
                for (long output = first; output < last; ++output) to[output] = multiply_add(factor, up[output - own], to[output]);
            }
            if (part.rank && part.bias != nullptr)
                for (long output = first; output < last; ++output) to[output] += part.bias[output - own];
        }
        low += rows * part.rank;
    }
}

// found[row · apart + output] for every output of the matrix.
inline void multiply(const Matrix& matrix, Vectors& of, float* found, long apart, long threads) {
    if (matrix.kind == INT8) SHIFT ? of.shift() : of.join();
    if (matrix.kind == INT4) of.deal();
    if (matrix.kind >= BLOCK_KINDS) of.quantize_blocks(threads);
    static thread_local std::vector<float> compressed;
    if (matrix.low_ranks) compress(matrix, of, compressed);
    const float* low = compressed.data();
    const long block = matrix.in_panels ? BESIDE * PANEL : 64, blocks = (matrix.outputs + block - 1) / block;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && matrix.outputs * matrix.inputs > 100000)
    for (long part = 0; part < blocks; ++part) {
        const long begin = part * block, end = std::min(begin + block, long(matrix.outputs));
        if (matrix.kind == FLOAT32) floats_of<float>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == BFLOAT16) floats_of<bfloat16>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == FLOAT16) floats_of<float16>(matrix, of, found, apart, begin, end);
        else if (matrix.kind >= BLOCK_KINDS) multiply_blocks(matrix, of.blocks, found, apart, begin, end);
        else if (matrix.kind == INT4) fours(matrix, of, found, apart, begin, end);
        else if (SHIFT) shifted(matrix, of, found, apart, begin, end);
        else eights(matrix, of, found, apart, begin, end);
        if (matrix.low_ranks) adapt(matrix, low, of.rows, found, apart, begin, end);
        if (matrix.bias != nullptr)
            for (long row = 0; row < of.rows; ++row)
                for (long output = begin; output < end; ++output) found[row * apart + output] += matrix.bias[output];
    }
}

struct Rooms {
    std::vector<float> normed, joined, read, added, wide, gated, spare, last;
    Vectors vectors;
};

inline void round_all(const Model& model, std::vector<float>& values) {
    if (model.rounds)
        for (float& value : values) {
            const bfloat16 near = nearest(value);
            value = one(&near);
        }
}

inline void norm_row(const Norm& norm, const float* from, long width, float* to) {
    float mean = 0, squares = 0;
    if (norm.kind == LAYER_NORM) {
        for (long i = 0; i < width; ++i) mean += from[i];
        mean /= float(width);
    }
    Lanes sums = {};
    long i = 0;
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

inline void norm_all(const Model& model, const Norm& norm, const float* from, long rows, long width, std::vector<float>& to) {
    to.resize(rows * width);
    for (long row = 0; row < rows; ++row) norm_row(norm, from + row * width, width, &to[row * width]);
    round_all(model, to);
}

inline void add(const Model& model, float* to, const std::vector<float>& more) {
    for (size_t i = 0; i < more.size(); ++i) to[i] += more[i];
    if (model.rounds)
        for (size_t i = 0; i < more.size(); ++i) {
            const bfloat16 near = nearest(to[i]);
            to[i] = one(&near);
        }
}

// [rows, sum of outputs] of several matrices side by side.
inline void multiply_all(
    const Model& model, const Matrix* matrices, long count, const std::vector<float>& of, long rows, std::vector<float>& found,
    Vectors& vectors, long threads
) {
    long whole = 0, from = 0;
    for (long i = 0; i < count; ++i) whole += matrices[i].outputs;
    found.resize(rows * whole);
    vectors.aim(of.data(), rows, matrices[0].inputs);
    for (long i = 0; i < count; from += matrices[i++].outputs) multiply(matrices[i], vectors, &found[from], whole, threads);
    round_all(model, found);
}

inline float near(const Model& model, float value) {
    if (!model.rounds) return value;
    const bfloat16 kept = nearest(value);
    return one(&kept);
}

inline void turn(const Model& model, const Layer& layer, float* head, long place) {
    const long width = layer.turned, half = width / 2;
    const float *cos = layer.cos + place * width, *sin = layer.sin + place * width;
    for (long i = 0; i < half; ++i) {
        const float first = head[i], second = head[i + half];
        head[i] = near(model, first * cos[i]) + near(model, second * sin[i]);
        head[i + half] = near(model, second * cos[i + half]) + near(model, first * sin[i + half]);
    }
}

// Queries and keys of one token, normed and turned to their places.
inline void place_heads(const Model& model, const Layer& layer, float* token, long place) {
    for (long head = 0; head < model.heads + model.kv_heads; ++head) {
        float* numbers = token + head * model.width;
        const Norm& norm = head < model.heads ? layer.q_norm : layer.k_norm;
        if (norm.kind != NO_NORM) norm_row(norm, numbers, model.width, numbers);
        if (layer.turned) turn(model, layer, numbers, place);
    }
}

template <typename Kept>
void attend_all(const Model& model, const Layer& layer, long number, const Pass& pass, Rooms& rooms) {
    const long width = model.width, group = model.heads / model.kv_heads;
    const long token = (model.heads + 2 * model.kv_heads) * width, rows = pass.texts * pass.count;
    for (long row = 0; row < rows; ++row) {
        const long i = row % pass.count;
        place_heads(model, layer, &rooms.joined[row * token], pass.positions ? pass.positions[i] : pass.past + i);
    }
    round_all(model, rooms.joined);
    rooms.read.resize(rows * model.heads * width);
    #pragma omp parallel for schedule(static) num_threads(pass.threads) if (pass.threads > 1 && pass.past > 256)
    for (long head = 0; head < pass.texts * model.kv_heads; ++head) {
        static thread_local std::vector<float> shares;
        static thread_local std::vector<Query> queries;
        const long text = head / model.kv_heads, own = head % model.kv_heads, end = pass.past + pass.count;
        Kept* keys = moved<Kept>(pass.old_keys, pass.new_keys, number, head, model, pass);
        Kept* values = moved<Kept>(pass.old_values, pass.new_values, number, head, model, pass);
        const float* joined = &rooms.joined[text * pass.count * token];
        for (long i = 0; i < pass.count; ++i) {
            keep(keys + (pass.past + i) * width, joined + i * token + (model.heads + own) * width, width);
            keep(values + (pass.past + i) * width, joined + i * token + (model.heads + model.kv_heads + own) * width, width);
        }
        shares.resize(QUERIES * end), queries.clear();
        for (long i = 0; i < pass.count; ++i) {
            const long last = end_of(pass, i), first = layer.window ? std::max(0L, last - long(layer.window)) : 0;
            const float* mask = pass.mask ? pass.mask + i * end : nullptr;
            for (long query = own * group; query < (own + 1) * group; ++query)
                queries.push_back({joined + i * token + query * width, mask, first, last,
                                   &rooms.read[((text * pass.count + i) * model.heads + query) * width],
                                   &shares[long(queries.size()) % QUERIES * end]});
        }
        attend(queries, keys, values, width, float(model.scaling));
    }
    round_all(model, rooms.read);
}

// act(gate) · up where there is a gate, else act(up).
inline void activate(const Model& model, const Layer& layer, long rows, Rooms& rooms) {
    const long width = layer.down.inputs;
    rooms.gated.resize(rows * width);
    for (long row = 0; row < rows; ++row) {
        const float* from = &rooms.wide[row * width * (layer.gated ? 2 : 1)];
        float* to = &rooms.gated[row * width];
        for (long i = 0; i < width; i += LANES) {
            float part[LANES] = {};
            const long count = std::min(LANES, width - i);
            std::memcpy(part, from + i, count * sizeof(float));
            store(part, bent(model.act, load(part)));
            std::memcpy(to + i, part, count * sizeof(float));
        }
    }
    if (layer.gated) {
        round_all(model, rooms.gated);
        for (long row = 0; row < rows; ++row)
            for (long i = 0; i < width; ++i) rooms.gated[row * width + i] *= rooms.wide[(2 * row + 1) * width + i];
    }
    round_all(model, rooms.gated);
}

inline void attention_half(const Model& model, const Layer& layer, long number, const Pass& pass, Rooms& rooms) {
    const long rows = pass.texts * pass.count;
    norm_all(model, layer.norm, pass.hidden, rows, model.hidden, rooms.normed);
    multiply_all(model, layer.project, layer.projections, rooms.normed, rows, rooms.joined, rooms.vectors, pass.threads);
    if (model.rounds) attend_all<bfloat16>(model, layer, number, pass, rooms);
    else attend_all<float>(model, layer, number, pass, rooms);
    multiply_all(model, &layer.out, 1, rooms.read, rows, rooms.added, rooms.vectors, pass.threads);
    if (layer.norm_out.kind != NO_NORM) norm_all(model, layer.norm_out, std::vector<float>(rooms.added).data(), rows, model.hidden, rooms.added);
}

inline void thinking_half(const Model& model, const Layer& layer, const Pass& pass, Rooms& rooms) {
    const long rows = pass.texts * pass.count;
    norm_all(model, layer.norm_mlp, pass.hidden, rows, model.hidden, rooms.normed);
    multiply_all(model, layer.up, layer.ups, rooms.normed, rows, rooms.wide, rooms.vectors, pass.threads);
    activate(model, layer, rows, rooms);
    multiply_all(model, &layer.down, 1, rooms.gated, rows, rooms.spare, rooms.vectors, pass.threads);
    if (layer.norm_mlp_out.kind != NO_NORM) norm_all(model, layer.norm_mlp_out, std::vector<float>(rooms.spare).data(), rows, model.hidden, rooms.spare);
}

inline void through(const Model& model, const Layer& layer, long number, const Pass& pass, Rooms& rooms) {
    attention_half(model, layer, number, pass, rooms);
    if (!layer.parallel) add(model, pass.hidden, rooms.added);
    thinking_half(model, layer, pass, rooms);
    if (layer.parallel) add(model, pass.hidden, rooms.added);
    add(model, pass.hidden, rooms.spare);
}

inline void score(const Model& model, const Pass& pass, Rooms& rooms) {
    rooms.last.resize(pass.texts * pass.keep * model.hidden);
    for (long text = 0; text < pass.texts; ++text)
        std::memcpy(&rooms.last[text * pass.keep * model.hidden],
                    pass.hidden + ((text + 1) * pass.count - pass.keep) * model.hidden,
                    pass.keep * model.hidden * sizeof(float));
    const long rows = pass.texts * pass.keep;
    norm_all(model, model.norm, rooms.last.data(), rows, model.hidden, rooms.normed);
    rooms.vectors.aim(rooms.normed.data(), rows, model.hidden);
    multiply(model.head, rooms.vectors, pass.logits, model.head.outputs, pass.threads);
    for (long i = 0; i < rows * model.head.outputs; ++i) {
        if (model.rounds) {
            const bfloat16 near = nearest(pass.logits[i]);
            pass.logits[i] = one(&near);
        }
        if (model.logit_cap != 0) pass.logits[i] = float(model.logit_cap) * std::tanh(pass.logits[i] / float(model.logit_cap));
    }
}
