// Vectors in 8 bits, by blocks of 32 numbers with a scale each: the other factor of products with weights in blocks.
#pragma once
#include <limits>

#include "buffer.h"
#include "simd.h"
#include "threads.h"

constexpr int64_t BLOCK_SIZE = 32;              // numbers of a vector that share a scale
constexpr int64_t SPAN = 8;                // blocks that are multiplied at a time; vectors are padded with zeros to whole spans

// Vectors [rows, width] as integers of -127 ... 127: value = scale * code, off by at most half a scale.
struct BlockVectors {
    int64_t rows = 0, blocks = 0;          // blocks: of a vector, padding included
    Buffer<int8_t> codes{};        // [rows, blocks, BLOCK_SIZE]
    Buffer<float> scales{};        // [rows, blocks]
    Buffer<float> totals{};        // [rows, blocks], scale times the sum of the codes
    Buffer<int16_t> sums{};        // [rows, blocks, 2], the sum of the codes of each half of a block

    void quantize(const float* values, int64_t count, int64_t width, int64_t threads);

    const int8_t* codes_of(int64_t row) const { return &codes[row * blocks * BLOCK_SIZE]; }
    const float* scales_of(int64_t row) const { return &scales[row * blocks]; }
    const float* totals_of(int64_t row) const { return &totals[row * blocks]; }
    const int16_t* sums_of(int64_t row) const { return &sums[row * blocks * 2]; }
};

constexpr float SMALLEST_BLOCK = 1e-30f;    // blocks of smaller numbers become zeros: the reciprocal has to be finite

#ifdef __AVX2__
// Quantize one block; return its scale, and the sum of the codes of each half. The scale is not a number if one of the
// values is not finite: so is each product then.
inline float quantize_block(const float* values, int8_t* codes, int16_t* sums) {
    const __m256 no_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 number[4], size[4];
    for (int i = 0; i < 4; ++i) number[i] = _mm256_loadu_ps(values + 8 * i), size[i] = _mm256_and_ps(number[i], no_sign);
    // As integers, sizes are in the same order, infinities and no numbers at its end.
    __m256i most = _mm256_max_epi32(_mm256_max_epi32(_mm256_castps_si256(size[0]), _mm256_castps_si256(size[1])),
                                    _mm256_max_epi32(_mm256_castps_si256(size[2]), _mm256_castps_si256(size[3])));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e)), four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    const float greatest = _mm_cvtss_f32(_mm_castsi128_ps(four));
    if (!(greatest >= SMALLEST_BLOCK && greatest <= std::numeric_limits<float>::max())) {
        std::memset(codes, 0, BLOCK_SIZE), sums[0] = sums[1] = 0;
        return greatest < SMALLEST_BLOCK ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    }
    const __m256 factor = _mm256_set1_ps(127.0f / greatest);
    __m256i whole[4];
    for (int i = 0; i < 4; ++i) whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(number[i], factor));
    // Packing goes by 128 bits: the order is restored in steps of four codes.
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes), _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
    const __m256i half[2] = {_mm256_add_epi32(whole[0], whole[1]), _mm256_add_epi32(whole[2], whole[3])};
    for (int i = 0; i < 2; ++i) {
        __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(half[i]), _mm256_extracti128_si256(half[i], 1));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e)), sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
        sums[i] = int16_t(_mm_cvtsi128_si32(sum));
    }
    return greatest / 127.0f;
}
#else
inline bool is_finite_block(const float* values) {
    uint32_t special = 0;
    for (int64_t i = 0; i < BLOCK_SIZE; ++i) {
        uint32_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        special |= uint32_t((bits & 0x7f800000u) == 0x7f800000u);
    }
    return !special;
}

// Quantize one block; return its scale, and the sum of the codes of each half. The scale is not a number if one of the
// values is not finite: so is each product then.
inline float quantize_block(const float* __restrict values, int8_t* __restrict codes, int16_t* __restrict sums) {
    const float greatest = greatest_size(values, BLOCK_SIZE);
    if (!is_finite_block(values) || greatest < SMALLEST_BLOCK) {
        std::memset(codes, 0, BLOCK_SIZE), sums[0] = sums[1] = 0;
        return is_finite_block(values) ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    }
    const float factor = 127.0f / greatest;
    for (int64_t i = 0; i < BLOCK_SIZE; ++i) codes[i] = int8_t(int(std::nearbyintf(values[i] * factor)));
    for (int64_t half = 0; half < 2; ++half) {
        int32_t sum = 0;
        for (int64_t i = 0; i < BLOCK_SIZE / 2; ++i) sum += codes[half * (BLOCK_SIZE / 2) + i];
        sums[half] = int16_t(sum);
    }
    return greatest / 127.0f;
}
#endif

inline void BlockVectors::quantize(const float* values, int64_t count, int64_t width, int64_t threads) {
    rows = count, blocks = (width / BLOCK_SIZE + SPAN - 1) / SPAN * SPAN;
    codes.resize(rows * blocks * BLOCK_SIZE), scales.resize(rows * blocks), totals.resize(rows * blocks), sums.resize(rows * blocks * 2);
    for_each_part(rows, rows * width > 100000 ? threads : 1, [&](int64_t row) {
        for (int64_t block = 0; block < blocks; ++block) {
            const int64_t place = row * blocks + block;
            int8_t* to = &codes[place * BLOCK_SIZE];
            int16_t* both = &sums[2 * place];
            if (block * BLOCK_SIZE < width) scales[place] = quantize_block(values + row * width + block * BLOCK_SIZE, to, both);
            else std::memset(to, 0, BLOCK_SIZE), scales[place] = 0, both[0] = both[1] = 0;
            totals[place] = scales[place] * float(both[0] + both[1]);
        }
    });
}
