// Products of a few vectors with large matrices. Each product of a row and a vector is added up in the same order
// however many vectors there are: a token read with others gives, to the last bit, what it gives alone.
#pragma once
#include <algorithm>
#include <vector>

#include "lanes.h"
#include "parts.h"

constexpr float FINER = 254.0f;     // as in core/models/packed/eight.py

// Vectors [rows, width], and once somebody wants them so, as two eight-bit numbers each.
struct Vectors {
    const float* values;
    long rows, width;
    std::vector<uint8_t> coarse, fine;  // 128 more than they are
    std::vector<float> steps;

    // Numbers that somebody else has split: [2 · rows, width], the coarse ones first; steps [rows].
    void take(const int8_t* halves, const float* sizes) {
        steps.assign(sizes, sizes + rows), coarse.resize(rows * width), fine.resize(rows * width);
        for (long i = 0; i < rows * width; ++i) coarse[i] = uint8_t(halves[i] + 128);
        for (long i = 0; i < rows * width; ++i) fine[i] = uint8_t(halves[rows * width + i] + 128);
    }

    void split() {
        if (!steps.empty()) return;
        coarse.resize(rows * width), fine.resize(rows * width), steps.resize(rows);
        for (long row = 0; row < rows; ++row) split_row(row);
    }

    void split_row(long row) {
        const float* from = values + row * width;
        float most = 0;
        for (long i = 0; i < width; ++i) most = std::max(most, std::fabs(from[i]));
        const float step = std::max(most / 127.0f, 1e-30f);
        steps[row] = step;
        for (long i = 0; i < width; ++i) {
            const float exact = from[i] / step, whole = std::nearbyintf(exact);
            coarse[row * width + i] = uint8_t(int(whole) + 128);
            fine[row * width + i] = uint8_t(int(std::nearbyintf((exact - whole) * FINER)) + 128);
        }
    }
};

// `OUTPUTS` rows of a matrix times `ROWS` vectors.
template <int OUTPUTS, int ROWS, typename Weight>
inline void tile(const Weight* weights, long inputs, const float* vectors, long width, float* found, long apart) {
    Lanes sums[OUTPUTS][ROWS] = {};
    long i = 0;
    for (; i + LANES <= inputs; i += LANES) {
        Lanes vector[ROWS];
        for (int row = 0; row < ROWS; ++row) vector[row] = load(vectors + row * width + i);
        for (int output = 0; output < OUTPUTS; ++output) {
            const Lanes weight = load(weights + output * inputs + i);
            for (int row = 0; row < ROWS; ++row) sums[output][row] += weight * vector[row];
        }
    }
    for (int output = 0; output < OUTPUTS; ++output)
        for (int row = 0; row < ROWS; ++row) {
            float rest = 0;
            for (long j = i; j < inputs; ++j) rest += one(weights + output * inputs + j) * vectors[row * width + j];
            found[row * apart + output] = sum(sums[output][row]) + rest;
        }
}

template <int OUTPUTS, typename Weight>
inline void tiles(const Weight* weights, long inputs, const Vectors& of, float* found, long apart) {
    long row = 0;
    for (; row + 4 <= of.rows; row += 4)
        tile<OUTPUTS, 4>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
    for (; row < of.rows; ++row)
        tile<OUTPUTS, 1>(weights, inputs, of.values + row * of.width, of.width, found + row * apart, apart);
}

template <typename Weight>
void floats(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    const Weight* weights = static_cast<const Weight*>(matrix.weights);
    long output = begin;
    for (; output + 4 <= end; output += 4)
        tiles<4>(weights + output * matrix.inputs, matrix.inputs, of, found + output, apart);
    for (; output < end; ++output)
        tiles<1>(weights + output * matrix.inputs, matrix.inputs, of, found + output, apart);
}

inline void both_sums(
    const int8_t* weights, const uint8_t* coarse, const uint8_t* fine, long count, int32_t& of_coarse, int32_t& of_fine
) {
    int32_t first = 0, second = 0;
    for (long i = 0; i < count; ++i) {
        first += int32_t(coarse[i]) * int32_t(weights[i]);
        second += int32_t(fine[i]) * int32_t(weights[i]);
    }
    of_coarse = first, of_fine = second;
}

inline void eights(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    for (long output = begin; output < end; ++output) {
        const int8_t* weights = static_cast<const int8_t*>(matrix.weights) + output * matrix.inputs;
        for (long row = 0; row < of.rows; ++row) {
            int32_t coarse, fine;
            const long start = row * of.width;
            both_sums(weights, &of.coarse[start], &of.fine[start], matrix.inputs, coarse, fine);
            const float scale = matrix.scales[output], rest = float(fine - matrix.sums[output]) * scale;
            const float both = std::fma(rest, 1 / FINER, float(coarse - matrix.sums[output]) * scale);
            found[row * apart + output] = both * of.steps[row];  // as torch's kernels do it, to the last bit
        }
    }
}

// found[row · apart + output] for every output of the matrix.
inline void multiply(const Matrix& matrix, Vectors& of, float* found, long apart, long threads) {
    if (matrix.kind == INT8) of.split();
    const long block = 64, blocks = (matrix.outputs + block - 1) / block;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && matrix.outputs * matrix.inputs > 100000)
    for (long part = 0; part < blocks; ++part) {
        const long begin = part * block, end = std::min(begin + block, long(matrix.outputs));
        if (matrix.kind == FLOAT32) floats<float>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == BFLOAT16) floats<bfloat16>(matrix, of, found, apart, begin, end);
        else eights(matrix, of, found, apart, begin, end);
        if (matrix.bias != nullptr)
            for (long row = 0; row < of.rows; ++row)
                for (long output = begin; output < end; ++output) found[row * apart + output] += matrix.bias[output];
    }
}
