//! `sweetspot reproduce`.

mod multi_gpu;
mod on_gpu;
mod profiles;

use std::collections::HashMap;

use crate::common::{sweetspot, text};
use serde_json::Value;

const PAPERS: [&str; 5] = [
    "power-capping-2022",
    "dvfs-2019",
    "multi-gpu-2018",
    "batch-sizer-2021",
    "node-power-capping-2023",
];

/// The beginnings of the conclusions of dvfs_2019 that fail.
const FAILED_OF_DVFS: [&str; 8] = [
    "the best core clock saves",
    "the best core clock saves",
    "the 2080 Ti is most effic",
    "the 2080 Ti is most effic",
    "the memory clock of the 2",
    "in training on the 2080 T",
    "in training on P100 and V",
    "on P100 and V100 Winograd",
];

pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

pub fn json(paper: &str, seed: u64) -> (Option<i32>, Value) {
    let folder = folder();
    let seed = seed.to_string();
    let args = ["reproduce", paper, "--seed", &seed, "--export-json", "-"];
    let output = sweetspot(folder.path(), &args);
    assert_eq!(text(&output.stderr), "");
    let document = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code(), document)
}

pub fn rows(document: &Value) -> &[Value] {
    document["rows"].as_array().unwrap()
}

/// The notes of the rows that have these labels.
fn notes(document: &Value, labels: &[(&str, &str)]) -> Vec<String> {
    let has = |row: &&Value| {
        labels
            .iter()
            .all(|(key, value)| row["row"][key].as_str() == Some(*value))
    };
    let noted = rows(document).iter().filter(has);
    noted
        .filter_map(|row| row["note"].as_str().map(str::to_owned))
        .collect()
}

/// The sentences of the conclusions that do not hold.
pub fn failed_conclusions(document: &Value) -> Vec<&str> {
    let conclusions = document["conclusions"].as_array().unwrap().iter();
    let failed = conclusions.filter(|conclusion| conclusion["holds"] == false);
    failed
        .map(|conclusion| conclusion["conclusion"].as_str().unwrap())
        .collect()
}

/// Checks that every tolerance is met with three seeds, and that exactly these conclusions fail, which the exit code
/// says.
fn assert_is_met_except(paper: &str, failed: &[&str]) {
    for seed in [1, 2, 3] {
        let (code, document) = json(paper, seed);
        let missed: Vec<&Value> = rows(&document)
            .iter()
            .filter(|row| row["within"] == false)
            .collect();
        assert_eq!(
            document["within"], true,
            "{paper}, seed {seed}: {:#?} {missed:#?}",
            document["counted"]
        );
        assert_eq!(
            failed_conclusions(&document),
            failed,
            "{paper}, seed {seed}"
        );
        assert_eq!(document["confirmed"], failed.is_empty());
        assert_eq!(code, Some(i32::from(!failed.is_empty())));
    }
}

#[test]
fn power_capping_2022_is_met_with_three_seeds() {
    assert_is_met_except("power-capping-2022", &[]);
}

/// With 17 parameters dvfs_2019 misses many cells and some conclusions; docs/explanation/reproduce says why. No cell is
/// off by more than 12.5 points, and every missed one is named.
#[test]
fn dvfs_2019_misses_cells_and_what_the_paper_says_about_the_2080ti() {
    for seed in [1, 2, 3] {
        let (code, document) = json("dvfs-2019", seed);
        assert_eq!(code, Some(1));
        let judged = rows(&document)
            .iter()
            .filter(|row| row["within"].is_boolean());
        let off = judged.map(|row| row["deviation"].as_f64().unwrap().abs());
        assert!(off.fold(0.0, f64::max) < 0.125, "seed {seed}");
        let failed = failed_conclusions(&document);
        let begin: Vec<&str> = failed.iter().map(|what| &what[..25]).collect();
        assert_eq!(begin, FAILED_OF_DVFS, "{failed:?}");
        assert!(document["fit"]["free_parameters"].as_u64().unwrap() <= 20);
    }
}

