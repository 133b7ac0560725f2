//! The kernels of the built-in transformers are those of the same networks exported from PyTorch.

use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_network::{
    Arithmetic, Kind, Layer, Network, OnnxOptions, Precision, Shape, built_in, parse, read_onnx,
};
use sweetspot_predict::{Kernel, Predictor, Product, Work, kernels};
use sweetspot_sim::{Mode, find_gpu};

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path)
}

fn onnx(path: &Path) -> Network {
    read_onnx(path.to_str().unwrap(), &OnnxOptions::default()).unwrap()
}

/// An exported network with fewer blocks than the built-in one.
fn small_onnx(name: &str) -> Network {
    let tests = folder("crates/foundation/network/tests/onnx");
    onnx(&tests.join(format!("{name}.onnx")))
}

/// A built-in network with this many blocks, for 32 tokens.
fn small_built_in(name: &str, blocks: usize) -> Network {
    let path = folder("crates/foundation/network/networks").join(format!("{name}.net"));
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|line| match line.split_once(' ') {
        Some(("input", _)) => "input 32".to_owned(),
        Some(("set", _)) => format!("set blocks {blocks}"),
        _ => line.to_owned(),
    });
    parse(name, &lines.collect::<Vec<_>>().join("\n")).unwrap()
}

fn products(kernels: &[Kernel]) -> Vec<Product> {
    let products = kernels.iter().filter_map(|kernel| match kernel.work {
        Work::Product(product) => Some(product),
        _ => None,
    });
    products.collect()
}

fn count(kernels: &[Kernel], is: impl Fn(&Work) -> bool) -> usize {
    kernels.iter().filter(|kernel| is(&kernel.work)).count()
}

#[test]
fn vit_b_16_costs_what_the_exported_file_does() {
    let unpacked = tempfile::tempdir().unwrap();
    let mut tar = Command::new("tar");
    tar.arg("xzf")
        .arg(folder("data/measured_h200/zoo_onnx.tar.gz"))
        .arg("-C")
        .arg(unpacked.path())
        .arg("vit_b_16.onnx");
    assert!(tar.status().unwrap().success());
    let exported = onnx(&unpacked.path().join("vit_b_16.onnx"));
    let own = built_in("vit_b_16").unwrap();
    let (of_file, of_text) = (kernels(&exported), kernels(&own));
    let works = |kernels: &[Kernel]| kernels.iter().map(|kernel| kernel.work).collect::<Vec<_>>();
    assert_eq!(works(&of_text), works(&of_file));
    assert_eq!(products(&of_text).len(), 1 + 4 * 12 + 1);
    let attends = |work: &Work| matches!(work, Work::Attention { .. });
    assert_eq!(count(&of_text, attends), 12);
    let (name, gpu) = find_gpu("h200").unwrap();
    for batch in [1, 8, 64, 256] {
        let rate = |network: &Network| {
            let at = (name.as_str(), &gpu);
            let predictor = Predictor::new(network, at, Precision::Bf16, Mode::Infer).unwrap();
            predictor.predict(batch).items_per_s()
        };
        let off = rate(&own) / rate(&exported) - 1.0;
        assert!(off.abs() < 0.03, "batch {batch}: {off}");
    }
}

/// The files were exported without the pooler, and with attention in single steps: a product, scale, mask, softmax and a
/// product for each block where the text has one kernel.
#[test]
fn bert_base_starts_the_kernels_of_the_exported_files() {
    const BLOCKS: usize = 4;
    let own = kernels(&small_built_in("bert_base", BLOCKS));
    for name in ["bert", "bert_dynamo"] {
        assert_apart_from_attention(&small_onnx(name), &own, BLOCKS, 1);
    }
}

#[test]
fn gpt2_starts_the_kernels_of_the_exported_file() {
    const BLOCKS: usize = 2;
    let own = kernels(&small_built_in("gpt2", BLOCKS));
    assert_apart_from_attention(&small_onnx("gpt2_dynamo"), &own, BLOCKS, 0);
}

/// Checks that the kernels are the same apart from attention, and from the last ones: a product and a function each.
fn assert_apart_from_attention(exported: &Network, own: &[Kernel], blocks: usize, last: usize) {
    let name = &exported.name;
    let exported = kernels(exported);
    let own_products = products(own);
    assert_eq!(
        own_products[..own_products.len() - last],
        products(&exported),
        "{name}"
    );
    let batched = |work: &Work| matches!(work, Work::Batched { .. });
    let attends = |work: &Work| matches!(work, Work::Attention { .. });
    assert_eq!(count(&exported, batched), 2 * blocks, "{name}");
    assert_eq!(count(own, attends), blocks, "{name}");
    let elements = |work: &Work| *work == Work::Elements;
    let normalises = |work: &Work| *work == Work::Normalisation;
    assert_eq!(
        count(own, elements) - last,
        count(&exported, elements) - 2 * blocks,
        "{name}"
    );
    assert_eq!(
        count(own, normalises),
        count(&exported, normalises) - blocks,
        "{name}"
    );
}

fn layer(kind: Kind, inputs: &[&str], output: &str) -> Layer {
    let shape = |text: &&str| text.parse::<Shape>().unwrap();
    Layer {
        name: output.to_owned(),
        kind,
        inputs: inputs.iter().map(shape).collect(),
        outputs: vec![shape(&output)],
        parameters: 0,
        weights: 0,
        has_folded_normalisation: false,
    }
}

/// PyTorch's `scaled_dot_product_attention` is one kernel, with a mask or without; attention in single steps is many.
#[test]
fn attention_with_a_mask_is_one_kernel_if_queries_and_keys_are_scaled() {
    let (queries, keys, scores) = ("1x12x32x64", "1x12x64x32", "1x12x32x32");
    let multiply = || Kind::ElementWise(Arithmetic::Multiply);
    let scaled = [
        layer(multiply(), &[queries], queries),
        layer(multiply(), &[keys], keys),
    ];
    let first = layer(Kind::MatrixProduct { inner: 64 }, &[queries, keys], scores);
    let add = Kind::ElementWise(Arithmetic::Add);
    let mut constant = layer(add.clone(), &[scores], scores);
    constant.weights = 32 * 32;
    let computed = layer(add, &[scores, "1x1x32x32"], scores);
    let softmax = layer(Kind::Softmax, &[scores], scores);
    let last = layer(
        Kind::MatrixProduct { inner: 32 },
        &[scores, queries],
        queries,
    );
    let works = |layers: Vec<Layer>| {
        kernels(&Network {
            layers,
            batch: 1,
            ..Network::default()
        })
    };
    let elements = 4.0 * 12.0 * 32.0 * 64.0;
    let work = Work::Attention {
        operations: 4.0 * 12.0 * 32.0 * 32.0 * 64.0,
    };
    for (mask, of_mask) in [
        (None, 0.0),
        (Some(constant), 1024.0),
        (Some(computed.clone()), 1024.0),
    ] {
        let mut layers = scaled.to_vec();
        layers.push(first.clone());
        layers.extend(mask);
        layers.extend([softmax.clone(), last.clone()]);
        let [attention] = works(layers)[..] else {
            panic!("more than one kernel");
        };
        assert_eq!(attention.work, work);
        assert_eq!(attention.elements, elements + of_mask);
    }
    assert_eq!(works(vec![first, computed, softmax, last]).len(), 4);
}
