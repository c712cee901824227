// SPDX-License-Identifier: Apache-2.0
#include "trace/import/kineto.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <simdjson.h>
#include <nlohmann/json.hpp>

#include "berth/units.hpp"
#include "core/text.hpp"
#include "trace/export/chrome.hpp"
#include "trace/import/api_names.hpp"
#include "trace/import/decimal.hpp"
#include "trace/import/json_scan.hpp"

namespace berth::trace {
namespace {

using namespace std::string_view_literals;
namespace ondemand = simdjson::ondemand;

// Beyond these a number is a fault of the file, not a measurement.
constexpr bytes_t largest_transfer = 1024 * tib;
constexpr std::int64_t longest_time = 366LL * 24 * 3600 * 1'000'000'000;
// Of all events together, so that sums and small multiples of them stay within 64 bits.
constexpr bytes_t largest_sum = 1024 * largest_transfer;
constexpr std::int64_t longest_sum = 20 * longest_time;

enum class category : std::uint8_t {
  ignored,
  kernel,
  copy,
  fill,
  call,
  operator_range,
  python_range,
  user_range,
};

struct category_name {
  std::string_view text;
  category value;
};

// Old Kineto wrote "Memcpy" and "Runtime" where new writes "gpu_memcpy" and "cuda_runtime". The
// GPU's copies of annotations, flows, counters and the profiler's own overhead say nothing new.
constexpr std::array categories{
    category_name{"cpu_op", category::operator_range},
    category_name{"cuda_runtime", category::call},
    category_name{"cuda_driver", category::call},
    category_name{"kernel", category::kernel},
    category_name{"gpu_memcpy", category::copy},
    category_name{"gpu_memset", category::fill},
    category_name{"python_function", category::python_range},
    category_name{"user_annotation", category::user_range},
    category_name{"hip_runtime", category::call},
    category_name{"Kernel", category::kernel},
    category_name{"Memcpy", category::copy},
    category_name{"Memset", category::fill},
    category_name{"Runtime", category::call},
    category_name{"Driver", category::call},
    category_name{"Operator", category::operator_range},
    category_name{"gpu_kernel", category::kernel},
    category_name{"memcpy", category::copy},
    category_name{"memset", category::fill},
};

category category_of(std::string_view text) noexcept {
  for (const auto& candidate : categories) {
    if (candidate.text == text) {
      return candidate.value;
    }
  }
  return category::ignored;
}

enum class field : std::uint8_t {
  correlation,
  device,
  stream,
  bytes,
  source,
  destination,
  kind,
  call_stack,
};
constexpr std::size_t field_count = 8;

struct field_name {
  std::string_view quoted;  // as it stands in the file, with the closing quote
  field value;
};

// Keys of a JSON object with what they stand for. Every key of every event is looked up: eight
// bytes tell all of them apart, and the first byte leaves few to compare.
template <typename Entry, std::size_t Count>
class key_table {
public:
  constexpr explicit key_table(std::array<Entry, Count> entries) : entries_(entries) {
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.quoted < b.quoted; });
    for (std::size_t index = Count; index > 0; --index) {
      const auto quoted = entries_[index - 1].quoted;
      starts_[index - 1] = start_of(quoted);
      first_[static_cast<unsigned char>(quoted.front())] = static_cast<std::uint8_t>(index);
    }
  }

  // Null if the key is not in the table. `raw` points behind the opening quote of a key inside a
  // buffer with padding that is longer than any entry.
  [[nodiscard]] const Entry* find(const char* raw) const noexcept {
    const std::size_t first = first_[static_cast<unsigned char>(*raw)];
    for (std::size_t place = first; place - 1 < Count; ++place) {
      const auto quoted = entries_[place - 1].quoted;
      if (quoted.front() != *raw) {
        break;
      }
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, raw, sizeof bytes);
      if ((bytes & starts_[place - 1].mask) == starts_[place - 1].bytes &&
          (quoted.size() <= sizeof bytes || std::memcmp(raw, quoted.data(), quoted.size()) == 0)) {
        return &entries_[place - 1];
      }
    }
    return nullptr;
  }

