//! NVML functions for performance monitoring (GPM), which tell how much of a GPU's units is used between two samples.

use std::ffi::CStr;
use std::ptr::null_mut;

use nvml::{
    nvmlDevice_t, nvmlGpmMetric_t__bindgen_ty_1, nvmlGpmMetricsGet_t, nvmlGpmSample_t,
    nvmlGpmSupport_t,
};
use nvml_wrapper_sys::bindings as nvml;
use sweetspot_sim::UnitUseFault;
use sweetspot_sim_host::LimitTimes;

use crate::support::*;

/// A client's sample. It is zero until the client fills it.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    /// The handle of the GPU that the sample was taken of; 0 if it is empty.
    device: usize,
    /// The monotonic time of the sample, in nanoseconds.
    at: u64,
    times: LimitTimes,
    /// The simulated fault of the GPU's monitors.
    fault: Option<UnitUseFault>,
}

/// Reads a client's sample.
fn sample(handle: nvmlGpmSample_t) -> Result<Sample, u32> {
    if handle.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: by NVML's contract the handle comes from `nvmlGpmSampleAlloc` and is not freed yet.
    Ok(unsafe { handle.cast::<Sample>().read() })
}

/// The percentage that a metric has between two samples. The model of a workload knows time limited by the cores and
/// time limited by the memory, so these are the use of the tensor units and of the memory's bandwidth.
fn percentage(metric: u32, earlier: &Sample, later: &Sample) -> Result<f64, u32> {
    match later.fault {
        Some(UnitUseFault::NoData) => return Err(NO_DATA),
        Some(UnitUseFault::NotANumber) => return Ok(f64::NAN),
        _ => {}
    }
    let seconds = later.at.saturating_sub(earlier.at) as f64 * 1e-9;
    if seconds <= 0.0 {
        return Err(INVALID_ARGUMENT);
    }
    let core = (later.times.core - earlier.times.core) / seconds;
    let memory = (later.times.memory - earlier.times.memory) / seconds;
    let share = match metric {
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL
        | nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => core + memory,
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL => core,
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => memory,
        _ => return Err(NOT_SUPPORTED),
    };
    Ok(100.0 * share.clamp(0.0, 1.0))
}

/// The name of a metric in NVML.
fn metric_name(metric: u32) -> Option<&'static CStr> {
    Some(match metric {
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL => c"GRAPHICS_UTIL",
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL => c"SM_UTIL",
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL => c"ANY_TENSOR_UTIL",
        nvml::nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL => c"DRAM_BW_UTIL",
        _ => return None,
    })
}

/// Describes a metric; a metric without a name has null pointers.
fn metric_info(metric: u32) -> nvmlGpmMetric_t__bindgen_ty_1 {
    let text = |text: &'static CStr| text.as_ptr().cast_mut();
    let name = metric_name(metric).map_or(null_mut(), text);
    nvmlGpmMetric_t__bindgen_ty_1 {
        shortName: name,
        longName: name,
        unit: text(c"%"),
    }
}

exports! {
    fn nvmlGpmQueryDeviceSupport(device: nvmlDevice_t, support: *mut nvmlGpmSupport_t) {
        let is_supported = gpu(device)?.profile().unit_use_fault() != Some(UnitUseFault::Unsupported);
        if support.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the pointer is not null, and the client has filled in the version.
        let version = unsafe { (*support).version };
        if version != nvml::NVML_GPM_SUPPORT_VERSION {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        // SAFETY: the pointer is not null.
        unsafe { (*support).isSupportedDevice = u32::from(is_supported) };
        Ok(())
    }
    fn nvmlGpmSampleAlloc(target: *mut nvmlGpmSample_t) {
        host()?;
        if target.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        write_value(target, Box::into_raw(Box::new(Sample::default())).cast())
    }
    fn nvmlGpmSampleFree(handle: nvmlGpmSample_t) {
        host()?;
        if handle.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: by NVML's contract the handle comes from `nvmlGpmSampleAlloc` and is freed once.
        drop(unsafe { Box::from_raw(handle.cast::<Sample>()) });
        Ok(())
    }
    fn nvmlGpmSampleGet(device: nvmlDevice_t, handle: nvmlGpmSample_t) {
        let fault = gpu(device)?.profile().unit_use_fault();
        match fault {
            Some(UnitUseFault::Unsupported) => return Err(NOT_SUPPORTED),
            Some(UnitUseFault::InUse) => return Err(IN_USE),
            Some(UnitUseFault::NoData | UnitUseFault::NotANumber) | None => {}
        }
        sample(handle)?;
        let (at, times) = read_gpu(device, |live| (live.now(), live.limit_times()))?;
        write_value(handle.cast::<Sample>(), Sample { device: device.addr(), at, times, fault })
    }
    fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) {
        host()?;
        if request.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // The number of metrics differs between versions of NVML, so only as many as the client asks for are accessed.
        // SAFETY: the pointer is not null, and the client has filled in everything but the values.
        let (version, count, first, second) =
            unsafe { ((*request).version, (*request).numMetrics, (*request).sample1, (*request).sample2) };
        if version != nvml::NVML_GPM_METRICS_GET_VERSION {
            return Err(ARGUMENT_VERSION_MISMATCH);
        }
        let (earlier, later) = (sample(first)?, sample(second)?);
        if earlier.device == 0 || earlier.device != later.device || later.at <= earlier.at {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: the pointer is not null; this takes an address without a read.
        let metrics = unsafe { (&raw mut (*request).metrics).cast::<nvml::nvmlGpmMetric_t>() };
        for index in 0..count as usize {
            // SAFETY: by NVML's contract there are `numMetrics` metrics with their ids filled in.
            let metric = unsafe { &mut *metrics.add(index) };
            metric.metricInfo = metric_info(metric.metricId);
            match percentage(metric.metricId, &earlier, &later) {
                Ok(percent) => (metric.value, metric.nvmlReturn) = (percent, SUCCESS),
                Err(code) => metric.nvmlReturn = code,
            }
        }
        Ok(())
    }
}
