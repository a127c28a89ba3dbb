// Activations.
#pragma once
#include "simd.h"
#include "structs.h"

inline Lanes bent(int64_t act, Lanes x) {
    if (act == SILU) return x / (all(1.0f) + power(-x));
    if (act == RELU) return greater(x, Lanes{});
    if (act == GELU_TANH) {
        const Lanes inner = all(1.5957691216057308f) * (x + all(0.044715f) * x * x * x);   // 2 · √(2/π)
        return x / (all(1.0f) + power(-inner));
    }
    Lanes found;
    for (long i = 0; i < LANES; ++i) found[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678118654752f));
    return found;
}
