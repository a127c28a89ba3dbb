// Products of a few vectors with large matrices. A product of a row and a vector is summed in the same order for any
// number of vectors: a token read with others has, to the last bit, the same logits as alone.
#pragma once
#include <algorithm>

#include "block_vectors.h"
#include "simd.h"
#include "structs.h"

#if defined(__AVX512VNNI__) || (defined(__AVXVNNI__) && defined(__AVX2__))
#define DECODESCOPE_SHIFTED 1
typedef uint8_t Number;             // unsigned, as the VNNI instructions require
constexpr int SHIFT = 128;
#else
#define DECODESCOPE_SHIFTED 0
typedef int8_t Number;
constexpr int SHIFT = 0;
#endif

constexpr int64_t FINER = 254;         // as in core/models/quantized/packed_matrices.py
constexpr int64_t GROUP = 32;          // as in core/models/quantized/packed_matrices.py
constexpr int64_t TOGETHER = 12;       // vectors that are multiplied by one block of rows while it is in the cache

// Split a vector into coarse 8-bit numbers and fine ones for the remainder, each of up to 127 steps.
inline void split_vector(const float* __restrict from, int64_t width, float step, int8_t* __restrict first, int8_t* __restrict second) {
    for (int64_t i = 0; i < width; ++i) {
        const float exact = from[i] / step, whole = std::nearbyintf(exact);
        first[i] = int8_t(int(whole));
        second[i] = int8_t(int(std::nearbyintf((exact - whole) * float(FINER))));
    }
}

inline void shift_all(const int8_t* __restrict from, int64_t count, Number* __restrict to) {
    for (int64_t i = 0; i < count; ++i) to[i] = Number(from[i] + SHIFT);
}

inline void join_all(const int8_t* __restrict first, const int8_t* __restrict second, int64_t count, int16_t* __restrict to) {
    for (int64_t i = 0; i < count; ++i) to[i] = int16_t(FINER * first[i] + second[i]);
}

// Vectors [rows, width], and the forms that kinds of weights need, computed on first use. One object serves many
// products in turn and keeps its memory.
struct Vectors {
    const float* values = nullptr;
    int64_t rows = 0, width = 0;
    Buffer<int8_t> halves{};       // [2 * rows, width], coarse numbers before fine ones
    Buffer<float> steps{};         // [rows]
    Buffer<Number> coarse{};       // coarse numbers plus SHIFT
    Buffer<Number> fine{};         // fine numbers plus SHIFT
    Buffer<int16_t> whole{};       // [rows, width], FINER * coarse + fine
    Buffer<int16_t> dealt{};       // the same, of each group first the numbers at even places, then the others
    Buffer<float> totals{};        // [rows, totals_apart()], sums of the numbers of each group
    BlockVectors blocks{};              // 8 bits, with a scale per block of 32
    bool has_one_thread = false;        // whether the product is computed by one thread
    bool is_split = false, is_shifted = false, is_joined = false, is_dealt = false, has_blocks = false;

    void aim(const float* other, int64_t count, int64_t size) {
        values = other, rows = count, width = size;
        is_split = is_shifted = is_joined = is_dealt = has_blocks = false;
    }

    void quantize_blocks(int64_t threads) {
        if (has_blocks) return;
        has_blocks = true;
        blocks.quantize(values, rows, width, threads);
    }

    // Use vectors that are already split.
    void take(const int8_t* numbers, const float* sizes, int64_t count, int64_t size) {
        aim(nullptr, count, size);
        halves.assign(numbers, numbers + 2 * rows * width), steps.assign(sizes, sizes + rows);
        is_split = true;
    }

    void split() {
        if (is_split) return;
        is_split = true;
        halves.resize(2 * rows * width), steps.resize(rows);
        for (int64_t row = 0; row < rows; ++row) {
            const float* from = values + row * width;
            steps[row] = std::max(greatest_size(from, width) / 127.0f, 1e-30f);
            split_vector(from, width, steps[row], &halves[row * width], &halves[(rows + row) * width]);
        }
    }

    void shift() {
        split();
        if (is_shifted) return;
        is_shifted = true;
        const int64_t count = rows * width;
        coarse.resize(count), fine.resize(count);
        shift_all(halves.data(), count, coarse.data()), shift_all(&halves[count], count, fine.data());
    }

    void join() {
        split();
        if (is_joined) return;
        is_joined = true;
        const int64_t count = rows * width;
        whole.resize(count);
        join_all(halves.data(), &halves[count], count, whole.data());
    }

    int64_t totals_apart() const { return (width / GROUP + 7) / 8 * 8; }

    void deal() {
        join();
        if (is_dealt) return;
        is_dealt = true;
        const int64_t groups = width / GROUP;
        dealt.resize(rows * width), totals.resize(rows * totals_apart());
        for (int64_t row = 0; row < rows; ++row)
            for (int64_t group = 0; group < groups; ++group) {
                const int16_t* from = &whole[row * width + group * GROUP];
                int16_t* to = &dealt[row * width + group * GROUP];
                int32_t total = 0;
                for (int64_t i = 0; i < GROUP; ++i) total += from[i];
                for (int64_t i = 0; i < GROUP / 2; ++i) to[i] = from[2 * i], to[GROUP / 2 + i] = from[2 * i + 1];
                totals[row * totals_apart() + group] = float(total);
            }
    }
};

constexpr int FIRST_CACHE = 3, SECOND_CACHE = 2;

