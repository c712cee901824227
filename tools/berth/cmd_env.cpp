// SPDX-License-Identifier: Apache-2.0
#include "cmd_env.hpp"

#include <filesystem>
#include <ostream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/program.hpp"
#include "core/text.hpp"

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

std::string assignment(const program::variable& one) {
  return fmt::format("{}={}", one.name, one.value);
}

struct recording_environment {
  std::vector<program::variable> variables;  // LD_PRELOAD first
  fs::path recorder;
  fs::path folder;  // of the recordings
  interpose::copies copies = interpose::copies::left_alone;
};

std::string as_shell(const recording_environment& shown) {
  std::string text;
  for (const auto& [name, value] : shown.variables) {
    // What the shell that reads it has preloaded stays.
    const auto* const more = name == "LD_PRELOAD" ? "${LD_PRELOAD:+:$LD_PRELOAD}" : "";
    text += fmt::format("export {}={}{}\n", name, text::shell_word(value), more);
  }
  return text;
}

std::string as_json(const recording_environment& shown) {
  nlohmann::ordered_json made = nlohmann::ordered_json::object();
  for (const auto& [name, value] : shown.variables) {
    made[name] = value;
  }
  return made.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string as_docker(const recording_environment& shown) {
  std::string text;
  for (const auto& one : shown.variables) {
    text += fmt::format("-e {} ", text::shell_word(assignment(one)));
  }
  const auto library = shown.recorder.string();
  const auto folder = shown.folder.string();
  if (shown.copies == interpose::copies::fixed) {
    const auto engine = (shown.recorder.parent_path() / "libberth_fix.so").string();
    text += fmt::format("-v {} ", text::shell_word(engine + ":" + engine + ":ro"));
  }
  return text + fmt::format("-v {} -v {}\n", text::shell_word(library + ":" + library + ":ro"),
                            text::shell_word(folder + ":" + folder));
}

std::string as_slurm(const recording_environment& shown) {
  std::string text = "--export=ALL";
  for (const auto& one : shown.variables) {
    text += ',' + assignment(one);
  }
  return text::shell_word(text) + "\n";
}

std::string as_mpirun(const recording_environment& shown) {
  std::string text;
  for (const auto& one : shown.variables) {
    text += fmt::format("{}-x {}", text.empty() ? "" : " ", text::shell_word(assignment(one)));
  }
  return text + "\n";
}

// What separates the values in a form cannot stand in one.
result<void> check_values(const recording_environment& shown, env_form form) {
  const std::string_view forbidden = form == env_form::slurm    ? ","
                                     : form == env_form::docker ? ":"
                                                                : "";
  const bool is_for_a_shell = form == env_form::shell || form == env_form::json;
  for (const auto& text : {shown.recorder.string(), shown.folder.string()}) {
    // $(berth env --docker) is split at blanks, and quotes in it are letters.
    if (!is_for_a_shell && text::shell_word(text) != text) {
      return error(errc::usage, "a path with blanks or quotes cannot be handed on so", text,
                   "--record another folder, or the export lines of berth env");
    }
    if (text.find_first_of(forbidden) != std::string::npos) {
      return error(errc::usage, fmt::format("a path with '{}' cannot be handed on so", forbidden),
                   text, "--record another folder, or the export lines of berth env");
    }
  }
  return {};
}

result<recording_environment> environment_for(const env_options& options) {
  auto recording = recording_options_of(options.recording);
  if (!recording) {
    return recording.error();
  }
  auto recorder = interpose::find_recorder();
  if (!recorder) {
    return recorder.error();
  }
  std::error_code ignored;
  constexpr std::string_view usual_name = "berth-%h-%p.berth";
  auto file = fs::absolute(options.record.empty() ? "." : options.record, ignored);
  if (fs::is_directory(file, ignored) || !file.has_filename()) {
    file /= usual_name;
  }
  recording->file = file.lexically_normal().string();
  recording_environment made{.variables = {{.name = "LD_PRELOAD", .value = recorder->string()}},
                             .recorder = *recorder,
                             .folder = fs::path(recording->file).parent_path(),
                             .copies = recording->copies};
  for (auto& one : interpose::variables_of(*recording)) {
    made.variables.push_back(std::move(one));
  }
  if (const auto checked = check_values(made, options.form); !checked) {
    return checked.error();
  }
  return made;
}

std::string text_of(const recording_environment& shown, env_form form) {
  switch (form) {
    case env_form::json:
      return as_json(shown);
    case env_form::docker:
      return as_docker(shown);
    case env_form::slurm:
      return as_slurm(shown);
    case env_form::mpirun:
      return as_mpirun(shown);
    case env_form::shell:
      break;
  }
  return as_shell(shown);
}

}  // namespace

exit_status run_env(const env_options& options, const streams& io) {
  const auto made = environment_for(options);
  if (!made) {
    return refuse(io, made.error());
  }
  const auto written = write_output(io, {}, text_of(*made, options.form));
  return written ? exit_status::done : refuse(io, written.error());
}

}  // namespace berth::cli
