"""Weights between training and export: bf16, in files small enough to carry anywhere."""
import pathlib

from safetensors.torch import load_file, save_file

SHARD_BYTES = 14_000_000


def save_masters(model, folder):
    """Writes master-N.safetensors with every tensor of the model."""
    shards, size = [{}], 0
    for name, tensor in model.state_dict().items():
        size += tensor.numel() * tensor.element_size()
        if size > SHARD_BYTES:
            shards.append({})
            size = tensor.numel() * tensor.element_size()
        shards[-1][name] = tensor.cpu().contiguous()
    for i, shard in enumerate(shards, 1):
        save_file(shard, pathlib.Path(folder) / f"master-{i}.safetensors")


def load_masters(model, folder):
    state = {}
    for path in sorted(pathlib.Path(folder).glob("master-*.safetensors")):
        state.update(load_file(path))
    model.load_state_dict(state)
