//! Colours that can be told apart with any kind of colour vision (Okabe and Ito, "Color universal design").

/// The colours on a white background: eight for lines, grey, and the colour of the chosen setting.
pub const LIGHT: [&str; 10] = [
    "#0072b2", "#d55e00", "#00855f", "#b8578d", "#b87700", "#2f9bd8", "#6d5bb8", "#5c6670",
    "#7a8590", "#111827",
];
/// The colours of [`LIGHT`], adapted to a dark background.
pub const DARK: [&str; 10] = [
    "#4aa9ec", "#ff8b4d", "#2cc79c", "#ea9cc6", "#f3b73e", "#8fd3fa", "#b3a3f5", "#b6c0ca",
    "#8b96a3", "#f3f6fa",
];

/// Returns the style of a figure in its own file: light, in the font that the program embeds.
pub fn standalone_style() -> String {
    let mut style = String::from(
        "text{font:12px Inter,system-ui,sans-serif;fill:#3b4652}.head{font-size:17px;font-weight:600;fill:#111827}\
         .ct{font-weight:600;fill:#111827}.tk,.al{font-size:11px;fill:#5c6670}.lb{font-size:11.5px;font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\
         .in{font-size:11px;font-weight:600;fill:#fff}.paper{fill:#fff}.g{stroke:#e3e7ec;fill:none}\
         .ax{stroke:#9aa4af;fill:none}.l{fill:none;stroke-width:2;stroke-linejoin:round}\
         .gd,.r{fill:none;stroke-width:1.2;stroke-dasharray:5 4}.e{fill:none;stroke-width:1;stroke-opacity:0.7}\
         .b{fill-opacity:0.18;stroke:none}.q{fill-opacity:0}.p{stroke:none}.m{stroke:#fff;stroke-width:2}",
    );
    for (index, colour) in LIGHT.iter().enumerate() {
        style += &format!(
            ".l.c{index},.gd.c{index},.r.c{index},.e.c{index}{{stroke:{colour}}}.p.c{index},.lb.c{index},.b.c{index}{{fill:{colour}}}"
        );
    }
    style
}

/// Returns the colours as CSS variables.
pub fn variables(colours: &[&str; 10]) -> String {
    let colours = colours.iter().enumerate();
    colours
        .map(|(index, colour)| format!("--c{index}:{colour};"))
        .collect()
}