/// With 6 parameters the node's profiles miss some values and a conclusion; docs/explanation/reproduce says why. The
/// times and speed-ups are within their tolerance with every seed.
#[test]
fn node_power_capping_2023_misses_caps_and_savings_but_no_time() {
    for seed in [1, 2, 3] {
        let (code, document) = json("node-power-capping-2023", seed);
        let rows = rows(&document).iter();
        let missed: Vec<&Value> = rows.filter(|row| row["within"] == false).collect();
        assert!(!missed.is_empty());
        for row in missed {
            let value = row["row"]["value"].as_str().unwrap();
            assert!(
                ["power_cap_w", "energy_saving", "gain"].contains(&value),
                "{row}"
            );
        }
        let failed = failed_conclusions(&document);
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert!(failed[0].starts_with("with 8 GPUs every metric is best at a cap of 160 to 200 W"));
        assert_eq!(code, Some(1));
    }
}

#[test]
fn a_reproduction_says_what_was_fitted_and_how_far_held_out_values_are_off() {
    let (_, document) = json("node-power-capping-2023", 1);
    let fit = &document["fit"];
    let (parameters, values) = (&fit["free_parameters"], &fit["values"]);
    assert!(parameters.as_u64().unwrap() <= 6, "{fit}");
    let fitted = rows(&document).iter();
    let fitted = fitted.filter(|row| row["origin"] == "fitted").count();
    assert_eq!(values.as_u64(), Some(fitted as u64), "{fit}");
    let held_out = fit["held_out"].as_array().unwrap();
    let without: Vec<&Value> = held_out.iter().map(|fit| &fit["without"]).collect();
    assert_eq!(
        without,
        ["1 GPU", "2 GPUs", "4 GPUs", "8 GPUs", "figure 7", "table 1"]
    );
    let counts = held_out[..4]
        .iter()
        .map(|fit| fit["values"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), fitted as u64);
    let folder = folder();
    let args = ["reproduce", "node-power-capping-2023", "--summary"];
    let shown = text(&sweetspot(folder.path(), &args).stdout);
    assert!(shown.contains(
        "6 free parameters, 1 of them chosen by hand, were fitted to 13 independent values."
    ));
    assert_eq!(fit["by_hand"], 1);
    assert!(shown.contains("  held out: without 8 GPUs: 6 values, off by"));
}

/// Beside the profiles, whose every network has numbers of its own, stands the error of a form that has none.
#[test]
fn the_error_without_numbers_of_a_network_stands_beside_the_fitted_one() {
    let (_, document) = json("power-capping-2022", 1);
    let fit = &document["fit"];
    assert_eq!(fit["free_parameters"], 56);
    let form = &fit["forms"][0];
    assert_eq!(form["name"], "power_capping_2022_from_layers");
    assert_eq!(
        (&form["free_parameters"], &form["values"]),
        (&16.into(), &112.into())
    );
    let mean = form["mean_relative"].as_f64().unwrap();
    assert!(
        mean > 0.02,
        "a few constants do not reach the 2 % of the fit: {mean}"
    );
    assert_eq!(form["held_out"].as_array().unwrap().len(), 6);
    let folder = folder();
    let shown = sweetspot(
        folder.path(),
        &["reproduce", "power-capping-2022", "--summary"],
    );
    let shown = text(&shown.stdout);
    assert!(shown.contains("(simulate --errors power_capping_2022_from_layers): 16 free"));

    let (_, document) = json("batch-sizer-2021", 1);
    let fit = &document["fit"];
    assert_eq!(
        (&fit["free_parameters"], &fit["by_hand"]),
        (&2.into(), &2.into())
    );
    assert_eq!(
        fit["values"], 3,
        "the statement that is predicted is not counted"
    );
    assert_eq!(fit["forms"][0]["free_parameters"], 1);
}

