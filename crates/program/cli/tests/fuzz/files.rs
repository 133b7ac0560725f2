//! Damaged ONNX files, texts of networks, profiles, journals and messages.

use sweetspot_network::{OnnxOptions, parse, read_onnx};
use sweetspot_sim::{find_gpu, gpu_text, parse_gpu_list};

use super::{cases, run_cases};

#[test]
fn onnx_files() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../foundation/network/tests/onnx"
    );
    let files = std::fs::read_dir(folder).unwrap().flatten();
    let files = files.filter(|entry| entry.path().extension().is_some_and(|end| end == "onnx"));
    let valid: Vec<Vec<u8>> = files
        .map(|entry| std::fs::read(entry.path()).unwrap())
        .collect();
    assert!(!valid.is_empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.onnx");
    run_cases(cases(2000, 10), |random| {
        let file = &valid[random.below(valid.len())];
        std::fs::write(&path, random.damage(file)).unwrap();
        let _ = read_onnx(path.to_str().unwrap(), &OnnxOptions::default());
    });
}

#[test]
fn a_named_pipe_is_no_onnx_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.onnx");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let read = read_onnx(path.to_str().unwrap(), &OnnxOptions::default());
    assert!(read.unwrap_err().to_string().contains("not a file"));
}

#[test]
fn texts_of_networks_and_lists_of_gpus() {
    let valid = include_str!("../../../../foundation/network/networks/alexnet.net");
    run_cases(cases(3000, 1), |random| {
        let text = random.damage(valid.as_bytes());
        let text = String::from_utf8_lossy(&text);
        let _ = parse("damaged", &text);
        let list = random.damage(b"v100:2,titan_x_pascal:3");
        let _ = parse_gpu_list(&String::from_utf8_lossy(&list));
    });
}

#[test]
fn profiles() {
    let (_, valid) = gpu_text("v100").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gpu.toml");
    run_cases(cases(1500, 10), |random| {
        std::fs::write(&path, random.damage(valid.as_bytes())).unwrap();
        let _ = find_gpu(path.to_str().unwrap());
    });
}
