// Calls the exported functions of the native library on stored inputs and compares what they write with stored references.
// tests/native/kernel_cases.py writes the file of cases. Usage: kernel_host CASES [LIBRARY]; without a library, the
// functions are those that are linked in. The exit code is the number of failed cases, at most 100.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../core/native/source/structs.h"

#if defined(_WIN32)
// As in windows.h, whose names of types are also those of kinds of weights.
extern "C" __declspec(dllimport) void* __stdcall LoadLibraryA(const char*);
extern "C" __declspec(dllimport) void* __stdcall GetProcAddress(void*, const char*);
#elif !defined(KERNEL_HOST_LINKED)
#include <dlfcn.h>
#endif

namespace {

struct Functions {
    decltype(&decodescope_panel) panel;
    decltype(&decodescope_step) step;
    decltype(&decodescope_multiply) multiply;
    decltype(&decodescope_multiply_blocks) multiply_blocks;
    decltype(&decodescope_rows) rows;
    decltype(&decodescope_read) read;
    decltype(&decodescope_ragged_attention) ragged_attention;
    decltype(&decodescope_norm) norm;
    decltype(&decodescope_product) product;
    decltype(&decodescope_gated) gated;
    decltype(&decodescope_choices) choices;
    decltype(&decodescope_spread) spread;
    decltype(&decodescope_likely) likely;
    decltype(&decodescope_parts) parts;
    decltype(&decodescope_passages) passages;
};

[[noreturn]] void stop(const char* reason) {
    std::fprintf(stderr, "kernel_host: %s\n", reason);
    std::exit(101);
}

#ifdef KERNEL_HOST_LINKED
#define FIND(name) &decodescope_##name
#else
void* find(void* library, const char* name) {
#ifdef _WIN32
    void* found = GetProcAddress(library, name);
#else
    void* found = dlsym(library, name);
#endif
    return found != nullptr ? found : (stop(name), nullptr);
}
#define FIND(name) reinterpret_cast<decltype(&decodescope_##name)>(find(library, "decodescope_" #name))
#endif

Functions open([[maybe_unused]] const char* path) {
#ifndef KERNEL_HOST_LINKED
    if (path == nullptr) stop("the path of the library is missing");
#ifdef _WIN32
    void* library = LoadLibraryA(path);
#else
    void* library = dlopen(path, RTLD_NOW);
    if (library == nullptr) std::fprintf(stderr, "%s\n", dlerror());
#endif
    if (library == nullptr) stop("the library cannot be opened");
#endif
    const auto version = FIND(version), shift = FIND(shift), halves = FIND(halves);
    std::printf("version %" PRId64 ", shift %" PRId64 ", converts float16: %" PRId64 "\n", version(), shift(), halves());
    return {FIND(panel), FIND(step), FIND(multiply), FIND(multiply_blocks), FIND(rows), FIND(read), FIND(ragged_attention),
            FIND(norm), FIND(product), FIND(gated), FIND(choices), FIND(spread), FIND(likely), FIND(parts), FIND(passages)};
}

// The file, from its beginning to its end.
class Reader {
public:
    explicit Reader(const char* path) : file(std::fopen(path, "rb")) {
        if (file == nullptr) stop("the file of cases cannot be opened");
    }
    ~Reader() { std::fclose(file); }
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    void read(void* to, size_t bytes) {
        if (bytes > 0 && std::fread(to, 1, bytes, file) != bytes) stop("the file of cases ends too early");
    }
    int64_t number() {
        int64_t value;
        return read(&value, sizeof value), value;
    }
    template <typename Item>
    std::vector<Item> items(int64_t count) {
        std::vector<Item> found(static_cast<size_t>(count));
        return read(found.data(), found.size() * sizeof(Item)), found;
    }
    std::string text() {
        const std::vector<char> found = items<char>(number());
        return {found.begin(), found.end()};
    }

private:
    std::FILE* file;
};

// An array with memory of exactly its size, so that sanitizers see accesses beyond it; `odd` ones begin at an odd address.
struct Segment {
    char *memory = nullptr, *begin = nullptr;

    void load(Reader& reader) {
        const int64_t size = reader.number(), odd = reader.number(), whole = size + odd;
        memory = static_cast<char*>(std::malloc(static_cast<size_t>(whole > 0 ? whole : 1)));
        begin = memory + odd;
        reader.read(begin, static_cast<size_t>(size));
    }
};

struct Argument {
    int64_t kind, value, offset;    // kind: 0 an integer, 1 the bits of a double, 2 an address, 3 no address
};

class Case {
public:
    Case(Reader& reader, const Functions& functions) : api(functions), name(reader.text()), panel(reader.number()) {
        segments.resize(static_cast<size_t>(reader.number()));
        for (Segment& segment : segments) segment.load(reader);
        for (int64_t count = reader.number(); count > 0; --count) {     // addresses inside of structs
            const int64_t segment = reader.number(), offset = reader.number();
            const int64_t target = reader.number();
            const char* address = at(target, reader.number());
            std::memcpy(at(segment, offset), &address, sizeof address);
        }
    }
    ~Case() {
        for (const Segment& segment : segments) std::free(segment.memory);
    }
    Case(const Case&) = delete;
    Case& operator=(const Case&) = delete;

