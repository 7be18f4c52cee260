// Collects the templates of one instruction set. Included last by kernels_<isa>.cpp.

namespace winnow::backends::WINNOW_ISA {

#define WINNOW_TEXT_OF(name) #name
#define WINNOW_TEXT(name) WINNOW_TEXT_OF(name)
#define WINNOW_BODY(name) \
  { name, #name }

extern const KernelTable kTable;
const KernelTable kTable = {
    .isa = WINNOW_TEXT(WINNOW_ISA),
    .lanes = kLanes,
    .pack_rows = WINNOW_BODY(pack_rows),
    .linear_f32 = WINNOW_BODY(linear_tile<F32Weights>),
    .linear_bf16 = WINNOW_BODY(linear_tile<Bf16Weights>),
    .linear_f16 = WINNOW_BODY(linear_tile<F16Weights>),
    .linear_e4m3 = WINNOW_BODY(linear_tile<E4m3Weights>),
    .rms_norm = WINNOW_BODY(rms_norm),
    .add = WINNOW_BODY(add),
    .add_scaled = WINNOW_BODY(add_scaled),
    .silu_mul = WINNOW_BODY(silu_mul),
    .unpack_bf16 = WINNOW_BODY(unpack_bf16),
    .unpack_e4m3 = WINNOW_BODY(unpack_e4m3),
    .transpose_rows = WINNOW_BODY(transpose_rows),
    .product = WINNOW_BODY(product),
    .attend_group = WINNOW_BODY(attend_group),
    .merge_states = WINNOW_BODY(merge_states),
    .combine_heads = WINNOW_BODY(combine_heads),
};

}  // namespace winnow::backends::WINNOW_ISA
