#include "testing/op_cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "layout/float_formats.h"

namespace winnow::testing {

using layout::IndexKeyLayout;
using layout::LatentLayout;
using ops::IndexFormat;

ops::ModelShape case_shape() {
  ops::ModelShape s;
  s.hidden_size = 512;
  s.vocab_size = 64;
  s.num_attention_heads = 128;
  s.q_lora_rank = 256;
  s.kv_lora_rank = 512;
  s.qk_nope_head_dim = 256;
  s.qk_rope_head_dim = 64;
  s.v_head_dim = 256;
  s.index_n_heads = 64;
  s.index_head_dim = 128;
  s.index_topk = 2048;
  s.intermediate_size = 1024;
  s.moe_intermediate_size = 256;
  s.n_routed_experts = 256;
  s.num_experts_per_tok = 8;
  s.max_rows = 1024;
  s.max_context = 16384;
  s.index_logits_budget_bytes = int64_t{16} << 20;
  return s;
}

// ---- linear -------------------------------------------------------------------------------

std::vector<LinearCase> linear_cases() {
  std::vector<LinearCase> cases;
  const auto add = [&](int64_t rows, int64_t in, int64_t out) {
    for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kE4m3}) {
      for (const bool fp8 : {false, true}) {
        if (fp8 && dtype != DType::kE4m3) continue;
        cases.push_back({std::string(to_string(dtype)) + (fp8 ? "_act8" : "") + "_" +
                             std::to_string(rows) + "x" + std::to_string(in) + "x" +
                             std::to_string(out),
                         rows, in, out, dtype, fp8});
      }
    }
  };
  for (const int64_t rows : {1, 2, 3, 4, 5, 33}) add(rows, 512, 130);
  for (const int64_t in : {1, 7, 24, 96, 127, 128, 129, 192, 200, 257}) add(3, in, 9);
  for (const int64_t out : {1, 2, 23, 97, 576}) add(7, 136, out);
  add(130, 320, 200);
  return cases;
}

ops::LinearWeight StoredWeight::view() const {
  return {bytes.data(), dtype, dtype == DType::kE4m3 ? scale.data() : nullptr, out, in};
}

double StoredWeight::value(int64_t row, int64_t column) const {
  const int64_t at = row * in + column;
  const uint8_t* from = bytes.data() + at * bytes_of(dtype);
  uint16_t half;
  float single;
  switch (dtype) {
    case DType::kE4m3:
      return static_cast<double>(layout::e4m3_to_f32(*from)) *
             scale[static_cast<size_t>(row / 128 * ((in + 127) / 128) + column / 128)];
    case DType::kBf16:
      std::memcpy(&half, from, 2);
      return layout::bf16_to_f32(half);
    case DType::kF16:
      std::memcpy(&half, from, 2);
      return layout::f16_to_f32(half);
    default:
      std::memcpy(&single, from, 4);
      return single;
  }
}

StoredWeight make_weight(DType dtype, int64_t out, int64_t in, uint64_t seed) {
  CaseRandom random(seed);
  StoredWeight w;
  w.dtype = dtype;
  w.out = out;
  w.in = in;
  w.bytes.resize(static_cast<size_t>(out * in * bytes_of(dtype)));
  for (int64_t i = 0; i < (out + 127) / 128 * ((in + 127) / 128); ++i) {
    w.scale.push_back((0.5f + random.uniform()) / 448.0f);  // not a power of two
  }
  for (int64_t i = 0; i < out * in; ++i) {
    uint8_t* to = w.bytes.data() + i * bytes_of(dtype);
    const float value = random.normal();
    switch (dtype) {
      case DType::kE4m3:
        // Every 16th weight is one of the smallest codes: subnormals must read right.
        *to = i % 16 == 5 ? static_cast<uint8_t>(random.next() & 0x8fu)
                          : layout::f32_to_e4m3(value * 100);
        break;
      case DType::kBf16: {
        const uint16_t bits = layout::f32_to_bf16(value);
        std::memcpy(to, &bits, 2);
        break;
      }
      case DType::kF16: {  // any finite half
        const auto bits = static_cast<uint16_t>((random.next() & 0x83ffu) |
                                                (static_cast<uint64_t>(random.below(18)) << 10));
        std::memcpy(to, &bits, 2);
        break;
      }
      default:
        std::memcpy(to, &value, 4);
    }
  }
  return w;
}

// ---- attention ----------------------------------------------------------------------------

