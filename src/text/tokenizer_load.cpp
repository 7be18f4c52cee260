#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "text/tokenizer.h"
#include "text/tokenizer_files.h"

namespace winnow::text {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream content;
  if (!in || !(content << in.rdbuf())) throw_error("{}: {}", path.string(), std::strerror(errno));
  return std::move(content).str();
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& model_path) {
  const std::filesystem::path folder(model_path);
  const auto json_path = folder / "tokenizer.json";
  const auto ranks_path = folder / "tiktoken.model";
  const auto config_path = folder / "tokenizer_config.json";
  std::error_code ignored;
  if (std::filesystem::exists(json_path, ignored)) {
    return parse_tokenizer_json(read_file(json_path), json_path.string());
  }
  if (std::filesystem::exists(ranks_path, ignored)) {
    return parse_tiktoken(read_file(ranks_path), ranks_path.string(), read_file(config_path),
                          config_path.string());
  }
  throw_error("{}: neither tokenizer.json nor tiktoken.model", model_path);
}

}  // namespace winnow::text
