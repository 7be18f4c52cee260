// A checkpoint of tests/data with everything to run it, and a plain way to run rows through it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kv/kv_storage.h"
#include "model/decoder.h"
#include "model/step_rows.h"

namespace winnow::testing {

struct FixtureOptions {
  model::Precision precision = model::Precision::kReference;
  layout::LatentLayout latent_layout = layout::LatentLayout::kBf16_1152;  // unless kReference
  layout::IndexKeyLayout index_key_layout = layout::IndexKeyLayout::kFp8_132;
  int32_t page_size = 4;
  int32_t num_pages = 64;
  int32_t max_rows = 128;
  int threads = 1;
};

class LoadedFixture {
 public:
  // name: a folder of tests/data, or an absolute path.
  explicit LoadedFixture(const std::string& name, const FixtureOptions& options = {});

  // Runs the slices as one step and returns the logits of every row, [rows, vocab_size].
  std::vector<float> run(std::span<const model::RowSlice> slices,
                         model::StepObserver* observer = nullptr);
  // One sequence from nothing in steps of at most chunk rows: logits of every token.
  std::vector<float> prefill(std::span<const int32_t> tokens,
                             std::span<const int32_t> pages,
                             int32_t chunk,
                             int32_t start = 0);

  model::ModelConfig config;
  model::Numerics numerics;
  std::unique_ptr<ops::Backend> backend;
  model::ModelWeights weights;
  kv::CachePlan plan;
  std::unique_ptr<model::Decoder> decoder;
  std::unique_ptr<kv::KvStorage> storage;
  std::unique_ptr<model::StepRows> rows;
};

// expected.safetensors of a fixture.
struct Expected {
  explicit Expected(const std::string& name);
  std::span<const float> floats(const std::string& tensor) const;
  std::span<const int32_t> ints(const std::string& tensor) const;
  bool has(const std::string& tensor) const;

 private:
  std::shared_ptr<const model::SafetensorsFile> file_;
};

// Page ids 0 .. count - 1.
std::vector<int32_t> first_pages(int32_t count);

}  // namespace winnow::testing
