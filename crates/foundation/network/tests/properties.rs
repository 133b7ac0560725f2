//! Properties of all layers, and the roofline.

use proptest::prelude::*;
use sweetspot_network::{
    Convention, Cost, GpuCeilings, Limit, Precision, Window, built_in, count, parse, roofline,
};
use sweetspot_quantity::{BytesPerSecond, FlopsPerSecond, Joules, Watts};

proptest! {
    /// The last window begins inside, and one more would not fit.
    #[test]
    fn windows_fill_their_input(
        size in 1u64..200, kernel in 1u64..12, stride in 1u64..6, before in 0u64..6, after in 0u64..6,
        dilation in 1u64..4,
    ) {
        let window = Window {
            kernel: vec![kernel],
            stride: vec![stride],
            padding: vec![(before, after)],
            dilation: vec![dilation],
            ceil: false,
        };
        let (padded, reach) = (size + before + after, dilation * (kernel - 1) + 1);
        match window.output(&[size]) {
            Ok(output) => {
                prop_assert!((output[0] - 1) * stride + reach <= padded);
                prop_assert!(output[0] * stride + reach > padded);
                prop_assert_eq!(window.output_as_printed(&[size])[0] + 1, output[0]);
            }
            Err(_) => prop_assert!(reach > padded),
        }
    }

    /// With SAME padding the output is the input divided by the stride, rounded up, for every kernel.
    #[test]
    fn same_padding_divides_by_the_stride(size in 1u64..200, kernel in 1u64..12, stride in 1u64..6, at_start: bool) {
        let mut window = Window::plain(vec![kernel]);
        window.stride = vec![stride];
        window.pad_same(&[size], at_start);
        prop_assert_eq!(window.output(&[size]).unwrap()[0], size.div_ceil(stride));
    }

    /// Groups divide the work and the weights; a depthwise convolution works on one channel for each filter.
    #[test]
    fn groups_divide_work_and_weights(channels in 1u64..5, groups in 1u64..5, filters in 1u64..5, kernel in 1u64..4) {
        let (inputs, filters) = (channels * groups, filters * groups);
        let conv = |groups| {
            let text = format!("input {inputs}x9x9\nconv {filters} {kernel}x{kernel} groups={groups}");
            parse("mine.net", &text).unwrap().layers.remove(0)
        };
        let (whole, parts) = (conv(1), conv(groups));
        let macs = |layer| count(layer, Convention::Usual).operations.macs;
        prop_assert_eq!(macs(&whole), macs(&parts) * u128::from(groups));
        prop_assert_eq!(whole.parameters, parts.parameters * groups);
        // Equation 1 has no groups.
        let printed = |layer| count(layer, Convention::EquationsAsPrinted).operations.macs;
        prop_assert_eq!(printed(&whole), printed(&parts));
    }
}

fn ceilings() -> GpuCeilings {
    GpuCeilings {
        matrix: FlopsPerSecond::new(10e12),
        vector: FlopsPerSecond::new(10e12),
        bandwidth: BytesPerSecond::new(500e9),
        base: Watts::new(50.0),
        core: Watts::new(150.0),
        memory: Watts::new(50.0),
    }
}

#[test]
fn roofline_agrees_with_a_calculation_by_hand() {
    let network = parse("mine.net", "input 64x56x56\nconv 64 3x3 pad=1\nrelu").unwrap();
    let cost = Cost::of(&network, Convention::Usual, Precision::Fp32, 1, false);
    let (layers, total) = roofline(&cost, &ceilings());
    let macs = 56.0 * 56.0 * 64.0 * 64.0 * 9.0;
    let (compute, bytes) = (
        2.0 * macs / 10e12,
        4.0 * (2.0 * 56.0 * 56.0 * 64.0 + 64.0 * 64.0 * 9.0),
    );
    let memory = bytes / 500e9;
    assert_eq!(
        (layers[0].limit, layers[1].limit),
        (Limit::Compute, Limit::Memory)
    );
    assert!((layers[0].time.get() / compute - 1.0).abs() < 1e-12);
    let energy = 50.0 * compute + 150.0 * compute + 50.0 * memory;
    assert!((layers[0].energy.get() / energy - 1.0).abs() < 1e-12);
    let sum: Joules = layers.iter().map(|layer| layer.energy).sum();
    assert_eq!(total.energy, sum);
}

#[test]
fn parts_add_up_and_smaller_elements_are_faster() {
    for name in ["resnet50", "mobilenet_v2", "googlenet"] {
        let network = built_in(name).unwrap();
        let cost = |precision, batch| Cost::of(&network, Convention::Usual, precision, batch, true);
        let one = cost(Precision::Fp32, 1);
        let kinds: u128 = one
            .by_kind()
            .iter()
            .map(|kind| kind.counts.operations.all())
            .sum();
        assert_eq!(kinds, one.total().operations.all());
        let layers: u64 = one.by_kind().iter().map(|kind| kind.layers).sum();
        assert_eq!(layers as usize, network.layers.len());
        let time =
            |precision, batch| roofline(&cost(precision, batch), &ceilings()).1.time / batch as f64;
        assert!(time(Precision::Fp16, 1) < time(Precision::Fp32, 1));
        // Weights are read once for all items of a batch.
        assert!(time(Precision::Fp32, 64) < time(Precision::Fp32, 1));
    }
}
