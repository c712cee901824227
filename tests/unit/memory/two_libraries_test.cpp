// SPDX-License-Identifier: Apache-2.0
// Two shared libraries in one process, each with a context of its own, do not see each other.
#include <dlfcn.h>

#include <thread>

#include <gtest/gtest.h>

namespace {

struct guest {
  explicit guest(const char* path)
      : library(::dlopen(path, RTLD_NOW | RTLD_LOCAL)),
        allocate(find<void*(unsigned long)>("guest_allocate")),
        free(find<int(void*)>("guest_free")),
        used(find<unsigned long()>("guest_used")),
        end(find<void()>("guest_end")) {}

  template <typename Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(library, name));  // NOLINT: how dlsym is used
  }

  void* library;
  void* (*allocate)(unsigned long);
  int (*free)(void*);
  unsigned long (*used)();
  void (*end)();
};

TEST(TwoLibraries, DoNotSeeEachOther) {
  const guest one(BERTH_GUEST_ONE);
  const guest other(BERTH_GUEST_TWO);
  ASSERT_NE(one.library, nullptr) << ::dlerror();
  ASSERT_NE(other.library, nullptr) << ::dlerror();
  ASSERT_NE(one.library, other.library);
  void* const mine = one.allocate(4096);
  EXPECT_EQ(other.used(), 0U);
  void* const theirs = other.allocate(4096);
  EXPECT_EQ(other.free(mine), 0);
  EXPECT_EQ(one.free(theirs), 0);
  std::thread([&] { EXPECT_EQ(one.free(mine), 1); }).join();
  EXPECT_EQ(other.free(theirs), 1);
  one.end();
  EXPECT_GT(other.used(), 0U);
  other.end();
}

}  // namespace
