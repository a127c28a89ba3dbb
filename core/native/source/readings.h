// What a step looked like: figures of distributions over a vocabulary, as core/decoding/observe.py reads them.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "attention.h"
#include "lanes.h"

// log softmax of [count].
inline void log_softmax(const float* from, long count, float* to) {
    const float most = greatest(from, count);
    Lanes sums = {};
    float total = 0;
    long i = 0;
    for (; i + LANES <= count; i += LANES) sums += power(load(from + i) - all(most));
    for (; i < count; ++i) total += power(from[i] - most);
    const float less = most + std::log(total + sum(sums));
    for (i = 0; i < count; ++i) to[i] = from[i] - less;
}

inline void exp_all(const float* from, long count, float* to) {
    long i = 0;
    for (; i + LANES <= count; i += LANES) store(to + i, power(load(from + i)));
    for (; i < count; ++i) to[i] = power(from[i]);
}

inline float above(const float* values, long count, float than) {
    long found = 0;
    for (long i = 0; i < count; ++i) found += values[i] > than;
    return float(found);
}

// Places of the `n` greatest, the greatest first, of equal ones the first.
inline void top(const float* values, long count, long n, std::vector<long>& places) {
    places.clear();
    const auto before = [values](long a, long b) { return values[a] > values[b] || (values[a] == values[b] && a < b); };
    for (long start = 0; start < count; start += LANES) {
        const long stop = std::min(start + LANES, count);
        if (long(places.size()) == n && !(greatest(values + start, stop - start) > values[places.front()])) continue;
        for (long i = start; i < stop; ++i) {
            if (long(places.size()) == n) {
                if (!before(i, places.front())) continue;
                std::pop_heap(places.begin(), places.end(), before);
                places.pop_back();
            }
            places.push_back(i);
            std::push_heap(places.begin(), places.end(), before);
        }
    }
    std::sort_heap(places.begin(), places.end(), before);
}

// The scores of one step for one text: raw, and behind each of the stages.
struct Step {
    const float* const* scores;  // [stages + 1] of [vocabulary]
    long stages, vocabulary, chosen, n;
};

struct Shares {
    std::vector<float> raw, final, probabilities, before, now;
    std::vector<long> places;
};

inline float* write_stage(const Step& step, long stage, Shares& shares, float* out) {
    const float* scores = step.scores[stage + 1];
    shares.now.assign(scores, scores + step.vocabulary);
    softmax(shares.now.data(), step.vocabulary);
    const float* before = stage == 0 ? shares.probabilities.data() : shares.before.data();
    double mass = 0, raw_mass = 0;
    long alive = 0;
    for (long i = 0; i < step.vocabulary; ++i) {
        const bool lives = scores[i] != -INFINITY;
        alive += lives;
        mass += lives ? before[i] : 0.0f;
        raw_mass += lives ? shares.probabilities[i] : 0.0f;
    }
    *out++ = float(alive), *out++ = float(mass), *out++ = float(raw_mass);
    top(shares.now.data(), step.vocabulary, step.n, shares.places);
    for (long place : shares.places) *out++ = float(place);
    for (long place : shares.places) *out++ = shares.now[place];
    std::swap(shares.before, shares.now);
    return out;
}

inline void write_spread(const Step& step, const Shares& shares, float* out) {
    double entropy = 0, spread = 0;  // the first is negative; NaN where a logit is -inf
    for (long i = 0; i < step.vocabulary; ++i) entropy += double(shares.probabilities[i] * shares.raw[i]);
    for (long i = 0; i < step.vocabulary; ++i) {
        const float apart = shares.raw[i] - float(entropy);
        spread += double(shares.probabilities[i] * apart * apart);
    }
    out[0] = float(entropy), out[1] = float(spread);
}

// One row of figures, in the order that `read_step` takes them apart; where it ends.
inline float* write_step(const Step& step, Shares& shares, float* out) {
    const long count = step.vocabulary;
    shares.raw.resize(count), shares.final.resize(count), shares.probabilities.resize(count);
    log_softmax(step.scores[0], count, shares.raw.data());
    exp_all(shares.raw.data(), count, shares.probabilities.data());
    const bool processed = step.stages > 0;
    if (processed) log_softmax(step.scores[step.stages], count, shares.final.data());
    const std::vector<float>& final = processed ? shares.final : shares.raw;
    out[0] = shares.raw[step.chosen], out[1] = final[step.chosen];
    out[2] = above(shares.raw.data(), count, out[0]), out[3] = processed ? above(final.data(), count, out[1]) : out[2];
    write_spread(step, shares, out + 4);
    out[6] = float(step.chosen), out += 7;
    if (step.n == 0) return out;
    top(shares.raw.data(), count, step.n, shares.places);
    for (long place : shares.places) *out++ = float(place);
    for (long place : shares.places) *out++ = shares.raw[place];
    if (processed)
        for (long place : shares.places) *out++ = final[place];
    for (long stage = 0; stage < step.stages; ++stage) out = write_stage(step, stage, shares, out);
    return out;
}
