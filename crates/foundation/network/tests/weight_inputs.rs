//! Files whose weights are inputs of the graph, with shapes only.

mod common;

use common::{info, ints, macs, model, node, read};
use sweetspot_network::{Kind, Network};

fn inputs(network: &Network) -> Vec<&str> {
    let names = network.inputs.iter().map(|(name, _)| name.as_str());
    names.collect()
}

/// A convolution, a classifier, and its bias.
#[test]
fn weights_of_gemm_count() {
    let nodes = vec![
        node("Conv", &["x", "w", "b"], &["c"]).message(5, ints("pads", &[1, 1, 1, 1])),
        node("Relu", &["c"], &["r"]),
        node("GlobalAveragePool", &["r"], &["p"]),
        node("Flatten", &["p"], &["f"]),
        node("Gemm", &["f", "fc.weight", "fc.bias"], &["y"]),
    ];
    let listed = vec![
        info("x", &[1, 3, 8, 8]),
        info("fc.weight", &[16, 10]),
        info("fc.bias", &[10]),
        info("w", &[16, 3, 3, 3]),
        info("b", &[16]),
    ];
    let network = read(&model(nodes, listed)).unwrap();
    assert_eq!(network.parameters(), 16 * 27 + 16 + 16 * 10 + 10);
    assert_eq!(macs(&network), 64 * 16 * 27 + 160);
    assert_eq!(inputs(&network), ["x"]);
    let last = network.layers.last().unwrap();
    let kind = Kind::FullyConnected {
        inputs: 16,
        outputs: 10,
        bias: true,
    };
    assert_eq!(last.kind, kind);
    assert_eq!(last.inputs.len(), 1);
}

/// An embedding, a normalisation, projections with biases, tables that are added or prepended, a slope, and
/// attention between computed values.
#[test]
fn weights_of_a_transformer_count() {
    let axes = |name: &str, axis: i64| common::Message::default().text(1, name).int(3, axis);
    let nodes = vec![
        node("Gather", &["table", "ids"], &["e"]),
        node("Identity", &["positions"], &["p"]),
        node("Add", &["e", "p"], &["a"]),
        node("Concat", &["class", "a"], &["t"]).message(5, axes("axis", 1)),
        node("LayerNormalization", &["t", "gamma", "beta"], &["n"]),
        node("MatMul", &["n", "wq"], &["q0"]),
        node("Add", &["bq", "q0"], &["q"]),
        node("Transpose", &["wk"], &["wk_turned"]),
        node("MatMul", &["n", "wk_turned"], &["k"]),
        node("Transpose", &["k"], &["kt"]).message(5, ints("perm", &[0, 2, 1])),
        node("MatMul", &["q", "kt"], &["s"]),
        node("PRelu", &["s", "slope"], &["r"]),
        node("MatMul", &["r", "n"], &["y"]),
    ];
    let listed = vec![
        info("class", &[1, 1, 32]),
        info("positions", &[1, 10, 32]),
        whole_numbers("ids", &[1, 10]),
        info("table", &[100, 32]),
        info("gamma", &[32]),
        info("beta", &[32]),
        info("wq", &[32, 32]),
        info("bq", &[32]),
        info("wk", &[32, 32]),
        info("slope", &[11]),
    ];
    // Data comes first, as exporters list it.
    let mut data_first = listed.clone();
    data_first.rotate_left(2);
    let network = read(&model(nodes, data_first)).unwrap();
    let tables = 32 + 10 * 32 + 100 * 32;
    let projections = 2 * 32 * 32 + 32;
    assert_eq!(network.parameters(), tables + 2 * 32 + projections + 11);
    assert_eq!(inputs(&network), ["ids"]);
    assert_eq!(macs(&network), 2 * 11 * 32 * 32 + 2 * 11 * 11 * 32);
}

/// Parts of a weight that are combined in the file.
#[test]
fn computed_weights_count() {
    let nodes = vec![
        node("Transpose", &["w"], &["turned"]),
        node("Mul", &["turned", "scale"], &["scaled"]),
        node("Gemm", &["x", "scaled"], &["y"]),
    ];
    let listed = vec![
        info("x", &[4, 8]),
        info("w", &[16, 8]),
        info("scale", &[8, 1]),
    ];
    let network = read(&model(nodes, listed)).unwrap();
    assert_eq!(network.parameters(), 16 * 8 + 8);
    assert_eq!(network.layers.len(), 1);
}

/// Several inputs of a network stay data.
#[test]
fn data_inputs_are_not_weights() {
    // Two images through one convolution.
    let nodes = vec![
        node("Conv", &["x", "w"], &["a"]),
        node("Conv", &["y", "w"], &["b"]),
        node("Add", &["a", "b"], &["c"]),
        node("Add", &["c", "residual"], &["z"]),
    ];
    let listed = vec![
        info("x", &[2, 3, 8, 8]),
        info("y", &[2, 3, 8, 8]),
        info("residual", &[2, 4, 6, 6]),
        info("w", &[4, 3, 3, 3]),
    ];
    let network = read(&model(nodes, listed)).unwrap();
    assert_eq!(network.parameters(), 4 * 27);
    assert_eq!(inputs(&network), ["x", "y", "residual"]);

    // Queries, keys and values of attention, and the weight of what follows.
    let nodes = vec![
        node("MatMul", &["q", "k"], &["s"]),
        node("Softmax", &["s"], &["a"]),
        node("MatMul", &["a", "v"], &["o"]),
        node("MatMul", &["o", "w"], &["y"]),
    ];
    let listed = vec![
        info("q", &[1, 4, 10, 8]),
        info("k", &[1, 4, 8, 10]),
        info("v", &[1, 4, 10, 8]),
        info("w", &[8, 8]),
    ];
    let network = read(&model(nodes, listed)).unwrap();
    assert_eq!(network.parameters(), 64);
    assert_eq!(inputs(&network), ["q", "k", "v"]);

    // A sum of two inputs has no weights.
    let nodes = vec![node("Add", &["x", "y"], &["z"])];
    let listed = vec![info("x", &[1, 8]), info("y", &[8])];
    let network = read(&model(nodes, listed)).unwrap();
    assert_eq!(network.parameters(), 0);
    assert_eq!(inputs(&network), ["x", "y"]);
}

/// An input of 64-bit integers.
fn whole_numbers(name: &str, sizes: &[i64]) -> common::Message {
    let mut shape = common::Message::default();
    for size in sizes {
        shape = shape.message(1, common::Message::default().int(1, *size));
    }
    let tensor = common::Message::default().int(1, 7).message(2, shape);
    let kind = common::Message::default().message(1, tensor);
    common::Message::default().text(1, name).message(2, kind)
}
