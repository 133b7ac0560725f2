//! Charts of random and of odd values.

use proptest::prelude::*;

use super::problems;
use crate::figure::chart::{
    AxisKind, Bar, Chart, ChartAxis, Colour, Dot, HeatCell, HeatMap, Line, LineStyle, ReferenceLine,
};
use crate::figure::draw::draw;
use crate::figure::labels::{Area, LabelSpace, Spot};
use crate::figure::layout::Size;
use crate::figure::shape::{Shape, TextRole};
use crate::figure::svg::{escape, inline};

fn dots(points: &[(f64, f64)]) -> Vec<Dot> {
    let dots = points.iter().map(|(x, y)| Dot {
        x: *x,
        y: *y,
        span: Some((y - 1.0, y * 2.0)),
        text: "<b>".to_owned(),
    });
    dots.collect()
}

const STYLES: [LineStyle; 8] = [
    LineStyle::PointsAndLine,
    LineStyle::Line,
    LineStyle::Guide,
    LineStyle::Band,
    LineStyle::Points,
    LineStyle::Markers,
    LineStyle::Published,
    LineStyle::Level,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Labels of random points never overlap, never leave the space, and never cover their point.
    #[test]
    fn placed_labels_are_apart(
        points in prop::collection::vec((0.0..360.0f64, 0.0..270.0f64, 1.0..8.0f64, "[a-zA-Z0-9 .=()]{1,24}"), 1..14),
        lines in prop::collection::vec(((0.0..360.0f64, 0.0..270.0f64), (0.0..360.0f64, 0.0..270.0f64)), 0..8),
    ) {
        let within = Area { left: 0.0, top: 0.0, right: 360.0, bottom: 270.0 };
        let mut space = LabelSpace::new(within);
        let fixed = Area { left: 0.0, top: 0.0, right: 120.0, bottom: 16.0 };
        space.reserve(fixed);
        for (x, y, radius, _) in &points {
            space.avoid_point(Spot { x: *x, y: *y, radius: *radius });
        }
        for (from, to) in lines {
            space.avoid_line(from, to);
        }
        let role = TextRole::Label(Colour(0));
        let mut placed: Vec<Area> = vec![fixed];
        for (x, y, radius, text) in &points {
            let Some(label) = space.place(text, role, &[Spot { x: *x, y: *y, radius: *radius }]) else {
                continue;
            };
            prop_assert!(within.contains(&label.area));
            prop_assert!(label.area.distance(*x, *y) >= radius - 1e-6);
            prop_assert!(placed.iter().all(|other| !other.overlaps(&label.area)));
            placed.push(label.area);
        }
        // A few labels always have room.
        if points.len() <= 4 {
            prop_assert_eq!(placed.len(), points.len() + 1);
        }
    }

    /// Charts of random lines, markers and levels are readable at every size.
    #[test]
    fn random_charts_are_readable(
        lines in prop::collection::vec(
            (prop::collection::vec((-50.0..500.0f64, -2.0..3000.0f64), 1..12), 0usize..8, "[a-zA-Z0-9 .=(),]{0,30}"),
            0..9,
        ),
        levels in prop::collection::vec((any::<bool>(), -50.0..500.0f64, "[a-z0-9: ]{0,20}"), 0..3),
        title in "[a-zA-Z0-9 ,;=\\[\\]]{0,70}",
        is_legend in any::<bool>(),
    ) {
        let lines = lines.into_iter().enumerate().map(|(index, (mut points, style, label))| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line { label, colour: Colour::of(index), dots: dots(&points), style: STYLES[style] }
        });
        let levels = levels.into_iter().map(|(is_vertical, at, label)| ReferenceLine {
            is_vertical,
            at,
            label,
            colour: Colour::GREY,
        });
        let chart = Chart {
            title,
            x: ChartAxis { label: "Power cap [W]".to_owned(), ..ChartAxis::default() },
            y: ChartAxis { label: "Energy [kJ]".to_owned(), ..ChartAxis::default() },
            lines: lines.collect(),
            reference_lines: levels.collect(),
            has_legend: is_legend,
            ..Chart::default()
        };
        for (width, height) in [(360.0, 270.0), (860.0, 430.0), (200.0, 150.0)] {
            let found = problems(&draw(&chart, width, height));
            prop_assert!(found.is_empty(), "{:#?}", found);
        }
    }

    /// Bars and heat maps with names of any length are readable.
    #[test]
    fn random_bars_and_heat_maps_are_readable(
        names in prop::collection::vec("[a-zA-Z0-9 .=]{1,30}", 1..9),
        amounts in prop::collection::vec(0.0..1e6f64, 1..9),
        columns in 1usize..40,
    ) {
        let bars = amounts.iter().map(|amount| Bar {
            label: names[0].clone(),
            parts: names.iter().map(|name| (name.clone(), *amount, String::new())).collect(),
        });
        let bars = Chart { title: "Time [s]".to_owned(), bars: bars.collect(), ..Chart::default() };
        let cells = (0..columns).flat_map(|column| (0..names.len()).map(move |row| (column, row)));
        let map = HeatMap {
            columns: (0..columns).map(|column| format!("{} W", 100 + 25 * column)).collect(),
            rows: names.clone(),
            cells: cells.map(|(column, row)| HeatCell {
                column,
                row,
                value: (column != row).then_some(amounts[0] * (column + row) as f64),
                text: String::new(),
                is_reference: column == 0,
                is_choice: row == 0,
            }).collect(),
            larger_is_better: amounts.len() % 2 == 0,
        };
        let map = Chart { title: names[0].clone(), heat_map: Some(map), ..Chart::default() };
        for chart in [bars, map] {
            for (width, height) in [(360.0, 270.0), (860.0, 430.0), (200.0, 150.0)] {
                let found = problems(&draw(&chart, width, height));
                prop_assert!(found.is_empty(), "{:#?}", found);
            }
        }
    }
}

