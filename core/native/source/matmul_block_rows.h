// One row of weights in blocks times one vector, with AVX2: eight blocks of 32 weights at a time, so that the sums of a
// block, their scale and the vector's scale each are one element of a register of eight.
#pragma once
#include <algorithm>
#include <type_traits>

#include "block_formats.h"

#ifdef __AVX2__

inline __m256i load256(const void* place) { return _mm256_loadu_si256(static_cast<const __m256i*>(place)); }
inline void store256(void* place, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(place), value); }
inline __m128i load128(const void* place) { return _mm_loadu_si128(static_cast<const __m128i*>(place)); }

// Sums of four products of bytes in 32 bits each, the first factor without a sign. Processors with VNNI have an
// instruction for it; others have one for two products in 16 bits, which only hold products of small codes.
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
constexpr bool HAS_UNSIGNED_PRODUCTS = true;
inline __m256i add_unsigned_products(__m256i sums, __m256i codes, __m256i numbers) { return _mm256_dpbusd_epi32(sums, codes, numbers); }
#elif defined(__AVXVNNI__)
constexpr bool HAS_UNSIGNED_PRODUCTS = true;
inline __m256i add_unsigned_products(__m256i sums, __m256i codes, __m256i numbers) { return _mm256_dpbusd_avx_epi32(sums, codes, numbers); }
#else
#ifdef DECODESCOPE_TEST_UNSIGNED_PRODUCTS   // runs the code for VNNI on processors without it
constexpr bool HAS_UNSIGNED_PRODUCTS = true;
#else
constexpr bool HAS_UNSIGNED_PRODUCTS = false;
#endif
inline __m256i add_unsigned_products(__m256i sums, __m256i codes, __m256i numbers) {
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(codes, _mm256_set1_epi16(255)), _mm256_srai_epi16(_mm256_slli_epi16(numbers, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(codes, 8), _mm256_srai_epi16(numbers, 8));
    return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}
#endif

// Per 128 bits: pairs of elements of `a` added up, then those of `b`; the pairs are half of the 128 bits apart.
inline __m256i add_halves16(__m256i a, __m256i b) { return _mm256_add_epi16(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)); }
inline __m256i add_halves32(__m256i a, __m256i b) { return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)); }

// The elements of 32 bits at even and at odd places of both.
inline __m256i even32(__m256i a, __m256i b) {
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}
inline __m256i odd32(__m256i a, __m256i b) {
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xdd));
}

// Four sums of 32 bits per block and 128 bits, added up: an element per block.
inline __m256i add_fours32(__m256i a, __m256i b, __m256i c, __m256i d) {
    const __m256i first = add_halves32(a, b), second = add_halves32(c, d);
    return _mm256_add_epi32(even32(first, second), odd32(first, second));
}

// Sums of products of four blocks of codes and numbers, an element per block and 128 bits: those of a block's first half
// in the lower 128, those of its second half in the upper. `scales`: 16 bits, in the same order, each twice, or null.
template <int MAX_CODE>
inline __m256i sums_of_four(const __m256i codes[4], const int8_t* numbers, const __m256i* scales) {
    __m256i sums[4];
    if constexpr (HAS_UNSIGNED_PRODUCTS) {
        const __m256i shift = _mm256_set1_epi8(MAX_CODE == SIGNED ? -128 : 0);
        for (int i = 0; i < 4; ++i)
            sums[i] = add_unsigned_products(_mm256_setzero_si256(), _mm256_xor_si256(codes[i], shift), load256(numbers + i * BLOCK_SIZE));
        const __m256i all_four = add_fours32(sums[0], sums[1], sums[2], sums[3]);
        return scales ? _mm256_mullo_epi32(all_four, _mm256_srai_epi32(*scales, 16)) : all_four;
    } else if constexpr (MAX_CODE == SIGNED) {
        const __m256i ones = _mm256_set1_epi16(1);
        for (int i = 0; i < 4; ++i) {
            const __m256i number = _mm256_sign_epi8(load256(numbers + i * BLOCK_SIZE), codes[i]);
            sums[i] = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(codes[i]), number), ones);
        }
        return add_fours32(sums[0], sums[1], sums[2], sums[3]);
    } else {
        for (int i = 0; i < 4; ++i) sums[i] = _mm256_maddubs_epi16(codes[i], load256(numbers + i * BLOCK_SIZE));
        const __m256i first = add_halves16(sums[0], sums[1]), second = add_halves16(sums[2], sums[3]);
        if constexpr (8 * 127 * MAX_CODE <= 32767) {
            const __m256i both = _mm256_add_epi16(even32(first, second), odd32(first, second));
            return _mm256_madd_epi16(both, scales ? *scales : _mm256_set1_epi16(1));
        } else {
            const __m256i ones = _mm256_set1_epi16(1);
            const __m256i low = scales ? _mm256_unpacklo_epi32(*scales, *scales) : ones;
            const __m256i high = scales ? _mm256_unpackhi_epi32(*scales, *scales) : ones;
            const __m256i less = _mm256_madd_epi16(first, low), more = _mm256_madd_epi16(second, high);
            return _mm256_add_epi32(even32(less, more), odd32(less, more));
        }
    }
}

