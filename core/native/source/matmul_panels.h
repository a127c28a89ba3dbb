// Products of vectors with a matrix whose rows lie side by side, a panel of them behind another: each lane adds up an
// output of its own, number by number, however many vectors there are, and those share what is read of a panel.
#pragma once

#include "activations.h"
#include "threads.h"

constexpr int64_t PANEL = 2 * LANES;   // rows of a panel
constexpr int64_t BESIDE = 4;          // panels at a time, at most
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int DEEP = 12;            // vectors at a time whose sums the processor has registers for
#else
constexpr int DEEP = 6;
#endif

constexpr int64_t LAID_AHEAD = 64;          // numbers of a row that are prefetched before they are packed

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define DECODESCOPE_FOURS
// Four rows of four as columns.
inline void lay_four(const float* from, int64_t apart, float* to, int64_t to_apart) {
    Quarter in[4];
    for (int64_t i = 0; i < 4; ++i) std::memcpy(&in[i], from + i * apart, sizeof in[i]);
    const Quarter a = __builtin_shufflevector(in[0], in[1], 0, 4, 1, 5), b = __builtin_shufflevector(in[2], in[3], 0, 4, 1, 5);
    const Quarter c = __builtin_shufflevector(in[0], in[1], 2, 6, 3, 7), d = __builtin_shufflevector(in[2], in[3], 2, 6, 3, 7);
    const Quarter out[4] = {
        __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
        __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7),
    };
    for (int64_t i = 0; i < 4; ++i) std::memcpy(to + i * to_apart, &out[i], sizeof out[i]);
}
#endif
#endif

// Rows [rows, width], `apart` numbers from one to the next, as columns: to[i * to_apart + row].
inline void lay_as_columns(const float* from, int64_t apart, int64_t rows, int64_t width, float* to, int64_t to_apart) {
    int64_t whole_rows = 0, whole_width = 0;
#ifdef DECODESCOPE_FOURS
    whole_rows = rows / 4 * 4, whole_width = width / 4 * 4;
    for (int64_t i = 0; i < whole_width; i += 4) {
        if (i % 16 == 0)
            for (int64_t row = 0; row < whole_rows; ++row) __builtin_prefetch(from + row * apart + i + LAID_AHEAD);
        for (int64_t row = 0; row < whole_rows; row += 4) lay_four(from + row * apart + i, apart, to + i * to_apart + row, to_apart);
    }
#endif
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = row < whole_rows ? whole_width : 0; i < width; ++i) to[i * to_apart + row] = from[row * apart + i];
}

// A matrix's biases from output `first` on, up to LANES of them.
inline Lanes biases_of(const Matrix& matrix, int64_t first) {
    float found[LANES] = {};
    if (matrix.bias != nullptr && first < matrix.outputs)
        std::copy(matrix.bias + first, matrix.bias + std::min(first + LANES, int64_t(matrix.outputs)), found);
    return load(found);
}

// The outputs of a panel: written, added to what is there, or as one, silu(first half) · second half.
enum Ending : int64_t { WRITTEN, ADDED, GATED };

// What a tile of outputs is made of: `count` outputs, up to as many as its panels have rows.
struct Outputs {
    float* found;
    int64_t apart, count;
    Ending ending;
    Lanes biases[2 * BESIDE];

    // Have the places of some rows near before they are written.
    void fetch(int64_t row, int64_t rows) const {
        for (float* place = found + row * apart; rows--; place += apart)
            __builtin_prefetch(place, 1), __builtin_prefetch(place + (ending == GATED ? 0 : LANES), 1);
    }
};

inline void put(float* place, Lanes sums, int64_t count, bool adds) {
    if (count >= LANES) return store(place, adds ? load(place) + sums : sums);
    for (int64_t i = 0; i < count; ++i) place[i] = adds ? place[i] + sums[i] : sums[i];
}

