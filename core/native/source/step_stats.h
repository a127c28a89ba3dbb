// What a step looked like: figures of distributions over a vocabulary, as core/decoding/step_stats.py reads them.
#pragma once
#include <algorithm>
#include <functional>

#include "attention.h"
#include "buffer.h"
#include "simd.h"

// Adds up many floats: some at a time in lanes, those sums in a double.
struct Total {
    Lanes part = {};
    double whole = 0;
    int64_t added = 0;

    void add(Lanes more) {
        part += more;
        if (++added % 64 == 0) settle();
    }

    void settle() { whole += double(sum(part)), part = Lanes{}; }

    double all() { return settle(), whole; }
};

// Adds an index to a heap of the first `n` in the order `before`, if it belongs to them.
template <typename Order>
inline void keep_first(Buffer<int64_t>& heap, int64_t index, int64_t n, const Order& before) {
    if (int64_t(heap.size()) == n) {
        if (!before(index, heap.front())) return;
        std::pop_heap(heap.begin(), heap.end(), before);
        heap.pop_back();
    }
    heap.push_back(index);
    std::push_heap(heap.begin(), heap.end(), before);
}

// Indices of the `n` greatest, the greatest first, of equal ones the first.
inline void top(const float* values, int64_t count, int64_t n, Buffer<int64_t>& places) {
    places.clear();
    const auto before = [values](int64_t a, int64_t b) { return values[a] > values[b] || (values[a] == values[b] && a < b); };
    for (int64_t start = 0; start < count; start += LANES) {
        const int64_t stop = std::min(start + LANES, count);
        if (int64_t(places.size()) == n && !(greatest(values + start, stop - start) > values[places.front()])) continue;
        for (int64_t i = start; i < stop; ++i) keep_first(places, i, n, before);
    }
    std::sort_heap(places.begin(), places.end(), before);
}

// The scores of one step for one text: raw, and behind each of the stages.
struct Step {
    const float* const* scores;  // [stages + 1] of [vocabulary]
    int64_t stages, vocabulary, chosen, n;
};

constexpr int64_t SCORES = 1024;           // scores of a block

// Scores [count], the greatest of each block, and what turns them into log-probabilities.
struct Distribution {
    const float* scores = nullptr;
    int64_t count = 0;
    float most = 0, less = 0;           // a log-probability is a score minus `less`
    float center = 0;                   // distances of scores from the greatest are measured from here
    double total = 0;                   // of the exponentials of scores minus `most`
    Buffer<float> maxima;          // of each block
    Buffer<float> exponentials;    // where they are kept; not written in blocks that have only -inf

    int64_t blocks() const { return (count + SCORES - 1) / SCORES; }
    float log_probability(int64_t place) const { return scores[place] - less; }
    bool is_empty(int64_t block) const { return maxima[block] == -INFINITY; }
};

// Sums over one block: exponentials; these times the centered distances of scores from the greatest, and times their
// squares; scores that are not -inf; probabilities before the stage, and of the model alone, on those.
struct BlockSums {
    double total = 0, first = 0, second = 0, left = 0, mass = 0, raw_mass = 0;
};

// Probabilities of other distributions in the same blocks.
struct Others {
    const Distribution *before, *raw;
};

// Up to LANES numbers; the others are `fill`.
inline Lanes load_some(const float* from, int64_t count, float fill) {
    if (count == LANES) return load(from);
    Lanes found = all(fill);
    std::memcpy(&found, from, size_t(count) * sizeof(float));
    return found;
}

