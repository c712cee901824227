// SPDX-License-Identifier: Apache-2.0
#include "trace/import/symbols.hpp"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace berth::trace {
namespace {

struct end_session {
  void operator()(Dwfl* session) const noexcept { ::dwfl_end(session); }
};
struct free_text {
  void operator()(char* text) const noexcept { std::free(text); }  // NOLINT: made by malloc
};

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const auto byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

std::string file_name(std::string_view path) {
  return std::filesystem::path(path).filename().string();
}

// Separate debug information as Debian's packages put it, by build id. libdwfl's own search would
// also ask servers.
int find_debug_file(Dwfl_Module* module, void** /*data*/, const char* /*name*/, Dwarf_Addr /*base*/,
                    const char* /*file*/, const char* /*link*/, GElf_Word /*crc*/,
                    char** found_name) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  const int length = ::dwfl_module_build_id(module, &bits, &address);
  if (length < 2) {
    return -1;
  }
  const auto id = hexadecimal({bits, static_cast<std::size_t>(length)});
  const auto path =
      fmt::format("/usr/lib/debug/.build-id/{}/{}.debug", id.substr(0, 2), id.substr(2));
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened >= 0) {
    *found_name = ::strdup(path.c_str());
  }
  return opened;
}

// The address within the file's own layout of what stands at an offset in the file.
std::optional<GElf_Addr> address_at(Elf* elf, std::uint64_t offset) {
  std::size_t count = 0;
  if (::elf_getphdrnum(elf, &count) != 0) {
    return std::nullopt;
  }
  for (std::size_t index = 0; index < count; ++index) {
    GElf_Phdr segment;
    if (::gelf_getphdr(elf, static_cast<int>(index), &segment) != nullptr &&
        segment.p_type == PT_LOAD && offset >= segment.p_offset &&
        offset - segment.p_offset < segment.p_filesz) {
      return segment.p_vaddr + (offset - segment.p_offset);
    }
  }
  return std::nullopt;
}

bool is_plain_file(const std::string& path) {
  struct stat status {};
  return path.starts_with('/') && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

// One file, opened if it is the one that the process had mapped.
class symbol_file {
public:
  symbol_file(const std::string& path, const std::string& build_id) {
    static constexpr Dwfl_Callbacks callbacks{.find_elf = nullptr,
                                              .find_debuginfo = find_debug_file,
                                              .section_address = ::dwfl_offline_section_address,
                                              .debuginfo_path = nullptr};
    if (!is_plain_file(path)) {
      return;
    }
    session_.reset(::dwfl_begin(&callbacks));
    if (!session_) {
      return;
    }
    module_ = ::dwfl_report_offline(session_.get(), path.c_str(), path.c_str(), -1);
    ::dwfl_report_end(session_.get(), nullptr, nullptr);
    elf_ = module_ != nullptr ? ::dwfl_module_getelf(module_, &bias_) : nullptr;
    if (elf_ == nullptr || own_build_id() != build_id) {
      elf_ = nullptr;
    }
  }

  // Nothing where the file is another one, or has no name for the place.
  [[nodiscard]] std::optional<std::string> name_at(std::uint64_t offset,
                                                   std::string_view file) const {
    const auto place = elf_ != nullptr ? address_at(elf_, offset) : std::nullopt;
    if (!place) {
      return std::nullopt;
    }
    const auto address = *place + bias_;
    const char* const symbol = ::dwfl_module_addrname(module_, address);
    if (symbol == nullptr) {
      return std::nullopt;
    }
    const auto function = demangled(symbol);
    int line = 0;
    if (auto* const source = ::dwfl_module_getsrc(module_, address); source != nullptr) {
      const char* const path = ::dwfl_lineinfo(source, nullptr, &line, nullptr, nullptr, nullptr);
      if (path != nullptr && line > 0) {
        return fmt::format("{} ({}:{})", function, file_name(path), line);
      }
    }
    return fmt::format("{} in {}", function, file);
  }

private:
  [[nodiscard]] std::string own_build_id() const {
    const unsigned char* bits = nullptr;
    GElf_Addr address = 0;
    const int length = ::dwfl_module_build_id(module_, &bits, &address);
    return length > 0 ? hexadecimal({bits, static_cast<std::size_t>(length)}) : std::string();
  }

  std::unique_ptr<Dwfl, end_session> session_;
  Dwfl_Module* module_ = nullptr;  // the session's
  Elf* elf_ = nullptr;             // the session's; null: no names from this file
  GElf_Addr bias_ = 0;
};

struct symbol_files {
  std::map<std::pair<std::string, std::string>, symbol_file> opened;  // by path and build id
};

symbols::symbols() : files_(std::make_unique<symbol_files>()) {}
symbols::~symbols() = default;

std::string symbols::name_of(const mapped_file& file, std::uint64_t address) {
  const auto name = file_name(file.path);
  const auto offset = address - file.begin + file.offset;
  auto& known = files_->opened.try_emplace({file.path, file.build_id}, file.path, file.build_id)
                    .first->second;
  // The address is behind the call, which may be a function's last instruction.
  if (auto found = known.name_at(offset > 0 ? offset - 1 : 0, name)) {
    return *std::move(found);
  }
  return fmt::format("{}+{:#x}", name.empty() ? "?" : name, offset);
}

std::string demangled(std::string_view name) {
  int status = 0;
  const std::unique_ptr<char, free_text> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status));
  if (status != 0 || !text) {
    return std::string(name);
  }
  std::string_view whole(text.get());
  constexpr std::string_view constant = " const";
  auto end = whole.ends_with(constant) ? whole.size() - constant.size() : whole.size();
  if (end == 0 || whole[end - 1] != ')') {
    return std::string(whole);
  }
  int depth = 0;
  do {
    --end;
    depth += whole[end] == ')' ? 1 : whole[end] == '(' ? -1 : 0;
  } while (end > 0 && depth > 0);
  return std::string(end > 0 ? whole.substr(0, end) : whole);
}

}  // namespace berth::trace