    // Whether all is as it should be.
    bool run(Reader& reader) {
        const bool is_skipped = panel != 0 && panel != api.panel();
        for (int64_t count = reader.number(); count > 0; --count) {
            const std::string function = reader.text();
            arguments = reader.items<Argument>(reader.number());
            const int64_t wanted = reader.number();
            if (is_skipped) continue;
            const int64_t returned = call(function);
            if (returned != wanted) fail("returned %.0f instead of %.0f", double(returned), double(wanted));
        }
        for (int64_t count = reader.number(); count > 0; --count) compare(reader, is_skipped);
        for (int64_t count = reader.number(); count > 0; --count) {
            const int64_t first = reader.number(), offset = reader.number(), second = reader.number(), other = reader.number();
            const int64_t bytes = reader.number();
            if (!is_skipped && std::memcmp(at(first, offset), at(second, other), static_cast<size_t>(bytes)) != 0)
                fail("segments %.0f and %.0f differ", double(first), double(second));
        }
        return failures == 0;
    }

private:
    const Functions& api;
    std::string name;
    int64_t panel;
    std::vector<Segment> segments{};
    std::vector<Argument> arguments{};
    int64_t failures = 0;

    char* at(int64_t segment, int64_t offset) const { return segments.at(static_cast<size_t>(segment)).begin + offset; }

    void fail(const char* format, double first, double second) {
        if (failures++ > 2) return;
        std::printf("FAILED %s: ", name.c_str());
        std::printf(format, first, second);
        std::printf("\n");
    }

    int64_t whole(size_t i) const { return arguments.at(i).value; }
    double real(size_t i) const {
        double value;
        std::memcpy(&value, &arguments.at(i).value, sizeof value);
        return value;
    }
    template <typename Item>
    Item* place(size_t i) const {
        const Argument& given = arguments.at(i);
        return given.kind == 3 ? nullptr : reinterpret_cast<Item*>(at(given.value, given.offset));
    }

    int64_t call(const std::string& function) const {
        if (function == "step") return api.step(place<Model>(0), place<Pass>(1));
        if (function == "multiply")
            return api.multiply(place<Matrix>(0), place<int8_t>(1), place<float>(2), whole(3), place<float>(4), whole(5));
        if (function == "multiply_blocks")
            return api.multiply_blocks(place<Matrix>(0), place<float>(1), whole(2), place<float>(3), whole(4));
        if (function == "rows") return api.rows(place<Matrix>(0), place<int64_t>(1), whole(2), place<float>(3)), 0;
        if (function == "read")
            return api.read(place<const float*>(0), whole(1), whole(2), whole(3), place<int64_t>(4), whole(5), place<float>(6));
        if (function == "ragged_attention") return api.ragged_attention(place<RaggedAttention>(0));
        if (function == "norm") return api.norm(place<float>(0), place<Norm>(1), whole(2), whole(3), place<float>(4)), 0;
        if (function == "product")
            return api.product(place<Matrix>(0), place<float>(1), whole(2), place<float>(3), whole(4), whole(5), whole(6));
        if (function == "gated")
            return api.gated(place<Matrix>(0), place<Matrix>(1), place<float>(2), whole(3), place<float>(4), whole(5));
        if (function == "choices") return api.choices(place<float>(0), whole(1), whole(2), place<int64_t>(3), place<float>(4)), 0;
        if (function == "spread") return api.spread(place<float>(0), whole(1), whole(2), place<double>(3)), 0;
        if (function == "likely")
            return api.likely(place<float>(0), whole(1), real(2), whole(3), place<int64_t>(4), place<float>(5));
        if (function == "parts") return api.parts(place<float>(0), whole(1), real(2), real(3), whole(4), place<int64_t>(5)), 0;
        if (function == "passages")
            return api.passages(place<int64_t>(0), whole(1), place<int8_t>(2), whole(3), whole(4), whole(5), place<int64_t>(6));
        stop("an unknown function is called");
    }

    // Numbers of a type (4: float, 8: double, 64: int64, 16: bfloat16) within limits of float64 references. A reference that
    // is no number, or infinite, has to be found exactly.
    void compare(Reader& reader, bool is_skipped) {
        const int64_t segment = reader.number(), offset = reader.number(), type = reader.number(), count = reader.number();
        const std::vector<double> wanted = reader.items<double>(count), limits = reader.items<double>(count);
        for (int64_t i = 0; i < count && !is_skipped; ++i) {
            const size_t index = static_cast<size_t>(i);
            const double found = number_at(at(segment, offset), type, i), reference = wanted[index];
            const bool is_right = std::isnan(reference) ? std::isnan(found)
                                  : std::isinf(reference) ? found == reference
                                                          : std::fabs(found - reference) <= limits[index];
            if (!is_right) fail("%.9g instead of %.9g", found, reference);
        }
    }

    template <typename Item>
    static Item item_at(const char* place, int64_t index) {
        Item value;
        std::memcpy(&value, place + index * int64_t(sizeof value), sizeof value);
        return value;
    }

    static double number_at(const char* place, int64_t type, int64_t index) {
        if (type == 8) return item_at<double>(place, index);
        if (type == 64) return double(item_at<int64_t>(place, index));
        if (type == 4) return double(item_at<float>(place, index));
        const uint32_t bits = uint32_t(item_at<uint16_t>(place, index)) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return double(value);
    }
};

}  // namespace

int main(int count, char** values) {
    if (count < 2) stop("usage: kernel_host CASES [LIBRARY]");
    const Functions functions = open(count > 2 ? values[2] : nullptr);
    Reader reader(values[1]);
    if (reader.text() != "decodescope kernel cases") stop("the file has another format");
    int64_t failed = 0;
    const int64_t cases = reader.number();
    for (int64_t i = 0; i < cases; ++i) failed += !Case(reader, functions).run(reader);
    std::printf("%" PRId64 " of %" PRId64 " cases failed\n", failed, cases);
    return int(failed < 100 ? failed : 100);
}
