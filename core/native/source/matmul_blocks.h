// Products of vectors with weights in the blocks of GGUF files. The vectors are quantized to 8 bits by blocks of 32
// (block_vectors.h). The sum of the products of 32 codes is an exact integer; it is scaled and added to one of eight
// partial sums, that of the block's number modulo 8, and these are added at the end. This order is the same for one
// vector and for many, so that a token read with others gives, to the last bit, what it gives alone.
//
// One vector: each row is read once from memory and unpacked in registers (matmul_block_rows.h). Several vectors: eight
// rows are unpacked and interleaved to a panel, which all vectors share.
#pragma once
#include <algorithm>

#include "block_formats.h"
#include "matmul.h"
#include "matmul_block_neon.h"
#include "matmul_block_panels.h"

#if defined(__AVX2__) || DECODESCOPE_NEON
#define DECODESCOPE_PANELS 1
#else
#define DECODESCOPE_PANELS 0
#endif

constexpr int64_t FEW_VECTORS = 32;        // which stay in the nearest cache while one panel follows another
constexpr int64_t PANELS_AT_ONCE = 4;       // panels that are unpacked at a time: vectors are read once for all of them

#if DECODESCOPE_PANELS

// Rows of a matrix in panels. Blocks lie by their number modulo SPAN: those of a partial sum follow each other.
struct Panels {
    Buffer<PanelBlock> places{};
    UnpackedSpan span{};
    int64_t blocks = 0;

    int64_t place_of(int64_t block) const {
        const int64_t part = block % SPAN, longer = blocks % SPAN;
        return part * (blocks / SPAN) + std::min(part, longer) + block / SPAN;
    }
    const PanelBlock* panel(int64_t number) const { return &places[number * blocks]; }

    // Rows behind the last one are the last one again.
    template <typename Format>
    void unpack(const uint8_t* rows, int64_t row_bytes, int64_t inputs, int64_t count) {
        blocks = inputs / BLOCK_SIZE;
        places.resize(PANELS_AT_ONCE * blocks);
        for (int64_t first = 0; first < count; first += PANEL_ROWS)
            for (int64_t block = 0; block < blocks; block += SPAN) {
                for (int64_t row = 0; row < PANEL_ROWS; ++row) {
                    const uint8_t* from = rows + std::min(first + row, count - 1) * row_bytes + block / SPAN * SPAN_BYTES<Format>;
                    fetch<SPAN_BYTES<Format>>(from + 2 * SPAN_BYTES<Format>);
                    if (block + SPAN <= blocks) span.take(row, Span<Format, true>{from, SPAN - 1});
                    else if constexpr (Format::WEIGHTS == BLOCK_SIZE) span.take(row, Span<Format, false>{from, blocks - block - 1});
                }
                for (int64_t i = block; i < std::min(block + SPAN, blocks); ++i)
                    span.lay<Format>(i - block, places[first / PANEL_ROWS * blocks + place_of(i)]);
            }
    }
};

constexpr int64_t LEAST_PANEL_VECTORS = 6; // fewer are multiplied one by one: laying a panel takes as long as two to four of them
constexpr int MOST_BLOCK_VECTORS = 4;   // vectors at a time whose sums the processor has registers for

// Vectors from `row` on, ROWS at a time, then the rest at once; PANELS_AT_ONCE panels share what is read of them.
template <typename Format, int ROWS>
inline void tile_vectors(const Panels& panels, const BlockVectors& of, int64_t row, float* found, int64_t apart, int64_t count) {
    for (; row + ROWS <= of.rows; row += ROWS)
        for (int64_t first = 0; first < count; first += PANEL_ROWS)
            tile_of_blocks<Format, ROWS>(panels.panel(first / PANEL_ROWS), of, row, panels.blocks, found + first, apart,
                                         std::min(PANEL_ROWS, count - first));
    if constexpr (ROWS > 1)
        if (row < of.rows) tile_vectors<Format, ROWS / 2>(panels, of, row, found, apart, count);
}