// The sums of both halves of eight blocks, an element per block.
inline __m256i join_halves(__m256i first, __m256i second) {
    return _mm256_add_epi32(_mm256_permute2x128_si256(first, second, 0x20), _mm256_permute2x128_si256(first, second, 0x31));
}

// Scales, offsets and so on of eight blocks of 32 weights.
struct SpanScales {
    __m256 scale, offset;
    __m256i sub[2];         // of four blocks each: 16 bits, as `sums_of_four` takes them
    __m256i less;           // 16 bits, of the halves of the blocks in their order
};

// Codes of 4 bits in 16 bytes: the lower halves, then the upper ones.
inline __m256i nibbles(const uint8_t* bytes) {
    const __m256i both = _mm256_broadcastsi128_si256(load128(bytes));
    return _mm256_and_si256(_mm256_srlv_epi32(both, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4)), _mm256_set1_epi8(15));
}

inline __m256i iq4_values(__m256i codes) {
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(IQ4_VALUES)), codes);
}

// 16 in each byte whose bit of 32 is set.
inline __m256i fifth_bits(const uint8_t* place) {
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x(int64_t(0x8040201008040201));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(int32_t(load32(place))), which);
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit), _mm256_set1_epi8(16));
}

// Codes of one block of 32 weights of the formats with such blocks.
inline __m256i codes_of(Q4_0, const uint8_t* block) { return nibbles(block + 2); }
inline __m256i codes_of(Q4_1, const uint8_t* block) { return nibbles(block + 4); }
inline __m256i codes_of(Q5_0, const uint8_t* block) { return _mm256_or_si256(nibbles(block + 6), fifth_bits(block + 2)); }
inline __m256i codes_of(Q5_1, const uint8_t* block) { return _mm256_or_si256(nibbles(block + 8), fifth_bits(block + 4)); }
inline __m256i codes_of(Q8_0, const uint8_t* block) { return load256(block + 2); }
inline __m256i codes_of(IQ4_NL, const uint8_t* block) { return iq4_values(nibbles(block + 2)); }

// The first 2 or 4 bytes of COUNT blocks, gathered by the units for integers, which are idle otherwise.
template <int COUNT, typename At>
inline __m128i gather16(const At& at) {
    const auto two = [&](int64_t i) {
        uint64_t both = uint64_t(load16(at[i])) | uint64_t(load16(at[i + 1])) << 16;
        asm("" : "+r"(both));       // compilers would make vector instructions of it again
        return both;
    };
    const auto four = [&](int64_t i) { return two(i) | two(i + 2) << 32; };
    return _mm_set_epi64x(COUNT > 4 ? int64_t(four(4)) : 0, int64_t(four(0)));
}

