// SPDX-License-Identifier: Apache-2.0
// Blocks of a recording: whole, damaged, missing, cut.
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/recording_builder.hpp"
#include "trace/recording/block_reader.hpp"

namespace berth::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trace::recording::block_reader;
using trace::recording::block_type;

struct walked {
  std::vector<block_type> types;
  std::vector<std::string> payloads;
  trace::recording::damage losses;
};

result<block_reader> open_blocks(std::string_view file) {
  return block_reader::open(
      trace::byte_source::from_memory("test.berth", {file.begin(), file.end()}).value());
}

walked walk(std::string_view file) {
  walked seen;
  auto reader = open_blocks(file).value();
  while (const auto found = reader.next().value()) {
    seen.types.push_back(found->type);
    seen.payloads.emplace_back(reinterpret_cast<const char*>(found->payload.data()),
                               found->payload.size());
  }
  seen.losses = reader.losses();
  return seen;
}

// Blocks of the types process, coverage, coverage, end.
struct four_blocks {
  std::string file;
  std::vector<std::size_t> begins;
};

four_blocks make_four(recording_builder::encoding how = recording_builder::encoding::plain) {
  recording_builder made(how);
  four_blocks four;
  four.begins.push_back(made.position());
  made.process({{"pid", "42"}});
  four.begins.push_back(made.position());
  made.coverage({{"stacks", std::string(300, 'a')}});
  four.begins.push_back(made.position());
  made.coverage({{"stacks", "all"}});
  four.begins.push_back(made.position());
  made.end();
  four.file = made.file();
  return four;
}

TEST(block_reader, gives_all_blocks_in_order) {
  for (const auto how : {recording_builder::encoding::plain, recording_builder::encoding::zstd}) {
    const auto seen = walk(make_four(how).file);
    EXPECT_THAT(seen.types, ElementsAre(block_type::process, block_type::coverage,
                                        block_type::coverage, block_type::end));
    EXPECT_THAT(seen.payloads[1], HasSubstr(std::string(300, 'a')));
    EXPECT_FALSE(seen.losses.any());
    EXPECT_FALSE(seen.losses.cut);
    EXPECT_EQ(seen.losses.lost_bytes, 0U);
  }
}

TEST(block_reader, a_newer_version_is_an_error_that_names_both) {
  auto file = make_four().file;
  file[8] = 7;
  const auto opened = open_blocks(file);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), errc::input_unknown_format);
  EXPECT_THAT(opened.error().message(), HasSubstr("version 7"));
  EXPECT_THAT(opened.error().message(), HasSubstr("reads version 1"));
  EXPECT_THAT(opened.error().hint(), HasSubstr("newer"));
  EXPECT_EQ(opened.error().where(), "test.berth");
}

TEST(block_reader, what_is_no_recording_is_an_error) {
  EXPECT_EQ(open_blocks("{\"traceEvents\": []}").error().code(), errc::input_unknown_format);
  EXPECT_EQ(open_blocks("berth").error().code(), errc::input_unknown_format);
  EXPECT_EQ(open_blocks("berthtrc\x01").error().code(), errc::input_truncated);
}

TEST(block_reader, a_damaged_block_is_skipped_and_counted) {
  for (const auto how : {recording_builder::encoding::plain, recording_builder::encoding::zstd}) {
    const auto four = make_four(how);
    // Each byte of the second block: magic, type, lengths, sequence, checksum, payload.
    for (auto at = four.begins[1]; at < four.begins[2]; ++at) {
      auto file = four.file;
      file[at] = static_cast<char>(file[at] ^ 0x10);
      const auto seen = walk(file);
      EXPECT_THAT(seen.types,
                  ElementsAre(block_type::process, block_type::coverage, block_type::end))
          << at;
      EXPECT_EQ(seen.losses.places, 1U) << at;
      EXPECT_EQ(seen.losses.missing_blocks, 1U) << at;
      EXPECT_EQ(seen.losses.lost_bytes, four.begins[2] - four.begins[1]) << at;
      EXPECT_EQ(seen.losses.first_loss, 1U) << at;
      EXPECT_FALSE(seen.losses.cut) << at;
    }
  }
}

