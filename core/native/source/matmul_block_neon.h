// Weights in blocks times vectors with NEON: one row at a time as in matmul_block_rows.h, and panels of eight rows as in
// matmul_block_panels.h. Codes and numbers both have a sign. Sums are added in the same order for one vector and for many.
#pragma once
#include <algorithm>
#include <type_traits>

#include "block_formats.h"

#if DECODESCOPE_NEON

// 32 codes.
struct BlockCodes {
    int8x16_t low, high;
};

inline BlockCodes signed_codes(uint8x16_t low, uint8x16_t high) { return {vreinterpretq_s8_u8(low), vreinterpretq_s8_u8(high)}; }

inline BlockCodes either(BlockCodes a, BlockCodes b) { return {vorrq_s8(a.low, b.low), vorrq_s8(a.high, b.high)}; }

// Codes of 4 bits in 16 bytes: the lower halves, then the upper ones.
inline BlockCodes nibbles(const uint8_t* bytes) {
    const uint8x16_t both = vld1q_u8(bytes);
    return signed_codes(vandq_u8(both, vdupq_n_u8(15)), vshrq_n_u8(both, 4));
}

inline BlockCodes iq4_values(BlockCodes codes) {
    const int8x16_t values = vld1q_s8(IQ4_VALUES);
    return {vqtbl1q_s8(values, vreinterpretq_u8_s8(codes.low)), vqtbl1q_s8(values, vreinterpretq_u8_s8(codes.high))};
}

// 16 in each byte whose bit of 16 is set.
inline uint8x16_t fifth_bits(uint16_t bits) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const uint8x16_t bytes = vcombine_u8(vdup_n_u8(uint8_t(bits & 255)), vdup_n_u8(uint8_t(bits >> 8)));
    return vandq_u8(vtstq_u8(bytes, bit), vdupq_n_u8(16));
}

inline BlockCodes fifth_bits(const uint8_t* place) { return signed_codes(fifth_bits(load16(place)), fifth_bits(load16(place + 2))); }

// Codes of one block of 32 weights of the formats with such blocks.
inline BlockCodes codes_of(Q4_0, const uint8_t* block) { return nibbles(block + 2); }
inline BlockCodes codes_of(Q4_1, const uint8_t* block) { return nibbles(block + 4); }
inline BlockCodes codes_of(Q5_0, const uint8_t* block) { return either(nibbles(block + 6), fifth_bits(block + 2)); }
inline BlockCodes codes_of(Q5_1, const uint8_t* block) { return either(nibbles(block + 8), fifth_bits(block + 4)); }
inline BlockCodes codes_of(Q8_0, const uint8_t* block) { return signed_codes(vld1q_u8(block + 2), vld1q_u8(block + 18)); }
inline BlockCodes codes_of(IQ4_NL, const uint8_t* block) { return iq4_values(nibbles(block + 2)); }

// Codes of group `i` of 32 of one block of 256 weights of the formats with such blocks.

// Each byte shifted to the left, or by less than 0 to the right, less the bits outside of `mask`.
inline uint8x16_t shifted_bits(const uint8_t* bytes, int64_t by, int mask) {
    return vandq_u8(vshlq_u8(vld1q_u8(bytes), vdupq_n_s8(int8_t(by))), vdupq_n_u8(uint8_t(mask)));
}

inline BlockCodes shifted_codes(const uint8_t* bytes, int64_t by, int mask) {
    return signed_codes(shifted_bits(bytes, by, mask), shifted_bits(bytes + 16, by, mask));
}

inline BlockCodes long_nibbles(const uint8_t* bytes, int64_t i) { return shifted_codes(bytes + i / 2 * 32, i % 2 * -4, 15); }
inline BlockCodes quarters(const uint8_t* bytes, int64_t i) { return shifted_codes(bytes + i / 4 * 32, i % 4 * -2, 3); }

