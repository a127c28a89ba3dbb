// A matrix of any kind times a few vectors.
#pragma once
#include "fours.h"
#include "panels.h"
#include "shifted.h"

template <typename Weight>
inline void floats_of(const Matrix& matrix, const Vectors& of, float* found, long apart, long begin, long end) {
    if (matrix.in_panels) through_panels<Weight>(matrix, of.values, of.rows, found, apart, begin, end);
    else floats<Weight>(matrix, of, found, apart, begin, end);
}

// found[row · apart + output] for every output of the matrix.
inline void multiply(const Matrix& matrix, Vectors& of, float* found, long apart, long threads) {
    if (matrix.kind == INT8) SHIFT ? of.shift() : of.join();
    if (matrix.kind == INT4) of.deal();
    const long block = matrix.in_panels ? BESIDE * PANEL : 64, blocks = (matrix.outputs + block - 1) / block;
    #pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1 && matrix.outputs * matrix.inputs > 100000)
    for (long part = 0; part < blocks; ++part) {
        const long begin = part * block, end = std::min(begin + block, long(matrix.outputs));
        if (matrix.kind == FLOAT32) floats_of<float>(matrix, of, found, apart, begin, end);
        else if (matrix.kind == BFLOAT16) floats_of<bfloat16>(matrix, of, found, apart, begin, end);
#if DECODESCOPE_HALVES
        else if (matrix.kind == FLOAT16) floats_of<float16>(matrix, of, found, apart, begin, end);
#endif
        else if (matrix.kind == INT4) fours(matrix, of, found, apart, begin, end);
        else if (SHIFT) shifted(matrix, of, found, apart, begin, end);
        else eights(matrix, of, found, apart, begin, end);
        if (matrix.bias != nullptr)
            for (long row = 0; row < of.rows; ++row)
                for (long output = begin; output < end; ++output) found[row * apart + output] += matrix.bias[output];
    }
}
