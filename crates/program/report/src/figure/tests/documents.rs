//! Bands, legends and files.

use super::{check, figures_of, swept};
use crate::figure::chart::{Bar, Chart, ChartAxis, Colour, Dot, Figure, Line, LineStyle};
use crate::figure::figures_pdf;
use crate::figure::layout::{FigureWidth, Size};
use crate::figure::svg::{inline, standalone};

/// A band of readings that vary over the whole chart is not filled, because it would hide everything.
#[test]
fn a_band_that_would_fill_the_chart_is_not_drawn() {
    let band = |low: f64| Chart {
        y: ChartAxis::from_zero("Power [W]"),
        lines: vec![Line {
            label: String::new(),
            colour: Colour(0),
            dots: (0..50)
                .map(|at| Dot {
                    x: f64::from(at),
                    y: 200.0,
                    span: Some((low, 250.0)),
                    text: String::new(),
                })
                .collect(),
            style: LineStyle::Band,
        }],
        ..Chart::default()
    };
    let wide = inline(&band(20.0), Size::SMALL, "");
    let narrow = inline(&band(190.0), Size::SMALL, "");
    assert!(wide.contains("\"l c0\"") && !wide.contains("\"b c0\""));
    assert!(narrow.contains("\"l c0\"") && narrow.contains("\"b c0\""));
}

/// The names of a bar's parts are apart in the legend and for programs that read the file.
#[test]
fn legends_have_a_text_for_each_name() {
    let part = |name: &str| (name.to_owned(), 1.0, String::new());
    let figure = Figure {
        id: "phases".to_owned(),
        title: "Phases".to_owned(),
        caption: String::new(),
        charts: vec![Chart {
            title: "Time [s]".to_owned(),
            bars: vec![Bar {
                label: "150 W".to_owned(),
                parts: ["host", "forward", "backward", "exchange"].map(part).into(),
            }],
            ..Chart::default()
        }],
    };
    check(&figure, "phases");
    let drawn = standalone(&figure, FigureWidth::Screen);
    for name in ["forward", "backward", "exchange"] {
        assert!(drawn.contains(&format!(">{name}</text>")), "{drawn}");
    }
}

/// The structure of a PDF file: every object is where the table says, and every page has its width.
#[test]
fn pdf_files_are_well_formed() {
    let figures = figures_of(&swept(
        "tesla_v100_sxm2_16gb",
        "resnet50@power_capping_2022",
        &[("power-cap", "150..300:50")],
    ));
    for (width, points) in [
        (FigureWidth::ONE_COLUMN, "240.94"),
        (FigureWidth::Screen, "504.57"),
    ] {
        let file = figures_pdf(&figures, width);
        assert!(file.starts_with(b"%PDF-1.5\n") && file.ends_with(b"%%EOF\n"));
        let text: String = file.iter().map(|byte| char::from(*byte)).collect();
        let (_, tail) = text.rsplit_once("startxref\n").unwrap();
        let start: usize = tail.lines().next().unwrap().parse().unwrap();
        let table: Vec<&str> = text[text.char_indices().nth(start).unwrap().0..]
            .lines()
            .collect();
        assert_eq!(table[0], "xref");
        let count: usize = table[1].strip_prefix("0 ").unwrap().parse().unwrap();
        assert_eq!(count, 7 + 3 * figures.len());
        for (number, line) in table[3..2 + count].iter().enumerate() {
            let place: usize = line[..10].parse().unwrap();
            let object = format!("{} 0 obj\n", number + 1);
            assert!(
                file[place..].starts_with(object.as_bytes()),
                "object {}",
                number + 1
            );
        }
        let pages = text.matches(&format!("/MediaBox [0 0 {points} ")).count();
        assert_eq!(pages, figures.len());
        assert!(
            text.contains("(Energy [reference = 1]) Tj"),
            "text can be selected"
        );
    }
    // No page needs a figure.
    assert!(figures_pdf(&[], FigureWidth::Screen).ends_with(b"%%EOF\n"));
}