private:
  struct start {
    std::uint64_t bytes;
    std::uint64_t mask;  // of the bytes that belong to the key
  };

  static constexpr start start_of(std::string_view quoted) noexcept {
    std::array<char, sizeof(std::uint64_t)> bytes{};
    std::array<char, sizeof(std::uint64_t)> mask{};
    for (std::size_t index = 0; index < std::min(quoted.size(), bytes.size()); ++index) {
      bytes[index] = quoted[index];
      mask[index] = '\xff';
    }
    return {std::bit_cast<std::uint64_t>(bytes), std::bit_cast<std::uint64_t>(mask)};
  }

  std::array<Entry, Count> entries_;
  std::array<start, Count> starts_{};
  std::array<std::uint8_t, 256> first_{};  // place of the first entry with this byte; 0: none
};

constexpr key_table fields(std::array{
    field_name{"correlation\"", field::correlation},
    field_name{"device\"", field::device},
    field_name{"stream\"", field::stream},
    field_name{"bytes\"", field::bytes},
    field_name{"size\"", field::bytes},
    field_name{"src\"", field::source},
    field_name{"dst\"", field::destination},
    field_name{"kind\"", field::kind},
    field_name{"Call stack\"", field::call_stack},
    field_name{"Bytes\"", field::bytes},
    field_name{"sizeBytes\"", field::bytes},
    field_name{"ptr\"", field::destination},
});

// An event's text, as far as it is of interest. The views live until the next event is parsed.
struct raw_event {
  std::string_view phase;
  std::string_view category;
  std::string_view name;
  std::string_view begin;
  std::string_view duration;
  std::string_view process;
  std::string_view thread;
  std::array<std::string_view, field_count> arguments{};

  [[nodiscard]] std::string_view operator[](field which) const noexcept {
    return arguments[static_cast<std::size_t>(which)];
  }
};

// The text of a scalar: of a string without its quotes, of a number as it stands.
simdjson::error_code scalar(ondemand::value value, std::string_view& text) noexcept {
  const auto token = value.raw_json_token();
  if (token.starts_with('"')) {
    return value.get_string().get(text);
  }
  // A null says no more than a member that is not there.
  if (!token.starts_with('{') && !token.starts_with('[') && !token.starts_with('n')) {
    // A token reaches to the next one; the blanks in between are no part of it.
    text = token;
    while (!text.empty() && is_blank(text.back())) {
      text.remove_suffix(1);
    }
  }
  return simdjson::SUCCESS;
}

simdjson::error_code parse_arguments(ondemand::value value, raw_event& event) noexcept {
  ondemand::object arguments;
  if (value.get_object().get(arguments) != simdjson::SUCCESS) {
    return simdjson::SUCCESS;  // "args" of another type carries nothing
  }
  for (auto item : arguments) {
    ondemand::raw_json_string key;
    if (const auto failure = item.key().get(key); failure != simdjson::SUCCESS) {
      return failure;
    }
    if (const auto* const known = fields.find(key.raw())) {
      const auto failure =
          scalar(item.value(), event.arguments[static_cast<std::size_t>(known->value)]);
      if (failure != simdjson::SUCCESS) {
        return failure;
      }
    }
  }
  return simdjson::SUCCESS;
}

struct member_name {
  std::string_view quoted;
  std::string_view raw_event::*target;  // null for "args"
};

constexpr key_table event_members(std::array{
    member_name{"ph\"", &raw_event::phase},
    member_name{"cat\"", &raw_event::category},
    member_name{"name\"", &raw_event::name},
    member_name{"ts\"", &raw_event::begin},
    member_name{"dur\"", &raw_event::duration},
    member_name{"pid\"", &raw_event::process},
    member_name{"tid\"", &raw_event::thread},
    member_name{"args\"", nullptr},
});

