//! The three counting conventions, against table 1 and by hand.

mod common;

use sweetspot_network::{Convention, Cost, Layer, Precision, built_in, count, parse};

/// Operations in millions, data read and written in MB of 2^20 bytes, and the ratio of computation to
/// communication.
fn row(layers: &[Layer]) -> [f64; 4] {
    let cost = Cost::of_layers(layers, 1, Convention::Table1, Precision::Fp32, 1, false);
    let total = cost.total();
    let mb = |bytes: u128| bytes as f64 / f64::from(1 << 20);
    [
        total.operations.all() as f64 / 1e6,
        mb(cost.read_bytes(&total)),
        mb(cost.written_bytes(&total)),
        total.ctc().unwrap(),
    ]
}

fn relative_errors(own: [f64; 4], printed: [f64; 4]) -> [f64; 4] {
    std::array::from_fn(|index| own[index] / printed[index] - 1.0)
}

#[test]
fn caffenet_is_table_1_within_one_percent() {
    let network = built_in("caffenet").unwrap();
    let relative_errors = relative_errors(row(&network.layers), [727.20, 239.1, 6.0, 11.6]);
    assert!(
        relative_errors
            .iter()
            .all(|relative_errors| relative_errors.abs() < 0.01),
        "{relative_errors:?}"
    );
}

#[test]
fn cnn2d_meets_table_1_without_one_layer() {
    let network = built_in("cnn2d").unwrap();
    let printed = [783.84, 73.8, 1.9, 40.5];
    let own = relative_errors(row(&network.layers), printed);
    assert!(own[0] > 0.02 && own[1] > 0.8 && own[3] < -0.4, "{own:?}");
    let less = relative_errors(row(&network.variants[0].layers), printed);
    for column in [0, 1, 3] {
        assert!(less[column].abs() < 0.02, "{less:?}");
    }
    // Written is 2.8 MB, not 1.9: no interpretation of the text gives less than the outputs of the ReLUs.
    assert!((0.4..0.6).contains(&less[2]), "{less:?}");
    assert_eq!(network.variants[0].layers.len(), 15);
}

#[test]
fn resnet_comes_near_table_1_only_with_stride_2() {
    let network = built_in("resnet_gait").unwrap();
    let printed = [425.13, 87.6, 4.8, 18.5];
    assert_eq!(network.layers.len(), 167);
    assert!(relative_errors(row(&network.layers), printed)[0] > 2.5);
    let relative_errors = relative_errors(row(&network.variants[0].layers), printed);
    assert!(
        relative_errors[1].abs() < 0.01
            && relative_errors
                .iter()
                .all(|relative_errors| relative_errors.abs() < 0.08),
        "{relative_errors:?}"
    );
}

#[test]
fn resnet_im_matches_table_1_in_no_interpretation() {
    let network = built_in("resnet_im").unwrap();
    assert_eq!(network.layers.len(), 94);
    let readings = network.variants.iter().map(|variant| &variant.layers);
    for layers in readings.chain([&network.layers]) {
        let [operations, read, _, _] = row(layers);
        assert!(operations > 1.9 * 2080.96, "{operations}");
        // The weights alone leave less than a fifth of the written data to be read again.
        let weights: u64 = layers.iter().map(|layer| layer.weights).sum();
        let weights = weights as f64 * 4.0 / f64::from(1 << 20);
        assert!(
            97.1 - weights < 0.2 * 46.6 && read > 97.1,
            "{weights} {read}"
        );
    }
}

#[test]
fn equations_as_printed_by_hand() {
    let text = "input 4x9x9\nconv 8 3x3 stride=2 pad=1 groups=2 bias\nmaxpool 3x3 stride=2\nfc 10 bias\nsoftmax";
    let network = parse("mine.net", text).unwrap();
    let printed: Vec<_> = network
        .layers
        .iter()
        .map(|layer| {
            let counts = count(layer, Convention::EquationsAsPrinted);
            (
                counts.operations.all(),
                counts.read + counts.weights,
                counts.written,
            )
        })
        .collect();
    // The output is (9 - 3 + 2) / 2 = 4 instead of 5; the equations have no groups and no output channels.
    let conv = (9 * 16 * 4 * 8 + 8, 81 * 4 + 9 * 4, 16 * 8);
    // Of the 5 x 5 that the convolution really outputs, (5 - 3) / 2 = 1.
    let pool = (9 * 8, 25 * 8, 8);
    let full = (2 * 2 * 8 * 10, 32 + 32, 10);
    assert_eq!(printed, [conv, pool, full, (30, 10, 10)]);
    let usual = count(&network.layers[0], Convention::Usual);
    assert_eq!(usual.operations.macs, 9 * 25 * 2 * 8);
    assert_eq!(usual.operations.additions, 25 * 8);
    assert_eq!(usual.weights, 9 * 2 * 8 + 8);
}

#[test]
fn batches_scale_by_equations_10_to_12() {
    let network = built_in("resnet50").unwrap();
    for convention in [
        Convention::Usual,
        Convention::EquationsAsPrinted,
        Convention::Table1,
    ] {
        let one = Cost::of(&network, convention, Precision::Fp32, 1, false);
        let many = Cost::of(&network, convention, Precision::Fp32, 64, false);
        let (a, b) = (one.total(), many.total());
        assert_eq!(b.operations, a.operations.times(64));
        assert_eq!(many.read_bytes(&b), 64 * one.read_bytes(&a));
        assert_eq!(many.written_bytes(&b), 64 * one.written_bytes(&a));
        // Really moved are the weights only once.
        assert!(many.moved_bytes(&b) < 64 * one.moved_bytes(&a));
    }
}

#[test]
fn backward_is_twice_for_products_and_once_for_the_rest() {
    let text = "input 4x9x9\nconv 8 3x3\nrelu";
    let network = parse("mine.net", text).unwrap();
    let cost = Cost::of(&network, Convention::Usual, Precision::Fp16, 1, true);
    let (conv, relu) = (&cost.layers[0], &cost.layers[1]);
    let (back, on) = (conv.backward.unwrap(), conv.forward);
    assert_eq!(back.operations, on.operations.times(2));
    // The gradient of 7 x 7 x 8, the input and the weights are read; the gradients of both are written.
    assert_eq!(back.read + back.weights, 392 + 324 + 288);
    assert_eq!(back.written + back.gradients, 324 + 288);
    assert_eq!(relu.backward.unwrap().operations, relu.forward.operations);
    assert_eq!(cost.read_bytes(&on), 2 * (324 + 288));
}

#[test]
fn precisions_have_their_bytes() {
    let bytes = ["fp32", "tf32", "fp16", "bf16", "int8"]
        .map(|name| name.parse::<Precision>().unwrap().bytes());
    assert_eq!(bytes, [4, 4, 2, 2, 1]);
    assert!(
        "fp64"
            .parse::<Precision>()
            .unwrap_err()
            .contains("fp32, tf32")
    );
    assert!(
        "paper"
            .parse::<Convention>()
            .unwrap_err()
            .contains("equations-as-printed")
    );
}
