//! The one table of colours, with the marker and the dashes of each, so that lines can be told apart without colour.
//!
//! The first colours are those that any kind of colour vision can tell apart (Okabe and Ito, "Color universal design"),
//! darkened or lightened until text in them can be read on the background.

use sweetspot_decide::Objective;

use super::chart::Colour;

/// A colour with the marker and the dashes that go with it.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// The colour on a white background.
    pub light: &'static str,
    /// The colour on a dark background.
    pub dark: &'static str,
    /// The shape of the data points.
    pub marker: Marker,
    /// The lengths of dashes and gaps of lines without data points, in pixels; empty for a solid line.
    pub dashes: &'static [f64],
}

/// The shape of a data point: the corners of a polygon in a circle of radius 1, or a circle if there are none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker(pub &'static [(f64, f64)]);

const CIRCLE: Marker = Marker(&[]);
const SQUARE: Marker = Marker(&[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]);
const TRIANGLE: Marker = Marker(&[(0.0, -1.15), (1.1, 0.8), (-1.1, 0.8)]);
const DIAMOND: Marker = Marker(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]);
const INVERTED: Marker = Marker(&[(0.0, 1.15), (1.1, -0.8), (-1.1, -0.8)]);
const PLUS: Marker = Marker(&[
    (-0.4, -1.2),
    (0.4, -1.2),
    (0.4, -0.4),
    (1.2, -0.4),
    (1.2, 0.4),
    (0.4, 0.4),
    (0.4, 1.2),
    (-0.4, 1.2),
    (-0.4, 0.4),
    (-1.2, 0.4),
    (-1.2, -0.4),
    (-0.4, -0.4),
]);
const LEFT: Marker = Marker(&[(-1.15, 0.0), (0.8, -1.1), (0.8, 1.1)]);
const RIGHT: Marker = Marker(&[(1.15, 0.0), (-0.8, -1.1), (-0.8, 1.1)]);

const fn paint(
    light: &'static str,
    dark: &'static str,
    marker: Marker,
    dashes: &'static [f64],
) -> Paint {
    Paint {
        light,
        dark,
        marker,
        dashes,
    }
}

/// Eight colours for lines, grey, and the colour of the chosen setting; a [`Colour`] is an index of it.
pub const PAINTS: [Paint; 10] = [
    paint("#0072b2", "#4aa9ec", CIRCLE, &[]),
    paint("#c2410c", "#ff8b4d", SQUARE, &[7.0, 3.0]),
    paint("#00785a", "#2cc79c", DIAMOND, &[2.0, 3.0]),
    paint("#b3447f", "#ea9cc6", TRIANGLE, &[9.0, 3.0, 2.0, 3.0]),
    paint("#946300", "#f3b73e", INVERTED, &[4.0, 2.0]),
    paint("#6d5bb8", "#b3a3f5", PLUS, &[9.0, 3.0, 2.0, 3.0, 2.0, 3.0]),
    paint("#1f7a8c", "#7fd6e8", LEFT, &[12.0, 3.0]),
    paint("#5c6670", "#b6c0ca", RIGHT, &[5.0, 4.0]),
    paint("#69737e", "#98a4b1", CIRCLE, &[1.0, 2.0]),
    paint("#111827", "#f3f6fa", CIRCLE, &[]),
];

/// The metrics that figures compare, with their names, the best known first.
pub const METRICS: [(&str, Objective); 6] = [
    ("time", Objective::Time),
    ("EDS(k=1.5)", Objective::Eds(1.5)),
    ("EDS(k=2.0)", Objective::Eds(2.0)),
    ("EDP", Objective::Edp),
    ("energy", Objective::Energy),
    ("power", Objective::Power),
];

/// The colour of a metric in all figures. Metrics of the same quantity share a colour and are never in one chart.
pub const fn colour_of(objective: Objective) -> Colour {
    Colour(match objective {
        Objective::Energy | Objective::EnergyPerItem | Objective::ItemsPerJoule => 0,
        Objective::Time | Objective::Throughput => 1,
        Objective::Edp => 2,
        Objective::Eds(k) if k < 1.75 => 3,
        Objective::Power => 4,
        Objective::Eds(_) => 5,
        Objective::Ed2p => 6,
        Objective::GainMinusLoss | Objective::Cost | Objective::Carbon => 7,
    })
}

/// The name of a metric in figures.
pub fn metric_name(objective: Objective) -> String {
    let known = METRICS.iter().find(|(_, known)| *known == objective);
    known.map_or_else(|| objective.to_string(), |(name, _)| (*name).to_owned())
}

/// The colours of a heat map from the best to the worst value. Their lightness rises evenly, so that they can be told
/// apart without colour (the map "viridis" of Smith and van der Walt, in nine steps).
pub const HEAT: [&str; 9] = [
    "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30",
    "#fde725",
];

/// The level from which on a heat map's cells are so light that text on them must be dark.
pub const FIRST_LIGHT_LEVEL: usize = 4;

