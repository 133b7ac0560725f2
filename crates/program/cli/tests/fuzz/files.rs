//! Damaged ONNX files, texts of networks, profiles, journals and messages.

use std::process::Command;
use std::time::Duration;

use sweetspot_network::{OnnxOptions, parse, read_onnx};
use sweetspot_sim::{find_gpu, gpu_text, parse_gpu_list};

use super::{cases, damage, run_cases};
use crate::common::{sweetspot, text, words};

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
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("a.onnx");
    run_cases(cases(2000, 1), |random| {
        let file = &valid[random.below(valid.len())];
        std::fs::write(&path, damage(random, file)).unwrap();
        let _ = read_onnx(path.to_str().unwrap(), &OnnxOptions::default());
    });
}

/// Nothing writes to the pipe, so a program that opened it as a file would wait without end.
#[test]
fn a_named_pipe_is_refused_wherever_a_file_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.onnx", "a.toml", "a.csv"] {
        let made = Command::new("mkfifo")
            .arg(folder.path().join(name))
            .status();
        assert!(made.unwrap().success());
    }
    for line in [
        "network ./a.onnx",
        "network ./a.toml",
        "simulate --gpu ./a.toml -- true",
        "sweep ./a.toml",
        "task ./a.toml 1",
        "tune --simulate v100 --network ./a.onnx",
        "replay --curves ./a.csv --knob x --time t --power p",
        "sim-workload --network resnet50 --infer --serve --arrivals trace:./a.csv",
        "simulate --gpu v100 --fit ./a.csv --output b.toml",
        "report ./a.toml",
    ] {
        let (folder, words) = (folder.path().to_owned(), words(line));
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let (sender, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let _ = sender.send(sweetspot(&folder, &words));
        });
        let output = answer.recv_timeout(Duration::from_secs(20));
        let output = output.unwrap_or_else(|_| panic!("{line} waits"));
        let message = text(&output.stderr);
        let code = output.status.code();
        assert!(matches!(code, Some(2 | 125)), "{line}: {message}");
        assert_eq!(message.lines().count(), 1, "{line}: {message}");
    }
}

#[test]
fn texts_of_networks_and_lists_of_gpus() {
    let valid = include_str!("../../../../foundation/network/networks/alexnet.net");
    run_cases(cases(3000, 1), |random| {
        let text = damage(random, valid.as_bytes());
        let text = String::from_utf8_lossy(&text);
        let _ = parse("damaged", &text);
        let list = damage(random, b"v100:2,titan_x_pascal:3");
        let _ = parse_gpu_list(&String::from_utf8_lossy(&list));
    });
}

#[test]
fn profiles() {
    let (_, valid) = gpu_text("v100").unwrap();
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("gpu.toml");
    run_cases(cases(1500, 1), |random| {
        std::fs::write(&path, damage(random, valid.as_bytes())).unwrap();
        let _ = find_gpu(path.to_str().unwrap());
    });
}
