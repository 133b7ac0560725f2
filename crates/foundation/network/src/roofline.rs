//! The least time and energy that a GPU's ceilings allow: no layer computes faster than the cores or moves
//! data faster than the memory (S. Williams et al.: Roofline, 2009; J. Choi et al.: A roofline model of
//! energy, 2013).

use sweetspot_quantity::{BytesPerSecond, FlopsPerSecond, Joules, Seconds, Watts};

use crate::{Cost, Counts};

/// What a GPU can do at most, at its default clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuCeilings {
    /// Multiply-accumulates in the network's precision.
    pub matrix: FlopsPerSecond,
    /// Everything else.
    pub vector: FlopsPerSecond,
    /// Memory.
    pub bandwidth: BytesPerSecond,
    /// Drawn while a program holds it, whatever it does.
    pub base: Watts,
    /// Drawn more while the cores work.
    pub core: Watts,
    /// Drawn more while the memory works.
    pub memory: Watts,
}

/// What holds a layer back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The cores.
    Compute,
    /// The memory.
    Memory,
}

/// The least that something can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Time.
    pub time: Seconds,
    /// Energy.
    pub energy: Joules,
    /// Why not less.
    pub limit: Limit,
}

/// The bound of each layer, in order, and of all of them, one after the other.
pub fn roofline(cost: &Cost<'_>, gpu: &GpuCeilings) -> (Vec<Bound>, Bound) {
    let bounds: Vec<Bound> = cost
        .layers
        .iter()
        .map(|layer| bound(cost, &layer.both(), gpu))
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