inline void sum_block(Distribution& own, int64_t block, bool keeps, const Others* others, BlockSums& sums) {
    const int64_t begin = block * SCORES, end = std::min(begin + SCORES, own.count);
    Lanes total = {}, first = {}, second = {}, mass = {}, raw_mass = {};
    Whole alive = {};
    const bool has_before = others && !others->before->is_empty(block), has_raw = others && !others->raw->is_empty(block);
    for (int64_t i = begin; i < end; i += LANES) {
        const int64_t some = std::min(LANES, end - i);
        const Lanes scores = load_some(own.scores + i, some, -INFINITY);
        const Lanes apart = scores - all(own.most);
        const Lanes parts = power(apart);
        total += parts;
        if (keeps && some == LANES) store(&own.exponentials[i], parts);
        else if (keeps) std::memcpy(&own.exponentials[i], &parts, size_t(some) * sizeof(float));
        if (others == nullptr) {
            Lanes counted = apart - all(own.center);
            for (int64_t lane = some; lane < LANES; ++lane) counted[lane] = 0;    // beyond the last score
            first += parts * counted, second += parts * counted * counted;
            continue;
        }
        const Whole lives = scores != all(-INFINITY);
        alive -= lives;
        const Lanes before = has_before ? load_some(&others->before->exponentials[i], some, 0) : Lanes{};
        const Lanes raw = has_raw ? load_some(&others->raw->exponentials[i], some, 0) : Lanes{};
        mass += (Lanes)((Whole)before & lives), raw_mass += (Lanes)((Whole)raw & lives);
    }
    sums = {sum(total), sum(first), sum(second), 0, sum(mass), sum(raw_mass)};
    for (int64_t lane = 0; lane < LANES; ++lane) sums.left += alive[lane];
}

// Reads scores [count]: as the model gives them, or with `others` those after a stage. `keeps`: whether exponentials are
// kept.
inline BlockSums read_scores(Distribution& own, const float* scores, int64_t count, bool keeps, const Others* others) {
    own.scores = scores, own.count = count;
    const int64_t blocks = own.blocks();
    own.maxima.resize(blocks);
    if (keeps) own.exponentials.resize(count);
    Buffer<BlockSums> sums;
    sums.resize(blocks);
    for (int64_t block = 0; block < blocks; ++block)
        own.maxima[block] = greatest(scores + block * SCORES, std::min(SCORES, count - block * SCORES));
    const int64_t best = std::max_element(own.maxima.begin(), own.maxima.end()) - own.maxima.begin();
    own.most = own.maxima[best], own.center = 0;
    if (others == nullptr) {    // near the mean, so that the variance is no small difference of large numbers
        sum_block(own, best, false, others, sums[best]);
        own.center = float(sums[best].first / sums[best].total);
    }
    for (int64_t block = 0; block < blocks; ++block)
        if (others == nullptr || !own.is_empty(block)) sum_block(own, block, keeps, others, sums[block]);
    BlockSums all_sums;
    for (const BlockSums& some : sums) {
        all_sums.total += some.total, all_sums.first += some.first, all_sums.second += some.second;
        all_sums.left += some.left, all_sums.mass += some.mass, all_sums.raw_mass += some.raw_mass;
    }
    own.total = all_sums.total, own.less = own.most + float(std::log(own.total));
    return all_sums;
}

// How many log-probabilities are greater.
inline float above(const Distribution& own, float than) {
    int64_t found = 0;
    for (int64_t block = 0; block < own.blocks(); ++block) {
        if (!(own.maxima[block] - own.less > than)) continue;
        const int64_t end = std::min((block + 1) * SCORES, own.count);
        for (int64_t i = block * SCORES; i < end; ++i) found += own.scores[i] - own.less > than;
    }
    return float(found);
}

// Places of the `n` greatest, the greatest first, of equal ones the first. They lie in the blocks with the `n` greatest
// maxima, and those with equal ones.
inline void top(const Distribution& own, int64_t n, Buffer<float>& sorted, Buffer<int64_t>& places) {
    const auto before = [&own](int64_t a, int64_t b) {
        const float first = own.log_probability(a), second = own.log_probability(b);
        return first > second || (first == second && a < b);
    };
    sorted.assign(own.maxima.data(), own.maxima.data() + own.blocks());
    const int64_t some = std::min(n, int64_t(sorted.size()));
    std::partial_sort(sorted.begin(), sorted.begin() + some, sorted.end(), std::greater<float>());
    for (const float least : {some < n ? -INFINITY : sorted[some - 1], -INFINITY}) {
        places.clear();
        for (int64_t block = 0; block < own.blocks(); ++block) {
            if (own.maxima[block] - own.less < least - own.less) continue;
            const int64_t end = std::min((block + 1) * SCORES, own.count);
            for (int64_t i = block * SCORES; i < end; ++i) keep_first(places, i, n, before);
        }
        if (int64_t(places.size()) == n) break;    // always, but for scores that are no numbers
    }
    std::sort_heap(places.begin(), places.end(), before);
}

