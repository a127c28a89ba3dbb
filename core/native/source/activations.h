// Activations.
#pragma once
#include "buffer.h"
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
    for (int64_t i = 0; i < LANES; ++i) found[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678118654752f));
    return found;
}

// tanh x to about one unit in the last place, near 0 by the series of Cephes (S. Moshier).
inline Lanes hyperbolic_tangent(Lanes x) {
    const Lanes square = x * x;
    Lanes near = all(-5.70498872745e-3f);
    near = near * square + all(2.06390887954e-2f);
    near = near * square + all(-5.37397155531e-2f);
    near = near * square + all(1.33314422036e-1f);
    near = near * square + all(-3.33332819422e-1f);
    near = near * square * x + x;
    const Lanes far = all(1.0f) - all(2.0f) / (power(x + x) + all(1.0f));
    const Whole is_near = square < all(0.390625f);
    return (Lanes)(((Whole)near & is_near) | ((Whole)far & ~is_near));
}

// cap · tanh(x / cap), in place.
inline void cap_all(float* values, int64_t count, float cap) {
    for (int64_t i = 0; i < count; i += LANES) {
        float part[LANES] = {};
        const int64_t some = std::min(LANES, count - i);
        copy_items(values + i, some, part);
        store(part, all(cap) * hyperbolic_tangent(load(part) / all(cap)));
        copy_items<float>(part, some, values + i);
    }
}
