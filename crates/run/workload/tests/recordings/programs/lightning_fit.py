import sys
import time
import warnings

import torch
from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import RichProgressBar, TQDMProgressBar
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, index):
        time.sleep(0.12)
        loss = self.layer(batch[0]).pow(2).mean()
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        time.sleep(0.05)
        self.log("val_loss", self.layer(batch[0]).pow(2).mean(), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


def loader(batches):
    return DataLoader(TensorDataset(torch.rand(batches * 4, 4)), batch_size=4)


bar = RichProgressBar(refresh_rate=4) if sys.argv[1] == "rich" else TQDMProgressBar(refresh_rate=4)
trainer = Trainer(max_epochs=2, callbacks=[bar], logger=False, enable_checkpointing=False, accelerator="cpu", enable_model_summary=False)
trainer.fit(Model(), loader(20), loader(6))