std::vector<AttentionCase> attention_cases() {
  constexpr LatentLayout kLayouts[] = {LatentLayout::kF32, LatentLayout::kBf16_1152,
                                       LatentLayout::kFp8_656, LatentLayout::kFp8_644,
                                       LatentLayout::kFp8_576};
  std::vector<AttentionCase> cases;
  for (const LatentLayout layout : kLayouts) {
    const std::string name = layout::to_string(layout);
    // Real widths, all heads of a rank or a model; lengths at page and group borders.
    cases.push_back(
        {name + "_wide", layout, 8, 512, 64, 64, 128, {{62, 3}, {127, 3}, {0, 1}, {299, 1}}, 320});
    // Small widths, odd pages, padded page strides (B31).
    cases.push_back({name + "_small", layout, 3, 40, 8, 7, 24, {{0, 9}, {62, 4}}, 80});
    cases.push_back({name + "_page1", layout, 5, 130, 16, 1, 4, {{30, 2}}, 64});
  }
  for (const int32_t heads : {1, 2, 6, 7, 16, 64, 127, 128}) {
    cases.push_back({"heads_" + std::to_string(heads),
                     LatentLayout::kBf16_1152,
                     heads,
                     64,
                     16,
                     64,
                     0,
                     {{70, 2}},
                     96});
  }
  for (const SlotPattern pattern :
       {SlotPattern::kHolesBefore, SlotPattern::kNone, SlotPattern::kHolesBetween,
        SlotPattern::kLastOnly, SlotPattern::kBeyondPool}) {
    cases.push_back({"pattern_" + std::to_string(static_cast<int>(pattern)),
                     LatentLayout::kFp8_656,
                     4,
                     128,
                     16,
                     64,
                     0,
                     {{99, 2}},
                     256,
                     pattern});
  }
  cases.push_back({"long", LatentLayout::kFp8_656, 2, 128, 16, 64, 0, {{2046, 3}}, 2048});
  cases.push_back({"longer", LatentLayout::kBf16_1152, 2, 40, 8, 64, 0, {{4199, 1}}, 4200});
  return cases;
}

namespace {

std::vector<int32_t> slot_list(const AttentionCase& c, const PagedRows& rows, int64_t row) {
  std::vector<int32_t> visible;
  const int64_t count = rows.positions[static_cast<size_t>(row)] + 1;
  for (int64_t s = 0; s < std::min<int64_t>(count, c.topk); ++s) {
    visible.push_back(static_cast<int32_t>(rows.row_slot(row, s)));
  }
  std::vector<int32_t> list;
  switch (c.pattern) {
    case SlotPattern::kVisible:
      list = visible;
      break;
    case SlotPattern::kHolesBefore:
      list.assign(64, -1);
      list.insert(list.end(), visible.begin(), visible.end());
      break;
    case SlotPattern::kNone:
      list.assign(100, -1);
      break;
    case SlotPattern::kHolesBetween:
      for (const int32_t slot : visible) list.insert(list.end(), {slot, -1});
      break;
    case SlotPattern::kLastOnly:
      list.assign(200, -1);
      list.push_back(visible.back());
      break;
    case SlotPattern::kBeyondPool:
      for (const int32_t slot : visible) {
        list.insert(list.end(), {slot, rows.num_pages * rows.page_size + slot});
      }
      break;
  }
  return list;
}

}  // namespace

AttentionData make_attention(const AttentionCase& c, uint64_t page_seed) {
  const layout::LatentGeometry geometry{c.layout, c.kv_lora_rank, c.qk_rope_head_dim, c.page_size};
  PagedRows rows = make_paged_rows(c.seqs, c.page_size, 3, page_seed);
  AttentionData data{
      rows, LatentBytes(geometry, rows.num_pages, c.padding_bytes, 1.0f / 64), {}, {}, {}, {}, 0};
  fill(data.cache, data.rows, 11);
  CaseRandom random(12);
  const int64_t heads = int64_t{rows.num_rows()} * c.num_heads;
  data.q_latent = random.bf16_normals(heads * c.kv_lora_rank);
  data.q_rope = random.bf16_normals(heads * c.qk_rope_head_dim);
  data.softmax_scale = 1.0f / std::sqrt(static_cast<float>(c.kv_lora_rank / 2 + 8));
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    std::vector<int32_t> list = slot_list(c, rows, t);
    data.lens.push_back(static_cast<int32_t>(list.size()));
    list.resize(static_cast<size_t>(c.topk), 0x7fffffff);  // behind lens: never read
    data.slots.insert(data.slots.end(), list.begin(), list.end());
  }
  return data;
}

// ---- indexer ------------------------------------------------------------------------------

