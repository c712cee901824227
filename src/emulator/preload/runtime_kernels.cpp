// SPDX-License-Identifier: Apache-2.0
#include "emulator/preload/runtime_kernels.hpp"

#include <algorithm>
#include <array>

#include "emulator/preload/emulated_machine.hpp"

namespace berth::emulator {
namespace {

// A kernel's arguments in memory. What cannot be read is 0, and `good` says so.
class argument_reader {
public:
  argument_reader(const emulated_machine& machine, std::uint64_t at) : machine_(machine), at_(at) {}

  std::uint64_t wide(std::uint64_t offset) { return read<std::uint64_t>(at_ + offset); }
  std::uint32_t narrow(std::uint64_t offset) { return read<std::uint32_t>(at_ + offset); }
  std::string bytes(std::uint64_t address, std::uint64_t count) {
    constexpr std::uint64_t longest = 256;
    const auto found = machine_.locate(address);
    good_ = good_ && found && found->available >= count && count > 0 && count <= longest;
    return good_ ? std::string(found->host, count) : std::string();
  }
  [[nodiscard]] bool good() const { return good_; }

private:
  template <typename Word>
  Word read(std::uint64_t address) {
    const auto* const word = machine_.word<Word>(address);
    good_ = good_ && word != nullptr;
    return word != nullptr ? *word : 0;
  }

