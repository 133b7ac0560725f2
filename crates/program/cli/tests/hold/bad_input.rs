//! Bad input of `hold` is rejected before anything starts.

use super::common::{hold, stderr_text};
use crate::host::TestHost;

#[test]
fn bad_input_is_rejected_in_one_line() {
    let host = TestHost::new("nvidia_h200:2");
    let one = ["--device", "0"];
    for (args, why) in [
        (
            &["--below", "300W", "--batches", "8,4"][..],
            "batch sizes must be in ascending order",
        ),
        (
            &["--below", "300W", "--batches", "0,4"],
            "invalid batch size 0",
        ),
        (
            &["--below", "300W", "--batches", "4,4"],
            "batch size 4 is given twice",
        ),
        (
            &["--below", "300W", "--batches", "4,-8"],
            "`-8` is not a batch size",
        ),
        (
            &["--below", "300W", "--batches", ""],
            "`` is not a batch size",
        ),
        (&["--below", "0W"], "invalid power cap `0W`"),
        (&["--below", "fast"], "invalid power cap `fast`"),
        (&[], "no power cap was given: give --below"),
        (
            &["--below", "300W", "--latency-p99", "0ms"],
            "must be more than zero",
        ),
        (
            &["--below", "300W", "--latency-p99", "20"],
            "write 20ms or 20s",
        ),
        (&["--below", "-5W"], "invalid power cap `-5W`"),
        (&["--below", "300W", "--settle", "-1s"], "more than zero"),
        (
            &["--below", "300W", "--mode", "text", "--latency-p99", "9ms"],
            "the mode text follows its paper and supports no latency bound",
        ),
        (
            &[
                "--below",
                "300W",
                "--mode",
                "windowed",
                "--objective",
                "energy-per-item",
            ],
            "supports no objective energy-per-item",
        ),
        (
            &[
                "--below", "300W", "--mode", "windowed", "--cap-on", "mean:1s",
            ],
            "the mode windowed follows its paper and supports no cap on a mean",
        ),
        (
            &["--below", "300W", "--mode", "dvfs", "--latency-p99", "9ms"],
            "the mode dvfs follows its paper and supports no latency bound",
        ),
        (
            &["--below", "300W", "--mode", "text", "--sensor", "average"],
            "the mode text decides by single power readings",
        ),
        (
            &["--below", "300W", "--fixed-batch", "4"],
            "the knob auto chooses the batch size itself",
        ),
        (&["--below", "300W", "--alpha", "2"], "at most 1"),
        (
            &["--below", "300W", "--knob", "core-clock", "--read-only"],
            "use the knob batch",
        ),
        (
            &["--below", "300W", "--knob", "joint", "--mode", "paper"],
            "cannot set the knob joint",
        ),
        (
            &["--below", "device", "--knob", "power-cap"],
            "because the knob power-cap changes that limit",
        ),
        (
            &["--cap-file", "/nonexistent"],
            "or give a cap on the command line",
        ),
        (
            &["--below", "300W", "--knob", "voltage"],
            "invalid value 'voltage'",
        ),
    ] {
        let output = hold(&host, &[&one, args].concat(), &["--", "true"]);
        let message = stderr_text(&output);
        assert_eq!(output.status.code(), Some(125), "{args:?}: {message}");
        assert!(message.contains(why), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let missing = hold(
        &host,
        &["--below", "300W", "--device", "0"],
        &["--", "/no/such"],
    );
    assert_eq!(
        missing.status.code(),
        Some(127),
        "{}",
        stderr_text(&missing)
    );
}
