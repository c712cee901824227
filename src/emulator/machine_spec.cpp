// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine_spec.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace berth::emulator {
namespace {

constexpr std::string_view heading = "berth-emulator 1";
constexpr std::array<std::string_view, 5> fault_names = {
    "allocation-fails", "queue-fails", "kernel-faults", "copy-slow", "copy-corrupt"};

template <typename Number>
std::string text_of(Number value) {
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

// One line: a word and values with a blank between them. A text value takes the rest of the line.
class line_writer {
public:
  line_writer(std::string& out, std::string_view word) : out_(out) { out_ += word; }
  line_writer(const line_writer&) = delete;
  line_writer& operator=(const line_writer&) = delete;
  ~line_writer() { out_ += '\n'; }

  template <typename Number>
  line_writer& number(Number value) {
    out_ += ' ';
    out_ += text_of(value);
    return *this;
  }
  line_writer& text(std::string_view value) {
    out_ += ' ';
    out_ += value;
    return *this;
  }
  line_writer& curve(const cost_curve& value) {
    number(value.tail_ns_per_byte);
    for (const auto& knot : value.knots) {
      number(knot.bytes).number(knot.ns);
    }
    return *this;
  }

private:
  std::string& out_;
};

class line_reader {
public:
  explicit line_reader(std::string_view line) : rest_(line) {}

  std::string_view word() {
    const auto end = std::min(rest_.find(' '), rest_.size());
    const auto found = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return found;
  }
  template <typename Number>
  Number number() {
    Number value{};
    const auto text = word();
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    good_ = good_ && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    return value;
  }
  template <typename Enum>
  Enum choice(std::size_t count) {
    const auto value = number<std::uint64_t>();
    good_ = good_ && value < count;
    return good_ ? static_cast<Enum>(value) : Enum{};
  }
  std::string text() { return std::string(std::exchange(rest_, {})); }
  cost_curve curve() {
    cost_curve read;
    read.tail_ns_per_byte = number<double>();
    while (good_ && !rest_.empty()) {
      const auto bytes = number<std::uint64_t>();
      read.knots.push_back({bytes, number<double>()});
    }
    return read;
  }
  [[nodiscard]] bool good() const { return good_; }

private:
  std::string_view rest_;
  bool good_ = true;
};

bool read_line(line_reader& line, machine_spec& into) {
  const auto word = line.word();
  if (word == "name") {
    into.name = line.text();
  } else if (word == "memory") {
    into.memory_file = line.text();
  } else if (word == "slice") {
    into.slice_bytes = line.number<std::uint64_t>();
  } else if (word == "trace") {
    into.trace_file = line.text();
  } else if (word == "kernels") {
    into.kernel_library = line.text();
  } else if (word == "settings") {
    into.xnack_can = line.choice<xnack_support>(2);
    into.xnack = line.choice<xnack_mode>(2);
    into.numa = line.choice<numa_nodes>(2);
  } else if (word == "gpu") {
    gpu_spec gpu;
    gpu.kfd_id = line.number<std::uint32_t>();
    gpu.kfd_node = line.number<std::uint32_t>();
    gpu.render_minor = line.number<std::uint32_t>();
    gpu.memory = line.number<std::uint64_t>();
    gpu.title = line.text();
    into.gpus.push_back(std::move(gpu));
  } else if (word == "cost" && !into.gpus.empty()) {
    const auto what = line.choice<transfer>(transfer_count);
    const auto by = line.choice<carrier>(carrier_count);
    into.gpus.back().cost(what, by) = line.curve();
  } else if (word == "peer") {
    peer_spec peer;
    peer.from = line.number<std::uint32_t>();
    peer.to = line.number<std::uint32_t>();
    peer.cost = line.curve();
    into.peers.push_back(std::move(peer));
  } else if (word == "fault") {
    fault_spec fault;
    fault.kind = line.choice<fault_kind>(fault_names.size());
    fault.nth = line.number<std::uint64_t>();
    fault.at_least = line.number<std::uint64_t>();
    fault.delay_ns = line.number<std::uint64_t>();
    fault.only = line.text();
    into.faults.push_back(std::move(fault));
  } else {
    return false;
  }
  return line.good();
}

void write_gpu(std::string& out, const gpu_spec& gpu) {
  line_writer(out, "gpu")
      .number(gpu.kfd_id)
      .number(gpu.kfd_node)
      .number(gpu.render_minor)
      .number(gpu.memory)
      .text(gpu.title);
  for (std::size_t what = 0; what < transfer_count; ++what) {
    for (std::size_t by = 0; by < carrier_count; ++by) {
      if (!gpu.costs[what][by].knots.empty()) {
        line_writer(out, "cost").number(what).number(by).curve(gpu.costs[what][by]);
      }
    }
  }
}

}  // namespace

double cost_curve::nanoseconds(std::uint64_t bytes) const noexcept {
  if (knots.empty()) {
    return 0;
  }
  const auto above = std::find_if(knots.begin(), knots.end(),
                                  [&](const curve_knot& knot) { return knot.bytes > bytes; });
  if (above == knots.begin()) {
    return knots.front().ns;
  }
  const auto& below = *(above - 1);
  const auto beyond = static_cast<double>(bytes - below.bytes);
  if (above == knots.end()) {
    return below.ns + beyond * tail_ns_per_byte;
  }
  return below.ns +
         beyond * (above->ns - below.ns) / static_cast<double>(above->bytes - below.bytes);
}

std::string write_spec(const machine_spec& spec) {
  std::string out(heading);
  out += '\n';
  line_writer(out, "name").text(spec.name);
  line_writer(out, "slice").number(spec.slice_bytes);
  line_writer(out, "memory").text(spec.memory_file);
  line_writer(out, "trace").text(spec.trace_file);
  line_writer(out, "kernels").text(spec.kernel_library);
  line_writer(out, "settings")
      .number(static_cast<unsigned>(spec.xnack_can))
      .number(static_cast<unsigned>(spec.xnack))
      .number(static_cast<unsigned>(spec.numa));
  for (const auto& gpu : spec.gpus) {
    write_gpu(out, gpu);
  }
  for (const auto& peer : spec.peers) {
    line_writer(out, "peer").number(peer.from).number(peer.to).curve(peer.cost);
  }
  for (const auto& fault : spec.faults) {
    line_writer(out, "fault")
        .number(static_cast<unsigned>(fault.kind))
        .number(fault.nth)
        .number(fault.at_least)
        .number(fault.delay_ns)
        .text(fault.only);
  }
  return out;
}

std::optional<machine_spec> read_spec(std::string_view text) {
  machine_spec read;
  bool first = true;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line_reader reader(line);
    if (first ? line != heading : !read_line(reader, read)) {
      return std::nullopt;
    }
    first = false;
  }
  return first ? std::nullopt : std::optional(std::move(read));
}

std::string_view to_string(fault_kind value) noexcept {
  const auto index = static_cast<std::size_t>(value);
  return index < fault_names.size() ? fault_names[index] : "unknown";
}

std::optional<fault_kind> parse_fault_kind(std::string_view text) noexcept {
  const auto* const found = std::find(fault_names.begin(), fault_names.end(), text);
  return found == fault_names.end()
             ? std::nullopt
             : std::optional(static_cast<fault_kind>(found - fault_names.begin()));
}

}  // namespace berth::emulator
