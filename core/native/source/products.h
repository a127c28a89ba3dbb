// Products of a few vectors with large matrices. Each product of a row and a vector is added up in the same order
// however many vectors there are: a token read with others gives, to the last bit, what it gives alone.
#pragma once
#include <algorithm>
#include <vector>

#include "lanes.h"
#include "parts.h"

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
typedef uint8_t Number;             // without a sign, as the instructions for sums of fours take them
constexpr int SHIFT = 128;
#else
typedef int8_t Number;
constexpr int SHIFT = 0;
#ifdef __AVX2__
#define TOKENSCOPE_PAIRS 1
#endif
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif

constexpr float FINER = 254.0f;     // as in core/models/packed/eight.py
constexpr long GROUP = 32;          // as in core/models/packed/four.py
constexpr long AHEAD = 1024;        // bytes of a row that are asked for before they are read
constexpr long TOGETHER = 8;        // vectors that are multiplied with one block of rows while it is near

// Vectors [rows, width], and once somebody wants them so, as two eight-bit numbers each.
struct Vectors {
    const float* values;
    long rows, width;
    std::vector<int8_t> halves;         // [2 * rows, width], the coarse numbers first
    std::vector<float> steps;           // [rows]
    std::vector<Number> coarse, fine;   // the same, SHIFT more than they are
    std::vector<float> totals;          // [rows, groups], FINER times the coarse numbers and the fine ones, added up

    // Numbers that somebody else has split.
    void take(const int8_t* numbers, const float* sizes) {
        halves.assign(numbers, numbers + 2 * rows * width), steps.assign(sizes, sizes + rows);
    }

    void split() {
        if (!steps.empty()) return;
        halves.resize(2 * rows * width), steps.resize(rows);
        for (long row = 0; row < rows; ++row) split_row(row);
    }

    void split_row(long row) {
        const float* from = values + row * width;
        float most = 0;
        for (long i = 0; i < width; ++i) most = std::max(most, std::fabs(from[i]));
        const float step = std::max(most / 127.0f, 1e-30f);
        steps[row] = step;
        int8_t *first = &halves[row * width], *second = &halves[(rows + row) * width];
        for (long i = 0; i < width; ++i) {
            const float exact = from[i] / step, whole = std::nearbyintf(exact);
            first[i] = int8_t(int(whole));
            second[i] = int8_t(int(std::nearbyintf((exact - whole) * FINER)));
        }
    }

    void widen() {
        split();
        if (!coarse.empty()) return;
        const long count = rows * width;
        coarse.resize(count), fine.resize(count);
        for (long i = 0; i < count; ++i) coarse[i] = Number(halves[i] + SHIFT);
        for (long i = 0; i < count; ++i) fine[i] = Number(halves[count + i] + SHIFT);
    }

    void add_up() {
        split();
        if (!totals.empty()) return;
        totals.resize(rows * (width / GROUP));
        for (size_t group = 0; group < totals.size(); ++group) {
            int32_t first = 0, second = 0;
            for (long i = group * GROUP; i < long(group + 1) * GROUP; ++i)
                first += halves[i], second += halves[rows * width + i];
            totals[group] = float(int32_t(FINER) * first + second);
        }
    }
};

// Ask for what is read next: the processor foresees one row that is read to its end, but not several side by side.
template <long BYTES>
inline void fetch(const void* place) {
    for (long i = 0; i < BYTES; i += 64) __builtin_prefetch(static_cast<const char*>(place) + i);
}

// `OUTPUTS` rows of a matrix times `ROWS` vectors.
template <int OUTPUTS, int ROWS, typename Weight>
inline void tile(const Weight* weights, long inputs, const float* vectors, long width, float* found, long apart) {
    Lanes sums[OUTPUTS][ROWS] = {};
    long i = 0;
    for (; i + LANES <= inputs; i += LANES) {
        fetch<OUTPUTS * LANES * sizeof(Weight)>(weights + OUTPUTS * (inputs + i));
        Lanes vector[ROWS];
        for (int row = 0; row < ROWS; ++row) vector[row] = load(vectors + row * width + i);
        for (int output = 0; output < OUTPUTS; ++output) {
            const Lanes weight = load(weights + output * inputs + i);
            for (int row = 0; row < ROWS; ++row) sums[output][row] += weight * vector[row];
        }
    }
    for (int row = 0; row < ROWS; ++row) {
        float* to = found + row * apart;
        if (OUTPUTS == 4) sum_four(sums[0][row], sums[OUTPUTS > 1 ? 1 : 0][row], sums[OUTPUTS > 2 ? 2 : 0][row], sums[OUTPUTS > 3 ? 3 : 0][row], to);
        else for (int output = 0; output < OUTPUTS; ++output) to[output] = sum(sums[output][row]);
        if (i == inputs) continue;
        for (int output = 0; output < OUTPUTS; ++output) {
            float rest = 0;
            for (long j = i; j < inputs; ++j) rest += one(weights + output * inputs + j) * vectors[row * width + j];
            to[output] += rest;
        }
    }
}