inline BlockCodes codes_of(Q4_K, const uint8_t* block, int64_t i) { return long_nibbles(block + 16, i); }
inline BlockCodes codes_of(Q5_K, const uint8_t* block, int64_t i) {
    return either(long_nibbles(block + 48, i), shifted_codes(block + 16, 4 - i, 16));
}
inline BlockCodes codes_of(Q6_K, const uint8_t* block, int64_t i) {
    return either(shifted_codes(block + i / 4 * 64 + i % 2 * 32, i % 4 / 2 * -4, 15),
                  shifted_codes(block + 128 + i / 4 * 32, 4 - i % 4 * 2, 48));
}
inline BlockCodes codes_of(Q3_K, const uint8_t* block, int64_t i) { return either(quarters(block + 32, i), shifted_codes(block, 2 - i, 4)); }
inline BlockCodes codes_of(Q2_K, const uint8_t* block, int64_t i) { return quarters(block + 16, i); }
inline BlockCodes codes_of(IQ4_XS, const uint8_t* block, int64_t i) { return iq4_values(nibbles(block + 8 + i * 16)); }

// Scales, offsets and so on of eight blocks of 32 weights, in their order; `sub` and `less` of the halves of the blocks.
struct SpanScales {
    float32x4_t scale[2], offset[2];
    int16x8_t sub[2], less[2];
};

// Eight numbers of 8 bits as floats.
inline void floats_of_bytes(uint32_t low, uint32_t high, float32x4_t found[2]) {
    const uint16x8_t wide = vmovl_u8(vcreate_u8(uint64_t(high) << 32 | low));
    found[0] = vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))), found[1] = vcvtq_f32_u32(vmovl_high_u16(wide));
}

inline void multiply_both(float32x4_t values[2], float factor) {
    for (int i = 0; i < 2; ++i) values[i] = vmulq_n_f32(values[i], factor);
}

inline void set_subscales(int8x16_t bytes, SpanScales& scales) {
    scales.sub[0] = vmovl_s8(vget_low_s8(bytes)), scales.sub[1] = vmovl_high_s8(bytes);
}

inline void six_bit_scales(const uint8_t* block, SpanScales& scales) {
    const SixBits six(block + 4);
    floats_of_bytes(six.scales[0], six.scales[1], scales.scale), floats_of_bytes(six.offsets[0], six.offsets[1], scales.offset);
    multiply_both(scales.scale, load_half(block)), multiply_both(scales.offset, -load_half(block + 2));
}

inline void scales_of(Q4_K, const uint8_t* block, SpanScales& scales) { six_bit_scales(block, scales); }
inline void scales_of(Q5_K, const uint8_t* block, SpanScales& scales) { six_bit_scales(block, scales); }

inline void scales_of(Q6_K, const uint8_t* block, SpanScales& scales) {
    set_subscales(vreinterpretq_s8_u8(vld1q_u8(block + 192)), scales);
    for (int i = 0; i < 2; ++i) scales.scale[i] = vdupq_n_f32(load_half(block + 208)), scales.less[i] = vmulq_n_s16(scales.sub[i], -32);
}

inline void scales_of(Q3_K, const uint8_t* block, SpanScales& scales) {
    uint32_t words[4];
    unpack_q3_scales(block + 96, words);
    set_subscales(vsubq_s8(vreinterpretq_s8_u32(vld1q_u32(words)), vdupq_n_s8(32)), scales);
    for (int i = 0; i < 2; ++i) scales.scale[i] = vdupq_n_f32(load_half(block + 108)), scales.less[i] = vmulq_n_s16(scales.sub[i], -4);
}

inline void scales_of(Q2_K, const uint8_t* block, SpanScales& scales) {
    const uint8x16_t both = vld1q_u8(block), less = vshrq_n_u8(both, 4);
    set_subscales(vreinterpretq_s8_u8(vandq_u8(both, vdupq_n_u8(15))), scales);
    scales.less[0] = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(less))), scales.less[1] = vreinterpretq_s16_u16(vmovl_high_u8(less));
    for (int i = 0; i < 2; ++i) scales.scale[i] = vdupq_n_f32(load_half(block + 80)), scales.offset[i] = vdupq_n_f32(-load_half(block + 82));
}

