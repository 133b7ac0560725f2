//! Damaged, truncated or malicious files cause an error that names the node, in bounded memory and time.

mod common;

use common::{Message, info, ints, model, node, onnx_path, read};
use proptest::prelude::*;
use sweetspot_network::{Convention, Cost, Precision};

fn assert_rejected(bytes: &[u8], expected: &str) {
    let error = read(bytes).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn files_that_are_no_model_are_rejected() {
    assert_rejected(b"", "it has no nodes");
    assert_rejected(b"{\"not\": \"a model\"}", "damaged");
    assert_rejected(&[0x80; 64], "cut off or damaged");
    assert_rejected(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "cut off");
}

#[test]
fn a_file_truncated_anywhere_is_rejected() {
    let whole = std::fs::read(onnx_path("resnet50")).unwrap();
    for end in (1..whole.len() - 64).step_by(257) {
        // A cut between two fields of the outermost message can leave a smaller model, never a panic.
        if let Ok(network) = read(&whole[..end]) {
            assert!(!network.layers.is_empty());
        }
    }
    assert_rejected(&whole[..whole.len() / 2], "cut off");
}

#[test]
fn a_cycle_names_a_node_in_it() {
    let nodes = vec![node("Relu", &["b"], &["a"]), node("Relu", &["a"], &["b"])];
    assert_rejected(
        &model(nodes, vec![info("x", &[1, 3])]),
        "node `the_a` (Relu): it waits for its own output",
    );
}

#[test]
fn missing_and_duplicate_values_are_rejected() {
    let nodes = vec![node("Relu", &["nowhere"], &["y"])];
    assert_rejected(
        &model(nodes, vec![]),
        "node `the_y` (Relu): no node produces its input `nowhere`",
    );
    let nodes = vec![node("Relu", &["x"], &["y"]), node("Relu", &["x"], &["y"])];
    assert_rejected(
        &model(nodes, vec![info("x", &[1])]),
        "two nodes produce `y`",
    );
}

#[test]
fn huge_sizes_are_rejected_at_their_node() {
    let huge = vec![info("x", &[1, i64::MAX, i64::MAX])];
    assert_rejected(
        &model(vec![node("Relu", &["x"], &["y"])], huge),
        "input `x` a tensor of",
    );
    // Each doubling is small, but forty of them are not.
    let mut nodes = Vec::new();
    for step in 0..60 {
        let (from, to) = (format!("v{step}"), format!("v{}", step + 1));
        let attribute = Message::default().text(1, "axis").int(3, 0);
        nodes.push(node("Concat", &[&from, &from], &[&to]).message(5, attribute));
    }
    assert_rejected(
        &model(nodes, vec![info("v0", &[1, 3])]),
        "(Concat): a tensor of",
    );
    let pads = ints("pads", &[i64::MAX, i64::MAX, i64::MAX, i64::MAX]);
    let kernel = ints("kernel_shape", &[1 << 40, 1 << 40]);
    let pool = node("MaxPool", &["x"], &["y"])
        .message(5, pads)
        .message(5, kernel);
    assert_rejected(
        &model(vec![pool], vec![info("x", &[1, 3, 8, 8])]),
        "node `the_y` (MaxPool)",
    );
}

#[test]
fn zero_strides_and_negative_pads_are_rejected() {
    let input = || vec![info("x", &[1, 3, 8, 8]), info("w", &[4, 3, 3, 3])];
    let conv = |attribute| node("Conv", &["x", "w"], &["y"]).message(5, attribute);
    assert_rejected(
        &model(vec![conv(ints("strides", &[0, 1]))], input()),
        "node `the_y` (Conv)",
    );
    assert_rejected(
        &model(vec![conv(ints("pads", &[-1, 0, 0, 0]))], input()),
        "node `the_y` (Conv)",
    );
    assert_rejected(
        &model(vec![conv(ints("dilations", &[1]))], input()),
        "node `the_y` (Conv)",
    );
}

fn symbols(name: &str, sizes: &[&str]) -> Message {
    let mut shape = Message::default();
    for size in sizes {
        let axis = match size.parse::<i64>() {
            Ok(size) => Message::default().int(1, size),
            Err(_) => Message::default().text(2, size),
        };
        shape = shape.message(1, axis);
    }
    let tensor = Message::default().int(1, 1).message(2, shape);
    let kind = Message::default().message(1, tensor);
    Message::default().text(1, name).message(2, kind)
}

/// A weight of the file, without values.
fn weight(name: &str, sizes: &[i64]) -> Message {
    let mut tensor = Message::default();
    for size in sizes {
        tensor = tensor.int(1, *size);
    }
    tensor.int(2, 1).text(8, name)
}

/// A model with weights.
fn model_with_weights(nodes: Vec<Message>, inputs: Vec<Message>, weights: Vec<Message>) -> Vec<u8> {
    let mut graph = Message::default();
    for node in nodes {
        graph = graph.message(1, node);
    }
    for weight in weights {
        graph = graph.message(5, weight);
    }
    for input in inputs {
        graph = graph.message(11, input);
    }
    Message::default().message(7, graph).0
}

/// Every input is named at once, so that one more attempt is enough. A first axis without a size is the batch.
#[test]
fn sizes_that_are_left_open_are_named() {
    let relu = || vec![node("Relu", &["x"], &["y"])];
    let add = vec![node("Add", &["ids", "mask"], &["y"])];
    let both = vec![
        symbols("ids", &["batch", "length"]),
        symbols("mask", &["batch", "length"]),
    ];
    assert_rejected(
        &model(add, both),
        "leaves sizes of its inputs open: `ids` is 1xlength, `mask` is 1xlength",
    );
    assert_rejected(
        &model(relu(), vec![symbols("x", &["N", "3", "", "W"])]),
        "`x` is 1x3x?xW",
    );
    for size in ["0", "-1"] {
        assert_rejected(
            &model(relu(), vec![symbols("x", &["1", size, "4"])]),
            "`x` is 1x?x4",
        );
    }
    let kind = Message::default().message(1, Message::default().int(1, 1));
    let no_shape = Message::default().text(1, "x").message(2, kind);
    assert_rejected(&model(relu(), vec![no_shape]), "`x` has no shape");
    assert!(read(&model(relu(), vec![symbols("x", &["0", "3"])])).is_ok());
}

/// Empty tensors occur in valid files, but not as the result of a product.
#[test]
fn products_without_elements_are_rejected() {
    let image = || vec![info("x", &[1, 3, 8, 8])];
    let conv = || vec![node("Conv", &["x", "w"], &["y"])];
    assert_rejected(
        &model_with_weights(conv(), image(), vec![weight("w", &[0, 3, 3, 3])]),
        "node `the_y` (Conv): its output of shape 1x0x6x6 has no elements",
    );
    assert_rejected(
        &model_with_weights(conv(), image(), vec![weight("w", &[4, 3, 0, 0])]),
        "node `the_y` (Conv): kernel, stride and dilation must be at least 1",
    );
    let product = vec![node("MatMul", &["x", "w"], &["y"])];
    assert_rejected(
        &model_with_weights(
            product,
            vec![info("x", &[1, 8])],
            vec![weight("w", &[8, 0])],
        ),
        "node `the_y` (MatMul): its output of shape 1x0 has no elements",
    );
}

/// Nothing can be counted, and all of it is unknown.
#[test]
fn a_file_of_unknown_operators_is_unknown_as_a_whole() {
    let nodes = vec![
        node("Alpha", &["x"], &["y"]),
        node("Beta", &["y"], &["z"]),
        node("Relu", &["z"], &["r"]),
    ];
    let network = read(&model(nodes, vec![info("x", &[1, 3])])).unwrap();
    assert!(network.layers.is_empty());
    let known: Vec<_> = network.unknown.iter().map(|one| one.elements).collect();
    assert_eq!(known, [3, 0]);
    assert_eq!(network.unknown_share(), 1.0);
    assert_eq!(network.unknown_share_of_data(), 1.0);
    assert_eq!(network.unknown_share_of_nodes(), 1.0);
}

/// Data that is moved by one large unknown operator outweighs many small layers.
#[test]
fn a_large_unknown_operator_has_a_large_share() {
    let mut nodes = vec![node("Alpha", &["large", "w"], &["y"])];
    for step in 0..9 {
        nodes.push(node("Relu", &["small"], &[&format!("r{step}")]));
    }
    let inputs = vec![info("small", &[1, 10]), info("large", &[1, 300])];
    let network = read(&model_with_weights(
        nodes,
        inputs,
        vec![weight("w", &[120])],
    ))
    .unwrap();
    assert_eq!(network.unknown[0].elements, 420);
    assert_eq!(network.unknown_share_of_nodes(), 0.1);
    assert_eq!(network.unknown_share(), 420.0 / (420.0 + 9.0 * 20.0));
}

/// Two bytes require a node of two hundred: the decoded file must not be a hundred times larger than the file.
#[test]
fn many_empty_nodes_are_rejected_before_decoding() {
    let mut graph = Vec::new();
    for _ in 0..3_000_000 {
        graph.extend([0x0a, 0x00]);
    }
    assert_rejected(
        &Message::default().bytes(7, &graph).0,
        "more than 2000000 nodes",
    );
    // The same, hidden in an attribute's list of numbers.
    let list = Message::default().text(1, "axes").bytes(8, &[1; 3_000_000]);
    let nodes = vec![node("Squeeze", &["x"], &["y"]).message(5, list)];
    assert_rejected(
        &model(nodes, vec![info("x", &[1])]),
        "more than 2000000 nodes",
    );
}

/// Many nodes take time that is linear in the size of the file, not quadratic.
#[test]
fn a_hundred_thousand_unknown_operators_are_listed() {
    let nodes: Vec<Message> = (0..100_000)
        .map(|index| node(&format!("Op{index}"), &["x"], &[&format!("y{index}")]))
        .collect();
    let network = read(&model(nodes, vec![info("x", &[1])])).unwrap();
    assert_eq!(network.unknown.len(), 100_000);
    // A slice of a folded constant with a hundred thousand starts.
    let list = vec![0i64; 100_000];
    let constant = node("Constant", &[], &["k"]).message(5, ints("value_ints", &[1, 2, 3]));
    let mut slice = node("Slice", &["k"], &["y"]);
    for key in ["starts", "ends", "axes"] {
        slice = slice.message(5, ints(key, &list));
    }
    assert!(read(&model(vec![constant, slice], vec![info("x", &[1])])).is_ok());
    let long = "n".repeat(1 << 20);
    let error = read(&model(vec![node("Relu", &["nowhere"], &[&long])], vec![])).unwrap_err();
    assert!(error.to_string().len() < 1000);
}

#[test]
fn endless_nesting_is_rejected() {
    let mut graph = node("Relu", &["x"], &["y"]);
    for _ in 0..10_000 {
        graph = Message::default().message(1, Message::default().message(5, graph.clone()));
        if graph.0.len() > 1 << 20 {
            break;
        }
    }
    assert!(read(&Message::default().message(7, graph).0).is_err());
}

/// Constants that grow: shapes are inferred, but numbers are not kept beyond a limit.
#[test]
fn constants_that_double_stay_small() {
    let mut nodes = vec![node("Shape", &["x"], &["v0"])];
    for step in 0..45 {
        let (from, to) = (format!("v{step}"), format!("v{}", step + 1));
        let attribute = Message::default().text(1, "axis").int(3, 0);
        nodes.push(node("Concat", &[&from, &from], &[&to]).message(5, attribute));
    }
    assert_rejected(
        &model(nodes, vec![info("x", &[1, 2])]),
        "(Concat): a tensor of",
    );
}

#[test]
fn unreadable_files_are_errors() {
    let options = Default::default();
    let error = sweetspot_network::read_onnx("nowhere.onnx", &options).unwrap_err();
    assert!(error.to_string().starts_with("cannot read nowhere.onnx"));
    let folder = std::env::temp_dir();
    let error = sweetspot_network::read_onnx(folder.to_str().unwrap(), &options).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
}

/// Checks that any bytes are either rejected or counted.
fn read_and_count(bytes: &[u8]) {
    if let Ok(network) = read(bytes) {
        assert!((0.0..=1.0).contains(&network.unknown_share()));
        for convention in [
            Convention::Usual,
            Convention::EquationsAsPrinted,
            Convention::Table1,
        ] {
            let cost = Cost::of(&network, convention, Precision::Fp32, 1_000_000, true);
            let total = cost.total();
            assert!(total.operations.all() < u128::MAX / 2);
        }
    }
}

const VALID_FILES: [&str; 8] = [
    "convolutions",
    "layout",
    "transformer",
    "attention",
    "unknown",
    "vit_small",
    "swin_small",
    "mobilenet_v3_small",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        read_and_count(&bytes);
    }

    #[test]
    fn changed_bytes_cause_no_panic(
        which in 0..VALID_FILES.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = std::fs::read(onnx_path(VALID_FILES[which])).unwrap();
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_and_count(&bytes);
    }

    #[test]
    fn any_attributes_cause_no_panic(
        operator in prop::sample::select(vec![
            "Conv", "ConvTranspose", "MaxPool", "Gemm", "MatMul", "Reshape", "Slice", "Split", "Pad", "Tile",
            "Expand", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Concat", "Gather", "GatherND", "Resize",
            "DepthToSpace", "ReduceMean", "ArgMax", "TopK", "Range", "ConstantOfShape", "Einsum", "Attention",
            "Shape", "OneHot", "LRN",
        ]),
        sizes in proptest::collection::vec(proptest::collection::vec(1i64..9, 0..5), 1..4),
        lists in proptest::collection::vec(proptest::collection::vec(-3i64..9, 0..7), 5),
        wild in any::<i64>(),
        numbers in proptest::collection::vec(prop_oneof![-3i64..9, any::<i64>()], 0..6),
    ) {
        let names: Vec<String> = (0..sizes.len()).map(|index| format!("x{index}")).collect();
        let inputs = names.iter().zip(&sizes).map(|(name, sizes)| info(name, sizes)).collect();
        let mut inputs_of: Vec<&str> = names.iter().map(String::as_str).collect();
        inputs_of.extend(["k", "k"]);
        let keys = ["kernel_shape", "pads", "strides", "perm", "output_shape"];
        let mut tested = node(operator, &inputs_of, &["y", "z"]);
        for (key, list) in keys.iter().zip(&lists) {
            tested = tested.message(5, ints(key, list));
        }
        for key in ["axis", "group", "blocksize", "batch_dims", "q_num_heads", "kv_num_heads", "size"] {
            tested = tested.message(5, Message::default().text(1, key).int(3, wild % 7));
        }
        let constant = node("Constant", &[], &["k"]).message(5, ints("value_ints", &numbers));
        read_and_count(&model(vec![constant, tested], inputs));
    }
}