std::vector<IndexCase> index_cases() {
  std::vector<IndexCase> cases;
  const std::pair<IndexKeyLayout, IndexFormat> formats[] = {
      {IndexKeyLayout::kF32, IndexFormat::kF32},
      {IndexKeyLayout::kBf16_256, IndexFormat::kBf16},
      {IndexKeyLayout::kFp8_132, IndexFormat::kFp8},
      {IndexKeyLayout::kFp8_132, IndexFormat::kF32}};
  int number = 0;
  for (const auto& [layout, format] : formats) {
    const std::string name =
        std::string(layout::to_string(layout)) + "_" + std::to_string(static_cast<int>(format));
    // Context lengths at and around whole pages (B13, B22).
    cases.push_back({name + "_wide",
                     layout,
                     format,
                     32,
                     128,
                     64,
                     64,
                     128,
                     {{0, 1}, {62, 3}, {127, 2}, {258, 1}, {309, 1}, {514, 1}},
                     64,
                     number % 2 == 0,
                     number % 2 == 1,
                     number % 2 == 1});
    cases.push_back({name + "_small",
                     layout,
                     format,
                     2,
                     16,
                     8,
                     4,
                     12,
                     {{0, 17}, {5, 9}},
                     8,
                     number % 2 == 1,
                     number % 2 == 0,
                     false});
    ++number;
  }
  for (const int32_t heads : {1, 5, 64}) {
    cases.push_back({"heads_" + std::to_string(heads),
                     IndexKeyLayout::kFp8_132,
                     IndexFormat::kFp8,
                     heads,
                     128,
                     64,
                     64,
                     0,
                     {{70, 2}},
                     16});
  }
  cases.push_back({"long",
                   IndexKeyLayout::kFp8_132,
                   IndexFormat::kFp8,
                   4,
                   64,
                   32,
                   64,
                   0,
                   {{2046, 4}, {4095, 3}},
                   2048});
  // Every tail of a group of keys just above index_topk (B23), and the second and third group of 64
  // pages (B26).
  cases.push_back({"tails_b23",
                   IndexKeyLayout::kFp8_132,
                   IndexFormat::kFp8,
                   4,
                   64,
                   32,
                   64,
                   0,
                   {{2048, 16}},
                   2048});
  cases.push_back({"page_groups_b26",
                   IndexKeyLayout::kFp8_132,
                   IndexFormat::kFp8,
                   4,
                   64,
                   32,
                   64,
                   0,
                   {{4089, 21}, {8184, 16}},
                   2048});
  return cases;
}

IndexData make_index(const IndexCase& c, uint64_t page_seed) {
  PagedRows rows = make_paged_rows(c.seqs, c.page_size, 2, page_seed);
  IndexData data{
      rows,
      IndexKeyBytes({c.layout, c.index_head_dim, c.page_size}, rows.num_pages, c.padding_bytes),
      {},
      {}};
  fill(data.cache, data.rows, 21);
  CaseRandom random(22);
  const int64_t count = int64_t{rows.num_rows()} * c.index_n_heads * c.index_head_dim;
  for (int64_t i = 0; i < count; ++i) {
    const float value = random.bf16_normal();
    if (c.query_format == IndexFormat::kF32) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      data.q.insert(data.q.end(), bytes, bytes + 4);
    } else if (c.query_format == IndexFormat::kBf16) {
      const uint16_t bits = layout::f32_to_bf16(value);
      const auto* bytes = reinterpret_cast<const uint8_t*>(&bits);
      data.q.insert(data.q.end(), bytes, bytes + 2);
    } else {
      data.q.push_back(layout::f32_to_e4m3(value * 100));
    }
  }
  for (int64_t i = 0; i < int64_t{rows.num_rows()} * c.index_n_heads; ++i) {
    data.head_weights.push_back(random.normal() * 0.01f);  // negative ones too
  }
  return data;
}

double query_value(const std::vector<uint8_t>& q, IndexFormat format, int64_t at) {
  float single;
  uint16_t half;
  switch (format) {
    case IndexFormat::kF32:
      std::memcpy(&single, &q[static_cast<size_t>(4 * at)], 4);
      return single;
    case IndexFormat::kBf16:
      std::memcpy(&half, &q[static_cast<size_t>(2 * at)], 2);
      return layout::bf16_to_f32(half);
    case IndexFormat::kFp8:
      return layout::e4m3_to_f32(q[static_cast<size_t>(at)]);
  }
  return 0;
}

// ---- top-k --------------------------------------------------------------------------------

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> distinct_then(int64_t count, int64_t winners, float rest, uint64_t seed) {
  std::vector<float> scores(static_cast<size_t>(count), rest);
  for (int64_t i = 0; i < winners; ++i) {
    scores[static_cast<size_t>(i)] = rest + 1.0f + static_cast<float>(i);
  }
  CaseRandom(seed).shuffle(scores);
  return scores;
}

std::vector<float> mapped(int64_t count, uint64_t seed, float (*value)(int64_t)) {
  std::vector<float> scores;
  for (int64_t i = 0; i < count; ++i) scores.push_back(value(i));
  CaseRandom(seed).shuffle(scores);
  return scores;
}

}  // namespace

