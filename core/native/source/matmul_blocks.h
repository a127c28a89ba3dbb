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
#include "matmul_block_rows.h"

constexpr int64_t PANEL_ROWS = 8;          // rows of a panel of blocks
constexpr int64_t FEW_VECTORS = 32;        // which stay in the nearest cache while one panel follows another
constexpr int64_t PANELS_AT_ONCE = 4;       // panels that are unpacked at a time: vectors are read once for all of them

#ifdef __AVX2__

template <typename Format>
constexpr bool HAS_OFFSET = Format::SCALING == Scaling::OFFSET || Format::SCALING == Scaling::SUBOFFSETS;

// Eight rows of 32 weights: four codes of each row, then the next four of each.
struct alignas(64) PanelBlock {
    uint8_t codes[PANEL_ROWS * BLOCK_SIZE];     // of formats whose codes have a sign, 128 more than they are
    float scale[PANEL_ROWS], offset[PANEL_ROWS];
    int32_t sub[2][PANEL_ROWS];                 // the scale of each half of the block, in 16 bits, twice
    int32_t less[PANEL_ROWS];                   // 16 bits of each half
};

// Eight rows of 32 codes, `apart` codes from one to the next, as the codes of a panel.
inline void interleave(const uint8_t* from, int64_t apart, uint8_t* to) {
    __m256i in[8], pairs[8], fours[8];
    for (int i = 0; i < 8; ++i) in[i] = load256(from + i * apart);
    for (int i = 0; i < 4; ++i) {
        pairs[2 * i] = _mm256_unpacklo_epi32(in[2 * i], in[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_epi32(in[2 * i], in[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            fours[4 * i + 2 * j] = _mm256_unpacklo_epi64(pairs[4 * i + j], pairs[4 * i + 2 + j]);
            fours[4 * i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[4 * i + j], pairs[4 * i + 2 + j]);
        }
    __m256i* out = reinterpret_cast<__m256i*>(to);
    for (int i = 0; i < 4; ++i) {
        _mm256_store_si256(out + i, _mm256_permute2x128_si256(fours[i], fours[4 + i], 0x20));
        _mm256_store_si256(out + 4 + i, _mm256_permute2x128_si256(fours[i], fours[4 + i], 0x31));
    }
}

// Eight blocks of eight rows, unpacked but not interleaved.
struct UnpackedSpan {
    uint8_t codes[PANEL_ROWS][SPAN][BLOCK_SIZE];
    float scale[PANEL_ROWS][SPAN], offset[PANEL_ROWS][SPAN];
    int32_t sub[PANEL_ROWS][2][2][SPAN / 2];    // of blocks 0 to 3, first and second halves, then of blocks 4 to 7
    int32_t less[PANEL_ROWS][SPAN];

    template <typename Format, bool IS_WHOLE>
    void take(int64_t row, const Span<Format, IS_WHOLE>& span) {
        const __m256i shift = _mm256_set1_epi8(Format::MAX_CODE == SIGNED ? -128 : 0);
        for (int64_t i = 0; i < SPAN; ++i) store256(codes[row][i], _mm256_xor_si256(span.codes(i), shift));
        SpanScales scales;
        span.template read<SPAN>(scales);
        _mm256_storeu_ps(scale[row], scales.scale);
        if constexpr (HAS_OFFSET<Format>) _mm256_storeu_ps(offset[row], scales.offset);
        if constexpr (HAS_SUBSCALES<Format>)
            store256(sub[row][0], scales.sub[0]), store256(sub[row][1], scales.sub[1]), store256(less[row], scales.less);
    }

    template <typename Format>
    void lay(int64_t block, PanelBlock& to) const {
        interleave(codes[0][block], SPAN * BLOCK_SIZE, to.codes);
        for (int64_t row = 0; row < PANEL_ROWS; ++row) {
            to.scale[row] = scale[row][block];
            if constexpr (HAS_OFFSET<Format>) to.offset[row] = offset[row][block];
            if constexpr (HAS_SUBSCALES<Format>) {
                for (int64_t half = 0; half < 2; ++half) to.sub[half][row] = sub[row][block / 4][half][block % 4];
                to.less[row] = less[row][block];
            }
        }
    }
};

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

inline __m256i broadcast32(const void* place) {
    int32_t value;
    std::memcpy(&value, place, sizeof value);
    return _mm256_set1_epi32(value);
}

// What formats of the same products have in common.
template <Scaling KIND, int GREATEST>
struct Codes {
    static constexpr Scaling SCALING = KIND;
    static constexpr int MAX_CODE = GREATEST;
};

// Sums of products of 32 codes of eight rows with those of a vector: 32-bit integers, a row each.
template <typename Format, int ROWS>
inline void sums_of_panel(const PanelBlock& panel, const BlockVectors& of, int64_t row, int64_t block, __m256i sums[ROWS]) {
    constexpr int STEPS = BLOCK_SIZE / 4;
    const int8_t* codes[ROWS];
    for (int k = 0; k < ROWS; ++k) codes[k] = of.codes_of(row + k) + block * BLOCK_SIZE;
    for (int k = 0; k < ROWS; ++k) sums[k] = _mm256_setzero_si256();
    if constexpr (HAS_UNSIGNED_PRODUCTS) {
        for (int half = 0; half < 2; ++half) {
            __m256i own[ROWS];
            for (int k = 0; k < ROWS; ++k) own[k] = HAS_SUBSCALES<Format> ? _mm256_setzero_si256() : sums[k];
            #pragma GCC unroll 4
            for (int i = half * STEPS / 2; i < (half + 1) * STEPS / 2; ++i) {
                const __m256i weights = load256(panel.codes + 32 * i);
                for (int k = 0; k < ROWS; ++k) own[k] = add_unsigned_products(own[k], weights, broadcast32(codes[k] + 4 * i));
            }
            if constexpr (HAS_SUBSCALES<Format>) {
                const __m256i scale = _mm256_srai_epi32(load256(panel.sub[half]), 16);
                for (int k = 0; k < ROWS; ++k) sums[k] = _mm256_add_epi32(sums[k], _mm256_mullo_epi32(own[k], scale));
            } else {
                for (int k = 0; k < ROWS; ++k) sums[k] = own[k];
            }
        }
    } else if constexpr (Format::MAX_CODE == SIGNED) {
        const __m256i ones = _mm256_set1_epi16(1), shift = _mm256_set1_epi8(-128);
        #pragma GCC unroll 8
        for (int i = 0; i < STEPS; ++i) {
            const __m256i weights = _mm256_xor_si256(load256(panel.codes + 32 * i), shift), sizes = _mm256_abs_epi8(weights);
            for (int k = 0; k < ROWS; ++k) {
                const __m256i numbers = _mm256_sign_epi8(broadcast32(codes[k] + 4 * i), weights);
                sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, numbers), ones));
                hold(sums[k]);
            }
        }
    } else {
        // As many sums of two products as fit into 16 bits; with scales of halves, at most those of a half.
        constexpr int FITTING = 32767 / (2 * 127 * Format::MAX_CODE), MOST = HAS_SUBSCALES<Format> ? STEPS / 2 : STEPS;
        constexpr int TOGETHER_STEPS = FITTING >= MOST ? MOST : FITTING >= 4 ? 4 : 2;
        #pragma GCC unroll 4
        for (int from = 0; from < STEPS; from += TOGETHER_STEPS) {
            __m256i own[ROWS];
            #pragma GCC unroll 8
            for (int i = from; i < from + TOGETHER_STEPS; ++i) {
                const __m256i weights = load256(panel.codes + 32 * i);
                for (int k = 0; k < ROWS; ++k) {
                    const __m256i products = _mm256_maddubs_epi16(weights, broadcast32(codes[k] + 4 * i));
                    own[k] = i == from ? products : _mm256_add_epi16(own[k], products);
                    hold(own[k]);       // compilers would compute all products first, and run out of registers
                }
            }
            const __m256i scale = HAS_SUBSCALES<Format> ? load256(panel.sub[from / (STEPS / 2)]) : _mm256_set1_epi16(1);
            for (int k = 0; k < ROWS; ++k) sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(own[k], scale));
        }
    }
    if constexpr (HAS_UNSIGNED_PRODUCTS && Format::MAX_CODE == SIGNED)
        for (int k = 0; k < ROWS; ++k)
            sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(broadcast32(of.sums_of(row + k) + 2 * block), _mm256_set1_epi16(-128)));
    if constexpr (Format::SCALING == Scaling::SUBSCALES)
        for (int k = 0; k < ROWS; ++k)
            sums[k] = _mm256_add_epi32(sums[k], _mm256_madd_epi16(load256(panel.less), broadcast32(of.sums_of(row + k) + 2 * block)));
}

