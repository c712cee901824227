// SPDX-License-Identifier: Apache-2.0
#include "trace/import/byte_source.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/trace/inputs.hpp"

namespace {

using berth::errc;
using berth::result;
using berth::test::bytes_of;
using berth::test::gzip;
using berth::trace::byte_source;
using testing::HasSubstr;

// All of it, in reads of `step` bytes.
result<std::string> read_all(byte_source& source, std::size_t step) {
  std::string text;
  std::vector<char> part(step);
  while (true) {
    const auto count = source.read(part);
    if (!count) {
      return count.error();
    }
    text.append(part.data(), *count);
    if (*count < step) {
      return text;
    }
  }
}

// About `size` bytes that compress neither well nor badly.
std::string some_text(std::size_t size) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> digit('0', '9');
  std::string text;
  while (text.size() < size) {
    text += "\"value\": ";
    for (int left = 6; left > 0; --left) {
      text += static_cast<char>(digit(random));
    }
  }
  return text;
}

class temporary_file {
public:
  explicit temporary_file(std::string_view content)
      : path_(std::filesystem::temp_directory_path() /
              ("berth_byte_source." + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~temporary_file() { std::filesystem::remove(path_); }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

TEST(byte_source, gives_a_plain_file_as_it_is) {
  const auto text = some_text(1'000'000);
  const temporary_file file(text);
  for (const std::size_t step : {1'000'001U, 65'536U, 1'000U}) {
    auto source = byte_source::open(file.path()).value();
    EXPECT_FALSE(source.is_compressed());
    EXPECT_EQ(source.file_bytes(), text.size());
    EXPECT_EQ(read_all(source, step).value(), text);
    EXPECT_EQ(source.file_bytes_read(), text.size());
    EXPECT_FALSE(source.ended_early());
  }
}

TEST(byte_source, undoes_gzip) {
  const auto text = some_text(1'000'000);
  const auto packed = gzip(text);
  const temporary_file file(packed);
  for (const std::size_t step : {1'000'001U, 65'536U, 1'000U}) {
    auto source = byte_source::open(file.path()).value();
    EXPECT_TRUE(source.is_compressed());
    EXPECT_EQ(read_all(source, step).value(), text);
    EXPECT_EQ(source.file_bytes_read(), packed.size());
    EXPECT_EQ(source.file_bytes(), packed.size());
    EXPECT_FALSE(source.ended_early());
  }
}

TEST(byte_source, reads_memory_like_a_file) {
  const auto text = some_text(100'000);
  for (const auto& content : {text, gzip(text)}) {
    auto source = byte_source::from_memory("name", bytes_of(content)).value();
    EXPECT_EQ(source.name(), "name");
    EXPECT_EQ(source.file_bytes(), content.size());
    EXPECT_EQ(read_all(source, 777).value(), text);
    EXPECT_FALSE(source.ended_early());
  }
}

TEST(byte_source, gives_nothing_more_behind_the_end) {
  for (const auto& content : {std::string("abc"), gzip("abc")}) {
    auto source = byte_source::from_memory("name", bytes_of(content)).value();
    EXPECT_EQ(read_all(source, 100).value(), "abc");
    EXPECT_EQ(read_all(source, 100).value(), "");
    EXPECT_EQ(source.read({}).value(), 0U);
  }
}

TEST(byte_source, joins_several_gzip_members) {
  const auto text = some_text(10'000);
  for (const std::size_t first : {0U, 1U, 5'000U, 9'999U}) {
    const auto packed = gzip(text.substr(0, first)) + gzip("") + gzip(text.substr(first));
    auto source = byte_source::from_memory("name", bytes_of(packed)).value();
    EXPECT_EQ(read_all(source, 300).value(), text);
    EXPECT_FALSE(source.ended_early());
  }
}

TEST(byte_source, gives_what_is_there_of_gzip_that_ends_early) {
  const auto text = some_text(6'000);
  const auto packed = gzip(text);
  std::size_t before = 0;
  for (std::size_t size = 2; size < packed.size(); size += 3) {
    auto source = byte_source::from_memory("name", bytes_of(packed.substr(0, size))).value();
    const auto part = read_all(source, 1000).value();
    ASSERT_TRUE(source.ended_early()) << size;
    ASSERT_TRUE(text.starts_with(part)) << size;
    ASSERT_GE(part.size(), before) << size;
    before = part.size();
    // How much it is does not depend on how it is read.
    auto again = byte_source::from_memory("name", bytes_of(packed.substr(0, size))).value();
    ASSERT_EQ(read_all(again, 1).value(), part) << size;
  }
  EXPECT_GT(before, text.size() * 9 / 10);
}

TEST(byte_source, never_takes_damaged_gzip_for_whole) {
  const auto text = some_text(3'000);
  const auto packed = gzip(text);
  constexpr std::size_t header = 10;
  for (std::size_t at = header; at < packed.size(); ++at) {
    auto damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    auto source = byte_source::from_memory("name", bytes_of(damaged)).value();
    const auto read = read_all(source, 512);
    if (!read) {
      ASSERT_EQ(read.error().code(), errc::input_compression) << at;
      ASSERT_THAT(read.error().where(), HasSubstr("name at byte ")) << at;
    } else {
      ASSERT_TRUE(source.ended_early()) << at;
    }
  }
}

TEST(byte_source, names_the_reason_of_what_cannot_be_read) {
  const auto absent = byte_source::open("/nonexistent/trace.json");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), errc::file_unreadable);
  EXPECT_EQ(absent.error().where(), "/nonexistent/trace.json");
  EXPECT_THAT(absent.error().message(), HasSubstr("No such file"));

  const auto folder = byte_source::open("/tmp");
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().code(), errc::file_unreadable);
  EXPECT_THAT(folder.error().message(), HasSubstr("directory"));

  // Can be opened by anyone, and reading its first page fails for everyone.
  const auto unreadable = byte_source::open("/proc/self/mem");
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(unreadable.error().code(), errc::file_unreadable);
}

TEST(byte_source, calls_an_empty_file_empty) {
  const temporary_file file("");
  const auto empty = byte_source::open(file.path());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code(), errc::input_empty);
  const auto none = byte_source::from_memory("name", {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), errc::input_empty);
}

}  // namespace
