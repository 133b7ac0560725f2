//! `fit` of Keras: the bars of Keras 3 and Keras 2, and the line for each epoch of `verbose=2`.

use std::sync::LazyLock;

use regex_lite::Regex;

use super::format::Format;
use super::sample::{Amount, Role, Sample};
use super::text::{Pattern, captures, group, number};

/// The count, and after it a bar of Keras 3 (`━`), one of Keras 2 (`[==>..]`), or a dash.
static COUNT: Pattern = LazyLock::new(|| {
    Regex::new(r"^\s*([0-9]+)/([0-9]+|Unknown)\s+(?:━+ |\[[=>.]+\] |- |[0-9]+m?s )(.*)$").ok()
});

/// The headline of an epoch.
static HEADLINE: Pattern = LazyLock::new(|| Regex::new(r"^Epoch [0-9]+/[0-9]+\s*$").ok());

/// Reads a bar or a headline of Keras. `evaluate` and `predict` have bars of the same form, with a total of their own.
pub(super) fn parse(line: &str) -> Option<Sample> {
    let is_headline = line.starts_with("Epoch ") && captures(&HEADLINE, line).is_some();
    if is_headline {
        let sample = Sample::strong(Format::Keras, Role::Unknown, "step", 0.0, None);
        return Some(Sample {
            amount: Amount::NewEpoch,
            ..sample
        });
    }
    let found = line.contains('/').then(|| captures(&COUNT, line))??;
    let rest = group(&found, 3);
    let is_keras = ["ETA:", "/step", "/sample", "/epoch"]
        .iter()
        .any(|text| rest.contains(text));
    let (done, total) = (number(&found, 1)?, number(&found, 2));
    is_keras.then(|| Sample::strong(Format::Keras, Role::Unknown, "step", done, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_bars_are_read() {
        let sample = |done, total| {
            Some(Sample::strong(
                Format::Keras,
                Role::Unknown,
                "step",
                done,
                total,
            ))
        };
        for line in [
            " 2/18 ━━━━━━━━━━━━━━━━━━━━ 1s 121ms/step - loss: 1.5841",
            " 2/18 [==>...........................] - ETA: 1s - loss: 0.7574",
            " 2/18 [==>...........................] - 3s 7ms/step - loss: 0.7574",
            "2/18 - 4s - 196ms/step - loss: 0.2859 - val_loss: 0.1673",
        ] {
            assert_eq!(parse(line), sample(2.0, Some(18.0)), "{line}");
        }
        assert_eq!(
            parse("     12/Unknown  3s 7ms/step - loss: 1.2"),
            sample(12.0, None)
        );
        assert_eq!(
            parse("     12/Unknown - 3s 7ms/step - loss: 1.2"),
            sample(12.0, None)
        );
        let epoch = parse("Epoch 2/5").map(|sample| sample.amount);
        assert_eq!(epoch, Some(Amount::NewEpoch));
        assert_eq!(parse("2/18 - done"), None);
    }
}
