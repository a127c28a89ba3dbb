// Block formats of GGUF files. Each format unpacks its blocks to codes of 8 bits in their order, and a scale or two per
// 32 weights. core/models/gguf/block_formats.py reads the same formats with torch.
#pragma once
#include <cstdint>
#include <cstring>

#include "block_vectors.h"
#include "structs.h"

// How weights follow from their codes; `half` is 0 for the first 16 of 32 weights, and 1 for the others.
enum class Scaling {
    PLAIN,          // scale * code
    OFFSET,         // scale * code + offset
    SUBSCALES,      // scale * (sub[half] * code + less[half])
    SUBOFFSETS,     // scale * sub[half] * code + offset * less[half]
};

// What 32 weights share; which fields are used depends on the scaling.
struct BlockScales {
    float scale, offset;
    int16_t sub[2], less[2];
};

constexpr int SIGNED = 127;     // greatest code of formats whose codes have a sign

inline uint16_t load16(const uint8_t* place) {
    uint16_t bits;
    std::memcpy(&bits, place, sizeof bits);
    return bits;
}

inline uint32_t load32(const uint8_t* place) {
    uint32_t bits;
    std::memcpy(&bits, place, sizeof bits);
    return bits;
}

inline float load_half(const uint8_t* place) {
    const float16 half{load16(place)};
    return one(&half);
}

constexpr int8_t IQ4_VALUES[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// 32 codes of 4 bits: the lower halves of 16 bytes, then the upper ones.
inline void unpack_nibbles(const uint8_t* __restrict bytes, int8_t* __restrict codes) {
    for (int64_t i = 0; i < 16; ++i) codes[i] = int8_t(bytes[i] & 15), codes[16 + i] = int8_t(bytes[i] >> 4);
}

inline void add_fifth_bits(uint32_t bits, int8_t* __restrict codes) {
    for (int64_t i = 0; i < BLOCK_SIZE; ++i) codes[i] = int8_t(codes[i] | int8_t((bits >> i & 1) << 4));
}

// 8 scales and 8 offsets of 6 bits, as Q4_K and Q5_K pack them in 12 bytes: four words of four numbers each.
struct SixBits {
    uint32_t scales[2], offsets[2];

    explicit SixBits(const uint8_t* packed) {
        const uint32_t first = load32(packed), second = load32(packed + 4), rest = load32(packed + 8);
        scales[0] = first & 0x3f3f3f3f, scales[1] = (rest & 0x0f0f0f0f) | (first >> 2 & 0x30303030);
        offsets[0] = second & 0x3f3f3f3f, offsets[1] = (rest >> 4 & 0x0f0f0f0f) | (second >> 2 & 0x30303030);
    }
    float scale(int64_t i) const { return float(scales[i / 4] >> i % 4 * 8 & 255); }
    float offset(int64_t i) const { return float(offsets[i / 4] >> i % 4 * 8 & 255); }
};

// 16 scales of 6 bits, 32 more than they are, as Q3_K packs them in 12 bytes.
inline void unpack_q3_scales(const uint8_t* packed, uint32_t words[4]) {
    const uint32_t first = load32(packed), second = load32(packed + 4), high = load32(packed + 8);
    words[0] = (first & 0x0f0f0f0f) | (high << 4 & 0x30303030), words[1] = (second & 0x0f0f0f0f) | (high << 2 & 0x30303030);
    words[2] = (first >> 4 & 0x0f0f0f0f) | (high & 0x30303030), words[3] = (second >> 4 & 0x0f0f0f0f) | (high >> 2 & 0x30303030);
}

// A format: `WEIGHTS` in `BYTES`, codes up to MAX_CODE. `unpack` writes the codes of a block and the scales of each 32.

struct Q4_0 {
    static constexpr int64_t WEIGHTS = 32, BYTES = 18;
    static constexpr int MAX_CODE = 15;
    static constexpr Scaling SCALING = Scaling::OFFSET;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_nibbles(block + 2, codes);
        const float scale = load_half(block);
        *scales = {scale, -8.0f * scale, {}, {}};
    }
};

