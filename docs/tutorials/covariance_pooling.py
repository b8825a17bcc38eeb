"""Covariance pooling of textures: equal means, different covariances of pixels."""

# --- data
import torch
from matplotlib import pyplot as plt
from torch import nn
from torch.nn import functional

from matroot.nn import CovariancePool

torch.manual_seed(0)
CLASSES = 6
filters = functional.normalize(torch.randn(CLASSES, 25), dim=1).view(CLASSES, 1, 5, 5)


def textures(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """White noise through the filter of its class: every pixel has variance one."""
    labels = torch.arange(count) % CLASSES
    noise = torch.randn(1, count, 20, 20)
    images = functional.conv2d(noise, filters[labels], groups=count)
    return images.transpose(0, 1), labels  # (count, 1, 16, 16)


images, labels = textures(600)
test_images, test_labels = textures(600)


# --- pools
def network(pool: nn.Module, features: int) -> nn.Module:
    body = [nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3)]
    head = [nn.Flatten(), nn.BatchNorm1d(features), nn.Linear(features, CLASSES)]
    return nn.Sequential(*body, pool, *head)


POOLS = {
    "average": lambda: network(nn.AdaptiveAvgPool2d(1), 16),
    "covariance": lambda: network(CovariancePool(16, reduce_to=None, root=False), 136),
    "root of the covariance": lambda: network(CovariancePool(16, reduce_to=None), 136),
}


# --- train
def train(make, seed: int, epochs: int = 15) -> list[float]:
    """Test error after every epoch, in per cent."""
    torch.manual_seed(seed)
    model = make()
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
    errors = []
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(labels)).split(50):
            optimiser.zero_grad()
            functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimiser.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            wrong = model(test_images).argmax(1) != test_labels
        errors.append(100 * wrong.float().mean().item())
    return errors


# --- compare
curves = {name: [train(make, 0), train(make, 1)] for name, make in POOLS.items()}
for name, runs in curves.items():
    print(f"{name}: " + ", ".join(f"{run[-1]:.1f} %" for run in runs))
final = {name: max(run[-1] for run in runs) for name, runs in curves.items()}
assert final["root of the covariance"] < 0.5 * final["average"]

# --- figure
figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.2), width_ratios=[1, 3])
# Infinite: left blank.
tiles = functional.pad(images[: 2 * CLASSES, 0], (2, 2, 2, 2), value=torch.inf)
tiles = tiles.view(2, CLASSES, 20, 20).permute(1, 2, 0, 3).reshape(CLASSES * 20, 40)
left.imshow(tiles, cmap="gray", vmin=-3, vmax=3)
left.set(title="two of each class", xticks=[], yticks=[])
left.spines[:].set_visible(False)
for name, runs in curves.items():
    right.plot(range(1, len(runs[0]) + 1), torch.tensor(runs).mean(0), label=name)
right.set(xlabel="epoch", ylabel="test error, per cent", ylim=(0, None))
right.legend()
right.grid()
if __name__ == "__main__":
    figure.savefig("covariance_pooling.png")
