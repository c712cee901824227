// SPDX-License-Identifier: Apache-2.0
// What libberth_preload.so needs and shows: it goes into programs of any kind.
#include <elf.h>
#include <gnu/libc-version.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interpose/capture/calls.hpp"
#include "support/scratch.hpp"

namespace berth::test {
namespace {

// The parts of an ELF file of this machine that tell how it is linked.
class elf_file {
public:
  explicit elf_file(const std::string& path) : bytes_(content_of(path)) {
    const auto header = at<Elf64_Ehdr>(0);
    for (std::size_t index = 0; index < header.e_shnum; ++index) {
      sections_.push_back(at<Elf64_Shdr>(header.e_shoff + index * header.e_shentsize));
    }
  }

  [[nodiscard]] std::set<std::string> needed() const {
    std::set<std::string> found;
    for (const auto& section : of_type(SHT_DYNAMIC)) {
      for (std::size_t offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Dyn)) {
        const auto entry = at<Elf64_Dyn>(section.sh_offset + offset);
        if (entry.d_tag == DT_NEEDED) {
          found.insert(text(section.sh_link, entry.d_un.d_val));
        }
      }
    }
    return found;
  }
  [[nodiscard]] std::set<std::string> needed_versions() const {
    std::set<std::string> found;
    for (const auto& section : of_type(SHT_GNU_verneed)) {
      auto place = section.sh_offset;
      for (std::size_t left = section.sh_info; left > 0; --left) {
        const auto need = at<Elf64_Verneed>(place);
        auto of_need = place + need.vn_aux;
        for (int versions = need.vn_cnt; versions > 0; --versions) {
          const auto version = at<Elf64_Vernaux>(of_need);
          found.insert(text(section.sh_link, version.vna_name));
          of_need += version.vna_next;
        }
        place += need.vn_next;
      }
    }
    return found;
  }
  [[nodiscard]] std::set<std::string> shown() const {
    std::set<std::string> found;
    for (const auto& section : of_type(SHT_DYNSYM)) {
      for (std::size_t offset = 0; offset < section.sh_size; offset += sizeof(Elf64_Sym)) {
        const auto symbol = at<Elf64_Sym>(section.sh_offset + offset);
        if (symbol.st_shndx != SHN_UNDEF) {
          found.insert(text(section.sh_link, symbol.st_name));
        }
      }
    }
    return found;
  }
  [[nodiscard]] bool has_version_nodes() const { return !of_type(SHT_GNU_verdef).empty(); }

private:
  template <class T>
  [[nodiscard]] T at(std::size_t offset) const {
    T value{};
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] std::vector<Elf64_Shdr> of_type(unsigned type) const {
    std::vector<Elf64_Shdr> found;
    for (const auto& section : sections_) {
      if (section.sh_type == type) {
        found.push_back(section);
      }
    }
    return found;
  }
  [[nodiscard]] std::string text(std::size_t section, std::size_t offset) const {
    return bytes_.data() + sections_.at(section).sh_offset + offset;
  }

  std::string bytes_;
  std::vector<Elf64_Shdr> sections_;
};

TEST(PreloadLibrary, NeedsTheCLibraryAndTheLoaderOnly) {
  for (const auto& name : elf_file(BERTH_PRELOAD).needed()) {
    EXPECT_TRUE(name.starts_with("libc.so.") || name.starts_with("ld-linux")) << name;
  }
}

TEST(PreloadLibrary, NeedsNoNewerCLibraryThan235) {
  // Newer headers than those of Debian 12 bind plain calls, strtol for one, to newer versions.
  if (std::string_view(::gnu_get_libc_version()) > "2.36") {
    GTEST_SKIP() << "built with the headers of glibc " << ::gnu_get_libc_version();
  }
  for (const auto& version : elf_file(BERTH_PRELOAD).needed_versions()) {
    int major = 0;
    int minor = 0;
    if (std::sscanf(version.c_str(), "GLIBC_%d.%d", &major, &minor) == 2) {
      EXPECT_LE(major * 100 + minor, 235) << version;
    } else {
      ADD_FAILURE() << version;
    }
  }
}

TEST(PreloadLibrary, ShowsItsCallsAndNothingElse) {
  std::set<std::string> expected{"dlsym",          "_exit",
                                 "_Exit",          "cuptiActivityRegisterCallbacks",
                                 "cuptiSubscribe", "cuptiSubscribe_v2"};
  for (std::size_t index = 1; index < interpose::call_count; ++index) {
    expected.emplace(interpose::call_rows[index].name);
  }
  const auto shown = elf_file(BERTH_PRELOAD).shown();
  for (const auto& name : expected) {
    EXPECT_TRUE(shown.contains(name)) << name << " is hidden";
  }
  for (const auto& name : shown) {
    EXPECT_TRUE(expected.contains(name)) << name << " is shown";
  }
}

// A named version would not be found by programs that are linked against versioned symbols, as
// those of libamdhip64 are.
TEST(PreloadLibrary, HasNoVersionsOfItsOwn) {
  EXPECT_FALSE(elf_file(BERTH_PRELOAD).has_version_nodes());
  EXPECT_TRUE(
      elf_file(std::string(INTERPOSE_PROGRAMS) + "/amdhip64/libamdhip64.so.5").has_version_nodes())
      << "the stand-in must have them";
}

}  // namespace
}  // namespace berth::test