struct Q4_1 {
    static constexpr int64_t WEIGHTS = 32, BYTES = 20;
    static constexpr int MAX_CODE = 15;
    static constexpr Scaling SCALING = Scaling::OFFSET;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_nibbles(block + 4, codes);
        *scales = {load_half(block), load_half(block + 2), {}, {}};
    }
};

struct Q5_0 {
    static constexpr int64_t WEIGHTS = 32, BYTES = 22;
    static constexpr int MAX_CODE = 31;
    static constexpr Scaling SCALING = Scaling::OFFSET;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_nibbles(block + 6, codes), add_fifth_bits(load32(block + 2), codes);
        const float scale = load_half(block);
        *scales = {scale, -16.0f * scale, {}, {}};
    }
};

struct Q5_1 {
    static constexpr int64_t WEIGHTS = 32, BYTES = 24;
    static constexpr int MAX_CODE = 31;
    static constexpr Scaling SCALING = Scaling::OFFSET;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_nibbles(block + 8, codes), add_fifth_bits(load32(block + 4), codes);
        *scales = {load_half(block), load_half(block + 2), {}, {}};
    }
};

struct Q8_0 {
    static constexpr int64_t WEIGHTS = 32, BYTES = 34;
    static constexpr int MAX_CODE = SIGNED;
    static constexpr Scaling SCALING = Scaling::PLAIN;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        std::memcpy(codes, block + 2, 32);
        *scales = {load_half(block), 0, {}, {}};
    }
};

struct IQ4_NL {
    static constexpr int64_t WEIGHTS = 32, BYTES = 18;
    static constexpr int MAX_CODE = SIGNED;
    static constexpr Scaling SCALING = Scaling::PLAIN;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_nibbles(block + 2, codes);
        for (int64_t i = 0; i < BLOCK_SIZE; ++i) codes[i] = IQ4_VALUES[codes[i]];
        *scales = {load_half(block), 0, {}, {}};
    }
};

struct IQ4_XS {
    static constexpr int64_t WEIGHTS = 256, BYTES = 136;
    static constexpr int MAX_CODE = SIGNED;
    static constexpr Scaling SCALING = Scaling::PLAIN;
    static int scale_of(const uint8_t* block, int64_t group) {
        return int((block[4 + group / 2] >> group % 2 * 4 & 15) | (load16(block + 2) >> 2 * group & 3) << 4) - 32;
    }
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        const float scale = load_half(block);
        for (int64_t group = 0; group < 8; ++group) {
            int8_t* own = codes + group * BLOCK_SIZE;
            unpack_nibbles(block + 8 + group * 16, own);
            for (int64_t i = 0; i < BLOCK_SIZE; ++i) own[i] = IQ4_VALUES[own[i]];
            scales[group] = {scale * float(scale_of(block, group)), 0, {}, {}};
        }
    }
};

// Codes of 64 weights in 32 bytes: first the lower halves, then the upper ones.
inline void unpack_long_nibbles(const uint8_t* __restrict bytes, int8_t* __restrict codes) {
    for (int64_t i = 0; i < BLOCK_SIZE; ++i) codes[i] = int8_t(bytes[i] & 15), codes[BLOCK_SIZE + i] = int8_t(bytes[i] >> 4);
}

struct Q4_K {
    static constexpr int64_t WEIGHTS = 256, BYTES = 144;
    static constexpr int MAX_CODE = 15;
    static constexpr Scaling SCALING = Scaling::OFFSET;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        const SixBits six(block + 4);
        const float scale = load_half(block), offset = load_half(block + 2);
        for (int64_t pair = 0; pair < 4; ++pair) unpack_long_nibbles(block + 16 + pair * 32, codes + pair * 64);
        for (int64_t group = 0; group < 8; ++group) scales[group] = {scale * six.scale(group), -(offset * six.offset(group)), {}, {}};
    }
};

