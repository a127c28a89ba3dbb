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

// What a query [width] reads of keys and values [tokens, width], places `first` to `last`; `mask` [last] may be null.
template <typename Kept>
inline void attend(
    const float* query, const Kept* keys, const Kept* values, long width, long first, long last, const float* mask,
    float scaling, std::vector<float>& shares, float* read
) {
    shares.resize(last);
    for (long place = first; place < last; ++place) {
        const bool hidden = mask != nullptr && mask[place] < HIDDEN;  // nothing need have been written there
        shares[place] = hidden ? -INFINITY : product(query, keys + place * width, width) * scaling;
        if (mask != nullptr && !hidden) shares[place] += mask[place];
    }
    softmax(shares.data() + first, last - first);
    std::fill(read, read + width, 0.0f);
    for (long place = first; place < last; ++place) {
        if (shares[place] == 0.0f) continue;
        const Kept* value = values + place * width;
        const Lanes share = all(shares[place]);
        long i = 0;
        for (; i + LANES <= width; i += LANES) store(read + i, load(read + i) + share * load(value + i));
        for (; i < width; ++i) read[i] += shares[place] * one(value + i);
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
