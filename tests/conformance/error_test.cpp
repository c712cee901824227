// SPDX-License-Identifier: Apache-2.0
// Errors: what they say, that they do nothing, and that the driver works on after each.
#include <functional>
#include <string>

#include "conformance/fixture.hpp"

namespace berth::conformance {
namespace {

class error_suite : public suite {
protected:
  struct failure {
    const char* what;
    std::function<std::optional<error>()> call;
  };

  template <typename T>
  static std::optional<error> error_of(const result<T>& answer) {
    return answer ? std::nullopt : std::optional(answer.error());
  }

  // Calls that fail on every driver, of every part of the contract.
  std::vector<failure> failures() {
    auto* device = device_memory(4096);
    auto* heap = pageable_memory(4096);
    const auto none = device_count();
    const auto mute = event();
    std::vector<failure> all{
        {"memory_info", [=, this] { return error_of(gpu().memory_info(none)); }},
        {"set_current_device", [=, this] { return error_of(gpu().set_current_device(none)); }},
        {"synchronize_device", [=, this] { return error_of(gpu().synchronize_device(none)); }},
        {"allocate_device", [=, this] { return error_of(gpu().allocate_device(0, 0)); }},
        {"allocate_device", [=, this] { return error_of(gpu().allocate_device(0, 1024 * tib)); }},
        {"allocate_pinned", [=, this] { return error_of(gpu().allocate_pinned(1024 * tib)); }},
        {"free_device", [=, this] { return error_of(gpu().free_device(heap)); }},
        {"free_pinned", [=, this] { return error_of(gpu().free_pinned(heap)); }},
        {"device_address", [=, this] { return error_of(gpu().device_address(heap)); }},
        {"copy_2d_sync",
         [=, this] {
           return error_of(gpu().copy_2d_sync({device, 1, heap, 1, 2, 2}));
         }},
        {"create_stream", [=, this] { return error_of(gpu().create_stream(none)); }},
        {"create_event", [=, this] { return error_of(gpu().create_event(none)); }},
        {"elapsed", [=, this] { return error_of(gpu().elapsed(mute, mute)); }},
    };
    if (!cannot_register()) {
      all.push_back(
          {"unregister_host", [=, this] { return error_of(gpu().unregister_host(heap)); }});
    }
    if (has(capability::kernels)) {
      all.push_back(
          {"prepare_kernels", [=, this] { return error_of(gpu().prepare_kernels(none)); }});
      all.push_back(
          {"launch", [=, this] {
             return error_of(gpu().launch(runtime::kernel_fill{device + 1, 8, 1}, default_stream));
           }});
    }
    if (has(capability::peer_access)) {
      all.push_back(
          {"can_access_peer", [=, this] { return error_of(gpu().can_access_peer(0, none)); }});
    }
    return all;
  }
};
BERTH_CONFORMANCE_SUITE(error_suite);

TEST_P(error_suite, the_driver_works_on_after_each) {
  for (const auto& one : failures()) {
    SCOPED_TRACE(one.what);
    EXPECT_TRUE(one.call().has_value()) << "it succeeded";
    expect_usable();
  }
}

TEST_P(error_suite, the_same_call_fails_in_the_same_way_again) {
  for (const auto& one : failures()) {
    SCOPED_TRACE(one.what);
    const auto first = one.call();
    const auto second = one.call();
    ASSERT_TRUE(first.has_value() && second.has_value());
    EXPECT_EQ(first->code(), second->code());
  }
}

TEST_P(error_suite, each_says_what_and_leaves_the_rest_usable) {
  for (const auto& one : failures()) {
    SCOPED_TRACE(one.what);
    const auto why = one.call();
    ASSERT_TRUE(why.has_value());
    EXPECT_FALSE(why->message().empty());
    EXPECT_EQ(why->scope(), error_scope::call) << why->to_string();
  }
}

TEST_P(error_suite, a_device_out_of_range_is_named) {
  const auto index = device_count() + 41;
  const auto answer = gpu().memory_info(index);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().to_string().find(std::to_string(index)), std::string::npos)
      << answer.error().to_string();
}

TEST_P(error_suite, the_runtimes_own_name_and_number_are_told) {
  const auto answer = gpu().allocate_device(0, 1024 * tib);
  ASSERT_FALSE(answer);
  const auto text = answer.error().to_string();
  if (is(runtime::runtime_kind::cuda)) {
    EXPECT_NE(text.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << text;
  } else if (is(runtime::runtime_kind::hip)) {
    EXPECT_NE(text.find("hipErrorOutOfMemory"), std::string::npos) << text;
  } else {
    GTEST_SKIP() << "the simulator has no names of its own";
  }
}

TEST_P(error_suite, failed_calls_do_not_disturb_queued_work) {
  BERTH_NEEDS(lacks(capability::kernels));
  constexpr bytes_t size = 1 * mib;
  auto* device = device_memory(size);
  auto* back = pinned_memory(size);
  const auto work = stream();
  const auto calls = failures();
  delay(work, 5ms);
  must(gpu().launch(runtime::kernel_fill{device, size, 1}, work));
  for (const auto& one : calls) {
    EXPECT_TRUE(one.call().has_value()) << one.what;
  }
  must(gpu().copy_async(back, device, size, work));
  EXPECT_THAT(gpu().synchronize_stream(work), succeeds());
  EXPECT_EQ(runtime::count_mismatches(back, size, 1), 0U);
}

}  // namespace
}  // namespace berth::conformance
