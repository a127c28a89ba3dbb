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
typedef int16_t Number;             // as instructions for sums of pairs take them, whose sums have room for all
constexpr int SHIFT = 0;
#ifdef __AVX2__
#define TOKENSCOPE_PAIRS 1
#include <immintrin.h>
#endif
#endif

constexpr float FINER = 254.0f;     // as in core/models/packed/eight.py

// Vectors [rows, width], and once somebody wants them so, as two eight-bit numbers each.
struct Vectors {
    const float* values;
    long rows, width;
    std::vector<Number> coarse, fine;   // SHIFT more than they are
    std::vector<float> steps;

    // Numbers that somebody else has split: [2 · rows, width], the coarse ones first; steps [rows].
    void take(const int8_t* halves, const float* sizes) {
        steps.assign(sizes, sizes + rows), coarse.resize(rows * width), fine.resize(rows * width);
        for (long i = 0; i < rows * width; ++i) coarse[i] = Number(halves[i] + SHIFT);
        for (long i = 0; i < rows * width; ++i) fine[i] = Number(halves[rows * width + i] + SHIFT);
    }

    void split() {
        if (!steps.empty()) return;
        coarse.resize(rows * width), fine.resize(rows * width), steps.resize(rows);
        for (long row = 0; row < rows; ++row) split_row(row);
    }

    void split_row(long row) {
        const float* from = values + row * width;
        float most = 0;
        for (long i = 0; i < width; ++i) most = std::max(most, std::fabs(from[i]));
        const float step = std::max(most / 127.0f, 1e-30f);
        steps[row] = step;
        for (long i = 0; i < width; ++i) {
            const float exact = from[i] / step, whole = std::nearbyintf(exact);
            coarse[row * width + i] = Number(int(whole) + SHIFT);
            fine[row * width + i] = Number(int(std::nearbyintf((exact - whole) * FINER)) + SHIFT);
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
    for (int output = 0; output < OUTPUTS; ++output)
        for (int row = 0; row < ROWS; ++row) {
            float rest = 0;
            for (long j = i; j < inputs; ++j) rest += one(weights + output * inputs + j) * vectors[row * width + j];
            found[row * apart + output] = sum(sums[output][row]) + rest;
        }
}

template <int OUTPUTS, typename Weight>
inline void tiles(const Weight* weights, long inputs, const Vectors& of, float* found, long apart) {
    long row = 0;
    for (; row + 4 <= of.rows; row += 4)
        tile<OUTPUTS, 4>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
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

inline void add_pairs(Sums& sums, __m256i weights, const Number* numbers) {
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(weights, _mm256_loadu_si256((const __m256i*)numbers)));
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
    for (; i + 16 <= count; i += 16) {
        const __m256i sixteen = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(weights + i)));
        add_pairs(coarser, sixteen, coarse + i), add_pairs(finer, sixteen, fine + i);
    }
    first = sum(coarser), second = sum(finer);
#endif
    for (; i < count; ++i) {
        first += int32_t(coarse[i]) * int32_t(weights[i]);
        second += int32_t(fine[i]) * int32_t(weights[i]);
    }
    of_coarse = first, of_fine = second;
}

inline void eights(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    for (long output = begin; output < end; ++output) {
        const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * matrix.inputs;
        const int32_t less = SHIFT ? matrix.sums[output] : 0;
        for (long row = 0; row < of.rows; ++row) {
            int32_t coarse, fine;
            both_sums(weights, &of.coarse[row * of.width], &of.fine[row * of.width], matrix.inputs, coarse, fine);
            const float scale = matrix.scales[output], rest = float(fine - less) * scale;
            const float both = std::fma(rest, 1 / FINER, float(coarse - less) * scale);
            found[row * apart + output] = both * of.steps[row];  // as torch's kernels do it, to the last bit
        }
    }
}

// found[row · apart + output] for every output of the matrix.
inline void multiply(const Matrix& matrix, Vectors& of, float* found, long apart, long threads) {
    if (matrix.kind == INT8) of.split();
    const long block = 64, blocks = (matrix.outputs + block - 1) / block;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && matrix.outputs * matrix.inputs > 100000)
    for (long part = 0; part < blocks; ++part) {
        const long begin = part * block, end = std::min(begin + block, long(matrix.outputs));
        if (matrix.kind == FLOAT32) floats<float>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == BFLOAT16) floats<bfloat16>(matrix, of, found, apart, begin, end);
#if TOKENSCOPE_HALVES
        else if (matrix.kind == FLOAT16) floats<float16>(matrix, of, found, apart, begin, end);
#endif
        else eights(matrix, of, found, apart, begin, end);
        if (matrix.bias != nullptr)
            for (long row = 0; row < of.rows; ++row)
                for (long output = begin; output < end; ++output) found[row * apart + output] += matrix.bias[output];
    }
}
