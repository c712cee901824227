// SPDX-License-Identifier: Apache-2.0
// What keeps a program from being recorded, told from its file.
#include "interpose/program_check.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace berth::interpose {
namespace {

namespace fs = std::filesystem;

// The headers of a program of this machine.
struct program_file {
  Elf64_Ehdr header{};
  Elf64_Phdr loader_part{};
  std::string loader;

  explicit program_file(std::string loader_path) : loader(std::move(loader_path)) {
    std::ifstream own("/proc/self/exe", std::ios::binary);
    own.read(reinterpret_cast<char*>(&header), sizeof(header));
    header.e_phoff = sizeof(header);
    header.e_phnum = loader.empty() ? 0 : 1;
    loader_part.p_type = PT_INTERP;
    loader_part.p_offset = sizeof(header) + sizeof(loader_part);
    loader_part.p_filesz = loader.size() + 1;
  }
};

class program_check : public testing::Test {
protected:
  program_check() {
    std::string name = (fs::temp_directory_path() / "berth-check-XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~program_check() override { fs::remove_all(folder); }

  [[nodiscard]] std::string write(const std::string& name, const std::string& bytes) const {
    const auto path = folder / name;
    std::ofstream(path, std::ios::binary) << bytes;
    fs::permissions(path, fs::perms::owner_all | fs::perms::others_all);
    return path.string();
  }
  [[nodiscard]] std::string write(const std::string& name, const program_file& file) const {
    std::string bytes(sizeof(file.header) + sizeof(file.loader_part), '\0');
    std::memcpy(bytes.data(), &file.header, sizeof(file.header));
    std::memcpy(bytes.data() + sizeof(file.header), &file.loader_part, sizeof(file.loader_part));
    return write(name, bytes + file.loader + '\0');
  }
  static std::optional<obstacle_kind> kind_of(const std::string& path) {
    const auto checked = check_program(path);
    EXPECT_TRUE(checked) << path << ": " << (checked ? "" : checked.error().to_string());
    return checked && checked->obstacle ? std::optional(checked->obstacle->kind) : std::nullopt;
  }

  fs::path folder;
};

TEST_F(program_check, finds_nothing_against_a_usual_program) {
  EXPECT_EQ(kind_of("/proc/self/exe"), std::nullopt);
  EXPECT_EQ(kind_of("sh"), std::nullopt);
  EXPECT_EQ(kind_of(write("script", "#!/bin/sh\n")), std::nullopt);
  EXPECT_EQ(kind_of(write("no_line", "true\n")), std::nullopt);
}

TEST_F(program_check, tells_programs_into_which_nothing_can_be_preloaded) {
  EXPECT_EQ(kind_of(write("static", program_file(""))), obstacle_kind::static_program);
  const auto musl = write("ld-musl-x86_64.so.1", "");
  EXPECT_EQ(kind_of(write("musl", program_file(musl))), obstacle_kind::other_c_library);
  program_file other(write("ld.so", ""));
  other.header.e_machine = EM_S390;
  EXPECT_EQ(kind_of(write("other", other)), obstacle_kind::other_architecture);
  program_file narrow(write("ld.so", ""));
  narrow.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(kind_of(write("narrow", narrow)), obstacle_kind::other_architecture);
}

TEST_F(program_check, looks_at_the_interpreter_of_a_script) {
  const auto interpreter = write("static", program_file(""));
  const auto script = write("script", "#!" + interpreter + " -x\n");
  const auto through_env = write("env_script", "#!/usr/bin/env -S A=1 " + interpreter + " -u\n");
  for (const auto& path : {script, through_env}) {
    const auto checked = check_program(path);
    ASSERT_TRUE(checked) << checked.error().to_string();
    EXPECT_EQ(checked->executable, interpreter);
    ASSERT_TRUE(checked->obstacle);
    EXPECT_TRUE(checked->obstacle->spares_children());
  }
  const auto loop = (folder / "loop").string();
  EXPECT_FALSE(check_program(write("loop", "#!" + loop + "\n")));
}

TEST_F(program_check, says_that_a_loader_is_missing) {
  const auto checked = check_program(write("foreign", program_file("/no/such/ld.so")));
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message().find("/no/such/ld.so"), std::string::npos);
}

TEST_F(program_check, takes_damaged_programs_as_they_are) {
  program_file outside(write("ld.so", ""));
  outside.loader_part.p_offset = 1ULL << 60;
  EXPECT_EQ(kind_of(write("outside", outside)), obstacle_kind::static_program);
  program_file far(write("ld.so", ""));
  far.header.e_phoff = ~0ULL - 8;
  EXPECT_EQ(kind_of(write("far", far)), obstacle_kind::static_program);
  EXPECT_EQ(kind_of(write("short", std::string(ELFMAG, SELFMAG))),
            obstacle_kind::other_architecture);
}

TEST_F(program_check, tells_programs_with_the_rights_of_others) {
  struct statvfs about {};
  const auto path = write("setuid", "#!/bin/sh\n");
  const auto program = write("program", program_file(write("ld.so", "")));
  ASSERT_EQ(::statvfs(program.c_str(), &about), 0);
  if (::getuid() != 0 || (about.f_flag & ST_NOSUID) != 0) {
    GTEST_SKIP() << "only root can make such a file, where the file system allows them";
  }
  ASSERT_EQ(::chown(program.c_str(), 1, 1), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  EXPECT_EQ(kind_of(program), obstacle_kind::other_rights);
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  EXPECT_EQ(kind_of(program), obstacle_kind::other_rights);
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  EXPECT_EQ(kind_of(program), std::nullopt);
  // The system ignores these bits of scripts.
  ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
  ASSERT_EQ(::chmod(path.c_str(), 04755), 0);
  EXPECT_EQ(kind_of(path), std::nullopt);
}

}  // namespace
}  // namespace berth::interpose
