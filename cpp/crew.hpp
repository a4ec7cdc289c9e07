// Threads that take tasks one after the other, and may be stopped.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace widemargin {

// Tasks that threads take one after the other; only the caller's thread asks whether to stop.
class Crew {
  using Time = std::chrono::steady_clock;
  // Seconds between two questions whether to stop.
  static constexpr double kPatience = 0.02;

 public:
  Crew(std::size_t threads, const std::function<bool()>& stop) : threads_(threads), ask_(stop) {}

  bool stopped(bool is_caller) {
    if (is_caller && std::chrono::duration<double>(Time::now() - asked_).count() > kPatience) {
      if (ask_()) stop_ = true;
      asked_ = Time::now();
    }
    return stop_.load(std::memory_order_relaxed);
  }

  // work(task, is_caller) for all tasks.
  template <class Work>
  void run(std::size_t tasks, const Work& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::mutex lock;
    const auto loop = [&](bool is_caller) {
      try {
        for (std::size_t t; (t = next++) < tasks && !stopped(is_caller);) work(t, is_caller);
      } catch (...) {
        const std::lock_guard guard(lock);
        if (!error) error = std::current_exception();
        stop_ = true;
      }
    };
    std::vector<std::thread> others;
    std::atomic<std::size_t> at_work{0};
    const std::size_t wanted = std::min(threads_, tasks);
    others.reserve(wanted);  // what is thrown while threads are at work would end the process
    try {
      for (std::size_t k = 1; k < wanted; ++k) {
        ++at_work;
        others.emplace_back([&] {
          loop(false);
          --at_work;
        });
      }
    } catch (const std::system_error&) {  // no more threads: fewer do it
      --at_work;
    }
    loop(true);
    while (at_work > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      try {
        stopped(true);
      } catch (...) {
        const std::lock_guard guard(lock);
        if (!error) error = std::current_exception();
        stop_ = true;
      }
    }
    for (auto& other : others) other.join();
    if (error) std::rethrow_exception(error);
  }

 private:
  std::size_t threads_;
  const std::function<bool()>& ask_;
  std::atomic<bool> stop_{false};
  Time::time_point asked_ = Time::now();
};

}  // namespace widemargin