// Prefetch BYTES: the processor foresees accesses to one row, but not to several rows in turn. Much is fetched into the
// second-level cache: in the first one, which holds the vectors and the rows in use, it would be lost.
template <int64_t BYTES, int CACHE = FIRST_CACHE>
inline void fetch(const void* place) {
    for (int64_t i = 0; i < BYTES; i += 64) __builtin_prefetch(static_cast<const char*>(place) + i, 0, CACHE);
}

// `OUTPUTS` rows of a matrix times `ROWS` vectors.
template <int OUTPUTS, int ROWS, typename Weight>
inline void tile(const Weight* weights, int64_t inputs, const float* vectors, int64_t width, float* found, int64_t apart) {
    Lanes sums[OUTPUTS][ROWS] = {};
    int64_t i = 0;
    for (; i + LANES <= inputs; i += LANES) {
        fetch<OUTPUTS * LANES * sizeof(Weight), SECOND_CACHE>(weights + OUTPUTS * (inputs + i));
        Lanes vector[ROWS];
        for (int row = 0; row < ROWS; ++row) hold(vector[row] = load(vectors + row * width + i));
        for (int output = 0; output < OUTPUTS; ++output) {
            Lanes weight = load(weights + output * inputs + i);
            if (ROWS > 1) hold(weight);
            for (int row = 0; row < ROWS; ++row) sums[output][row] = multiply_add(weight, vector[row], sums[output][row]);
        }
    }
    for (int row = 0; row < ROWS; ++row) {
        float* to = found + row * apart;
        if (OUTPUTS == 4) sum_four(sums[0][row], sums[OUTPUTS > 1 ? 1 : 0][row], sums[OUTPUTS > 2 ? 2 : 0][row], sums[OUTPUTS > 3 ? 3 : 0][row], to);
        else for (int output = 0; output < OUTPUTS; ++output) to[output] = sum(sums[output][row]);
        if (i == inputs) continue;
        for (int output = 0; output < OUTPUTS; ++output) {
            float rest = 0;
            for (int64_t j = i; j < inputs; ++j) rest = multiply_add(one(weights + output * inputs + j), vectors[row * width + j], rest);
            to[output] += rest;
        }
    }
}

// Four rows of a matrix times a vector, `OUTPUTS` of them at a time, with weights fetched `AHEAD` bytes ahead. The order of
// the sums is that of `tile`.
//
// A single stream of floats is foreseen best by the processor alone. 16-bit weights take as long to convert as to read:
// with one thread, two rows at a time and weights that are fetched far ahead are faster by up to a fifth, with several,
// which the memory holds up, a single stream is.
template <int OUTPUTS, int64_t AHEAD, int CACHE, typename Weight>
inline void four_rows(const Weight* weights, int64_t inputs, const float* vector, float* found) {
    Lanes sums[4] = {};
    const int64_t whole = inputs / LANES * LANES;
    for (int output = 0; output < 4; output += OUTPUTS) {
        const Weight* rows = weights + output * inputs;
        for (int64_t i = 0; i < whole; i += LANES) {
            constexpr int64_t SIZE = OUTPUTS * LANES * sizeof(Weight);
            if (AHEAD) fetch<SIZE, CACHE>(reinterpret_cast<const char*>(rows + OUTPUTS * i) + AHEAD);
            const Lanes part = load(vector + i);
            for (int row = 0; row < OUTPUTS; ++row)
                sums[output + row] = multiply_add(load(rows + row * inputs + i), part, sums[output + row]);
        }
    }
    sum_four(sums[0], sums[1], sums[2], sums[3], found);
    for (int output = 0; output < 4 && whole < inputs; ++output) {
        float rest = 0;
        for (int64_t j = whole; j < inputs; ++j) rest = multiply_add(one(weights + output * inputs + j), vector[j], rest);
        found[output] += rest;
    }
}

// Vectors at a time: as many as there are registers for their sums with four rows of weights.
#if defined(__AVX__) && !defined(__AVX512F__)
constexpr int SIDE_BY_SIDE = 3;
#else
constexpr int SIDE_BY_SIDE = 4;
#endif

template <int OUTPUTS, typename Weight>
inline void tiles(const Weight* weights, int64_t inputs, const Vectors& of, float* found, int64_t apart) {
    int64_t row = 0;
    for (; row + SIDE_BY_SIDE <= of.rows; row += SIDE_BY_SIDE)
        tile<OUTPUTS, SIDE_BY_SIDE>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
    for (; row + 2 <= of.rows; row += 2)
        tile<OUTPUTS, 2>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
    for (; row < of.rows; ++row)
        tile<OUTPUTS, 1>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
}

template <typename Weight>
void floats(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    const Weight* weights = static_cast<const Weight*>(matrix.weights);
    const int64_t inputs = matrix.inputs;
    int64_t output = begin;
    for (; output + 4 <= end; output += 4) {
        const Weight* rows = weights + output * inputs;
        if (of.rows > 1) tiles<4>(rows, inputs, of, found + output, apart);
        else if (sizeof(Weight) == 4) four_rows<1, 0, FIRST_CACHE>(rows, inputs, of.values, found + output);
        else if (of.has_one_thread) four_rows<2, 16384, SECOND_CACHE>(rows, inputs, of.values, found + output);
        else four_rows<1, 4096, FIRST_CACHE>(rows, inputs, of.values, found + output);
    }
    for (; output < end; ++output)
        tiles<1>(weights + output * matrix.inputs, matrix.inputs, of, found + output, apart);
}
