//! The power samples of a device, within a bounded memory: fine ones of the last minutes, means of the last hours.

use std::collections::VecDeque;

use sweetspot_device::Moment;

/// The most fine samples of a device: ten minutes at 50 per second.
const MAX_FINE: usize = 30_000;
/// The most means of a device: six hours.
const MAX_MEANS: usize = 21_600;
/// The time over which samples are averaged, in seconds.
const MEAN_OVER: f64 = 1.0;

/// A power sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The time of the sample, or the end of the time over which it is a mean.
    pub at: Moment,
    /// The power in watts.
    pub power_w: f32,
    /// The time over which the sample is a mean, in seconds; 0 for a sample as the driver gives it.
    pub mean_over_s: f32,
}

/// The power samples of one device.
#[derive(Debug, Default)]
pub struct Samples {
    fine: VecDeque<(Moment, f32)>,
    means: VecDeque<(Moment, f32)>,
    /// The begin, the sum and the number of the samples that are not in a mean yet.
    open: Option<(Moment, f64, u32)>,
}

impl Samples {
    /// Adds a sample; one that is not newer than the last is ignored.
    pub fn push(&mut self, at: Moment, power_w: f64) {
        if !power_w.is_finite() || self.newest().is_some_and(|newest| at <= newest) {
            return;
        }
        if self.fine.len() == MAX_FINE {
            self.fine.pop_front();
        }
        self.fine.push_back((at, power_w as f32));
        let (begin, sum, count) = self.open.unwrap_or((at, 0.0, 0));
        self.open = Some((begin, sum + power_w, count + 1));
        if (at - begin).get() >= MEAN_OVER {
            if self.means.len() == MAX_MEANS {
                self.means.pop_front();
            }
            let mean = (sum + power_w) / f64::from(count + 1);
            self.means.push_back((at, mean as f32));
            self.open = None;
        }
    }

    /// The time of the newest sample.
    pub fn newest(&self) -> Option<Moment> {
        self.fine.back().map(|(at, _)| *at)
    }

    /// At most so many samples between two moments, oldest first: means where the fine ones are no longer stored.
    pub fn page(&self, begin: Moment, end: Moment, most: usize) -> Vec<Sample> {
        let fine_since = self.fine.front().map_or(end, |(at, _)| *at);
        let is_cut = self.fine.len() == MAX_FINE && fine_since > begin;
        let means = match is_cut {
            true => since(&self.means, begin),
            false => self.means.len(),
        };
        let means = self.means.iter().skip(means);
        let means = means.take_while(|(at, _)| *at < fine_since && *at <= end);
        let fine = self.fine.iter().skip(since(&self.fine, begin));
        let fine = fine.take_while(|(at, _)| *at <= end);
        let sample = |mean_over_s: f32| {
            move |(at, power_w): &(Moment, f32)| Sample {
                at: *at,
                power_w: *power_w,
                mean_over_s,
            }
        };
        let all = means
            .map(sample(MEAN_OVER as f32))
            .chain(fine.map(sample(0.0)));
        all.take(most).collect()
    }

    /// The means of the last seconds, oldest first, for the figure of the live page.
    pub fn recent_means(&self, count: usize) -> Vec<(Moment, f32)> {
        let skipped = self.means.len().saturating_sub(count);
        self.means.iter().skip(skipped).copied().collect()
    }
}

/// The place of the first value that is not before a moment.
fn since(values: &VecDeque<(Moment, f32)>, begin: Moment) -> usize {
    values.partition_point(|(at, _)| *at < begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    #[test]
    fn old_samples_become_means_and_memory_is_bounded() {
        let mut samples = Samples::default();
        for number in 0..60_000_u32 {
            samples.push(at(f64::from(number) * 0.02), f64::from(number % 100));
        }
        assert_eq!(samples.fine.len(), MAX_FINE);
        let all = samples.page(at(0.0), at(1300.0), usize::MAX);
        assert!(all.windows(2).all(|pair| pair[0].at < pair[1].at));
        let means: Vec<_> = all.iter().filter(|one| one.mean_over_s > 0.0).collect();
        assert!((560..=600).contains(&means.len()), "{}", means.len());
        assert!(means.iter().all(|one| (20.0..80.0).contains(&one.power_w)));
        // A time that is fine alone, and samples that are old, impossible or there already.
        let fine = samples.page(at(1000.0), at(1010.0), usize::MAX);
        assert!(fine.iter().all(|one| one.mean_over_s == 0.0) && fine.len() > 495);
        // Pages that follow each other are the whole.
        let mut paged = Vec::new();
        let mut next = at(0.0);
        loop {
            let page = samples.page(next, at(1300.0), 777);
            let Some(last) = page.last() else { break };
            assert!(page.len() <= 777);
            next = Moment::from_nanos(last.at.nanos() + 1);
            paged.extend(page);
        }
        assert_eq!(paged, all);
        let newest = samples.newest();
        samples.push(at(3.0), 1.0);
        samples.push(at(5000.0), f64::NAN);
        assert_eq!(samples.newest(), newest);
    }
}
