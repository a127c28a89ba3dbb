// Eight rows of weights in blocks, unpacked and interleaved, times several vectors, with AVX2.
#pragma once
#include "matmul_block_rows.h"

#ifdef __AVX2__
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

inline __m256i broadcast32(const void* place) {
    int32_t value;
    std::memcpy(&value, place, sizeof value);
    return _mm256_set1_epi32(value);
}

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
#endif