#[test]
fn documents_have_the_documented_keys() {
    for paper in PAPERS {
        let (_, document) = json(paper, 1);
        assert_eq!(document["schema"], "sweetspot.reproduce/1");
        assert_eq!(document["paper"], paper);
        assert!(!rows(&document).is_empty());
        for row in rows(&document) {
            assert!(row["table"].is_string(), "{row}");
            assert!(row["row"].is_object(), "{row}");
            let both = row["published"].is_number() && row["reproduced"].is_number();
            assert_eq!(row["deviation"].is_number(), both, "{row}");
            assert_eq!(row["within"].is_boolean(), row["tolerance"].is_number());
            // A value that is missing has a reason.
            assert!(
                row["reproduced"].is_number() || row["note"].is_string(),
                "{row}"
            );
        }
        for conclusion in document["conclusions"].as_array().unwrap() {
            assert!(conclusion["conclusion"].is_string());
            assert!(conclusion["here"].is_string());
        }
    }
}

#[test]
fn every_printed_row_is_there() {
    let mut documents: HashMap<String, Value> = HashMap::new();
    let mut count = |paper: &str, table: &str| {
        let document = documents.entry(paper.to_owned());
        let document = document.or_insert_with(|| json(paper, 1).1);
        let own = rows(document).iter().filter(|row| row["table"] == table);
        let mut labels: Vec<String> = own
            .map(|row| {
                let mut row = row["row"].clone();
                row.as_object_mut().unwrap().remove("value");
                row.to_string()
            })
            .collect();
        labels.dedup();
        labels.len()
    };
    assert_eq!(count("power-capping-2022", "2"), 30);
    assert_eq!(count("power-capping-2022", "3"), 30);
    assert_eq!(count("dvfs-2019", "III"), 24);
    assert_eq!(count("dvfs-2019", "IV"), 9);
    assert_eq!(count("node-power-capping-2023", "1"), 5);
    // Four networks as the text describes them, and four other interpretations of that text.
    assert_eq!(count("multi-gpu-2018", "1"), 8);
    assert_eq!(count("multi-gpu-2018", "11"), 72 + 48);
    for figure in ["throughput in figure 5", "average batch in figure 6"] {
        let rows = count("batch-sizer-2021", &format!("2, {figure}"));
        assert_eq!(rows, 2 * 20, "{figure}");
    }
    assert_eq!(count("batch-sizer-2021", "figure 5, by mode"), 4);
    assert_eq!(count("batch-sizer-2021", "figure 1"), 3 * 2 * 10);
    assert_eq!(count("batch-sizer-2021", "figure 7"), 5 * 2 * 8);
    assert_eq!(count("batch-sizer-2021", "figure 8"), 5 * 8);
}

#[test]
fn faults_of_power_capping_2022_are_named_at_their_rows() {
    let (_, document) = json("power-capping-2022", 1);
    let quadro = ("gpu", "quadro_rtx_6000");
    let v100 = ("gpu", "tesla_v100_sxm2_16gb");
    let has = |labels: &[(&str, &str)], words: &str| {
        let notes = notes(&document, labels);
        assert!(
            notes.iter().any(|note| note.contains(words)),
            "{labels:?}: {notes:#?}"
        );
    };
    let alexnet = [quadro, ("network", "alexnet"), ("selection", "min E")];
    has(&alexnet, "+15.2 %, printed is +11.5 %");
    has(&alexnet, "-29.0 %, printed is -28.5 %");
    let vgg = [quadro, ("network", "vgg19"), ("selection", "min E")];
    has(&vgg, "printed is -29.9 %");
    for network in ["resnet50", "resnet152"] {
        has(
            &[quadro, ("network", network), ("selection", "default")],
            "its power times its time",
        );
    }
    let inception = [v100, ("network", "inception_v3"), ("selection", "min E")];
    has(&inception, "printed is -26.7 %");
    has(&inception, "odd in the table");
    let tie = [
        v100,
        ("network", "resnet50"),
        ("selection", "min EDS(k=2.0)"),
    ];
    has(&tie, "180 W is as good");
    has(&[v100, ("objective", "eds:1.5")], "195-275 W");
    has(&[v100, ("objective", "eds:2")], "165-210 W");
}

