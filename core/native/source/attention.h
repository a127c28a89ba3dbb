// Queries on keys, weights on values: one new token's head at a time, numerically as softmax(q kᵀ · scale) v.
#pragma once

#include "activations.h"

template <typename Kept>
inline float product(const float* query, const Kept* key, int64_t width) {
    Lanes sums = {};
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES) sums += load(query + i) * load(key + i);
    float rest = 0;
    for (; i < width; ++i) rest += query[i] * one(key + i);
    return sum(sums) + rest;
}

// The same of all keys [count, width].
template <typename Kept>
inline void products_of(const float* query, const Kept* keys, int64_t count, int64_t width, float* found) {
    int64_t place = 0;
    for (; width % LANES == 0 && place + 4 <= count; place += 4, keys += 4 * width) {
        Lanes sums[4] = {};
        for (int64_t i = 0; i < width; i += LANES)
            for (int64_t key = 0; key < 4; ++key) sums[key] += load(query + i) * load(keys + key * width + i);
        sum_four(sums[0], sums[1], sums[2], sums[3], found + place);
    }
    for (; place < count; ++place, keys += width) found[place] = product(query, keys, width);
}

// In place; the sum of all is 1.
inline void softmax(float* values, int64_t count) {
    const float most = greatest(values, count);
    Lanes sums = {};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        const Lanes shares = power(load(values + i) - all(most));
        store(values + i, shares);
        sums += shares;
    }
    if (i < count) {    // at once as well: one power takes as long as LANES of them
        float last[LANES];
        for (int64_t j = 0; j < LANES; ++j) last[j] = i + j < count ? values[i + j] : -INFINITY;
        const Lanes shares = power(load(last) - all(most));
        store(last, shares);
        std::copy(last, last + (count - i), values + i);
        sums += shares;
    }
    const float scale = 1.0f / sum(sums);
    for (i = 0; i < count; ++i) values[i] *= scale;
}

constexpr float HIDDEN = -1e30f;    // what a mask holds there, or less

constexpr int64_t QUERIES = 4;             // of one head at a time: they share what is loaded of keys and values
constexpr int64_t SOME = 64;               // keys at a time: the first query's are still in the nearest cache for the next

// What becomes of the products of queries and keys: cap · tanh(x · scaling / cap), uncapped if cap is 0.
struct Scoring {
    float scaling, cap;
};

// One query [width], what it may see, and where what it reads goes; `mask` and `bias` [last], both added, may be null.
struct Query {
    const float* query;
    const float* mask;
    const float* bias;
    int64_t first, last;
    float* read;
    float* shares;                      // [places]; behind `attend` also outside of what it sees, 0 there
};

// Sums of values' numbers, `LONG` times LANES of them, places `from` to `to`, weighed; of those without weight nothing
// need have been written.
template <int64_t count, int64_t LONG, typename Kept>
inline void weigh(const Kept* values, const Query* queries, int64_t from, int64_t to, int64_t width, int64_t start) {
    Lanes sums[count][LONG] = {};
    for (int64_t place = from; place < to; ++place) {
        const Kept* value = values + place * width + start;
        bool counts = false;
        for (int64_t query = 0; query < count; ++query) counts |= queries[query].shares[place] != 0.0f;
        if (!counts) continue;
        Lanes parts[LONG];
        for (int64_t i = 0; i < LONG; ++i) parts[i] = load(value + i * LANES);
        for (int64_t query = 0; query < count; ++query)
            for (int64_t i = 0; i < LONG; ++i) sums[query][i] += all(queries[query].shares[place]) * parts[i];
    }
    for (int64_t query = 0; query < count; ++query)
        for (int64_t i = 0; i < LONG; ++i) store(queries[query].read + start + i * LANES, sums[query][i]);
}

