// SPDX-License-Identifier: Apache-2.0
// Names of addresses: of this very program, whose functions and lines are known.
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <link.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/import/symbols.hpp"

// Where a call of this function returns to: the line behind the call is the test's.
[[gnu::noinline]] std::uint64_t symbols_test_return_address() {
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
}

namespace berth::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

struct own_module {
  trace::mapped_file file;
  bool found = false;
};

// As a recorder does: from the program headers of the running process.
int take_own(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& own = *static_cast<own_module*>(data);
  const auto wanted = reinterpret_cast<std::uint64_t>(&symbols_test_return_address);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  bool is_own = false;
  for (const auto& header : headers) {
    const auto begin = info->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && wanted >= begin && wanted < begin + header.p_memsz) {
      own.file.begin = begin;
      own.file.offset = header.p_offset;
      is_own = true;
    }
  }
  if (!is_own) {
    return 0;
  }
  for (const auto& header : headers) {
    if (header.p_type != PT_NOTE) {
      continue;
    }
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const auto* const end = at + header.p_memsz;
    while (at < end) {
      const auto* const note = reinterpret_cast<const ElfW(Nhdr)*>(at);
      const auto* const id = at + sizeof *note + (note->n_namesz + 3) / 4 * 4;
      if (note->n_type == NT_GNU_BUILD_ID) {
        for (unsigned index = 0; index < note->n_descsz; ++index) {
          own.file.build_id += fmt::format("{:02x}", static_cast<unsigned char>(id[index]));
        }
      }
      at = id + (note->n_descsz + 3) / 4 * 4;
    }
  }
  own.found = true;
  return 1;
}

trace::mapped_file own_file() {
  own_module own;
  dl_iterate_phdr(take_own, &own);
  own.file.path = std::filesystem::read_symlink("/proc/self/exe").string();
  EXPECT_TRUE(own.found);
  return own.file;
}

TEST(symbols, a_place_of_this_program_has_its_function_and_line) {
  trace::symbols known;
  const auto line = __LINE__ + 1;
  const auto address = symbols_test_return_address();
  EXPECT_THAT(known.name_of(own_file(), address),
              HasSubstr(fmt::format("TestBody (symbols_test.cpp:{})", line)));
}

TEST(symbols, another_build_gives_no_names) {
  trace::symbols known;
  auto file = own_file();
  file.build_id = "0123456789";
  const auto name = fmt::format("{}+{:#x}", std::filesystem::path(file.path).filename().string(),
                                file.offset + 16);
  EXPECT_EQ(known.name_of(file, file.begin + 16), name);
}

TEST(symbols, a_file_that_is_not_there_or_no_file_gives_an_offset) {
  trace::symbols known;
  for (const auto* path : {"/no/such/libfoo.so", "libfoo.so", "/dev/zero", "/", "[vdso]", ""}) {
    const auto name = known.name_of({0x1000, 0x20, path, ""}, 0x1234);
    EXPECT_THAT(name, MatchesRegex(".*\\+0x254")) << path;
  }
  EXPECT_EQ(known.name_of({0x1000, 0x20, "/no/such/libfoo.so", ""}, 0x1234), "libfoo.so+0x254");
}

TEST(symbols, a_file_that_is_no_program_gives_an_offset) {
  trace::symbols known;
  EXPECT_EQ(known.name_of({0, 0, std::string(BERTH_SOURCE_DIR) + "/LICENSE", ""}, 64),
            "LICENSE+0x40");
}

TEST(symbols, names_are_readable_and_without_parameters) {
  EXPECT_EQ(trace::demangled("_ZN5berth4copyEPvPKvm"), "berth::copy");
  EXPECT_EQ(trace::demangled("_ZNK5berth6buffer4sizeEv"), "berth::buffer::size");
  EXPECT_EQ(trace::demangled("_ZN12_GLOBAL__N_16uploadEPFviE"), "(anonymous namespace)::upload");
  EXPECT_EQ(trace::demangled("main"), "main");
  EXPECT_EQ(trace::demangled("_Z"), "_Z");
  EXPECT_EQ(trace::demangled(""), "");
}

}  // namespace
}  // namespace berth::test