/// Lines that end close to each other and to the axis keep all their labels.
#[test]
fn no_line_loses_its_label() {
    for count in 1..=8usize {
        for height in [5.0, 100.0] {
            let lines = (0..count).map(|index| Line {
                label: format!("{index} GPUs"),
                colour: Colour::of(index),
                dots: dots(&[
                    (0.0, height + index as f64),
                    (1.0, height + 0.01 * index as f64),
                ]),
                style: LineStyle::PointsAndLine,
            });
            let chart = Chart {
                y: ChartAxis::from_zero("Time [s]"),
                lines: lines.collect(),
                ..Chart::default()
            };
            for size in [(360.0, 270.0), (860.0, 430.0), (240.0, 226.0)] {
                let texts = draw(&chart, size.0, size.1).shapes;
                let names = texts.iter().filter(
                    |shape| matches!(shape, Shape::Text(text) if text.text.ends_with(" GPUs")),
                );
                assert_eq!(names.count(), count, "{count} lines at {size:?}");
            }
        }
    }
}

#[test]
fn text_cannot_break_out() {
    assert_eq!(
        escape("<a href=\"x\">&'\u{1}"),
        "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}"
    );
}

/// Draws every line style with every kind of axis and with values that arithmetic can produce.
#[test]
fn no_value_breaks_a_drawing() {
    let odd = [
        0.0,
        1.0,
        -1.0,
        1e-300,
        1e300,
        f64::MAX,
        f64::NAN,
        f64::INFINITY,
    ];
    let kinds = [
        AxisKind::Linear,
        AxisKind::Logarithmic(vec![1.0, 2.0]),
        AxisKind::Categories(vec!["a".into()]),
    ];
    for (first, second) in odd.iter().flat_map(|a| odd.map(|b| (*a, b))) {
        for (style, kind) in STYLES
            .iter()
            .flat_map(|style| kinds.clone().map(|kind| (*style, kind)))
        {
            let chart = Chart {
                title: "T".to_owned(),
                x: ChartAxis {
                    kind: kind.clone(),
                    ..ChartAxis::default()
                },
                y: ChartAxis {
                    kind,
                    includes_zero: first > second,
                    ..ChartAxis::default()
                },
                lines: vec![Line {
                    label: "line".to_owned(),
                    colour: Colour(1),
                    dots: dots(&[(first, second), (second, first), (1.0, 2.0)]),
                    style,
                }],
                ..Chart::default()
            };
            let drawn = inline(&chart, Size::SMALL, "");
            assert!(
                !drawn.contains("NaN") && !drawn.contains("inf"),
                "{first} {second} {style:?}: {drawn}"
            );
            assert!(!drawn.contains("<b>"));
        }
    }
}

#[test]
fn an_empty_chart_is_a_chart() {
    let bars = Chart {
        bars: vec![Bar {
            label: "one".to_owned(),
            parts: vec![("p".to_owned(), 0.0, String::new())],
        }],
        ..Chart::default()
    };
    let reference_lines = Chart {
        reference_lines: vec![ReferenceLine {
            is_vertical: true,
            at: 3.0,
            label: "here".to_owned(),
            colour: Colour::GREY,
        }],
        ..Chart::default()
    };
    for chart in [Chart::default(), bars, reference_lines] {
        let drawn = inline(&chart, Size::SMALL, "");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}
