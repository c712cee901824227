// SPDX-License-Identifier: Apache-2.0
// A machine taken elsewhere: what a bundle gives back, what it must not hold, and bundles that lie.
#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/synthetic_machine.hpp"
#include "topology/bundle.hpp"

namespace berth::topology {
namespace {

namespace fs = std::filesystem;
using test::machine_folder;
using test::machine_writer;
using test::synthetic_machine;

// All that a survey says, as text.
std::string print(const machine::survey& seen) {
  std::string text;
  for (const auto& claim : seen.claims) {
    text += fmt::format("{} = {} [{}]\n", claim.field, claim.value, claim.source);
  }
  for (const auto& one : seen.contradictions) {
    text += fmt::format("contradiction {} {}\n", one.field, one.claims.size());
  }
  for (const auto& problem : seen.problems) {
    text += fmt::format("problem {}: {}\n", problem.source, problem.what);
  }
  for (const auto& gpu : seen.machine.gpus) {
    text += fmt::format("gpu {} {} path {}\n", gpu.index, gpu.pci_address, gpu.pci_path.size());
  }
  return text + fmt::format("{} nodes, {} links\n", seen.machine.numa_nodes.size(),
                            seen.machine.links.size());
}

std::string through_a_bundle(const live_options& options, const machine_folder& scratch) {
  const auto file = scratch.root() / "bundle.tar.zst";
  gather(options, file).value();
  const auto opened = open_bundle(file).value();
  const auto seen = read_machine({.root = opened.root()});
  EXPECT_EQ(seen.kind, machine::survey_kind::captured);
  return print(seen);
}

synthetic_machine two_gpus() {
  return {.numa = {{.cpus = "0-7"}, {.cpus = "8-15"}},
          .gpus = {{.address = "0000:03:00.0",
                    .bridges = {{.address = "0000:00:01.1"}},
                    .hive = 0xabcdef0123456789},
                   {.address = "0000:83:00.0", .numa = 1, .hive = 0xabcdef0123456789}},
          .xgmi = {{.from = 0, .to = 1}}};
}

TEST(Bundle, GivesTheSameSurveyElsewhere) {
  const machine_folder folder;
  const machine_folder scratch;
  machine_writer(folder, two_gpus()).write();
  folder.write("/berth/environment", "HSA_XNACK=1\n");
  folder.write("/berth/access", "/dev/kfd no\n");
  const auto before = print(read_machine({.root = folder.root()}));
  EXPECT_EQ(through_a_bundle({.root = folder.root()}, scratch), before);
}

TEST(Bundle, GivesTheSameProblemsElsewhere) {
  const machine_folder folder;
  const machine_folder scratch;
  machine_writer(folder, two_gpus()).write();
  folder.link("/sys/bus/pci/devices/0000:99:00.0", "/sys/devices/nowhere");
  folder.remove("/proc/version");
  folder.make_folder("/proc/version");
  const auto before = print(read_machine({.root = folder.root()}));
  EXPECT_NE(before.find("problem"), std::string::npos);
  EXPECT_EQ(through_a_bundle({.root = folder.root()}, scratch), before);
}

TEST(Bundle, TakesThisMachineElsewhere) {
  const machine_folder scratch;
  const auto before = print(read_machine());
  EXPECT_EQ(through_a_bundle({}, scratch), before);
}

TEST(Bundle, HoldsNoSerialNumbersUsersOrHosts) {
  const machine_folder folder;
  const machine_folder scratch;
  machine_writer(folder, two_gpus()).write();
  std::string config(4096, '\0');
  config[0x100] = 3;  // a serial number
  config.replace(0x104, 8, "SERIALNO");
  folder.write("/sys/devices/pci0000:00/0000:83:00.0/config", config);
  const auto file = scratch.root() / "bundle.tar.zst";
  gather({.root = folder.root()}, file).value();
  const auto opened = open_bundle(file).value();
  std::string all;
  for (const auto& entry : fs::recursive_directory_iterator(opened.root())) {
    if (entry.is_regular_file()) {
      std::ifstream from(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(from), {});
    }
  }
  EXPECT_NE(all.find("gfx_target_version"), std::string::npos);
  for (const auto* const secret :
       {"secret-host", "builder", "UUID=1234", "unique_id", "16045690984503098046", "deadbeef",
        "SERIALNO", "12379813738877118345", "4711"}) {
    EXPECT_EQ(all.find(secret), std::string::npos) << secret;
  }
}

TEST(Bundle, SaysWhereItCannotBeWritten) {
  const auto written = gather({.root = "/nonexistent"}, "/nonexistent/bundle.tar.zst");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), errc::file_unwritable);
}

