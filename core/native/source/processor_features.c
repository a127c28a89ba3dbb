/* The groups of instructions that processor and system support. Compiled for the oldest processor of each kind, so that
 * it runs everywhere; core/native/library_choice.py names the bits. */
#if defined(_WIN32)
#include <windows.h>
#define DECODESCOPE __declspec(dllexport)
#else
#define DECODESCOPE __attribute__((visibility("default")))
#endif
#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

enum { X86_64_V3 = 1, AVX_VNNI = 2, X86_64_V4 = 4, AVX512_VNNI = 8, DOTPROD = 16, I8MM = 32 };

#if defined(__APPLE__)
static int has(const char* name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, 0, 0) == 0 && value;
}
#endif

#if defined(__x86_64__)
static int all_of(unsigned found, unsigned bits) { return (found & bits) == bits; }

/* The registers that the system saves for each process (XCR0). */
static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static unsigned features(void) {
    unsigned a, b, c, d, basic, extended, saved, more = 0, found = 0;
    if (!__get_cpuid(1, &a, &b, &basic, &d)) return 0;
    /* SSE3, SSSE3, FMA, CMPXCHG16B, SSE4.1, SSE4.2, MOVBE, POPCNT, OSXSAVE, AVX, F16C */
    if (!all_of(basic, 1u << 0 | 1u << 9 | 1u << 12 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 22 | 1u << 23 | 1u << 27 | 1u << 28 | 1u << 29)) return 0;
    if (!__get_cpuid(0x80000001, &a, &b, &extended, &d) || !all_of(extended, 1u << 0 | 1u << 5)) return 0; /* LAHF, LZCNT */
    saved = saved_registers();
    if (!all_of(saved, 0x6)) return 0; /* xmm, ymm */
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (!all_of(b, 1u << 3 | 1u << 5 | 1u << 8)) return 0; /* BMI1, AVX2, BMI2 */
    found = X86_64_V3;
    if (a >= 1) { /* the number of further leaves */
        unsigned unused_b, unused_c, unused_d;
        if (__get_cpuid_count(7, 1, &more, &unused_b, &unused_c, &unused_d) && all_of(more, 1u << 4)) found |= AVX_VNNI;
    }
#if defined(__APPLE__)
    /* macOS saves these registers from their first use on, and does not announce it in XCR0. */
    if (!has("hw.optional.avx512f")) return found;
#else
    if (!all_of(saved, 0xe6)) return found; /* and the masks, the upper halves of zmm, the upper sixteen zmm */
#endif
    if (all_of(b, 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31)) { /* AVX-512 F, DQ, CD, BW, VL */
        found |= X86_64_V4;
        if (all_of(c, 1u << 11)) found |= AVX512_VNNI;
    }
    return found;
}
#elif defined(__aarch64__) && defined(__APPLE__)
static unsigned features(void) {
    return (has("hw.optional.arm.FEAT_DotProd") ? DOTPROD : 0) | (has("hw.optional.arm.FEAT_I8MM") ? I8MM : 0);
}
#elif defined(__aarch64__) && defined(_WIN32)
static unsigned features(void) { /* PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE, PF_ARM_V82_I8MM_INSTRUCTIONS_AVAILABLE */
    return (IsProcessorFeaturePresent(43) ? DOTPROD : 0) | (IsProcessorFeaturePresent(66) ? I8MM : 0);
}
#elif defined(__aarch64__) && defined(__linux__)
static unsigned features(void) { /* HWCAP_ASIMDDP, HWCAP2_I8MM */
    return (getauxval(AT_HWCAP) & 1ul << 20 ? DOTPROD : 0) | (getauxval(AT_HWCAP2) & 1ul << 13 ? I8MM : 0);
}
#else
static unsigned features(void) { return 0; }
#endif

DECODESCOPE unsigned decodescope_processor_features(void) { return features(); }
