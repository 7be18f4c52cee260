// Encodes documents for tools/compare_tokenizer.py:
//   winnow_encode_file MODEL_DIR DOCUMENTS IDS [--plain] [--repeat N]
// DOCUMENTS: texts, each closed by a NUL byte. IDS: for each text its number of ids, then the ids,
// all little-endian int32. Prints the rate of encoding alone, in CPU time of the last of N rounds,
// and how many texts decode() did not give back.
#include <fmt/format.h>

#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace {

using winnow::text::ControlTokens;

std::vector<std::string> read_documents(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) winnow::throw_error("{}: cannot be read", path);
  std::vector<std::string> documents;
  for (std::string document; std::getline(in, document, '\0');) {
    documents.push_back(std::move(document));
  }
  return documents;
}

// Of this thread: other work on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int run(int argc, char** argv) {
  if (argc < 4)
    winnow::throw_error("usage: {} MODEL_DIR DOCUMENTS IDS [--plain] [--repeat N]", argv[0]);
  ControlTokens control = ControlTokens::kParse;
  int repeat = 1;
  for (int i = 4; i < argc; ++i) {
    if (std::strcmp(argv[i], "--plain") == 0) control = ControlTokens::kPlain;
    if (std::strcmp(argv[i], "--repeat") == 0 && i + 1 < argc) repeat = std::stoi(argv[++i]);
  }
  const auto tokenizer = winnow::text::load_tokenizer(argv[1]);
  const std::vector<std::string> documents = read_documents(argv[2]);
  std::vector<std::vector<int32_t>> ids(documents.size());
  size_t bytes = 0;
  for (const auto& document : documents) bytes += document.size();
  double seconds = 0;
  for (int round = 0; round < repeat; ++round) {
    const double start = cpu_seconds();
    for (size_t i = 0; i < documents.size(); ++i) ids[i] = tokenizer->encode(documents[i], control);
    seconds = cpu_seconds() - start;
  }
  std::ofstream out(argv[3], std::ios::binary);
  size_t count = 0, broken = 0;
  for (size_t i = 0; i < documents.size(); ++i) {
    const auto size = static_cast<int32_t>(ids[i].size());
    out.write(reinterpret_cast<const char*>(&size), sizeof size);
    out.write(reinterpret_cast<const char*>(ids[i].data()), std::streamsize{4} * size);
    count += ids[i].size();
    broken += tokenizer->decode(ids[i], false) != documents[i];
  }
  if (!out.flush()) winnow::throw_error("{}: cannot be written", argv[3]);
  fmt::print("{} documents, {} bytes, {} ids, {:.1f} MB/s, {} not decoded back\n", documents.size(),
             bytes, count, static_cast<double>(bytes) / 1e6 / seconds, broken);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
