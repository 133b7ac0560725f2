//! The loads of the simulated GPU.

use sweetspot_stats::Seed;

/// A step of a load: its name, its length in seconds, and its switching activity; `None` is a wait, and a
/// negative activity is a GPU without a job.
pub type LoadStep = (&'static str, f64, Option<f64>);

/// The course of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadShape {
    Constant,
    /// On and off for half a period each; the period in seconds.
    Square(f64),
    /// Forward, backward, update and a wait for data; the iteration in seconds.
    Training(f64),
    /// No job, then a constant load after this many seconds.
    FromIdle(f64),
}

pub const LOAD_SHAPES: [LoadShape; 8] = [
    LoadShape::Constant,
    LoadShape::Square(0.05),
    LoadShape::Square(0.1),
    LoadShape::Square(0.2),
    LoadShape::Square(0.5),
    LoadShape::Square(2.0),
    LoadShape::Training(0.06),
    LoadShape::FromIdle(3.2),
];

impl std::fmt::Display for LoadShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&match self {
            Self::Constant => "constant".to_owned(),
            Self::Square(period) => format!("square {} ms", period * 1e3),
            Self::Training(iteration) => format!("training {} ms", iteration * 1e3),
            Self::FromIdle(_) => "from idle".to_owned(),
        })
    }
}

impl LoadShape {
    pub fn load_steps(self, seed: Seed) -> Box<dyn FnMut() -> LoadStep> {
        let mut step = 0;
        Box::new(move || {
            step += 1;
            let draw = seed.number(step);
            match self {
                Self::Constant => ("work", 10.0, Some(0.8)),
                Self::Square(period) if step % 2 == 1 => ("on", period / 2.0, Some(0.8)),
                Self::Square(period) => ("off", period / 2.0, None),
                Self::Training(iteration) => {
                    let long = iteration * (1.0 + 0.15 * draw.normal()).clamp(0.5, 1.6);
                    match step % 4 {
                        1 => ("forward", 0.28 * long, Some(0.7)),
                        2 => ("backward", 0.5 * long, Some(0.9)),
                        3 => ("update", 0.1 * long, Some(0.25)),
                        _ => ("data", 0.12 * long, None),
                    }
                }
                Self::FromIdle(until) if step == 1 => ("idle", until, Some(-1.0)),
                Self::FromIdle(_) => ("work", 10.0, Some(0.8)),
            }
        })
    }
}
