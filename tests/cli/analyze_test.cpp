// SPDX-License-Identifier: Apache-2.0
// `berth analyze` and the command line around it, as a user runs them.
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/analysed_file.hpp"
#include "support/command.hpp"

namespace berth::test {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const std::string folder = bundled_traces().string();
const std::string with_fault = folder + "/torch_pageable_inference.json.gz";
const std::string without_fault = folder + "/torch_overlapped.json.gz";
const std::string with_advice = folder + "/torch_pinned_inference.json.gz";

// A trace whose second half is missing.
std::string cut_trace(const scratch_folder& scratch) {
  const auto whole = read_file(folder + "/torch_pingpong.json.gz");
  const auto path = scratch.file("cut.json.gz");
  write_file(path, std::string_view(whole).substr(0, whole.size() / 2));
  return path;
}

TEST(command_line, help_says_what_there_is_and_how_it_ends) {
  const auto shown = run_berth({"--help"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("analyze"));
  EXPECT_THAT(shown.out, HasSubstr("version"));
  EXPECT_THAT(shown.out, HasSubstr("Exit status: 0 done, 1 a fault was found"));
  EXPECT_THAT(shown.err, IsEmpty());
}

TEST(command_line, help_of_a_verb_has_its_options_and_an_example) {
  const auto shown = run_berth({"analyze", "--help"});
  EXPECT_EQ(shown.status, 0);
  for (const auto* part : {"--format", "text", "json", "--output", "--check",
                           "Example:", "berth analyze trace.json.gz", "Exit status:"}) {
    EXPECT_THAT(shown.out, HasSubstr(part));
  }
  EXPECT_THAT(shown.out, Not(HasSubstr("->")));
  EXPECT_EQ(run_berth({"version", "--help"}).status, 0);
}

TEST(command_line, wrong_usage_exits_2_with_an_error_and_a_hint) {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"analyse", with_fault},
      {"analyze"},
      {"analyze", "--no-such-option", with_fault},
      {"analyze", "--format", "xml", with_fault},
      {"analyze", "--format"},
      {"--no-such-option"},
      {"version", "superfluous"},
      {"analyze", "-"},
      {"analyze", with_fault, "--output", with_fault},
  };
  for (const auto& arguments : wrong) {
    const auto shown = run_berth(arguments);
    const auto what = testing::PrintToString(arguments);
    EXPECT_EQ(shown.status, 2) << what;
    EXPECT_THAT(shown.out, IsEmpty()) << what;
    EXPECT_THAT(shown.err, StartsWith("error: BTH-1001: ")) << what;
    EXPECT_THAT(shown.err, HasSubstr("\nhint: ")) << what;
  }
}

TEST(command_line, wrong_usage_names_what_is_wrong) {
  EXPECT_THAT(run_berth({"analyse", "x"}).err, HasSubstr("'analyse' is no verb"));
  EXPECT_THAT(run_berth({"analyze", "--bogus", "x"}).err, HasSubstr("--bogus"));
  EXPECT_THAT(run_berth({"analyze", "--format", "xml", "x"}).err, HasSubstr("xml"));
  EXPECT_THAT(run_berth({"analyze"}).err, HasSubstr("FILE"));
  EXPECT_THAT(run_berth({"analyze", "-"}).err, HasSubstr("/dev/stdin"));
}

TEST(analyze, the_verdict_is_on_standard_output_and_nothing_on_standard_error) {
  const auto shown = run_berth({"analyze", with_fault});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("VERDICT   Pageable copies take 117.9 ms, 91 % of kernel time"));
  EXPECT_THAT(shown.err, IsEmpty());
}

TEST(analyze, check_exits_1_for_a_fault_and_only_for_one) {
  EXPECT_EQ(run_berth({"analyze", "--check", with_fault}).status, 1);
  EXPECT_EQ(run_berth({"analyze", "--check", with_advice}).status, 0);
  EXPECT_EQ(run_berth({"analyze", "--check", without_fault}).status, 0);
  EXPECT_EQ(run_berth({"analyze", "--check", without_fault, with_fault}).status, 1);
  EXPECT_EQ(run_berth({"analyze", with_fault}).status, 0);
}

