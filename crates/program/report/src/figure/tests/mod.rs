//! Every drawn figure: no text overlaps another or leaves the picture, and none covers the point that it names.

mod documents;
mod random;

use std::num::NonZeroUsize;

use sweetspot_decide::{Criteria, Objective};
use sweetspot_study::{AxisText, Definition};

use super::chart::{Figure, LineStyle};
use super::draw::draw;
use super::labels::Area;
use super::layout::{FigureWidth, Size, arranged};
use super::palette::{METRICS, colour_of};
use super::shape::{MarkKind, Picture, Shape, Text, TextRole};
use crate::analysis::view::StudyView;

/// All widths at which figures are drawn on paper in these tests.
const PAPER: [FigureWidth; 3] = [
    FigureWidth::ONE_COLUMN,
    FigureWidth::TWO_COLUMNS,
    FigureWidth::Paper(50.0),
];

/// The texts of a picture.
fn texts(picture: &Picture) -> Vec<&Text> {
    let texts = picture.shapes.iter().filter_map(|shape| match shape {
        Shape::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}

/// What is wrong with the texts of a picture; empty if nothing is.
fn problems(picture: &Picture) -> Vec<String> {
    let whole = Area {
        left: -0.01,
        top: 0.0,
        right: picture.width + 0.01,
        bottom: picture.height,
    };
    let texts = texts(picture);
    let mut problems = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        if !whole.contains(&text.area()) {
            problems.push(format!("{:?} leaves the picture", text.text));
        }
        for other in &texts[..index] {
            if text.area().overlaps(&other.area()) {
                problems.push(format!("{:?} overlaps {:?}", text.text, other.text));
            }
        }
        for shape in &picture.shapes {
            if let Shape::Mark(mark) = shape
                && mark.kind == MarkKind::Ringed
                && matches!(text.role, TextRole::Label(_))
                && text.area().distance(mark.x, mark.y) < 1.0
            {
                problems.push(format!("{:?} covers a marked point", text.text));
            }
        }
    }
    problems
}

/// Checks a figure at every width.
fn check(figure: &Figure, name: &str) {
    for chart in &figure.charts {
        for size in [Size::SMALL, Size::WIDE, Size::TALL] {
            let picture = draw(chart, size.width(), size.height());
            let found = problems(&picture);
            assert!(
                found.is_empty(),
                "{name}, {}, {size:?}: {found:#?}",
                figure.id
            );
        }
    }
    for width in PAPER.into_iter().chain([FigureWidth::Screen]) {
        let picture = arranged(figure, width);
        let found = problems(&picture);
        assert!(
            found.is_empty(),
            "{name}, {}, {width:?}: {found:#?}",
            figure.id
        );
        if let FigureWidth::Paper(millimetres) = width {
            assert!((width.millimetres_of(picture.width) - millimetres).abs() < 1e-6);
        }
    }
}

/// Runs a simulated sweep and returns its figures, by several objectives.
fn figures_of(definition: &Definition) -> Vec<Figure> {
    let study = sweetspot_virtual_time::sweep(definition, NonZeroUsize::MIN).unwrap();
    let objectives = [Objective::Edp, Objective::Energy, Objective::Eds(1.5)];
    let mut figures = Vec::new();
    for objective in objectives {
        let criteria = Criteria::from(objective);
        let view = StudyView::new(&study, &criteria);
        figures.extend(super::figures(&view, &[]));
    }
    figures
}

/// The definition of a sweep over some axes.
fn swept(gpu: &str, workload: &str, axes: &[(&str, &str)]) -> Definition {
    let mut definition = Definition {
        repeat: Some(2),
        ..Definition::simulated(gpu, workload)
    };
    for (axis, values) in axes {
        let values = AxisText((*values).to_owned());
        match *axis {
            "power-cap" => definition.power_cap = Some(values),
            "core-clock" => definition.core_clock = Some(values),
            "memory-clock" => definition.memory_clock = Some(values),
            "gpus" => definition.gpus = Some(values),
            name => {
                definition.axis.insert(name.to_owned(), values);
            }
        }
    }
    definition
}

#[test]
fn figures_of_simulated_studies_are_readable() {
    let v100 = "tesla_v100_sxm2_16gb";
    let maxwell = "titan_x_maxwell:2";
    let mut definitions = vec![
        swept(
            "tesla_p100",
            "vgg16@dvfs_2019",
            &[
                ("core-clock", "544,810,936,1063,1328"),
                ("batch", "8,16,32"),
            ],
        ),
        swept(
            v100,
            "resnet50@power_capping_2022",
            &[("power-cap", "150..300:25"), ("batch", "32,64,128,256")],
        ),
        swept(
            "gtx_2080ti",
            "vgg16@dvfs_2019",
            &[
                ("core-clock", "950,1350,1950"),
                ("memory-clock", "all"),
                ("conv_algorithm", "gemm,fft"),
            ],
        ),
        swept(
            maxwell,
            "resnet_gait@multi_gpu_2018",
            &[("batch", "64,256"), ("gpus", "1,2")],
        ),
        swept(
            "tesla_p40",
            "mobilenet_v1@batch_sizer_2021",
            &[("batch", "1,2,4,8,16,32,64,128,256,512")],
        ),
    ];
    for network in [
        "alexnet",
        "vgg19",
        "inception_v3",
        "inception_v4",
        "resnet50",
        "resnet152",
    ] {
        for gpu in [v100, "quadro_rtx_6000"] {
            let workload = format!("{network}@power_capping_2022");
            definitions.push(swept(gpu, &workload, &[("power-cap", "all")]));
        }
    }
    for definition in definitions {
        let figures = figures_of(&definition);
        assert!(figures.len() >= 6, "{definition:?}");
        for figure in figures {
            check(&figure, &format!("{:?}", definition.network));
        }
    }
}

/// Values of axes are whole, and the reference, the choice and the lines of the metrics have their names.
#[test]
fn what_matters_is_labelled_at_every_size() {
    let axes = [("power-cap", "150..300:25"), ("batch", "32,64,128")];
    let figures = figures_of(&swept(
        "tesla_v100_sxm2_16gb",
        "resnet50@power_capping_2022",
        &axes,
    ));
    for chart in figures.iter().flat_map(|figure| &figure.charts) {
        for size in [Size::SMALL, Size::WIDE, Size::TALL] {
            let picture = draw(chart, size.width(), size.height());
            let texts = texts(&picture);
            let ticks = texts.iter().filter(|text| text.role == TextRole::Tick);
            let cut: Vec<&&Text> = ticks.filter(|text| text.text.ends_with('…')).collect();
            assert!(cut.is_empty(), "{cut:?}");
            for line in chart.lines.iter().filter(|line| !line.label.is_empty()) {
                let start = line.label.split([':', ' ']).next().unwrap();
                let is_shown = texts.iter().any(|text| text.text.starts_with(start));
                assert!(is_shown, "{}: {} at {size:?}", chart.title, line.label);
            }
        }
    }
}

#[test]
fn two_axes_give_a_heat_map() {
    let figures = figures_of(&swept(
        "tesla_v100_sxm2_16gb",
        "resnet50@power_capping_2022",
        &[("power-cap", "150..300:50"), ("batch", "32,64,128")],
    ));
    let map = figures
        .iter()
        .find(|figure| figure.id == "map-power-cap-batch");
    let cells = &map.unwrap().charts[0].heat_map.as_ref().unwrap().cells;
    assert_eq!(cells.len(), 12);
    assert_eq!(cells.iter().filter(|cell| cell.is_reference).count(), 1);
    let best = cells
        .iter()
        .filter_map(|cell| Some((cell.value?, cell.is_choice)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    assert!(best.unwrap().1, "the choice has the least EDP");
    let drawn = draw(&map.unwrap().charts[0], 860.0, 430.0);
    let values = texts(&drawn).into_iter();
    let values = values.filter(|text| matches!(text.role, TextRole::OnDark | TextRole::OnLight));
    assert_eq!(values.count(), 12, "each cell shows its value");
}

#[test]
fn figures_of_the_papers_are_readable_and_complete() {
    let expected = [
        ("power-capping-2022", "1 2 3", 0, true),
        ("dvfs-2019", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15", 0, false),
        ("multi-gpu-2018", "5 6 7 8", 4, true),
        ("batch-sizer-2021", "1 5 6 7 8", 3, true),
        ("node-power-capping-2023", "2 3 4 5 6 7", 1, true),
    ];
    for (paper, numbers, not_drawn, has_points) in expected {
        let threads = std::thread::available_parallelism().unwrap();
        let study = sweetspot_papers::reproduce(paper, 1, threads)
            .unwrap()
            .unwrap();
        assert_eq!(study.figures_not_drawn.len(), not_drawn, "{paper}");
        let drawn: Vec<&str> = study
            .figures
            .iter()
            .map(|one| one.number.as_str())
            .collect();
        assert_eq!(drawn.join(" "), numbers, "{paper}");
        let figures = crate::reproduce::reproduction_figures(&study);
        for figure in &figures {
            check(figure, paper);
        }
        let charts = || figures.iter().flat_map(|figure| &figure.charts);
        let published = charts().flat_map(|chart| &chart.lines);
        let mut published = published.filter(|line| line.style == LineStyle::Published);
        assert_eq!(published.next().is_some(), has_points, "{paper}");
        assert!(charts().all(|chart| !chart.lines.is_empty()), "{paper}");
    }
}

/// The lines of a metric have its colour, wherever it is drawn.
#[test]
fn a_metric_has_one_colour_in_all_figures() {
    let mut figures = figures_of(&swept(
        "tesla_v100_sxm2_16gb",
        "resnet50@power_capping_2022",
        &[("power-cap", "150..300:25")],
    ));
    let threads = NonZeroUsize::MIN;
    let study = sweetspot_papers::reproduce("power-capping-2022", 1, threads).unwrap();
    figures.extend(crate::reproduce::reproduction_figures(&study.unwrap()));
    let mut seen = 0;
    for line in figures
        .iter()
        .flat_map(|figure| &figure.charts)
        .flat_map(|chart| &chart.lines)
    {
        let name = line.label.trim_end_matches(" = 1");
        let name = if name == "E" { "energy" } else { name };
        if let Some((_, objective)) = METRICS.iter().find(|(known, _)| *known == name) {
            assert_eq!(line.colour, colour_of(*objective), "{name}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}
