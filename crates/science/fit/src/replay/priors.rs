//! What the guided strategy knows about a curve before it starts.

use sweetspot_decide::search::{EarlierResults, KnobKind, Prior};

use super::{PriorChoice, RecordedCurve, ReplayError, ReplayRequest};

/// The prior knowledge about each curve.
pub enum Priors {
    /// All curves have the same prior.
    Same(Prior),
    /// For each GPU: the indices of its curves, and the prior learnt from all of them. The prior for a curve excludes
    /// that curve's own results.
    Others(Vec<(Vec<usize>, Prior)>),
}

impl Priors {
    /// Learns the priors that a request asks for.
    pub fn learn(request: &ReplayRequest) -> Result<Self, ReplayError> {
        let kinds = |curve: &RecordedCurve| -> Vec<KnobKind> {
            curve.knobs.iter().map(|knob| knob.kind).collect()
        };
        let Some(first) = request.curves.first() else {
            return Ok(Self::Same(Prior::default()));
        };
        match &request.prior {
            PriorChoice::None => Ok(Self::Same(Prior::default())),
            PriorChoice::Curves(curves) => {
                let same = |curve: &&RecordedCurve| kinds(curve) == kinds(first);
                let results: Vec<EarlierResults> = curves
                    .iter()
                    .filter(same)
                    .map(RecordedCurve::to_earlier_results)
                    .collect();
                Ok(Self::Same(Prior::learn(&kinds(first), &results)))
            }
            PriorChoice::LeaveOneOut if request.curves.len() < 2 => Err(ReplayError::NoOthers),
            PriorChoice::LeaveOneOut => {
                let mut gpus: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
                for (index, curve) in request.curves.iter().enumerate() {
                    let gpu = gpu_name(curve);
                    match gpus.iter_mut().find(|(known, _)| *known == gpu) {
                        Some((_, own)) => own.push(index),
                        None => gpus.push((gpu, vec![index])),
                    }
                }
                let learn = |own: Vec<usize>| {
                    let to_earlier_results =
                        |index: &usize| request.curves[*index].to_earlier_results();
                    let results: Vec<EarlierResults> = own.iter().map(to_earlier_results).collect();
                    let prior = Prior::learn(&kinds(first), &results);
                    (own, prior)
                };
                let gpus = gpus.into_iter().map(|(_, own)| learn(own));
                Ok(Self::Others(gpus.collect()))
            }
        }
    }

    /// The prior for the curve with this index.
    pub fn of_curve(&self, curve: usize) -> Prior {
        match self {
            Self::Same(prior) => prior.clone(),
            Self::Others(gpus) => gpus
                .iter()
                .find_map(|(own, prior)| {
                    let position = own.iter().position(|index| *index == curve)?;
                    Some(prior.without(position))
                })
                .unwrap_or_default(),
        }
    }
}

/// The name of the GPU of a curve, if a column has it.
fn gpu_name(curve: &RecordedCurve) -> Option<&str> {
    let mut columns = curve.group.iter();
    columns
        .find(|(name, _)| ["gpu", "device", "gpu"].contains(&name.to_lowercase().as_str()))
        .map(|(_, value)| value.as_str())
}
