"""Winnow's kernels as PyTorch operators: torch.ops.winnow.sparse_mla and torch.ops.winnow.select_tokens.

Built from winnow_kernels.h alone: the shared library is loaded with ctypes, tensors are handed over
by address on torch's current stream, and nothing has to be compiled against PyTorch. Build
libwinnow_kernels.so with `cmake --preset kernels && cmake --build --preset kernels --target
winnow_kernels_c` and name it in load(), or put it beside this file.

Shapes: T rows, H heads, Hi index heads, K topk. A page holds 64 tokens; a slot is page * 64 + offset.
"""
import ctypes
import pathlib

import torch

LAYOUTS = {"latent_bf16_1152": 1, "latent_fp8_656": 2, "latent_fp8_644": 3, "latent_fp8_576": 4}
_VERSION = 2
_library = None


class _MlaParams(ctypes.Structure):
    _fields_ = [("q_latent", ctypes.c_void_p), ("q_rope", ctypes.c_void_p),
                ("slots", ctypes.c_void_p), ("lens", ctypes.c_void_p),
                ("slots_stride", ctypes.c_int64), ("num_rows", ctypes.c_int32),
                ("num_heads", ctypes.c_int32), ("softmax_scale", ctypes.c_float),
                ("cache_scale", ctypes.c_float), ("cache", ctypes.c_void_p),
                ("page_stride_bytes", ctypes.c_int64), ("num_pages", ctypes.c_int32),
                ("out", ctypes.c_void_p), ("lse", ctypes.c_void_p)]


class _MlaPlan(ctypes.Structure):
    _fields_ = [("workspace_bytes", ctypes.c_int64), ("words", ctypes.c_int32 * 18)]


class _Rows(ctypes.Structure):
    _fields_ = [("num_rows", ctypes.c_int32), ("num_seqs", ctypes.c_int32),
                ("positions", ctypes.c_void_p), ("seq_of_row", ctypes.c_void_p),
                ("page_tables", ctypes.c_void_p), ("page_table_stride", ctypes.c_int64)]


class _Keys(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("page_stride_bytes", ctypes.c_int64),
                ("num_pages", ctypes.c_int32)]


def load(path=None):
    """Loads the shared library (default: libwinnow_kernels.so beside this file); returns it."""
    global _library
    if _library is None or path is not None:
        library = ctypes.CDLL(str(path or pathlib.Path(__file__).with_name("libwinnow_kernels.so")))
        if library.winnow_kernels_version() != _VERSION:
            raise RuntimeError("libwinnow_kernels.so has another version than this package")
        library.winnow_select_tokens_workspace_bytes.restype = ctypes.c_int64
        library.winnow_select_tokens_workspace_bytes.argtypes = [ctypes.c_int32, ctypes.c_int64,
                                                                 ctypes.c_int64]
        _library = library
    return _library


def _check(error, what):
    if error != 0:
        raise RuntimeError(f"{what}: cudaError {error}")


def _stream(tensor):
    return ctypes.c_void_p(torch.cuda.current_stream(tensor.device).cuda_stream)


def _want(tensor, name, dtype, *shape):
    if tensor.dtype != dtype or not tensor.is_cuda or not tensor.is_contiguous():
        raise ValueError(f"{name}: a contiguous CUDA tensor of {dtype} is needed")
    if tensor.dim() != len(shape) or any(n not in (None, m) for n, m in zip(shape, tensor.shape)):
        raise ValueError(f"{name}: shape {tuple(tensor.shape)}, need {shape}")