inline void scales_of(IQ4_XS, const uint8_t* block, SpanScales& scales) {
    const int16_t places[8] = {0, -2, -4, -6, -8, -10, -12, -14};
    const uint8x8_t bytes = vcreate_u8(load32(block + 4));
    const uint8x8_t low = vzip1_u8(vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4));
    const uint16x8_t high = vandq_u16(vshlq_u16(vdupq_n_u16(load16(block + 2)), vld1q_s16(places)), vdupq_n_u16(3));
    const int16x8_t sub = vsubq_s16(vreinterpretq_s16_u16(vorrq_u16(vmovl_u8(low), vshlq_n_u16(high, 4))), vdupq_n_s16(32));
    scales.scale[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(sub))), scales.scale[1] = vcvtq_f32_s32(vmovl_high_s16(sub));
    multiply_both(scales.scale, load_half(block));
}

// Up to eight blocks that follow each other. Behind the last one, the last one is read again, with scales of 0.
template <typename Format, bool IS_WHOLE>
struct Span {
    const uint8_t* first;
    int64_t last;

    const uint8_t* operator[](int64_t i) const { return first + (IS_WHOLE ? i : std::min(i, last)) * Format::BYTES; }

    BlockCodes codes(int64_t i) const {
        if constexpr (Format::WEIGHTS == BLOCK_SIZE) return codes_of(Format{}, (*this)[i]);
        else return codes_of(Format{}, first, i);
    }

    // Eight numbers of 16 bits at the beginning of the blocks, or `from` bytes after it, as floats.
    void halves(int64_t from, float32x4_t found[2]) const {
        for (int64_t i = 0; i < 2; ++i) {
            uint64_t bits = 0;
            for (int64_t j = 0; j < 4; ++j)
                if (IS_WHOLE || 4 * i + j <= last) bits |= uint64_t(load16((*this)[4 * i + j] + from)) << 16 * j;
            found[i] = vcvt_f32_f16(vreinterpret_f16_u64(vcreate_u64(bits)));
        }
    }

    void read(SpanScales& scales) const {
        if constexpr (Format::WEIGHTS != BLOCK_SIZE) return scales_of(Format{}, first, scales);
        halves(0, scales.scale);
        if constexpr (std::is_same_v<Format, Q4_1> || std::is_same_v<Format, Q5_1>) halves(2, scales.offset);
        else if constexpr (Format::SCALING == Scaling::OFFSET)
            for (int i = 0; i < 2; ++i) scales.offset[i] = vmulq_n_f32(scales.scale[i], Format::MAX_CODE == 15 ? -8.0f : -16.0f);
    }
};

// Sums of products of four blocks, an element per block.
template <typename Format, typename Codes>
inline int32x4_t sums_of_four(const Codes& span, int64_t block, const int8_t* numbers, const SpanScales& scales) {
    int32x4_t sums[4], halves[4];
    for (int64_t i = 0; i < 4; ++i) {
        const BlockCodes codes = span.codes(block + i);
        const int8x16_t low = vld1q_s8(numbers + (block + i) * BLOCK_SIZE), high = vld1q_s8(numbers + (block + i) * BLOCK_SIZE + 16);
        sums[i] = add_sixteen(vdupq_n_s32(0), codes.low, low);
        if constexpr (HAS_SUBSCALES<Format>) halves[i] = vpaddq_s32(sums[i], add_sixteen(vdupq_n_s32(0), codes.high, high));
        else sums[i] = add_sixteen(sums[i], codes.high, high);
    }
    if constexpr (HAS_SUBSCALES<Format>) {
        const int16x8_t sub = scales.sub[block / 4];
        const int32x4_t first = vmulq_s32(vpaddq_s32(halves[0], halves[1]), vmovl_s16(vget_low_s16(sub)));
        return vpaddq_s32(first, vmulq_s32(vpaddq_s32(halves[2], halves[3]), vmovl_high_s16(sub)));
    } else {
        return vpaddq_s32(vpaddq_s32(sums[0], sums[1]), vpaddq_s32(sums[2], sums[3]));
    }
}

