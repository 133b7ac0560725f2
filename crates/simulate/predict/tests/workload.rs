//! Networks as workloads of the simulator.

use std::path::PathBuf;

use sweetspot_network::{Precision, built_in};
use sweetspot_predict::{Predictor, find_workload};
use sweetspot_sim::{
    Chip, GpuProfile, Job, JobRequest, Mode, Outcome, ScaledWork, Variant, Variation, Workload,
    find_gpu, run,
};

fn infer() -> Variant {
    Variant {
        mode: Some(Mode::Infer),
        ..Variant::default()
    }
}

fn gpu(name: &str) -> (String, GpuProfile) {
    find_gpu(name).unwrap()
}

fn find(name: &str, variant: &Variant, gpu: &(String, GpuProfile)) -> Result<Workload, String> {
    let study = gpu.1.study.as_deref();
    find_workload(name, study, variant, std::slice::from_ref(gpu)).map_err(|e| e.to_string())
}

/// A run of a workload in the simulator, which takes a few minutes of virtual time, with a power cap.
fn simulate(workload: &Workload, gpu: &(String, GpuProfile), batch: u64, cap: f64) -> Outcome {
    let (name, profile) = gpu;
    let work = ScaledWork::on(&workload.profile, name, profile, |_| None).unwrap();
    let request = JobRequest {
        batch: Some(batch),
        items: Some(work.items() * 4 / batch * batch),
    };
    let job = Job::new(&workload.profile, &work, profile, request, Variation::NONE).unwrap();
    let chip = Chip::new(profile);
    let limits = chip.limits(sweetspot_quantity::Watts::new(cap), None, None);
    run(&chip, &mut chip.rest_state(), &limits, &job, &mut ())
}

#[test]
fn the_simulator_runs_a_network_as_predicted_with_and_without_a_binding_cap() {
    for (network, mode) in [
        ("vgg16", Mode::Infer),
        ("resnet50@predicted", Mode::Train),
        ("vit_b_16", Mode::Infer),
    ] {
        for gpu in ["h200", "a100", "l40s"].map(gpu) {
            let variant = Variant {
                mode: Some(mode),
                ..Variant::default()
            };
            let workload = find(network, &variant, &gpu).unwrap();
            let name = network.trim_end_matches("@predicted");
            let structure = built_in(name).unwrap();
            let on = (gpu.0.as_str(), &gpu.1);
            let predictor = Predictor::new(&structure, on, Precision::Bf16, mode).unwrap();
            for batch in [1, 64, 256] {
                let work = predictor.work_at(batch);
                for share in [1.0, 0.6] {
                    let cap = gpu.1.cap.default * share;
                    let steady = predictor.steady(&work, Some(cap), None);
                    let simulated = simulate(&workload, &gpu, batch, cap.get());
                    let time = simulated.time.get() / simulated.items as f64 * batch as f64;
                    let context = format!("{network} {} batch {batch} cap {cap}", gpu.0);
                    assert!(
                        (time / steady.time.get() - 1.0).abs() < 0.01,
                        "{context}: {time} {steady:?}"
                    );
                    let power = simulated.average_power().get();
                    // A run begins cool and at the highest clock.
                    assert!(
                        (power / steady.power.get() - 1.0).abs() < 0.015,
                        "{context}: {power} {steady:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn profiles_come_before_predictions_and_predictions_before_errors() {
    let h200 = gpu("h200");
    assert_eq!(
        find("resnet50", &infer(), &h200).unwrap().name,
        "resnet50@h200"
    );
    let predicted = find("resnet50@predicted", &infer(), &h200).unwrap();
    assert_eq!(predicted.profile.network, "resnet50");
    // The study has this network in training only.
    assert_eq!(
        find("vgg19", &infer(), &h200).unwrap().name,
        "vgg19@predicted"
    );
    assert_eq!(
        find("bert_base", &infer(), &h200).unwrap().name,
        "bert_base@predicted"
    );
    let a100 = gpu("a100");
    assert_eq!(
        find("resnet50", &infer(), &a100).unwrap().name,
        "resnet50@predicted"
    );
    let v100 = gpu("v100");
    assert_eq!(
        find("resnet50", &Variant::default(), &v100)
            .unwrap()
            .profile
            .mode,
        Mode::Train
    );
    let refused = find("bert_base", &infer(), &v100).unwrap_err();
    assert!(
        refused.contains("no constants for predictions"),
        "{refused}"
    );
    let refused = find("bert", &infer(), &h200).unwrap_err();
    assert!(refused.contains("bert_base"), "{refused}");
}

#[test]
fn a_copy_of_a_gpu_keeps_its_measured_workloads() {
    let (_, profile) = gpu("h200");
    let mut faulty = profile.clone();
    faulty.noise = sweetspot_quantity::Ratio::new(0.01);
    for copy in [profile, faulty] {
        let own = ("my_h200.toml".to_owned(), copy);
        assert_eq!(
            find("resnet50", &infer(), &own).unwrap().name,
            "resnet50@h200"
        );
    }
}

#[test]
fn an_onnx_file_is_a_workload_named_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let archive = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../data/measured_h200/zoo_onnx.tar.gz");
    let mut tar = std::process::Command::new("tar");
    tar.arg("xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder.path())
        .arg("swin_t.onnx");
    assert!(tar.status().unwrap().success());
    let path = folder.path().join("swin_t.onnx");
    let workload = find(path.to_str().unwrap(), &Variant::default(), &gpu("h100")).unwrap();
    assert_eq!(workload.profile.network, "swin_t");
    assert_eq!(workload.profile.phases.len(), 2);
    assert!(workload.profile.gradients.get() > 1e8);
    std::fs::write(&path, b"no model").unwrap();
    let refused = find(path.to_str().unwrap(), &infer(), &gpu("h200")).unwrap_err();
    assert!(refused.contains("swin_t.onnx"), "{refused}");
}

#[test]
fn there_is_nothing_to_choose_in_a_predicted_workload() {
    let variant = Variant {
        dataset: Some("imagenet".to_owned()),
        ..infer()
    };
    let refused = find("vit_b_16", &variant, &gpu("h200")).unwrap_err();
    assert!(refused.contains("vit_b_16"), "{refused}");
}

#[test]
fn a_network_that_does_not_fit_is_refused_with_its_need() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("huge.net");
    std::fs::write(&path, "input 8\nfc 400000\nfc 400000\n").unwrap();
    let refused = find(path.to_str().unwrap(), &Variant::default(), &gpu("l40s")).unwrap_err();
    assert!(refused.contains("for one item"), "{refused}");
}