  const emulated_machine& machine_;
  std::uint64_t at_;
  bool good_ = true;
};

runtime_effect linear(std::uint64_t destination, std::uint64_t source, std::uint64_t bytes) {
  return byte_move{.destination = destination, .source = source, .shape = {.row_bytes = bytes}};
}

// ROCr fills from a start to an end address with a 32-bit value.
runtime_effect rocr_fill(argument_reader& arguments) {
  const auto value = arguments.narrow(24);
  const auto begin = arguments.wide(0);
  byte_move fill{.destination = begin, .shape = {.row_bytes = arguments.wide(16) - begin}};
  fill.pattern.assign(reinterpret_cast<const char*>(&value), sizeof(value));
  return fill;
}

// ROCr's copies carry the ends of phases; the last source end gives the size.
template <std::uint64_t EndOffset>
runtime_effect rocr_copy(argument_reader& arguments) {
  const auto source = arguments.wide(0);
  return linear(arguments.wide(8), source, arguments.wide(EndOffset) - source);
}

// (source, destination, source offset, destination offset, size, remainder): in words of 4 bytes
// with a remainder, or in bytes where the last argument is 8.
runtime_effect copy_buffer(argument_reader& arguments) {
  const auto size = arguments.wide(32);
  const auto remainder = arguments.narrow(40);
  constexpr std::uint32_t in_bytes = 8;
  const auto bytes = remainder == in_bytes ? size : (size - 1) * 4 + remainder;
  return linear(arguments.wide(8) + arguments.wide(24), arguments.wide(0) + arguments.wide(16),
                bytes);
}

runtime_effect copy_buffer_aligned(argument_reader& arguments) {
  const std::uint64_t unit = arguments.narrow(40) == 16 ? 16 : 4;
  return linear(arguments.wide(8) + arguments.wide(24) * unit,
                arguments.wide(0) + arguments.wide(16) * unit, arguments.wide(32) * unit);
}

// Source and destination, then three vectors {row pitch, slice pitch, start, -} of source and
// destination and {x, y, z, unit}, all counted in units.
runtime_effect copy_rect(argument_reader& arguments, std::uint64_t unit) {
  const auto source = arguments.wide(0) + arguments.wide(48) * unit;
  const auto destination = arguments.wide(8) + arguments.wide(80) * unit;
  return byte_move{.destination = destination,
                   .source = source,
                   .shape = {.row_bytes = arguments.wide(96) * unit,
                             .rows = arguments.wide(104),
                             .slices = arguments.wide(112),
                             .destination_pitch = arguments.wide(64) * unit,
                             .source_pitch = arguments.wide(32) * unit,
                             .destination_slice_pitch = arguments.wide(72) * unit,
                             .source_slice_pitch = arguments.wide(40) * unit}};
}

runtime_effect copy_buffer_rect(argument_reader& arguments) {
  return copy_rect(arguments, 1);
}

runtime_effect copy_buffer_rect_aligned(argument_reader& arguments) {
  return copy_rect(arguments, arguments.wide(120) == 16 ? 16 : 4);
}

// One of four pointers, to units of 1, 2, 4 and 8 bytes, is set.
struct typed_pointer {
  std::uint64_t address = 0;
  std::uint64_t unit = 1;
};

typed_pointer the_set_one(argument_reader& arguments) {
  for (std::uint64_t index = 4; index-- > 0;) {
    if (const auto address = arguments.wide(index * 8); address != 0) {
      return {address, std::uint64_t{1} << index};
    }
  }
  return {};
}

byte_move fill_of(argument_reader& arguments) {
  const auto [address, unit] = the_set_one(arguments);
  byte_move fill{.destination = address + arguments.wide(48) * unit};
  fill.pattern = arguments.bytes(arguments.wide(32), arguments.narrow(40) * unit);
  return fill;
}

runtime_effect fill_buffer(argument_reader& arguments) {
  auto fill = fill_of(arguments);
  fill.shape = {.row_bytes = arguments.wide(56) * fill.pattern.size()};
  return fill;
}

runtime_effect fill_buffer_2d(argument_reader& arguments) {
  auto fill = fill_of(arguments);
  const auto unit = the_set_one(arguments).unit;
  fill.shape = {.row_bytes = arguments.wide(56) * fill.pattern.size(),
                .rows = arguments.wide(64),
                .destination_pitch = arguments.wide(72) * unit};
  return fill;
}

runtime_effect write_word(argument_reader& arguments) {
  const auto narrow = arguments.wide(0);
  return word_write{.address = narrow != 0 ? narrow : arguments.wide(8),
                    .value = arguments.wide(16),
                    .bytes = narrow != 0 ? 4U : 8U};
}

runtime_effect wait_word(argument_reader& arguments) {
  const auto narrow = arguments.wide(0);
  return word_wait{.address = narrow != 0 ? narrow : arguments.wide(8),
                   .value = arguments.wide(16),
                   .mask = arguments.wide(32),
                   .bytes = narrow != 0 ? 4U : 8U,
                   .until = static_cast<comparison>(arguments.wide(24) & 3U)};
}

struct runtime_kernel {
  std::string_view name;
  runtime_effect (*effect)(argument_reader&);
};

constexpr std::array<runtime_kernel, 11> known_kernels = {{
    {"rocr fill", rocr_fill},
    {"rocr copy", rocr_copy<64>},
    {"rocr copy, misaligned", rocr_copy<32>},
    {"__amd_rocclr_copyBuffer", copy_buffer},
    {"__amd_rocclr_copyBufferAligned", copy_buffer_aligned},
    {"__amd_rocclr_copyBufferRect", copy_buffer_rect},
    {"__amd_rocclr_copyBufferRectAligned", copy_buffer_rect_aligned},
    {"__amd_rocclr_fillBufferAligned", fill_buffer},
    {"__amd_rocclr_fillBufferAligned2D", fill_buffer_2d},
    {"__amd_rocclr_streamOpsWrite", write_word},
    {"__amd_rocclr_streamOpsWait", wait_word},
}};

// The first words of ROCr's kernels, which load their arguments: so many words from which offset.
// 0 stands for any word. GFX9 and GFX10 encode these loads differently.
struct code_start {
  std::string_view name;
  std::array<std::uint32_t, 7> words;
};

constexpr std::array<code_start, 3> rocr_code = {{
    {"rocr fill", {0xC00A0100, 0, 0xC00A0200, 0, 0xBF8C007F, 0, 0}},
    {"rocr copy", {0xC00A0100, 0, 0xC00A0200, 0, 0xC00A0300, 0, 0xC00A0400}},
    {"rocr copy, misaligned", {0xC00A0100, 0, 0xC00A0200, 0, 0xC00A0300, 0, 0}},
}};
constexpr std::uint64_t code_after_descriptor = 256;  // amd_kernel_code_t

}  // namespace

bool word_wait::met_by(std::uint64_t found) const noexcept {
  switch (until) {
    case comparison::at_least:
      return bytes == 4 ? static_cast<std::int32_t>((found & mask) - value) >= 0
                        : static_cast<std::int64_t>((found & mask) - value) >= 0;
    case comparison::equal:
      return (found & mask) == value;
    case comparison::any_bit:
      return (found & mask & value) != 0;
    case comparison::no_all_bits:
      return ((found | value) & mask) != mask;
  }
  return true;
}

std::string_view rocr_kernel_at(const emulated_machine& machine, std::uint64_t descriptor) {
  using words = std::array<std::uint32_t, 7>;
  const auto* const code = machine.word<words>(descriptor + code_after_descriptor);
  if (code == nullptr) {
    return {};
  }
  for (const auto& known : rocr_code) {
    const bool same = std::equal(
        code->begin(), code->end(), known.words.begin(),
        [](std::uint32_t found, std::uint32_t wanted) { return wanted == 0 || found == wanted; });
    if (same) {
      return known.name;
    }
  }
  return {};
}

std::optional<runtime_effect> runtime_effect_of(const emulated_machine& machine,
                                                std::string_view kernel, std::uint64_t arguments) {
  const auto* const known =
      std::find_if(known_kernels.begin(), known_kernels.end(),
                   [&](const runtime_kernel& one) { return one.name == kernel; });
  if (known == known_kernels.end()) {
    return std::nullopt;
  }
  argument_reader reader(machine, arguments);
  auto effect = known->effect(reader);
  return reader.good() ? std::optional(std::move(effect)) : std::nullopt;
}

}  // namespace berth::emulator
