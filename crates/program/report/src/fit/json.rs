//! The document of a profile that was fitted to a study, `sweetspot.fit/1`.

use sweetspot_document::common::{SchemaName, TimeAndEnergy};
use sweetspot_document::fit as document;
use sweetspot_fit::{Errors, FitErrors, FittedPoint, FittedStudy};
use sweetspot_quantity::{Joules, Seconds};

use crate::study::settings;

/// Makes the document of a fit; `study` is the name of the study.
pub fn fit_json(study: &str, fitted: &FittedStudy) -> document::Fit {
    let best = fitted.choices.iter().map(|choice| {
        let best = document::FittedBest {
            measured: choice.measured,
            fitted: choice.fitted,
            regret: choice.regret.get(),
        };
        (choice.objective.to_string(), best)
    });
    document::Fit {
        schema: SchemaName::FIT,
        study: study.to_owned(),
        gpu: fitted.gpu.name.clone(),
        workload: fitted.workload.network.clone(),
        parameters: fitted.parameters,
        points: fitted.points.iter().map(point).collect(),
        errors: errors(&fitted.errors),
        best: best.collect(),
        assumed: fitted.assumed.clone(),
        tried: fitted.explored.clone(),
        notes: fitted.notes.clone(),
        left_out: fitted.cross_validation.as_ref().map(errors),
    }
}

/// Makes the entry of one configuration.
fn point(point: &FittedPoint) -> document::FittedPoint {
    document::FittedPoint {
        settings: settings(&point.configuration),
        items: point.items,
        measured: time_and_energy(point.measured),
        fitted: time_and_energy(point.fitted),
        off: document::PointError {
            time: point.time_deviation().get(),
            energy: point.energy_deviation().get(),
        },
    }
}

fn time_and_energy((time, energy): (Seconds, Joules)) -> TimeAndEnergy {
    TimeAndEnergy {
        time_s: time.get(),
        energy_j: energy.get(),
    }
}

/// Makes the entry of the deviations.
fn errors(errors: &FitErrors) -> document::FitErrors {
    let part = |errors: &Errors| document::MeanAndWorst {
        mean: errors.mean.get(),
        worst: errors.worst.get(),
    };
    document::FitErrors {
        time: part(&errors.time),
        energy: part(&errors.energy),
    }
}
