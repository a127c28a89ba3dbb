// Vectors of floats as wide as the processor's registers: wider ones would be kept in memory between two instructions.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#ifdef __AVX__
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 warns of its own header
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif
#if defined(__F16C__) || defined(__AVX512F__)
#define DECODESCOPE_F16C 1
#else
#define DECODESCOPE_F16C 0
#endif

#if defined(__AVX512F__)
constexpr int64_t LANES = 16;
#elif defined(__AVX__)
constexpr int64_t LANES = 8;
#else
constexpr int64_t LANES = 4;
#endif
typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t Whole __attribute__((vector_size(4 * LANES)));
typedef uint32_t Bits __attribute__((vector_size(4 * LANES)));
typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));
typedef uint16_t bfloat16;
struct float16 { uint16_t bits; };

inline Lanes all(float value) { return value - Lanes{}; }

inline Lanes load(const float* place) {
    Lanes lanes;
    std::memcpy(&lanes, place, sizeof lanes);
    return lanes;
}

inline Lanes load(const bfloat16* place) {
    Halves halves;
    std::memcpy(&halves, place, sizeof halves);
    const Bits bits = __builtin_convertvector(halves, Bits) << 16;
    return (Lanes)bits;
}

// Keep a value in a register. Compilers may load it again for each product, which costs twice as much if it crosses a
// cache line, or may reorder sums so that registers run out.
template <typename Register>
inline void hold([[maybe_unused]] Register& value) {
#if defined(__x86_64__) && defined(__AVX__)
    asm("" : "+v"(value));
#elif defined(__aarch64__)
    asm("" : "+w"(value));
#endif
}

inline float one(const float* place) {
    float value;
    std::memcpy(&value, place, sizeof value);
    return value;
}

inline float one(const bfloat16* place) {
    bfloat16 half;
    std::memcpy(&half, place, sizeof half);
    const uint32_t bits = uint32_t(half) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

#if DECODESCOPE_F16C
inline Lanes load(const float16* place) {
#ifdef __AVX512F__
    return (Lanes)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(place)));
#else
    return (Lanes)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(place)));
#endif
}

inline float one(const float16* place) {
    uint16_t bits;
    std::memcpy(&bits, place, sizeof bits);
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
}
#else
// Exponent and mantissa move to those of a float32, whose exponent then is 112 too small; a product with a power of two
// also converts numbers below the normal ones. Exponents of infinities and of no numbers stay the greatest.
inline Lanes load(const float16* place) {
    Halves halves;
    std::memcpy(&halves, place, sizeof halves);
    const Bits bits = __builtin_convertvector(halves, Bits), sign = (bits & 0x8000) << 16, rest = (bits & 0x7fff) << 13;
    const Bits is_special = (Bits)(rest >= 0x0f800000);
    const Lanes number = (Lanes)rest * all(5192296858534827628530496329220096.0f);     // 2 to the 112
    return (Lanes)(sign | ((Bits)number & ~is_special) | ((rest | 0x7f800000) & is_special));
}

inline float one(const float16* place) {
    float16 four[LANES] = {};
    std::memcpy(four, place, sizeof *place);
    return load(four)[0];
}
#endif

inline void store(float* place, Lanes lanes) { std::memcpy(place, &lanes, sizeof lanes); }

// a * b + c, rounded once where the processor can. Compilers would decide it loop by loop (GCC avoids it in chains of sums
// on some processors), and sums of the same numbers would differ in the last bit.
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
#if defined(__AVX512F__)
    return (Lanes)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__AVX__) && defined(__FMA__)
    return (Lanes)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

