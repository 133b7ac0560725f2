//! Divides runs into jobs, and jobs into arrays.

/// Runs that one job makes, one after the other.
pub type Block = Vec<u64>;

/// Divides runs into blocks, and blocks into arrays of at most `array_size`. The order stays, so that interleaved runs are
/// still interleaved: Slurm starts the tasks of an array in their order.
pub fn divide(runs: &[u64], runs_per_job: usize, array_size: usize) -> Vec<Vec<Block>> {
    let blocks: Vec<Block> = runs
        .chunks(runs_per_job.max(1))
        .map(<[u64]>::to_vec)
        .collect();
    blocks
        .chunks(array_size.max(1))
        .map(<[Block]>::to_vec)
        .collect()
}

/// The option for sbatch that makes an array of this many jobs, of which at most `max_jobs` run at the same time.
pub fn array_option(jobs: usize, max_jobs: Option<usize>) -> String {
    let last = jobs.saturating_sub(1);
    match max_jobs {
        Some(max) => format!("--array=0-{last}%{max}"),
        None => format!("--array=0-{last}"),
    }
}

/// The node for a run when repeats are spread: each configuration visits the nodes in turn, and each starts at another
/// node, so that all nodes have the same share of all configurations.
pub fn spread_node(configuration: usize, repeat: u32, nodes: usize) -> usize {
    (configuration + repeat as usize) % nodes.max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_run_is_in_one_job_and_in_order(count in 0u64..3000, block in 1usize..50, size in 1usize..1200) {
            let runs: Vec<u64> = (0..count).map(|run| run * 7 % 3001).collect();
            let arrays = divide(&runs, block, size);
            prop_assert!(arrays.iter().all(|array| !array.is_empty() && array.len() <= size));
            let all: Vec<u64> = arrays.iter().flatten().flatten().copied().collect();
            prop_assert_eq!(all, runs);
            // Only the last job may have fewer runs.
            let blocks: Vec<&Block> = arrays.iter().flatten().collect();
            let full = blocks.iter().rev().skip(1).all(|one| one.len() == block);
            prop_assert!(full);
        }

        #[test]
        fn spread_repeats_are_on_different_nodes(configurations in 1usize..40, nodes in 1usize..9) {
            let mut share = vec![0; nodes];
            for configuration in 0..configurations {
                let mut used: Vec<usize> = (0..nodes as u32).map(|repeat| spread_node(configuration, repeat, nodes)).collect();
                used.iter().for_each(|node| share[*node] += 1);
                used.sort_unstable();
                used.dedup();
                prop_assert_eq!(used.len(), nodes);
            }
            prop_assert!(share.iter().all(|runs| *runs == configurations));
        }
    }

    #[test]
    fn an_array_is_limited_by_its_option() {
        assert_eq!(array_option(1, None), "--array=0-0");
        assert_eq!(array_option(64, Some(4)), "--array=0-63%4");
    }
}