TEST(analyze, json_is_one_object_with_a_trace_for_each_file) {
  const auto shown = run_berth({"analyze", "--format", "json", with_fault, without_fault});
  EXPECT_EQ(shown.status, 0);
  const auto parsed = json::parse(shown.out);
  ASSERT_EQ(parsed["traces"].size(), 2U);
  EXPECT_EQ(parsed["traces"][0]["file"], with_fault);
  EXPECT_EQ(parsed["traces"][0]["severity"], "fault");
  EXPECT_TRUE(parsed["traces"][1]["severity"].is_null());
  EXPECT_EQ(shown.out.back(), '\n');
}

TEST(analyze, several_files_have_a_report_each) {
  const auto shown = run_berth({"analyze", with_fault, without_fault});
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("TRACE     " + with_fault.substr(0, 1)));
  EXPECT_THAT(shown.out, HasSubstr("torch_overlapped"));
  EXPECT_THAT(shown.out, HasSubstr("\n----"));
}

TEST(analyze, one_bad_file_does_not_hide_the_others_and_exits_3) {
  const auto shown = run_berth({"analyze", "--check", with_fault, "/no/such/file.json"});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.out, HasSubstr("VERDICT   Pageable copies"));
  EXPECT_THAT(shown.out, HasSubstr("ERROR"));
  EXPECT_THAT(shown.err, HasSubstr("error: BTH-1101: /no/such/file.json: No such file"));
  const auto as_json = run_berth({"analyze", "--format", "json", "/no/such/file.json", with_fault});
  EXPECT_EQ(as_json.status, 3);
  const auto parsed = json::parse(as_json.out);
  EXPECT_EQ(parsed["traces"][0]["error"]["id"], "BTH-1101");
  EXPECT_EQ(parsed["traces"][1]["severity"], "fault");
}

TEST(analyze, a_cut_file_gives_the_report_of_what_was_whole_and_exits_3) {
  const scratch_folder scratch;
  const auto path = cut_trace(scratch);
  const auto shown = run_berth({"analyze", path});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.out, HasSubstr("\nCUT       the file ends at byte "));
  EXPECT_THAT(shown.out, HasSubstr("are lost. [BTH-1108]"));
  EXPECT_THAT(shown.out, HasSubstr("VERDICT"));
  EXPECT_THAT(shown.err, HasSubstr("BTH-1108"));
  EXPECT_THAT(shown.err, HasSubstr("hint: "));
  const auto parsed = json::parse(run_berth({"analyze", "--format", "json", path}).out);
  EXPECT_GT(parsed["traces"][0]["cut"]["whole_events"], 100);
  EXPECT_TRUE(parsed["traces"][0]["totals"].is_object());
}

TEST(analyze, what_is_no_trace_exits_3_with_an_error_and_no_report) {
  const scratch_folder scratch;
  write_file(scratch.file("empty.json"), "");
  write_file(scratch.file("text.json"), "this is no trace\n");
  write_file(scratch.file("other.json"), "{\"a\": 1}");
  const std::pair<std::string, const char*> cases[] = {
      {scratch.file("empty.json"), "BTH-1103"}, {scratch.file("text.json"), "BTH-1104"},
      {scratch.file("other.json"), "BTH-1104"}, {scratch.file("missing.json"), "BTH-1101"},
      {scratch.file(""), "BTH-1101"},
  };
  for (const auto& [path, id] : cases) {
    const auto shown = run_berth({"analyze", path});
    EXPECT_EQ(shown.status, 3) << path;
    EXPECT_THAT(shown.out, IsEmpty()) << path;
    EXPECT_THAT(shown.err, StartsWith(std::string("error: ") + id + ": ")) << path;
  }
}