#[test]
fn errors_in_the_other_papers_are_named_at_their_rows() {
    let (_, dvfs) = json("dvfs-2019", 1);
    let turing = notes(&dvfs, &[("gpu", "gtx_2080ti")]);
    assert!(turing.iter().any(|note| note.contains("2,050 MHz")));
    let googlenet = notes(&dvfs, &[("network", "googlenet"), ("value", "parameters")]);
    assert!(
        googlenet
            .iter()
            .any(|note| note.contains("about 7 million"))
    );

    let (_, multi) = json("multi-gpu-2018", 1);
    let averages = [
        (
            "titan_x_pascal",
            "ResNet",
            "average",
            1,
            "3.60, printed is 4.3",
        ),
        (
            "titan_x_pascal",
            "2D-CNN",
            "average",
            4,
            "3.83, printed is 4.2",
        ),
    ];
    for (gpu, network, batch, gpus, words) in averages {
        let labels = [("gpu", gpu), ("network", network), ("batch", batch)];
        let found = rows(&multi).iter().any(|row| {
            let own = labels.iter().all(|(key, value)| row["row"][key] == *value);
            own && row["row"]["gpus"] == gpus
                && row["note"]
                    .as_str()
                    .is_some_and(|note| note.contains(words))
        });
        assert!(found, "{labels:?}");
    }
    let contradicting = rows(&multi)
        .iter()
        .filter(|row| row["row"]["value"] == "power_w")
        .filter(|row| {
            row["note"]
                .as_str()
                .is_some_and(|note| note.starts_with("error in "))
        });
    assert!(contradicting.count() >= 64);
}

#[test]
fn missing_values_name_their_reason() {
    let (_, document) = json("multi-gpu-2018", 1);
    assert!(document["waits"][0].as_str().unwrap().contains("accuracy"));
}

#[test]
fn an_unknown_paper_is_rejected_with_the_known_ones() {
    let folder = folder();
    let output = sweetspot(folder.path(), &["reproduce", "power-capping-2023"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert_eq!(message.lines().count(), 1, "{message}");
    for paper in PAPERS {
        assert!(message.contains(paper), "{message}");
    }
}

#[test]
fn a_reproduction_is_written_in_every_format() {
    let folder = folder();
    let args = [
        "reproduce",
        "node_power_capping_2023",
        "--export-csv",
        "rows.csv",
        "--export-md",
        "rows.md",
    ];
    let output = sweetspot(folder.path(), &args);
    let shown = text(&output.stdout);
    assert!(shown.contains("Table 1"), "{shown}");
    assert!(shown.contains("holds:"), "{shown}");
    let csv = std::fs::read_to_string(folder.path().join("rows.csv")).unwrap();
    assert!(csv.starts_with("table,row,value,published,reproduced"));
    let markdown = std::fs::read_to_string(folder.path().join("rows.md")).unwrap();
    assert!(markdown.contains("| energy "), "{markdown}");
    let short = sweetspot(folder.path(), &["reproduce", "dvfs-2019", "--summary"]);
    // Every value that is missed has a line.
    assert!(text(&short.stdout).lines().count() < 70);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let first = json("dvfs-2019", 7);
    assert_eq!(first, json("dvfs-2019", 7));
    assert_ne!(first.1["rows"], json("dvfs-2019", 8).1["rows"]);
}

/// Each published point is drawn: the rows of tables 2 and 3 in figures 2 and 3, without those that are printed twice.
#[test]
fn figures_of_a_paper_have_published_points() {
    let folder = folder();
    let line = "reproduce power-capping-2022 --export-figures figures --figure-format svg,pdf";
    let output = sweetspot(folder.path(), &line.split(' ').collect::<Vec<_>>());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    for figure in ["figure-2", "figure-3"] {
        let svg = std::fs::read(folder.path().join(format!("figures/{figure}.svg"))).unwrap();
        let hollow = text(&svg).matches("class=\"p h ").count();
        // Six metrics of 28 different rows, and an entry in the legend.
        assert_eq!(hollow, 6 * 28 + 1, "{figure}");
        let pdf = std::fs::read(folder.path().join(format!("figures/{figure}.pdf"))).unwrap();
        assert!(
            String::from_utf8_lossy(&pdf).contains("(inception_v3) Tj"),
            "{figure}"
        );
    }
}