// Shares of what one query sees: its products, scaled, capped, masked, through softmax.
inline void share_out(const Query& query, const Scoring& scoring) {
    const int64_t count = query.last - query.first;
    float* shares = query.shares + query.first;
    for (int64_t place = 0; place < count; ++place) shares[place] *= scoring.scaling;
    if (scoring.cap != 0.0f) cap_all(shares, count, scoring.cap);
    if (query.bias != nullptr)
        for (int64_t place = 0; place < count; ++place) shares[place] += query.bias[query.first + place];
    if (query.mask != nullptr)
        for (int64_t place = 0; place < count; ++place) {
            const float more = query.mask[query.first + place];
            shares[place] = more < HIDDEN ? -INFINITY : shares[place] + more;
        }
    softmax(shares, count);
}

// What `count` queries read of one head's keys and values [tokens, width]; each gets, to the last bit, what it would get
// alone.
template <int64_t count, typename Kept>
inline void attend(const Query* queries, const Kept* keys, const Kept* values, int64_t width, const Scoring& scoring) {
    int64_t from = queries[0].first, to = queries[0].last;
    for (const Query* query = queries; query < queries + count; ++query)
        from = std::min(from, query->first), to = std::max(to, query->last);
    for (int64_t near = from; near < to; near += SOME)
        for (const Query* query = queries; query < queries + count; ++query) {
            const int64_t first = std::max(near, query->first), last = std::min(near + SOME, query->last);
            if (first < last) products_of(query->query, keys + first * width, last - first, width, query->shares + first);
        }
    for (const Query* query = queries; query < queries + count; ++query) {
        share_out(*query, scoring);
        std::fill(query->shares + from, query->shares + query->first, 0.0f);
        std::fill(query->shares + query->last, query->shares + to, 0.0f);
    }
    int64_t i = 0;
    if (count == 1)
        for (; i + 4 * LANES <= width; i += 4 * LANES) weigh<count, 4>(values, queries, from, to, width, i);
    for (; i + 2 * LANES <= width; i += 2 * LANES) weigh<count, 2>(values, queries, from, to, width, i);
    for (; i + LANES <= width; i += LANES) weigh<count, 1>(values, queries, from, to, width, i);
    for (; i < width; ++i)
        for (const Query* query = queries; query < queries + count; ++query) {
            float read = 0;
            for (int64_t place = query->first; place < query->last; ++place)
                if (query->shares[place] != 0.0f) read += query->shares[place] * one(values + place * width + i);
            query->read[i] = read;
        }
}

template <typename Kept>
inline void attend(const Buffer<Query>& queries, const Kept* keys, const Kept* values, int64_t width, const Scoring& scoring) {
    const int64_t count = int64_t(queries.size());
    int64_t i = 0;
    for (; i + QUERIES <= count; i += QUERIES) attend<QUERIES>(&queries[i], keys, values, width, scoring);
    if (count - i == 3) attend<3>(&queries[i], keys, values, width, scoring);
    if (count - i == 2) attend<2>(&queries[i], keys, values, width, scoring);
    if (count - i == 1) attend<1>(&queries[i], keys, values, width, scoring);
}

// One more than the last place that a token sees.
inline int64_t end_of(const Pass& pass, int64_t token) {
    if (pass.mask == nullptr) return pass.past + token + 1;
    const float* mask = pass.mask + token * (pass.past + pass.count);
    int64_t last = pass.past + pass.count;
    while (last > 1 && mask[last - 1] < HIDDEN) --last;
    return last;
}

inline void keep(float* place, const float* values, int64_t count) { copy_items(values, count, place); }

inline void keep(bfloat16* place, const float* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) place[i] = nearest(values[i]);
}

// Keys or values of one head: what was there moves to its new place, where it has one.
template <typename Kept>
inline Kept* moved(void* const* old_store, void* const* new_store, int64_t layer, int64_t head, const Model& model, const Pass& pass) {
    const Kept* from = static_cast<const Kept*>(old_store[layer]) + head * pass.old_capacities[layer] * model.width;
    Kept* to = static_cast<Kept*>(new_store[layer]) + head * pass.new_capacities[layer] * model.width;
    if (from != to) copy_items(from, pass.past * model.width, to);
    return to;
}
