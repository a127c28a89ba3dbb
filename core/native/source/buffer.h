// Arrays that grow, with 64-bit signed sizes and indices on every platform, and the checks of debug builds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

// A build with -DDECODESCOPE_CHECKS stops with a message where a condition does not hold; other builds do not test it.
#ifdef DECODESCOPE_CHECKS
#include <cstdio>
#include <cstdlib>
#define CHECK(condition) \
    ((condition) ? void() : (std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition), std::abort()))
#else
#define CHECK(condition) void()
#endif

template <typename Item>
struct Buffer : std::vector<Item> {
    using Base = std::vector<Item>;

    int64_t size() const { return int64_t(Base::size()); }
    void resize(int64_t count) { Base::resize(size_t(count)); }
    void assign(int64_t count, Item value) { Base::assign(size_t(count), value); }
    void assign(const Item* begin, const Item* end) { Base::assign(begin, end); }

    // The address of the place behind the last item may be taken, too.
    Item& operator[](int64_t index) { return CHECK(index >= 0 && index <= size()), Base::data()[index]; }
    const Item& operator[](int64_t index) const { return CHECK(index >= 0 && index <= size()), Base::data()[index]; }
};

template <typename Item>
inline void copy_items(const Item* from, int64_t count, Item* to) { std::memcpy(to, from, size_t(count) * sizeof(Item)); }
