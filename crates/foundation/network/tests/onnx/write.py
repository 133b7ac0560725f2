"""Writes small ONNX files with the `onnx` package: `python3 write.py FOLDER`.

`pip install onnx` first. shapes.json has the shapes that the package itself infers, to compare with.
"""
import json, sys
import onnx
from onnx import TensorProto, helper, parser

OUT = sys.argv[1]
MODELS = {
    "convolutions": (17, """
        (float[1, 8, 33, 47] x, float[16, 4, 3, 3] w1, float[16] b1, float[16, 1, 5, 5] w2, float[16, 6, 3, 3] w3,
         float[12] s, float[12] b, float[12] m, float[12] v, float[12, 2, 3, 3] w4) => (float[A, B, C, D] y) {
        c1 = Conv <strides = [2, 1], pads = [1, 0, 2, 1], dilations = [1, 2], group = 2> (x, w1, b1)
        c2 = Conv <auto_pad = "SAME_UPPER", strides = [2, 2], group = 16> (c1, w2)
        c3 = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1], group = 2> (c2, w3)
        n = BatchNormalization (c3, s, b, m, v)
        p = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (n)
        a = AveragePool <kernel_shape = [2, 2], auto_pad = "SAME_LOWER"> (p)
        l = LRN <size = 5> (a)
        r = LeakyRelu (l)
        y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [3, 2], group = 2> (r, w4)
        }"""),
    "layout": (17, """
        (float[2, 6, 8] x) => (float[A, B] y) {
        sh = Shape (x)
        i0 = Constant <value = int64 {0}> ()
        d0 = Gather <axis = 0> (sh, i0)
        ax = Constant <value = int64[1] {0}> ()
        d0u = Unsqueeze (d0, ax)
        rest = Constant <value = int64[2] {3, -1}> ()
        want = Concat <axis = 0> (d0u, rest)
        r = Reshape (x, want)
        t = Transpose <perm = [2, 0, 1]> (r)
        st = Constant <value = int64[2] {-12, 1}> ()
        en = Constant <value = int64[2] {9223372036854775807, -1}> ()
        sa = Constant <value = int64[2] {0, 2}> ()
        ss = Constant <value = int64[2] {3, 1}> ()
        s = Slice (t, st, en, sa, ss)
        a, b = Split <axis = 0> (s)
        c = Concat <axis = -1> (a, b)
        z = Squeeze (c)
        pads = Constant <value = int64[8] {0, 0, 1, 0, 0, 0, 1, 2}> ()
        u0 = Constant <value = int64[1] {1}> ()
        zu = Unsqueeze (z, u0)
        p = Pad (zu, pads)
        tl = Constant <value = int64[4] {1, 1, 2, 3}> ()
        q = Tile (p, tl)
        f = Flatten <axis = 1> (q)
        y = ReduceMean <axes = [1], keepdims = 1> (f)
        }"""),
    "transformer": (17, """
        (int64[1, 10] ids) => (float[A, B, C] y)
        <float[100, 32] table = {EMPTY}, float[32, 96] wqkv = {EMPTY}, float[96] bqkv = {EMPTY},
         float[32] gamma = {EMPTY}, float[32] beta = {EMPTY}> {
        e = Gather (table, ids)
        n = LayerNormalization (e, gamma, beta)
        p = MatMul (n, wqkv)
        pb = Add (p, bqkv)
        q, k, v = Split <axis = 2> (pb)
        sc = Einsum <equation = "bid,bjd->bij"> (q, k)
        w = Softmax <axis = -1> (sc)
        o = MatMul (w, v)
        y = Add (o, e)
        }"""),
    "attention": (23, """
        (float[2, 10, 64] q, float[2, 12, 64] k, float[2, 12, 64] v) => (float[A, B, C] y) {
        a = Attention <q_num_heads = 4, kv_num_heads = 4> (q, k, v)
        y = Gelu (a)
        }"""),
    "unknown": (17, """
        (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (float[A, B] y) {
        c = Conv (x, w)
        d = Det (c)
        e = Relu (d)
        n = NonZero (c)
        y = Transpose (n)
        }"""),
    "no_sizes": (17, """
        (float[N, 3, H, W] x, float[4, 3, 3, 3] w) => (float[A, B, C, D] y) {
        y = Conv (x, w)
        }"""),
    "does_not_fit": (17, """
        (float[1, 3, 8, 8] x, float[4, 5, 3, 3] w) => (float[A, B, C, D] y) {
        y = Conv (x, w)
        }"""),
}


def external(name, sizes):
    """A weight without its bytes."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=sizes, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    return tensor


def write(name, model):
    del model.graph.value_info[:]
    with open(f"{OUT}/{name}.onnx", "wb") as file:
        file.write(model.SerializeToString(deterministic=True))


shapes = {}
for name, (opset, text) in MODELS.items():
    weights = []
    if "<float" in text:
        head, rest = text.split("<float", 1)
        listed, body = ("float" + rest).split("> {", 1)
        for item in listed.split("= {EMPTY}"):
            item = item.strip(" ,\n")
            if item:
                sizes, weight = item[6:].split("] ")
                weights.append(external(weight, [int(size) for size in sizes.split(",")]))
        text = head + "{" + body
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {name} {text}')
    model.graph.initializer.extend(weights)
    if name not in ("unknown", "no_sizes", "does_not_fit"):
        full = onnx.shape_inference.infer_shapes(model, data_prop=True, strict_mode=True)
        known = {}
        for info in list(full.graph.value_info) + list(full.graph.output):
            sizes = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
            if all(sizes):
                known[info.name] = sizes
        shapes[name] = known
    write(name, model)

# A thousand layers: convolution, batch normalisation, ReLU, over and over.
nodes, weights, last = [], [], "x"
for block in range(333):
    for part, sizes in (("w", [64, 64, 3, 3]), ("s", [64]), ("b", [64]), ("m", [64]), ("v", [64])):
        weights.append(external(f"{part}{block}", sizes))
    nodes += [
        helper.make_node("Conv", [last, f"w{block}"], [f"c{block}"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", [f"c{block}"] + [f"{p}{block}" for p in "sbmv"], [f"n{block}"]),
        helper.make_node("Relu", [f"n{block}"], [f"r{block}"]),
    ]
    last = f"r{block}"
nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"]))
image = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64, 56, 56])
result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 64, 1, 1])
graph = helper.make_graph(nodes, "thousand_layers", [image], [result], weights)
write("thousand_layers", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))
json.dump(shapes, open(f"{OUT}/shapes.json", "w"), indent=1)
