"""Records what PyTorch's optimizers make of sparse gradients: rows.json, for tests/optimizer/rows_test.cpp.

Needs python3-torch. Usage: /usr/bin/python3 make_rows.py > rows.json
"""

import json

import torch

ROWS, COLUMNS, STEPS = 11, 5, 12


def gradients():
    """Sparse gradients with repeated rows; some steps have one row."""
    out = []
    for step in range(STEPS):
        count = [6, 1, 9, 3, 2, 4][step % 6]
        rows = torch.randint(0, ROWS, (count,))
        values = torch.randn(count, COLUMNS) * 10 ** (step % 3 - 1)
        out.append(torch.sparse_coo_tensor(rows.unsqueeze(0), values, (ROWS, COLUMNS)).coalesce())
    return out


def trained(make, start, pushed):
    weight = start.clone().requires_grad_()
    optimizer = make([weight])
    for gradient in pushed:
        weight.grad = gradient.clone()
        optimizer.step()
    return weight.detach().flatten().tolist()


def main():
    torch.manual_seed(12)
    start, pushed = torch.randn(ROWS, COLUMNS), gradients()
    optimizers = {
        "sgd:lr=0.05": lambda p: torch.optim.SGD(p, lr=0.05),
        "adagrad": lambda p: torch.optim.Adagrad(p),
        "adagrad:lr=0.1:lr-decay=0.2:eps=0.01": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.2, eps=0.01),
        "sparse-adam": lambda p: torch.optim.SparseAdam(p),
        "sparse-adam:lr=0.03:beta1=0.5:beta2=0.9:eps=0.02":
            lambda p: torch.optim.SparseAdam(p, lr=0.03, betas=(0.5, 0.9), eps=0.02),
    }
    print(json.dumps({
        "rows": ROWS,
        "columns": COLUMNS,
        "start": start.flatten().tolist(),
        "steps": [{"rows": g.indices()[0].tolist(), "values": g.values().flatten().tolist()} for g in pushed],
        "weights": {name: trained(make, start, pushed) for name, make in optimizers.items()},
    }, indent=1))


if __name__ == "__main__":
    main()