// One entry besides the mark.
struct entry {
  std::string path;
  std::string text = {};
  std::string link = {};
  unsigned type = AE_IFREG;
  bool has_mark = true;
};

void put(archive* to, const entry& what) {
  archive_entry* const one = ::archive_entry_new();
  ::archive_entry_set_pathname(one, what.path.c_str());
  ::archive_entry_set_filetype(one, what.type);
  ::archive_entry_set_perm(one, 0644);
  ::archive_entry_set_size(one, static_cast<la_int64_t>(what.text.size()));
  if (what.type == AE_IFLNK) {
    ::archive_entry_set_symlink(one, what.link.c_str());
  }
  ::archive_write_header(to, one);
  ::archive_write_data(to, what.text.data(), what.text.size());
  ::archive_entry_free(one);
}

errc code_of(const std::vector<entry>& entries) {
  const machine_folder scratch;
  const auto file = scratch.root() / "bundle.tar.zst";
  archive* const to = ::archive_write_new();
  ::archive_write_add_filter_zstd(to);
  ::archive_write_set_format_pax_restricted(to);
  ::archive_write_open_filename(to, file.c_str());
  if (entries.front().has_mark) {
    put(to, {.path = "berth/bundle", .text = "berth.bundle/1\n"});
  }
  for (const auto& one : entries) {
    put(to, one);
  }
  ::archive_write_close(to);
  ::archive_write_free(to);
  const auto opened = open_bundle(file);
  return opened ? errc::internal : opened.error().code();
}

TEST(OpenBundle, RefusesPathsThatLeadOut) {
  EXPECT_EQ(code_of({{.path = "../outside", .text = "x"}}), errc::input_malformed);
  EXPECT_EQ(code_of({{.path = "sys/../../outside", .text = "x"}}), errc::input_malformed);
  EXPECT_EQ(code_of({{.path = "/etc/outside", .text = "x"}}), errc::input_malformed);
}

TEST(OpenBundle, RefusesLinksThatLeadOut) {
  EXPECT_EQ(code_of({{.path = "sys/a", .link = "../../..", .type = AE_IFLNK}}),
            errc::input_malformed);
  EXPECT_EQ(code_of({{.path = "sys/a", .link = "/sys/../../b", .type = AE_IFLNK}}),
            errc::input_malformed);
  EXPECT_EQ(code_of({{.path = "sys/a", .link = "/etc", .type = AE_IFLNK},
                     {.path = "sys/a/b", .link = "/sys", .type = AE_IFLNK}}),
            errc::input_malformed);
}

TEST(OpenBundle, RefusesWhatIsNeitherFileNorFolder) {
  EXPECT_EQ(code_of({{.path = "dev/pipe", .type = AE_IFIFO}}), errc::input_malformed);
}

TEST(OpenBundle, RefusesSizesThatNoMachineHas) {
  EXPECT_EQ(code_of({{.path = "proc/version", .text = std::string((1U << 20U) + 1, 'x')}}),
            errc::input_out_of_range);
}

TEST(OpenBundle, RefusesAnArchiveOfSomethingElse) {
  EXPECT_EQ(code_of({{.path = "readme", .text = "x", .has_mark = false}}),
            errc::input_unknown_format);
}

TEST(OpenBundle, RefusesWhatIsNoArchive) {
  const machine_folder scratch;
  scratch.write("/text", "not an archive");
  const auto opened = open_bundle(scratch.root() / "text");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), errc::input_unknown_format);
  EXPECT_EQ(open_bundle(scratch.root() / "nothing").error().code(), errc::file_unreadable);
}

TEST(OpenBundle, RefusesACutBundle) {
  const machine_folder folder;
  const machine_folder scratch;
  machine_writer(folder, two_gpus()).write();
  const auto file = scratch.root() / "bundle.tar.zst";
  gather({.root = folder.root()}, file).value();
  fs::resize_file(file, fs::file_size(file) / 2);
  EXPECT_FALSE(open_bundle(file));
}

}  // namespace
}  // namespace berth::topology
