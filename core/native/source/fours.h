// Products with weights of four bits: (q - 8) · scale + offset, where groups of 32 neighbours share scale and offset.
// Of each two groups, the first lies in the lower halves of 32 bytes, the second in the upper ones; of one that is left
// over, its first sixteen numbers in the lower halves of 16 bytes, the others in the upper ones. Sums within a group are
// whole numbers and exact.
#pragma once
#include "products.h"

#ifdef __AVX2__
typedef __m256 Eight;

inline Eight eight_of(const bfloat16* place) {
    return (Eight)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)place)), 16);
}

// FINER times the coarse products and the fine ones of 32 numbers without a sign, in eight parts, each of four: there is
// room for two of them in sixteen bits, and floats hold them exactly.
inline Eight thirty_two(__m256i numbers, const int8_t* coarse, const int8_t* fine) {
    const __m256i first = _mm256_maddubs_epi16(numbers, _mm256_loadu_si256((const __m256i*)coarse));
    const __m256i second = _mm256_maddubs_epi16(numbers, _mm256_loadu_si256((const __m256i*)fine));
    const __m256i both = _mm256_add_epi32(
        _mm256_madd_epi16(first, _mm256_set1_epi16(short(FINER))), _mm256_madd_epi16(second, _mm256_set1_epi16(1)));
    return _mm256_cvtepi32_ps(both);
}

// Up to four pairs of groups, added to what is there; of scales, offsets and totals there are eight in any case.
inline void add_groups(
    const uint8_t* weights, const bfloat16* scales, const bfloat16* offsets, const int8_t* coarse, const int8_t* fine,
    const float* totals, int pairs, Eight sums[4], Eight& rest
) {
    const __m256i low = _mm256_set1_epi8(15);
    float own[8];
    const Eight eight = eight_of(scales);
    _mm256_storeu_ps(own, eight);
    rest += (eight_of(offsets) - 8.0f * eight) * _mm256_loadu_ps(totals);
    for (int pair = 0; pair < pairs; ++pair) {
        __builtin_prefetch(weights + 32 * pair + AHEAD);
        const __m256i bytes = _mm256_loadu_si256((const __m256i*)(weights + 32 * pair));
        const int8_t *first = coarse + 64 * pair, *second = fine + 64 * pair;
        const Eight lower = thirty_two(_mm256_and_si256(bytes, low), first, second);
        const Eight upper = thirty_two(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low), first + 32, second + 32);
        sums[pair] += lower * _mm256_set1_ps(own[2 * pair]) + upper * _mm256_set1_ps(own[2 * pair + 1]);
    }
}

// A row's whole pairs of groups; `scales` and `offsets` of its groups.
inline float pairs_of_groups(
    const uint8_t* weights, const bfloat16* scales, const bfloat16* offsets, const int8_t* coarse, const int8_t* fine,
    const float* totals, long groups
) {
    Eight sums[4] = {}, rest = {};
    long group = 0;
    for (; group + 8 <= groups; group += 8)
        add_groups(weights + 16 * group, scales + group, offsets + group, coarse + 32 * group, fine + 32 * group,
                   totals + group, 4, sums, rest);
    if (const long left = groups - group; left > 0) {
        bfloat16 last[16] = {};
        float all[8] = {};
        std::copy_n(scales + group, left, last), std::copy_n(offsets + group, left, last + 8);
        std::copy_n(totals + group, left, all);
        add_groups(weights + 16 * group, last, last + 8, coarse + 32 * group, fine + 32 * group, all, int(left / 2),
                   sums, rest);
    }
    const Eight whole = (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest;
    float total = 0;
    for (int i = 0; i < 8; ++i) total += whole[i];
    return total;
}
constexpr long AT_ONCE = 2;
#else
inline float pairs_of_groups(const uint8_t*, const bfloat16*, const bfloat16*, const int8_t*, const int8_t*, const float*, long) { return 0; }
constexpr long AT_ONCE = 1L << 60;
#endif

// The number `i` of a group; `is_second`: of its two; `is_last`: one that is left over.
inline int32_t number_of(const uint8_t* bytes, long i, bool is_second, bool is_last) {
    return is_last ? (i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4) : is_second ? bytes[i] >> 4 : bytes[i] & 15;
}

inline float product_of_fours(const Matrix& matrix, long output, const Vectors& of, long row) {
    const long groups = matrix.inputs / GROUP, whole = groups / AT_ONCE * AT_ONCE;
    const uint8_t* weights = static_cast<const uint8_t*>(matrix.weights) + output * (matrix.inputs / 2);
    const bfloat16 *scales = static_cast<const bfloat16*>(matrix.scales) + output * 2 * groups, *offsets = scales + groups;
    const int8_t *coarse = &of.halves[row * of.width], *fine = &of.halves[(of.rows + row) * of.width];
    const float* totals = &of.totals[row * groups];
    float total = pairs_of_groups(weights, scales, offsets, coarse, fine, totals, whole);
    for (long group = whole; group < groups; ++group) {
        const bool is_second = group % 2 == 1, is_last = !is_second && group + 1 == groups;
        const uint8_t* bytes = weights + group / 2 * GROUP;
        int32_t first = 0, second = 0;
        for (long i = 0; i < GROUP; ++i) {
            const int32_t number = number_of(bytes, i, is_second, is_last);
            first += number * coarse[group * GROUP + i], second += number * fine[group * GROUP + i];
        }
        const float scale = one(scales + group), less = one(offsets + group) - 8.0f * scale;
        total += float(int32_t(FINER) * first + second) * scale + less * totals[group];
    }
    return total;
}

inline void fours(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    for (long from = 0; from < of.rows; from += TOGETHER)
        for (long output = begin; output < end; ++output)
            for (long row = from; row < std::min(from + TOGETHER, of.rows); ++row)
                found[row * apart + output] = product_of_fours(matrix, output, of, row) * (of.steps[row] / FINER);
}
