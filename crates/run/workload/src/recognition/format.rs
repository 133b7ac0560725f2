//! The formats of progress that can be recognised, and their names.

use super::sample::Sample;
use super::{bars, keras, lines, plain, tqdm};

/// A format in which programs print their progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Bars of tqdm: `12%|█▏   | 12/100 [00:01<00:08, 10.5it/s]`.
    Tqdm,
    /// Bars of PyTorch Lightning, which it prints with tqdm or rich.
    Lightning,
    /// The Trainer of Hugging Face: a tqdm bar, and lines such as `{'loss': 2.3, ..., 'epoch': 0.5}`.
    HuggingFace,
    /// Bars of rich with a count: `Epoch 0/4 ━━━━━ 12/100 0:00:01 • 0:00:08 10.5it/s`.
    Rich,
    /// Bars of Ultralytics: `12% ━╸──── 12/100 10.5it/s 1.1s<8.4s`.
    Ultralytics,
    /// Bars of fastai: `Epoch 1/5 : |███-----| 12.34% [58/469 00:03<00:24 2.3456]`.
    Fastai,
    /// `fit` of Keras: ` 12/469 ━━━━━ 3s 7ms/step - loss: 2.3`, and the bars of Keras 2.
    Keras,
    /// The training script of timm: `Train: 0 [  50/1251 (  4%)]  Loss: ...`.
    Timm,
    /// The ImageNet example of PyTorch: `Epoch: [0][  10/5005]   Time ...`.
    ImageNet,
    /// nanoGPT: `iter 10: loss 2.3, time 105.2ms, mfu 12.3%`.
    NanoGpt,
    /// Megatron-LM: `iteration 100/ 500000 | consumed samples: 25600 | ...`.
    Megatron,
    /// MMEngine: `Epoch(train) [1][ 50/469]  lr: ...`.
    MmEngine,
    /// Detectron2: `eta: 0:10:00  iter: 19  total_loss: 2.3 ...`.
    Detectron2,
    /// Darknet: `100: 2.3, 2.4 avg, 0.001 rate, 3.4 seconds, 6400 images`.
    Darknet,
    /// Plain lines with a counter: `step 100`, `Epoch 3 batch 200 loss 0.5`, `[100/5000] loss: 0.5`.
    Steps,
    /// Plain lines with a rate: `images/sec: 212.5`, `3.4 it/s`.
    Rates,
}

/// Reads the progress in a line of one format.
type Parser = fn(&str) -> Option<Sample>;

/// All parsers; the formats that say most about themselves come first, because the first match counts.
const PARSERS: [Parser; 14] = [
    tqdm::parse,
    bars::parse_ultralytics,
    bars::parse_rich,
    bars::parse_fastai,
    keras::parse,
    lines::parse_timm,
    lines::parse_imagenet,
    lines::parse_nanogpt,
    lines::parse_megatron,
    lines::parse_mmengine,
    lines::parse_detectron2,
    lines::parse_darknet,
    lines::parse_trainer,
    plain::parse,
];

impl Format {
    /// All formats.
    pub const ALL: [Self; 16] = [
        Self::Tqdm,
        Self::Lightning,
        Self::HuggingFace,
        Self::Rich,
        Self::Ultralytics,
        Self::Fastai,
        Self::Keras,
        Self::Timm,
        Self::ImageNet,
        Self::NanoGpt,
        Self::Megatron,
        Self::MmEngine,
        Self::Detectron2,
        Self::Darknet,
        Self::Steps,
        Self::Rates,
    ];

    /// The name of the format, as it is given on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tqdm => "tqdm",
            Self::Lightning => "lightning",
            Self::HuggingFace => "huggingface",
            Self::Rich => "rich",
            Self::Ultralytics => "ultralytics",
            Self::Fastai => "fastai",
            Self::Keras => "keras",
            Self::Timm => "timm",
            Self::ImageNet => "imagenet",
            Self::NanoGpt => "nanogpt",
            Self::Megatron => "megatron",
            Self::MmEngine => "mmengine",
            Self::Detectron2 => "detectron2",
            Self::Darknet => "darknet",
            Self::Steps => "steps",
            Self::Rates => "rates",
        }
    }

    /// The format with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether a program that prints in this format prints lines of the other one.
    pub(super) fn includes(self, other: Self) -> bool {
        let printed_with: &[Self] = match self {
            Self::Lightning => &[Self::Tqdm, Self::Rich],
            Self::HuggingFace => &[Self::Tqdm],
            Self::Tqdm => &[Self::Lightning],
            _ => &[],
        };
        self == other || printed_with.contains(&other)
    }

    /// Reads the progress in a line: in this format, or in any one if `None`.
    pub(super) fn parse(format: Option<Self>, line: &str) -> Option<Sample> {
        let is_wanted =
            |sample: &Sample| format.is_none_or(|format| format.includes(sample.format));
        let mut samples = PARSERS.iter().filter_map(|parse| parse(line));
        samples.find(is_wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_different_and_found() {
        for format in Format::ALL {
            assert_eq!(Format::by_name(format.name()), Some(format));
        }
        assert_eq!(Format::by_name("step ([0-9]+)"), None);
    }
}
