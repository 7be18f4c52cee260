#include "eval/sample_file.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"

namespace winnow::eval {
namespace {

constexpr std::string_view kFormat = "winnow eval samples 1";

// The whole lines of a file, one after the other.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}
  bool next(std::string_view& line) {
    const size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return true;
  }
  int64_t number() const { return number_; }
  size_t whole_bytes() const { return at_; }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int64_t number_ = 0;
};

SampleFileHeader read_header(const std::string& path, Lines& lines) {
  std::string_view line;
  if (!lines.next(line)) throw_error("{}: is no samples file: it has no whole line", path);
  const Result<json::Value> parsed = json::parse(line);
  if (!parsed.ok()) throw_error("{}:1: {}", path, parsed.status().message);
  Result<SampleFileHeader> header = header_from_json(parsed.value());
  if (!header.ok()) throw_error("{}:1: {}", path, header.status().message);
  return std::move(header.value());
}

std::FILE* open_file(const std::string& path, const char* mode) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (file == nullptr) throw_error("{}: cannot be written: {}", path, std::strerror(errno));
  std::setvbuf(file, nullptr, _IONBF, 0);  // a line is one write, and a refused one is not kept
  return file;
}

}  // namespace

json::Value to_json(const SampleFileHeader& h) {
  return json::Object{{"format", kFormat},
                      {"eval", h.task},
                      {"model", h.model},
                      {"server", h.server},
                      {"repeats", h.repeats},
                      {"num_questions", h.num_questions},
                      {"common_prefix", h.common_prefix},
                      {"settings", h.settings}};
}

Result<SampleFileHeader> header_from_json(const json::Value& value) {
  const json::Value* format = value.find("format");
  if (format == nullptr || !format->is_string() || format->as_string() != kFormat) {
    return invalid_argument("format", "is no samples file: \"format\" must be \"{}\"", kFormat);
  }
  for (const char* name : {"eval", "model", "server", "common_prefix"}) {
    const json::Value* field = value.find(name);
    if (field == nullptr || !field->is_string()) {
      return invalid_argument(name, "\"{}\" must be text", name);
    }
  }
  for (const char* name : {"repeats", "num_questions"}) {
    const json::Value* field = value.find(name);
    if (field == nullptr || !field->is_integer() || field->as_integer() < 1) {
      return invalid_argument(name, "\"{}\" must be a whole number from 1 on", name);
    }
  }
  const json::Value* settings = value.find("settings");
  if (settings == nullptr || !settings->is_object()) {
    return invalid_argument("settings", "\"settings\" must be an object");
  }
  return SampleFileHeader{.task = value.find("eval")->as_string(),
                          .model = value.find("model")->as_string(),
                          .server = value.find("server")->as_string(),
                          .repeats = value.find("repeats")->as_integer(),
                          .num_questions = value.find("num_questions")->as_integer(),
                          .common_prefix = value.find("common_prefix")->as_string(),
                          .settings = settings->as_object()};
}

std::string first_difference(const SampleFileHeader& a, const SampleFileHeader& b) {
  if (a.task != b.task) return "eval";
  if (a.repeats != b.repeats) return "repeats";
  if (a.num_questions != b.num_questions) return "num_questions";
  const json::Value left = a.settings;
  const json::Value right = b.settings;
  for (const auto& [name, value] : a.settings) {
    const json::Value* other = right.find(name);
    if (other == nullptr || !(*other == value)) return name;
  }
  for (const auto& [name, value] : b.settings) {
    if (left.find(name) == nullptr) return name;
  }
  return a.common_prefix == b.common_prefix ? "" : "common_prefix";
}

SampleFile SampleFile::create(const std::string& path, const SampleFileHeader& header) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (failed) throw_error("{}: cannot be made: {}", folder.string(), failed.message());
  if (std::filesystem::exists(path)) {
    throw_error("{}: is there already; --resume {} goes on with it", path, path);
  }
  SampleFile samples(path, open_file(path, "abx"));
  samples.lock();
  try {
    samples.write_line(json::dump(to_json(header)));
  } catch (const Error&) {
    std::filesystem::remove(path, failed);  // nothing to go on with
    throw;
  }
  return samples;
}

SampleFile SampleFile::resume(const std::string& path, const SampleFileHeader& header) {
  if (!std::filesystem::exists(path)) throw_error("--resume {}: is not there", path);
  SampleFile samples(path, open_file(path, "ab+"));
  samples.lock();
  size_t whole_bytes = 0;
  {
    const MappedFile mapped(path);
    Lines lines(mapped.text());
    const SampleFileHeader written = read_header(path, lines);
    std::string difference = first_difference(written, header);
    if (difference.empty() && written.model != header.model) difference = "model";
    if (!difference.empty()) {
      throw_error("--resume {}: was begun with another \"{}\": the scores would not be of one kind",
                  path, difference);
    }
    std::string_view line;
    while (lines.next(line)) {
    }
    whole_bytes = lines.whole_bytes();
  }
  std::error_code failed;
  std::filesystem::resize_file(path, whole_bytes, failed);
  if (failed) throw_error("{}: cannot be written: {}", path, failed.message());
  samples.whole_bytes_ = static_cast<int64_t>(whole_bytes);
  return samples;
}

SampleFile::SampleFile(SampleFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, nullptr)),
      whole_bytes_(other.whole_bytes_) {}

SampleFile::~SampleFile() {
  if (file_ != nullptr) std::fclose(file_);
}

void SampleFile::lock() {
  if (::flock(::fileno(file_), LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) throw_error("{}: another run is writing it", path_);
}

void SampleFile::write_line(std::string line) {
  line.push_back('\n');
  if (std::fwrite(line.data(), 1, line.size(), file_) == line.size()) {
    whole_bytes_ += static_cast<int64_t>(line.size());
    return;
  }
  // What there was room for must not stand in front of the next line.
  const int failure = errno;
  const bool cut = ::ftruncate(::fileno(file_), whole_bytes_) == 0;
  throw_error("{}: cannot be written: {}{}", path_, std::strerror(failure),
              cut ? "" : ", and its last line is not whole");
}

void SampleFile::append(const Sample& sample) {
  try {
    write_line(json::dump(to_json(sample)));
  } catch (const Error& error) {
    throw_error("{}; --resume {} goes on once it can", error.what(), path_);
  }
}

SampleFileHeader read_sample_header(const std::string& path) {
  const MappedFile mapped(path);
  Lines lines(mapped.text());
  return read_header(path, lines);
}

SampleFileHeader read_samples(const std::string& path,
                              const std::function<void(Sample sample)>& on_sample) {
  const MappedFile mapped(path);
  Lines lines(mapped.text());
  SampleFileHeader header = read_header(path, lines);
  std::string_view line;
  while (lines.next(line)) {
    const Result<json::Value> parsed = json::parse(line);
    if (!parsed.ok()) throw_error("{}:{}: {}", path, lines.number(), parsed.status().message);
    Result<Sample> sample = sample_from_json(parsed.value());
    if (!sample.ok()) throw_error("{}:{}: {}", path, lines.number(), sample.status().message);
    on_sample(std::move(sample.value()));
  }
  return header;
}

}  // namespace winnow::eval