struct Shares {
    Distribution raw, before, now;
    Buffer<float> sorted;
    Buffer<int64_t> first, places;    // the likeliest by the model alone, and after a stage
};

// One stage: how many scores are left, what share of the stage before and of the model's own shares they hold, and the
// likeliest. `shares.before` becomes this stage.
inline float* write_stage(const Step& step, int64_t stage, Shares& shares, float* out) {
    const float* scores = step.scores[stage + 1];
    const int64_t width = 3 + 2 * step.n;
    if (stage > 0 && scores == step.scores[stage]) {    // it changed nothing
        std::copy(out - width, out, out);
        out[1] = 1.0f;
        return out + width;
    }
    const Distribution& before = stage == 0 ? shares.raw : shares.before;
    const Others others{&before, &shares.raw};
    const BlockSums sums = read_scores(shares.now, scores, step.vocabulary, true, &others);
    out[0] = float(sums.left), out[1] = float(sums.mass / before.total), out[2] = float(sums.raw_mass / shares.raw.total);
    out += 3;
    top(shares.now, step.n, shares.sorted, shares.places);
    for (int64_t place : shares.places) *out++ = float(place);
    for (int64_t place : shares.places) *out++ = float(power(shares.now.scores[place] - shares.now.most) / shares.now.total);
    std::swap(shares.before, shares.now);
    return out;
}

// Of the last stage's likeliest: raw log-probability, and how many tokens are likelier by the model alone; -1 for those
// that are among its own likeliest.
inline float* write_brought_in(const Shares& shares, float* out) {
    for (int64_t place : shares.places) *out++ = shares.raw.log_probability(place);
    for (int64_t place : shares.places) {
        const bool known = std::find(shares.first.begin(), shares.first.end(), place) != shares.first.end();
        *out++ = known ? -1.0f : above(shares.raw, shares.raw.log_probability(place));
    }
    return out;
}

// One row of figures, as core/decoding/step_details.py takes them apart; where it ends.
inline float* write_step(const Step& step, Shares& shares, float* out) {
    const bool processed = step.stages > 0;
    const BlockSums sums = read_scores(shares.raw, step.scores[0], step.vocabulary, processed, nullptr);
    const Distribution& raw = shares.raw;
    float* const stages = out + 7 + 2 * step.n + (processed ? step.n : 0);
    float* end = stages;
    if (processed && step.n)
        for (int64_t stage = 0; stage < step.stages; ++stage) end = write_stage(step, stage, shares, end);
    else if (processed) read_scores(shares.before, step.scores[step.stages], step.vocabulary, false, nullptr);
    const Distribution& final = processed ? shares.before : raw;
    out[0] = raw.log_probability(step.chosen), out[1] = final.log_probability(step.chosen);
    out[2] = above(raw, out[0]), out[3] = processed ? above(final, out[1]) : out[2];
    // Negative entropy and varentropy; no numbers where a logit is -inf.
    const double mean = sums.first / sums.total;
    out[4] = float(raw.center + mean - std::log(sums.total)), out[5] = float(sums.second / sums.total - mean * mean);
    out[6] = float(step.chosen), out += 7;
    if (step.n == 0) return out;
    top(raw, step.n, shares.sorted, shares.first);
    for (int64_t place : shares.first) *out++ = float(place);
    for (int64_t place : shares.first) *out++ = raw.log_probability(place);
    if (!processed) return out;
    for (int64_t place : shares.first) *out++ = final.log_probability(place);
    return write_brought_in(shares, end);
}
