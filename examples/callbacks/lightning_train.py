"""Trains a small network with PyTorch Lightning, and logs the energy of each epoch.

    sweetspot simulate --gpu v100 -- python examples/callbacks/lightning_train.py --accelerator cpu

The callback takes two lines, marked below. With Sweetspot around it (`sweetspot measure -- python ...`) it also reports its
phases, items and accuracy.
"""

import argparse
import os

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

from sweetspot.callbacks.lightning import Sweetspot  # the callback, 1


class Classifier(LightningModule):
    def __init__(self, width):
        super().__init__()
        sizes = [64, width, width, 2]
        layers = [torch.nn.Linear(*pair) for pair in zip(sizes, sizes[1:])]
        self.network = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])

    def training_step(self, batch, index):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.network(inputs), labels)

    def validation_step(self, batch, index):
        inputs, labels = batch
        correct = (self.network(inputs).argmax(1) == labels).float().mean()
        self.log("val_accuracy", correct)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=16000)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--accelerator", default="auto", help="cpu on a machine whose GPU is simulated")
    parser.add_argument("--logs", default="logs", help="the folder of Lightning's own log")
    args = parser.parse_args()

    if args.accelerator == "cpu":
        # Lightning asks NVML whether there is a GPU, but PyTorch cannot compute on a simulated one.
        os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    torch.manual_seed(1)
    inputs = torch.randn(args.samples, 64)
    data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    trainer = Trainer(
        max_epochs=args.epochs,
        accelerator=args.accelerator,
        logger=CSVLogger(args.logs, name=None, version=""),
        callbacks=[Sweetspot()],  # the callback, 2
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(args.width), DataLoader(data, batch_size=64), DataLoader(data, batch_size=512))
    print(open(f"{args.logs}/metrics.csv").read())


if __name__ == "__main__":
    main()
