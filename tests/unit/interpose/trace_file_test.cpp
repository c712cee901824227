// SPDX-License-Identifier: Apache-2.0
// The file of a recording in programs that close it, disks that are full, and names that are taken.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interpose/capture/no_signals.hpp"
#include "interpose/capture/trace_file.hpp"
#include "support/recorded_file.hpp"
#include "support/scratch.hpp"

namespace berth::interpose {
namespace {

using test::recorded_file;
using test::scratch;
using test::settings_for;
using trace::recording::block_type;

// A payload of pairs that can hardly be compressed.
std::vector<std::byte> noise(std::size_t bytes) {
  std::mt19937 random(7);
  std::vector<std::byte> made(bytes + 16);
  trace::recording::byte_writer to(made);
  to.put_varint(1);
  to.put_string("noise");
  to.put_varint(bytes);
  for (std::size_t index = 0; index < bytes; ++index) {
    to.put_byte(static_cast<std::uint8_t>(random()));
  }
  made.resize(to.size());
  return made;
}

bool write_pair(trace_file& file, std::string_view value) {
  std::array<std::byte, 1024> room{};
  trace::recording::byte_writer to(room);
  to.put_varint(1);
  to.put_string("key");
  to.put_string(value);
  return file.write(block_type::process, to.written());
}

// What a child does, by its exit status; 0: all it wanted.
template <class Work>
int in_child(Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(work());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int lowest_free_descriptor() {
  const int found = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(found);
  return found;
}

TEST(TraceFile, HoldsWhatWasWritten) {
  const scratch folder;
  trace_file file;
  ASSERT_TRUE(file.create(settings_for(folder.file("a"))));
  EXPECT_EQ(file.state(), file_state::open);
  EXPECT_TRUE(write_pair(file, "value"));
  EXPECT_TRUE(file.write(block_type::coverage, noise(1000)));
  file.close();
  EXPECT_EQ(file.state(), file_state::closed);
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.process.at("key"), "value");
  EXPECT_EQ(read.coverage.at("noise").size(), 1000U);
  EXPECT_EQ(read.blocks, 2U);
  EXPECT_FALSE(read.losses.any());
}

TEST(TraceFile, TakesTheLargestBlocks) {
  const scratch folder;
  trace_file file;
  ASSERT_TRUE(file.create(settings_for(folder.file("a"))));
  for (const std::size_t bytes : {trace_file::most_payload - 16, std::size_t{0}}) {
    EXPECT_TRUE(file.write(block_type::coverage, noise(bytes)));
  }
  std::vector<std::byte> zeros(trace_file::most_payload);
  EXPECT_TRUE(file.write(static_cast<block_type>(99), zeros));
  EXPECT_TRUE(file.write(static_cast<block_type>(99), {}));
  file.close();
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.blocks, 4U);
  EXPECT_FALSE(read.losses.any());
}

TEST(TraceFile, TakesAnotherNameWhereItsOwnIsTaken) {
  const scratch folder;
  const auto how = settings_for(folder.file("a.trace"));
  std::array<trace_file, 3> files;
  for (auto& file : files) {
    ASSERT_TRUE(file.create(how));
    EXPECT_TRUE(write_pair(file, file.path()));
    file.close();
  }
  EXPECT_EQ(folder.files().size(), 3U);
  for (const auto& path : folder.files()) {
    EXPECT_EQ(recorded_file::read(path).process.at("key"), path);
  }
}

TEST(TraceFile, NeverWritesToAFileThatIsThere) {
  const scratch folder;
  ASSERT_EQ(::symlink("nowhere", folder.file("a").c_str()), 0);
  trace_file file;
  ASSERT_TRUE(file.create(settings_for(folder.file("a"))));
  EXPECT_NE(file.path(), folder.file("a"));
}

TEST(TraceFile, FailsWhereItCannotBeMade) {
  const scratch folder;
  for (const auto& path : {folder.file("no/such/folder"), folder.folder() + "/",
                           std::string("/proc/berth"), "/" + std::string(300, 'a')}) {
    trace_file file;
    EXPECT_FALSE(file.create(settings_for(path))) << path;
    EXPECT_EQ(file.state(), file_state::failed);
    EXPECT_NE(file.failure(), 0);
    EXPECT_FALSE(write_pair(file, "value"));
    file.close();
  }
}

TEST(TraceFile, FailsInAFolderThatMayNotBeWritten) {
  const scratch folder;
  ASSERT_EQ(::chmod(folder.folder().c_str(), 0555), 0);
  const int end = in_child([&] {
    if (::getuid() == 0 && ::setuid(65534) != 0) {
      return 3;
    }
    trace_file file;
    return !file.create(settings_for(folder.file("a"))) && file.failure() == EACCES ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
  EXPECT_TRUE(folder.files().empty());
}

TEST(TraceFile, LeavesLowDescriptorsToTheProgram) {
  const scratch folder;
  const int before = lowest_free_descriptor();
  trace_file file;
  ASSERT_TRUE(file.create(settings_for(folder.file("a"))));
  EXPECT_EQ(lowest_free_descriptor(), before);
}

TEST(TraceFile, GoesOnWhenItsDescriptorIsClosed) {
  const scratch folder;
  const int end = in_child([&] {
    trace_file file;
    bool good = file.create(settings_for(folder.file("a"))) && write_pair(file, "before");
    for (int number = 3; number < 1024; ++number) {
      ::close(number);
    }
    good = good && write_pair(file, "after");
    file.close();
    return good ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.blocks, 2U);
  EXPECT_EQ(read.process.at("key"), "after");
  EXPECT_FALSE(read.losses.any());
}

TEST(TraceFile, GoesOnUnderALowLimitOfDescriptors) {
  const scratch folder;
  const int end = in_child([&] {
    const rlimit low{16, 16};
    trace_file file;
    bool good = ::setrlimit(RLIMIT_NOFILE, &low) == 0 &&
                file.create(settings_for(folder.file("a"))) && write_pair(file, "before");
    for (int number = 3; number < 16; ++number) {
      ::close(number);
    }
    good = good && write_pair(file, "after");
    return good ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
  EXPECT_EQ(recorded_file::read(folder.file("a")).blocks, 2U);
}

TEST(TraceFile, NeverWritesToAFileThatHasGotItsDescriptor) {
  const scratch folder;
  const int end = in_child([&] {
    trace_file file;
    bool good = file.create(settings_for(folder.file("a"))) && write_pair(file, "before");
    for (int number = 3; number < 1024; ++number) {
      ::close(number);
    }
    for (int number = 3; number < 300; ++number) {
      ::open(folder.file("of_the_program").c_str(), O_WRONLY | O_CREAT, 0600);
    }
    good = good && write_pair(file, "after");
    file.close();
    return good && ::fcntl(200, F_GETFD) >= 0 ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
  EXPECT_EQ(test::content_of(folder.file("of_the_program")), "");
  EXPECT_EQ(recorded_file::read(folder.file("a")).blocks, 2U);
}

TEST(TraceFile, GoesOnIntoAFileThatWasRemovedAndFailsWhenItIsLost) {
  const scratch folder;
  const int end = in_child([&] {
    trace_file file;
    const bool made = file.create(settings_for(folder.file("a"))) && write_pair(file, "before");
    ::unlink(folder.file("a").c_str());
    const bool removed = write_pair(file, "removed");
    for (int number = 3; number < 1024; ++number) {
      ::close(number);
    }
    const bool lost = !write_pair(file, "lost") && file.state() == file_state::failed;
    file.close();
    return made && removed && lost ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
  EXPECT_TRUE(folder.files().empty());
}

TEST(TraceFile, DoesNotTakeAnotherFileOfItsNameForItsOwn) {
  const scratch folder;
  const int end = in_child([&] {
    trace_file file;
    const bool made = file.create(settings_for(folder.file("a"))) && write_pair(file, "before");
    ::rename(folder.file("a").c_str(), folder.file("b").c_str());
    ::close(::open(folder.file("a").c_str(), O_WRONLY | O_CREAT, 0600));
    for (int number = 3; number < 1024; ++number) {
      ::close(number);
    }
    return made && !write_pair(file, "after") ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
  EXPECT_EQ(test::content_of(folder.file("a")), "");
}

// On a disk that is full at some byte: the file ends in front of the first block that did not fit,
// and no signal arrives.
TEST(TraceFile, SaysWhyItEndsWhereABlockFindsNoRoom) {
  const scratch folder;
  const int end = in_child([&] {
    const rlimit small{5000, 5000};
    if (::setrlimit(RLIMIT_FSIZE, &small) != 0) {
      return 2;
    }
    trace_file file;
    if (!file.create(settings_for(folder.file("a")))) {
      return 3;
    }
    const auto payload = noise(1000);
    int written = 0;
    {
      const no_signals calm;
      while (file.write(block_type::coverage, payload)) {
        ++written;
      }
    }
    return written == 4 && file.failure() == EFBIG && !file.write(block_type::coverage, payload)
               ? 0
               : 1;
  });
  EXPECT_EQ(end, 0);
  const auto read = recorded_file::read(folder.file("a"));
  EXPECT_EQ(read.blocks, 5U);
  EXPECT_EQ(read.end.at("reason"), "disk: File too large");
  EXPECT_FALSE(read.losses.any());
  EXPECT_FALSE(read.losses.cut);
}

TEST(TraceFile, IsNotThereWhereNotEvenItsHeaderFits) {
  const scratch folder;
  const int end = in_child([&] {
    const rlimit none{8, 8};
    const no_signals calm;
    trace_file file;
    return ::setrlimit(RLIMIT_FSIZE, &none) == 0 && !file.create(settings_for(folder.file("a")))
               ? 0
               : 1;
  });
  EXPECT_EQ(end, 0);
  EXPECT_TRUE(folder.files().empty());
}

TEST(TraceFile, FailsWithoutMemory) {
  const scratch folder;
  const int end = in_child([&] {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    return 0;  // a sanitizer's memory is more than any limit
#else
    const rlimit none{1, 1};
    if (::setrlimit(RLIMIT_AS, &none) != 0) {
      return 2;
    }
    trace_file file;
    return !file.create(settings_for(folder.file("a"))) && file.failure() == ENOMEM ? 0 : 1;
#endif
  });
  EXPECT_EQ(end, 0);
}

TEST(NoSignals, LetNoSignalOfTheirOwnArrive) {
  const int end = in_child([] {
    {
      const no_signals calm;
      ::raise(SIGXFSZ);
    }
    return 0;
  });
  EXPECT_EQ(end, 0);
}

TEST(NoSignals, LeaveTheProgramsOwnPending) {
  const int end = in_child([] {
    sigset_t one;
    ::sigemptyset(&one);
    ::sigaddset(&one, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
    ::raise(SIGXFSZ);
    { const no_signals calm; }
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&pending, SIGXFSZ) == 1 ? 0 : 1;
  });
  EXPECT_EQ(end, 0);
}

}  // namespace
}  // namespace berth::interpose