@torch.library.custom_op("winnow::sparse_mla", mutates_args=(), device_types="cuda")
def sparse_mla(q_latent: torch.Tensor, q_rope: torch.Tensor, cache: torch.Tensor,
               slots: torch.Tensor, lens: torch.Tensor, softmax_scale: float, layout: str,
               cache_scale: float = 1.0,
               batch_invariant: bool = False,
               fp8_query: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention of every row over the cached tokens that its slots name.

    q_latent: bf16 [T, H, 512], absorbed; q_rope: bf16 [T, H, 64]; H from 1 to 128
    cache: uint8 [num_pages, page_bytes], of a layout in LAYOUTS
    slots: int32 [T, K]; -1 and slots beyond the pool are skipped
    lens: int32 [T], entries of a row that are read
    cache_scale: for latent_fp8_576, value = e4m3 * cache_scale
    batch_invariant: a row's bits do not depend on the rows beside it
    fp8_query: queries may be rounded to e4m3, each (row, head) by its own power of two; they are for
    latent_fp8_576 with more than 32 heads
    Returns out, bf16 [T, H, 512], and the log-sum-exp, fp32 [T, H] (natural logarithm). A row
    without tokens gives zeros and -inf.
    """
    rows, heads = q_latent.shape[:2]
    _want(q_latent, "q_latent", torch.bfloat16, None, None, 512)
    _want(q_rope, "q_rope", torch.bfloat16, rows, heads, 64)
    _want(cache, "cache", torch.uint8, None, None)
    _want(slots, "slots", torch.int32, rows, None)
    _want(lens, "lens", torch.int32, rows)
    library = load()
    processors = torch.cuda.get_device_properties(q_latent.device).multi_processor_count
    plan = _MlaPlan()
    _check(library.winnow_plan_sparse_mla(LAYOUTS[layout], rows, heads, slots.shape[1], processors,
                                          int(batch_invariant), int(fp8_query), ctypes.byref(plan)),
           "plan")
    workspace = torch.empty(max(plan.workspace_bytes, 256), dtype=torch.uint8,
                            device=q_latent.device)
    out = torch.empty_like(q_latent)
    lse = torch.empty(rows, heads, dtype=torch.float32, device=q_latent.device)
    params = _MlaParams(q_latent=q_latent.data_ptr(), q_rope=q_rope.data_ptr(),
                        slots=slots.data_ptr(), lens=lens.data_ptr(), slots_stride=slots.shape[1],
                        num_rows=rows, num_heads=heads, softmax_scale=softmax_scale,
                        cache_scale=cache_scale, cache=cache.data_ptr(),
                        page_stride_bytes=cache.shape[1], num_pages=cache.shape[0],
                        out=out.data_ptr(), lse=lse.data_ptr())
    lent, stream = ctypes.c_void_p(workspace.data_ptr()), _stream(q_latent)
    _check(library.winnow_sparse_mla_groups(ctypes.byref(params), ctypes.byref(plan), lent, stream),
           "sparse_mla_groups")
    _check(library.winnow_sparse_mla(ctypes.byref(params), ctypes.byref(plan), lent, stream),
           "sparse_mla")
    return out, lse


@sparse_mla.register_fake
def _(q_latent, q_rope, cache, slots, lens, softmax_scale, layout, cache_scale=1.0,
      batch_invariant=False, fp8_query=False):
    return torch.empty_like(q_latent), q_latent.new_empty(q_latent.shape[:2], dtype=torch.float32)


@torch.library.custom_op("winnow::select_tokens", mutates_args=(), device_types="cuda")
def select_tokens(q: torch.Tensor, head_weights: torch.Tensor, keys: torch.Tensor,
                  positions: torch.Tensor, seq_of_row: torch.Tensor, page_tables: torch.Tensor,
                  max_tokens: int, topk: int,
                  budget_bytes: int = 1 << 30) -> tuple[torch.Tensor, torch.Tensor]:
    """The topk cached tokens of every row by sum_h relu(q[t][h] . k[s]) * head_weights[t][h].

    q: float8_e4m3fn [T, Hi, 128]; head_weights: fp32 [T, Hi], the query's scale in them
    keys: uint8 [num_pages, 8448]: 64 x 128 e4m3, then 64 fp32 scales
    positions: int32 [T]: row t sees tokens 0..positions[t] of its sequence
    seq_of_row: int32 [T], row of page_tables; page_tables: int32 [num_seqs, pages]
    max_tokens: no row sees more; budget_bytes: most workspace for logits
    Returns slots, int32 [T, topk], in position order, then -1, and lens, int32 [T]. Exact and
    deterministic; equal scores go to the lower position.
    """
    rows, heads = q.shape[:2]
    _want(q, "q", torch.float8_e4m3fn, None, None, 128)
    _want(head_weights, "head_weights", torch.float32, rows, heads)
    _want(keys, "keys", torch.uint8, None, None)
    _want(positions, "positions", torch.int32, rows)
    _want(seq_of_row, "seq_of_row", torch.int32, rows)
    _want(page_tables, "page_tables", torch.int32, None, None)
    library = load()
    size = library.winnow_select_tokens_workspace_bytes(rows, max_tokens, budget_bytes)
    workspace = torch.empty(max(size, 256), dtype=torch.uint8, device=q.device)
    slots = torch.empty(rows, topk, dtype=torch.int32, device=q.device)
    lens = torch.empty(rows, dtype=torch.int32, device=q.device)
    view = _Rows(num_rows=rows, num_seqs=page_tables.shape[0], positions=positions.data_ptr(),
                 seq_of_row=seq_of_row.data_ptr(), page_tables=page_tables.data_ptr(),
                 page_table_stride=page_tables.shape[1])
    pool = _Keys(data=keys.data_ptr(), page_stride_bytes=keys.shape[1], num_pages=keys.shape[0])
    pointer = ctypes.c_void_p
    _check(library.winnow_select_tokens(
        ctypes.byref(view), pointer(q.data_ptr()), pointer(head_weights.data_ptr()), heads,
        ctypes.byref(pool), ctypes.c_int64(max_tokens), topk, pointer(slots.data_ptr()),
        pointer(lens.data_ptr()), pointer(workspace.data_ptr()), ctypes.c_int64(size),
        _stream(q)), "select_tokens")
    return slots, lens


@select_tokens.register_fake
def _(q, head_weights, keys, positions, seq_of_row, page_tables, max_tokens, topk,
      budget_bytes=1 << 30):
    return (q.new_empty(q.shape[0], topk, dtype=torch.int32),
            q.new_empty(q.shape[0], dtype=torch.int32))
