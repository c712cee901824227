// SPDX-License-Identifier: Apache-2.0
#include "interpose/program_check.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/descriptor.hpp"
#include "core/program.hpp"
#include "core/text.hpp"

namespace berth::interpose {
namespace {

namespace fs = std::filesystem;

// Scripts whose interpreters are scripts: Linux follows as many.
constexpr int most_interpreters = 5;

error refusal(std::string message, const std::string& where, std::string hint) {
  return error(errc::usage, std::move(message), where, std::move(hint));
}

// --- Finding it ---------------------------------------------------------------------------------

bool may_execute(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

// As execvp looks for it. Empty: nowhere.
fs::path find_in_path(std::string_view name) {
  auto folders = program::environment("PATH");
  if (folders.empty()) {
    folders = "/bin:/usr/bin";
  }
  fs::path found_first;
  std::string_view rest = folders;
  while (true) {
    const auto end = std::min(rest.find(':'), rest.size());
    const auto folder = rest.substr(0, end);
    const auto file = fs::path(folder.empty() ? "." : folder) / name;
    if (may_execute(file)) {
      return file;
    }
    std::error_code ignored;
    if (found_first.empty() && fs::is_regular_file(file, ignored)) {
      found_first = file;
    }
    if (end == rest.size()) {
      return found_first;
    }
    rest.remove_prefix(end + 1);
  }
}

result<fs::path> find_program(std::string_view name) {
  const std::string shown(name);
  if (name.empty()) {
    return refusal("the program's name is empty", {}, "berth run -- ./program");
  }
  const bool is_path = name.find('/') != std::string_view::npos;
  const auto file = is_path ? fs::path(name) : find_in_path(name);
  std::error_code failure;
  const auto status = fs::status(file, failure);
  if (file.empty() || !fs::exists(status)) {
    if (failure && failure != std::errc::no_such_file_or_directory &&
        failure != std::errc::not_a_directory) {
      return refusal(fmt::format("cannot be started: {}", failure.message()), shown,
                     "check the path and the rights of its folders");
    }
    return is_path ? refusal("there is no such file", shown, "check the path, seen from here")
                   : refusal("there is no such program in PATH", shown,
                             "name a path to it, as ./" + shown + ", or correct PATH");
  }
  if (fs::is_directory(status)) {
    return refusal("is a folder, not a program", shown, "name the program inside it");
  }
  if (!may_execute(file)) {
    const bool python = shown.ends_with(".py");
    return refusal("may not be executed", file.string(),
                   python ? "berth run -- python3 " + file.string()
                          : "chmod +x gives the right, or name its interpreter in front of it");
  }
  return file;
}

// --- What kind of file it is --------------------------------------------------------------------

// The beginning of a file; shorter where the file is, empty where it cannot be read.
std::string beginning_of(const fs::path& file, std::size_t bytes) {
  const descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(bytes, '\0');
  const auto got = opened.get() < 0 ? -1 : ::read(opened.get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

template <typename Type>
std::optional<Type> at(std::string_view bytes, std::size_t offset) {
  Type value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof(value)) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// What matters of an ELF file of our own word size and byte order.
struct elf_file {
  std::uint16_t machine = 0;
  bool for_this_machine = false;
  std::optional<std::string> loader;  // nothing: linked statically
};

constexpr std::size_t most_headers_bytes = 65536;

std::optional<elf_file> read_elf(const fs::path& file) {
  const auto bytes = beginning_of(file, most_headers_bytes);
  if (!bytes.starts_with(std::string_view(ELFMAG, SELFMAG))) {
    return std::nullopt;
  }
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  constexpr auto our_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  elf_file read;
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != our_order) {
    return read;
  }
  read.machine = header->e_machine;
  read.for_this_machine = true;
  for (std::size_t index = 0; index < header->e_phnum; ++index) {
    const auto part = at<Elf64_Phdr>(bytes, header->e_phoff + index * sizeof(Elf64_Phdr));
    if (!part) {
      break;
    }
    if (part->p_type == PT_INTERP && part->p_offset < bytes.size()) {
      read.loader = bytes.substr(part->p_offset, part->p_filesz).c_str();
    }
  }
  return read;
}

const elf_file& our_own() {
  static const elf_file own = read_elf("/proc/self/exe").value_or(elf_file{});
  return own;
}

// "NAME ARGUMENT" of a script's first line. Empty: it is no script.
std::pair<std::string, std::string> interpreter_line(const fs::path& file) {
  const auto text = beginning_of(file, 256);
  if (!text.starts_with("#!")) {
    return {};
  }
  auto line = std::string_view(text).substr(2);
  line = text::trim(line.substr(0, line.find('\n')));
  const auto end = std::min(line.find_first_of(" \t"), line.size());
  return {std::string(line.substr(0, end)), std::string(text::trim(line.substr(end)))};
}

// Of `#!/usr/bin/env -S NAME=VALUE python3 -u`: python3.
std::string program_of_env(std::string_view arguments) {
  while (!arguments.empty()) {
    const auto end = std::min(arguments.find_first_of(" \t"), arguments.size());
    const auto word = arguments.substr(0, end);
    if (!word.starts_with('-') && word.find('=') == std::string_view::npos) {
      return std::string(word);
    }
    arguments = text::trim(arguments.substr(end));
  }
  return {};
}

// What the system will start for `file`: itself, or the interpreter of a script.
result<fs::path> executable_of(const fs::path& file) {
  fs::path now = file;
  for (int depth = 0; depth < most_interpreters; ++depth) {
    const auto [name, arguments] = interpreter_line(now);
    if (name.empty()) {
      return now;
    }
    const auto missing = [&](const std::string& which) {
      return refusal(fmt::format("its interpreter {} is not there", which), file.string(),
                     "correct the first line of the script, or name an interpreter in front of it");
    };
    if (!may_execute(name)) {
      return missing(text::printable(name));
    }
    now = name;
    if (now.filename() == "env") {
      const auto program = program_of_env(arguments);
      const auto found =
          program.find('/') != std::string::npos ? fs::path(program) : find_in_path(program);
      if (program.empty() || !may_execute(found)) {
        return missing(text::printable(program.empty() ? "of env" : program));
      }
      now = found;
    }
  }
  return refusal("its interpreter is a script of a script, too often", file.string(),
                 "name an interpreter in front of it");
}

// --- Obstacles ----------------------------------------------------------------------------------

// The system then cleans the environment of the program and of all that it starts.
std::optional<std::string> other_rights(const fs::path& file) {
  struct stat about {};
  struct statvfs folder {};
  if (::stat(file.c_str(), &about) != 0 ||
      (::statvfs(file.c_str(), &folder) == 0 && (folder.f_flag & ST_NOSUID) != 0)) {
    return std::nullopt;
  }
  if ((about.st_mode & S_ISUID) != 0 && about.st_uid != ::getuid()) {
    return "runs with the rights of another user (setuid)";
  }
  if ((about.st_mode & S_ISGID) != 0 && (about.st_mode & S_IXGRP) != 0 &&
      about.st_gid != ::getgid()) {
    return "runs with the rights of another group (setgid)";
  }
  if (::getuid() != 0 && ::getxattr(file.c_str(), "security.capability", nullptr, 0) > 0) {
    return "has rights of its own (file capabilities)";
  }
  return std::nullopt;
}

std::optional<obstacle> find_obstacle(const fs::path& file) {
  if (auto why = other_rights(file)) {
    return obstacle{.kind = obstacle_kind::other_rights,
                    .program = file,
                    .why = *why + ", and then the system ignores LD_PRELOAD",
                    .what_to_do =
                        "run berth with those rights itself (sudo berth run -- PROGRAM), "
                        "or a copy of the program without them"};
  }
  const auto elf = read_elf(file);
  if (!elf) {
    return std::nullopt;  // a script of the shell, or what another handler starts
  }
  if (!elf->for_this_machine || elf->machine != our_own().machine) {
    return obstacle{.kind = obstacle_kind::other_architecture,
                    .program = file,
                    .why = "is for another processor or word size than berth",
                    .what_to_do = "record a build for this machine's own 64-bit processor"};
  }
  if (!elf->loader) {
    return obstacle{.kind = obstacle_kind::static_program,
                    .program = file,
                    .why = "is linked statically, so nothing can be preloaded into it",
                    .what_to_do =
                        "link it dynamically (without -static); a GPU runtime may be "
                        "static, the C library not"};
  }
  if (elf->loader->find("ld-musl") != std::string::npos) {
    return obstacle{.kind = obstacle_kind::other_c_library,
                    .program = file,
                    .why = "is made for the C library musl; the recorder needs glibc",
                    .what_to_do = "record a build for glibc"};
  }
  return std::nullopt;
}

}  // namespace

result<checked_program> check_program(std::string_view name) {
  auto path = find_program(name);
  if (!path) {
    return path.error();
  }
  auto executable = executable_of(*path);
  if (!executable) {
    return executable.error();
  }
  const auto elf = read_elf(*executable);
  std::error_code ignored;
  if (elf && elf->loader && !fs::exists(*elf->loader, ignored)) {
    return refusal(fmt::format("its loader {} is not there", text::printable(*elf->loader)),
                   executable->string(), "it was built for another system");
  }
  auto found = find_obstacle(*executable);
  return checked_program{
      .path = std::move(*path), .executable = std::move(*executable), .obstacle = std::move(found)};
}

}  // namespace berth::interpose
