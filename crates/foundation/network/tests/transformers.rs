//! The built-in transformers, the operations of the language that they need, and inputs of other sizes.

mod common;

use common::{macs, onnx};
use sweetspot_network::{Kind, Network, NetworkError, built_in, find_with_inputs, parse};

fn with_input(name: &str, shape: &str) -> Result<Network, NetworkError> {
    find_with_inputs(name, &[("input".to_owned(), shape.parse().unwrap())])
}

/// torchvision's documentation, Hugging Face's models and nanoGPT's notebook give these numbers.
#[test]
fn parameters_and_macs_are_those_published() {
    for (name, parameters, count) in [
        ("vit_b_16", 86_567_656, 17_563_828_224),
        (
            "bert_base",
            109_482_240,
            12 * (128 * 7_077_888 + 2 * 128 * 128 * 768) + 768 * 768,
        ),
        ("gpt2", 124_439_808, 291_648_307_200 / 2),
    ] {
        let network = built_in(name).unwrap();
        assert_eq!(network.parameters(), parameters, "{name}");
        assert_eq!(macs(&network), count, "{name}");
    }
    let exported = onnx("vit_b_16_dynamo");
    assert_eq!(macs(&exported), macs(&built_in("vit_b_16").unwrap()));
}

/// torchvision's ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1 are for images of 384 x 384.
#[test]
fn inputs_of_other_sizes_are_counted() {
    let large = with_input("vit_b_16", "3x384x384").unwrap();
    assert_eq!(large.parameters(), 86_859_496);
    assert!((macs(&large) as f64 / 55.48e9 - 1.0).abs() < 0.001);
    assert_eq!(large.inputs[0].1.to_string(), "1x3x384x384");
    // The weights of a convolutional network do not depend on the size of the image.
    let resnet = with_input("resnet50", "1x3x448x448").unwrap();
    let own = built_in("resnet50").unwrap();
    assert_eq!(resnet.parameters(), own.parameters());
    let last = 2048 * 1000;
    assert_eq!(macs(&resnet) - last, 4 * (macs(&own) - last));
    // Attention grows with the square of the sequence, everything else with its length.
    let (short, long) = (
        built_in("bert_base").unwrap(),
        with_input("bert_base", "512").unwrap(),
    );
    assert_eq!(short.parameters(), long.parameters());
    let pooler = 768 * 768;
    let attention = 12 * 2 * 768 * (512 * 512 - 4 * 128 * 128);
    assert_eq!(
        macs(&long) - pooler,
        4 * (macs(&short) - pooler) + attention
    );
}

#[test]
fn inputs_that_do_not_fit_are_explained() {
    for (name, shape, expected) in [
        (
            "bert_base",
            "513",
            "the network `bert_base` cannot have the input input=513: `positions` has a table for 512 positions, and the sequence has 513",
        ),
        ("gpt2", "1025", "a table for 1024 positions"),
        (
            "gpt2",
            "3x224x224",
            "it has the form input=1024, without the batch",
        ),
        (
            "resnet50",
            "224",
            "it has the form input=3x224x224, without the batch",
        ),
        (
            "resnet50",
            "2x3x224x224",
            "it has the form input=3x224x224, without the batch",
        ),
        (
            "vit_b_16",
            "3x8x8",
            "a kernel of 16 elements does not fit an input of 8",
        ),
        ("vgg16", "3x8x8", "of its description)"),
        ("resnet50", "3x500000x500000", "has more than"),
    ] {
        let error = with_input(name, shape).unwrap_err().to_string();
        assert!(error.contains(expected), "{name} {shape}: {error}");
    }
    let inputs = |names: &[&str]| -> Vec<_> {
        let shape = "3x64x64".parse().unwrap();
        let named = |name: &&str| (name.to_string(), Clone::clone(&shape));
        names.iter().map(named).collect()
    };
    let error = find_with_inputs("resnet50", &inputs(&["x"])).unwrap_err();
    assert!(
        error.to_string().contains("its only input is `input`"),
        "{error}"
    );
    let error = find_with_inputs("resnet50", &inputs(&["input", "input"])).unwrap_err();
    assert!(
        error.to_string().contains("given more than once"),
        "{error}"
    );
}

