"""Trains a small language model with the Trainer of Hugging Face, and logs the energy of each epoch.

    sweetspot simulate --gpu v100 -- python examples/callbacks/transformers_train.py --cpu

The callback takes two lines, marked below. The model is made from its configuration, so that nothing is downloaded.
"""

import argparse
import json

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from sweetspot.callbacks.transformers import Sweetspot  # the callback, 1


class Texts(torch.utils.data.Dataset):
    """Made-up texts that count up."""

    def __init__(self, count, length):
        self.count, self.length = count, length

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        ids = (index + torch.arange(self.length)) % 100
        return {"input_ids": ids, "labels": ids}


def accuracy(prediction):
    logits, labels = prediction
    return {"accuracy": float((logits[:, :-1].argmax(-1) == labels[:, 1:]).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--cpu", action="store_true", help="for a machine whose GPU is simulated")
    parser.add_argument("--output", default="output")
    args = parser.parse_args()

    config = GPT2Config(vocab_size=100, n_positions=32, n_embd=64, n_layer=2, n_head=2)
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            output_dir=args.output,
            num_train_epochs=args.epochs,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            eval_strategy="epoch",
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            use_cpu=args.cpu,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
        train_dataset=Texts(args.samples, 32),
        eval_dataset=Texts(128, 32),
        compute_metrics=accuracy,
        callbacks=[Sweetspot()],  # the callback, 2
    )
    trainer.train()
    for entry in trainer.state.log_history:
        print(json.dumps(entry))


if __name__ == "__main__":
    main()
