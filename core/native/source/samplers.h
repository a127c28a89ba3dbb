// What samplers ask of scores over a vocabulary, and of the text so far, as core/processors/score_stats.py names it.
#pragma once
#include "step_stats.h"

// Of finite scores [count]: the greatest, the least, the logarithm of the sum of their exponentials, their entropy in
// nats, how many they are, their standard deviation. The greatest is -inf where there is none.
inline void write_spread_of(const float* scores, int64_t count, double* found) {
    const int64_t whole = count / LANES * LANES;
    const float most = greatest(scores, count);
    Lanes least = all(INFINITY);
    Total total, sums, weighed, apart;
    Whole finite = {};
    double more = 0, more_sums = 0, more_weighed = 0, more_apart = 0, left = 0;
    float lowest = INFINITY;
    for (int64_t i = 0; i < whole; i += LANES) {
        const Lanes own = load(scores + i);
        const Whole lives = own != all(-INFINITY);
        const Lanes kept = (Lanes)((Whole)own & lives), less = (Lanes)((Whole)(own - all(most)) & lives);
        const Lanes share = (Lanes)((Whole)power(less) & lives);
        least = -greater(-least, -(Lanes)(((Whole)own & lives) | ((Whole)all(INFINITY) & ~lives)));
        finite -= lives;
        total.add(kept), sums.add(share), weighed.add(share * less);
    }
    for (int64_t i = whole; i < count; ++i) {
        if (scores[i] == -INFINITY) continue;
        const float less = scores[i] - most, share = power(less);
        lowest = std::min(lowest, scores[i]), more += scores[i], more_sums += share, more_weighed += share * less, left += 1;
    }
    for (int64_t lane = 0; lane < LANES; ++lane) left += finite[lane], lowest = std::min(lowest, float(least[lane]));
    const double mean = (total.all() + more) / std::max(left, 1.0), sum = sums.all() + more_sums;
    const Lanes middle = all(float(mean));
    for (int64_t i = 0; i < whole; i += LANES) {
        const Lanes own = load(scores + i);
        const Lanes off = (Lanes)((Whole)(own - middle) & (own != all(-INFINITY)));
        apart.add(off * off);
    }
    for (int64_t i = whole; i < count; ++i)
        if (scores[i] != -INFINITY) more_apart += (scores[i] - float(mean)) * (scores[i] - float(mean));
    found[0] = most, found[1] = lowest, found[2] = most + std::log(sum);
    found[3] = std::log(sum) - (weighed.all() + more_weighed) / sum;
    found[4] = left, found[5] = std::sqrt((apart.all() + more_apart) / std::max(left, 1.0));
}

// The likeliest tokens, `most` at the most, of those at least as likely as the threshold: the likeliest first, of equal
// ones the first. Returns how many there are in all.
inline int64_t write_likely(const float* scores, int64_t count, double threshold, int64_t most, int64_t* tokens, float* found) {
    static thread_local Buffer<float> shares;
    static thread_local Buffer<int64_t> places;
    shares.assign(scores, scores + count);
    softmax(shares.data(), count);
    int64_t likely = 0;
    for (int64_t i = 0; i < count; ++i) likely += double(shares[i]) >= threshold;
    if (likely == 0 || most == 0) return likely;
    top(shares.data(), count, std::min(most, likely), places);
    for (int64_t place : places) *tokens++ = place, *found++ = shares[place];
    return likely;
}

// How many of the scores stand in each of `parts` equal parts of their range; the greatest is the last part's.
inline void count_parts(const float* scores, int64_t count, float lowest, float highest, int64_t parts, int64_t* found) {
    const float scale = highest > lowest ? float(parts) / (highest - lowest) : 0.0f;
    std::fill(found, found + parts, 0);
    for (int64_t i = 0; i < count; ++i)
        if (scores[i] != -INFINITY) ++found[std::min(int64_t((scores[i] - lowest) * scale), parts - 1)];
}

// A text [count], which of all tokens end a passage (1, or 0; less: not known yet), with one number more for all
// that are none of them, and how long passages may be.
struct Passages {
    const int64_t* text;
    int64_t count;
    const int8_t* breaks;
    int64_t vocabulary, least, longest;

    int8_t ends(int64_t place) const { return breaks[uint64_t(text[place]) < uint64_t(vocabulary) ? text[place] : vocabulary]; }
};

// (place, length) of each earlier token behind a passage with which the text ends. Returns how many; -1 where it comes
// upon a token whose kind is unknown.
inline int64_t write_passages(const Passages& of, int64_t* found) {
    const int64_t last = of.count - 1;
    for (int64_t i = 0; i < of.count; ++i)
        if (of.ends(i) < 0) return -1;
    if (last < 1 || of.ends(last)) return 0;
    int64_t pairs = 0;
    for (int64_t place = 0; place < last; ++place) {
        int64_t length = 0;
        while (length < of.longest && length <= place && of.text[place - length] == of.text[last - length]
               && !of.ends(place - length)) ++length;
        if (length > 0 && length >= of.least) *found++ = place + 1, *found++ = length, ++pairs;
    }
    return pairs;
}
