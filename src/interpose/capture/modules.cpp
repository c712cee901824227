// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/modules.hpp"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace berth::interpose {
namespace {

using trace::recording::byte_writer;

struct build_id {
  std::array<char, 64> text{};
  std::size_t length = 0;
};

// Notes need not be mapped.
bool is_mapped(const dl_phdr_info& object, const ElfW(Phdr) & what) noexcept {
  for (int index = 0; index < object.dlpi_phnum; ++index) {
    const auto& header = object.dlpi_phdr[index];
    if (header.p_type == PT_LOAD && what.p_vaddr >= header.p_vaddr &&
        what.p_vaddr - header.p_vaddr <= header.p_filesz &&
        what.p_memsz <= header.p_filesz - (what.p_vaddr - header.p_vaddr)) {
      return true;
    }
  }
  return false;
}

// The GNU build id, from the notes that are mapped.
build_id build_id_of(const dl_phdr_info& object) noexcept {
  build_id found;
  for (int index = 0; index < object.dlpi_phnum; ++index) {
    const auto& header = object.dlpi_phdr[index];
    if (header.p_type != PT_NOTE || !is_mapped(object, header)) {
      continue;
    }
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives numbers
    const auto* at = reinterpret_cast<const char*>(object.dlpi_addr + header.p_vaddr);
    const auto* const end = at + header.p_memsz;
    while (static_cast<std::size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note{};
      std::memcpy(&note, at, sizeof note);
      const auto* const name = at + sizeof note;
      const auto room = static_cast<std::size_t>(end - name);
      const auto name_bytes = (std::size_t{note.n_namesz} + 3) / 4 * 4;
      const auto id_bytes = (std::size_t{note.n_descsz} + 3) / 4 * 4;
      if (name_bytes > room || id_bytes > room - name_bytes) {
        break;
      }
      const auto* const id = name + name_bytes;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          std::memcmp(name, "GNU", 4) == 0) {
        constexpr std::string_view digits = "0123456789abcdef";
        for (std::size_t byte = 0; byte < note.n_descsz && found.length + 2 <= found.text.size();
             ++byte) {
          const auto value = static_cast<unsigned char>(id[byte]);
          found.text[found.length++] = digits[value >> 4U];
          found.text[found.length++] = digits[value & 15U];
        }
        return found;
      }
      at = id + id_bytes;
    }
  }
  return found;
}

struct module_writing {
  byte_writer* to;
  std::string_view program;
};

void put_segments(byte_writer& to, const dl_phdr_info& object, std::string_view path) noexcept {
  const auto id = build_id_of(object);
  for (int index = 0; index < object.dlpi_phnum; ++index) {
    const auto& header = object.dlpi_phdr[index];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
      to.put_varint(object.dlpi_addr + header.p_vaddr);
      to.put_varint(header.p_memsz);
      to.put_varint(header.p_offset);
      to.put_string(path);
      to.put_string({id.text.data(), id.length});
    }
  }
}

int put_module(dl_phdr_info* object, std::size_t, void* state) {
  auto& what = *static_cast<module_writing*>(state);
  const std::string_view name = object->dlpi_name == nullptr ? "" : object->dlpi_name;
  const auto path = name.empty() ? what.program : name;  // the program itself has no name
  constexpr std::size_t longest = 1024;
  if (path.size() < longest && what.to->room() > 2 * longest) {
    put_segments(*what.to, *object, path);
  }
  return 0;
}

int count_changes(dl_phdr_info* object, std::size_t, void* state) {
  *static_cast<std::uint64_t*>(state) = object->dlpi_adds;
  return 1;
}

}  // namespace

std::uint64_t loader_changes() noexcept {
  std::uint64_t changes = 0;
  ::dl_iterate_phdr(count_changes, &changes);
  return changes;
}

void put_modules(byte_writer& to) noexcept {
  std::array<char, 1024> program{};
  const auto length = ::readlink("/proc/self/exe", program.data(), program.size());
  module_writing what{
      .to = &to,
      .program = {program.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))}};
  ::dl_iterate_phdr(put_module, &what);
}

}  // namespace berth::interpose
