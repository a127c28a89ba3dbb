// Products with weights of eight bits. A vector's two numbers are one of sixteen bits, and sums of products are whole
// numbers, exact in any order: each is turned into a float once, as core/models/quantized/packed_matrices.py does it.
#pragma once
#include "products.h"

// To the last bit as torch does it.
inline float scaled(int64_t sum, float scale, float step) { return float(sum) * scale * (step / float(FINER)); }

constexpr long SHORT = 512;         // columns whose sums have room in 32 bits, be they as large as they may

inline int64_t whole_product(const int8_t* weights, const int16_t* numbers, long count) {
    int64_t total = 0;
    for (long from = 0; from < count; from += SHORT) {
        int32_t sum = 0;
        for (long i = from; i < std::min(from + SHORT, count); ++i) sum += int32_t(weights[i]) * int32_t(numbers[i]);
        total += sum;
    }
    return total;
}

#ifdef __AVX2__
constexpr long LONG = 4096;         // the same, added up in eight parts, two columns of sixteen in each

// Four sums of eight parts each.
inline __m256d four_sums(const __m256i parts[4]) {
    __m256d halved[4];
    for (int i = 0; i < 4; ++i)
        halved[i] = _mm256_add_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(parts[i])),
                                  _mm256_cvtepi32_pd(_mm256_extracti128_si256(parts[i], 1)));
    const __m256d low = _mm256_hadd_pd(halved[0], halved[1]), high = _mm256_hadd_pd(halved[2], halved[3]);
    return _mm256_add_pd(_mm256_permute2f128_pd(low, high, 0x21), _mm256_blend_pd(low, high, 12));
}

// Four rows of weights times `ROWS` vectors.
template <int ROWS>
inline void tile_of_eights(const Matrix& matrix, long output, const Vectors& of, long row, float* found, long apart) {
    const long inputs = matrix.inputs, whole = inputs / 16 * 16;
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * inputs;
    const int16_t* numbers = &of.whole[row * of.width];
    __m256d totals[ROWS] = {};
    for (long from = 0; from < whole; from += LONG) {
        __m256i sums[ROWS][4] = {};
        for (long i = from; i < std::min(from + LONG, whole); i += 16) {
            __builtin_prefetch(weights + 4 * (inputs + i));
            for (int j = 0; j < 4; ++j) {
                const __m256i some = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)(weights + j * inputs + i)));
                for (int k = 0; k < ROWS; ++k) {
                    const __m256i vector = _mm256_loadu_si256((const __m256i*)(numbers + k * of.width + i));
                    sums[k][j] = _mm256_add_epi32(sums[k][j], _mm256_madd_epi16(some, vector));
                }
            }
        }
        for (int k = 0; k < ROWS; ++k) totals[k] = _mm256_add_pd(totals[k], four_sums(sums[k]));
    }
    const float* scales = static_cast<const float*>(matrix.scales) + output;
    for (int k = 0; k < ROWS; ++k)
        for (int j = 0; j < 4; ++j) {
            const long more = whole_product(weights + j * inputs + whole, numbers + k * of.width + whole, inputs - whole);
            found[(row + k) * apart + output + j] = scaled(int64_t(totals[k][j]) + more, scales[j], of.steps[row + k]);
        }
}

inline long four_rows(const Matrix& matrix, const Vectors& of, float* found, long apart, long from, long begin, long end) {
    const long last = std::min(from + TOGETHER, of.rows);
    for (; begin + 4 <= end; begin += 4) {
        long row = from;
        for (; row + 3 <= last; row += 3) tile_of_eights<3>(matrix, begin, of, row, found, apart);
        if (row + 2 == last) tile_of_eights<2>(matrix, begin, of, row, found, apart);
        if (row + 1 == last) tile_of_eights<1>(matrix, begin, of, row, found, apart);
    }
    return begin;
}
#else
inline long four_rows(const Matrix&, const Vectors&, float*, long, long, long begin, long) { return begin; }
#endif

inline void eights(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    const float* scales = static_cast<const float*>(matrix.scales);
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights);
    for (long from = 0; from < of.rows; from += TOGETHER)
        for (long output = four_rows(matrix, of, found, apart, from, begin, end); output < end; ++output)
            for (long row = from; row < std::min(from + TOGETHER, of.rows); ++row) {
                const int64_t sum = whole_product(weights + output * matrix.inputs, &of.whole[row * of.width], matrix.inputs);
                found[row * apart + output] = scaled(sum, scales[output], of.steps[row]);
            }
}
