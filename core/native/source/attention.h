// Queries on keys, weights on values: one new token's head at a time, numerically as softmax(q kᵀ · scale) v.
#pragma once
#include <vector>

#include "lanes.h"
#include "parts.h"

template <typename Kept>
inline float product(const float* query, const Kept* key, long width) {
    Lanes sums = {};
    long i = 0;
    for (; i + LANES <= width; i += LANES) sums += load(query + i) * load(key + i);
    float rest = 0;
    for (; i < width; ++i) rest += query[i] * one(key + i);
    return sum(sums) + rest;
}

// The same of all keys [count, width].
template <typename Kept>
inline void products_of(const float* query, const Kept* keys, long count, long width, float* found) {
    long place = 0;
    for (; width % LANES == 0 && place + 4 <= count; place += 4, keys += 4 * width) {
        Lanes sums[4] = {};
        for (long i = 0; i < width; i += LANES)
            for (long key = 0; key < 4; ++key) sums[key] += load(query + i) * load(keys + key * width + i);
        sum_four(sums[0], sums[1], sums[2], sums[3], found + place);
    }
    for (; place < count; ++place, keys += width) found[place] = product(query, keys, width);
}

// In place; the sum of all is 1.
inline void softmax(float* values, long count) {
    const float most = greatest(values, count);
    Lanes sums = {};
    long i = 0;
    float total = 0;
    for (; i + LANES <= count; i += LANES) {
        const Lanes shares = power(load(values + i) - all(most));
        store(values + i, shares);
        sums += shares;
    }
    for (; i < count; ++i) total += values[i] = power(values[i] - most);
    const float scale = 1.0f / (total + sum(sums));
    for (i = 0; i < count; ++i) values[i] *= scale;
}

constexpr float HIDDEN = -1e30f;    // what a mask holds there, or less

// Sums of `count` values' numbers, `LANES` times `LONG` of them, weighed; of those without weight nothing need have been
// written.
template <long LONG, typename Kept>
inline void weigh(const Kept* values, const float* shares, long count, long width, float* read) {
    Lanes sums[LONG] = {};
    for (long place = 0; place < count; ++place, values += width) {
        if (shares[place] == 0.0f) continue;
        for (long i = 0; i < LONG; ++i) sums[i] += all(shares[place]) * load(values + i * LANES);
    }
    for (long i = 0; i < LONG; ++i) store(read + i * LANES, sums[i]);
}

// What a query [width] reads of keys and values [tokens, width], places `first` to `last`; `mask` [last] may be null.
template <typename Kept>
inline void attend(
    const float* query, const Kept* keys, const Kept* values, long width, long first, long last, const float* mask,
    float scaling, std::vector<float>& room, float* read
) {
    const long count = last - first;
    room.resize(last);
    float* shares = room.data() + first;
    products_of(query, keys + first * width, count, width, shares);
    for (long place = 0; place < count; ++place) shares[place] *= scaling;
    if (mask != nullptr)
        for (long place = 0; place < count; ++place) {
            const float more = mask[first + place];
            shares[place] = more < HIDDEN ? -INFINITY : shares[place] + more;
        }
    softmax(shares, count);
    values += first * width;
    long i = 0;
    for (; i + 4 * LANES <= width; i += 4 * LANES) weigh<4>(values + i, shares, count, width, read + i);
    for (; i + 2 * LANES <= width; i += 2 * LANES) weigh<2>(values + i, shares, count, width, read + i);
    for (; i + LANES <= width; i += LANES) weigh<1>(values + i, shares, count, width, read + i);
    for (; i < width; ++i) {
        read[i] = 0;
        for (long place = 0; place < count; ++place)
            if (shares[place] != 0.0f) read[i] += shares[place] * one(values + place * width + i);
    }
}

// One more than the last place that a token sees.
inline long end_of(const Pass& pass, long token) {
    if (pass.mask == nullptr) return pass.past + token + 1;
    const float* mask = pass.mask + token * (pass.past + pass.count);
    long last = pass.past + pass.count;
    while (last > 1 && mask[last - 1] < HIDDEN) --last;
    return last;
}

inline void keep(float* place, const float* values, long count) { std::memcpy(place, values, count * sizeof(float)); }

inline void keep(bfloat16* place, const float* values, long count) {
    for (long i = 0; i < count; ++i) place[i] = nearest(values[i]);
}

// Keys or values of one head: what was there moves to its new place, where it has one.
template <typename Kept>
inline Kept* moved(void* const* old_store, void* const* new_store, long layer, long head, const Model& model, const Pass& pass) {
    const Kept* from = static_cast<const Kept*>(old_store[layer]) + head * pass.old_places[layer] * model.width;
    Kept* to = static_cast<Kept*>(new_store[layer]) + head * pass.new_places[layer] * model.width;
    if (from != to) std::memcpy(to, from, pass.past * model.width * sizeof(Kept));
    return to;
}