// Vectors at a time whose sums, with four rows of weights, the processor has registers for.
#if defined(__AVX__) && !defined(__AVX512F__)
constexpr int SIDE_BY_SIDE = 3;
#else
constexpr int SIDE_BY_SIDE = 4;
#endif

template <int OUTPUTS, typename Weight>
inline void tiles(const Weight* weights, long inputs, const Vectors& of, float* found, long apart) {
    long row = 0;
    for (; row + SIDE_BY_SIDE <= of.rows; row += SIDE_BY_SIDE)
        tile<OUTPUTS, SIDE_BY_SIDE>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
    for (; row + 2 <= of.rows; row += 2)
        tile<OUTPUTS, 2>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
    for (; row < of.rows; ++row)
        tile<OUTPUTS, 1>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
}

template <typename Weight>
void floats(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    const Weight* weights = static_cast<const Weight*>(matrix.weights);
    long output = begin;
    for (; output + 4 <= end; output += 4)
        tiles<4>(weights + output * matrix.inputs, matrix.inputs, of, found + output, apart);
    for (; output < end; ++output)
        tiles<1>(weights + output * matrix.inputs, matrix.inputs, of, found + output, apart);
}

#ifdef TOKENSCOPE_PAIRS
typedef __m256i Sums;

inline int32_t sum(Sums eight) {
    const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

// The instruction takes one factor without a sign, which the other one then gets; none is -128, so that sums of two
// products have room in sixteen bits.
inline void add_pairs(Sums& sums, __m256i size, __m256i weights, const Number* numbers) {
    const __m256i signed_so = _mm256_sign_epi8(_mm256_loadu_si256((const __m256i*)numbers), weights);
    const __m256i pairs = _mm256_maddubs_epi16(size, signed_so);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
#endif

// Sums of products of a row of weights with both parts of a vector: whole numbers, exact in any order.
inline void both_sums(
    const int8_t* weights, const Number* coarse, const Number* fine, long count, int32_t& of_coarse, int32_t& of_fine
) {
    int32_t first = 0, second = 0;
    long i = 0;
#ifdef TOKENSCOPE_PAIRS
    Sums coarser = _mm256_setzero_si256(), finer = coarser;
    #pragma GCC unroll 4
    for (; i + 32 <= count; i += 32) {
        const __m256i some = _mm256_loadu_si256((const __m256i*)(weights + i)), size = _mm256_abs_epi8(some);
        __builtin_prefetch(weights + i + AHEAD);
        add_pairs(coarser, size, some, coarse + i), add_pairs(finer, size, some, fine + i);
    }
    first = sum(coarser), second = sum(finer);
#endif
    for (; i < count; ++i) {
        first += int32_t(coarse[i]) * int32_t(weights[i]);
        second += int32_t(fine[i]) * int32_t(weights[i]);
    }
    of_coarse = first, of_fine = second;
}

inline float product_of_eights(const Matrix& matrix, long output, const Vectors& of, long row) {
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * matrix.inputs;
    int32_t coarse, fine;
    both_sums(weights, &of.coarse[row * of.width], &of.fine[row * of.width], matrix.inputs, coarse, fine);
    const int32_t less = SHIFT ? matrix.sums[output] : 0;
    const float scale = static_cast<const float*>(matrix.scales)[output], rest = float(fine - less) * scale;
    return std::fma(rest, 1 / FINER, float(coarse - less) * scale) * of.steps[row];  // to the last bit as torch does it
}

inline void eights(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    for (long from = 0; from < of.rows; from += TOGETHER)
        for (long output = begin; output < end; ++output)
            for (long row = from; row < std::min(from + TOGETHER, of.rows); ++row)
                found[row * apart + output] = product_of_eights(matrix, output, of, row);
}