/// The three ways to write attention differ in the copy that one of them needs, and in nothing else.
#[test]
fn attention_over_one_tensor_or_three_is_the_same() {
    let side_by_side = "input 10\nembedding 100 64\nlinear 192 bias\nattention heads=4";
    let copied = "input 10\nembedding 100 64\nlinear 192 bias\nseparate heads=4\nattention";
    let one = "  linear 64 bias\n";
    let branches = format!(
        "input 10\nembedding 100 64\nbranch\n{one}branch\n{one}branch\n{one}attention heads=4"
    );
    let named = "input 10\nembedding 100 64\nkeep x\nlinear 64 bias\nkeep q\ntake x\nlinear 64 bias\nkeep k\ntake x\nlinear 64 bias\nkeep v\nattention heads=4 q k v";
    let networks =
        [side_by_side, copied, &branches, named].map(|text| parse("mine.net", text).unwrap());
    for network in &networks {
        let last = network.layers.last().unwrap();
        assert!(matches!(
            last.kind,
            Kind::Attention {
                heads: 4,
                sizes: (16, 16),
                positions: (10, 10)
            }
        ));
        assert_eq!(last.outputs[0].to_string(), "1x10x64");
        assert_eq!(network.parameters(), networks[0].parameters());
        assert_eq!(macs(network), macs(&networks[0]));
    }
    let copy = &networks[1].layers[2];
    assert_eq!(copy.kind, Kind::Move);
    assert_eq!(copy.outputs[0].to_string(), "3x1x4x10x16");
}

/// Keys and values may be of another sequence than queries, and values of another width than keys.
#[test]
fn attention_may_look_at_another_sequence() {
    let text = "input 10\nembedding 100 64\nkeep queries\ntoken\ntoken\nkeep keys\nlinear 32\nkeep values\nattention heads=4 queries keys values";
    let network = parse("mine.net", text).unwrap();
    let last = network.layers.last().unwrap();
    assert!(matches!(
        last.kind,
        Kind::Attention {
            heads: 4,
            sizes: (16, 8),
            positions: (10, 12)
        }
    ));
    assert_eq!(last.outputs[0].to_string(), "1x10x32");
}

/// A table larger than the sequence has all of its weights, of which those in use are read. Tied weights are read, but
/// belong to another layer.
#[test]
fn weights_that_are_read_differ_from_those_that_are_trained() {
    let text = "input 10\nembedding 100 64\nsegments 2\npositions 50\ntoken\npositions\nlinear 100 tied bias";
    let network = parse("mine.net", text).unwrap();
    let weights: Vec<_> = network
        .layers
        .iter()
        .map(|layer| (layer.parameters, layer.weights))
        .collect();
    assert_eq!(
        weights,
        [
            (6400, 6400),
            (2 * 64, 640),
            (50 * 64, 640),
            (64, 64),
            (11 * 64, 11 * 64),
            (100, 6500)
        ]
    );
}

#[test]
fn errors_of_transformers_name_the_line() {
    for (text, expected) in [
        (
            "input 3x8x8\ntoken",
            "line 2: `token` needs a sequence of tokens",
        ),
        (
            "input 3x8x8\npositions",
            "line 2: `positions` needs a sequence",
        ),
        (
            "input 8\nembedding 9 4\nsegments",
            "line 3: `segments` needs the number of segments",
        ),
        (
            "input 8\nembedding 9 4\npositions 7",
            "line 3: `positions` has a table for 7 positions",
        ),
        (
            "input 8\nembedding 9 4\nseparate heads=2",
            "for 2 heads; this is 1x8x4",
        ),
        ("input 8\nembedding 9 4\nattention heads=0", "for 0 heads"),
        (
            "input 8\nembedding 9 4\nattention heads=9999999999",
            "is not a whole number",
        ),
        (
            "input 8\nembedding 9 12\nattention heads=2 tails=3",
            "does not take `tails`",
        ),
        (
            "input 8\nembedding 9 12\nattention q k v",
            "there is no saved tensor `q`",
        ),
        (
            "input 8\nembedding 9 12\nkeep q\nattention q q",
            "one or three tensors; these are 2",
        ),
        (
            "input 8\nembedding 9 12\nkeep q\nlinear 8\nkeep k\nattention heads=2 q k k",
            "line 6: 1x8x12, 1x8x8 and 1x8x8 are not queries, keys and values of 2 heads",
        ),
        ("input 8\nscale 2", "line 2: `scale` does not take `2`"),
    ] {
        let error = parse("mine.net", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
