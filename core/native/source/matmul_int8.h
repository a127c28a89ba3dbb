// Products with weights of eight bits. A vector's two numbers are one of sixteen bits, and sums of products are whole
// numbers, exact in any order: each is turned into a float once, as core/models/quantized/packed_matrices.py does it.
#pragma once
#include "matmul.h"

// To the last bit as torch does it.
inline float scaled(int64_t sum, float scale, float step) { return float(sum) * scale * (step / float(FINER)); }

constexpr int64_t SHORT = 512;         // columns whose sums have room in 32 bits, be they as large as they may

inline int64_t whole_product(const int8_t* weights, const int16_t* numbers, int64_t count) {
    int64_t total = 0;
    for (int64_t from = 0; from < count; from += SHORT) {
        int32_t sum = 0;
        for (int64_t i = from; i < std::min(from + SHORT, count); ++i) sum += int32_t(weights[i]) * int32_t(numbers[i]);
        total += sum;
    }
    return total;
}

#ifdef __AVX2__
constexpr int64_t LONG = 4096;         // the same, added up in eight parts, two columns of sixteen in each

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
inline void tile_of_eights(const Matrix& matrix, int64_t output, const Vectors& of, int64_t row, float* found, int64_t apart) {
    const int64_t inputs = matrix.inputs, whole = inputs / 16 * 16;
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * inputs;
    const int16_t* numbers = &of.whole[row * of.width];
    __m256d totals[ROWS] = {};
    for (int64_t from = 0; from < whole; from += LONG) {
        __m256i sums[ROWS][4] = {};
        for (int64_t i = from; i < std::min(from + LONG, whole); i += 16) {
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
            const int64_t more = whole_product(weights + j * inputs + whole, numbers + k * of.width + whole, inputs - whole);
            found[(row + k) * apart + output + j] = scaled(int64_t(totals[k][j]) + more, scales[j], of.steps[row + k]);
        }
}

inline int64_t four_rows(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t from, int64_t begin, int64_t end) {
    const int64_t last = std::min(from + TOGETHER, of.rows);
    for (; begin + 4 <= end; begin += 4) {
        int64_t row = from;
        for (; row + 3 <= last; row += 3) tile_of_eights<3>(matrix, begin, of, row, found, apart);
        if (row + 2 == last) tile_of_eights<2>(matrix, begin, of, row, found, apart);
        if (row + 1 == last) tile_of_eights<1>(matrix, begin, of, row, found, apart);
    }
    return begin;
}
#else
inline int64_t four_rows(const Matrix&, const Vectors&, float*, int64_t, int64_t, int64_t begin, int64_t) { return begin; }
#endif

inline void eights(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    const float* scales = static_cast<const float*>(matrix.scales);
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights);
    for (int64_t from = 0; from < of.rows; from += TOGETHER)
        for (int64_t output = four_rows(matrix, of, found, apart, from, begin, end); output < end; ++output)
            for (int64_t row = from; row < std::min(from + TOGETHER, of.rows); ++row) {
                const int64_t sum = whole_product(weights + output * matrix.inputs, &of.whole[row * of.width], matrix.inputs);
                found[row * apart + output] = scaled(sum, scales[output], of.steps[row]);
            }
}

// Products with weights of eight bits by instructions that add up four products of bytes each (VNNI): one factor of
// each has no sign, so that SHIFT is added to a vector's numbers, and taken out of their sums again.

#if DECODESCOPE_SHIFTED
#ifdef __AVX512VNNI__
typedef __m512i Bytes;
inline Bytes bytes_at(const void* place) { return _mm512_loadu_si512(place); }
inline Bytes add_products(Bytes sums, Bytes numbers, Bytes weights) { return _mm512_dpbusd_epi32(sums, numbers, weights); }
inline Bytes pairs(Bytes a, Bytes b) { return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)); }
inline Bytes fours(Bytes a, Bytes b) { return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b)); }
inline __m256i folded(Bytes a) { return _mm256_add_epi32(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1)); }
constexpr int MOST_VECTORS = 2;     // whose sums, with four rows of weights, the processor has registers for
#else
typedef __m256i Bytes;
inline Bytes bytes_at(const void* place) { return _mm256_loadu_si256(static_cast<const __m256i*>(place)); }
inline Bytes add_products(Bytes sums, Bytes numbers, Bytes weights) { return _mm256_dpbusd_avx_epi32(sums, numbers, weights); }
inline Bytes pairs(Bytes a, Bytes b) { return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)); }
inline Bytes fours(Bytes a, Bytes b) { return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)); }
inline __m256i folded(Bytes a) { return a; }
constexpr int MOST_VECTORS = 1;
#endif
constexpr int64_t BYTES = sizeof(Bytes);
constexpr int64_t AHEAD = 8192;        // distance of the prefetch in bytes, by the latency of memory

// The sum of each of four.
inline __m128i each_sum(Bytes a, Bytes b, Bytes c, Bytes d) {
    const __m256i halves = folded(fours(pairs(a, b), pairs(c, d)));
    return _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
}

