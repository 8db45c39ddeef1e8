"""The networks as PyTorch has them: torchvision's, and those that it lacks, from torch.nn."""
import re

import torch
import torchvision
from torch import nn
from torch.nn import functional

CIFAR_RESNETS = ("resnet20", "resnet32", "resnet44", "resnet56", "resnet110")
RESNETS = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")
VGGS = ("vgg11", "vgg13", "vgg16", "vgg19", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn")
OTHERS = ("alexnet", "googlenet", "googlenet_noaux", "inception_v3", "inception_v3_noaux", "densenet121", "mobilenet_v2")
NAMES = [n.replace("_", "-") for n in
         ("lenet", "mlp", *RESNETS, *(n + "_cifar" for n in RESNETS), *CIFAR_RESNETS, *VGGS,
          *(n + "_cifar" for n in VGGS), *OTHERS)]


class LeNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 500), nn.Linear(500, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class Mlp(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(784, 128), nn.Linear(128, classes)

    def forward(self, x):
        return self.fc2(functional.relu(self.fc1(x.flatten(1))))


class CifarBlock(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.changes = channels_in != channels_out
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, 2 if self.changes else 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.changes:  # half of the new channels before, half behind
            zeros = torch.zeros_like(x[:, : x.shape[1] // 2, ::2, ::2])
            x = torch.cat([zeros, x[:, :, ::2, ::2], zeros], 1)
        return functional.relu(x + y)


class CifarResNet(nn.Module):
    def __init__(self, layers, classes):
        super().__init__()
        each = (layers - 2) // 6
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*(CifarBlock(16, 16) for _ in range(each)))
        self.layer2 = nn.Sequential(CifarBlock(16, 32), *(CifarBlock(32, 32) for _ in range(each - 1)))
        self.layer3 = nn.Sequential(CifarBlock(32, 64), *(CifarBlock(64, 64) for _ in range(each - 1)))
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(x))).mean((2, 3)))


class CifarVgg(nn.Module):
    def __init__(self, name, classes, dropout):
        super().__init__()
        self.features = getattr(torchvision.models, name)(weights=None, num_classes=1).features
        self.classifier = nn.Sequential(nn.Dropout(dropout), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(dropout),
                                        nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def build(name, classes, dropout=None):
    name = name.replace("-", "_")
    rate = {} if dropout is None else {"dropout": dropout}
    if name == "lenet":
        return LeNet(classes)
    if name == "mlp":
        return Mlp(classes)
    if name in CIFAR_RESNETS:
        return CifarResNet(int(name[6:]), classes)
    if name.endswith("_cifar"):
        name = name[:-6]
        if name.startswith("vgg"):
            return CifarVgg(name, classes, 0.5 if dropout is None else dropout)
        model = getattr(torchvision.models, name)(weights=None, num_classes=classes)
        model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        return model
    if name.startswith(("googlenet", "inception")):
        if name.startswith("googlenet") and dropout is not None:
            rate["dropout_aux"] = dropout
        make = getattr(torchvision.models, re.sub("_noaux$", "", name))
        return make(weights=None, num_classes=classes, aux_logits=not name.endswith("_noaux"), init_weights=False, **rate)
    if name.startswith(("resnet", "densenet")):
        rate = {}
    return getattr(torchvision.models, name)(weights=None, num_classes=classes, **rate)


def default_classes(name):
    return 10 if name in ("lenet", "mlp", *CIFAR_RESNETS) or name.endswith("-cifar") else 1000
