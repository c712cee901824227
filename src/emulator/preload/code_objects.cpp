// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/code_objects.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "emulator/preload/system.hpp"

namespace berth::emulator {
namespace {

constexpr std::string_view descriptor_suffix = ".kd";
constexpr std::size_t most_objects = 100'000;  // a list that has become a ring
constexpr std::size_t largest_object = std::size_t{1} << 30U;

template <typename Value>
std::optional<Value> read_at(std::uint64_t address) {
  Value value;
  return read_safely(address, &value, sizeof(value)) ? std::optional(value) : std::nullopt;
}

std::string read_text_at(std::uint64_t address) {
  std::string text;
  for (char one = 0;
       text.size() < 4096 && read_safely(address + text.size(), &one, 1) && one != 0;) {
    text += one;
  }
  return text;
}

template <typename Value>
std::optional<Value> part_of(const std::vector<char>& bytes, std::uint64_t offset) {
  Value value;
  if (offset > bytes.size() || bytes.size() - offset < sizeof(value)) {
    return std::nullopt;
  }
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

std::string_view text_in(const std::vector<char>& bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) {
    return {};
  }
  const char* const begin = bytes.data() + offset;
  return {begin, strnlen(begin, bytes.size() - offset)};
}

// The value of "name=" in "memory://12#offset=0x7f00&size=512".
std::uint64_t parameter(std::string_view location, std::string_view name) {
  const auto at = location.find(name);
  if (at == std::string_view::npos) {
    return 0;
  }
  auto digits = location.substr(at + name.size());
  const bool hexadecimal = digits.starts_with("0x");
  digits.remove_prefix(hexadecimal ? 2 : 0);
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  return value;
}

int keep_path_of_runtime(dl_phdr_info* object, std::size_t, void* path) {
  const std::string_view name = object->dlpi_name != nullptr ? object->dlpi_name : "";
  if (name.find("libhsa-runtime64.so") == std::string_view::npos) {
    return 0;
  }
  *static_cast<std::string*>(path) = name;
  return 1;
}

// Programs may load the runtime without showing its symbols to others, so it is asked itself.
const r_debug* list_of_runtime() {
  if (const void* const shown = dlsym(RTLD_DEFAULT, "_amdgpu_r_debug")) {
    return static_cast<const r_debug*>(shown);
  }
  std::string path;
  dl_iterate_phdr(keep_path_of_runtime, &path);
  // Loaded already and never given back: a second reference does no harm.
  void* const runtime = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  return runtime != nullptr ? static_cast<const r_debug*>(dlsym(runtime, "_amdgpu_r_debug"))
                            : nullptr;
}

}  // namespace

std::string code_objects::kernel_at(std::uint64_t descriptor) {
  const std::lock_guard hold(lock_);
  auto found = names_.find(descriptor);
  if (found == names_.end()) {
    read_new_objects();
    found = names_.find(descriptor);
  }
  return found == names_.end() ? std::string() : found->second;
}

// The runtime may change the list meanwhile, hence the careful reads: at worst a name is missing.
void code_objects::read_new_objects() {
  const auto* const head = list_of_runtime();
  if (head == nullptr) {
    return;
  }
  const auto debug = read_at<r_debug>(reinterpret_cast<std::uint64_t>(head));
  auto at = debug ? reinterpret_cast<std::uint64_t>(debug->r_map) : 0;
  for (std::size_t count = 0; at != 0 && count < most_objects; ++count) {
    const auto object = read_at<link_map>(at);
    if (!object) {
      return;
    }
    const auto location = read_text_at(reinterpret_cast<std::uint64_t>(object->l_name));
    auto& known = objects_[object->l_addr];
    if (known != location) {
      known = location;
      read_object(location, object->l_addr);
    }
    at = reinterpret_cast<std::uint64_t>(object->l_next);
  }
}

void code_objects::read_object(const std::string& location, std::uint64_t load_address) {
  const auto offset = parameter(location, "offset=");
  const auto bytes = parameter(location, "size=");
  std::vector<char> object;
  if (location.starts_with("memory://")) {
    object.resize(bytes <= largest_object ? bytes : 0);
    if (!read_safely(offset, object.data(), object.size())) {
      return;
    }
  } else if (location.starts_with("file://")) {
    const auto path = location.substr(7, location.find_first_of("#?") - 7);
    const auto file = read_whole_file(path);
    if (offset < file.size()) {
      const auto length = bytes == 0 ? file.size() - offset : std::min(bytes, file.size() - offset);
      const auto begin = file.begin() + static_cast<std::ptrdiff_t>(offset);
      object.assign(begin, begin + static_cast<std::ptrdiff_t>(length));
    }
  }
  read_symbols(object, load_address);
}

void code_objects::read_symbols(const std::vector<char>& object, std::uint64_t load_address) {
  const auto header = part_of<Elf64_Ehdr>(object, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return;
  }
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const auto section = part_of<Elf64_Shdr>(object, header->e_shoff + index * sizeof(Elf64_Shdr));
    if (!section || (section->sh_type != SHT_DYNSYM && section->sh_type != SHT_SYMTAB)) {
      continue;
    }
    const auto strings =
        part_of<Elf64_Shdr>(object, header->e_shoff + section->sh_link * sizeof(Elf64_Shdr));
    for (std::uint64_t at = 0; strings && at + sizeof(Elf64_Sym) <= section->sh_size;
         at += sizeof(Elf64_Sym)) {
      const auto symbol = part_of<Elf64_Sym>(object, section->sh_offset + at);
      if (!symbol) {
        break;
      }
      const auto name = text_in(object, strings->sh_offset + symbol->st_name);
      if (name.ends_with(descriptor_suffix)) {
        names_[load_address + symbol->st_value] =
            name.substr(0, name.size() - descriptor_suffix.size());
      }
    }
  }
}

}  // namespace berth::emulator