struct Q5_K {
    static constexpr int64_t WEIGHTS = 256, BYTES = 176;
    static constexpr int MAX_CODE = 31;
    static constexpr Scaling SCALING = Scaling::OFFSET;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        const SixBits six(block + 4);
        const float scale = load_half(block), offset = load_half(block + 2);
        for (int64_t pair = 0; pair < 4; ++pair) unpack_long_nibbles(block + 48 + pair * 32, codes + pair * 64);
        for (int64_t group = 0; group < 8; ++group) {
            int8_t* own = codes + group * BLOCK_SIZE;
            for (int64_t i = 0; i < BLOCK_SIZE; ++i) own[i] = int8_t(own[i] | (block[16 + i] >> group & 1) << 4);
            scales[group] = {scale * six.scale(group), -(offset * six.offset(group)), {}, {}};
        }
    }
};

struct Q6_K {
    static constexpr int64_t WEIGHTS = 256, BYTES = 210;
    static constexpr int MAX_CODE = 63;
    static constexpr Scaling SCALING = Scaling::SUBSCALES;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        for (int64_t half = 0; half < 2; ++half) {
            const uint8_t *low = block + half * 64, *high = block + 128 + half * 32;
            for (int64_t group = 0; group < 4; ++group) {
                int8_t* own = codes + (4 * half + group) * BLOCK_SIZE;
                const uint8_t* four = low + group % 2 * 32;
                for (int64_t i = 0; i < BLOCK_SIZE; ++i)
                    own[i] = int8_t((four[i] >> group / 2 * 4 & 15) | (high[i] >> 2 * group & 3) << 4);
            }
        }
        int8_t sub[16];
        std::memcpy(sub, block + 192, 16);
        const float scale = load_half(block + 208);
        for (int64_t group = 0; group < 8; ++group) {
            const int16_t first = sub[2 * group], second = sub[2 * group + 1];
            scales[group] = {scale, 0, {first, second}, {int16_t(-32 * first), int16_t(-32 * second)}};
        }
    }
};

// Codes of 128 weights in 32 bytes, two bits each: the lowest bits of all, then the next.
inline void unpack_quarters(const uint8_t* __restrict bytes, int8_t* __restrict codes) {
    for (int64_t group = 0; group < 4; ++group)
        for (int64_t i = 0; i < BLOCK_SIZE; ++i) codes[group * BLOCK_SIZE + i] = int8_t(bytes[i] >> 2 * group & 3);
}

struct Q3_K {
    static constexpr int64_t WEIGHTS = 256, BYTES = 110;
    static constexpr int MAX_CODE = 7;
    static constexpr Scaling SCALING = Scaling::SUBSCALES;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_quarters(block + 32, codes), unpack_quarters(block + 64, codes + 128);
        uint32_t words[4];
        unpack_q3_scales(block + 96, words);
        const float scale = load_half(block + 108);
        for (int64_t group = 0; group < 8; ++group) {
            int8_t* own = codes + group * BLOCK_SIZE;
            for (int64_t i = 0; i < BLOCK_SIZE; ++i) own[i] = int8_t(own[i] | (block[i] >> group & 1) << 2);
            const uint32_t two = words[group / 2] >> group % 2 * 16;
            const int16_t first = int16_t(int(two & 255) - 32), second = int16_t(int(two >> 8 & 255) - 32);
            scales[group] = {scale, 0, {first, second}, {int16_t(-4 * first), int16_t(-4 * second)}};
        }
    }
};

struct Q2_K {
    static constexpr int64_t WEIGHTS = 256, BYTES = 84;
    static constexpr int MAX_CODE = 3;
    static constexpr Scaling SCALING = Scaling::SUBOFFSETS;
    static void unpack(const uint8_t* block, int8_t* codes, BlockScales* scales) {
        unpack_quarters(block + 16, codes), unpack_quarters(block + 48, codes + 128);
        const float scale = load_half(block + 80), offset = -load_half(block + 82);
        for (int64_t group = 0; group < 8; ++group) {
            const uint8_t first = block[2 * group], second = block[2 * group + 1];
            scales[group] = {scale, offset, {int16_t(first & 15), int16_t(second & 15)}, {int16_t(first >> 4), int16_t(second >> 4)}};
        }
    }
};

