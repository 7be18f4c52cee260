#define WINNOW_ISA avx2

#include "backends/cpu/simd.h"
//
#include "backends/cpu/attention_kernels.h"
#include "backends/cpu/linear_kernels.h"
#include "backends/cpu/row_kernels.h"
//
#include "backends/cpu/kernel_table.h"
