//! Tests of the program from the outside, as a user runs it.
//!
//! All tests are one binary, which is linked only once. A new file must be declared here.

mod architecture;
mod batch_sizer;
mod common;
#[path = "common/host.rs"]
mod host;
#[path = "common/terminal.rs"]
mod pseudo_terminal;

mod budget;
mod calibrate;
mod clients;
mod config;
mod control_characters;
mod documents;
mod explore;
mod fit;
mod fuzz;
mod help;
mod hold;
mod hold_slo;
mod kill;
mod links;
mod log;
mod measure;
mod mistyped;
mod network;
mod next_steps;
mod node_energy;
mod other_users;
mod predicted_workloads;
mod processors;
mod progress;
mod python;
mod replay;
mod report;
mod reproduce;
mod run;
mod schemas;
mod serve_llm;
mod service;
mod signals;
mod simulate;
mod simulated_meters;
mod slurm;
mod sudo;
mod sweep;
mod terminal;
mod tune;
mod unwritable;
mod version;
mod zeus_service;

/// The tests of a file that is not declared would never run.
#[test]
fn every_file_is_declared() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let own = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_module = path.extension().is_some_and(|end| end == "rs") && name != "main";
        if is_module || path.join("mod.rs").exists() {
            assert!(own.contains(&format!("\nmod {name};\n")), "{name}");
        }
    }
}