simdjson::error_code parse_event(simdjson::simdjson_result<ondemand::value> value,
                                 raw_event& event) noexcept {
  ondemand::object object;
  if (const auto failure = value.get_object().get(object); failure != simdjson::SUCCESS) {
    return failure;
  }
  for (auto item : object) {
    ondemand::raw_json_string key;
    if (const auto failure = item.key().get(key); failure != simdjson::SUCCESS) {
      return failure;
    }
    const auto* const known = event_members.find(key.raw());
    if (known == nullptr) {
      continue;
    }
    const auto failure = known->target != nullptr ? scalar(item.value(), event.*known->target)
                                                  : parse_arguments(item.value(), event);
    if (failure != simdjson::SUCCESS) {
      return failure;
    }
  }
  return simdjson::SUCCESS;
}

// What a call's arguments say of the copy that it starts; only ROCm's traces have them.
struct call_arguments {
  std::optional<bytes_t> bytes;
  std::optional<std::uint64_t> source;
  std::optional<std::uint64_t> destination;
  berth::direction direction = direction::unknown;

  friend bool operator==(const call_arguments&, const call_arguments&) = default;
};

constexpr std::uint32_t unknown_index = std::numeric_limits<std::uint32_t>::max();

constexpr std::array wanted_names{chrome_export_member, "deviceProperties"sv, "distributedInfo"sv,
                                  "cuda_runtime_version"sv, "hip_runtime_version"sv};
// Those of thousands of GPUs would fit.
constexpr std::size_t longest_wanted = mib;

// Nothing unless `object` is one with such a member.
std::optional<std::uint64_t> unsigned_member(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) {
    return std::nullopt;
  }
  const auto found = object.find(name);
  return found != object.end() && found->is_number_unsigned()
             ? std::optional(found->get<std::uint64_t>())
             : std::nullopt;
}

// Of an array of devices; whatever is of another type than it should be is unknown.
std::vector<device> devices_of(const nlohmann::json& value) {
  std::vector<device> devices;
  for (const auto& item : value) {
    const auto index = unsigned_member(item, "id");
    if (!index || *index >= unknown_index) {
      continue;
    }
    device found;
    found.index = static_cast<std::uint32_t>(*index);
    found.memory = unsigned_member(item, "totalGlobalMem");
    if (const auto name = item.find("name"); name != item.end() && name->is_string()) {
      found.name = name->get<std::string>();
    }
    devices.push_back(std::move(found));
  }
  return devices;
}

}  // namespace

struct kineto_batch::state {
  ondemand::parser parser;
  ondemand::document document;
  simdjson::error_code failure = simdjson::UNINITIALIZED;

  // The first stage says that something is wrong, but not where: the first event that fails alone,
  // whose failure counts from then on.
  [[nodiscard]] std::size_t first_failing(const event_batch& batch) {
    std::size_t index = 0;
    for (const auto& piece : batch.events) {
      const char* const text = batch.text.data() + piece.offset;
      const auto alone =
          parser.iterate(text, piece.length, batch.text.size() - piece.offset).get(document);
      if (alone != simdjson::SUCCESS) {
        failure = alone;
        break;
      }
      ++index;
    }
    return index;
  }
};

kineto_batch::kineto_batch() : state_(std::make_unique<state>()) {}
kineto_batch::kineto_batch(kineto_batch&&) noexcept = default;
kineto_batch& kineto_batch::operator=(kineto_batch&&) noexcept = default;
kineto_batch::~kineto_batch() = default;

void kineto_batch::index() {
  static_assert(event_batch::padding >= simdjson::SIMDJSON_PADDING);
  const auto array = events.array();
  const auto offset = static_cast<std::size_t>(array.data() - events.text.data());
  state_->failure = state_->parser.iterate(array.data(), array.size(), events.text.size() - offset)
                        .get(state_->document);
}