// The products of eight blocks, added to the partial sums.
template <typename Format, bool IS_WHOLE>
inline void add_span(const Span<Format, IS_WHOLE>& span, const SpanNumbers& of, float32x4_t parts[2]) {
    SpanScales scales;
    span.read(scales);
    for (int64_t i = 0; i < 2; ++i) {
        int32x4_t sums = sums_of_four<Format>(span, 4 * i, of.codes, scales), less;
        if constexpr (HAS_SUBSCALES<Format>) {
            const int16x8_t both = vld1q_s16(of.sums + 8 * i);
            less = vpaddq_s32(vmull_s16(vget_low_s16(both), vget_low_s16(scales.less[i])), vmull_high_s16(both, scales.less[i]));
        }
        if constexpr (Format::SCALING == Scaling::SUBSCALES) sums = vaddq_s32(sums, less);
        const float32x4_t steps = vld1q_f32(of.scales + 4 * i);
        parts[i] = vfmaq_f32(parts[i], vcvtq_f32_s32(sums), vmulq_f32(scales.scale[i], steps));
        if constexpr (Format::SCALING == Scaling::OFFSET) parts[i] = vfmaq_f32(parts[i], scales.offset[i], vld1q_f32(of.totals + 4 * i));
        if constexpr (Format::SCALING == Scaling::SUBOFFSETS)
            parts[i] = vfmaq_f32(parts[i], vcvtq_f32_s32(less), vmulq_f32(scales.offset[i], steps));
    }
}

