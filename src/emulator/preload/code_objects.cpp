// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/code_objects.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "emulator/preload/emulated_machine.hpp"
#include "emulator/preload/system.hpp"

namespace berth::emulator {
namespace {

constexpr std::string_view descriptor_suffix = ".kd";
constexpr std::size_t most_objects = 100'000;  // a list that has become a ring
constexpr std::uint64_t longest_name = 4096;

template <typename Value>
std::optional<Value> read_at(std::uint64_t address) {
  Value value;
  return read_safely(address, &value, sizeof(value)) ? std::optional(value) : std::nullopt;
}

template <typename Value>
std::optional<Value> read_on_device(const emulated_machine& machine, std::uint64_t address) {
  const auto place = machine.buffers.locate(address);
  if (!place || place->available < sizeof(Value)) {
    return std::nullopt;
  }
  Value value;
  std::memcpy(&value, place->host, sizeof(value));
  return value;
}

std::string text_on_device(const emulated_machine& machine, std::uint64_t address) {
  const auto place = machine.buffers.locate(address);
  return place ? std::string(place->host,
                             strnlen(place->host, std::min(place->available, longest_name)))
               : std::string();
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

// Where the tables of dynamic symbols are, relative to the load address.
struct symbol_tables {
  std::uint64_t symbols = 0;
  std::uint64_t names = 0;
  std::uint64_t hash = 0;
};

std::optional<symbol_tables> find_tables(const emulated_machine& machine, std::uint64_t base) {
  const auto header = read_on_device<Elf64_Ehdr>(machine, base);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return std::nullopt;
  }
  for (std::uint64_t index = 0; index < header->e_phnum; ++index) {
    const auto segment =
        read_on_device<Elf64_Phdr>(machine, base + header->e_phoff + index * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_DYNAMIC) {
      continue;
    }
    symbol_tables tables;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment->p_memsz;
         at += sizeof(Elf64_Dyn)) {
      const auto entry = read_on_device<Elf64_Dyn>(machine, base + segment->p_vaddr + at);
      if (!entry || entry->d_tag == DT_NULL) {
        break;
      }
      tables.symbols = entry->d_tag == DT_SYMTAB ? entry->d_un.d_ptr : tables.symbols;
      tables.names = entry->d_tag == DT_STRTAB ? entry->d_un.d_ptr : tables.names;
      tables.hash = entry->d_tag == DT_HASH ? entry->d_un.d_ptr : tables.hash;
    }
    return tables;
  }
  return std::nullopt;
}

// The hash table says how many symbols there are; without one, they end where the names begin.
std::uint64_t symbol_count(const emulated_machine& machine, std::uint64_t base,
                           const symbol_tables& tables) {
  constexpr std::uint64_t offset_of_count = sizeof(std::uint32_t);
  if (tables.hash != 0) {
    return read_on_device<std::uint32_t>(machine, base + tables.hash + offset_of_count).value_or(0);
  }
  return tables.names > tables.symbols ? (tables.names - tables.symbols) / sizeof(Elf64_Sym) : 0;
}

}  // namespace

std::string code_objects::kernel_at(const emulated_machine& machine, std::uint64_t descriptor) {
  const std::lock_guard hold(lock_);
  const auto known = symbols_.find(descriptor);
  // Another object may have been loaded in its place since.
  if (known != symbols_.end() && text_on_device(machine, known->second.name_address) ==
                                     known->second.name + std::string(descriptor_suffix)) {
    return known->second.name;
  }
  symbols_.clear();
  read_loaded(machine);
  const auto found = symbols_.find(descriptor);
  return found == symbols_.end() ? std::string() : found->second.name;
}

// The runtime may change the list meanwhile, hence the careful reads: at worst a name is missing.
void code_objects::read_loaded(const emulated_machine& machine) {
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
    read_symbols(machine, object->l_addr);
    at = reinterpret_cast<std::uint64_t>(object->l_next);
  }
}

void code_objects::read_symbols(const emulated_machine& machine, std::uint64_t load_address) {
  const auto tables = find_tables(machine, load_address);
  if (!tables) {
    return;
  }
  const auto count = symbol_count(machine, load_address, *tables);
  for (std::uint64_t index = 0; index < count; ++index) {
    const auto entry = read_on_device<Elf64_Sym>(
        machine, load_address + tables->symbols + index * sizeof(Elf64_Sym));
    if (!entry) {
      return;
    }
    const auto name_address = load_address + tables->names + entry->st_name;
    const auto name = text_on_device(machine, name_address);
    if (name.ends_with(descriptor_suffix)) {
      symbols_[load_address + entry->st_value] = {
          name_address, name.substr(0, name.size() - descriptor_suffix.size())};
    }
  }
}

}  // namespace berth::emulator