struct kineto_reader::state {
  std::string file;
  trace events;
  std::uint64_t seen = 0;
  std::uint64_t of_a_trace = 0;        // events with a phase
  std::uint64_t without_duration = 0;  // complete events that lack it
  std::optional<std::int64_t> first_begin;
  std::int64_t duration_sum = 0;
  bytes_t bytes_sum = 0;
  // By correlation; nothing where calls with different arguments share one.
  std::unordered_map<std::uint64_t, std::optional<call_arguments>> calls;
  std::uint64_t bytes_from_calls = 0;

  // By name: a trace has few names and many events.
  std::vector<std::optional<call_meaning>> call_meanings;
  std::vector<std::optional<copy_meaning>> copy_meanings;

  // The last thread and its texts: events of one thread stand together.
  std::string last_process;
  std::string last_thread;
  std::uint32_t last_thread_index = unknown_index;

  [[nodiscard]] error out_of_range(std::string_view what, std::string_view text) const {
    return error(errc::input_out_of_range, fmt::format("{} '{}' cannot be", what, text));
  }

  [[nodiscard]] result<void> add(const raw_event& raw);
  [[nodiscard]] result<void> fill_times(const raw_event& raw, new_event& event);
  [[nodiscard]] result<void> fill_device(const raw_event& raw, new_event& event);
  [[nodiscard]] result<std::optional<bytes_t>> bytes_of(const raw_event& raw);
  [[nodiscard]] result<void> add_kernel(const raw_event& raw, new_event& event);
  [[nodiscard]] result<void> add_copy(const raw_event& raw, new_event& event);
  [[nodiscard]] result<void> add_fill(const raw_event& raw, new_event& event);
  [[nodiscard]] result<void> add_call(const raw_event& raw, new_event& event);
  void add_range(const raw_event& raw, new_event& event);
  void set_thread(const raw_event& raw, new_event& event);
  [[nodiscard]] std::uint32_t call_site_of(std::string_view stack);

  void join_calls();
  void describe(const std::vector<top_level_member>& members);
  void note_gaps();
};

result<void> kineto_reader::state::fill_times(const raw_event& raw, new_event& event) {
  const auto begin = nanoseconds_of_microseconds(raw.begin);
  if (!begin) {
    return out_of_range("the time \"ts\"", raw.begin);
  }
  const auto duration = nanoseconds_of_microseconds(raw.duration);
  if (!duration || *duration < 0 || *duration > longest_time) {
    return out_of_range("the duration \"dur\"", raw.duration);
  }
  if (!first_begin) {
    first_begin = *begin;
  }
  // Differences of two int64 may overflow; those of their halves cannot.
  if (std::abs(*begin / 2 - *first_begin / 2) > longest_time / 2) {
    return error(errc::input_out_of_range,
                 fmt::format("the time \"ts\" {} us lies more than a year from the first event's",
                             raw.begin));
  }
  duration_sum += *duration;
  if (duration_sum > longest_sum) {
    return error(errc::input_out_of_range, "durations that add up to more than twenty years");
  }
  event.begin = *begin;
  event.duration = *duration;
  return {};
}

result<void> kineto_reader::state::fill_device(const raw_event& raw, new_event& event) {
  // The process and thread of a device activity are its device and stream, which old files have
  // only there.
  stream where;
  const auto device = unsigned_of(raw[field::device].empty() ? raw.process : raw[field::device]);
  if (device && *device < unknown_index) {
    where.device = static_cast<std::uint32_t>(*device);
  }
  where.id = signed_of(raw[field::stream].empty() ? raw.thread : raw[field::stream]);
  event.stream = events.intern_stream(where);
  event.correlation = unsigned_of(raw[field::correlation]);
  return {};
}

result<std::optional<bytes_t>> kineto_reader::state::bytes_of(const raw_event& raw) {
  const auto text = raw[field::bytes];
  if (text.empty()) {
    return std::optional<bytes_t>();
  }
  const auto bytes = unsigned_of(text);
  if (!bytes || *bytes > largest_transfer) {
    return out_of_range("the size", text);
  }
  bytes_sum += *bytes;
  if (bytes_sum > largest_sum) {
    return error(errc::input_out_of_range,
                 fmt::format("sizes that add up to more than {}", format_bytes(largest_sum)));
  }
  return bytes;
}