template <typename At>
inline __m128i gather32(const At& at, int64_t i) {
    uint64_t low = uint64_t(load32(at[i])) | uint64_t(load32(at[i + 1])) << 32;
    uint64_t high = uint64_t(load32(at[i + 2])) | uint64_t(load32(at[i + 3])) << 32;
    asm("" : "+r"(low), "+r"(high));
    const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    return _mm_shuffle_epi8(_mm_set_epi64x(int64_t(high), int64_t(low)), order);
}

// Scales of blocks that begin with a scale, or with a scale and an offset.
template <typename Format, int COUNT, typename At>
inline void scales_of_blocks(const At& at, SpanScales& scales) {
    if constexpr (std::is_same_v<Format, Q4_1> || std::is_same_v<Format, Q5_1>) {
        const __m128i first = gather32(at, 0), second = COUNT > 4 ? gather32(at, 4) : _mm_setzero_si128();
        scales.scale = _mm256_cvtph_ps(_mm_unpacklo_epi64(first, second));
        scales.offset = _mm256_cvtph_ps(_mm_unpackhi_epi64(first, second));
    } else {
        scales.scale = _mm256_cvtph_ps(gather16<COUNT>(at));
        if constexpr (Format::SCALING == Scaling::OFFSET)
            scales.offset = _mm256_mul_ps(scales.scale, _mm256_set1_ps(Format::MAX_CODE == 15 ? -8.0f : -16.0f));
    }
}

inline __m256 bytes_as_floats(uint32_t low, uint32_t high) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(int64_t(uint64_t(high) << 32 | low))));
}

// 16 scales of 8 bits, of the halves of eight blocks.
inline void set_subscales(__m128i bytes, SpanScales& scales) {
    const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m256i sub = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, order));
    scales.sub[0] = _mm256_unpacklo_epi16(sub, sub), scales.sub[1] = _mm256_unpackhi_epi16(sub, sub);
}

// Codes and scales of one block of 256 weights of the formats with such blocks: codes of group `i` of 32.

inline __m256i long_nibbles(const uint8_t* bytes, int64_t i) {
    const __m256i both = load256(bytes + i / 2 * 32);
    return _mm256_and_si256(i % 2 ? _mm256_srli_epi16(both, 4) : both, _mm256_set1_epi8(15));
}

inline __m256i quarters(const uint8_t* bytes, int64_t i) {
    return _mm256_and_si256(_mm256_srli_epi16(load256(bytes + i / 4 * 32), int(i % 4 * 2)), _mm256_set1_epi8(3));
}

// Bit `i` of each of 32 bytes, moved to bit `to`.
inline __m256i one_bit(const uint8_t* bytes, int i, int to) {
    const __m256i bit = _mm256_and_si256(load256(bytes), _mm256_set1_epi8(char(1 << i)));
    return i < to ? _mm256_slli_epi16(bit, to - i) : _mm256_srli_epi16(bit, i - to);
}

inline void six_bit_scales(const uint8_t* block, SpanScales& scales) {
    const SixBits six(block + 4);
    const __m128 both = _mm_cvtph_ps(_mm_cvtsi32_si128(int32_t(load32(block))));
    const __m256 scale = _mm256_broadcastss_ps(both), offset = _mm256_broadcastss_ps(_mm_movehdup_ps(both));
    scales.scale = _mm256_mul_ps(scale, bytes_as_floats(six.scales[0], six.scales[1]));
    scales.offset = _mm256_mul_ps(_mm256_xor_ps(offset, _mm256_set1_ps(-0.0f)), bytes_as_floats(six.offsets[0], six.offsets[1]));
}

inline __m256i codes_of(Q4_K, const uint8_t* block, int64_t i) { return long_nibbles(block + 16, i); }
inline void scales_of(Q4_K, const uint8_t* block, SpanScales& scales) { six_bit_scales(block, scales); }

inline __m256i codes_of(Q5_K, const uint8_t* block, int64_t i) {
    return _mm256_or_si256(long_nibbles(block + 48, i), one_bit(block + 16, int(i), 4));
}
inline void scales_of(Q5_K, const uint8_t* block, SpanScales& scales) { six_bit_scales(block, scales); }

