//! HTML pages of good and bad studies, on phone and desktop, light and dark.

use std::path::Path;

use super::browser::{Reader, chromium, inspect_pages};
use super::sample_studies::{HOSTILE, unusual_studies};
use crate::common::{sweetspot, text};

fn simulated(folder: &Path, name: &str, args: &[&str]) {
    let all = [
        &["sweep", "--study", name, "--export-json", "ignored.json"],
        args,
    ]
    .concat();
    let output = sweetspot(folder, &all);
    assert!(
        output.status.code().is_some_and(|code| code < 2),
        "{}",
        text(&output.stderr)
    );
}

fn page(folder: &Path, args: &[&str], name: &str) {
    let file = format!("{name}.html");
    let output = sweetspot(folder, &[args, &["--export-html", &file]].concat());
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 1)),
        "{name}: {}",
        text(&output.stderr)
    );
}

#[test]
#[ignore = "needs Chromium: run scripts/setup"]
fn pages_render_in_a_browser() {
    let browser = chromium();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let sim = "--simulate";
    simulated(
        here,
        "caps",
        &[
            sim,
            "v100",
            "--network",
            "resnet50",
            "--power-cap",
            "150..300:25",
        ],
    );
    simulated(
        here,
        "quadro",
        &[
            sim,
            "quadro_rtx_6000",
            "--network",
            "resnet50",
            "--power-cap",
            "150..250:25",
            "--repeat",
            "2",
        ],
    );
    simulated(
        here,
        "clocks",
        &[
            sim,
            "gtx_2080ti",
            "--network",
            "vgg16",
            "--train",
            "--core-clock",
            "300,950,1350,2050",
            "--memory-clock",
            "all",
            "--axis",
            "conv_algorithm=gemm,fft",
            "--batch",
            "8",
            "--repeat",
            "2",
        ],
    );
    simulated(
        here,
        "node",
        &[
            "--node",
            "node_power_capping_2023",
            "--network",
            "xception",
            "--gpus",
            "1,2,8",
            "--power-cap",
            "170,260",
            "--energy-of",
            "node",
            "--repeat",
            "2",
        ],
    );
    let sweep = "sweep --simulate v100 --network alexnet --power-cap 150,200,250,300 --no-study";
    page(here, &sweep.split(' ').collect::<Vec<_>>(), "swept");
    let mut pages: Vec<String> = vec!["swept".to_owned()];
    for name in ["caps", "clocks", "node"] {
        page(here, &["report", name, "--limit", "time<=+40%"], name);
        pages.push(name.to_owned());
    }
    page(
        here,
        &[
            "report",
            "clocks",
            "--by",
            "core-clock",
            "--objective",
            "energy-per-item",
        ],
        "grouped",
    );
    page(here, &["compare", "caps", "quadro"], "compared");
    page(here, &["study", "export", "caps"], "exported");
    pages.extend(["grouped", "compared", "exported"].map(str::to_owned));
    super::sample_studies::large().write_to(&here.join("study-large"));
    page(here, &["report", "study-large"], "large");
    pages.push("large".to_owned());
    let size = std::fs::metadata(here.join("large.html")).unwrap().len();
    assert!(size < 3 << 20, "{size} bytes");
    let drawn = pages.len();
    for (name, builder) in unusual_studies() {
        builder.write_to(&here.join(format!("study-{name}")));
        page(here, &["report", &format!("study-{name}")], name);
        pages.push(name.to_owned());
    }
    // Colours and widths do not depend on each other.
    for (dark, wide_fonts) in [(false, false), (true, true)] {
        for seen in inspect_pages(&browser, here, &pages, Reader { dark, wide_fonts }) {
            let name = seen["page"]
                .as_str()
                .unwrap()
                .trim_end_matches(".html")
                .to_owned();
            let about = format!("{name}, dark {dark}, wide fonts {wide_fonts}: {seen:#}");
            let number = |key: &str| seen[key].as_u64().unwrap();
            assert!(
                number("scroll") <= number("width"),
                "wider than the window: {about}"
            );
            assert_eq!(seen["over"].as_array().unwrap().len(), 0, "{about}");
            assert_eq!(
                (number("flat"), number("odd"), number("owned")),
                (0, 0, 0),
                "{about}"
            );
            assert_eq!((number("scripts"), number("images")), (2, 0), "{about}");
            assert_eq!(seen["ground"] == seen["dark"], dark, "{about}");
            assert_ne!(seen["light"], seen["dark"], "{about}");
            let place = pages.iter().position(|page| *page == name).unwrap();
            if place < drawn {
                assert!(number("charts") >= 3, "{about}");
                assert!(seen["sorted"].as_bool().unwrap(), "{about}");
                assert_ne!(seen["tip"], "", "{about}");
            }
            if name == "hostile" {
                assert!(
                    seen["title"].as_str().unwrap().contains("<script>"),
                    "{about}"
                );
            }
        }
    }
}

#[test]
fn texts_of_a_study_are_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    super::sample_studies::hostile().write_to(&here.join("study"));
    let output = sweetspot(
        here,
        &[
            "report",
            "study",
            "--export-html",
            "-",
            "--export-figures",
            "figures",
        ],
    );
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    assert!(page.starts_with("<!DOCTYPE html>"), "nothing but the page");
    assert!(!page.contains(HOSTILE));
    assert!(!page.contains("<img"));
    assert_eq!(page.matches("<script").count(), 1);
    let mut count = 0;
    for entry in std::fs::read_dir(here.join("figures")).unwrap() {
        let path = entry.unwrap().path();
        let figure = std::fs::read_to_string(&path).unwrap();
        assert!(
            !figure.contains("<script") && !figure.contains("<img"),
            "{}",
            path.display()
        );
        count += 1;
    }
    assert!(count > 0);
}