TEST(block_reader, bytes_between_blocks_are_passed_over) {
  const auto four = make_four();
  auto file = four.file;
  file.insert(four.begins[2], "rBLK rBLK, but no block");
  const auto seen = walk(file);
  EXPECT_EQ(seen.types.size(), 4U);
  EXPECT_EQ(seen.losses.places, 1U);
  EXPECT_EQ(seen.losses.missing_blocks, 0U);
  EXPECT_EQ(seen.losses.lost_bytes, 23U);
}

TEST(block_reader, a_gap_in_the_numbers_counts_as_missing_blocks) {
  recording_builder made;
  made.process({{"pid", "42"}}).skip_sequence().skip_sequence().end();
  const auto seen = walk(made.file());
  EXPECT_EQ(seen.types.size(), 2U);
  EXPECT_EQ(seen.losses.missing_blocks, 2U);
  EXPECT_EQ(seen.losses.places, 0U);
}

TEST(block_reader, a_file_cut_anywhere_gives_the_whole_blocks_before) {
  for (const auto how : {recording_builder::encoding::plain, recording_builder::encoding::zstd}) {
    const auto four = make_four(how);
    for (auto length = trace::recording::file_header_bytes; length < four.file.size(); ++length) {
      const auto seen = walk(std::string_view(four.file).substr(0, length));
      std::size_t whole = 0;
      while (whole + 1 < four.begins.size() && four.begins[whole + 1] <= length) {
        ++whole;
      }
      EXPECT_EQ(seen.types.size(), whole) << length;
      EXPECT_EQ(seen.losses.cut, length > four.begins[whole]) << length;
      EXPECT_EQ(seen.losses.lost_bytes, length - four.begins[whole]) << length;
      EXPECT_FALSE(seen.losses.any()) << length;
    }
  }
}

TEST(block_reader, types_that_it_does_not_know_are_given_to_the_caller) {
  recording_builder made;
  made.block(static_cast<block_type>(999), [](auto& to) { to.put_string("later"); }).end();
  const auto seen = walk(made.file());
  EXPECT_THAT(seen.types, ElementsAre(static_cast<block_type>(999), block_type::end));
}

TEST(block_reader, a_wrong_size_of_compressed_data_is_damage) {
  recording_builder made(recording_builder::encoding::zstd);
  made.process({{"pid", "42"}}).end();
  auto file = made.file();
  // A right checksum over a wrong size, as a faulty writer would make it.
  std::vector<std::byte> header(trace::recording::block_header_bytes);
  trace::recording::byte_writer to(header);
  const std::vector<std::byte> stored(40, std::byte{'x'});
  put_block_header(to,
                   {.type = block_type::coverage,
                    .encoding = recording_builder::encoding::zstd,
                    .plain_bytes = 100,
                    .sequence = 2},
                   stored);
  file.append(reinterpret_cast<const char*>(header.data()), header.size());
  file.append(40, 'x');
  const auto seen = walk(file);
  EXPECT_EQ(seen.types.size(), 2U);
  EXPECT_EQ(seen.losses.places, 1U);
  EXPECT_EQ(seen.losses.lost_bytes, header.size() + 40);
}

TEST(block_reader, the_largest_block_is_read) {
  recording_builder made;
  made.block(block_type::strings,
             [](auto& to) {
               while (to.room() > 0) {
                 to.put_byte('x');
               }
             })
      .end();
  const auto seen = walk(made.file());
  ASSERT_EQ(seen.types.size(), 2U);
  EXPECT_EQ(seen.payloads[0].size(), trace::recording::most_block_bytes);
}

}  // namespace
}  // namespace berth::test