inline __m256i codes_of(Q6_K, const uint8_t* block, int64_t i) {
    const __m256i low = load256(block + i / 4 * 64 + i % 2 * 32), high = load256(block + 128 + i / 4 * 32);
    const int shift = int(i % 4 * 2);
    const __m256i moved = shift < 4 ? _mm256_slli_epi16(high, 4 - shift) : _mm256_srli_epi16(high, shift - 4);
    return _mm256_or_si256(_mm256_and_si256(i % 4 < 2 ? low : _mm256_srli_epi16(low, 4), _mm256_set1_epi8(15)),
                           _mm256_and_si256(moved, _mm256_set1_epi8(48)));
}
inline void scales_of(Q6_K, const uint8_t* block, SpanScales& scales) {
    const __m128i sub = load128(block + 192);
    set_subscales(sub, scales);
    scales.scale = _mm256_set1_ps(load_half(block + 208));
    scales.less = _mm256_slli_epi16(_mm256_sub_epi16(_mm256_setzero_si256(), _mm256_cvtepi8_epi16(sub)), 5);
}

inline __m256i codes_of(Q3_K, const uint8_t* block, int64_t i) {
    return _mm256_or_si256(quarters(block + 32, i), one_bit(block, int(i), 2));
}
inline void scales_of(Q3_K, const uint8_t* block, SpanScales& scales) {
    uint32_t words[4];
    unpack_q3_scales(block + 96, words);
    const __m128i sub = _mm_sub_epi8(_mm_setr_epi32(int(words[0]), int(words[1]), int(words[2]), int(words[3])), _mm_set1_epi8(32));
    set_subscales(sub, scales);
    scales.scale = _mm256_set1_ps(load_half(block + 108));
    scales.less = _mm256_slli_epi16(_mm256_sub_epi16(_mm256_setzero_si256(), _mm256_cvtepi8_epi16(sub)), 2);
}

inline __m256i codes_of(Q2_K, const uint8_t* block, int64_t i) { return quarters(block + 16, i); }
inline void scales_of(Q2_K, const uint8_t* block, SpanScales& scales) {
    const __m128i both = load128(block), low = _mm_set1_epi8(15);
    set_subscales(_mm_and_si128(both, low), scales);
    scales.scale = _mm256_set1_ps(load_half(block + 80)), scales.offset = _mm256_set1_ps(-load_half(block + 82));
    scales.less = _mm256_cvtepi8_epi16(_mm_and_si128(_mm_srli_epi16(both, 4), low));
}

inline __m256i codes_of(IQ4_XS, const uint8_t* block, int64_t i) { return iq4_values(nibbles(block + 8 + i * 16)); }
inline void scales_of(IQ4_XS, const uint8_t* block, SpanScales& scales) {
    const __m256i bits = _mm256_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14), nibble = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i high = _mm256_srlv_epi32(_mm256_set1_epi32(load16(block + 2)), bits);
    const __m256i low = _mm256_srlv_epi32(_mm256_set1_epi32(int32_t(load32(block + 4))), nibble);
    const __m256i both = _mm256_or_si256(_mm256_and_si256(low, _mm256_set1_epi32(15)),
                                         _mm256_slli_epi32(_mm256_and_si256(high, _mm256_set1_epi32(3)), 4));
    const __m256 sub = _mm256_cvtepi32_ps(_mm256_sub_epi32(both, _mm256_set1_epi32(32)));
    scales.scale = _mm256_mul_ps(sub, _mm256_set1_ps(load_half(block)));
}

// What eight blocks of the vector are: codes, sums and so on from its first block on.
struct SpanNumbers {
    const int8_t* codes;
    const float *scales, *totals;
    const int16_t* sums;
};

// Up to eight blocks that follow each other. Behind the last one, the last one is read again: its numbers are multiplied
// with zeros.
template <typename Format, bool IS_WHOLE>
struct Span {
    const uint8_t* first;
    int64_t last;

    const uint8_t* operator[](int64_t i) const { return first + (IS_WHOLE ? i : std::min(i, last)) * Format::BYTES; }