// Eight rows times `ROWS` vectors.
template <typename Format, int ROWS>
inline void tile_of_blocks(const PanelBlock* panel, const BlockVectors& of, int64_t row, int64_t blocks, float* found, int64_t apart, int64_t count) {
    __m256 parts[SPAN][ROWS];
    for (int64_t part = 0; part < SPAN; ++part) {
        __m256 totals[ROWS];
        for (int k = 0; k < ROWS; ++k) totals[k] = _mm256_setzero_ps();
        for (int64_t block = part; block < blocks; block += SPAN, ++panel) {
            __m256i sums[ROWS];
            sums_of_panel<Format, ROWS>(*panel, of, row, block, sums);
            const __m256 scale = _mm256_load_ps(panel->scale), offset = _mm256_load_ps(panel->offset);
            for (int k = 0; k < ROWS; ++k) {
                const __m256 step = _mm256_broadcast_ss(of.scales_of(row + k) + block);
                totals[k] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums[k]), _mm256_mul_ps(scale, step), totals[k]);
                if constexpr (Format::SCALING == Scaling::OFFSET)
                    totals[k] = _mm256_fmadd_ps(offset, _mm256_broadcast_ss(of.totals_of(row + k) + block), totals[k]);
                if constexpr (Format::SCALING == Scaling::SUBOFFSETS) {
                    const __m256i less = _mm256_madd_epi16(load256(panel->less), broadcast32(of.sums_of(row + k) + 2 * block));
                    totals[k] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(less), _mm256_mul_ps(offset, step), totals[k]);
                }
            }
        }
        for (int k = 0; k < ROWS; ++k) parts[part][k] = totals[k];
    }
    for (int k = 0; k < ROWS; ++k) {
        __m256 four[4];
        for (int i = 0; i < 4; ++i) four[i] = _mm256_add_ps(parts[i][k], parts[i + 4][k]);
        const __m256 total = _mm256_add_ps(_mm256_add_ps(four[0], four[2]), _mm256_add_ps(four[1], four[3]));
        float* to = found + (row + k) * apart;
        if (count == PANEL_ROWS) _mm256_storeu_ps(to, total);
        else for (int64_t i = 0; i < count; ++i) to[i] = total[i];
    }
}

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
