// What a step looked like: figures of distributions over a vocabulary, as core/decoding/step_stats.py reads them.
#pragma once
#include <algorithm>
#include <numeric>
#include <vector>

#include "attention.h"
#include "simd.h"

// Adds up many floats: some at a time in lanes, those sums in a double.
struct Total {
    Lanes part = {};
    double whole = 0;
    long added = 0;

    void add(Lanes more) {
        part += more;
        if (++added % 64 == 0) settle();
    }

    void settle() { whole += double(sum(part)), part = Lanes{}; }

    double all() { return settle(), whole; }
};

// log softmax [count] of logits, and its exponentials; `shares` may be null.
inline void log_softmax(const float* from, long count, float* to, float* shares) {
    const float most = greatest(from, count);
    Lanes sums = {};
    float total = 0;
    long i = 0;
    for (; i + LANES <= count; i += LANES) {
        const Lanes parts = power(load(from + i) - all(most));
        sums += parts;
        if (shares != nullptr) store(shares + i, parts);
    }
    for (; i < count; ++i) {
        const float part = power(from[i] - most);
        total += part;
        if (shares != nullptr) shares[i] = part;
    }
    total += sum(sums);
    const float less = most + std::log(total), scale = 1.0f / total;
    for (i = 0; i < count; ++i) to[i] = from[i] - less;
    for (i = 0; i < count && shares != nullptr; ++i) shares[i] *= scale;
}

inline float above(const float* values, long count, float than) {
    int32_t found = 0;
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
    std::vector<long> first, places;    // the likeliest by the model alone, and after a stage
};

// How many of a stage's scores are left, and what share of `before` and of the model's own shares they hold.
inline void write_left(const float* scores, const float* before, const float* raw, long count, float* out) {
    Total mass, raw_mass;
    Whole alive = {};
    long i = 0, left = 0;
    for (; i + LANES <= count; i += LANES) {
        const Whole lives = load(scores + i) != all(-INFINITY);     // -1 where it is
        alive -= lives;
        mass.add((Lanes)((Whole)load(before + i) & lives));
        raw_mass.add((Lanes)((Whole)load(raw + i) & lives));
    }
    for (long lane = 0; lane < LANES; ++lane) left += alive[lane];
    double more = 0, raw_more = 0;
    for (; i < count; ++i)
        if (scores[i] != -INFINITY) ++left, more += before[i], raw_more += raw[i];
    out[0] = float(left), out[1] = float(mass.all() + more), out[2] = float(raw_mass.all() + raw_more);
}

inline float* write_stage(const Step& step, long stage, Shares& shares, float* out) {
    const float* scores = step.scores[stage + 1];
    const long width = 3 + 2 * step.n;
    if (stage > 0 && scores == step.scores[stage]) {    // it changed nothing
        std::copy(out - width, out, out);
        out[1] = 1.0f;
        return out + width;
    }
    shares.now.assign(scores, scores + step.vocabulary);
    softmax(shares.now.data(), step.vocabulary);
    const float* raw = shares.probabilities.data();
    write_left(scores, stage == 0 ? raw : shares.before.data(), raw, step.vocabulary, out);
    out += 3;
    top(shares.now.data(), step.vocabulary, step.n, shares.places);
    for (long place : shares.places) *out++ = float(place);
    for (long place : shares.places) *out++ = shares.now[place];
    std::swap(shares.before, shares.now);
    return out;
}

// Of the last stage's likeliest: raw log-probability, and how many tokens are likelier by the model alone; -1 for those
// that are among its own likeliest.
inline float* write_brought_in(const Step& step, const Shares& shares, float* out) {
    for (long place : shares.places) *out++ = shares.raw[place];
    for (long place : shares.places) {
        const bool known = std::find(shares.first.begin(), shares.first.end(), place) != shares.first.end();
        *out++ = known ? -1.0f : above(shares.raw.data(), step.vocabulary, shares.raw[place]);
    }
    return out;
}

// Negative entropy and varentropy; NaN where a logit is -inf.
inline void write_spread(const Shares& shares, long count, float* out) {
    const float *raw = shares.raw.data(), *probabilities = shares.probabilities.data();
    const long whole = count / LANES * LANES;
    Total entropy, spread;
    double more = 0;
    for (long i = 0; i < whole; i += LANES) entropy.add(load(probabilities + i) * load(raw + i));
    for (long i = whole; i < count; ++i) more += probabilities[i] * raw[i];
    out[0] = float(entropy.all() + more), more = 0;
    for (long i = 0; i < whole; i += LANES) {
        const Lanes apart = load(raw + i) - all(out[0]);
        spread.add(load(probabilities + i) * apart * apart);
    }
    for (long i = whole; i < count; ++i) more += probabilities[i] * (raw[i] - out[0]) * (raw[i] - out[0]);
    out[1] = float(spread.all() + more);
}

// One row of figures, as core/decoding/step_details.py takes them apart; where it ends.
inline float* write_step(const Step& step, Shares& shares, float* out) {
    const long count = step.vocabulary;
    shares.raw.resize(count), shares.final.resize(count), shares.probabilities.resize(count);
    log_softmax(step.scores[0], count, shares.raw.data(), shares.probabilities.data());
    const bool processed = step.stages > 0;
    if (processed) log_softmax(step.scores[step.stages], count, shares.final.data(), nullptr);
    const std::vector<float>& final = processed ? shares.final : shares.raw;
    out[0] = shares.raw[step.chosen], out[1] = final[step.chosen];
    out[2] = above(shares.raw.data(), count, out[0]), out[3] = processed ? above(final.data(), count, out[1]) : out[2];
    write_spread(shares, count, out + 4);
    out[6] = float(step.chosen), out += 7;
    if (step.n == 0) return out;
    top(shares.raw.data(), count, step.n, shares.first);
    for (long place : shares.first) *out++ = float(place);
    for (long place : shares.first) *out++ = shares.raw[place];
    if (!processed) return out;
    for (long place : shares.first) *out++ = final[place];
    for (long stage = 0; stage < step.stages; ++stage) out = write_stage(step, stage, shares, out);
    return write_brought_in(step, shares, out);
}
