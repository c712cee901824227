// SPDX-License-Identifier: Apache-2.0
// The table of bound calls keeps its own rules: what the interposer will rely on.
#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/text.hpp"
#include "runtime/cuda/abi.hpp"
#include "runtime/hip/abi.hpp"

namespace berth::runtime {
namespace {

// "(a, b)" -> a, b
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> parts;
  list = list.substr(1, list.size() - 2);
  while (!text::trim(list).empty()) {
    const auto comma = std::min(list.find(','), list.size());
    parts.emplace_back(text::trim(list.substr(0, comma)));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return parts;
}

std::string last_word(const std::string& parameter) {
  const auto at = parameter.find_last_of(" *");
  return parameter.substr(at + 1);
}

const std::set<std::string, std::less<>> vocabulary{
    "dst",         "src",          "dst_pitch",   "src_pitch",    "width",      "rows",
    "bytes",       "kind",         "value",       "stream",       "memory",     "out_memory",
    "out_address", "flags",        "options",     "info",         "event",      "out_event",
    "start",       "end",          "out_time",    "out_stream",   "priority",   "least",
    "greatest",    "device",       "peer",        "out_device",   "context",    "peer_context",
    "dst_device",  "src_device",   "dst_context", "src_context",  "attribute",  "out_value",
    "count",       "name",         "length",      "free",         "total",      "mode",
    "out_status",  "function",     "data",        "callback",     "module",     "out_module",
    "image",       "kernel",       "out_kernel",  "grid_x",       "grid_y",     "grid_z",
    "block_x",     "block_y",      "block_z",     "shared",       "parameters", "extra",
    "advice",      "location",     "error",       "version",      "program",    "out_program",
    "source",      "header_count", "headers",     "header_names", "log",        "code",
    "minor"};

class table : public ::testing::TestWithParam<std::span<const symbol>> {};

TEST_P(table, roles_are_the_parameters_names_in_order) {
  for (const symbol& row : GetParam()) {
    std::vector<std::string> names;
    for (const auto& parameter : split(row.parameters)) {
      names.push_back(last_word(parameter));
    }
    EXPECT_EQ(split(row.roles), names) << row.name;
  }
}

TEST_P(table, roles_are_words_of_the_vocabulary) {
  for (const symbol& row : GetParam()) {
    for (const auto& role : split(row.roles)) {
      EXPECT_TRUE(vocabulary.contains(role)) << row.name << " has " << role;
    }
  }
}

TEST_P(table, each_name_stands_once_and_has_an_operation) {
  std::set<std::string> names;
  for (const symbol& row : GetParam()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.operation.empty()) << row.name;
    EXPECT_GE(row.since, 0) << row.name;
  }
  EXPECT_FALSE(names.empty());
}

TEST_P(table, what_is_newer_than_the_oldest_version_is_optional) {
  for (const symbol& row : GetParam()) {
    if (row.since > 0) {
      EXPECT_EQ(row.need, symbol_need::optional) << row.name;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<std::span<const symbol>>& each) {
  constexpr std::array names{"hip", "hiprtc", "cuda"};
  return names.at(each.index);
}

INSTANTIATE_TEST_SUITE_P(gpu_api, table,
                         ::testing::Values(hip::api::symbols(), hip::compiler_api::symbols(),
                                           cuda::api::symbols()),
                         name_of);

std::set<std::string_view> operations(std::span<const symbol> rows) {
  std::set<std::string_view> found;
  for (const symbol& row : rows) {
    found.insert(row.operation);
  }
  return found;
}

TEST(gpu_api, both_runtimes_do_every_operation_of_work_and_memory) {
  const auto hip = operations(hip::api::symbols());
  const auto cuda = operations(cuda::api::symbols());
  for (const std::string_view operation : {"allocate_device",
                                           "free_device",
                                           "allocate_pinned",
                                           "free_pinned",
                                           "allocate_managed",
                                           "register_host",
                                           "unregister_host",
                                           "device_address",
                                           "classify",
                                           "advise",
                                           "prefetch_async",
                                           "copy",
                                           "copy_async",
                                           "copy_2d",
                                           "copy_2d_async",
                                           "copy_peer_async",
                                           "fill",
                                           "fill_async",
                                           "create_stream",
                                           "destroy_stream",
                                           "synchronize_stream",
                                           "query_stream",
                                           "wait_event",
                                           "call_host",
                                           "create_event",
                                           "destroy_event",
                                           "record_event",
                                           "query_event",
                                           "synchronize_event",
                                           "elapsed",
                                           "can_access_peer",
                                           "enable_peer_access",
                                           "disable_peer_access",
                                           "launch",
                                           "stream_capture_status",
                                           "exchange_capture_mode"}) {
    EXPECT_TRUE(hip.contains(operation)) << operation;
    EXPECT_TRUE(cuda.contains(operation)) << operation;
  }
}

TEST(gpu_api, a_pointer_is_stored_as_the_member_of_its_name) {
  hip::api calls;
  const auto rows = hip::api::symbols();
  std::vector<char> places(rows.size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    calls.store(index, &places[index]);
  }
  const auto index_of = [&rows](std::string_view name) {
    return static_cast<std::size_t>(
        std::find_if(rows.begin(), rows.end(),
                     [name](const symbol& row) { return name == row.name; }) -
        rows.begin());
  };
  EXPECT_EQ(reinterpret_cast<void*>(calls.hipMemcpyAsync), &places[index_of("hipMemcpyAsync")]);
  EXPECT_EQ(reinterpret_cast<void*>(calls.hipGetLastError), &places[index_of("hipGetLastError")]);
  EXPECT_EQ(reinterpret_cast<void*>(calls.hipModuleLaunchKernel),
            &places[index_of("hipModuleLaunchKernel")]);
}

}  // namespace
}  // namespace berth::runtime
