//! The GPUs of a hold: they get their settings together, and a total power cap is divided among them.

use sweetspot_control::hold::{CapDivision, CapRange, HoldSetting, PowerReading};
use sweetspot_control::tune::{SettingsScope, fit_to};
use sweetspot_device::{Descriptor, Settings};
use sweetspot_guard::GuardError;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_workload::Lease;

use super::automatic::cap_range;
use super::real::device_settings;
use crate::DevicesError;
use crate::host::Gpu;

/// The GPUs of a hold.
pub struct GpuGroup {
    devices: Vec<Descriptor>,
    /// How a total power cap is divided among several GPUs; `None` if their caps are not set.
    division: Option<CapDivision>,
    /// The settings that the GPUs have now; `None` before the first.
    present: Option<Vec<Settings>>,
}

/// What is known about the GPUs of a hold before it starts.
#[derive(Clone, Debug)]
pub struct GroupLimits {
    /// The caps that each GPU may get; `None` if the cap of one cannot be set.
    pub caps: Option<Vec<CapRange>>,
    /// What each GPU draws without work.
    pub idle: Vec<Option<Watts>>,
}

impl GroupLimits {
    /// Reads the limits of the GPUs.
    pub fn read(gpus: &mut [Gpu]) -> Self {
        let is_alone = gpus.len() == 1;
        let ranges = gpus.iter_mut().map(|gpu| {
            let (lowest, highest) = cap_range(gpu.descriptor())?;
            // The sum of what the GPUs may draw together was chosen by someone: no GPU gets more than it had.
            let had = gpu.power_limits().ok().map(|limits| limits.requested);
            let had = had.filter(|had| !is_alone && *had >= lowest);
            Some(CapRange {
                lowest,
                highest: had.map_or(highest, |had| had.min(highest)),
            })
        });
        Self {
            caps: ranges.collect(),
            idle: gpus
                .iter_mut()
                .map(|gpu| super::real::read_idle_power(gpu.as_mut()))
                .collect(),
        }
    }

    /// The sums of the lowest and of the highest caps; `None` if the cap of one GPU cannot be set.
    pub fn cap_range(&self) -> Option<(Watts, Watts)> {
        let sum = CapDivision::range(self.caps.as_ref()?);
        Some((sum.lowest, sum.highest))
    }

    /// What all GPUs draw without work; `None` if that is unknown for one.
    pub fn idle_power(&self) -> Option<Watts> {
        self.idle.iter().copied().sum()
    }
}

impl GpuGroup {
    /// Creates the group; nothing is set yet.
    pub fn new(
        devices: Vec<Descriptor>,
        limits: &GroupLimits,
        scope: SettingsScope,
        first: &HoldSetting,
    ) -> Self {
        let caps = limits.caps.clone().zip(first.power_cap);
        let division = caps
            .filter(|_| devices.len() > 1)
            .map(|(caps, total)| CapDivision::new(caps, &limits.idle, scope, total));
        Self {
            devices,
            division,
            present: None,
        }
    }

    /// The GPUs, in the order in which the user named them.
    pub fn devices(&self) -> &[Descriptor] {
        &self.devices
    }

    /// The name of a GPU for messages: its model, with its number if there are several GPUs.
    pub fn name(&self, gpu: usize) -> String {
        match self.devices.as_slice() {
            [one] => one.name.clone(),
            all => format!("GPU {gpu} ({})", all[gpu].name),
        }
    }

    /// Says that a GPU no longer responds.
    pub fn lost_message(&self, gpu: usize) -> String {
        DevicesError::Lost(self.name(gpu)).to_string()
    }

    /// The power cap of each GPU; `None` if there is one GPU, or if caps are not set.
    pub fn caps(&self) -> Option<&[Watts]> {
        self.division.as_ref().map(CapDivision::caps)
    }

    /// The settings that the GPUs have now.
    pub fn present(&self) -> Option<&[Settings]> {
        self.present.as_deref()
    }

    /// Takes a power reading of a GPU, for the division.
    pub fn record_power(&mut self, gpu: usize, reading: &PowerReading) {
        if let Some(division) = &mut self.division {
            division.record_power(gpu, reading);
        }
    }

