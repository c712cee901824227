// SPDX-License-Identifier: Apache-2.0
#include "topology/bundle.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "core/text.hpp"
#include "topology/observe.hpp"

namespace berth::topology {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view bundle_file = "/berth/bundle";
constexpr std::string_view bundle_format = "berth.bundle/1";
// Larger ones are no machine's.
constexpr std::int64_t most_file_bytes = 1 << 20;
constexpr std::int64_t most_bytes_together = 64 << 20;
constexpr std::size_t most_entries = 100'000;

struct archive_end {
  void operator()(archive* of) const noexcept { ::archive_free(of); }
};
using archive_owner = std::unique_ptr<archive, archive_end>;
struct entry_end {
  void operator()(archive_entry* of) const noexcept { ::archive_entry_free(of); }
};
using entry_owner = std::unique_ptr<archive_entry, entry_end>;

std::string message_of(archive* of) {
  const char* const message = ::archive_error_string(of);
  return message == nullptr ? "unknown" : text::printable(message);
}

// What goes into a bundle.
struct tree {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> links;
  std::set<std::string> folders;
};

bool is_within(const std::string& path, const tree& of) {
  const auto begins = [&](const auto& found, const auto& end, const auto& key) {
    return found != end && (key(found) == path || key(found).starts_with(path + "/"));
  };
  const auto first = [](const auto& at) -> const std::string& { return at->first; };
  const auto self = [](const auto& at) -> const std::string& { return *at; };
  return begins(of.files.lower_bound(path), of.files.end(), first) ||
         begins(of.links.lower_bound(path), of.links.end(), first) ||
         begins(of.folders.lower_bound(path), of.folders.end(), self);
}

// Hives by their order, as the reader numbers them: the driver's number is one of the hardware.
void renumber_hives(tree& of) {
  std::vector<std::string> tables;
  for (const auto& [path, text] : of.files) {
    if (path.find("/kfd/topology/nodes/") != std::string::npos && path.ends_with("/properties")) {
      tables.push_back(path);
    }
  }
  std::ranges::sort(tables, {}, [](const auto& path) { return std::pair(path.size(), path); });
  std::map<std::string, std::size_t, std::less<>> numbers;
  for (const auto& path : tables) {
    std::string renumbered;
    for (const auto line : lines_of(of.files[path])) {
      const auto words = text::words(line);
      if (words.size() == 2 && words[0] == "hive_id" && words[1] != "0") {
        const auto found = numbers.try_emplace(std::string(words[1]), numbers.size() + 1).first;
        renumbered += fmt::format("hive_id {}\n", found->second);
      } else {
        renumbered.append(line).append("\n");
      }
    }
    of.files[path] = std::move(renumbered);
  }
}

tree tree_of(const answers& known) {
  tree all;
  std::string unreadable;
  for (const auto& [asked, said] : known) {
    if (said.kind == answer_kind::failed) {
      unreadable += fmt::format("{}{}\t{}\n", static_cast<char>(asked.kind), asked.path, said.text);
    } else if (said.kind == answer_kind::text && asked.kind == question_kind::content) {
      all.files[asked.path] = said.text;
    } else if (said.kind == answer_kind::text && asked.kind == question_kind::real) {
      all.folders.insert(said.text);
      if (said.text != asked.path) {
        all.links[asked.path] = said.text;
      }
    }
  }
  // Names that were only listed stand there as empty folders.
  for (const auto& [asked, said] : known) {
    if (asked.kind != question_kind::names || said.kind != answer_kind::text) {
      continue;
    }
    all.folders.insert(asked.path);
    for (const auto name : lines_of(said.text)) {
      const auto path = fmt::format("{}/{}", asked.path, name);
      if (!is_within(path, all)) {
        all.folders.insert(path);
      }
    }
  }
  renumber_hives(all);
  all.files[std::string(added::unreadable)] = unreadable;
  all.files[std::string(bundle_file)] = fmt::format("{}\n", bundle_format);
  return all;
}

class bundle_writer {
public:
  explicit bundle_writer(fs::path file)
      : file_(std::move(file)), to_(::archive_write_new()), entry_(::archive_entry_new()) {}

