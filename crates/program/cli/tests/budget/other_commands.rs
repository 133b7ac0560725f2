//! GPUs that other commands reserve, and holds that do not answer.

use std::process::{Child, Stdio};
use std::time::Duration;

use super::common::{
    EARLIER_CAP, PROGRAM, caps, document, signal, start_budget, start_training, stderr_text,
    wait_for_caps,
};
use crate::common::own_group;
use crate::host::TestHost;

/// Starts the program in the background.
fn start(host: &TestHost, args: &[&str]) -> Child {
    let mut command = host.sweetspot();
    command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    own_group(&mut command).spawn().unwrap()
}

/// `run` reserves a GPU when the budget begins; once it has ended, the budget caps that GPU too.
#[test]
fn a_gpu_is_capped_once_the_command_that_reserved_it_has_ended() {
    let host = TestHost::new("v100:2");
    host.set_caps(EARLIER_CAP);
    let run = ["run", "--device", "0", "--power-cap", "200W", "--"];
    let mut run = start(&host, &[&run[..], &["sleep", "3"]].concat());
    wait_for_caps(&host, "the cap of run", |caps| caps[0] == 200.0);
    let budget = start_budget(&host, &["--below", "360W"]);
    run.wait().unwrap();
    let mut programs = ["0", "1"].map(|gpu| start_training(&host, gpu, "1"));
    wait_for_caps(&host, "both GPUs", |caps| caps.iter().sum::<f64>() <= 360.5);
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        assert!(
            caps(&host).iter().sum::<f64>() <= 360.5,
            "{:?}",
            caps(&host)
        );
    }
    for program in &mut programs {
        signal("-KILL", program, true);
        program.wait().unwrap();
    }
    signal("-TERM", &budget, false);
    let output = budget.wait_with_output().unwrap();
    let shown = stderr_text(&output);
    assert!(
        shown.contains("GPU 0: no other command reserves it any more"),
        "{shown}"
    );
    assert_eq!(caps(&host), vec![EARLIER_CAP; 2], "{shown}");
    assert_eq!(document(&output)["devices"][0]["settable"], true, "{shown}");
}

/// The hold on GPU 0 is stopped: the budget goes on, and lowers the caps of both GPUs all the same.
#[test]
fn a_stopped_hold_does_not_delay_the_budget() {
    let host = TestHost::new("tesla_p40:2");
    let hold = [
        "hold",
        "--below",
        "240W",
        "--knob",
        "batch",
        "--device",
        "0",
        "--",
        PROGRAM,
        "sim-workload",
        "--serve",
        "--infer",
        "--network",
        "resnet50",
        "--seconds",
        "30",
    ];
    let mut hold = start(&host, &hold);
    std::thread::sleep(Duration::from_secs(2));
    signal("-STOP", &hold, false);
    let budget = start_budget(&host, &["--below", "290W", "--for", "6s"]);
    let output = budget.wait_with_output().unwrap();
    signal("-CONT", &hold, false);
    signal("-KILL", &hold, true);
    hold.wait().unwrap();
    let (shown, document) = (stderr_text(&output), document(&output));
    let slices = document["over_time"].as_array().unwrap();
    let at = |slice: &serde_json::Value| slice["at_s"].as_f64().unwrap();
    let pauses = slices.windows(2).map(|pair| at(&pair[1]) - at(&pair[0]));
    let longest = pauses.fold(0.0, f64::max);
    assert!(longest < 2.5, "no decision for {longest} s: {document}");
    assert!(slices.len() >= 4, "{document}");
    assert!(
        shown.contains("did not accept its new limit in time"),
        "{shown}"
    );
    let lowered = slices.iter().find(|slice| {
        let caps = slice["caps_w"].as_array().unwrap().iter();
        caps.map(|cap| cap.as_f64().unwrap()).sum::<f64>() <= 290.5
    });
    let lowered = lowered.unwrap_or_else(|| panic!("{document}"));
    assert!(at(lowered) < 5.5, "{document}");
}
