// SPDX-License-Identifier: Apache-2.0
// A program that is linked with HIP. The first argument says what it does and how it ends.
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "programs/hip_calls.hpp"

extern char** environ;

namespace {

const char* self = nullptr;

void copies(int count) {
  program::copy_with(&hipMemcpy, count);
}

void copy_in_handler(int) {
  unsigned char from = 1;
  unsigned char to = 0;
  hipMemcpy(&to, &from, 1, 1);
}

int wait_for(pid_t child) {
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

struct last_copy {
  bool wanted = false;
  last_copy() = default;
  last_copy(const last_copy&) = delete;
  last_copy& operator=(const last_copy&) = delete;
  ~last_copy() {
    if (wanted) {
      copies(2);
    }
  }
};
last_copy at_the_end;

// --- What it does -------------------------------------------------------------------------------

int plain(int count) {
  copies(count);
  std::printf("copied %d\n", count);
  return 0;
}

int memory(int) {
  void* device = nullptr;
  void* pinned = nullptr;
  int status = hipMalloc(&device, 1000) + hipHostMalloc(&pinned, 2000, 0);
  status += hipMemcpy(device, pinned, 500, 1);
  status += hipMemcpyAsync(pinned, device, 400, 2, nullptr);
  status += hipMemcpy2D(device, 100, pinned, 50, 10, 8, 1);
  status += hipStreamSynchronize(nullptr);
  status += hipFree(device) + hipHostFree(pinned);
  std::printf("status %d\n", status);
  return status;
}

int failing(int) {
  void* memory = nullptr;
  errno = 5;
  const int allocation = hipMalloc(&memory, std::size_t{1} << 47U);
  const int after_allocation = errno;
  // An address that can't be read: the call fails before it looks.
  const int copy =
      hipMemcpyAsync(&memory, reinterpret_cast<void*>(16), std::size_t{1} << 47U, 1, nullptr);
  const int after_copy = errno;
  std::printf("%d %d %d %d\n", allocation, after_allocation, copy, after_copy);
  return 0;
}

int threads(int count) {
  for (int begun = 0; begun < count; begun += 4) {
    std::thread group[4];
    for (auto& one : group) {
      one = std::thread([] { copies(10); });
    }
    for (auto& one : group) {
      one.join();
    }
  }
  std::printf("threads %d\n", count);
  return 0;
}

int many_at_once(int count) {
  std::vector<std::thread> all;
  std::atomic<int> ready{0};
  for (int index = 0; index < count; ++index) {
    all.emplace_back([&] {
      copies(1);
      ++ready;
      while (ready.load() < count) {
        std::this_thread::yield();
      }
      copies(1);
    });
  }
  for (auto& one : all) {
    one.join();
  }
  std::printf("at once %d\n", count);
  return 0;
}

int forking(int) {
  copies(3);
  const pid_t child = ::fork();
  if (child == 0) {
    copies(5);
    std::exit(0);
  }
  const int status = wait_for(child);
  copies(2);
  std::printf("child %d\n", status);
  return status;
}

int idle_children(int) {
  copies(3);
  for (int times = 0; times < 5; ++times) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(4);
    }
    std::printf("child %d\n", WEXITSTATUS(wait_for(child)));
  }
  return 0;
}

int forking_among_threads(int) {
  std::atomic<bool> done{false};
  std::thread busy([&] {
    while (!done.load()) {
      copies(1);
    }
  });
  int sum = 0;
  for (int times = 0; times < 50; ++times) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      copies(1);
      ::_exit(0);
    }
    sum += wait_for(child);
  }
  done.store(true);
  busy.join();
  std::printf("children %d\n", sum);
  return sum;
}

char* const* own_arguments() {
  static char what[] = "plain";
  static char count[] = "4";
  static char* arguments[] = {const_cast<char*>(self), what, count, nullptr};
  return arguments;
}

int vforking(int) {
  copies(3);
  std::fflush(stdout);
  const pid_t child = ::vfork();
  if (child == 0) {
    ::execv(self, own_arguments());
    ::_exit(1);
  }
  const int status = wait_for(child);
  const pid_t failed = ::vfork();
  if (failed == 0) {
    ::execl("/no/such/program", "", nullptr);
    ::_exit(17);
  }
  copies(2);
  std::printf("child %d %d\n", status, WEXITSTATUS(wait_for(failed)));
  return 0;
}

int executing(int) {
  copies(3);
  std::fflush(stdout);
  ::execv(self, own_arguments());
  return 1;
}

int spawning(int) {
  copies(3);
  std::fflush(stdout);
  pid_t child = 0;
  ::posix_spawn(&child, self, nullptr, nullptr, own_arguments(), environ);
  std::printf("child %d\n", wait_for(child));
  return 0;
}

int daemon_without_descriptors(int) {
  copies(3);
  int ends[2];
  if (::pipe(ends) != 0) {
    return 1;
  }
  std::fflush(stdout);
  if (::fork() != 0) {
    char byte = 0;
    ::close(ends[1]);
    const auto got = ::read(ends[0], &byte, 1);
    std::printf("daemon says %d\n", got == 1 ? byte : -1);
    std::fflush(stdout);
    ::_exit(0);
  }
  ::setsid();
  if (::chdir("/") != 0) {
    ::_exit(1);
  }
  for (int number = 0; number < 1024; ++number) {
    if (number != ends[1]) {
      ::close(number);
    }
  }
  copies(5);
  for (int number = 0; number < 1024; ++number) {
    if (number != ends[1]) {
      ::close(number);
    }
  }
  copies(2);
  const char byte = 7;
  if (::write(ends[1], &byte, 1) != 1) {
    ::_exit(1);
  }
  std::exit(0);
}