// Call `use` with a value of the format of a kind of weights.
template <typename Use>
inline void with_format(int64_t kind, const Use& use) {
    switch (kind - BLOCK_KINDS) {
        case 2: return use(Q4_0{});
        case 3: return use(Q4_1{});
        case 6: return use(Q5_0{});
        case 7: return use(Q5_1{});
        case 8: return use(Q8_0{});
        case 10: return use(Q2_K{});
        case 11: return use(Q3_K{});
        case 12: return use(Q4_K{});
        case 13: return use(Q5_K{});
        case 14: return use(Q6_K{});
        case 20: return use(IQ4_NL{});
        case 23: return use(IQ4_XS{});
    }
}

// Unpack a whole row: codes [inputs] and scales [inputs / 32].
template <typename Format>
inline void unpack_row(const uint8_t* row, int64_t inputs, int8_t* codes, BlockScales* scales) {
    for (int64_t i = 0; i < inputs; i += Format::WEIGHTS, row += Format::BYTES, scales += Format::WEIGHTS / BLOCK_SIZE)
        Format::unpack(row, codes + i, scales);
}

// 16 weights of a block as floats: the same numbers as those of block_formats.py, because all products are exact.
template <Scaling SCALING>
inline void write_weights(const int8_t* codes, const BlockScales& scales, int64_t half, float* to) {
    for (int64_t i = 0; i < BLOCK_SIZE / 2; ++i) {
        const float code = codes[i];
        if (SCALING == Scaling::PLAIN) to[i] = scales.scale * code;
        else if (SCALING == Scaling::OFFSET) to[i] = scales.scale * code + scales.offset;
        else if (SCALING == Scaling::SUBSCALES) to[i] = scales.scale * (float(scales.sub[half]) * code + float(scales.less[half]));
        else to[i] = scales.scale * float(scales.sub[half]) * code + scales.offset * float(scales.less[half]);
    }
}

template <typename Format>
inline void write_row(const uint8_t* row, int64_t inputs, float* to) {
    int8_t codes[Format::WEIGHTS];
    BlockScales scales[Format::WEIGHTS / BLOCK_SIZE];
    for (int64_t i = 0; i < inputs; i += Format::WEIGHTS, row += Format::BYTES) {
        Format::unpack(row, codes, scales);
        for (int64_t j = 0; j < Format::WEIGHTS; j += BLOCK_SIZE / 2)
            write_weights<Format::SCALING>(codes + j, scales[j / BLOCK_SIZE], j / (BLOCK_SIZE / 2) % 2, to + i + j);
    }
}

template <typename Weight>
inline void write_floats(const uint8_t* row, int64_t inputs, float* to) {
    for (int64_t i = 0; i < inputs; ++i) {
        Weight weight;
        std::memcpy(&weight, row + i * int64_t(sizeof weight), sizeof weight);
        to[i] = one(&weight);
    }
}

// Rows of a matrix as float32 [count, inputs], by their numbers.
inline void write_rows(const Matrix& matrix, const int64_t* ids, int64_t count, float* to) {
    const uint8_t* weights = static_cast<const uint8_t*>(matrix.weights);
    const int64_t inputs = matrix.inputs;
    for (int64_t i = 0; i < count; ++i) {
        float* own = to + i * inputs;
        if (matrix.kind == FLOAT32) write_floats<float>(weights + ids[i] * inputs * 4, inputs, own);
        else if (matrix.kind == BFLOAT16) write_floats<bfloat16>(weights + ids[i] * inputs * 2, inputs, own);
        else if (matrix.kind == FLOAT16) write_floats<float16>(weights + ids[i] * inputs * 2, inputs, own);
        else with_format(matrix.kind, [&](auto format) {
            using Format = decltype(format);
            write_row<Format>(weights + ids[i] * (inputs / Format::WEIGHTS * Format::BYTES), inputs, own);
        });
    }
}