inline float multiply_add(float a, float b, float c) {
#ifdef FP_FAST_FMAF
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

// Round to the nearest bfloat16, ties to even, as torch does.
inline bfloat16 nearest(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    if (std::isnan(value)) return 0x7fc0;
    return bfloat16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float sum(Lanes lanes) {
    float part[LANES], total[4] = {0, 0, 0, 0};
    std::memcpy(part, &lanes, sizeof part);
    for (int i = 0; i < LANES; i += 4)
        for (int j = 0; j < 4; ++j) total[j] += part[i + j];
    return (total[0] + total[2]) + (total[1] + total[3]);
}

typedef float Quarter __attribute__((vector_size(16)));

inline Quarter fours(Lanes lanes) {
    Quarter part[LANES / 4], total = {};
    std::memcpy(part, &lanes, sizeof part);
    for (int64_t i = 0; i < LANES / 4; ++i) total += part[i];
    return total;
}

// The `sum` of each of four vectors, equal to the last bit.
inline void sum_four(Lanes a, Lanes b, Lanes c, Lanes d, float* found) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
    const Quarter one = fours(a), two = fours(b), three = fours(c), four = fours(d);
    const Quarter low = __builtin_shufflevector(one, two, 0, 4, 2, 6), high = __builtin_shufflevector(one, two, 1, 5, 3, 7);
    const Quarter lower = __builtin_shufflevector(three, four, 0, 4, 2, 6);
    const Quarter higher = __builtin_shufflevector(three, four, 1, 5, 3, 7);
    const Quarter even = __builtin_shufflevector(low, lower, 0, 1, 4, 5) + __builtin_shufflevector(low, lower, 2, 3, 6, 7);
    const Quarter odd = __builtin_shufflevector(high, higher, 0, 1, 4, 5) + __builtin_shufflevector(high, higher, 2, 3, 6, 7);
    const Quarter all_four = even + odd;
    std::memcpy(found, &all_four, sizeof all_four);
    return;
#endif
#endif
    found[0] = sum(a), found[1] = sum(b), found[2] = sum(c), found[3] = sum(d);
}

inline Lanes greater(Lanes a, Lanes b) {
    const Whole which = a > b;
    return (Lanes)(((Whole)a & which) | ((Whole)b & ~which));
}

inline float greatest(Lanes lanes) {
    float part[LANES];
    store(part, lanes);
    for (int64_t half = LANES / 2; half; half /= 2)
        for (int64_t i = 0; i < half; ++i) part[i] = part[i] > part[i + half] ? part[i] : part[i + half];
    return part[0];
}

inline float greatest(const float* values, int64_t count) {
    float most = values[0];
    int64_t i = 0;
    if (count >= LANES) {
        Lanes lanes = load(values);
        for (; i + LANES <= count; i += LANES) lanes = greater(load(values + i), lanes);
        most = greatest(lanes);
    }
    for (; i < count; ++i) most = values[i] > most ? values[i] : most;
    return most;
}

// The greatest absolute value.
inline float greatest_size(const float* values, int64_t count) {
    Lanes lanes = {};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) lanes = greater(greater(load(values + i), -load(values + i)), lanes);
    float most = 0;
    for (int j = 0; j < LANES; ++j) most = lanes[j] > most ? lanes[j] : most;
    for (; i < count; ++i) most = std::max(most, std::fabs(values[i]));
    return most;
}

// e^x to about one unit in the last place, by the series of Cephes (S. Moshier); 0 below -87.3.
inline Lanes power(Lanes x) {
    const Whole gone = x < all(-87.3f);
    x = greater(x, all(-87.3f));
    const Lanes top = all(88.0f);
    x = -greater(-x, -top);
    const Lanes shifter = all(12582912.0f);  // 1.5 · 2²³: what is added to it is rounded to whole numbers
    const Lanes whole = (x * all(1.44269504088896341f) + shifter) - shifter;
    x = x - whole * all(0.693359375f);
    x = x + whole * all(2.12194440e-4f);
    Lanes y = all(1.9875691500e-4f);
    y = y * x + all(1.3981999507e-3f);
    y = y * x + all(8.3334519073e-3f);
    y = y * x + all(4.1665795894e-2f);
    y = y * x + all(1.6666665459e-1f);
    y = y * x + all(5.0000001201e-1f);
    y = y * x * x + x + all(1.0f);
    const Whole exponent = (__builtin_convertvector(whole, Whole) + 127) << 23;
    return (Lanes)((Whole)(y * (Lanes)exponent) & ~gone);
}

inline float power(float x) { return power(all(x))[0]; }