// A row of blocks times vector `number`.
template <typename Format>
inline float product_of_row(const uint8_t* row, int64_t blocks, const BlockVectors& of, int64_t number) {
    SpanNumbers numbers = of.numbers_of(number);
    float32x4_t parts[2] = {vdupq_n_f32(0), vdupq_n_f32(0)};
    int64_t block = 0;
    for (; block + SPAN <= blocks; block += SPAN, row += SPAN_BYTES<Format>, numbers.advance()) {
        for (int64_t i = 0; i < SPAN_BYTES<Format>; i += 64) __builtin_prefetch(row + ROW_AHEAD + i);
        add_span(Span<Format, true>{row, SPAN - 1}, numbers, parts);
    }
    if constexpr (Format::WEIGHTS == BLOCK_SIZE)
        if (block < blocks) add_span(Span<Format, false>{row, blocks - block - 1}, numbers, parts);
    const float32x4_t four = vaddq_f32(parts[0], parts[1]);
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// Eight rows of 32 weights: sixteen codes of two rows (i8mm) or of four rows at a time, in turn an eighth or a quarter of
// a block of each of eight rows.
struct alignas(64) PanelBlock {
    int8_t codes[PANEL_ROWS * BLOCK_SIZE];
    float scale[PANEL_ROWS], offset[PANEL_ROWS];
    int32_t sub[2][PANEL_ROWS];
    int16_t less[2][PANEL_ROWS];
};

#ifdef __ARM_FEATURE_MATMUL_INT8
constexpr int64_t ROWS_TOGETHER = 2;
#else
constexpr int64_t ROWS_TOGETHER = 4;
#endif

// Eight blocks of eight rows, unpacked but not interleaved.
struct UnpackedSpan {
    int8_t codes[PANEL_ROWS][SPAN][BLOCK_SIZE];
    float scale[PANEL_ROWS][SPAN], offset[PANEL_ROWS][SPAN];
    int16_t sub[PANEL_ROWS][2 * SPAN], less[PANEL_ROWS][2 * SPAN];

    template <typename Format, bool IS_WHOLE>
    void take(int64_t row, const Span<Format, IS_WHOLE>& span) {
        SpanScales scales;
        span.read(scales);
        for (int64_t i = 0; i < SPAN; ++i) {
            const BlockCodes own = span.codes(i);
            vst1q_s8(codes[row][i], own.low), vst1q_s8(codes[row][i] + 16, own.high);
        }
        for (int64_t i = 0; i < 2; ++i) {
            vst1q_f32(scale[row] + 4 * i, scales.scale[i]);
            if constexpr (HAS_OFFSET<Format>) vst1q_f32(offset[row] + 4 * i, scales.offset[i]);
            if constexpr (HAS_SUBSCALES<Format>) vst1q_s16(sub[row] + 8 * i, scales.sub[i]), vst1q_s16(less[row] + 8 * i, scales.less[i]);
        }
    }

    template <typename Format>
    void lay(int64_t block, PanelBlock& to) const {
        constexpr int64_t EACH = 16 / ROWS_TOGETHER;        // codes of a row
        for (int64_t row = 0; row < PANEL_ROWS; ++row) {
            int8_t* own = to.codes + row / ROWS_TOGETHER * 16 + row % ROWS_TOGETHER * EACH;
            for (int64_t i = 0; i < BLOCK_SIZE / EACH; ++i)
                std::memcpy(own + i * EACH * PANEL_ROWS, codes[row][block] + i * EACH, size_t(EACH));
            to.scale[row] = scale[row][block];
            if constexpr (HAS_OFFSET<Format>) to.offset[row] = offset[row][block];
            if constexpr (HAS_SUBSCALES<Format>)
                for (int64_t half = 0; half < 2; ++half) {
                    to.sub[half][row] = sub[row][2 * block + half];
                    to.less[half][row] = less[row][2 * block + half];
                }
        }
    }
};

// Sums of products of sixteen codes of eight rows with those of ROWS vectors: [vector][four rows each].
#ifdef __ARM_FEATURE_MATMUL_INT8
template <int ROWS>
inline void add_half_block(const int8_t* panel, const int8_t* const* codes, int32x4_t (*sums)[2]) {
    for (int k = 0; k < ROWS; k += 2) {
        const int64x2_t first = vreinterpretq_s64_s8(vld1q_s8(codes[k]));
        const int64x2_t second = vreinterpretq_s64_s8(vld1q_s8(codes[k + 1 < ROWS ? k + 1 : k]));
        const int8x16_t numbers[2] = {vreinterpretq_s8_s64(vzip1q_s64(first, second)), vreinterpretq_s8_s64(vzip2q_s64(first, second))};
        for (int64_t four = 0; four < 2; ++four) {
            int32x4_t low = vdupq_n_s32(0), high = vdupq_n_s32(0);      // two rows times two vectors each
            for (int64_t i = 0; i < 2; ++i) {
                low = vmmlaq_s32(low, vld1q_s8(panel + 64 * i + 32 * four), numbers[i]);
                high = vmmlaq_s32(high, vld1q_s8(panel + 64 * i + 32 * four + 16), numbers[i]);
            }
            sums[k][four] = vaddq_s32(sums[k][four], vuzp1q_s32(low, high));
            if (k + 1 < ROWS) sums[k + 1][four] = vaddq_s32(sums[k + 1][four], vuzp2q_s32(low, high));
        }
    }
}
#else
template <int PLACE, int ROWS>
inline void add_step(const int8_t* panel, const int8x16_t* numbers, int32x4_t (*sums)[2]) {
    const int8x16_t low = vld1q_s8(panel + 32 * PLACE), high = vld1q_s8(panel + 32 * PLACE + 16);
    for (int k = 0; k < ROWS; ++k) {
#ifdef __ARM_FEATURE_DOTPROD
        sums[k][0] = vdotq_laneq_s32(sums[k][0], low, numbers[k], PLACE), sums[k][1] = vdotq_laneq_s32(sums[k][1], high, numbers[k], PLACE);
#else
        const int8x16_t four = vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(numbers[k]), PLACE));
        sums[k][0] = add_fours(sums[k][0], low, four), sums[k][1] = add_fours(sums[k][1], high, four);
#endif
    }
}

template <int ROWS>
inline void add_half_block(const int8_t* panel, const int8_t* const* codes, int32x4_t (*sums)[2]) {
    int8x16_t numbers[ROWS];
    for (int k = 0; k < ROWS; ++k) numbers[k] = vld1q_s8(codes[k]);
    add_step<0, ROWS>(panel, numbers, sums), add_step<1, ROWS>(panel, numbers, sums);
    add_step<2, ROWS>(panel, numbers, sums), add_step<3, ROWS>(panel, numbers, sums);
}
#endif

// What the offsets of the halves of a block make of the sums of a vector's halves, for eight rows.
inline void less_of(const PanelBlock& panel, const int16_t* sums, int32x4_t less[2]) {
    const int16x8_t first = vld1q_s16(panel.less[0]), second = vld1q_s16(panel.less[1]);
    less[0] = vmlal_n_s16(vmull_n_s16(vget_low_s16(first), sums[0]), vget_low_s16(second), sums[1]);
    less[1] = vmlal_high_n_s16(vmull_high_n_s16(first, sums[0]), second, sums[1]);
}