// `ROWS` vectors times `SIDE` panels [width, PANEL] that follow each other.
template <int ROWS, int SIDE, typename Weight>
inline void tile_panels(const Weight* numbers, const float* vectors, int64_t width, const Outputs& to, int64_t first_row) {
    if constexpr (ROWS > 2) to.fetch(first_row, ROWS);
    Lanes sums[ROWS][2 * SIDE];
    for (int row = 0; row < ROWS; ++row)
        for (int half = 0; half < 2 * SIDE; ++half) sums[row][half] = to.biases[half];
    for (int64_t i = 0; i < width; ++i) {
        Lanes weights[2 * SIDE];
        for (int half = 0; half < 2 * SIDE; ++half)
            weights[half] = load(numbers + (half / 2 * width + i) * PANEL + half % 2 * LANES);
        for (int row = 0; row < ROWS; ++row) {
            const Lanes number = all(vectors[(first_row + row) * width + i]);
            for (int half = 0; half < 2 * SIDE; ++half) sums[row][half] += number * weights[half];
        }
    }
    for (int row = 0; row < ROWS; ++row) {
        float* found = to.found + (first_row + row) * to.apart;
        if (to.ending == GATED) put(found, bent(SILU, sums[row][0]) * sums[row][1], to.count, false);
        else for (int half = 0; half < 2 * SIDE; ++half) put(found + half * LANES, sums[row][half], to.count - half * LANES, to.ending == ADDED);
    }
}

// Vectors from `row` on, ROWS at a time as long as there are so many, then the rest at once.
template <int ROWS, int SIDE, typename Weight>
inline void tile_rows(const Weight* numbers, const float* vectors, int64_t row, int64_t rows, int64_t width, const Outputs& to) {
    for (; row + ROWS <= rows; row += ROWS) tile_panels<ROWS, SIDE>(numbers, vectors, width, to, row);
    if constexpr (ROWS > 1)
        if (row < rows) tile_rows<ROWS - 1, SIDE>(numbers, vectors, row, rows, width, to);
}

// Outputs from `begin`, where a panel begins, to `end` of a matrix that lies in panels, less their biases. Of one or two
// vectors several panels are read side by side: their sums would wait for each other.
template <typename Weight>
inline void through_panels(const Matrix& matrix, const float* vectors, int64_t rows, float* found, int64_t apart, int64_t begin, int64_t end) {
    const int64_t side = rows == 1 ? BESIDE : rows == 2 ? 2 : 1, width = matrix.inputs;
    for (int64_t panel = begin / PANEL, taken; panel * PANEL < end; panel += taken) {
        taken = (end - 1) / PANEL - panel + 1 < side ? 1 : side;
        const Weight* numbers = static_cast<const Weight*>(matrix.weights) + panel * PANEL * width;
        const Outputs to{found + panel * PANEL, apart, matrix.outputs - panel * PANEL, WRITTEN, {}};
        if (taken == BESIDE) tile_panels<1, BESIDE>(numbers, vectors, width, to, 0);
        else if (taken == 2) tile_panels<2, 2>(numbers, vectors, width, to, 0);
        else tile_rows<DEEP, 1>(numbers, vectors, 0, rows, width, to);
    }
}

// Two groups of rows, LANES each, of the same matrix or of two, as a panel.
struct Panel {
    Buffer<float> numbers;

    void take(int64_t group, const Matrix& matrix, int64_t first) {
        const int64_t inputs = matrix.inputs, rows = std::max<int64_t>(0, std::min(LANES, int64_t(matrix.outputs) - first));
        float* to = numbers.data() + group * LANES;
        lay_as_columns(static_cast<const float*>(matrix.weights) + first * inputs, inputs, rows, inputs, to, PANEL);
        if (rows < LANES)
            for (int64_t i = 0; i < inputs; ++i) std::fill(to + i * PANEL + rows, to + i * PANEL + LANES, 0.0f);
    }
};

// found[row · apart + output] of many vectors [rows, inputs] and a matrix of float32 that lies row behind row: it is laid
// in panels as they are used. Of a gated pair `up` is the second matrix, else the same.
inline void multiply_many(
    const Matrix& matrix, const Matrix& up, const float* vectors, int64_t rows, float* found, int64_t apart, Ending ending, int64_t threads
) {
    const int64_t step = ending == GATED ? LANES : PANEL, panels = (matrix.outputs + step - 1) / step;
    for_each_part(panels, threads, [&](int64_t number) {
        static thread_local Panel panel;
        const int64_t first = number * step, second = ending == GATED ? first : first + LANES;
        panel.numbers.resize(PANEL * matrix.inputs);
        panel.take(0, matrix, first), panel.take(1, up, second);
        const Outputs to{found + first, apart, matrix.outputs - first, ending, {biases_of(matrix, first), biases_of(up, second)}};
        tile_rows<DEEP, 1>(panel.numbers.data(), vectors, 0, rows, matrix.inputs, to);
    });
}
