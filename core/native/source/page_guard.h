// Keeps the process alive when a mapped file loses pages that are in use: another program that shortens the file, or a
// disk that fails, makes every read of such a page raise SIGBUS. The handler puts zeros in the place of the lost pages
// and marks the range; the reader of the weights checks the mark before it uses the result. Faults
// elsewhere go to the handler that was there before. Windows does not let a mapped file be shortened.
#pragma once
#include <cstdint>

#if defined(_WIN32)

static int64_t guard_pages(uint64_t, uint64_t) { return 0; }
static int64_t has_lost_pages(int64_t) { return 0; }
static void release_pages(int64_t) {}

#else

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

// A mapped range; never freed, because a handler may read the list at any time, but used again.
struct GuardedRange {
    std::atomic<uint64_t> begin{UINT64_MAX}, end{0};
    std::atomic<int64_t> is_lost{0};
    bool is_used = true;            // under the lock
    GuardedRange* next = nullptr;   // set before the range is in the list
};

static std::atomic<GuardedRange*> guarded_ranges{nullptr};
static std::mutex guarded_ranges_lock;
static struct sigaction handler_before;
static std::atomic<uint64_t> foreign_address{0};
static std::atomic<int> foreign_repeats{0};

// Times that one address may fault elsewhere before the process ends: a handler that was turned off returns as if it
// had removed the cause, and the instruction would fault for ever.
static const int MAX_FOREIGN_REPEATS = 100;

static void end_by_signal(int number, bool is_sent) {
    struct sigaction usual = {};
    usual.sa_handler = SIG_DFL;
    sigaction(number, &usual, nullptr);
    if (is_sent) raise(number);     // a fault repeats itself
}

static void pass_on(int number, siginfo_t* info, void* context) {
    const uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
    const bool is_sent = info->si_code <= 0;
    if (!is_sent) {
        if (foreign_address.exchange(address) != address) foreign_repeats = 0;
        if (++foreign_repeats > MAX_FOREIGN_REPEATS) return end_by_signal(number, false);
    }
    if (handler_before.sa_flags & SA_SIGINFO) handler_before.sa_sigaction(number, info, context);
    else if (handler_before.sa_handler == SIG_IGN && is_sent) return;
    else if (handler_before.sa_handler == SIG_IGN || handler_before.sa_handler == SIG_DFL) end_by_signal(number, is_sent);
    else handler_before.sa_handler(number);
}

static void replace_lost_pages(int number, siginfo_t* info, void* context) {
    const int error = errno;
    if (info->si_code > 0) {
        const uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
        for (GuardedRange* range = guarded_ranges; range != nullptr; range = range->next) {
            const uint64_t begin = range->begin, end = range->end;
            if (address < begin || address >= end) continue;
            const uint64_t page = uint64_t(sysconf(_SC_PAGESIZE)), from = address / page * page;
            range->is_lost = 1;
            int kind = MAP_PRIVATE | MAP_FIXED | MAP_ANON;
#if defined(MAP_NORESERVE)
            kind |= MAP_NORESERVE;
#endif
            // what follows a lost page is lost too, or of no more use
            if (mmap(reinterpret_cast<void*>(from), end - from, PROT_READ | PROT_WRITE, kind, -1, 0) == MAP_FAILED) break;
            errno = error;
            return;
        }
    } else if (info->si_pid == getpid()) {
        // Python's faulthandler, turned on after this handler, raises the signal again to reach it, and then returns to
        // the instruction that faulted: that fault says where.
        errno = error;
        return;
    }
    pass_on(number, info, context);
    errno = error;
}

// Takes over the signal, unless another handler was put before this one, which passes on what is not its own.
static bool install_handler() {
    struct sigaction now = {};
    if (sigaction(SIGBUS, nullptr, &now) != 0) return false;
    const bool is_usual = !(now.sa_flags & SA_SIGINFO) && (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
    static bool was_installed = false;
    if (was_installed && !is_usual) return true;
    struct sigaction own = {};
    own.sa_sigaction = replace_lost_pages;
    own.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&own.sa_mask);
    handler_before = now;
    was_installed = sigaction(SIGBUS, &own, nullptr) == 0;
    return was_installed;
}

// Guards the pages of a mapping; `length` is a multiple of the page size. Returns the range, or 0 without a guard.
static int64_t guard_pages(uint64_t address, uint64_t length) {
    std::lock_guard<std::mutex> locked(guarded_ranges_lock);
    if (!install_handler()) return 0;
    GuardedRange* range = guarded_ranges;
    while (range != nullptr && range->is_used) range = range->next;
    const bool is_new = range == nullptr;
    if (is_new && (range = new (std::nothrow) GuardedRange) == nullptr) return 0;
    range->is_used = true;
    range->is_lost = 0;
    range->end = address + length;
    range->begin = address;
    if (is_new) {
        range->next = guarded_ranges;
        guarded_ranges = range;
    }
    return reinterpret_cast<int64_t>(range);
}

// Whether pages of a range were lost. Also takes the signal over again where something has set it back.
static int64_t has_lost_pages(int64_t range) {
    {
        std::lock_guard<std::mutex> locked(guarded_ranges_lock);
        install_handler();
    }
    return reinterpret_cast<GuardedRange*>(range)->is_lost;
}

// Ends the guard of a range, before it is unmapped.
static void release_pages(int64_t number) {
    std::lock_guard<std::mutex> locked(guarded_ranges_lock);
    GuardedRange* range = reinterpret_cast<GuardedRange*>(number);
    range->begin = UINT64_MAX;
    range->end = 0;
    range->is_used = false;
}

#endif
