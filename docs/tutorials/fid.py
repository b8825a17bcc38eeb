"""The Fréchet distance of two sets of images, in three lines, and what it sees."""

# --- data
import torch
from matplotlib import pyplot as plt
from sklearn.datasets import load_digits

from matroot.metrics import frechet_distance_of_samples

torch.manual_seed(0)
images = torch.from_numpy(load_digits().images).float() / 16
images = images[torch.randperm(len(images))].unsqueeze(1)  # (1797, 1, 8, 8)
real, others = images[:900], images[900:]

# --- features
network = torch.nn.Sequential(  # in the place of the Inception network
    torch.nn.Conv2d(1, 16, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv2d(16, 48, 3, stride=2),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1),
    torch.nn.Flatten(),
).requires_grad_(False)

# --- distance
f_real = network(real)
f_others = network(others)
print("digits and other digits:", frechet_distance_of_samples(f_real, f_others).item())

# --- noise
strengths = torch.linspace(0, 0.5, 11)
noise = torch.randn_like(others)
# Eleven sets at once, (11, 897, 48).
noisy = torch.stack([network(others + s * noise) for s in strengths])
distances = frechet_distance_of_samples(f_real, noisy)
assert (distances[1:] > distances[:-1]).all()

# --- gradient
made = others.clone().requires_grad_()
path = []
optimiser = torch.optim.Adam([made], lr=0.01)
for _ in range(60):
    optimiser.zero_grad()
    loss = frechet_distance_of_samples(f_real, network(made + 0.3 * noise))
    loss.backward()
    optimiser.step()
    path.append(loss.item())
assert path[-1] < 0.2 * path[0]

# --- figure
figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 2.8))
left.plot(strengths, distances, "o-", markersize=4)
left.set(title="distance from clean digits", ylabel="Fréchet distance")
left.set(xlabel="standard deviation of the noise")
right.semilogy(path)
right.set(title="the distance as a loss", xlabel="steps of Adam")
for ax in (left, right):
    ax.grid()
if __name__ == "__main__":
    figure.savefig("fid.png")