std::vector<TopkCase> topk_cases() {
  std::vector<TopkCase> cases;
  cases.push_back({"ties_b14", 2048, {distinct_then(9000, 150, 0.0f, 1)}});
  cases.push_back(
      {"all_equal", 2048, {std::vector<float>(9000, 0.25f), std::vector<float>(64, 1)}});
  // One coarse bin (B15): 1 + i * 2^-23, and integers beyond the range of fp16.
  cases.push_back({"one_bin_b15", 2048, {mapped(8192, 2, [](int64_t i) {
                     return 1.0f + static_cast<float>(i) * 0x1p-23f;
                   })}});
  cases.push_back({"integers_b15", 512, {mapped(5000, 3, [](int64_t i) {
                     return 900000.0f - static_cast<float>(i);
                   })}});
  cases.push_back({"plateau_b16", 2048, {distinct_then(16384, 300, 0.0f, 4)}});
  TopkCase widths{"widths_b19", 2048, {}};
  for (const int64_t n : {1, 5, 63, 64, 65, 100, 2047, 2048, 2049, 4097}) {
    CaseRandom random(static_cast<uint64_t>(n));
    std::vector<float> scores;
    for (int64_t i = 0; i < n; ++i) scores.push_back(random.normal());
    widths.scores.push_back(scores);
  }
  cases.push_back(widths);
  TopkCase low{"below_fp16_b20", 512, {}};
  for (uint64_t row = 0; row < 150; ++row) {
    CaseRandom random(row);
    std::vector<float> scores;
    for (int i = 0; i < 1000; ++i) scores.push_back(-70000.0f - 20000.0f * random.uniform());
    low.scores.push_back(scores);
  }
  cases.push_back(low);
  // A single peak at another column in each row, odd widths (B22).
  TopkCase peaks{"peaks_b22", 8, {}};
  for (int row = 0; row < 3; ++row) {
    for (const int64_t n : {1000, 1001}) {
      std::vector<float> scores(static_cast<size_t>(n), -1.0f);
      scores[static_cast<size_t>(17 + 311 * row)] = 5.0f;
      peaks.scores.push_back(scores);
    }
  }
  cases.push_back(peaks);
  // More rows than one launch of any kernel takes at once (B25).
  TopkCase many{"many_rows_b25", 8, {}};
  for (uint64_t row = 0; row < 1024; ++row) {
    CaseRandom random(row);
    std::vector<float> scores;
    for (uint64_t i = 0; i < 9 + row % 40; ++i) scores.push_back(random.normal());
    many.scores.push_back(scores);
  }
  cases.push_back(many);
  // -inf, NaN and -0: NaN ranks as -inf, -0 ties with +0, and the lower position wins.
  std::vector<float> odd;
  for (int i = 0; i < 300; ++i) {
    const float values[] = {-kInf, kNan, -0.0f, 0.0f, -1.0f, -kNan, kInf};
    odd.push_back(values[i % 7]);
  }
  for (const int32_t k : {1, 40, 43, 86, 129, 130, 171, 172, 200, 299, 300}) {
    cases.push_back({"specials_" + std::to_string(k), k, {odd}});
  }
  return cases;
}

std::vector<int32_t> expected_topk(const std::vector<float>& scores, int32_t topk) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](int32_t i) {
    const float score = scores[static_cast<size_t>(i)];
    return std::isnan(score) ? -kInf : score;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return rank(a) > rank(b); });
  order.resize(std::min(order.size(), static_cast<size_t>(topk)));
  std::sort(order.begin(), order.end());
  return order;
}

// ---- experts ------------------------------------------------------------------------------

std::vector<RouterCase> router_cases() {
  return {
      {"glm", 40, 128, 256, 8, 1, 1},
      {"v3_groups", 40, 128, 256, 8, 8, 4},
      {"negative_bias_groups", 20, 64, 32, 4, 4, 2, true, 1.0f, -3.0f, -2.0f},
      {"not_normalised", 9, 64, 16, 2, 1, 1, false},
      {"bias_b72", 1000, 64, 256, 8, 1, 1, true, 2.5f, 6.817f, 7.063f},
  };
}

std::vector<MoeCase> moe_cases() {
  return {
      {"f32", 37, 128, 64, 8, 2, DType::kF32},
      {"bf16", 5, 512, 256, 16, 8, DType::kBf16},
      {"fp8", 37, 512, 256, 16, 4, DType::kE4m3, true},
      {"fp8_plain_activations", 3, 256, 128, 8, 2, DType::kE4m3, false},
      {"no_shared", 11, 64, 32, 4, 2, DType::kBf16, false, false},
  };
}

}  // namespace winnow::testing