TEST(analyze, a_name_with_blanks_and_escapes_is_read_and_shown_without_them) {
  const scratch_folder scratch;
  const auto path = scratch.file("my \x1b[31mtrace 1.json.gz");
  std::filesystem::copy_file(without_fault, path);
  const auto shown = run_berth({"analyze", path, scratch.file("gone\x1b[31m.json")});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.out, HasSubstr("my \\x1b[31mtrace 1.json.gz"));
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(shown.err, HasSubstr("gone\\x1b[31m.json"));
  EXPECT_THAT(shown.err, Not(HasSubstr("\x1b")));
}

TEST(analyze, the_format_is_known_from_the_content_and_not_from_the_name) {
  const scratch_folder scratch;
  std::filesystem::copy_file(without_fault, scratch.file("trace.txt"));
  EXPECT_EQ(run_berth({"analyze", scratch.file("trace.txt")}).status, 0);
}

TEST(analyze, output_writes_a_file_that_equals_standard_output) {
  const scratch_folder scratch;
  for (const auto* format : {"text", "json"}) {
    const auto path = scratch.file(format);
    const auto shown = run_berth({"analyze", "--format", format, "-o", path, with_fault});
    EXPECT_EQ(shown.status, 0);
    EXPECT_THAT(shown.out, IsEmpty());
    EXPECT_EQ(read_file(path), run_berth({"analyze", "--format", format, with_fault}).out);
  }
  EXPECT_THAT(scratch.names(), UnorderedElementsAre("text", "json"));
}

TEST(analyze, output_replaces_a_file_and_keeps_its_permissions) {
  const scratch_folder scratch;
  const auto path = scratch.file("report.txt");
  write_file(path, std::string(100'000, 'x'));
  std::filesystem::permissions(path, std::filesystem::perms(0640));
  EXPECT_EQ(run_berth({"analyze", "--output", path, with_fault}).status, 0);
  EXPECT_THAT(read_file(path), StartsWith("TRACE"));
  EXPECT_THAT(read_file(path), Not(HasSubstr("xxx")));
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0640));
}

TEST(analyze, output_follows_a_link) {
  const scratch_folder scratch;
  write_file(scratch.file("real.txt"), "old");
  std::filesystem::create_symlink("real.txt", scratch.file("link.txt"));
  EXPECT_EQ(run_berth({"analyze", "--output", scratch.file("link.txt"), with_fault}).status, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.file("link.txt")));
  EXPECT_THAT(read_file(scratch.file("real.txt")), StartsWith("TRACE"));
}

TEST(analyze, output_that_cannot_be_written_leaves_nothing_behind) {
  const scratch_folder scratch;
  std::filesystem::create_directory(scratch.file("folder"));
  for (const auto& path : {scratch.file("no/such/folder/report.txt"), scratch.file("folder")}) {
    const auto shown = run_berth({"analyze", "--output", path, with_fault});
    EXPECT_EQ(shown.status, 3) << path;
    EXPECT_THAT(shown.err, StartsWith("error: BTH-1102: " + path)) << path;
    EXPECT_THAT(shown.err, HasSubstr("\nhint: ")) << path;
  }
  EXPECT_THAT(scratch.names(), UnorderedElementsAre("folder"));
}

TEST(analyze, output_of_an_unreadable_file_leaves_an_old_report_alone) {
  const scratch_folder scratch;
  write_file(scratch.file("report.txt"), "old");
  EXPECT_EQ(run_berth({"analyze", "-o", scratch.file("report.txt"), "/no/such/file"}).status, 3);
  EXPECT_EQ(read_file(scratch.file("report.txt")), "old");
}

