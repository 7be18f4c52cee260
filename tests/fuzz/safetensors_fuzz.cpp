// Any bytes as a safetensors file: refused with an Error or read, never a crash (fault B76).
#include <cstdint>

#include "base/error.h"
#include "model/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto header = winnow::model::parse_safetensors_header(bytes, static_cast<int64_t>(size),
                                                                "fuzz.safetensors");
    // What was accepted lies inside the file.
    int64_t sum = 0;
    for (const auto& tensor : header.tensors) {
      for (int64_t i = tensor.begin; i < tensor.end; ++i) sum += bytes[header.data_offset + i];
      sum += tensor.elements();
    }
    WINNOW_CHECK(sum != 0x7fffffffffffffff, "{}", sum);
  } catch (const winnow::Error&) {
  }
  return 0;
}