template <typename Format>
inline void multiply_format(const Matrix& matrix, const BlockVectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    const int64_t row_bytes = matrix.inputs / Format::WEIGHTS * Format::BYTES, blocks = matrix.inputs / BLOCK_SIZE;
    const uint8_t* weights = static_cast<const uint8_t*>(matrix.weights);
    if (of.rows < LEAST_PANEL_VECTORS) {
        for (int64_t output = begin; output < end; ++output)
            for (int64_t row = 0; row < of.rows; ++row)
                found[row * apart + output] = product_of_row<Format>(weights + output * row_bytes, blocks, of, row);
        return;
    }
    static thread_local Panels panels;
    const int64_t step = (of.rows > FEW_VECTORS ? PANELS_AT_ONCE : 1) * PANEL_ROWS;
    for (int64_t first = begin; first < end; first += step) {
        const int64_t count = std::min(step, end - first);
        panels.unpack<Format>(weights + first * row_bytes, row_bytes, matrix.inputs, count);
        tile_vectors<Codes<Format::SCALING, Format::MAX_CODE>, MOST_BLOCK_VECTORS>(panels, of, 0, found + first, apart, count);
    }
}
#else

// One unpacked row times a vector. Compilers make vector instructions of these loops.
template <Scaling SCALING>
inline float product_of_codes(const int8_t* codes, const BlockScales* scales, const BlockVectors& of, int64_t row, int64_t blocks) {
    const int8_t* numbers = of.codes_of(row);
    const int16_t* sums = of.sums_of(row);
    float parts[SPAN] = {};
    for (int64_t block = 0; block < blocks; ++block) {
        int32_t products[2] = {};
        for (int64_t half = 0; half < 2; ++half)
            for (int64_t i = 0; i < BLOCK_SIZE / 2; ++i) {
                const int64_t place = block * BLOCK_SIZE + half * (BLOCK_SIZE / 2) + i;
                products[half] += int32_t(codes[place]) * int32_t(numbers[place]);
            }
        const BlockScales& own = scales[block];
        const float step = of.scales_of(row)[block];
        float& part = parts[block % SPAN];
        if (SCALING == Scaling::PLAIN || SCALING == Scaling::OFFSET) part += float(products[0] + products[1]) * (own.scale * step);
        if (SCALING == Scaling::OFFSET) part += own.offset * of.totals_of(row)[block];
        if (SCALING == Scaling::SUBSCALES || SCALING == Scaling::SUBOFFSETS) {
            int32_t sum = own.sub[0] * products[0] + own.sub[1] * products[1];
            const int32_t less = own.less[0] * int32_t(sums[2 * block]) + own.less[1] * int32_t(sums[2 * block + 1]);
            if (SCALING == Scaling::SUBSCALES) sum += less;
            part += float(sum) * (own.scale * step);
            if (SCALING == Scaling::SUBOFFSETS) part += float(less) * (own.offset * step);
        }
    }
    for (int64_t i = 0; i < 4; ++i) parts[i] += parts[i + 4];
    return (parts[0] + parts[2]) + (parts[1] + parts[3]);
}

template <typename Format>
inline void multiply_format(const Matrix& matrix, const BlockVectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    const int64_t row_bytes = matrix.inputs / Format::WEIGHTS * Format::BYTES, blocks = matrix.inputs / BLOCK_SIZE;
    const uint8_t* weights = static_cast<const uint8_t*>(matrix.weights);
    static thread_local Buffer<int8_t> codes;
    static thread_local Buffer<BlockScales> scales;
    codes.resize(matrix.inputs), scales.resize(blocks);
    for (int64_t output = begin; output < end; ++output) {
        unpack_row<Format>(weights + output * row_bytes, matrix.inputs, codes.data(), scales.data());
        for (int64_t row = 0; row < of.rows; ++row)
            found[row * apart + output] = product_of_codes<Format::SCALING>(codes.data(), scales.data(), of, row, blocks);
    }
}
#endif

// found[row * apart + output] for outputs from `begin` to `end` of a matrix in blocks, without its bias.
inline void multiply_blocks(const Matrix& matrix, const BlockVectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    with_format(matrix.kind, [&](auto format) { multiply_format<decltype(format)>(matrix, of, found, apart, begin, end); });
}