// Sums of products of 32 codes of eight rows with those of vectors.
template <typename Format, int ROWS>
inline void sums_of_panel(const PanelBlock& panel, const BlockVectors& of, int64_t row, int64_t block, int32x4_t (*sums)[2]) {
    for (int k = 0; k < ROWS; ++k) sums[k][0] = sums[k][1] = vdupq_n_s32(0);
    for (int64_t half = 0; half < 2; ++half) {
        const int8_t* codes[ROWS];
        for (int k = 0; k < ROWS; ++k) codes[k] = of.codes_of(row + k) + block * BLOCK_SIZE + half * (BLOCK_SIZE / 2);
        const int8_t* own = panel.codes + half * (PANEL_ROWS * BLOCK_SIZE / 2);
        if constexpr (HAS_SUBSCALES<Format>) {
            int32x4_t parts[ROWS][2];
            for (int k = 0; k < ROWS; ++k) parts[k][0] = parts[k][1] = vdupq_n_s32(0);
            add_half_block<ROWS>(own, codes, parts);
            for (int k = 0; k < ROWS; ++k)
                for (int64_t four = 0; four < 2; ++four) sums[k][four] = vmlaq_s32(sums[k][four], parts[k][four], vld1q_s32(panel.sub[half] + 4 * four));
        } else {
            add_half_block<ROWS>(own, codes, sums);
        }
    }
}

// Eight rows times `ROWS` vectors.
template <typename Format, int ROWS>
inline void tile_of_blocks(
    const PanelBlock* panel, const BlockVectors& of, int64_t row, int64_t blocks, float* found, int64_t apart, int64_t count
) {
    float32x4_t parts[SPAN][ROWS][2];
    for (int64_t part = 0; part < SPAN; ++part) {
        float32x4_t totals[ROWS][2];
        for (int k = 0; k < ROWS; ++k) totals[k][0] = totals[k][1] = vdupq_n_f32(0);
        for (int64_t block = part; block < blocks; block += SPAN, ++panel) {
            int32x4_t sums[ROWS][2];
            sums_of_panel<Format, ROWS>(*panel, of, row, block, sums);
            for (int k = 0; k < ROWS; ++k) {
                const float step = of.scales_of(row + k)[block];
                int32x4_t less[2];
                if constexpr (HAS_SUBSCALES<Format>) less_of(*panel, of.sums_of(row + k) + 2 * block, less);
                for (int64_t four = 0; four < 2; ++four) {
                    if constexpr (Format::SCALING == Scaling::SUBSCALES) sums[k][four] = vaddq_s32(sums[k][four], less[four]);
                    const float32x4_t scale = vld1q_f32(panel->scale + 4 * four), offset = vld1q_f32(panel->offset + 4 * four);
                    float32x4_t& total = totals[k][four];
                    total = vfmaq_f32(total, vcvtq_f32_s32(sums[k][four]), vmulq_n_f32(scale, step));
                    if constexpr (Format::SCALING == Scaling::OFFSET) total = vfmaq_n_f32(total, offset, of.totals_of(row + k)[block]);
                    if constexpr (Format::SCALING == Scaling::SUBOFFSETS)
                        total = vfmaq_f32(total, vcvtq_f32_s32(less[four]), vmulq_n_f32(offset, step));
                }
            }
        }
        for (int k = 0; k < ROWS; ++k) parts[part][k][0] = totals[k][0], parts[part][k][1] = totals[k][1];
    }
    for (int k = 0; k < ROWS; ++k) {
        float eight[PANEL_ROWS];
        for (int64_t i = 0; i < 2; ++i) {
            float32x4_t four[4];
            for (int64_t part = 0; part < 4; ++part) four[part] = vaddq_f32(parts[part][k][i], parts[part + 4][k][i]);
            vst1q_f32(eight + 4 * i, vaddq_f32(vaddq_f32(four[0], four[2]), vaddq_f32(four[1], four[3])));
        }
        copy_items<float>(eight, count, found + (row + k) * apart);
    }
}
#endif
