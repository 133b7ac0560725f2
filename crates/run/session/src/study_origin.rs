//! The study that the configuration of a run comes from, and the comparison of its GPUs with those of the run.

use sweetspot_device::Descriptor;
use sweetspot_sim::is_simulated;

use crate::DevicesError;

/// The study that the configuration of a run comes from.
#[derive(Clone, Debug)]
pub struct StudyOrigin {
    /// The GPUs on which the study measured the configuration, in order.
    pub devices: Vec<Descriptor>,
    /// The recommendation of the study, in a sentence for the user.
    pub recommendation: String,
    /// Whether the run may use other GPUs: those of another model, real ones in place of simulated ones, or simulated
    /// ones in place of real ones.
    pub accepts_other_gpus: bool,
}

/// A GPU of the run that differs from the study's.
struct Mismatch {
    /// The model of the study's GPU.
    measured: String,
    /// The index of the GPU of this machine.
    index: u32,
    /// The model of the GPU of this machine.
    here: String,
}

impl StudyOrigin {
    /// Rejects GPUs of another model than the study's, unless they are accepted. A GPU is given with its index.
    pub(crate) fn reject_other_gpus(
        &self,
        gpus: &[(u32, &Descriptor)],
    ) -> Result<(), DevicesError> {
        match self.mismatch(gpus).filter(|_| !self.accepts_other_gpus) {
            Some(Mismatch {
                measured,
                index,
                here,
            }) => Err(DevicesError::OtherGpu {
                measured,
                index,
                here,
            }),
            None => Ok(()),
        }
    }

    /// The recommendation, and the GPUs on which it was measured.
    pub(crate) fn announcement(&self, gpus: &[(u32, &Descriptor)]) -> String {
        let recommendation = &self.recommendation;
        if let Some(Mismatch {
            measured,
            index,
            here,
        }) = self.mismatch(gpus)
        {
            return format!(
                "{recommendation} This was measured on {measured}; GPU {index} of this machine is {here}, so its time and energy may differ."
            );
        }
        let mut models: Vec<String> = self.devices.iter().map(model).collect();
        models.dedup();
        let models = models.join(" and ");
        match (self.devices.len(), gpus.len()) {
            (1, here) if here != 1 => format!(
                "{recommendation} This was measured on one {models}; this run has {here} GPUs, so its time and energy may differ."
            ),
            (measured, here) if measured != here => format!(
                "{recommendation} This was measured on {measured} GPUs ({models}); this run has {here}, so its time and energy may differ."
            ),
            _ => format!("{recommendation} This was measured on {models}."),
        }
    }

    /// The first GPU that differs from the study's GPU in the same place; if the study had fewer GPUs, the rest must be
    /// like its last.
    fn mismatch(&self, gpus: &[(u32, &Descriptor)]) -> Option<Mismatch> {
        gpus.iter().enumerate().find_map(|(place, (index, here))| {
            let measured = self.devices.get(place).or(self.devices.last())?;
            let is_other_kind = is_simulated(measured) != is_simulated(here);
            if !is_other_kind && measured.name == here.name {
                return None;
            }
            let describe = |device: &Descriptor| match is_other_kind && !is_simulated(device) {
                true => format!("{} (real)", device.name),
                false => model(device),
            };
            Some(Mismatch {
                measured: describe(measured),
                index: *index,
                here: describe(here),
            })
        })
    }
}

/// The product name of a GPU, and whether it is simulated.
fn model(device: &Descriptor) -> String {
    match is_simulated(device) {
        true => format!("{} (simulated)", device.name),
        false => device.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_device::{DeviceId, DeviceKind};
    use sweetspot_sim::uuid;

    use super::*;

    fn gpu(name: &str, id: DeviceId, backend: &str) -> Descriptor {
        Descriptor {
            id,
            name: name.to_owned(),
            kind: DeviceKind::Gpu,
            backend: backend.to_owned(),
            parent: None,
            memory: None,
            sensors: Vec::new(),
            knobs: Vec::new(),
        }
    }

    fn real(name: &str) -> Descriptor {
        gpu(name, DeviceId::new(format!("GPU-of-{name}")), "nvml")
    }

    /// A simulated GPU as the simulated NVML library shows it.
    fn simulated(name: &str, index: u64) -> Descriptor {
        gpu(name, uuid(name, index), "nvml")
    }

    /// The error of a run on these GPUs, or what the user is told.
    fn outcome(study: &[&Descriptor], here: &[&Descriptor], force: bool) -> Result<String, String> {
        let origin = StudyOrigin {
            devices: study.iter().map(|device| (*device).clone()).collect(),
            recommendation: "Recommendation: X.".to_owned(),
            accepts_other_gpus: force,
        };
        let gpus: Vec<(u32, &Descriptor)> = (0..).zip(here.iter().copied()).collect();
        origin
            .reject_other_gpus(&gpus)
            .map(|()| origin.announcement(&gpus))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn gpus_of_the_same_model_are_accepted() {
        let (a, b) = (real("A100"), real("A100"));
        let measured = "Recommendation: X. This was measured on A100.";
        assert_eq!(outcome(&[&a], &[&b], false).as_deref(), Ok(measured));
        // More GPUs than the study had must be of its model too, and another number is said.
        let counted = |study: &[&Descriptor], here: &[&Descriptor]| {
            let told = outcome(study, here, false).unwrap();
            told.split_once("This was measured on ")
                .unwrap()
                .1
                .to_owned()
        };
        let differ = "so its time and energy may differ.";
        assert_eq!(
            counted(&[&a], &[&a, &b]),
            format!("one A100; this run has 2 GPUs, {differ}")
        );
        assert_eq!(
            counted(&[&a, &b], &[&b]),
            format!("2 GPUs (A100); this run has 1, {differ}")
        );
        // A study in virtual time applies to the same GPU in real time.
        let virtual_time = gpu("V100", uuid("V100", 0), "sim");
        assert_eq!(
            outcome(&[&virtual_time], &[&simulated("V100", 3)], false).as_deref(),
            Ok("Recommendation: X. This was measured on V100 (simulated).")
        );
        let mixed = [&real("A100"), &real("H200")];
        assert_eq!(
            outcome(&mixed, &mixed, false).as_deref(),
            Ok("Recommendation: X. This was measured on A100 and H200.")
        );
    }

    #[test]
    fn other_gpus_are_rejected_unless_they_are_forced() {
        let (a100, h200) = (real("A100"), real("H200"));
        let simulated = simulated("H200", 0);
        let cases: [(&[&Descriptor], &[&Descriptor], &str, &str); 5] = [
            (&[&a100], &[&h200], "A100", "0 of this machine is H200"),
            (
                &[&a100],
                &[&a100, &h200],
                "A100",
                "1 of this machine is H200",
            ),
            (
                &[&a100, &h200],
                &[&h200, &a100],
                "A100",
                "0 of this machine is H200",
            ),
            (
                &[&simulated],
                &[&h200],
                "H200 (simulated)",
                "0 of this machine is H200 (real)",
            ),
            (
                &[&h200],
                &[&simulated],
                "H200 (real)",
                "0 of this machine is H200 (simulated)",
            ),
        ];
        for (study, here, measured, found) in cases {
            let error = outcome(study, here, false).unwrap_err();
            let expected = format!("the study was measured on {measured}, but GPU {found}");
            assert!(error.starts_with(&expected), "{error}");
            let note = outcome(study, here, true).unwrap();
            let expected = format!("This was measured on {measured}; GPU {found}, so its time");
            assert!(note.contains(&expected), "{note}");
        }
    }
}