result<void> kineto_reader::state::add_kernel(const raw_event& raw, new_event& event) {
  const auto own = runtime_kernel(raw.name);
  event.kind = own.value_or(event_kind::kernel);
  if (own) {
    transfer details;
    details.engine = engine::kernel;
    event.transfer = events.add_transfer(details);
  }
  if (auto filled = fill_device(raw, event); !filled) {
    return filled;
  }
  events.add(event);
  return {};
}

result<void> kineto_reader::state::add_copy(const raw_event& raw, new_event& event) {
  if (event.name >= copy_meanings.size()) {
    copy_meanings.resize(std::max<std::size_t>(event.name + 1, 2 * copy_meanings.size()));
  }
  auto& known = copy_meanings[event.name];
  if (!known) {
    known = meaning_of_copy(raw.name).value_or(copy_meaning{});
  }
  auto bytes = bytes_of(raw);
  if (!bytes) {
    return bytes.error();
  }
  transfer details;
  details.bytes = *bytes;
  details.direction = known->direction;
  details.source_kind = known->source;
  details.destination_kind = known->destination;
  event.kind = event_kind::copy;
  event.transfer = events.add_transfer(details);
  if (auto filled = fill_device(raw, event); !filled) {
    return filled;
  }
  events.add(event);
  return {};
}

result<void> kineto_reader::state::add_fill(const raw_event& raw, new_event& event) {
  auto bytes = bytes_of(raw);
  if (!bytes) {
    return bytes.error();
  }
  transfer details;
  details.bytes = *bytes;
  event.kind = event_kind::fill;
  event.transfer = events.add_transfer(details);
  if (auto filled = fill_device(raw, event); !filled) {
    return filled;
  }
  events.add(event);
  return {};
}

result<void> kineto_reader::state::add_call(const raw_event& raw, new_event& event) {
  if (event.name >= call_meanings.size()) {
    call_meanings.resize(std::max<std::size_t>(event.name + 1, 2 * call_meanings.size()));
  }
  auto& known = call_meanings[event.name];
  if (!known) {
    known = meaning_of_call(raw.name);
    if (events.about.api == gpu_api::unknown) {
      events.about.api = known->api;
    }
  }
  event.kind = known->kind;
  event.correlation = unsigned_of(raw[field::correlation]);
  set_thread(raw, event);
  auto bytes = bytes_of(raw);
  if (!bytes) {
    return bytes.error();
  }
  const auto source = unsigned_of(raw[field::source]);
  const auto destination = unsigned_of(raw[field::destination]);
  if (event.kind == event_kind::copy_call && event.correlation &&
      (*bytes || source || destination)) {
    const auto kind = unsigned_of(raw[field::kind]);
    const call_arguments arguments{*bytes, source, destination,
                                   kind ? direction_of_kind(*kind) : direction::unknown};
    const auto [place, is_new] = calls.try_emplace(*event.correlation, arguments);
    if (!is_new && place->second != arguments) {
      place->second.reset();
    }
  }
  if (event.kind == event_kind::allocation || event.kind == event_kind::free) {
    transfer details;
    details.bytes = *bytes;
    details.destination_kind = known->memory;
    details.destination_address = destination;
    event.transfer = events.add_transfer(details);
  }
  events.add(event);
  return {};
}

void kineto_reader::state::add_range(const raw_event& raw, new_event& event) {
  set_thread(raw, event);
  if (const auto stack = raw[field::call_stack]; !stack.empty()) {
    event.call_site = call_site_of(stack);
  }
  events.add(event);
}

void kineto_reader::state::set_thread(const raw_event& raw, new_event& event) {
  if (last_thread_index == unknown_index || raw.thread != last_thread ||
      raw.process != last_process) {
    last_process = raw.process;
    last_thread = raw.thread;
    last_thread_index = events.intern_thread(raw.process, raw.thread);
  }
  event.thread = last_thread_index;
}

