// SPDX-License-Identifier: Apache-2.0
#include "runtime/loader.hpp"

#include <array>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/runtime/fake_linker.hpp"

namespace berth::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::fake_library;
using testing::fake_system;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::array wanted{
    symbol{"must_a", symbol_need::required, 0, "a", "()", "()"},
    symbol{"may_b", symbol_need::optional, 0, "b", "()", "()"},
    symbol{"must_c", symbol_need::required, 0, "c", "()", "()"},
};

// Something to point at for each symbol.
std::array<int, 3> places{};

fake_library complete() {
  fake_library made;
  made.symbols = {{"must_a", &places[0]}, {"may_b", &places[1]}, {"must_c", &places[2]}};
  return made;
}

library_request gpu_request() {
  library_request request;
  request.what = "GPU runtime";
  request.override_variable = "GPU_LIBRARY";
  request.stem = "libgpu.so";
  request.newest = 9;
  request.oldest = 5;
  request.directories = {"/opt/gpu/lib"};
  return request;
}

class loading : public ::testing::Test {
protected:
  result<library> load() {
    return load_library(
        gpu_request(), wanted,
        [this](std::size_t index, void* pointer) { stored.at(index) = pointer; }, system.make());
  }

  fake_system system;
  std::array<void*, 3> stored{};
};

TEST_F(loading, takes_the_newest_of_several) {
  system.libraries = {
      {"libgpu.so.6", complete()}, {"libgpu.so.8", complete()}, {"libgpu.so", complete()}};
  const auto found = load();
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_EQ(found->path, "/usr/lib/libgpu.so.8");
  EXPECT_THAT(found->tried, ElementsAre("libgpu.so.9: not found"));
  EXPECT_THAT(stored, ElementsAre(&places[0], &places[1], &places[2]));
}

TEST_F(loading, prefers_what_is_already_in_the_process_to_anything_newer) {
  system.libraries = {{"libgpu.so.6", complete()}, {"libgpu.so.8", complete()}};
  system.libraries["libgpu.so.6"].mapped = true;
  const auto found = load();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/usr/lib/libgpu.so.6");
  EXPECT_TRUE(system.opened.empty());
}

TEST_F(loading, looks_into_the_directories_after_the_usual_places) {
  system.libraries = {{"/opt/gpu/lib/libgpu.so.9", complete()}};
  const auto found = load();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/opt/gpu/lib/libgpu.so.9");
}

TEST_F(loading, takes_the_unversioned_name_last) {
  system.libraries = {{"libgpu.so", complete()}};
  const auto found = load();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/usr/lib/libgpu.so");
  EXPECT_EQ(system.opened.size(), 5U + 5U + 1U);
}

TEST_F(loading, an_override_is_the_only_one_tried) {
  system.libraries = {{"libgpu.so.8", complete()}};
  system.environment = {{"GPU_LIBRARY", "/home/me/libgpu.so"}};
  const auto found = load();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), errc::gpu_no_runtime);
  EXPECT_THAT(system.opened, ElementsAre("/home/me/libgpu.so"));
  EXPECT_THAT(found.error().to_string(), HasSubstr("/home/me/libgpu.so: not found"));
}

TEST_F(loading, a_missing_optional_symbol_is_listed_and_null) {
  system.libraries = {{"libgpu.so.8", complete()}};
  system.libraries["libgpu.so.8"].symbols.erase("may_b");
  const auto found = load();
  ASSERT_TRUE(found);
  EXPECT_THAT(found->missing, ElementsAre("may_b"));
  EXPECT_THAT(stored, ElementsAre(&places[0], nullptr, &places[2]));
}

TEST_F(loading, goes_on_to_an_older_one_when_required_symbols_are_missing) {
  system.libraries = {{"libgpu.so.8", complete()}, {"libgpu.so.7", complete()}};
  system.libraries["libgpu.so.8"].symbols.erase("must_c");
  const auto found = load();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, "/usr/lib/libgpu.so.7");
  EXPECT_THAT(found->tried,
              ElementsAre("libgpu.so.9: not found",
                          "/usr/lib/libgpu.so.8: not a GPU runtime that berth can use, it lacks "
                          "must_c"));
}

TEST_F(loading, a_library_of_the_right_name_without_the_symbols_is_an_error_of_its_own) {
  system.libraries = {{"libgpu.so.8", fake_library{}}};
  const auto found = load();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), errc::gpu_runtime_unusable);
  EXPECT_THAT(found.error().message(),
              AllOf(HasSubstr("it lacks must_a, must_c"), Not(HasSubstr("may_b"))));
}

TEST_F(loading, a_library_whose_own_dependency_is_missing_is_not_called_absent) {
  system.libraries = {{"libgpu.so.8", complete()}};
  system.libraries["libgpu.so.8"].cannot_load =
      "libother.so.2: cannot open shared object file: No such file or directory";
  const auto found = load();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), errc::gpu_runtime_unusable);
  EXPECT_THAT(found.error().message(), HasSubstr("libgpu.so.8: libother.so.2: cannot open"));
}

TEST_F(loading, none_at_all_lists_every_name_and_the_variable) {
  const auto found = load();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code(), errc::gpu_no_runtime);
  EXPECT_THAT(found.error().to_string(),
              HasSubstr("libgpu.so.9 to libgpu.so.5: not found; "
                        "/opt/gpu/lib/libgpu.so.9 to /opt/gpu/lib/libgpu.so.5: not found; "
                        "libgpu.so: not found; /opt/gpu/lib/libgpu.so: not found"));
  EXPECT_THAT(found.error().hint(), HasSubstr("GPU_LIBRARY"));
  EXPECT_EQ(system.opened.size(), 12U);
}

TEST(system_linker, finds_a_symbol_of_a_real_library_and_its_path) {
  const linker& real = system_linker();
  void* library = real.open("libm.so.6");
  ASSERT_NE(library, nullptr) << real.last_error();
  EXPECT_NE(real.find_symbol(library, "cos"), nullptr);
  EXPECT_EQ(real.find_symbol(library, "no_such_symbol_in_libm"), nullptr);
  EXPECT_THAT(real.path_of(library), HasSubstr("libm.so.6"));
  EXPECT_EQ(real.find_loaded("libm.so.6"), library);
  EXPECT_EQ(real.find_loaded("libnone_of_this_name.so"), nullptr);
  EXPECT_EQ(real.open("libnone_of_this_name.so"), nullptr);
  EXPECT_THAT(real.last_error(), HasSubstr("libnone_of_this_name.so: cannot open shared object "
                                           "file: No such file or directory"));
}

}  // namespace
}  // namespace berth::runtime
