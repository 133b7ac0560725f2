import time
import warnings

import torch
import fastai.callback.progress
from fastai.callback.core import Callback
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.learner import Learner

warnings.filterwarnings("ignore")


class Slow(Callback):
    def after_batch(self):
        time.sleep(0.1)


data = [(torch.rand(4), torch.rand(1)) for _ in range(80)]
loaders = DataLoaders(DataLoader(data, bs=4), DataLoader(data[:24], bs=4))
Learner(loaders, torch.nn.Linear(4, 1), loss_func=torch.nn.functional.mse_loss, cbs=[Slow()]).fit(2)