    __m256i codes(int64_t i) const {
        if constexpr (Format::WEIGHTS == BLOCK_SIZE) return codes_of(Format{}, (*this)[i]);
        else return codes_of(Format{}, first, i);
    }

    template <int COUNT>
    void read(SpanScales& scales) const {
        if constexpr (Format::WEIGHTS == BLOCK_SIZE) scales_of_blocks<Format, COUNT>(*this, scales);
        else scales_of(Format{}, first, scales);
    }
};

template <typename Format>
constexpr int64_t SPAN_BYTES = SPAN * BLOCK_SIZE / Format::WEIGHTS * Format::BYTES;

template <typename Format>
constexpr bool HAS_SUBSCALES = Format::SCALING == Scaling::SUBSCALES || Format::SCALING == Scaling::SUBOFFSETS;

// The products of the first COUNT blocks, 4 or 8, added to the partial sums.
template <typename Format, int COUNT, bool IS_WHOLE>
inline __m256 add_span(const Span<Format, IS_WHOLE>& span, const SpanNumbers& of, __m256 parts) {
    SpanScales scales;
    span.template read<COUNT>(scales);
    __m256i joined[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (int64_t i = 0; i < COUNT; i += 4) {
        const __m256i codes[4] = {span.codes(i), span.codes(i + 1), span.codes(i + 2), span.codes(i + 3)};
        joined[i / 4] = sums_of_four<Format::MAX_CODE>(codes, of.codes + i * BLOCK_SIZE, HAS_SUBSCALES<Format> ? &scales.sub[i / 4] : nullptr);
    }
    __m256i sums = join_halves(joined[0], joined[1]);
    if constexpr (HAS_UNSIGNED_PRODUCTS && Format::MAX_CODE == SIGNED)
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(load256(of.sums), _mm256_set1_epi16(-128)));
    if constexpr (Format::SCALING == Scaling::SUBSCALES)
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(load256(of.sums), scales.less));
    const __m256 steps = _mm256_loadu_ps(of.scales);
    parts = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_mul_ps(scales.scale, steps), parts);
    if constexpr (Format::SCALING == Scaling::OFFSET) parts = _mm256_fmadd_ps(scales.offset, _mm256_loadu_ps(of.totals), parts);
    if constexpr (Format::SCALING == Scaling::SUBOFFSETS) {
        const __m256i less = _mm256_madd_epi16(load256(of.sums), scales.less);
        parts = _mm256_fmadd_ps(_mm256_cvtepi32_ps(less), _mm256_mul_ps(scales.offset, steps), parts);
    }
    return parts;
}

// The sum of eight partial sums, in the same order as in `tile_of_blocks`.
inline float sum_of_parts(__m256 parts) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(parts), _mm256_extractf128_ps(parts, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

constexpr int64_t ROW_AHEAD = 4096;        // bytes of weights that are fetched ahead: the processor stops at the end of a page

// A row of blocks times vector `number`.
template <typename Format>
inline float product_of_row(const uint8_t* row, int64_t blocks, const BlockVectors& of, int64_t number) {
    SpanNumbers numbers{of.codes_of(number), of.scales_of(number), of.totals_of(number), of.sums_of(number)};
    __m256 parts = _mm256_setzero_ps();
    int64_t block = 0;
    for (; block + SPAN <= blocks; block += SPAN, row += SPAN_BYTES<Format>) {
        for (int64_t i = 0; i < SPAN_BYTES<Format>; i += 64) __builtin_prefetch(row + ROW_AHEAD + i);
        parts = add_span<Format, 8, true>({row, 7}, numbers, parts);
        numbers.codes += SPAN * BLOCK_SIZE, numbers.scales += SPAN, numbers.totals += SPAN, numbers.sums += 2 * SPAN;
    }
    if constexpr (Format::WEIGHTS == BLOCK_SIZE) {
        const int64_t rest = blocks - block;
        if (rest > 4) parts = add_span<Format, 8, false>({row, rest - 1}, numbers, parts);
        else if (rest > 0) parts = add_span<Format, 4, false>({row, rest - 1}, numbers, parts);
    }
    return sum_of_parts(parts);
}
#endif