  result<void> write(const tree& all) {
    ::archive_write_add_filter_zstd(to_.get());
    ::archive_write_set_format_pax_restricted(to_.get());
    check(::archive_write_open_filename(to_.get(), file_.c_str()));
    if (!failed_) {
      write_entries(all);
    }
    if (failed_) {
      return error(errc::file_unwritable, *failed_, file_.string());
    }
    return {};
  }

private:
  // The library ends the program where it is asked to go on after a failure.
  void write_entries(const tree& all) {
    for (const auto& path : all.folders) {
      begin(path, AE_IFDIR);
      put_header();
    }
    for (const auto& [path, text] : all.files) {
      begin(path, AE_IFREG);
      ::archive_entry_set_size(entry_.get(), static_cast<la_int64_t>(text.size()));
      put_header();
      put_text(text);
    }
    for (const auto& [path, target] : all.links) {
      begin(path, AE_IFLNK);
      ::archive_entry_set_symlink(entry_.get(), target.c_str());
      put_header();
    }
    if (!failed_) {
      check(::archive_write_close(to_.get()));
    }
  }

  void begin(const std::string& path, unsigned type) {
    ::archive_entry_clear(entry_.get());
    ::archive_entry_set_pathname(entry_.get(), path.c_str() + 1);
    ::archive_entry_set_filetype(entry_.get(), type);
    ::archive_entry_set_perm(entry_.get(), type == AE_IFDIR ? 0755 : 0644);
  }
  void put_header() {
    if (!failed_) {
      check(::archive_write_header(to_.get(), entry_.get()));
    }
  }
  void put_text(const std::string& text) {
    if (!failed_ && ::archive_write_data(to_.get(), text.data(), text.size()) < 0) {
      check(ARCHIVE_FATAL);
    }
  }
  void check(int status) {
    if (status < ARCHIVE_WARN && !failed_) {
      failed_ = message_of(to_.get());
    }
  }

  fs::path file_;
  archive_owner to_;
  entry_owner entry_;
  std::optional<std::string> failed_;
};

// A path that stays where it is put: relative, no empty part, no "..".
bool stays_inside(std::string_view path) {
  if (path.empty() || path.starts_with('/') || path.size() > 1024) {
    return false;
  }
  const fs::path whole(path);
  return std::ranges::all_of(whole, [](const fs::path& part) { return part != ".."; });
}

class bundle_reader {
public:
  explicit bundle_reader(fs::path file) : file_(std::move(file)), from_(::archive_read_new()) {}

  result<opened_bundle> read() {
    ::archive_read_support_filter_zstd(from_.get());
    ::archive_read_support_format_tar(from_.get());
    constexpr std::size_t block = 65536;
    if (std::ifstream(file_).fail()) {
      return error(errc::file_unreadable, "it cannot be opened", file_.string());
    }
    if (::archive_read_open_filename(from_.get(), file_.c_str(), block) != ARCHIVE_OK) {
      return no_bundle(message_of(from_.get()));
    }
    auto folder = temporary_folder::create("bundle");
    if (!folder) {
      return folder.error();
    }
    opened_bundle opened(std::move(*folder));
    root_ = opened.root();
    if (auto done = read_entries(); !done) {
      return done.error();
    }
    return opened;
  }

private:
  [[nodiscard]] error no_bundle(const std::string& why) const {
    return error(errc::input_unknown_format, "this is no bundle of berth: " + why, file_.string(),
                 "make one with: berth doctor --gather FILE");
  }
  [[nodiscard]] error malformed(std::string_view path, std::string_view why) const {
    return error(
        errc::input_malformed,
        fmt::format("\"{}\" in the bundle {}", text::shorten(text::printable(path), 80), why),
        file_.string(), "do not use this bundle: berth does not write such");
  }

