// SPDX-License-Identifier: Apache-2.0
// HIP's answers as each major gives them: values from the runtimes' headers and sources
// of 5.2, 5.7, 6.2 and 7.0.
#include "runtime/hip/decode.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::runtime::hip {
namespace {

TEST(hip_version, is_read_from_the_packed_number) {
  EXPECT_EQ(decode_version(50221153), (runtime_version{5, 2, 21153}));
  EXPECT_EQ(decode_version(60342131), (runtime_version{6, 3, 42131}));
  EXPECT_EQ(decode_version(70051831), (runtime_version{7, 0, 51831}));
  EXPECT_EQ(decode_version(100200001), (runtime_version{10, 2, 1}));
}

struct answer {
  std::string what;
  runtime_version version;
  status result;
  int type;
  int is_managed;
  memory_kind expected;
};

void PrintTo(const answer& each, std::ostream* out) {
  *out << each.what;
}

class hip_pointers : public ::testing::TestWithParam<answer> {};

TEST_P(hip_pointers, are_what_their_version_says) {
  const answer& each = GetParam();
  pointer_attributes attributes{};
  attributes.type = each.type;
  attributes.is_managed = each.is_managed;
  if (is_unregistered(each.result, attributes, each.version)) {
    EXPECT_EQ(each.expected, memory_kind::pageable);
  } else {
    EXPECT_EQ(decode_pointer(attributes, each.version).kind, each.expected);
  }
}

constexpr runtime_version v52{5, 2, 21153};
constexpr runtime_version v56{5, 6, 31061};
constexpr runtime_version v57{5, 7, 31921};
constexpr runtime_version v62{6, 2, 41133};
constexpr runtime_version v70{7, 0, 51831};
constexpr runtime_version v102{10, 2, 0};

INSTANTIATE_TEST_SUITE_P(
    recorded, hip_pointers,
    ::testing::Values(
        answer{"5.2 malloc", v52, code::invalid_value, 0, 0, memory_kind::pageable},
        answer{"5.2 hipHostMalloc", v52, code::success, 0, 0, memory_kind::pinned},
        answer{"5.2 hipMalloc", v52, code::success, 1, 0, memory_kind::device},
        answer{"5.2 array", v52, code::success, 2, 0, memory_kind::unknown},
        answer{"5.6 hipMallocManaged", v56, code::success, 0, 1, memory_kind::managed},
        answer{"5.7 hipMallocManaged", v57, code::success, 4, 1, memory_kind::managed},
        answer{"5.7 malloc", v57, code::invalid_value, 0, 0, memory_kind::pageable},
        answer{"6.2 malloc", v62, code::success, 0, 0, memory_kind::pageable},
        answer{"6.2 hipHostMalloc", v62, code::success, 1, 0, memory_kind::pinned},
        answer{"6.2 hipMalloc", v62, code::success, 2, 0, memory_kind::device},
        answer{"6.2 hipMallocManaged", v62, code::success, 3, 1, memory_kind::managed},
        answer{"6.2 array", v62, code::success, 10, 0, memory_kind::unknown},
        answer{"6.2 unified", v62, code::success, 11, 0, memory_kind::unknown},
        answer{"7.0 malloc", v70, code::success, 0, 0, memory_kind::pageable},
        answer{"7.0 hipHostMalloc", v70, code::success, 1, 0, memory_kind::pinned},
        answer{"7.0 hipMalloc", v70, code::success, 2, 0, memory_kind::device},
        answer{"10.2 hipMallocManaged", v102, code::success, 3, 1, memory_kind::managed},
        answer{"10.2 a type of the future", v102, code::success, 77, 0, memory_kind::unknown}));

TEST(hip_pointer, keeps_addresses_and_device_but_not_the_invalid_device) {
  pointer_attributes attributes{};
  int host = 0;
  int device = 0;
  attributes.type = 1;
  attributes.device = 3;
  attributes.host_pointer = &host;
  attributes.device_pointer = &device;
  auto info = decode_pointer(attributes, v62);
  EXPECT_EQ(info.device, 3);
  EXPECT_EQ(info.host_address, &host);
  EXPECT_EQ(info.device_address, &device);
  attributes.device = -2;
  EXPECT_FALSE(decode_pointer(attributes, v62).device.has_value());
}

TEST(hip_pointer, tells_the_grain_only_where_the_flags_say_it) {
  pointer_attributes attributes{};
  attributes.type = 1;
  attributes.allocation_flags = 0x40000000;
  EXPECT_EQ(decode_pointer(attributes, v62).grain, coherence::fine);
  attributes.allocation_flags = 0x80000001;
  EXPECT_EQ(decode_pointer(attributes, v62).grain, coherence::coarse);
  attributes.allocation_flags = 0x1;
  EXPECT_EQ(decode_pointer(attributes, v62).grain, coherence::unknown);
}

TEST(hip_flags, ask_for_the_grain_outright) {
  // Portable alone would give coarse-grained memory.
  EXPECT_EQ(pinned_flags({}), 0x40000000U | 0x2U | 0x1U);
  EXPECT_EQ(pinned_flags({.grain = coherence::coarse}), 0x80000000U | 0x1U);
  EXPECT_EQ(pinned_flags({.grain = coherence::unknown,
                          .caching = host_caching::write_combined,
                          .mapping = host_mapping::unmapped,
                          .reach = host_reach::one_device,
                          .numa_node = 1}),
            0x40000000U | 0x4U | 0x20000000U);
}

TEST(hip_flags, of_events_and_registrations) {
  EXPECT_EQ(event_flags({}), 0x2U | 0x80000000U);
  EXPECT_EQ(event_flags({.timing = event_timing::enabled,
                         .wait = event_wait::block,
                         .release = event_release::standard}),
            0x1U);
  EXPECT_EQ(register_flags({}), 0x3U);
  // Read-only has another meaning in some versions.
  EXPECT_EQ(register_flags({.access = host_access::read_only}), 0x3U);
}

TEST(hip_advice, has_amds_own_two) {
  EXPECT_EQ(advice_value(advice::set_read_mostly), 1);
  EXPECT_EQ(advice_value(advice::unset_accessed_by), 6);
  EXPECT_EQ(advice_value(advice::set_coarse_grain), 100);
  EXPECT_EQ(advice_value(advice::unset_coarse_grain), 101);
}

}  // namespace
}  // namespace berth::runtime::hip
