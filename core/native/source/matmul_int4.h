// Products with weights of four bits: (q - 8) · scale + offset, where groups of 32 neighbours share scale and offset.
// Of each two groups, the first lies in the lower halves of 32 bytes, the second in the upper ones; of one that is left
// over, its first sixteen numbers in the lower halves of 16 bytes, the others in the upper ones. Sums within a group are
// whole numbers and exact.
#pragma once
#include "matmul.h"


// Where number `i` of a group lies among the dealt ones.
inline int64_t dealt(int64_t i) { return i / 2 + i % 2 * (GROUP / 2); }

// The number `i` of a group; `is_second`: of its two; `is_last`: one that is left over.
inline int32_t number_of(const uint8_t* bytes, int64_t i, bool is_second, bool is_last) {
    return is_last ? (i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4) : is_second ? bytes[i] >> 4 : bytes[i] & 15;
}

// The products with a single group.
inline float product_of_group(const uint8_t* weights, const bfloat16* scales, int64_t group, int64_t groups, const int16_t* numbers) {
    const bool is_second = group % 2 == 1, is_last = !is_second && group + 1 == groups;
    const uint8_t* bytes = weights + group / 2 * GROUP;
    int32_t total = 0;
    for (int64_t i = 0; i < GROUP; ++i) total += number_of(bytes, i, is_second, is_last) * numbers[group * GROUP + dealt(i)];
    return float(total) * one(scales + group);
}

#ifdef __AVX2__
typedef __m256 Eight;
constexpr int64_t NEAR = 64;           // groups whose scales are turned into floats at a time

inline Eight eight_of(const bfloat16* place) {
    return (Eight)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)place)), 16);
}

// Up to eight groups' scales as floats, and what their offsets make of each vector's totals, added to its sums.
template <int ROWS>
inline void begin_groups(
    const bfloat16* scales, const bfloat16* offsets, int64_t count, const float* totals, int64_t apart, float* own, Eight sums[ROWS]
) {
    bfloat16 last[16] = {};
    if (count < 8) {
        std::copy_n(scales, count, last), std::copy_n(offsets, count, last + 8);
        scales = last, offsets = last + 8;
    }
    const Eight scale = eight_of(scales), less = eight_of(offsets) - 8.0f * scale;
    _mm256_storeu_ps(own, scale);
    for (int row = 0; row < ROWS; ++row) sums[row] += less * _mm256_loadu_ps(totals + row * apart);
}

// Eight floats of 32 products: sums of four, which floats hold exactly.
inline Eight thirty_two(__m256i even, __m256i odd, const int16_t* numbers) {
    const __m256i first = _mm256_madd_epi16(even, _mm256_loadu_si256((const __m256i*)numbers));
    const __m256i second = _mm256_madd_epi16(odd, _mm256_loadu_si256((const __m256i*)(numbers + GROUP / 2)));
    return _mm256_cvtepi32_ps(_mm256_add_epi32(first, second));
}

// A row of weights times `ROWS` vectors, by pairs of groups: sixteen bits hold two numbers of each.
template <int ROWS>
inline void tile_of_fours(const Matrix& matrix, int64_t output, const Vectors& of, int64_t row, float* found, int64_t apart) {
    const int64_t groups = matrix.inputs / GROUP, paired = groups / 2 * 2;
    const uint8_t* weights = static_cast<const uint8_t*>(matrix.weights) + output * (matrix.inputs / 2);
    const bfloat16 *scales = static_cast<const bfloat16*>(matrix.scales) + output * 2 * groups, *offsets = scales + groups;
    const int16_t* numbers = &of.dealt[row * of.width];
    const float* totals = &of.totals[row * of.totals_apart()];
    const __m256i low = _mm256_set1_epi16(15);
    Eight sums[ROWS] = {}, others[ROWS] = {};
    float own[NEAR];
    for (int64_t from = 0; from < groups; from += NEAR) {
        const int64_t end = std::min(from + NEAR, groups);
        for (int64_t group = from; group < end; group += 8)
            begin_groups<ROWS>(scales + group, offsets + group, std::min<int64_t>(8, groups - group), totals + group,
                               of.totals_apart(), own + (group - from), sums);
        for (int64_t group = from; group < std::min(end, paired); group += 2) {
            __builtin_prefetch(weights + 16 * (groups + group));
            const __m256i words = _mm256_loadu_si256((const __m256i*)(weights + 16 * group));
            const __m256i even = _mm256_and_si256(words, low), odd = _mm256_and_si256(_mm256_srli_epi16(words, 8), low);
            const __m256i more = _mm256_and_si256(_mm256_srli_epi16(words, 4), low), most = _mm256_srli_epi16(words, 12);
            const Eight scale = _mm256_set1_ps(own[group - from]), next = _mm256_set1_ps(own[group - from + 1]);
            for (int k = 0; k < ROWS; ++k) {
                const int16_t* place = numbers + k * of.width + GROUP * group;
                sums[k] += thirty_two(even, odd, place) * scale;
                others[k] += thirty_two(more, most, place + GROUP) * next;
            }
        }
    }
    for (int k = 0; k < ROWS; ++k) {
        const Eight whole = sums[k] + others[k];
        float total = 0;
        for (int i = 0; i < 8; ++i) total += whole[i];
        if (paired < groups) total += product_of_group(weights, scales, paired, groups, numbers + k * of.width);
        found[(row + k) * apart + output] = total * (of.steps[row + k] / float(FINER));
    }
}
#else
template <int ROWS>
inline void tile_of_fours(const Matrix& matrix, int64_t output, const Vectors& of, int64_t row, float* found, int64_t apart) {
    const int64_t groups = matrix.inputs / GROUP;
    const uint8_t* weights = static_cast<const uint8_t*>(matrix.weights) + output * (matrix.inputs / 2);
    const bfloat16 *scales = static_cast<const bfloat16*>(matrix.scales) + output * 2 * groups, *offsets = scales + groups;
    for (int k = 0; k < ROWS; ++k) {
        const float* totals = &of.totals[(row + k) * of.totals_apart()];
        float total = 0;
        for (int64_t group = 0; group < groups; ++group) {
            total += product_of_group(weights, scales, group, groups, &of.dealt[(row + k) * of.width]);
            total += (one(offsets + group) - 8.0f * one(scales + group)) * totals[group];
        }
        found[(row + k) * apart + output] = total * (of.steps[row + k] / float(FINER));
    }
}
#endif

inline void fours(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    for (int64_t from = 0; from < of.rows; from += TOGETHER) {
        const int64_t last = std::min(from + TOGETHER, of.rows);
        for (int64_t output = begin; output < end; ++output) {
            int64_t row = from;
            for (; row + 4 <= last; row += 4) tile_of_fours<4>(matrix, output, of, row, found, apart);
            for (; row < last; ++row) tile_of_fours<1>(matrix, output, of, row, found, apart);
        }
    }
}
