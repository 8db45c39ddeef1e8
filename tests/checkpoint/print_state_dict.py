"""Prints a state dict as one line of JSON: name, dtype, shape and values of each tensor, in order."""
import json
import sys
from collections import OrderedDict

import torch

state = torch.load(sys.argv[1], weights_only=True)
assert type(state) is OrderedDict, type(state)
rows = []
for name, t in state.items():
    assert t.is_contiguous() and not t.requires_grad
    rows.append([name, str(t.dtype), list(t.shape), t.flatten().tolist()])
print(json.dumps(rows))
