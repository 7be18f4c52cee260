// Collects the templates of one instruction set. Included last by kernels_<isa>.cpp.

namespace winnow::backends::WINNOW_ISA {

#define WINNOW_TEXT_OF(name) #name
#define WINNOW_TEXT(name) WINNOW_TEXT_OF(name)

extern const KernelTable kTable;
const KernelTable kTable = {
    .isa = WINNOW_TEXT(WINNOW_ISA),
    .lanes = kLanes,
    .pack_rows = pack_rows,
    .linear_f32 = linear_tile<F32Weights>,
    .linear_bf16 = linear_tile<Bf16Weights>,
    .linear_f16 = linear_tile<F16Weights>,
    .linear_e4m3 = linear_tile<E4m3Weights>,
    .rms_norm = rms_norm,
    .add = add,
    .add_scaled = add_scaled,
    .silu_mul = silu_mul,
    .unpack_bf16 = unpack_bf16,
    .unpack_e4m3 = unpack_e4m3,
    .transpose_rows = transpose_rows,
    .product = product,
    .attend_group = attend_group,
    .merge_states = merge_states,
    .combine_heads = combine_heads,
};

}  // namespace winnow::backends::WINNOW_ISA
