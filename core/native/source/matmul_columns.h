// Products of a few vectors with a matrix of floats that lies [inputs, outputs]: rows of numbers of all outputs are read
// one after another, and the sums stay in the cache.
#pragma once
#include "matmul.h"

constexpr int64_t INPUTS = 4;          // rows at a time: sums are loaded and stored once for all of them
constexpr int64_t SUMS = 1024;         // outputs at a time for several vectors: their sums stay in the nearest cache

// Adds `INPUTS` rows, the first at `weights`, times the numbers of each vector from `input` on.
template <typename Weight>
inline void add_rows(const Weight* weights, const Vectors& of, int64_t input, int64_t outputs, float* found, int64_t apart, int64_t begin, int64_t end) {
    int64_t output = begin;
    for (; output + LANES <= end; output += LANES) {
        Lanes rows[INPUTS];
        for (int64_t i = 0; i < INPUTS; ++i) rows[i] = load(weights + i * outputs + output);
        for (int64_t row = 0; row < of.rows; ++row) {
            const float* vector = of.values + row * of.width + input;
            Lanes sums = load(found + row * apart + output);
            for (int64_t i = 0; i < INPUTS; ++i) sums = multiply_add(rows[i], all(vector[i]), sums);
            store(found + row * apart + output, sums);
        }
    }
    for (; output < end; ++output)
        for (int64_t row = 0; row < of.rows; ++row) {
            const float* vector = of.values + row * of.width + input;
            float sum = found[row * apart + output];
            for (int64_t i = 0; i < INPUTS; ++i) sum = multiply_add(one(weights + i * outputs + output), vector[i], sum);
            found[row * apart + output] = sum;
        }
}

// Outputs begin to end; each is summed in the order of the inputs, for any number of vectors.
template <typename Weight>
void through_columns(const Matrix& matrix, const Vectors& of, float* found, int64_t apart, int64_t begin, int64_t end) {
    const Weight* weights = static_cast<const Weight*>(matrix.weights);
    const int64_t step = of.rows > 1 ? SUMS : end - begin;
    for (int64_t first = begin; first < end; first += step) {
        const int64_t last = std::min(first + step, end);
        for (int64_t row = 0; row < of.rows; ++row) std::fill(found + row * apart + first, found + row * apart + last, 0.0f);
        int64_t input = 0;
        for (; input + INPUTS <= matrix.inputs; input += INPUTS)
            add_rows(weights + input * matrix.outputs, of, input, matrix.outputs, found, apart, first, last);
        for (; input < matrix.inputs; ++input)
            for (int64_t row = 0; row < of.rows; ++row)
                for (int64_t output = first; output < last; ++output)
                    found[row * apart + output] = multiply_add(
                        one(weights + input * matrix.outputs + output), of.values[row * of.width + input], found[row * apart + output]
                    );
    }
}
