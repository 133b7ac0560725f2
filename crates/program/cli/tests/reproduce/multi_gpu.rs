//! `sweetspot reproduce multi-gpu-2018`.

use serde_json::Value;

use super::{failed_conclusions, json, rows};

/// Every tolerance is met, but three of 24 best settings are not those of the paper; docs/explanation/reproduce says
/// why.
#[test]
fn multi_gpu_2018_misses_only_best_settings_of_resnet() {
    for seed in [1, 2, 3] {
        let (code, document) = json("multi-gpu-2018", seed);
        let counted = document["counted"].as_array().unwrap().iter();
        let unmet: Vec<&Value> = counted.filter(|rule| rule["within"] == false).collect();
        let [best] = unmet.as_slice() else {
            panic!("seed {seed}: {unmet:#?}");
        };
        assert_eq!(
            (&best["met"], &best["of"]),
            (&21.into(), &24.into()),
            "{best}"
        );
        let what = best["what"].as_str().unwrap();
        assert_eq!(what.matches(" in the table of").count(), 3, "{what}");
        assert_eq!(what.matches("ResNet in the table of").count(), 3, "{what}");
        assert_eq!(document["met"], document["judged"], "seed {seed}");
        assert_eq!(failed_conclusions(&document), Vec::<&str>::new());
        assert_eq!(code, Some(1));
    }
}

/// All 69 consistent cells of tables 4, 5, 7 and 8 are judged, each with time, energy and power.
#[test]
fn multi_gpu_2018_judges_every_consistent_cell() {
    let (_, document) = json("multi-gpu-2018", 1);
    let steps = rows(&document).iter().filter(|row| {
        ["4", "5", "7", "8"]
            .map(Value::from)
            .contains(&row["table"])
    });
    let steps: Vec<&Value> = steps.collect();
    let has = |row: &&&Value, origin: &str| row["origin"] == origin;
    let judged = steps.iter().filter(|row| row["tolerance"].is_number());
    assert_eq!(judged.clone().count(), 3 * 69);
    assert_eq!(judged.filter(|row| has(row, "predicted")).count(), 57);
    // Each value that is reproduced says where it comes from, and both commands count what was fitted in one way.
    for row in rows(&document) {
        let both = row["published"].is_number() && row["reproduced"].is_number();
        assert_eq!(row["origin"].is_string(), both, "{row}");
    }
    let fitted = steps.iter().filter(|row| has(row, "fitted")).count();
    let fit = &document["fit"];
    assert_eq!(fit["values"], fitted);
    assert!(2 * fit["free_parameters"].as_u64().unwrap() <= fitted as u64);
    // Each fitted value is predicted by a fit without its row.
    assert_eq!(fit["not_held_out"], 0);
    assert_eq!(fit["held_out"][0]["values"], fitted);
    assert_eq!(fit["held_out"][1]["values"], 57);
    // The paper's time of four GPUs is that of the slowest one, in the rows of either GPU.
    let time = |gpu: &str| {
        let row = rows(&document).iter().find(|row| {
            let labels = &row["row"];
            labels["gpu"] == gpu
                && labels["network"] == "2D-CNN"
                && labels["step"] == "forward"
                && labels["batch"] == 64
                && labels["gpus"] == 4
                && labels["value"] == "time_s"
        });
        row.unwrap()["reproduced"].as_f64().unwrap()
    };
    assert_eq!(time("titan_x_pascal"), time("titan_x_maxwell"));
}
