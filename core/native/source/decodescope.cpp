// The quick step of Decodescope: a decoder's pass over a few tokens, and the reading of what came of it, without an
// interpreter between their operations. Built on the user's machine for its own processor (core/native/kernel_build.py).
#include "page_guard.h"
#include "ragged_attention.h"
#include "samplers.h"
#include "decode_step.h"

#if defined(_WIN32)
#define DECODESCOPE extern "C" __declspec(dllexport)
#else
#define DECODESCOPE extern "C" __attribute__((visibility("default")))
#endif

// Version of the exported functions; Python checks it before it calls any other.
DECODESCOPE int64_t decodescope_version() { return 14; }

// Whether the processor converts weights in float16 itself; otherwise they are slow.
DECODESCOPE int64_t decodescope_halves() { return DECODESCOPE_F16C; }

// What is added to each number of a vector in eight bits: sums of a row's weights take it out again.
DECODESCOPE int64_t decodescope_shift() { return SHIFT; }

// How many rows of a matrix a panel holds.
DECODESCOPE int64_t decodescope_panel() { return PANEL; }

// Goes through the model; 0, or 1 where memory ended.
DECODESCOPE int64_t decodescope_step(const Model* model, const Pass* pass) try {
    static thread_local Rooms rooms;
    for (int64_t number = 0; number < model->layers; ++number) through(*model, model->layer[number], number, *pass, rooms);
    score(*model, *pass, rooms);
    return 0;
} catch (...) {
    return 1;
}

// Products [rows, outputs] of split vectors, int8 [2 * rows, inputs] with float32 steps [rows], and a matrix of int8 or
// int4.
DECODESCOPE int64_t decodescope_multiply(
    const Matrix* matrix, const int8_t* halves, const float* steps, int64_t rows, float* found, int64_t threads
) try {
    Vectors of;     // not kept: a prompt may be long
    of.take(halves, steps, rows, matrix->inputs);
    multiply(*matrix, of, found, matrix->outputs, threads);
    return 0;
} catch (...) {
    return 1;
}

// Products [rows, outputs] of float32 vectors [rows, inputs] and a matrix of any kind.
DECODESCOPE int64_t decodescope_multiply_blocks(
    const Matrix* matrix, const float* vectors, int64_t rows, float* found, int64_t threads
) try {
    Vectors of;     // not kept: a prompt may be long
    of.aim(vectors, rows, matrix->inputs);
    multiply(*matrix, of, found, matrix->outputs, threads);
    return 0;
} catch (...) {
    return 1;
}

// Rows of a matrix of floats or blocks as float32 [count, inputs]; `ids` [count] have to be below the number of outputs.
DECODESCOPE void decodescope_rows(const Matrix* matrix, const int64_t* ids, int64_t count, float* found) {
    write_rows(*matrix, ids, count, found);
}

// Figures of `rows` texts' steps, one row each; `scores`: [stages + 1] of [rows, vocabulary].
DECODESCOPE int64_t decodescope_read(
    const float* const* scores, int64_t stages, int64_t rows, int64_t vocabulary, const int64_t* chosen, int64_t n, float* found
) try {
    static thread_local Shares shares;
    Buffer<const float*> own;
    own.resize(stages + 1);
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t stage = 0; stage <= stages; ++stage) own[stage] = scores[stage] + row * vocabulary;
        found = write_step(Step{own.data(), int64_t(stages), int64_t(vocabulary), int64_t(chosen[row]), int64_t(n)}, shares, found);
    }
    return 0;
} catch (...) {
    return 1;
}

// What the heads of a layer read, of many tokens of several texts (ragged_attention.h).
DECODESCOPE int64_t decodescope_ragged_attention(const RaggedAttention* pass) try {
    attend_ragged(*pass);
    return 0;
} catch (...) {
    return 1;
}

// Norms of hidden [rows, width].
DECODESCOPE void decodescope_norm(const float* hidden, const Norm* norm, int64_t rows, int64_t width, float* normed) {
    for (int64_t row = 0; row < rows; ++row) norm_row(*norm, hidden + row * width, width, normed + row * width);
}

// Products of many vectors [rows, inputs] with a matrix of float32, written to or, where it `adds`, added to what is
// found; `apart`: numbers from one of its rows to the next.
DECODESCOPE int64_t decodescope_product(
    const Matrix* matrix, const float* vectors, int64_t rows, float* found, int64_t apart, int64_t adds, int64_t threads
) try {
    multiply_many(*matrix, *matrix, vectors, rows, found, apart, adds ? ADDED : WRITTEN, threads);
    return 0;
} catch (...) {
    return 1;
}

// silu(gate · vector) · (up · vector) of many vectors, [rows, outputs of one].
DECODESCOPE int64_t decodescope_gated(
    const Matrix* gate, const Matrix* up, const float* vectors, int64_t rows, float* found, int64_t threads
) try {
    multiply_many(*gate, *up, vectors, rows, found, gate->outputs, GATED, threads);
    return 0;
} catch (...) {
    return 1;
}

// First choice, its probability, that of the chosen token, its rank: [rows, 4] of scores [rows, vocabulary].
DECODESCOPE void decodescope_choices(const float* scores, int64_t rows, int64_t vocabulary, const int64_t* chosen, float* found) {
    for (int64_t row = 0; row < rows; ++row) write_choice(scores + row * vocabulary, vocabulary, chosen[row], found + 4 * row);
}

// Six figures of each row of scores [rows, vocabulary] (samplers.h).
DECODESCOPE void decodescope_spread(const float* scores, int64_t rows, int64_t vocabulary, double* found) {
    for (int64_t row = 0; row < rows; ++row) write_spread_of(scores + row * vocabulary, vocabulary, found + 6 * row);
}

// Tokens of scores [vocabulary] at least so likely, and their shares, up to `most` of each; how many there are, or -1
// where memory ended.
DECODESCOPE int64_t decodescope_likely(
    const float* scores, int64_t vocabulary, double threshold, int64_t most, int64_t* tokens, float* found
) try {
    return write_likely(scores, vocabulary, threshold, most, tokens, found);
} catch (...) {
    return -1;
}

// How the finite ones of scores [vocabulary] are spread over so many parts of their range.
DECODESCOPE void decodescope_parts(const float* scores, int64_t vocabulary, double lowest, double highest, int64_t parts, int64_t* found) {
    count_parts(scores, vocabulary, float(lowest), float(highest), parts, found);
}

// Passages of a text with which it ends (samplers.h); found [2 * count].
DECODESCOPE int64_t decodescope_passages(
    const int64_t* text, int64_t count, const int8_t* breaks, int64_t vocabulary, int64_t least, int64_t longest, int64_t* found
) {
    return write_passages(Passages{text, count, breaks, vocabulary, least, longest}, found);
}

// Guards the mapped pages [address, address + length) of a file; 0 without a guard, else the range (page_guard.h).
DECODESCOPE int64_t decodescope_guard_pages(uint64_t address, uint64_t length) { return guard_pages(address, length); }

// Whether pages of a guarded range were lost and read as zeros since.
DECODESCOPE int64_t decodescope_has_lost_pages(int64_t range) { return has_lost_pages(range); }

// Ends the guard of a range, before its pages are unmapped.
DECODESCOPE void decodescope_release_pages(int64_t range) { release_pages(range); }
