// The samples of one evaluation on disk: a line with what was asked of whom, then a line an answer,
// each written as it comes. What a killed run leaves behind can be read and gone on with.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "eval/sample.h"

namespace winnow::eval {

struct SampleFileHeader {
  std::string task;
  std::string model;
  std::string server;  // its URL
  int64_t repeats = 1;
  int64_t num_questions = 0;
  std::string common_prefix;
  json::Object settings;  // what scores depend on: data, scorer, sampling, limits
};

json::Value to_json(const SampleFileHeader& header);
Result<SampleFileHeader> header_from_json(const json::Value& value);

class SampleFile {
 public:
  // Starts a file; its folder is made. Throws Error when there is one already, and leaves none
  // where not even the header can be written.
  static SampleFile create(const std::string& path, const SampleFileHeader& header);
  // Goes on with a file. A last line that is not whole is cut off. Throws Error when the header
  // differs in anything but the server, naming the setting, or another run is writing the file.
  static SampleFile resume(const std::string& path, const SampleFileHeader& header);

  SampleFile(SampleFile&& other) noexcept;
  SampleFile& operator=(SampleFile&&) = delete;
  SampleFile(const SampleFile&) = delete;
  SampleFile& operator=(const SampleFile&) = delete;
  ~SampleFile();

  // The line is with the system when this returns. Throws Error when the disk is full; the file
  // then ends with the last whole line.
  void append(const Sample& sample);
  const std::string& path() const { return path_; }

 private:
  SampleFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  void lock();  // two runs of one file would mix their lines
  void write_line(std::string line);

  std::string path_;
  std::FILE* file_ = nullptr;
  int64_t whole_bytes_ = 0;  // of whole lines
};

// Reads line by line: one answer in memory at a time. A last line without its end is left out.
// Throws Error naming the line.
SampleFileHeader read_samples(const std::string& path,
                              const std::function<void(Sample sample)>& on_sample);

// The header alone.
SampleFileHeader read_sample_header(const std::string& path);

// "" where two headers ask the same in the same way, else the name of what differs.
std::string first_difference(const SampleFileHeader& a, const SampleFileHeader& b);

}  // namespace winnow::eval