  result<void> read_entries() {
    archive_entry* entry = nullptr;
    std::size_t count = 0;
    int status = ARCHIVE_OK;
    while ((status = ::archive_read_next_header(from_.get(), &entry)) == ARCHIVE_OK) {
      if (++count > most_entries) {
        return error(errc::input_out_of_range, "the bundle has too many files", file_.string());
      }
      if (auto done = read_entry(entry); !done) {
        return done.error();
      }
    }
    if (status != ARCHIVE_EOF) {
      return no_bundle(message_of(from_.get()));
    }
    std::ifstream mark(root_.string() + std::string(bundle_file));
    std::string format;
    if (!std::getline(mark, format) || format != bundle_format) {
      return no_bundle(
          fmt::format("it has no {}, or another than \"{}\"", bundle_file, bundle_format));
    }
    return make_links();
  }

  result<void> read_entry(archive_entry* entry) {
    const char* const name = ::archive_entry_pathname(entry);
    const std::string path = name == nullptr ? "" : name;
    if (!stays_inside(path)) {
      return malformed(path, "leads out of it");
    }
    std::error_code failed;
    switch (::archive_entry_filetype(entry)) {
      case AE_IFDIR:
        fs::create_directories(root_ / path, failed);
        break;
      case AE_IFREG:
        if (::archive_entry_hardlink(entry) != nullptr) {
          return malformed(path, "is a second name of another file");
        }
        return read_file(path, ::archive_entry_size(entry));
      case AE_IFLNK: {
        // Made at the end, so that no file is written through one.
        const char* const target = ::archive_entry_symlink(entry);
        links_[path] = target == nullptr ? "" : target;
        break;
      }
      default:
        return malformed(path, "is neither file, folder nor link");
    }
    return failed ? result<void>(malformed(path, failed.message())) : result<void>();
  }

  result<void> read_file(const std::string& path, std::int64_t size) {
    together_ += std::max<std::int64_t>(size, 0);
    if (size < 0 || size > most_file_bytes || together_ > most_bytes_together) {
      return error(errc::input_out_of_range, "the bundle is larger than any machine's",
                   file_.string());
    }
    std::string text(static_cast<std::size_t>(size), '\0');
    const auto got = ::archive_read_data(from_.get(), text.data(), text.size());
    if (got != static_cast<la_ssize_t>(text.size())) {
      return malformed(path, "is cut");
    }
    std::error_code failed;
    fs::create_directories((root_ / path).parent_path(), failed);
    std::ofstream file(root_ / path, std::ios::binary);
    file << text << std::flush;
    return file ? result<void>() : result<void>(malformed(path, "cannot be written"));
  }

  result<void> make_links() {
    for (const auto& [path, target] : links_) {
      const bool is_ours = target.starts_with('/') && stays_inside(target.substr(1));
      if (!is_ours) {
        return malformed(path, "is a link out of it");
      }
      std::error_code failed;
      const auto at = root_ / path;
      // Not behind another link, which would lead out of the folder.
      for (auto parent = fs::path(path).parent_path(); !parent.empty();
           parent = parent.parent_path()) {
        if (fs::is_symlink(root_ / parent)) {
          return malformed(path, "lies behind a link");
        }
      }
      fs::create_directories(at.parent_path(), failed);
      fs::create_symlink(target, at, failed);
      if (failed) {
        return malformed(path, "cannot be made a link");
      }
    }
    return {};
  }

  fs::path file_;
  archive_owner from_;
  fs::path root_;
  std::map<std::string, std::string> links_;
  std::int64_t together_ = 0;
};

}  // namespace

result<void> gather(const live_options& options, const std::filesystem::path& into) {
  const auto all = tree_of(observe(options));
  auto part = into;
  part += fmt::format(".part-{}", ::getpid());
  auto written = bundle_writer(part).write(all);
  std::error_code failed;
  if (written) {
    fs::rename(part, into, failed);
  }
  if (!written || failed) {
    std::error_code ignored;
    fs::remove(part, ignored);
    return written ? error(errc::file_unwritable, failed.message(), into.string())
                   : error(errc::file_unwritable, written.error().message(), into.string());
  }
  return {};
}

result<opened_bundle> open_bundle(const std::filesystem::path& file) {
  return bundle_reader(file).read();
}

}  // namespace berth::topology