TEST(analyze, output_to_a_device_writes_to_it_and_does_not_replace_it) {
  EXPECT_EQ(run_berth({"analyze", "--output", "/dev/null", with_fault}).status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const auto shown = run_berth({"analyze", "--output", "/dev/full", with_fault});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.err, HasSubstr("No space left on device"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(analyze, standard_output_that_takes_nothing_is_an_error) {
  for (const auto to : {output_to::closed, output_to::full_device}) {
    const auto shown = run_berth({"analyze", with_fault}, to);
    EXPECT_EQ(shown.status, 3);
    EXPECT_THAT(shown.err, HasSubstr("BTH-1102"));
  }
}

TEST(analyze, colour_is_for_terminals_alone) {
  EXPECT_THAT(run_berth({"analyze", with_fault}).out, Not(HasSubstr("\x1b")));
  const auto shown = run_berth({"analyze", with_fault}, output_to::terminal);
  EXPECT_EQ(shown.status, 0);
  EXPECT_THAT(shown.out, HasSubstr("\x1b[1;31mVERDICT\x1b[0m"));
}

TEST(analyze, no_color_turns_colour_off_unless_it_is_empty) {
  const auto without = run_berth({"analyze", with_fault}, output_to::terminal, {{"NO_COLOR", "1"}});
  EXPECT_THAT(without.out, HasSubstr("VERDICT"));
  EXPECT_THAT(without.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run_berth({"analyze", with_fault}, output_to::terminal, {{"NO_COLOR", ""}}).out,
              HasSubstr("\x1b[1;31m"));
}

TEST(analyze, json_and_files_are_never_coloured) {
  EXPECT_THAT(run_berth({"analyze", "--format", "json", with_fault}, output_to::terminal).out,
              Not(HasSubstr("\x1b")));
  const scratch_folder scratch;
  const auto path = scratch.file("report.txt");
  EXPECT_THAT(run_berth({"analyze", "-o", path, with_fault}, output_to::terminal).status, 0);
  EXPECT_THAT(read_file(path), Not(HasSubstr("\x1b")));
}

// An H200 whose link has lost half of its lanes, as lspci -vv shows it.
constexpr std::string_view half_a_link =
    "0000:00:01.1 PCI bridge: Intel Corporation Device 352a\n"
    "\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0\n"
    "\tCapabilities: [58] Express (v2) Root Port (Slot+), MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1\n"
    "\t\tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)\n"
    "0000:01:00.0 3D controller: NVIDIA Corporation GH100 [H200 SXM 141GB]\n"
    "\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1\n"
    "\t\tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)\n";

TEST(analyze, joins_a_trace_with_its_machine) {
  const scratch_folder scratch;
  const auto machine = scratch.file("lspci.txt");
  write_file(machine, half_a_link);
  const auto shown = run_berth({"analyze", "--machine", machine, with_advice, "--format", "json"});
  EXPECT_EQ(shown.status, 0);
  const auto trace = json::parse(shown.out)["traces"][0];
  EXPECT_THAT(trace["expectation_basis"].get<std::string>(),
              HasSubstr("this machine's link (32 GT/s x8)"));
  const auto alone = json::parse(run_berth({"analyze", with_advice, "--format", "json"}).out);
  EXPECT_THAT(alone["traces"][0]["expectation_basis"].get<std::string>(),
              Not(HasSubstr("32 GT/s")));
}

TEST(analyze, takes_a_bundle_for_the_machine) {
  const scratch_folder scratch;
  const auto bundle = scratch.file("machine.tar.zst");
  ASSERT_EQ(run_berth({"doctor", "--gather", bundle}).status, 0);
  const auto shown = run_berth({"analyze", "--machine", bundle, without_fault});
  EXPECT_EQ(shown.status, 0);
}

TEST(analyze, refuses_a_machine_that_is_none) {
  const scratch_folder scratch;
  const auto noise = scratch.file("noise.txt");
  write_file(noise, "hello\n");
  const auto shown = run_berth({"analyze", "--machine", noise, without_fault});
  EXPECT_EQ(shown.status, 3);
  EXPECT_THAT(shown.out, IsEmpty());
  EXPECT_THAT(shown.err, HasSubstr("BTH-1104"));
  EXPECT_EQ(run_berth({"analyze", "--machine", scratch.file("missing"), without_fault}).status, 3);
  EXPECT_EQ(run_berth({"analyze", "--machine", "", without_fault}).status, 2);
  EXPECT_EQ(run_berth({"analyze", "--machine", noise, without_fault, "-o", noise}).status, 2);
}

}  // namespace
}  // namespace berth::test
