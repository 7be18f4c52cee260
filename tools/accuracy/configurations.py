"""What is compared: how each configuration's server is started."""
import contextlib
import json
import os
import pathlib
import tempfile

FP8 = ["--kv-cache-dtype", "fp8_e4m3"]

# Name -> flags. The first is what a user gets who names nothing.
CONFIGURATIONS = {
    "default": [],
    "cache-1152": ["--kv-cache-dtype", "bfloat16"],
    "cache-644": FP8 + ["--dsa-prefill-backend", "winnow", "--dsa-decode-backend", "winnow"],
    "cache-576": FP8 + ["--dsa-prefill-backend", "trtllm", "--dsa-decode-backend", "trtllm"],
    "keys-bfloat16": ["--index-key-dtype", "bfloat16"],
    "keys-float32": ["--index-key-dtype", "float32"],
    "reference": ["--precision", "reference"],
    "dense": [],
    "dense-reference": ["--precision", "reference"],
}
SHOWN = {
    "default": "656, FP8 keys (the defaults)",
    "cache-1152": "1152 (bf16), FP8 keys",
    "cache-644": "644, FP8 keys",
    "cache-576": "576, FP8 keys",
    "keys-bfloat16": "656, bf16 keys",
    "keys-float32": "656, fp32 keys",
    "reference": "`--precision reference`",
    "dense": "dense attention, 656",
    "dense-reference": "dense attention, `--precision reference`",
}
# Larger than any prompt here, small enough that the slot lists of a step stay small.
DENSE_TOPK = 16384


@contextlib.contextmanager
def model_of(name, folder):
    """The checkpoint folder to serve: for dense attention a copy (of links) whose index_topk no
    prompt exceeds, so that every token is taken without being scored."""
    folder = pathlib.Path(folder).resolve()
    if not name.startswith("dense"):
        yield folder
        return
    with tempfile.TemporaryDirectory() as copy:
        for file in folder.iterdir():
            if file.name != "config.json":
                os.symlink(file, pathlib.Path(copy) / file.name)
        config = json.loads((folder / "config.json").read_text())
        config["index_topk"] = DENSE_TOPK
        (pathlib.Path(copy) / "config.json").write_text(json.dumps(config))
        yield pathlib.Path(copy)
