//! The built-in networks, against published figures.

mod common;

use common::macs;
use sweetspot_network::{Kind, NAMES, built_in, find, parse};

#[test]
fn counts_are_within_one_percent_of_the_named_source() {
    for name in NAMES {
        let network = built_in(name).unwrap();
        assert!(!network.source.is_empty(), "{name} names no source");
        let (Some(parameters), Some(published)) =
            (network.published_parameters, network.published_macs)
        else {
            // The networks that only multi_gpu_2018 describes are in tests/conventions.rs.
            assert!(
                ["cnn2d", "resnet_gait", "resnet_im"].contains(&name),
                "{name}"
            );
            continue;
        };
        let off = |counted: f64, published: f64| (counted / published - 1.0).abs();
        let own = network.parameters() as f64;
        assert!(
            off(own, parameters) < 0.01,
            "{name}: {own}, published {parameters}"
        );
        let own = macs(&network) as f64;
        assert!(
            off(own, published) < 0.01,
            "{name}: {own}, published {published}"
        );
    }
}

/// Sources with exact numbers are met exactly.
#[test]
fn parameters_are_exact_where_the_source_is() {
    for (name, parameters) in [
        ("alexnet", 61_100_840),
        ("caffenet", 60_965_224),
        ("vgg16", 138_357_544),
        ("vgg19", 143_667_240),
        ("googlenet", 6_998_552),
        ("inception_v2", 11_295_240),
        ("inception_v3", 23_834_568),
        ("inception_v4", 42_679_816),
        ("resnet50", 25_557_032),
        ("resnet101", 44_549_160),
        ("resnet152", 60_192_808),
        ("mobilenet_v1", 4_231_976),
        ("mobilenet_v2", 3_504_872),
        ("nasnet_mobile", 5_289_978),
        ("xception", 22_855_952),
    ] {
        assert_eq!(built_in(name).unwrap().parameters(), parameters, "{name}");
    }
}

#[test]
fn names_of_layers_are_unique() {
    for name in NAMES {
        let network = built_in(name).unwrap();
        let mut names: Vec<_> = network.layers.iter().map(|layer| &layer.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), network.layers.len(), "{name}");
    }
}

#[test]
fn aliases_work_and_unknown_names_suggest_others() {
    assert_eq!(built_in("inception_v1").unwrap().name, "googlenet");
    let error = built_in("resnet5").unwrap_err().to_string();
    assert!(error.contains("resnet50"), "{error}");
    let error = find("nowhere.net").unwrap_err().to_string();
    assert!(error.starts_with("cannot read nowhere.net"), "{error}");
}

/// A small vision transformer, with layers that no built-in network has.
#[test]
fn a_users_description_is_read() {
    let text = "
title A small transformer
input 3x32x32
def block heads
  branch
    layernorm
    linear 192 bias
    attention heads={heads}
    linear 64 bias
  branch
  add
  branch
    layernorm
    linear 256 bias
    gelu
    linear 64 bias
  branch
  add
conv 64 8x8 stride=8 bias
tokens
repeat 2 block 4
layernorm
pick
fc 10 bias";
    let network = parse("mine.net", text).unwrap();
    let block = 2 * 128 + 64 * 192 + 192 + 64 * 64 + 64 + 64 * 256 + 256 + 256 * 64 + 64;
    let rest = 3 * 64 * 64 + 64 + 128 + 64 * 10 + 10;
    assert_eq!(network.parameters(), 2 * block + rest);
    let per_block = 16 * (64 * 192 + 64 * 64 + 2 * 64 * 256) + 2 * 16 * 16 * 64;
    assert_eq!(macs(&network), 2 * per_block + 16 * 3 * 64 * 64 + 64 * 10);
    let attends = |kind: &Kind| matches!(kind, Kind::Attention { .. });
    assert_eq!(
        network
            .layers
            .iter()
            .filter(|layer| attends(&layer.kind))
            .count(),
        2
    );
}

#[test]
fn errors_name_the_line() {
    for (text, expected) in [
        ("conv 3 3x3", "line 1: there is no `input`"),
        ("input 3x8x8\nconv 4", "line 2: `conv` needs a kernel"),
        (
            "input 3x8x8\nconv 4 3x3 depth=2",
            "line 2: `conv` does not take `depth`",
        ),
        (
            "input 3x8x8\nconv 4 9x9",
            "line 2: a kernel of 9 elements does not fit",
        ),
        ("input 3x8x8\nrelux", "line 2: unknown layer `relux`"),
        (
            "input 3x8x8\nbranch\n  relu\nbranch\n  conv 2 1x1\nadd",
            "line 6: 1x3x8x8 and 1x2x8x8",
        ),
        (
            "input 3x8x8\nbranch\n  relu\nrelu",
            "line 4: branches must be followed by",
        ),
        ("input 3x8x8\ndef f\n  f\nf", "calls itself"),
        ("input 3x8x8\ndef f a\n  relu\nf", "line 4: `f` needs `a`"),
        (
            "input 3x8x8\ntake y",
            "line 2: there is no saved tensor `y`",
        ),
        ("input 3x8x8\nconv {n} 3x3", "line 2: unknown variable `n`"),
        (
            "input 3x8x8\n   relu",
            "line 1: `input` cannot have indented lines",
        ),
        ("input 99999999x99999999", "line 1: a tensor of"),
        (
            "input 3x8x8\nrepeat 999999999\n  repeat 999999999 relu",
            "more than 100000 layers",
        ),
    ] {
        let error = parse("mine.net", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
