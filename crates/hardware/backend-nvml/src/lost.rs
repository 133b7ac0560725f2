//! A GPU that the driver counts but cannot open: it has fallen off the bus. It keeps its place in the list, so that the
//! other GPUs of the machine can be used.

use sweetspot_device::{
    Actuator, AppliedSettings, Descriptor, Device, DeviceId, DeviceKind, HostDevice, Knob,
    OpenError, PowerLimits, ReadError, Reading, SensorKind, Settings, WriteError,
};

/// A GPU that no longer answers.
#[derive(Debug)]
pub(crate) struct LostGpu {
    index: u32,
    descriptor: Descriptor,
}

impl LostGpu {
    /// Describes the GPU with this index, of which nothing else is known.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            descriptor: Descriptor {
                id: DeviceId::new(format!("lost-gpu-{index}")),
                name: format!("GPU {index}"),
                kind: DeviceKind::Gpu,
                backend: "nvml".to_owned(),
                parent: None,
                memory: None,
                sensors: Vec::new(),
                knobs: Vec::new(),
            },
        }
    }
}

impl Device for LostGpu {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, _sensor: SensorKind) -> Result<Reading, ReadError> {
        Err(ReadError::Lost)
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Err(ReadError::Lost)
    }
}

impl Actuator for LostGpu {
    fn apply(&mut self, _settings: &Settings) -> Result<AppliedSettings, WriteError> {
        Err(WriteError::Lost)
    }

    fn reset(&mut self, _knob: Knob) -> Result<(), WriteError> {
        Err(WriteError::Lost)
    }
}

impl HostDevice for LostGpu {
    fn index(&self) -> u32 {
        self.index
    }

    fn is_lost(&self) -> bool {
        true
    }

    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError> {
        Err(OpenError::Lost {
            name: self.descriptor.name.clone(),
        })
    }

    fn architecture(&self) -> String {
        "Unknown".to_owned()
    }

    fn processes(&self) -> Result<Vec<u32>, String> {
        Err(ReadError::Lost.to_string())
    }

    fn pci_address(&self) -> Option<String> {
        None
    }

    fn power_is_averaged(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_gpu_keeps_its_index_and_answers_nothing() {
        let mut gpu = LostGpu::new(3);
        assert!(gpu.is_lost() && gpu.index() == 3);
        assert_eq!(gpu.settings(), Err(ReadError::Lost));
        assert_eq!(gpu.reset(Knob::PowerCap), Err(WriteError::Lost));
    }
}
