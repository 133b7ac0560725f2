import sys
import tempfile
import time

import torch
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, labels=None):
        time.sleep(0.1)
        return {"loss": (self.layer(x) - labels).pow(2).mean(), "logits": labels}


data = [{"x": torch.rand(4), "labels": torch.rand(1)} for _ in range(96)]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=8,
    logging_steps=6, eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=len(sys.argv) > 1,
)
Trainer(Model(), arguments, train_dataset=data, eval_dataset=data[:48]).train()
