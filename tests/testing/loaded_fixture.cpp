#include "testing/loaded_fixture.h"

#include <algorithm>
#include <numeric>

#include "backends/backends.h"
#include "base/error.h"
#include "base/progress.h"
#include "testing/paths.h"

namespace winnow::testing {

LoadedFixture::LoadedFixture(const std::string& name, const FixtureOptions& options) {
  const std::string path = name.starts_with('/') ? name : data_path(name);
  config = model::load_config(path);
  numerics = model::choose_numerics(config, options.precision, options.latent_layout,
                                    options.index_key_layout);
  backend = backends::make_cpu(options.threads);
  Progress progress(Progress::Style::kSilent);
  weights = model::load_weights(
      config, std::make_shared<const model::Checkpoint>(path), *backend,
      {.reference_precision = options.precision == model::Precision::kReference}, progress);
  plan = model::plan_cache(config, numerics, options.page_size);
  const int32_t max_context = options.num_pages * options.page_size;
  decoder =
      std::make_unique<model::Decoder>(config, numerics, weights, plan,
                                       model::DecoderLimits{.max_rows = options.max_rows,
                                                            .max_logit_rows = options.max_rows,
                                                            .max_context = max_context},
                                       *backend);
  storage = std::make_unique<kv::KvStorage>(
      plan, options.num_pages, [&](int64_t bytes) { return backend->allocate(bytes); });
  rows = std::make_unique<model::StepRows>(options.max_rows, 16, max_context, options.page_size,
                                           *backend);
}

std::vector<float> LoadedFixture::run(std::span<const model::RowSlice> slices,
                                      model::StepObserver* observer) {
  rows->clear();
  for (const model::RowSlice& slice : slices) rows->add(slice);
  decoder->forward(rows->commit(), *storage, observer);
  std::vector<int32_t> all(rows->num_rows());
  std::iota(all.begin(), all.end(), 0);
  const float* logits = decoder->logits(rows->commit_indices(all), rows->num_rows());
  return {logits, logits + int64_t{rows->num_rows()} * config.vocab_size};
}

std::vector<float> LoadedFixture::prefill(std::span<const int32_t> tokens,
                                          std::span<const int32_t> pages,
                                          int32_t chunk,
                                          int32_t start) {
  std::vector<float> logits;
  const auto total = static_cast<int32_t>(tokens.size());
  for (; start < total; start += chunk) {
    const model::RowSlice slice{.tokens = tokens,
                                .start = start,
                                .num_rows = std::min(chunk, total - start),
                                .pages = pages};
    const std::vector<float> part = run({&slice, 1});
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

Expected::Expected(const std::string& name)
    : file_(std::make_shared<model::SafetensorsFile>(data_path(name) + "/expected.safetensors")) {}

namespace {

const model::TensorEntry* find(const model::SafetensorsFile& file, const std::string& name) {
  for (const model::TensorEntry& entry : file.tensors()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

template <typename T>
std::span<const T> elements(const model::SafetensorsFile& file, const std::string& name) {
  const model::TensorEntry* entry = find(file, name);
  WINNOW_CHECK(entry != nullptr, "{} has no {}", file.path(), name);
  return {reinterpret_cast<const T*>(file.data(*entry)), static_cast<size_t>(entry->elements())};
}

}  // namespace

std::span<const float> Expected::floats(const std::string& tensor) const {
  return elements<float>(*file_, tensor);
}
std::span<const int32_t> Expected::ints(const std::string& tensor) const {
  return elements<int32_t>(*file_, tensor);
}
bool Expected::has(const std::string& tensor) const { return find(*file_, tensor) != nullptr; }

std::vector<int32_t> first_pages(int32_t count) {
  std::vector<int32_t> pages(count);
  std::iota(pages.begin(), pages.end(), 0);
  return pages;
}

}  // namespace winnow::testing
