// Threads that take tasks one after the other, and may be stopped.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
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

// Threads that wait for one round of tasks after the other: rounds are too short to start threads.
class Team {
 public:
  explicit Team(std::size_t threads) {
    others_.reserve(threads);
    try {
      for (std::size_t k = 1; k < threads; ++k) others_.emplace_back([this] { wait_and_work(); });
    } catch (const std::system_error&) {  // no more threads: fewer do it
    }
  }
  ~Team() {
    {
      const std::lock_guard guard(lock_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (auto& other : others_) other.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // work(task) for all tasks, which throws nothing.
  void run(std::size_t tasks, const std::function<void(std::size_t)>& work) {
    next_ = 0;
    if (others_.empty() || tasks < 2) {
      take(work, tasks);
      return;
    }
    {
      const std::lock_guard guard(lock_);
      work_ = &work, tasks_ = tasks;
    }
    changed_.notify_all();
    take(work, tasks);
    std::unique_lock guard(lock_);
    work_ = nullptr;  // threads that wake up late have nothing to do
    changed_.wait(guard, [this] { return busy_ == 0; });
  }

 private:
  void take(const std::function<void(std::size_t)>& work, std::size_t tasks) {
    for (std::size_t t; (t = next_++) < tasks;) work(t);
  }
  void wait_and_work() {
    std::unique_lock guard(lock_);
    while (true) {
      changed_.wait(guard, [this] { return is_over_ || (work_ != nullptr && next_ < tasks_); });
      if (is_over_) return;
      const auto& work = *work_;
      const std::size_t tasks = tasks_;
      ++busy_;
      guard.unlock();
      take(work, tasks);
      guard.lock();
      if (--busy_ == 0) changed_.notify_all();
    }
  }

  std::vector<std::thread> others_;
  std::mutex lock_;
  std::condition_variable changed_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t tasks_ = 0, busy_ = 0;
  std::atomic<std::size_t> next_{0};
  bool is_over_ = false;
};

}  // namespace widemargin
