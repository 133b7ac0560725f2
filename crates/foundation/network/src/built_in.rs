//! The networks whose descriptions are part of the program.

use include_dir::{Dir, include_dir};

use crate::text::parse_with_inputs;
use crate::{Network, NetworkError, OnnxOptions, Shape, read_onnx};

/// The description files of the built-in networks.
static NETWORKS: Dir = include_dir!("$CARGO_MANIFEST_DIR/networks");

/// The names of the built-in networks.
pub const NAMES: [&str; 22] = [
    "alexnet",
    "caffenet",
    "vgg16",
    "vgg19",
    "googlenet",
    "inception_v2",
    "inception_v3",
    "inception_v4",
    "resnet50",
    "resnet101",
    "resnet152",
    "mobilenet_v1",
    "mobilenet_v2",
    "nasnet_mobile",
    "pnasnet_mobile",
    "xception",
    "cnn2d",
    "resnet_gait",
    "resnet_im",
    "vit_b_16",
    "bert_base",
    "gpt2",
];

/// Reads a built-in network by name; `inception_v1` is an alias of `googlenet`.
pub fn built_in(name: &str) -> Result<Network, NetworkError> {
    built_in_with_inputs(name, &[])
}

/// Reads a built-in network for inputs of these sizes.
fn built_in_with_inputs(name: &str, inputs: &[(String, Shape)]) -> Result<Network, NetworkError> {
    let file = match name {
        "inception_v1" => "googlenet",
        name => name,
    };
    let text = NETWORKS
        .get_file(format!("{file}.net"))
        .and_then(|file| file.contents_utf8());
    match text {
        Some(text) => parse_with_inputs(file, text, inputs),
        None => Err(NetworkError::Unknown {
            name: name.to_owned(),
            near: nearest(name),
        }),
    }
}

/// Reads a built-in network if the text is one's name, else the description file at that path.
pub fn find(name: &str) -> Result<Network, NetworkError> {
    find_with_inputs(name, &[])
}

/// Reads a network like [`find`], for inputs of other sizes than those of its description. A description has one input,
/// `input`, whose shape is written as there, without the batch.
pub fn find_with_inputs(name: &str, inputs: &[(String, Shape)]) -> Result<Network, NetworkError> {
    if !name.ends_with(".net") {
        return built_in_with_inputs(name, inputs);
    }
    const MAX_BYTES: u64 = 1 << 20;
    let unreadable = |reason: String| NetworkError::Unreadable {
        path: name.to_owned(),
        reason,
    };
    let text = sweetspot_input::read_text(name, MAX_BYTES);
    let text = text.map_err(|error| unreadable(error.to_string()))?;
    parse_with_inputs(name, &text, inputs)
}

/// Loads a built-in network by its name, or a description or ONNX file by its path. The sizes of inputs that are given
/// replace those of the network.
pub fn load(name: &str, inputs: Vec<(String, Shape)>) -> Result<Network, NetworkError> {
    let extension = std::path::Path::new(name).extension();
    match extension.is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
        true => read_onnx(name, &OnnxOptions { inputs }),
        false => find_with_inputs(name, &inputs),
    }
}

/// The three built-in names most similar to an unknown one, the most similar first.
fn nearest(name: &str) -> Vec<String> {
    let name = name.to_lowercase();
    let mut near: Vec<_> = NAMES
        .iter()
        .map(|known| (strsim::jaro_winkler(&name, known), *known))
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    near.into_iter()
        .take(3)
        .map(|(_, known)| known.to_owned())
        .collect()
}
