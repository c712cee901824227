// SPDX-License-Identifier: Apache-2.0
// Reads a file in two stages on two threads: one reads, decompresses and finds the events, the
// other (the caller's) parses them. A short queue between them bounds the memory.
#include "trace/import/import.hpp"

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "trace/import/byte_source.hpp"
#include "trace/import/event_splitter.hpp"
#include "trace/import/kineto.hpp"

namespace berth::trace {
namespace {

using batch_or_end = result<std::optional<event_batch>>;

// Hands batches from the reading thread to the parsing one. The end and an error are items too.
class batch_queue {
public:
  // Blocks while the queue is full. False when the other side has closed it.
  bool push(batch_or_end item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.size() < capacity || closed_; });
    if (closed_) {
      return false;
    }
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  // Blocks until there is an item.
  batch_or_end pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    auto item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  void close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

private:
  static constexpr std::size_t capacity = 4;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<batch_or_end> items_;
  bool closed_ = false;
};

// Runs the splitter until its end, an error, or until nobody listens any more.
void read_all(event_splitter& splitter, batch_queue& queue) {
  while (true) {
    batch_or_end item = std::optional<event_batch>();
    try {
      item = splitter.next();
    } catch (const std::exception& failure) {
      item = error(errc::internal, fmt::format("reading failed: {}", failure.what()));
    }
    const bool last = !item || !item->has_value();
    if (!queue.push(std::move(item)) || last) {
      return;
    }
  }
}

// Parses batches until the end. On an error the queue is closed, so that the reader stops.
result<void> parse_all(batch_queue& queue, kineto_reader& reader, std::string_view position_note,
                       const std::function<void(std::uint64_t)>& report) {
  while (true) {
    auto item = queue.pop();
    if (!item) {
      return item.error();
    }
    if (!item->has_value()) {
      return {};
    }
    if (auto added = reader.add(**item, position_note); !added) {
      return added;
    }
    report((*item)->file_bytes_read);
  }
}

std::optional<cut> cut_of(const event_splitter& splitter, const kineto_reader& reader,
                          const std::string& path, std::string_view position_note) {
  if (!splitter.ended_early()) {
    return std::nullopt;
  }
  auto message = fmt::format("the file ends at byte {}{}, before its content does",
                             splitter.end_position(), position_note);
  return cut{error(errc::input_truncated, std::move(message), path,
                   "let the profiler finish writing, or copy the file again"),
             reader.seen(), splitter.lost_bytes()};
}

}  // namespace

result<imported> try_import(const std::string& path, const import_options& options) {
  auto source = byte_source::open(path);
  if (!source) {
    return source.error();
  }
  const auto total = source->file_bytes();
  const std::string_view position_note = source->is_compressed() ? " of the decompressed text" : "";
  const auto report = [&](std::uint64_t done) {
    if (options.progress) {
      options.progress(done, total);
    }
  };

  event_splitter splitter(std::move(*source), path);
  kineto_reader reader(path);
  batch_queue queue;
  result<void> parsed;
  {
    const std::jthread reading([&] { read_all(splitter, queue); });
    parsed = parse_all(queue, reader, position_note, report);
    queue.close();
  }
  if (!parsed) {
    return parsed.error();
  }
  auto ending = cut_of(splitter, reader, path, position_note);
  if (ending && reader.seen() == 0) {
    return error(errc::input_truncated,
                 fmt::format("{} and before a first whole event", ending->why.message()), path,
                 ending->why.hint());
  }
  auto events = reader.finish(splitter.members());
  if (!events) {
    return events.error();
  }
  return imported{std::move(*events), std::move(ending)};
}

}  // namespace berth::trace