// Four products of the numbers of one row and those that are left behind whole `Bytes`.
inline __m128i products_behind(const int8_t* weights, int64_t inputs, const Number* numbers, int64_t from) {
    int32_t sums[4] = {};
    for (int64_t i = from; i < inputs; ++i)
        for (int j = 0; j < 4; ++j) sums[j] += int32_t(numbers[i]) * int32_t(weights[j * inputs + i]);
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(sums));
}

// Four outputs of one vector, of the sums over its first `whole` numbers, coarse and fine. Sums overflow only where
// taking out the shift brings them back.
inline void write_four(const Matrix& matrix, int64_t output, const Vectors& of, int64_t row, int64_t whole, __m128i coarse, __m128i fine, float* found) {
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * matrix.inputs;
    if (whole < matrix.inputs) {
        coarse = _mm_add_epi32(coarse, products_behind(weights, matrix.inputs, &of.coarse[row * of.width], whole));
        fine = _mm_add_epi32(fine, products_behind(weights, matrix.inputs, &of.fine[row * of.width], whole));
    }
    const __m128i less = _mm_loadu_si128(reinterpret_cast<const __m128i*>(matrix.sums + output));
    const __m256d first = _mm256_cvtepi32_pd(_mm_sub_epi32(coarse, less)), second = _mm256_cvtepi32_pd(_mm_sub_epi32(fine, less));
    const __m128 sums = _mm256_cvtpd_ps(double(FINER) * first + second);   // rounded once: till then all are whole
    const __m128 scales = _mm_loadu_ps(static_cast<const float*>(matrix.scales) + output);
    _mm_storeu_ps(found, sums * scales * _mm_set1_ps(of.steps[row] / float(FINER)));
}

// Four rows of weights times `ROWS` vectors.
template <int ROWS>
__attribute__((noinline)) void tile_of_shifted(const Matrix& matrix, int64_t output, const Vectors& of, int64_t row, float* found, int64_t apart) {
    const int64_t inputs = matrix.inputs, width = of.width, whole = inputs / BYTES * BYTES, ahead = std::max(4 * inputs, AHEAD);
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * inputs;
    const Number *coarse = &of.coarse[row * width], *fine = &of.fine[row * width];
    Bytes first[ROWS][4] = {}, second[ROWS][4] = {};
    for (int64_t i = 0; i < whole; i += BYTES) {
        fetch<4 * BYTES>(weights + 4 * i + ahead);
        Bytes high[ROWS], low[ROWS];
        for (int k = 0; k < ROWS; ++k) {
            hold(high[k] = bytes_at(coarse + k * width + i));
            hold(low[k] = bytes_at(fine + k * width + i));
        }
        for (int j = 0; j < 4; ++j) {
            Bytes some = bytes_at(weights + j * inputs + i);
            if (ROWS > 1) hold(some);
            for (int k = 0; k < ROWS; ++k) {
                first[k][j] = add_products(first[k][j], high[k], some);
                second[k][j] = add_products(second[k][j], low[k], some);
            }
        }
    }
    #pragma GCC unroll 4    // sums that are numbered while it runs would lie in memory all along
    for (int k = 0; k < ROWS; ++k)
        write_four(matrix, output, of, row + k, whole, each_sum(first[k][0], first[k][1], first[k][2], first[k][3]),
                   each_sum(second[k][0], second[k][1], second[k][2], second[k][3]), found + (row + k) * apart + output);
}

inline int64_t shifted_product(const Matrix& matrix, int64_t output, const Vectors& of, int64_t row) {
    const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * matrix.inputs;
    const Number *coarse = &of.coarse[row * of.width], *fine = &of.fine[row * of.width];
    int32_t first = -matrix.sums[output], second = first;
    for (int64_t i = 0; i < matrix.inputs; ++i) {
        first += int32_t(coarse[i]) * int32_t(weights[i]);
        second += int32_t(fine[i]) * int32_t(weights[i]);
    }
    return FINER * int64_t(first) + second;
}

inline void shifted(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    const float* scales = static_cast<const float*>(matrix.scales);
    for (int64_t from = 0; from < of.rows; from += TOGETHER) {
        const int64_t last = std::min(from + TOGETHER, of.rows);
        int64_t output = begin;
        for (; output + 4 <= end; output += 4) {
            int64_t row = from;
            for (; row + MOST_VECTORS <= last; row += MOST_VECTORS)
                tile_of_shifted<MOST_VECTORS>(matrix, output, of, row, found, apart);
            for (; row < last; ++row) tile_of_shifted<1>(matrix, output, of, row, found, apart);
        }
        for (; output < end; ++output)
            for (int64_t row = from; row < last; ++row)
                found[row * apart + output] = scaled(shifted_product(matrix, output, of, row), scales[output], of.steps[row]);
    }
}
#else
inline void shifted(const Matrix&, const Vectors&, float*, int64_t, int64_t, int64_t) {}
#endif
