//! `sweetspot network` as a user runs it.

use std::path::Path;

use crate::common::{sweetspot, text};
use serde_json::Value;

fn onnx(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../foundation/network/tests/onnx");
    folder.join(format!("{name}.onnx")).display().to_string()
}

fn json(args: &[&str]) -> Value {
    let mut all = vec!["network"];
    all.extend(args);
    all.extend(["--export-json", "-"]);
    let output = sweetspot(&std::env::temp_dir(), &all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn expect_rejection(args: &[&str], says: &str) {
    let mut all = vec!["network"];
    all.extend(args);
    let output = sweetspot(&std::env::temp_dir(), &all);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains(says) && error.lines().count() == 1,
        "{error}"
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn json_has_the_documented_keys() {
    let document = json(&["resnet50"]);
    assert_eq!(document["schema"], "sweetspot.network/1");
    assert_eq!(document["network"], "resnet50");
    assert_eq!(document["convention"], "usual");
    assert_eq!(document["batch"], 1);
    let totals = &document["totals"];
    assert_eq!(totals["macs"], 4_089_184_256u64);
    assert_eq!(totals["flops"], 2 * 4_089_184_256u64);
    assert_eq!(totals["parameters"], 25_557_032);
    let layers = document["layers"].as_array().unwrap();
    for key in ["read_bytes", "written_bytes", "macs", "parameters"] {
        let sum: u64 = layers
            .iter()
            .map(|layer| layer[key].as_u64().unwrap())
            .sum();
        assert_eq!(totals[key], sum, "{key}");
    }
    assert!(totals["ctc"].as_f64().unwrap() > 1.0);
}

#[test]
fn costs_scale_with_batch_precision_and_training() {
    let (one, many) = (json(&["vgg16"]), json(&["vgg16", "--batch", "32"]));
    for key in ["macs", "read_bytes", "written_bytes"] {
        let at = |document: &Value| document["totals"][key].as_u64().unwrap();
        assert_eq!(at(&many), 32 * at(&one), "{key}");
    }
    let half = json(&["vgg16", "--precision", "fp16"]);
    let read = |document: &Value| document["totals"]["read_bytes"].as_u64().unwrap();
    assert_eq!(2 * read(&half), read(&one));
    let trained = json(&["vgg16", "--train"]);
    let macs = |document: &Value| document["totals"]["macs"].as_u64().unwrap();
    assert_eq!(macs(&trained), 3 * macs(&one));
    assert_eq!(trained["mode"], "train");
}

#[test]
fn an_onnx_file_and_a_built_in_network_have_the_same_costs() {
    let (file, own) = (json(&[&onnx("resnet50")]), json(&["resnet50"]));
    for key in ["macs", "flops", "parameters"] {
        assert_eq!(file["totals"][key], own["totals"][key], "{key}");
    }
    // A batch multiplies the costs of a file too, whatever batch it was exported with.
    let many = json(&[&onnx("attention"), "--batch", "8"]);
    let two = json(&[&onnx("attention")]);
    assert_eq!(two["batch"], 2);
    assert_eq!(
        many["totals"]["macs"].as_u64(),
        two["totals"]["macs"].as_u64().map(|macs| 4 * macs)
    );
}

#[test]
fn inputs_of_other_sizes_can_be_given_to_every_network() {
    let macs = |args: &[&str]| json(args)["totals"]["macs"].as_u64().unwrap();
    let ratio = |args: &[&str]| macs(args) as f64 / macs(&args[..1]) as f64;
    let resnet = ratio(&["resnet50", "--input", "input=3x448x448"]);
    assert!((resnet - 4.0).abs() < 0.01, "{resnet}");
    let bert = ratio(&["bert_base", "--input", "input=512"]);
    assert!((4.0..4.4).contains(&bert), "{bert}");
    let document = json(&["bert_base", "--input", "input=512", "--simulate", "h200"]);
    assert_eq!(document["inputs"][0]["shape"], serde_json::json!([1, 512]));
    assert!(document["prediction"]["items_per_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_gpu_gives_lower_bounds_of_time_and_energy() {
    let document = json(&["resnet50", "--batch", "64", "--simulate", "v100"]);
    let bound = &document["bound"];
    let seconds = bound["time_s"].as_f64().unwrap();
    // 523 GFLOP at 15.7 TFLOP/s, and no more than a few times that.
    assert!((0.0333..0.1).contains(&seconds), "{seconds}");
    // Between idle power and the cap.
    let power = bound["energy_j"].as_f64().unwrap() / seconds;
    assert!((60.0..301.0).contains(&power), "{power}");
    let layers = document["layers"].as_array().unwrap();
    let by = |what: &str| {
        layers
            .iter()
            .filter(|layer| layer["bound"]["by"] == what)
            .count()
    };
    assert_eq!(
        by("memory"),
        bound["memory_bound_layers"].as_u64().unwrap() as usize
    );
    assert!(by("compute") > 20 && by("memory") > 100);
}

#[test]
fn a_study_adds_the_achieved_efficiency() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = "sweep --simulate titan_x_pascal --network caffenet --power-cap 200,250 --repeat 1 --study it";
    let output = sweetspot(folder.path(), &sweep.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let args = "network caffenet --convention table-1 --study it --export-json -";
    let output = sweetspot(folder.path(), &args.split(' ').collect::<Vec<_>>());
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = document["study"]["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        let efficiency = point["gflops_per_watt"].as_f64().unwrap();
        let energy = point["energy_per_item_j"].as_f64().unwrap();
        let flops = document["study"]["flops_per_item"].as_f64().unwrap();
        assert!((efficiency * energy * 1e9 / flops - 1.0).abs() < 1e-9);
        let of_sgemm = point["share_of_sgemm"].as_f64().unwrap();
        assert!((of_sgemm - efficiency / 42.0).abs() < 1e-9);
        assert!((0.05..0.5).contains(&point["share_of_peak"].as_f64().unwrap()));
    }
    // Table 11 of the paper shows 9.8 to 10.5 at full power.
    let full = points[1]["gflops_per_watt"].as_f64().unwrap();
    assert!((9.0..11.0).contains(&full), "{full}");
    let other = sweetspot(folder.path(), &["network", "vgg16", "--study", "it"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other.stderr).contains("the study measured the network caffenet, not vgg16"));
}

#[test]
fn uncounted_operators_are_listed_and_give_exit_code_1() {
    let output = sweetspot(&std::env::temp_dir(), &["network", &onnx("unknown")]);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("`d` (Det)") && shown.contains("`n` (NonZero)"),
        "{shown}"
    );
    // Four of five nodes; 288 of 732 elements.
    let share = "They are 80 % of the nodes and move at least 39 % of the data.";
    assert!(shown.contains(share), "{shown}");
    let args = ["network", &onnx("unknown"), "--export-json", "-"];
    let output = sweetspot(&std::env::temp_dir(), &args);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let share = &document["unknown_share"];
    assert_eq!(share["nodes"], 0.8);
    assert!((share["data"].as_f64().unwrap() - 288.0 / 732.0).abs() < 1e-9);
    assert_eq!(document["unknown_operators"][0]["elements"], 144);
    assert!(json(&["resnet50"]).get("unknown_share").is_none());
}

/// A field of a protocol buffer with fewer than 128 bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let head = [number << 3 | 2, content.len() as u8];
    [&head, content].concat()
}

#[test]
fn a_file_without_a_known_layer_says_so() {
    let node = [field(1, b"x"), field(2, b"y"), field(4, b"Alpha")].concat();
    let shape = field(1, &[1 << 3, 3]);
    let tensor = [vec![1 << 3, 1], field(2, &shape)].concat();
    let input = [field(1, b"x"), field(2, &field(1, &tensor))].concat();
    let graph = [field(1, &node), field(11, &input)].concat();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("alpha.onnx"), field(7, &graph)).unwrap();
    let args = ["network", "alpha.onnx", "--simulate", "h200"];
    let output = sweetspot(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("The network has no layer whose cost is known")
            && shown.contains("`y` (Alpha). They are 100 % of the nodes"),
        "{shown}"
    );
}

#[test]
fn bad_input_is_reported_in_one_line() {
    expect_rejection(
        &["resnet5"],
        "there is no network `resnet5`; the nearest are resnet50",
    );
    expect_rejection(&["nowhere.onnx"], "cannot read nowhere.onnx");
    expect_rejection(
        &[&onnx("no_sizes")],
        "leaves sizes of its inputs open: `x` is 1x3xHxW: give --input 'x=1x3xHxW' with numbers for H, W",
    );
    expect_rejection(&[&onnx("does_not_fit")], "node `y` (Conv)");
    expect_rejection(
        &["resnet50", "--input", "x=1x3x8x8"],
        "the network `resnet50` cannot have the input x=1x3x8x8: its only input is `input`",
    );
    expect_rejection(
        &["resnet50", "--input", "input=3x8"],
        "it has the form input=3x224x224, without the batch",
    );
    expect_rejection(
        &["gpt2", "--input", "input=2048"],
        "`positions` has a table for 1024 positions, and the sequence has 2048",
    );
    expect_rejection(&["gpt2", "--input", "input=0"], "invalid shape `0`");
    expect_rejection(
        &["resnet50", "--simulate", "v100", "--precision", "bf16"],
        "has no peak performance for bf16: use fp32, fp16",
    );
    expect_rejection(
        &["resnet50", "--simulate", "v10"],
        "there is no GPU profile `v10`",
    );
    expect_rejection(
        &["resnet50", "--convention", "table-1", "--precision", "fp16"],
        "remove --precision or --convention",
    );
    expect_rejection(&["resnet50", "--study", "nowhere"], "nowhere");
    expect_rejection(&["resnet50", "--batch", "0"], "--batch");
    expect_rejection(
        &["resnet50", "--export-json", "-", "--export-csv", "-"],
        "two documents",
    );
}

#[test]
fn csv_and_markdown_have_a_line_for_each_row() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        "network alexnet --simulate h200 --precision bf16 --export-csv a.csv --export-md a.md";
    let output = sweetspot(folder.path(), &args.split(' ').collect::<Vec<_>>());
    assert!(output.status.success());
    let csv = std::fs::read_to_string(folder.path().join("a.csv")).unwrap();
    assert_eq!(csv.lines().count(), 21);
    assert!(csv.starts_with("name,kind,parameters,macs,flops"));
    assert!(
        csv.lines().all(|line| line.split(',').count() == 18),
        "{csv}"
    );
    let markdown = std::fs::read_to_string(folder.path().join("a.md")).unwrap();
    assert_eq!(
        markdown
            .lines()
            .filter(|line| line.starts_with('|'))
            .count(),
        // Eight of the lines are those of the prediction.
        23 + 8
    );
}

#[test]
fn an_h200_has_a_prediction_with_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let predict = |line: &str| {
        let args = format!("network {line} --simulate h200 --export-json -");
        let output = sweetspot(folder.path(), &args.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document
    };
    let document = predict("resnet50 --batch 64");
    assert_eq!(document["precision"], "bf16");
    let prediction = &document["prediction"];
    assert_eq!(prediction["gpu"], "nvidia_h200");
    assert_eq!(prediction["mode"], "infer");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    for key in ["items_per_s", "power_w", "energy_per_item_j"] {
        let (value, interval) = (number(&prediction[key]), &prediction["interval95"][key]);
        assert!(
            number(&interval[0]) < value && value < number(&interval[1]),
            "{key}"
        );
    }
    // 14,257 images a second and 560 W were measured.
    let rate = &prediction["interval95"]["items_per_s"];
    assert!((number(&rate[0])..number(&rate[1])).contains(&14_257.0));
    let power = &prediction["interval95"]["power_w"];
    assert!((number(&power[0])..number(&power[1])).contains(&560.0));
    let trained = predict("resnet50 --batch 128 --train");
    let slower = number(&trained["prediction"]["items_per_s"]);
    assert!(slower < 0.6 * number(&prediction["items_per_s"]));
    let full = predict("vgg16 --batch 1000000");
    assert!(full["prediction"]["largest_batch"].as_u64().unwrap() > 1000);
    // Predictions are for 16-bit formats; other formats and GPUs have the bound alone.
    assert!(predict("resnet50 --precision tf32")["prediction"].is_null());
}
