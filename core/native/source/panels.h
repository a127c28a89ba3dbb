// Products of many vectors with a matrix. Rows of it are laid side by side, a panel of them at a time, so that each lane
// adds up an output of its own; several vectors share what is read of a panel.
#pragma once
#include <vector>

#include "step.h"

constexpr long PANEL = 2 * LANES;   // rows of a panel
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int DEEP = 12;            // vectors at a time whose sums the processor has registers for
#else
constexpr int DEEP = 6;
#endif

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define TOKENSCOPE_FOURS
// Four rows of four as columns.
inline void lay_four(const float* from, long apart, float* to, long to_apart) {
    Quarter in[4];
    for (long i = 0; i < 4; ++i) std::memcpy(&in[i], from + i * apart, sizeof in[i]);
    const Quarter a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5), b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
    const Quarter c = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7), d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    const Quarter out[4] = {
        __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
        __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7),
    };
    for (long i = 0; i < 4; ++i) std::memcpy(to + i * to_apart, &out[i], sizeof out[i]);
}
#endif
#endif

// Rows [rows, width], `apart` numbers from one to the next, as columns: to[i * to_apart + row].
inline void lay_as_columns(const float* from, long apart, long rows, long width, float* to, long to_apart) {
    long whole_rows = 0, whole_width = 0;
#ifdef TOKENSCOPE_FOURS
    whole_rows = rows / 4 * 4, whole_width = width / 4 * 4;
    for (long row = 0; row < whole_rows; row += 4)
        for (long i = 0; i < whole_width; i += 4) lay_four(from + row * apart + i, apart, to + i * to_apart + row, to_apart);
#endif
    for (long row = 0; row < rows; ++row)
        for (long i = row < whole_rows ? whole_width : 0; i < width; ++i) to[i * to_apart + row] = from[row * apart + i];
}

// Two groups of rows, LANES each, of the same matrix or of two: numbers [inputs, PANEL].
struct Panel {
    std::vector<float> numbers;
    Lanes biases[2];

    void take(long group, const Matrix& matrix, long first) {
        const long inputs = matrix.inputs, rows = std::max(0L, std::min(LANES, long(matrix.outputs) - first));
        float* to = numbers.data() + group * LANES;
        float bias[LANES] = {};
        lay_as_columns(static_cast<const float*>(matrix.weights) + first * inputs, inputs, rows, inputs, to, PANEL);
        if (rows < LANES)
            for (long i = 0; i < inputs; ++i) std::fill(to + i * PANEL + rows, to + i * PANEL + LANES, 0.0f);
        if (matrix.bias != nullptr) std::copy(matrix.bias + first, matrix.bias + first + rows, bias);
        biases[group] = load(bias);
    }
};

// The outputs of a panel: written, added to what is there, or as one, silu(first group) · second group.
enum Ending : int64_t { WRITTEN, ADDED, GATED };

inline void put(float* place, Lanes sums, long count, bool adds) {
    if (count >= LANES) return store(place, adds ? load(place) + sums : sums);
    for (long i = 0; i < count; ++i) place[i] = adds ? place[i] + sums[i] : sums[i];
}

template <int ROWS>
inline void multiply_some(const Panel& panel, const float* vectors, long width, float* found, long apart, long count, Ending ending) {
    Lanes sums[ROWS][2];
    for (int row = 0; row < ROWS; ++row) sums[row][0] = panel.biases[0], sums[row][1] = panel.biases[1];
    const float* numbers = panel.numbers.data();
    for (long i = 0; i < width; ++i, numbers += PANEL) {
        const Lanes first = load(numbers), second = load(numbers + LANES);
        for (int row = 0; row < ROWS; ++row) {
            const Lanes number = all(vectors[row * width + i]);
            sums[row][0] += number * first, sums[row][1] += number * second;
        }
    }
    for (int row = 0; row < ROWS; ++row, found += apart) {
        if (ending == GATED) {
            put(found, bent(SILU, sums[row][0]) * sums[row][1], count, false);
            continue;
        }
        put(found, sums[row][0], count, ending == ADDED);
        put(found + LANES, sums[row][1], count - LANES, ending == ADDED);
    }
}

// As many vectors at a time as there are, ROWS at most; `row` is the first of them.
template <int ROWS>
inline void multiply_rest(const Panel& panel, const float* vectors, long row, long rows, long width, float* found, long apart, long count, Ending ending) {
    for (; row + ROWS <= rows; row += ROWS)
        multiply_some<ROWS>(panel, vectors + row * width, width, found + row * apart, apart, count, ending);
    if constexpr (ROWS > 1) multiply_rest<ROWS / 2>(panel, vectors, row, rows, width, found, apart, count, ending);
}

// found[row · apart + output] of vectors [rows, inputs]; of a gated pair `up` is the second matrix, else the same.
inline void multiply_many(
    const Matrix& matrix, const Matrix& up, const float* vectors, long rows, float* found, long apart, Ending ending, long threads
) {
    const long step = ending == GATED ? LANES : PANEL, panels = (matrix.outputs + step - 1) / step;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (long number = 0; number < panels; ++number) {
        static thread_local Panel panel;
        const long first = number * step;
        panel.numbers.resize(PANEL * matrix.inputs);
        panel.take(0, matrix, first), panel.take(1, up, ending == GATED ? first : first + LANES);
        multiply_rest<DEEP>(panel, vectors, 0, rows, matrix.inputs, found + first, apart, matrix.outputs - first, ending);
    }
}
