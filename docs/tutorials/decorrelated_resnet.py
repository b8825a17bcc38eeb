"""Decorrelated batch normalisation in a ResNet, on handwritten digits."""

# --- data
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from torch.nn import functional

from matroot import models

digits = load_digits()
images = torch.from_numpy(digits.images).float() / 16 - 0.3
images = images.unsqueeze(1)  # (1797, 1, 8, 8)
labels = torch.from_numpy(digits.target)
test = torch.arange(len(labels)) % 5 == 0


# --- train
def train(preset: str, seed: int, epochs: int = 6) -> list[float]:
    """Test error after every epoch, in per cent."""
    torch.manual_seed(seed)
    model = models.resnet18_dbn(num_classes=10, preset=preset, in_channels=1, width=8)
    optimiser = torch.optim.SGD(model.parameters(), momentum=0.9, weight_decay=5e-4)
    x, y = images[~test], labels[~test]
    batches = epochs * (len(y) // 128)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=batches)
    errors = []
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(y)).split(128)[: len(y) // 128]:
            optimiser.zero_grad()
            functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimiser.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            wrong = model(images[test]).argmax(1) != labels[test]
        errors.append(100 * wrong.float().mean().item())
    return errors


# --- compare
NAMES = {
    "baseline": "batch normalisation",
    "default": "decorrelated, exact root",
    "mpa-lya": "decorrelated, the paper's MPA",
}
curves = {preset: [train(preset, seed) for seed in range(2)] for preset in NAMES}
for preset, runs in curves.items():
    print(f"{NAMES[preset]}: " + ", ".join(f"{run[-1]:.1f} %" for run in runs))
    assert all(run[-1] < 10 for run in runs)

# --- figure
figure, ax = plt.subplots(figsize=(6.4, 3.2))
for preset, runs in curves.items():
    epochs, errors = range(1, len(runs[0]) + 1), torch.tensor(runs)
    (line,) = ax.semilogy(epochs, errors.mean(0), label=NAMES[preset])
    ax.fill_between(epochs, *errors.aminmax(dim=0), color=line.get_color(), alpha=0.2)
ax.set(xlabel="epoch", ylabel="test error, per cent")
ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
ax.minorticks_off()
ax.legend()
ax.grid()
if __name__ == "__main__":
    figure.savefig("decorrelated_resnet.png")