int closing(int) {
  copies(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  for (int number = 3; number < 1024; ++number) {
    ::close(number);
  }
  copies(4);
  std::printf("closed\n");
  return 0;
}

int changing_folder(int) {
  if (::chdir("/") != 0) {
    return 1;
  }
  copies(4);
  std::printf("in /\n");
  return 0;
}

int dropping_rights(int) {
  copies(3);
  if (::getuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) {
    return 1;
  }
  copies(4);
  std::printf("dropped\n");
  return 0;
}

int cancelled(int) {
  pthread_t thread{};
  ::pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        copies(1);
        hipStreamSynchronize(reinterpret_cast<void*>(60'000));
        return nullptr;
      },
      nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  ::pthread_cancel(thread);
  void* result = nullptr;
  ::pthread_join(thread, &result);
  std::printf("cancelled %d\n", result == PTHREAD_CANCELED ? 1 : 0);
  return 0;
}

int signals(int) {
  std::signal(SIGUSR2, copy_in_handler);
  std::atomic<bool> done{false};
  const pthread_t main_thread = ::pthread_self();
  std::thread sender([&] {
    while (!done.load()) {
      ::pthread_kill(main_thread, SIGUSR2);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  copies(20'000);
  done.store(true);
  sender.join();
  std::printf("signals\n");
  return 0;
}

int exit_in_handler(int) {
  std::signal(SIGALRM, [](int) { ::_exit(6); });
  ::ualarm(30'000, 0);
  for (;;) {
    copies(100);
  }
}

int forks_in_handler(int) {
  std::signal(SIGALRM, [](int) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  });
  // Without the standard library's memory: its own lock would not stand a fork in a handler.
  for (int times = 0; times < 10; ++times) {
    ::ualarm(2'000, 0);
    for (int index = 0; index < 100; ++index) {
      copy_in_handler(0);
      ::usleep(50);
    }
  }
  ::ualarm(0, 0);
  std::printf("forked\n");
  return 0;
}

int small_stack(int) {
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, std::size_t{32} << 10U);
  pthread_t thread{};
  ::pthread_create(
      &thread, &attributes,
      [](void*) -> void* {
        unsigned char from = 1;
        unsigned char to = 0;
        hipMemcpy(&to, &from, 1, 1);
        return nullptr;
      },
      nullptr);
  ::pthread_join(thread, nullptr);
  std::printf("small\n");
  return 0;
}

int last_in_destructor(int) {
  at_the_end.wanted = true;
  copies(3);
  return 0;
}

int last_in_thread_end(int) {
  static pthread_key_t key;
  ::pthread_key_create(&key, [](void*) { copies(2); });
  std::thread([] {
    ::pthread_setspecific(key, &key);
    copies(3);
  }).join();
  std::printf("thread ended\n");
  return 0;
}

int forever(int) {
  for (int index = 0;; ++index) {
    unsigned char from[32] = {};
    unsigned char to[32];
    hipMemcpy(to, from, program::size_of(index), 1);
    if (index % 256 == 255) {
      ::usleep(2000);  // slow enough for the recorder to lose nothing
    }
  }
}

// --- How it ends --------------------------------------------------------------------------------

int end_by_exit(int) {
  copies(10);
  std::exit(3);
}
int end_at_once(int) {
  copies(10);
  ::_exit(4);
}
int end_at_once_in_c(int) {
  copies(10);
  std::_Exit(5);
}
int end_quickly(int) {
  copies(10);
  std::quick_exit(6);
}
int end_by_abort(int) {
  copies(10);
  std::abort();
}
int end_by_kill(int) {
  copies(10);
  std::raise(SIGKILL);
  return 1;
}
int end_in_thread(int) {
  copies(10);
  std::thread([] { std::exit(7); }).join();
  return 1;
}
int end_while_others_copy(int) {
  for (int index = 0; index < 3; ++index) {
    std::thread([] {
      for (;;) {
        copies(10);
      }
    }).detach();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::_exit(8);
}

const std::map<std::string, int (*)(int)> modes{{"plain", plain},
                                                {"memory", memory},
                                                {"failing", failing},
                                                {"threads", threads},
                                                {"many_at_once", many_at_once},
                                                {"fork", forking},
                                                {"idle_children", idle_children},
                                                {"fork_among_threads", forking_among_threads},
                                                {"vfork", vforking},
                                                {"exec", executing},
                                                {"spawn", spawning},
                                                {"daemon", daemon_without_descriptors},
                                                {"close", closing},
                                                {"chdir", changing_folder},
                                                {"setuid", dropping_rights},
                                                {"cancel", cancelled},
                                                {"signals", signals},
                                                {"exit_in_handler", exit_in_handler},
                                                {"forks_in_handler", forks_in_handler},
                                                {"small_stack", small_stack},
                                                {"destructor", last_in_destructor},
                                                {"thread_end", last_in_thread_end},
                                                {"forever", forever},
                                                {"exit", end_by_exit},
                                                {"_exit", end_at_once},
                                                {"_Exit", end_at_once_in_c},
                                                {"quick_exit", end_quickly},
                                                {"abort", end_by_abort},
                                                {"kill", end_by_kill},
                                                {"exit_in_thread", end_in_thread},
                                                {"exit_among_threads", end_while_others_copy}};

}  // namespace

int main(int count, char** arguments) {
  self = arguments[0];
  const auto mode = modes.find(count > 1 ? arguments[1] : "");
  return mode == modes.end() ? 99 : mode->second(count > 2 ? std::atoi(arguments[2]) : 0);
}