// "train.py(12): step;torch/nn/functional.py(5): linear", innermost first.
std::uint32_t kineto_reader::state::call_site_of(std::string_view stack) {
  std::vector<name_id> frames;
  while (!stack.empty()) {
    const auto length = std::min(stack.find(';'), stack.size());
    if (const auto frame = text::trim(stack.substr(0, length)); !frame.empty()) {
      frames.push_back(events.intern(frame));
    }
    stack.remove_prefix(std::min(length + 1, stack.size()));
  }
  return events.intern_call_site(std::move(frames));
}

result<void> kineto_reader::state::add(const raw_event& raw) {
  if (!raw.phase.empty()) {
    ++of_a_trace;
  }
  const auto kind = category_of(raw.category);
  if (raw.phase != "X" || kind == category::ignored) {
    return {};
  }
  if (raw.duration.empty()) {
    ++without_duration;
    return {};
  }
  new_event event;
  if (auto filled = fill_times(raw, event); !filled) {
    return filled;
  }
  event.name = events.intern(raw.name);
  switch (kind) {
    case category::kernel:
      return add_kernel(raw, event);
    case category::copy:
      return add_copy(raw, event);
    case category::fill:
      return add_fill(raw, event);
    case category::call:
      return add_call(raw, event);
    case category::operator_range:
      event.kind = event_kind::operator_range;
      break;
    case category::python_range:
      event.kind = event_kind::python_range;
      break;
    default:
      event.kind = event_kind::user_range;
      break;
  }
  add_range(raw, event);
  return {};
}

// Gives copies what their events lack and their calls have.
void kineto_reader::state::join_calls() {
  if (calls.empty()) {
    return;
  }
  for (row index = 0; index < events.size(); ++index) {
    if (!is_device_activity(events.kind(index))) {
      continue;
    }
    auto* const details = events.details(index);
    const auto correlation = events.correlation(index);
    if (details == nullptr || !correlation) {
      continue;
    }
    const auto call = calls.find(*correlation);
    if (call == calls.end() || !call->second) {
      continue;
    }
    const auto& arguments = *call->second;
    if (!details->bytes && arguments.bytes) {
      details->bytes = arguments.bytes;
      bytes_from_calls += events.kind(index) == event_kind::copy ? 1U : 0U;
    }
    if (details->direction == direction::unknown) {
      details->direction = arguments.direction;
    }
    details->source_address = arguments.source;
    details->destination_address = arguments.destination;
  }
}

void kineto_reader::state::describe(const std::vector<top_level_member>& members) {
  auto& about = events.about;
  about.file = file;
  about.format = "PyTorch/Kineto Chrome trace";
  about.framework = "PyTorch";
  for (const auto& member : members) {
    if (member.text.size() > longest_wanted) {
      continue;
    }
    const auto value = nlohmann::json::parse(member.text, nullptr, false);
    if (member.name == "deviceProperties" && value.is_array()) {
      about.devices = devices_of(value);
    } else if (member.name == "distributedInfo" && value.contains("rank") &&
               value["rank"].is_number_integer()) {
      about.rank = value["rank"].get<std::int64_t>();
    } else if (member.name == "cuda_runtime_version" && value.is_number_unsigned()) {
      const auto version = value.get<std::uint64_t>();
      about.api_version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    } else if (member.name == "hip_runtime_version" && value.is_number_unsigned()) {
      const auto version = value.get<std::uint64_t>();
      about.api_version = fmt::format("{}.{}", version / 10'000'000, version / 100'000 % 100);
    }
  }
}

// Says what the file does not have, so that no reader takes silence for a zero.
void kineto_reader::state::note_gaps() {
  std::uint64_t copies = 0;
  std::uint64_t without_bytes = 0;
  std::uint64_t host_copies = 0;
  std::uint64_t without_kind = 0;
  std::uint64_t without_direction = 0;
  for (row index = 0; index < events.size(); ++index) {
    if (events.kind(index) != event_kind::copy) {
      continue;
    }
    const auto& details = *events.details(index);
    ++copies;
    without_bytes += details.bytes ? 0U : 1U;
    without_direction += details.direction == direction::unknown ? 1U : 0U;
    if (details.direction == direction::host_to_device ||
        details.direction == direction::device_to_host) {
      ++host_copies;
      without_kind += details.host_kind() == memory_kind::unknown ? 1U : 0U;
    }
  }
  auto& notes = events.about.notes;
  const auto note = [&](std::uint64_t count, std::uint64_t of, std::string_view what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} of {} copies {}", count, of, what));
    }
  };
  note(bytes_from_calls, copies,
       "lack their bytes: taken from the arguments of the calls that started them");
  note(without_bytes, copies, "lack their bytes: no rate is given for them");
  note(without_kind, host_copies,
       "do not say whether their host memory is pageable or pinned: not guessed");
  note(without_direction, copies, "do not say their direction");
  if (without_duration > 0) {
    notes.push_back(fmt::format("{} events without a duration are left out", without_duration));
  }
}

