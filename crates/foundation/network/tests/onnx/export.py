"""Exports networks of torchvision and transformers as ONNX files without weights: `python3 export.py FOLDER`.

Needs torch, torchvision, transformers, onnx and onnxscript. Weights become references to a file that does
not exist, so that shapes stay and bytes go; they are random, because equal ones are stored once. counts.json
has what PyTorch itself says of each network.
"""
import json, sys, tempfile
import onnx, torch, torchvision.models as tv, transformers as tf
from torch.utils.flop_counter import FlopCounterMode

out, counts = sys.argv[1], {}
torch.backends.mha.set_fastpath_enabled(False)  # which the counter does not see into


class First(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids):
        return self.inner(input_ids=ids)[0]


def strip(model):
    for tensor in model.graph.initializer:
        size = 1
        for dim in tensor.dims:
            size *= dim
        if size > 32:
            for field in ("raw_data", "float_data", "int64_data", "external_data"):
                tensor.ClearField(field)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            tensor.external_data.add(key="location", value="weights.bin")
    for node in model.graph.node:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
    for info in model.graph.value_info:
        info.ClearField("metadata_props")
    del model.metadata_props[:], model.graph.metadata_props[:]
    return model


def export(name, model, x, new=False):
    try:
        model.eval()
        for weight in model.parameters():
            torch.nn.init.normal_(weight)
        with FlopCounterMode(display=False) as flops, torch.no_grad():
            model(x)
        with tempfile.TemporaryDirectory() as d:
            f = d + "/m.onnx"
            how = dict(dynamo=True) if new else dict(dynamo=False, opset_version=17,
                training=torch.onnx.TrainingMode.PRESERVE, dynamic_axes={"x": {0: "batch"}})
            torch.onnx.export(model, (x,), f, input_names=["x"], output_names=["y"], **how)
            onnx.save(strip(onnx.load(f, load_external_data=False)), f"{out}/{name}.onnx")
        counts[name] = dict(parameters=sum(p.numel() for p in model.parameters()),
            macs=flops.get_total_flops() // 2)
    except Exception as error:
        print(name, "failed:", str(error)[:300])


def image(name, size=224, new="", **more):
    model = getattr(tv, name)(weights=None, **more)
    export(name + new, model, torch.zeros(1, 3, size, size), bool(new))


names = "alexnet vgg16 vgg19 resnet34 resnet50 resnet101 resnet152 mobilenet_v2 mobilenet_v3_small densenet121"
for name in (names + " efficientnet_b0 shufflenet_v2_x1_0 squeezenet1_0 convnext_tiny").split():
    image(name)
image("googlenet", aux_logits=False, init_weights=False)
image("inception_v3", 299, aux_logits=False, init_weights=False)
for name in ("resnet50", "mobilenet_v2", "vit_b_16"):
    image(name, new="_dynamo")
vit = tv.VisionTransformer(image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=64, mlp_dim=128)
export("vit_small", vit, torch.zeros(1, 3, 64, 64))
swin = tv.SwinTransformer([4, 4], 32, [2], [2], [7, 7])
export("swin_small", swin, torch.zeros(1, 3, 64, 64))
ids = torch.ones(1, 32, dtype=torch.long)
bert = First(tf.BertModel(tf.BertConfig(num_hidden_layers=4, attn_implementation="eager"), add_pooling_layer=False))
gpt2 = First(tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=2, use_cache=False, attn_implementation="eager")))
export("bert", bert, ids)
export("bert_dynamo", bert, ids, True)
export("gpt2_dynamo", gpt2, ids, True)
json.dump(counts, open(out + "/counts.json", "w"), indent=1)
