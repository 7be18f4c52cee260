// Element types of weights, activations and caches.
#pragma once

#include <cstdint>

namespace winnow {

enum class DType : uint8_t { kF32, kBf16, kF16, kE4m3, kI64, kI32, kU8 };

constexpr int64_t bytes_of(DType dtype) {
  switch (dtype) {
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBf16:
    case DType::kF16:
      return 2;
    case DType::kE4m3:
    case DType::kU8:
      return 1;
  }
  return 0;
}

constexpr const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kE4m3:
      return "e4m3";
    case DType::kI64:
      return "i64";
    case DType::kI32:
      return "i32";
    case DType::kU8:
      return "u8";
  }
  return "?";
}

}  // namespace winnow
