// Vectors in 8 bits, by blocks of 32 numbers with a scale each: the other factor of products with weights in blocks.
#pragma once
#include <limits>
#include <vector>

#include "simd.h"

constexpr long BLOCK_SIZE = 32;              // numbers of a vector that share a scale
constexpr long SPAN = 8;                // blocks that are multiplied at a time; vectors are padded with zeros to whole spans

// Vectors [rows, width] as integers of -127 ... 127: value = scale * code, off by at most half a scale.
struct BlockVectors {
    long rows = 0, blocks = 0;          // blocks: of a vector, padding included
    std::vector<int8_t> codes{};        // [rows, blocks, BLOCK_SIZE]
    std::vector<float> scales{};        // [rows, blocks]
    std::vector<float> totals{};        // [rows, blocks], scale times the sum of the codes
    std::vector<int16_t> sums{};        // [rows, blocks, 2], the sum of the codes of each half of a block

    void quantize(const float* values, long count, long width, long threads);

    const int8_t* codes_of(long row) const { return &codes[row * blocks * BLOCK_SIZE]; }
    const float* scales_of(long row) const { return &scales[row * blocks]; }
    const float* totals_of(long row) const { return &totals[row * blocks]; }
    const int16_t* sums_of(long row) const { return &sums[row * blocks * 2]; }
};

constexpr float SMALLEST_BLOCK = 1e-30f;    // blocks of smaller numbers become zeros: the reciprocal has to be finite

inline bool is_finite_block(const float* values) {
    uint32_t odd = 0;
    for (long i = 0; i < BLOCK_SIZE; ++i) {
        uint32_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        odd |= uint32_t((bits & 0x7f800000u) == 0x7f800000u);
    }
    return !odd;
}

// Quantize one block; return its scale. It is not a number if one of the values is not finite: so is each product then.
inline float quantize_block(const float* __restrict values, int8_t* __restrict codes) {
    const float greatest = greatest_size(values, BLOCK_SIZE);
    const float factor = greatest < SMALLEST_BLOCK ? 0.0f : 127.0f / greatest;
    if (!is_finite_block(values)) {
        std::memset(codes, 0, BLOCK_SIZE);
        return std::numeric_limits<float>::quiet_NaN();
    }
    for (long i = 0; i < BLOCK_SIZE; ++i) codes[i] = int8_t(int(std::nearbyintf(values[i] * factor)));
    return greatest < SMALLEST_BLOCK ? 0.0f : greatest / 127.0f;
}

inline int32_t sum_of_half(const int8_t* codes) {
    int32_t sum = 0;
    for (long i = 0; i < BLOCK_SIZE / 2; ++i) sum += codes[i];
    return sum;
}

inline void BlockVectors::quantize(const float* values, long count, long width, long threads) {
    rows = count, blocks = (width / BLOCK_SIZE + SPAN - 1) / SPAN * SPAN;
    codes.resize(rows * blocks * BLOCK_SIZE), scales.resize(rows * blocks), totals.resize(rows * blocks), sums.resize(rows * blocks * 2);
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && rows * width > 100000)
    for (long row = 0; row < rows; ++row)
        for (long block = 0; block < blocks; ++block) {
            const long place = row * blocks + block;
            int8_t* to = &codes[place * BLOCK_SIZE];
            if (block * BLOCK_SIZE < width) scales[place] = quantize_block(values + row * width + block * BLOCK_SIZE, to);
            else std::memset(to, 0, BLOCK_SIZE), scales[place] = 0;
            const int32_t first = sum_of_half(to), second = sum_of_half(to + BLOCK_SIZE / 2);
            sums[2 * place] = int16_t(first), sums[2 * place + 1] = int16_t(second);
            totals[place] = scales[place] * float(first + second);
        }
}
