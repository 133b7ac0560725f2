//! Lower bounds of time and energy from a GPU's peak rates: no layer computes faster than the cores or moves
//! data faster than the memory (S. Williams et al.: Roofline, 2009; J. Choi et al.: A roofline model of energy,
//! 2013).

use sweetspot_quantity::{BytesPerSecond, FlopsPerSecond, Joules, Seconds, Watts};

use crate::{Cost, Counts};

/// The peak rates and powers of a GPU at its default clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuCeilings {
    /// The peak rate of matrix operations in the network's precision.
    pub matrix: FlopsPerSecond,
    /// The peak rate of all other operations.
    pub vector: FlopsPerSecond,
    /// The peak memory bandwidth.
    pub bandwidth: BytesPerSecond,
    /// The power while a program has the GPU open, even without work.
    pub base: Watts,
    /// The additional power while the cores compute.
    pub core: Watts,
    /// The additional power while the memory is read or written.
    pub memory: Watts,
}

/// The resource that limits a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The rate at which the cores compute.
    Compute,
    /// The memory bandwidth.
    Memory,
}

/// A lower bound of time and energy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The shortest possible time.
    pub time: Seconds,
    /// The smallest possible energy.
    pub energy: Joules,
    /// The resource that determines the time.
    pub limit: Limit,
}

/// The lower bound for each layer, and for all layers executed one after another.
pub fn roofline(cost: &Cost<'_>, gpu: &GpuCeilings) -> (Vec<Bound>, Bound) {
    let bounds: Vec<Bound> = cost
        .layers
        .iter()
        .map(|layer| bound(cost, &layer.both_passes(), gpu))
        .collect();
    let in_memory: Seconds = bounds
        .iter()
        .filter(|bound| bound.limit == Limit::Memory)
        .map(|bound| bound.time)
        .sum();
    let time: Seconds = bounds.iter().map(|bound| bound.time).sum();
    let total = Bound {
        time,
        energy: bounds.iter().map(|bound| bound.energy).sum(),
        limit: match in_memory > time * 0.5 {
            true => Limit::Memory,
            false => Limit::Compute,
        },
    };
    (bounds, total)
}

/// The lower bound for one set of counts.
fn bound(cost: &Cost<'_>, counts: &Counts, gpu: &GpuCeilings) -> Bound {
    let operations = &counts.operations;
    let compute = Seconds::new(
        2.0 * operations.macs as f64 / gpu.matrix.get()
            + operations.others() as f64 / gpu.vector.get(),
    );
    let memory = Seconds::new(cost.moved_bytes(counts) as f64 / gpu.bandwidth.get());
    let (time, limit) = match memory > compute {
        true => (memory, Limit::Memory),
        false => (compute, Limit::Compute),
    };
    Bound {
        time,
        energy: gpu.base * time + gpu.core * compute + gpu.memory * memory,
        limit,
    }
}
