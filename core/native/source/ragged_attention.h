// Attention over many tokens of several texts, each after its prefix of a cached text: the part
// between the matrix products (matmul_panels.h).
#pragma once
#include "matmul_panels.h"
#include "decode_step.h"

constexpr int64_t BLOCK = 2 * LANES;       // keys, or numbers of a value, at a time

struct RaggedAttention {
    int64_t heads, kv_heads, width;     // width: a multiple of BLOCK
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

struct Four {
    const float* queries[QUERIES];
    float* shares[QUERIES];
};

// Keys and values that many queries read: keys [width, padded], values [count, width] with `stride` between them.
struct Text {
    Buffer<float> keys;
    const float* values;
    int64_t padded, stride;

    void take(const float* from, const float* values_from, int64_t count, int64_t apart, int64_t width) {
        padded = (count + BLOCK - 1) / BLOCK * BLOCK, stride = apart, values = values_from;
        keys.resize(width * padded);
        lay_as_columns(from, apart, count, width, keys.data(), padded);
    }
};

// Scores on `tiles` times LANES keys from place `start` on.
template <int64_t tiles>
inline void score_some(const Four& four, const Text& text, int64_t start, int64_t width, float scaling, int64_t from) {
    Lanes sums[QUERIES][tiles] = {};
    const float* keys = text.keys.data() + start;
    for (int64_t i = 0; i < width; ++i, keys += text.padded)
        for (int64_t tile = 0; tile < tiles; ++tile) {
            const Lanes key = load(keys + tile * LANES);
            for (int64_t query = 0; query < QUERIES; ++query) sums[query][tile] += all(four.queries[query][i]) * key;
        }
    for (int64_t query = 0; query < QUERIES; ++query)
        for (int64_t tile = 0; tile < tiles; ++tile)
            store(four.shares[query] + from + start + tile * LANES, sums[query][tile] * all(scaling));
}

// Writes up to LANES - 1 numbers behind the last.
inline void score_four(const Four& four, const Text& text, int64_t count, int64_t width, float scaling, int64_t from) {
    int64_t start = 0;
    for (; start + LANES < count; start += BLOCK) score_some<2>(four, text, start, width, scaling, from);
    if (start < count) score_some<1>(four, text, start, width, scaling, from);
}

inline void read_four(const Four& four, const Text& text, int64_t count, int64_t from, int64_t start, Lanes (&sums)[QUERIES][2]) {
    const float* value = text.values + start;
    for (int64_t place = 0; place < count; ++place, value += text.stride) {
        const Lanes first = load(value), second = load(value + LANES);
        for (int64_t query = 0; query < QUERIES; ++query) {
            const Lanes share = all(four.shares[query][from + place]);
            sums[query][0] += share * first, sums[query][1] += share * second;
        }
    }
}

inline void turn_to(const RaggedAttention& pass, const Norm& norm, float* __restrict head, int64_t place) {
    const int64_t width = pass.width, half = width / 2;
    const float* __restrict cos = pass.cos + place * width;
    const float* __restrict sin = pass.sin + place * width;
    if (norm.kind != NO_NORM) norm_row(norm, head, width, head);
    for (int64_t i = 0; i < half; ++i) {
        const float first = head[i], second = head[i + half];
        head[i] = first * cos[i] + second * sin[i];
        head[i + half] = second * cos[i + half] + first * sin[i + half];
    }
}

// Up to four queries of one text's head, behind `kept` tokens; `own`: places of the queries in the text.
inline void attend_four(
    const RaggedAttention& pass, const Four& four, const int64_t* own, const Text& before, int64_t kept, const Text& text, float* const* to
) {
    const int64_t most = *std::max_element(own, own + QUERIES) + 1;
    score_four(four, before, kept, pass.width, float(pass.scaling), 0);
    score_four(four, text, most, pass.width, float(pass.scaling), kept);
    for (int64_t query = 0; query < QUERIES; ++query) {
        const int64_t sees = kept + own[query] + 1;
        softmax(four.shares[query], sees);
        std::fill(four.shares[query] + sees, four.shares[query] + kept + most, 0.0f);
    }
    for (int64_t start = 0; start < pass.width; start += BLOCK) {
        Lanes sums[QUERIES][2] = {};
        read_four(four, before, kept, 0, start, sums), read_four(four, text, most, kept, start, sums);
        for (int64_t query = 0; query < QUERIES; ++query)
            store(to[query] + start, sums[query][0]), store(to[query] + start + LANES, sums[query][1]);
    }
}

struct Room {
    Text before, text;
    Buffer<float> shares;
};

// Every query of a kv head's group over one text; `row` is its first token among all of the pass.
inline void attend_text(const RaggedAttention& pass, int64_t head, int64_t number, int64_t row, Room& room) {
    const int64_t width = pass.width, group = pass.heads / pass.kv_heads, token = (pass.heads + 2 * pass.kv_heads) * width;
    const int64_t count = pass.counts[number], kept = pass.prefix_lengths[number], first = pass.last_only ? count - 1 : 0;
    const float* joined = pass.joined + row * token;
    room.text.take(joined + (pass.heads + head) * width, joined + (pass.heads + pass.kv_heads + head) * width, count, token, width);
    const int64_t space = kept + count + 2 * BLOCK;
    room.shares.resize(QUERIES * space);
    for (int64_t query = head * group; query < (head + 1) * group; ++query)
        for (int64_t begin = first; begin < count; begin += QUERIES) {
            Four four;
            int64_t own[QUERIES];
            float* to[QUERIES];
            for (int64_t i = 0; i < QUERIES; ++i) {    // the last one again, where there are less
                own[i] = std::min(begin + i, count - 1);
                four.queries[i] = joined + own[i] * token + query * width;
                four.shares[i] = &room.shares[i * space];
                to[i] = pass.read + ((pass.last_only ? number : row + own[i]) * pass.heads + query) * width;
            }
            attend_four(pass, four, own, room.before, kept, room.text, to);
        }
}

inline void attend_ragged(const RaggedAttention& pass) {
    const int64_t width = pass.width, token = (pass.heads + 2 * pass.kv_heads) * width;
    const int64_t most = pass.texts ? *std::max_element(pass.prefix_lengths, pass.prefix_lengths + pass.texts) : 0;
    for_each_part(pass.kv_heads, pass.threads, [&](int64_t head) {
        static thread_local Room room;
        const int64_t group = pass.heads / pass.kv_heads, from = head * pass.capacity * width;
        room.before.take(pass.keys + from, pass.values + from, most, width, width);
        for (int64_t number = 0, row = 0; number < pass.texts; row += pass.counts[number++]) {
            for (int64_t i = 0; i < pass.counts[number]; ++i) {
                float* numbers = pass.joined + (row + i) * token;
                for (int64_t query = head * group; query < (head + 1) * group; ++query)
                    turn_to(pass, pass.q_norm, numbers + query * width, pass.prefix_lengths[number] + i);
                turn_to(pass, pass.k_norm, numbers + (pass.heads + head) * width, pass.prefix_lengths[number] + i);
            }
            attend_text(pass, head, number, row, room);
        }
    });
}

// Of scores [count]: the place of the greatest, its share, the share of `chosen` and its rank, one number each.
inline void write_choice(const float* scores, int64_t count, int64_t chosen, float* found) {
    const float most = greatest(scores, count), own = scores[chosen];
    Lanes sums = {};
    Whole higher = {};
    float total = 0;
    int64_t i = 0, rank = 1;
    for (; i + LANES <= count; i += LANES) {
        const Lanes some = load(scores + i);
        sums += power(some - all(most));
        higher -= some > all(own);
    }
    for (; i < count; ++i) total += power(scores[i] - most), rank += scores[i] > own;
    for (int64_t lane = 0; lane < LANES; ++lane) rank += higher[lane];
    total += sum(sums);
    const float* first = std::find(scores, scores + count, most);
    found[0] = float(first == scores + count ? 0 : first - scores), found[1] = power(0.0f) / total;
    found[2] = power(own - most) / total, found[3] = float(rank);
}