    /// Takes a reading of the reasons for which a GPU runs slower.
    pub fn record_throttle(&mut self, gpu: usize, now: Seconds, is_limited: bool) {
        if let Some(division) = &mut self.division {
            division.record_throttle(gpu, now, is_limited);
        }
    }

    /// Forgets what was observed, because the batch size has changed.
    pub fn restart(&mut self, now: Seconds) {
        if let Some(division) = &mut self.division {
            division.restart(now);
        }
    }

    /// Moves watts to the GPUs that need them, unless the total is above `limit`. Returns whether caps are to be set anew.
    pub fn rebalance(&mut self, now: Seconds, limit: Watts) -> bool {
        let division = self.division.as_mut();
        division.is_some_and(|division| division.rebalance(now, limit))
    }

    /// Whether watts have moved, at the first call after they no longer do.
    pub fn take_balanced(&mut self) -> Option<bool> {
        self.division.as_mut().and_then(CapDivision::take_balanced)
    }

    /// The settings of each GPU for a setting of the control algorithm.
    fn settings_for(&mut self, now: Seconds, setting: &HoldSetting) -> Vec<Settings> {
        let all = device_settings(setting);
        if let (Some(division), Some(total)) = (&mut self.division, setting.power_cap) {
            division.set_total(now, total);
            let own = division.caps().iter().map(|cap| Settings {
                power_cap: Some(*cap),
                ..all
            });
            return own.collect();
        }
        let first = &self.devices[0].name;
        let is_one_model = self.devices.iter().all(|device| device.name == *first);
        let own = self.devices.iter().map(|device| match is_one_model {
            true => all,
            false => fit_to(device, &all),
        });
        own.collect()
    }

    /// Applies a setting to all GPUs: caps are lowered first and raised then, so that their sum never exceeds the total.
    /// If one GPU rejects it, the others get the settings that they had, and the error says which one it was.
    pub fn apply(
        &mut self,
        lease: &mut Lease<'_>,
        now: Seconds,
        setting: &HoldSetting,
    ) -> Result<(), (usize, GuardError)> {
        let wanted = self.settings_for(now, setting);
        let order = write_order(self.present.as_deref(), &wanted);
        for (position, gpu) in order.iter().enumerate() {
            let Err(problem) = lease.set(&self.devices[*gpu].id, &wanted[*gpu]) else {
                continue;
            };
            for done in order[..position].iter().rev() {
                let id = &self.devices[*done].id;
                let _ = match &self.present {
                    Some(present) => lease.set(id, &present[*done]).map(drop),
                    None => lease.restore(id),
                };
            }
            return Err((*gpu, problem));
        }
        self.present = Some(wanted);
        Ok(())
    }

    /// Gives all GPUs but the lost one the settings that they had before the hold.
    pub fn restore(&mut self, lease: &mut Lease<'_>, lost: Option<usize>) -> Vec<String> {
        let devices = self.devices.iter().enumerate();
        devices
            .filter(|(gpu, _)| Some(*gpu) != lost)
            .filter_map(|(_, device)| lease.restore(&device.id).err())
            .map(|problem| problem.to_string())
            .collect()
    }
}

/// The order in which new settings are written: those that lower a cap first.
fn write_order(present: Option<&[Settings]>, wanted: &[Settings]) -> Vec<usize> {
    let raise = |gpu: usize| {
        let had = present.and_then(|present| present[gpu].power_cap);
        let gets = wanted[gpu].power_cap;
        had.zip(gets).map_or(0.0, |(had, gets)| (gets - had).get())
    };
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|a, b| raise(*a).total_cmp(&raise(*b)));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_lowered_before_others_are_raised() {
        let settings = |caps: &[f64]| -> Vec<Settings> {
            let own = caps.iter().map(|cap| Settings {
                power_cap: Some(Watts::new(*cap)),
                ..Settings::default()
            });
            own.collect()
        };
        let present = settings(&[200.0, 200.0, 200.0]);
        let wanted = settings(&[230.0, 150.0, 190.0]);
        assert_eq!(write_order(Some(&present), &wanted), [1, 2, 0]);
        assert_eq!(write_order(None, &wanted), [0, 1, 2]);
    }
}