kineto_reader::kineto_reader(std::string file) : state_(std::make_unique<state>()) {
  state_->file = std::move(file);
}
kineto_reader::~kineto_reader() = default;

std::span<const std::string_view> kineto_reader::wanted_members() noexcept {
  return wanted_names;
}

result<void> kineto_reader::add(kineto_batch& batch, std::string_view position_note) {
  const auto& pieces = batch.events.events;
  std::size_t index = 0;
  const auto where = [&] {
    const auto offset = index < pieces.size() ? pieces[index].offset : 0;
    return fmt::format("{} at byte {}{}", state_->file, batch.events.position + offset,
                       position_note);
  };
  const auto failed = [&](simdjson::error_code failure) {
    return failure == simdjson::UTF8_ERROR
               ? error(errc::input_encoding, "text that is not UTF-8 in this event", where(),
                       "record the trace again, or repair the name")
               : error(errc::input_malformed,
                       fmt::format("not JSON in this event: {}", simdjson::error_message(failure)),
                       where());
  };
  ondemand::array array;
  if (batch.state_->failure == simdjson::SUCCESS) {
    batch.state_->failure = batch.state_->document.get_array().get(array);
  }
  if (batch.state_->failure != simdjson::SUCCESS) {
    index = batch.state_->first_failing(batch.events);
    return failed(batch.state_->failure);
  }
  for (auto element : array) {
    raw_event raw;
    const auto failure = parse_event(std::move(element), raw);
    if (failure != simdjson::SUCCESS) {
      return failed(failure);
    }
    if (auto added = state_->add(raw); !added) {
      const auto& why = added.error();
      return error(why.code(), why.message(), where());
    }
    ++index;
  }
  state_->seen += index;
  return index == pieces.size() ? result<void>() : failed(simdjson::TAPE_ERROR);
}

void kineto_reader::expect(std::uint64_t events) {
  // More than this is as well taken step by step.
  constexpr std::uint64_t most = 16'000'000;
  const auto kept = static_cast<double>(state_->events.size()) /
                    static_cast<double>(std::max<std::uint64_t>(state_->seen, 1));
  state_->events.reserve(
      static_cast<std::size_t>(kept * static_cast<double>(std::min(events, most))));
}

std::uint64_t kineto_reader::seen() const noexcept {
  return state_->seen;
}

result<trace> kineto_reader::finish(const std::vector<top_level_member>& members) {
  if (state_->seen > 0 && state_->of_a_trace == 0) {
    return error(errc::input_unknown_format, "JSON, but its elements are not trace events",
                 state_->file, "an event of a Chrome trace has a phase \"ph\"");
  }
  if (std::any_of(members.begin(), members.end(), [](const top_level_member& member) {
        return member.name == chrome_export_member;
      })) {
    return error(errc::input_unknown_format, "a trace that berth export wrote for looking at it",
                 state_->file, "analyze the trace that it was made from");
  }
  state_->join_calls();
  state_->describe(members);
  state_->note_gaps();
  return std::move(state_->events);
}

}  // namespace berth::trace