/// Returns the style of a figure in its own file: light, in the font that the program embeds.
pub fn standalone_style() -> String {
    let mut style = String::from(
        "text{font:11px Inter,system-ui,sans-serif;fill:#3b4652}.head{font-size:17px;font-weight:600;fill:#111827}\
         .ct{font-size:12px;font-weight:600;fill:#111827}.tk,.al{fill:#5c6670}.lb{font-size:11.5px;font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\
         .in{font-weight:600;fill:#fff}.iw{font-weight:600;fill:#fff}.id{font-weight:600;fill:#111827}.paper{fill:#fff}.g{stroke:#e3e7ec;fill:none}\
         .ax,.ld{stroke:#9aa4af;fill:none}.l{fill:none;stroke-width:2;stroke-linejoin:round}\
         .gd,.r{fill:none;stroke-width:1.2}.r{stroke-dasharray:5 4}.e{fill:none;stroke-width:1;stroke-opacity:.7}\
         .b{fill-opacity:.18;stroke:none}.q{fill-opacity:0}.p{stroke:none}.m{stroke:#fff;stroke-width:2}.h{stroke-width:1.6}\
         .oh{fill:none;stroke:#fff;stroke-width:5}.o{fill:none;stroke:#111827;stroke-width:2.5}.or{fill:none;stroke:#111827;stroke-width:1.6;stroke-dasharray:4 3}.nv{fill:#eef0f3}",
    );
    for (index, paint) in PAINTS.iter().enumerate() {
        let colour = paint.light;
        style += &format!(
            ".l.c{index},.gd.c{index},.r.c{index},.e.c{index},.h.c{index}{{stroke:{colour}}}.p.c{index},.s.c{index},.lb.c{index},.b.c{index}{{fill:{colour}}}.h.c{index}{{fill:#fff}}"
        );
    }
    for (level, colour) in HEAT.iter().enumerate() {
        style += &format!(".h{level}{{fill:{colour}}}");
    }
    style
}

/// Returns the colours as CSS variables, on a light or on a dark background.
pub fn variables(is_dark: bool) -> String {
    let paints = PAINTS.iter().enumerate();
    let colours = paints.map(|(index, paint)| {
        let colour = if is_dark { paint.dark } else { paint.light };
        format!("--c{index}:{colour};")
    });
    let heat = HEAT.iter().enumerate();
    let heat = heat.map(|(level, colour)| format!("--h{level}:{colour};"));
    colours.chain(heat).collect()
}

/// The red, green and blue of a colour like `#0072b2`, each from 0 to 1; black if it is not one.
pub fn components(colour: &str) -> [f64; 3] {
    let digits = |from: usize| {
        let text = colour.get(from..from + 2).unwrap_or("00");
        f64::from(u8::from_str_radix(text, 16).unwrap_or(0)) / 255.0
    };
    [digits(1), digits(3), digits(5)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Objective; 13] = [
        Objective::Energy,
        Objective::Time,
        Objective::Power,
        Objective::Edp,
        Objective::Ed2p,
        Objective::Eds(1.5),
        Objective::Eds(2.0),
        Objective::GainMinusLoss,
        Objective::EnergyPerItem,
        Objective::ItemsPerJoule,
        Objective::Throughput,
        Objective::Cost,
        Objective::Carbon,
    ];

    /// The relative luminance of WCAG 2.1.
    fn luminance(colour: &str) -> f64 {
        let linear = |value: f64| match value <= 0.04045 {
            true => value / 12.92,
            false => ((value + 0.055) / 1.055).powf(2.4),
        };
        let [red, green, blue] = components(colour).map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    /// The contrast ratio of WCAG 2.1.
    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    /// The background of figures on the dark page, as in `style.css`.
    const DARK_CARD: &str = "#151b23";

    #[test]
    fn text_in_every_colour_can_be_read_on_both_backgrounds() {
        assert!(include_str!("../html/style.css").contains(&format!("--card:{DARK_CARD}")));
        for paint in PAINTS {
            for (colour, ground) in [(paint.light, "#ffffff"), (paint.dark, DARK_CARD)] {
                let ratio = contrast(colour, ground);
                assert!(ratio >= 4.5, "{colour} on {ground}: {ratio:.2}");
            }
        }
    }

    #[test]
    fn metrics_of_one_chart_differ_without_colour() {
        let looks: Vec<(Colour, Marker, &[f64])> = METRICS
            .iter()
            .map(|(_, objective)| {
                let colour = colour_of(*objective);
                (colour, colour.paint().marker, colour.paint().dashes)
            })
            .collect();
        for (index, one) in looks.iter().enumerate() {
            for other in &looks[..index] {
                assert!(one.0 != other.0 && one.1 != other.1 && one.2 != other.2);
            }
        }
        // A series has the colour of no role.
        for objective in ALL {
            assert!(![Colour::GREY, Colour::CHOICE].contains(&colour_of(objective)));
        }
    }

    #[test]
    fn heat_maps_can_be_read_without_colour() {
        let lightness: Vec<f64> = HEAT.iter().map(|colour| luminance(colour)).collect();
        assert!(lightness.windows(2).all(|pair| pair[1] > 1.2 * pair[0]));
        for (level, colour) in HEAT.iter().enumerate() {
            let text = match level < FIRST_LIGHT_LEVEL {
                true => "#ffffff",
                false => "#111827",
            };
            let ratio = contrast(colour, text);
            assert!(ratio >= 4.5, "{colour}: {ratio:.2}");
        }
    }
}
