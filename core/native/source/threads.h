// Loops whose parts are shared among threads. The threads are started on first use and then wait for the next loop.
//
// Each thread begins with its own parts, which are neighbors in memory; the split is the same for each loop of a size. A
// thread that has finished takes parts of the others, so a thread that has not yet woken up, or has lost its processor to
// another program, does not delay the loop. The result of a part does not depend on the thread that computes it.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#ifndef _WIN32
#include <csignal>
#include <initializer_list>
#include <pthread.h>
#endif

inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");   // a "yield" takes no time on most processors
#endif
}

class ThreadPool {
public:
    // The pool of the process. It is never deleted: its threads wait until the process ends. After a fork the child, which
    // has none of the threads, makes a pool of its own.
    static ThreadPool* instance() {
        ThreadPool* found = current().load(std::memory_order_acquire);
        if (found != nullptr) return found;
        std::unique_ptr<ThreadPool> made(new ThreadPool());
        if (!current().compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) return found;
#ifndef _WIN32
        static const int registered = pthread_atfork(nullptr, nullptr, [] { current().store(nullptr); });
        static_cast<void>(registered);
#endif
        return made.release();
    }

    static int64_t processors() {
        static const int64_t count = std::min<int64_t>(std::max(1u, std::thread::hardware_concurrency()), MOST_THREADS);
        return count;
    }

    // Calls `part` with each number below `parts`, in up to `threads` threads, the caller's among them. Throws
    // std::bad_alloc if a part throws.
    template <typename Part>
    void run(int64_t parts, int64_t threads, const Part& part) {
        if (busy.test_and_set(std::memory_order_acquire)) {     // by another thread's loop: no more threads than processors
            for (int64_t number = 0; number < parts; ++number) part(number);
            return;
        }
        threads = start_threads(std::min(threads, parts));
        call = [](const void* what, int64_t number) { (*static_cast<const Part*>(what))(number); };
        context = &part;
        publish(parts, threads);
        take_parts(job.load(std::memory_order_relaxed), 0);
        for (int64_t turns = 0; unfinished.load(std::memory_order_acquire) > 0; ++turns)
            if (turns < 2000) pause_briefly();
            else std::this_thread::yield();
        const bool has_failed = failed.load(std::memory_order_relaxed);
        busy.clear(std::memory_order_release);
        if (has_failed) throw std::bad_alloc();
    }

private:
    static constexpr int64_t MOST_THREADS = 256;
    static constexpr std::chrono::microseconds SPINNING{50};   // the next loop of a decode step begins sooner

    // The parts that a thread begins with. `left`: the number of the job above, how many are left of them below.
    struct alignas(64) Share {
        std::atomic<uint64_t> left{0};
        int64_t end = 0;
    };

    Share shares[MOST_THREADS]{};
    void (*call)(const void*, int64_t) = nullptr;
    const void* context = nullptr;
    alignas(64) std::atomic<uint32_t> job{0};
    std::atomic<int64_t> members{0}, sleepers{0};
    alignas(64) std::atomic<int64_t> unfinished{0};
    std::atomic<bool> failed{false};
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    int64_t started = 1;        // threads, the caller's included
    std::mutex mutex{};
    std::condition_variable woken{};

    static std::atomic<ThreadPool*>& current() {
        static std::atomic<ThreadPool*> pool{nullptr};
        return pool;
    }

    // Returns how many threads there are, up to `wanted`.
    int64_t start_threads(int64_t wanted) {
        wanted = std::min(wanted, processors());
        if (started >= wanted) return wanted;
#ifndef _WIN32
        sigset_t every, before;         // signals are handled by the threads of the program
        sigfillset(&every);
        // except for faults of the thread itself, which end the process where they are blocked (page_guard.h)
        for (int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&every, fault);
        pthread_sigmask(SIG_SETMASK, &every, &before);
#endif
        try {
            for (; started < wanted; ++started) std::thread(&ThreadPool::work, this, started).detach();
        } catch (const std::system_error&) {    // the system gives no more: go on with those there are
        } catch (const std::bad_alloc&) {
        }
#ifndef _WIN32
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
#endif
        return started;
    }

    void publish(int64_t parts, int64_t threads) {
        const uint32_t next = job.load(std::memory_order_relaxed) + 1;
        unfinished.store(parts, std::memory_order_relaxed), failed.store(false, std::memory_order_relaxed);
        members.store(threads, std::memory_order_relaxed);
        const int64_t each = parts / threads, more = parts % threads;
        for (int64_t thread = 0, end = 0; thread < threads; ++thread) {
            const int64_t count = each + (thread < more);
            shares[thread].end = end += count;
            shares[thread].left.store(uint64_t(next) << 32 | uint64_t(count), std::memory_order_release);
        }
        job.store(next);        // in one order with `sleepers`: a thread sees the job, or is seen asleep
        if (sleepers.load() == 0) return;
        const std::lock_guard<std::mutex> lock(mutex);
        woken.notify_all();
    }

    // Takes one part of the share; -1 if it has none left, or belongs to another job already. What describes the job is
    // read after that only: it cannot end before the part is finished.
    int64_t take(Share& share, uint32_t of) {
        uint64_t left = share.left.load(std::memory_order_acquire);
        while (uint32_t(left >> 32) == of && uint32_t(left) > 0)
            if (share.left.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel, std::memory_order_acquire))
                return share.end - int64_t(uint32_t(left));
        return -1;
    }

    void take_parts(uint32_t of, int64_t thread) {
        int64_t finished = 0;
        const int64_t count = members.load(std::memory_order_relaxed);
        for (int64_t i = 0; i < count && thread < count; ++i) {
            Share& share = shares[(thread + i) % count];
            for (int64_t number = take(share, of); number >= 0; number = take(share, of), ++finished) call_part(number);
        }
        if (finished > 0) unfinished.fetch_sub(finished, std::memory_order_acq_rel);
    }

    void call_part(int64_t number) {
        try {
            call(context, number);
        } catch (...) {
            failed.store(true, std::memory_order_relaxed);
        }
    }

    void work(int64_t thread) {
        for (uint32_t seen = 0;;) {
            seen = wait_for_job(seen);
            take_parts(seen, thread);
        }
    }

    uint32_t wait_for_job(uint32_t seen) {
        const auto until = std::chrono::steady_clock::now() + SPINNING;
        do
            for (int turn = 0; turn < 32; ++turn) {
                const uint32_t now = job.load(std::memory_order_acquire);
                if (now != seen) return now;
                pause_briefly();
            }
        while (std::chrono::steady_clock::now() < until);
        std::unique_lock<std::mutex> lock(mutex);
        ++sleepers;
        woken.wait(lock, [&] { return job.load() != seen; });
        --sleepers;
        return job.load(std::memory_order_acquire);
    }
};

// Calls `part` with each number below `parts`, in up to `threads` threads.
template <typename Part>
inline void for_each_part(int64_t parts, int64_t threads, const Part& part) {
    if (threads > 1 && parts > 1 && ThreadPool::processors() > 1) return ThreadPool::instance()->run(parts, threads, part);
    for (int64_t number = 0; number < parts; ++number) part(number);
}
