// SPDX-License-Identifier: Apache-2.0
// Recognises the format, and reads Chrome traces in two stages on two threads: one reads,
// decompresses and finds the events and their structure, the other (the caller's) takes what they
// say. A short queue between them bounds the memory.
#include "trace/import/import.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "trace/import/event_splitter.hpp"
#include "trace/import/kineto.hpp"
#include "trace/import/recording.hpp"
#include "trace/recording/block_reader.hpp"

namespace berth::trace {
namespace {

// Hands batches from the reading thread to the parsing one, and used ones back. A batch without
// events is the end; an error is an item too.
class batch_queue {
public:
  // Blocks while the queue is full. False when the other side has closed it.
  bool push(result<kineto_batch> item) {
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
  result<kineto_batch> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !items_.empty(); });
    auto item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  void give_back(kineto_batch used) {
    const std::scoped_lock lock(mutex_);
    used_.push_back(std::move(used));
  }

  // A used batch, whose memory is warm, or a new one.
  kineto_batch take_used() {
    const std::scoped_lock lock(mutex_);
    if (used_.empty()) {
      return {};
    }
    auto batch = std::move(used_.back());
    used_.pop_back();
    return batch;
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
  std::deque<result<kineto_batch>> items_;
  std::vector<kineto_batch> used_;
  bool closed_ = false;
};

class closing_at_end {
public:
  explicit closing_at_end(batch_queue& queue) : queue_(queue) {}
  ~closing_at_end() { queue_.close(); }
  closing_at_end(const closing_at_end&) = delete;
  closing_at_end& operator=(const closing_at_end&) = delete;

private:
  batch_queue& queue_;
};

result<kineto_batch> read_batch(event_splitter& splitter, kineto_batch batch) {
  try {
    if (auto read = splitter.next(batch.events); !read) {
      return read.error();
    }
    if (!batch.events.events.empty()) {
      batch.index();
    }
    return batch;
  } catch (const std::exception& failure) {
    return error(errc::internal, fmt::format("reading failed: {}", failure.what()));
  }
}

// Runs the splitter until its end, an error, or until nobody listens any more.
void read_all(event_splitter& splitter, batch_queue& queue) {
  while (true) {
    auto item = read_batch(splitter, queue.take_used());
    const bool last = !item || item->events.events.empty();
    if (!queue.push(std::move(item)) || last) {
      return;
    }
  }
}

// Parses batches until the end. `position_note` is for errors.
result<void> parse_all(batch_queue& queue, kineto_reader& reader, std::string_view position_note,
                       std::uint64_t file_bytes, const import_options& options) {
  for (bool first = true;; first = false) {
    auto batch = queue.pop();
    if (!batch) {
      return batch.error();
    }
    if (batch->events.events.empty()) {
      return {};
    }
    if (auto added = reader.add(*batch, position_note); !added) {
      return added;
    }
    const auto done = batch->events.file_bytes_read;
    if (first && done > 0) {
      reader.expect(reader.seen() * file_bytes / done);
    }
    if (options.progress) {
      options.progress(done, file_bytes);
    }
    queue.give_back(std::move(*batch));
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
  return try_import(std::move(*source), options);
}

namespace {

result<imported> import_kineto(byte_source source, const import_options& options) {
  const auto path = source.name();
  const auto file_bytes = source.file_bytes();
  const std::string_view position_note = source.is_compressed() ? " of the decompressed text" : "";

  event_splitter splitter(std::move(source), kineto_reader::wanted_members());
  kineto_reader reader(path);
  batch_queue queue;
  result<void> parsed;
  {
    const std::jthread reading([&] { read_all(splitter, queue); });
    // Goes before the thread does, also when parsing throws: the thread may wait for room.
    const closing_at_end closing(queue);
    parsed = parse_all(queue, reader, position_note, file_bytes, options);
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

}  // namespace

result<imported> try_import(byte_source source, const import_options& options) {
  auto first = source.peek(recording::file_magic.size());
  if (!first) {
    return first.error();
  }
  return recording::is_recording(*first) ? import_recording(std::move(source), options)
                                         : import_kineto(std::move(source), options);
}

}  // namespace berth::trace
