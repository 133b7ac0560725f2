//! ONNX files from PyTorch (tests/onnx/export.py) and from the `onnx` package (tests/onnx/write.py).

mod common;

use common::{macs, onnx, onnx_path};
use serde_json::Value;
use sweetspot_network::{Kind, OnnxOptions, built_in, read_onnx};

fn json(name: &str) -> Value {
    let path = onnx_path(name).with_extension("json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The multiply-accumulates of scaled dot-product attention, which PyTorch's own counter cannot see on a CPU:
/// 12 blocks of 197 tokens and a width of 768, 2 of 17 and 64.
fn attention_macs(name: &str) -> u128 {
    match name {
        "vit_b_16_dynamo" => 12 * 2 * 197 * 197 * 768,
        "vit_small" => 2 * 2 * 17 * 17 * 64,
        _ => 0,
    }
}

#[test]
fn multiply_accumulates_agree_with_pytorch() {
    let counts = json("counts");
    let counts = counts.as_object().unwrap();
    assert_eq!(counts.len(), 24);
    for (name, published) in counts {
        let network = onnx(name);
        assert!(
            network.is_fully_counted(),
            "{name}: {:?} {:?}",
            network.unknown,
            network.without_shape
        );
        let published = u128::from(published["macs"].as_u64().unwrap()) + attention_macs(name);
        assert_eq!(macs(&network), published, "{name}");
    }
}

/// The new exporter folds batch normalisation into convolutions and, like the old one for Swin, stores masks
/// and tables as weights, so that only files without these can agree.
#[test]
fn parameters_agree_with_pytorch() {
    let counts = json("counts");
    for (name, published) in counts.as_object().unwrap() {
        if name.ends_with("_dynamo") || name == "swin_small" {
            continue;
        }
        assert_eq!(
            onnx(name).parameters(),
            published["parameters"].as_u64().unwrap(),
            "{name}"
        );
    }
}

#[test]
fn files_and_built_in_descriptions_agree_exactly() {
    for name in [
        "alexnet",
        "vgg16",
        "vgg19",
        "inception_v3",
        "resnet50",
        "resnet101",
        "resnet152",
        "mobilenet_v2",
    ] {
        let (file, own) = (onnx(name), built_in(name).unwrap());
        assert_eq!(file.parameters(), own.parameters(), "{name}");
        assert_eq!(macs(&file), macs(&own), "{name}");
        // Layer by layer too, where both have the layers with weights in the same order.
        let weighted = |network: &sweetspot_network::Network| -> Vec<(u64, String)> {
            let layers = network.layers.iter().filter(|layer| {
                matches!(
                    layer.kind,
                    Kind::Convolution(_) | Kind::FullyConnected { .. }
                )
            });
            let mut layers: Vec<_> = layers
                .map(|layer| (layer.parameters, layer.outputs[0].to_string()))
                .collect();
            layers.sort();
            layers
        };
        assert_eq!(weighted(&file), weighted(&own), "{name}");
    }
}

/// The package that defines ONNX infers the same shapes.
#[test]
fn shapes_agree_with_onnx() {
    let mut compared = 0;
    for (name, shapes) in json("shapes").as_object().unwrap() {
        let network = onnx(name);
        assert!(
            network.is_fully_counted(),
            "{name}: {:?} {:?}",
            network.unknown,
            network.without_shape
        );
        for layer in &network.layers {
            let Some(sizes) = shapes.get(&layer.name) else {
                continue;
            };
            let sizes: Vec<u64> = serde_json::from_value(sizes.clone()).unwrap();
            assert_eq!(layer.outputs[0].sizes(), sizes, "{name}: {}", layer.name);
            compared += 1;
        }
    }
    assert!(compared >= 25, "only {compared} shapes compared");
}

#[test]
fn weights_without_values_and_weights_as_inputs_count() {
    // A table, a projection with bias, a normalisation, and the products of attention.
    let network = onnx("transformer");
    assert_eq!(network.parameters(), 100 * 32 + 32 * 96 + 96 + 2 * 32);
    assert_eq!(macs(&network), 10 * 32 * 96 + 2 * 10 * 10 * 32);
    let network = onnx("convolutions");
    assert_eq!(
        network.parameters(),
        16 * 4 * 9 + 16 + 16 * 25 + 16 * 6 * 9 + 2 * 12 + 12 * 2 * 9
    );
    let network = onnx("attention");
    assert_eq!(network.batch, 2);
    assert_eq!(macs(&network), 2 * 10 * 12 * 128);
}

#[test]
fn unknown_operators_and_nodes_after_them_are_listed() {
    let network = onnx("unknown");
    let unknown: Vec<_> = network
        .unknown
        .iter()
        .map(|one| one.operator.as_str())
        .collect();
    assert_eq!(unknown, ["Det", "NonZero"]);
    assert_eq!(network.without_shape, ["`e` (Relu)", "`y` (Transpose)"]);
    assert_eq!(network.layers.len(), 1);
    // Both read the result of the convolution, 4 x 6 x 6, and have results of unknown shape.
    let elements: Vec<_> = network.unknown.iter().map(|one| one.elements).collect();
    assert_eq!(elements, [144, 144]);
    let counted = 3.0 * 8.0 * 8.0 + 4.0 * 3.0 * 9.0 + 144.0;
    assert_eq!(network.unknown_share_of_data(), 288.0 / (288.0 + counted));
    assert_eq!(network.unknown_share_of_nodes(), 4.0 / 5.0);
    assert_eq!(network.unknown_share(), 4.0 / 5.0);
    assert_eq!(onnx("resnet50").unknown_share(), 0.0);
}

#[test]
fn missing_sizes_can_be_given() {
    let path = onnx_path("no_sizes");
    let path = path.to_str().unwrap();
    let error = read_onnx(path, &OnnxOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("leaves sizes of its inputs open: `x` is 1x3xHxW"),
        "{error}"
    );
    let given = |name: &str, shape: &str| OnnxOptions {
        inputs: vec![(name.to_owned(), shape.parse().unwrap())],
    };
    let network = read_onnx(path, &given("x", "4x3x10x12")).unwrap();
    assert_eq!(network.batch, 4);
    assert_eq!(network.layers[0].outputs[0].to_string(), "4x4x8x10");
    let error = read_onnx(path, &given("z", "1x1")).unwrap_err().to_string();
    assert!(
        error.contains("input `z` does not exist; the inputs are x, w"),
        "{error}"
    );
}

#[test]
fn shape_errors_name_the_node() {
    let path = onnx_path("does_not_fit");
    let error = read_onnx(path.to_str().unwrap(), &OnnxOptions::default()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("node `y` (Conv): filters for 1 groups of 5 channels"),
        "{error}"
    );
}

/// Its speed is measured by the benchmark `network`.
#[test]
fn a_thousand_layers_are_read() {
    let network = onnx("thousand_layers");
    assert_eq!(network.layers.len(), 1000);
    assert_eq!(network.parameters(), 333 * (64 * 64 * 9 + 128));
    assert_eq!(macs(&network), 333 * 56 * 56 * 64 * 64 * 9);
}
