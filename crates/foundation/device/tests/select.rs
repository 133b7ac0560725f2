//! Selection of devices by the names that users and CUDA give them.

use sweetspot_device::{
    Actuator, AppliedSettings, Descriptor, Device, DeviceId, DeviceKind, HostDevice, Knob,
    MigSlices, OpenError, PowerLimits, ReadError, Reading, Selector, SensorKind, Settings,
    WriteError, select_devices,
};

/// A device without hardware.
#[derive(Clone)]
struct FakeDevice {
    index: u32,
    descriptor: Descriptor,
}

impl Device for FakeDevice {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        Err(ReadError::Unsupported(sensor))
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        Err(ReadError::Limits("none".to_owned()))
    }
}

impl Actuator for FakeDevice {
    fn apply(&mut self, _: &Settings) -> Result<AppliedSettings, WriteError> {
        Err(WriteError::Unsupported(Knob::PowerCap))
    }

    fn reset(&mut self, knob: Knob) -> Result<(), WriteError> {
        Err(WriteError::Unsupported(knob))
    }
}

impl HostDevice for FakeDevice {
    fn index(&self) -> u32 {
        self.index
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn reopen(&self) -> Result<Box<dyn HostDevice>, OpenError> {
        Ok(Box::new(self.clone()))
    }

    fn architecture(&self) -> String {
        "Fake".to_owned()
    }

    fn processes(&self) -> Result<Vec<u32>, String> {
        Ok(Vec::new())
    }

    fn pci_address(&self) -> Option<String> {
        None
    }

    fn power_is_averaged(&self) -> bool {
        false
    }
}

fn device(index: u32, id: &str, parent: Option<&str>) -> Box<dyn HostDevice> {
    Box::new(FakeDevice {
        index,
        descriptor: Descriptor {
            id: DeviceId::new(id),
            name: "fake".to_owned(),
            kind: DeviceKind::Gpu,
            backend: "fake".to_owned(),
            parent: parent.map(DeviceId::new),
            memory: None,
            sensors: Vec::new(),
            knobs: Vec::new(),
        },
    })
}

/// Two GPUs, the second with a slice.
fn machine() -> Vec<Box<dyn HostDevice>> {
    vec![
        device(0, "GPU-aaaa", None),
        device(1, "GPU-bbbb", None),
        device(1, "MIG-cccc", Some("GPU-bbbb")),
    ]
}

fn select_ids(selector: Selector<'_>, slices: MigSlices) -> Result<Vec<String>, String> {
    let selected =
        select_devices(machine(), selector, slices).map_err(|error| error.to_string())?;
    let ids = selected
        .iter()
        .map(|device| device.descriptor().id.to_string());
    Ok(ids.collect())
}

fn flag(list: &str) -> Result<Vec<String>, String> {
    select_ids(Selector::Flag(list), MigSlices::Exclude)
}

#[test]
fn devices_are_selected_by_index_uuid_or_beginning_of_uuid() {
    assert_eq!(flag("1,0").unwrap(), ["GPU-bbbb", "GPU-aaaa"]);
    assert_eq!(flag(" GPU-b , 0").unwrap(), ["GPU-bbbb", "GPU-aaaa"]);
    for (list, problem) in [
        ("2", "there is no GPU `2`"),
        ("", "there is no GPU ``"),
        ("GPU", "there is no GPU `GPU`"),
        ("0,GPU-aaaa", "`GPU-aaaa` is given twice"),
        ("MIG-cccc", "is a MIG slice"),
    ] {
        let message = flag(list).unwrap_err();
        assert!(message.contains(problem), "{message}");
        assert!(
            message.contains("the GPUs here are 0 (GPU-aaaa)"),
            "{message}"
        );
    }
}

#[test]
fn slices_are_selected_only_where_allowed() {
    let all = Selector::All;
    assert_eq!(select_ids(all, MigSlices::Exclude).unwrap().len(), 2);
    assert_eq!(select_ids(all, MigSlices::Include).unwrap().len(), 3);
    let slice = Selector::Flag("MIG-cccc");
    assert_eq!(select_ids(slice, MigSlices::Include).unwrap(), ["MIG-cccc"]);
}

#[test]
fn cuda_ends_its_list_at_the_first_unknown_name() {
    let cuda = |list| select_ids(Selector::CudaVisibleDevices(list), MigSlices::Exclude);
    assert_eq!(cuda("1,7,0").unwrap(), ["GPU-bbbb"]);
    assert!(cuda("7,1").is_err());
}

#[test]
fn the_flag_overrides_cuda_visible_devices() {
    assert_eq!(Selector::new(Some("1"), Some("0")), Selector::Flag("1"));
    assert_eq!(
        Selector::new(None, Some("0")),
        Selector::CudaVisibleDevices("0")
    );
    assert_eq!(Selector::new(Some("all"), Some("0")), Selector::All);
    assert_eq!(Selector::new(None, None), Selector::All);
}
