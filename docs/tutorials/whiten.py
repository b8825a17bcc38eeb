"""Whiten a data set: handwritten digits without the correlation of their pixels."""

# --- data
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from matroot.nn import ZCAWhitening

images = torch.from_numpy(load_digits().images).float() / 16  # (1797, 8, 8)
X = images.flatten(1)  # a row for each image, a column for each pixel

# --- fit
train, test = X[:1400], X[1400:]
whiten = ZCAWhitening(64, eps=1e-2).fit(train)
Y = whiten(test)


# --- check
def correlation(data: torch.Tensor) -> float:
    """The mean size of a covariance of two pixels, relative to the mean variance."""
    C = torch.cov(data.T)
    return (C - C.diagonal().diag()).abs().mean().item() / C.diagonal().mean().item()


for name, before, after in (("train", train, whiten(train)), ("test", test, Y)):
    print(f"{name}: {correlation(before):.4f} before, {correlation(after):.4f} after")
assert correlation(whiten(train)) < 0.2 * correlation(train)
assert torch.allclose(whiten.inverse_transform(Y), test, atol=1e-4)

# --- stream
stream = ZCAWhitening(64, eps=1e-2)
for batch in train.split(100):
    stream.partial_fit(batch)
assert torch.allclose(stream(test), Y, atol=1e-3)

# --- figure
figure, axes = plt.subplots(2, 7, figsize=(8.2, 2.6), width_ratios=[1] * 6 + [1.9])
for column in range(6):
    axes[0, column].imshow(test[column].view(8, 8), cmap="gray_r")
    axes[1, column].imshow(Y[column].view(8, 8), cmap="gray_r")
axes[0, 6].imshow(torch.cov(train.T), cmap="RdBu", vmin=-0.1, vmax=0.1)
axes[1, 6].imshow(torch.cov(whiten(train).T), cmap="RdBu", vmin=-1, vmax=1)
axes[0, 0].set_title("digits")
axes[1, 0].set_title("whitened")
axes[0, 6].set_title("covariance")
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
if __name__ == "__main__":
    figure.savefig("whiten.png")
