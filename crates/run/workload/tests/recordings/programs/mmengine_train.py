import sys
import tempfile
import time

sys.modules["transformers"] = None
import torch
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner


class Model(BaseModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x, mode="loss"):
        time.sleep(0.05)
        out = self.layer(torch.stack(x))
        return {"loss": out.pow(2).mean()} if mode == "loss" else [out]


class Metric(BaseMetric):
    def process(self, batch, samples):
        self.results.append(1)

    def compute_metrics(self, results):
        return {"accuracy": 1.0}


class Data(torch.utils.data.Dataset):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return {"x": torch.rand(4)}


def loader(length):
    return dict(dataset=Data(length), batch_size=4, num_workers=0, sampler=dict(type="DefaultSampler", shuffle=False))


by_epoch = sys.argv[1] == "epochs"
loop = dict(by_epoch=True, max_epochs=2, val_interval=1) if by_epoch else dict(by_epoch=False, max_iters=60, val_interval=30)
Runner(
    Model(), work_dir=tempfile.mkdtemp(), train_dataloader=loader(120), val_dataloader=loader(40), train_cfg=loop,
    val_cfg=dict(), val_evaluator=dict(type=Metric), optim_wrapper=dict(optimizer=dict(type="SGD", lr=0.01)),
    default_hooks=dict(logger=dict(type="LoggerHook", interval=10), checkpoint=None),
    log_processor=dict(by_epoch=by_epoch), experiment_name="example",
).train()
