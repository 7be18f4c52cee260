#include "server/server_config.h"

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "server/limits.h"
#include "server/protocol_reader.h"

namespace winnow::server {

SamplingDefaults load_sampling_defaults(const std::string& model_path) {
  const std::string path = model_path + "/generation_config.json";
  if (!std::filesystem::exists(path)) return {};
  Result<json::Value> parsed = parse_object(read_file(path));
  if (!parsed.ok()) throw_error("{}: {}", path, parsed.status().message);
  ObjectReader reader(parsed.value());
  constexpr double kBig = 1e30;
  SamplingDefaults defaults;
  // do_sample false with a temperature beside it is how some checkpoints say greedy.
  const bool do_sample = reader.boolean("do_sample", true);
  defaults.temperature = reader.number("temperature", {0, kBig});
  if (!do_sample) defaults.temperature = 0.0;
  defaults.top_p = reader.number("top_p", {0, 1, true});
  defaults.min_p = reader.number("min_p", {0, 1});
  defaults.repetition_penalty = reader.number("repetition_penalty", {kMinRepetitionPenalty, 2});
  defaults.top_k = reader.integer("top_k", -1, INT32_MAX);
  if (defaults.top_k == 0) defaults.top_k = -1;  // transformers: 0 turns the filter off
  if (!reader.ok()) throw_error("{}: {}", path, reader.status().message);
  return defaults;
}

}  // namespace winnow::server
