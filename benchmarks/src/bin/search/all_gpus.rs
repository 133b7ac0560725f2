//! Searches the caps and the clocks of every GPU profile with the networks of its study, and compares the regret that
//! `guided` expects with the actual one.

use anyhow::{Context, Result};
use sweetspot_decide::search::{
    Evaluation, KnobKind, Proposal, SearchOptions, SearchSpace, StrategyName,
};
use sweetspot_decide::{Objective, Outcome};
use sweetspot_device::Settings;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{GpuProfile, gpus, workloads};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::JobSequence;

/// The relative noise of a run, as in a simulated sweep; the search does not know it.
const NOISE: f64 = 0.003;
const CAP_STEP: f64 = 5.0;
const OBJECTIVES: [Objective; 3] = [Objective::Energy, Objective::Edp, Objective::Eds(2.0)];

/// The result of one search.
struct SearchResult {
    regret: f64,
    expected_regret: f64,
    evaluations: usize,
}

#[derive(Default)]
struct SearchResults(Vec<SearchResult>);

/// Searches every GPU profile, and prints a line for each GPU, knob and objective.
pub fn search_all_gpus(seeds: u64) -> Result<()> {
    let mut all = SearchResults::default();
    for (name, profile) in gpus()? {
        let mut jobs = Vec::new();
        for workload in workloads()? {
            let study = workload.name.split('@').nth(1);
            if study == profile.study.as_deref() {
                let gpu = (name.clone(), profile.clone());
                jobs.push(JobSequence::from_profiles(
                    gpu,
                    vec![workload],
                    Seconds::new(600.0),
                )?);
            }
        }
        for (knob, settings) in [
            (KnobKind::PowerCap, caps(&profile)),
            (KnobKind::CoreClock, clocks(&profile)),
        ] {
            let curves: Result<Vec<Vec<Outcome>>> = jobs
                .iter()
                .map(|job| {
                    settings
                        .iter()
                        .map(|(_, own)| outcome_at(job, *own))
                        .collect()
                })
                .collect();
            let values: Vec<f64> = settings.iter().map(|(value, _)| *value).collect();
            let space = SearchSpace::of_one_knob(knob, &values)?;
            let curves = curves?;
            for objective in OBJECTIVES {
                let mut own = SearchResults::default();
                for (number, curve) in curves.iter().enumerate() {
                    for seed in 0..seeds {
                        let noise = Seed::new(seed).label(&name).number(number as u64);
                        own.search(&space, curve, objective, seed, noise)?;
                    }
                }
                own.print(&format!("{name} {knob:?} {objective}"));
                all.0.extend(own.0);
            }
        }
    }
    all.print("all GPUs");
    Ok(())
}

fn caps(profile: &GpuProfile) -> Vec<(f64, Settings)> {
    let (low, high) = (profile.cap.min.get(), profile.cap.max.get());
    let count = ((high - low) / CAP_STEP + 1e-9) as usize;
    let caps = (0..=count).map(|step| low + CAP_STEP * step as f64);
    let settings = |cap| Settings {
        power_cap: Some(Watts::new(cap)),
        ..Settings::default()
    };
    caps.map(|cap| (cap, settings(cap))).collect()
}

fn clocks(profile: &GpuProfile) -> Vec<(f64, Settings)> {
    let clocks = profile.core.levels().into_iter();
    let clocks = clocks.filter(|clock| *clock <= profile.core.default);
    let settings = |clock| Settings {
        core_clock: Some(clock),
        ..Settings::default()
    };
    clocks.map(|clock| (clock.get(), settings(clock))).collect()
}

fn outcome_at(job: &JobSequence, settings: Settings) -> Result<Outcome> {
    let (time, energy, items) = job.outcome_at(0, settings)?;
    let mut outcome = Outcome::new(time, energy);
    outcome.items = Some(items);
    Ok(outcome)
}

impl SearchResults {
    fn search(
        &mut self,
        space: &SearchSpace,
        curve: &[Outcome],
        objective: Objective,
        seed: u64,
        noise: Seed,
    ) -> Result<()> {
        let reference = &curve[space.reference()];
        let (values, best) = super::objective_values(curve, reference, objective)?;
        let options = SearchOptions {
            seed,
            ..SearchOptions::default()
        };
        let mut strategy = StrategyName::Guided.start(space.clone(), &objective.into(), options);
        let mut count = 0;
        while let Proposal::Evaluate(place) = strategy.ask() {
            let draw = noise.number(place as u64).number(count);
            let factor = |label: &str| 1.0 + NOISE * draw.label(label).normal();
            let mut outcome = curve[place].clone();
            outcome.time = outcome.time * factor("work");
            let power = factor("work") * factor("switching");
            outcome.energy = outcome.energy.map(|energy| energy * power);
            strategy.tell(place, Evaluation::measured(outcome));
            count += 1;
        }
        let answer = strategy.recommend().context("no recommendation")?;
        self.0.push(SearchResult {
            regret: values[answer.point] / best - 1.0,
            expected_regret: answer.expected_regret.unwrap_or(0.0),
            evaluations: count as usize,
        });
        Ok(())
    }

    fn print(&self, label: &str) {
        let count = self.0.len();
        let mean = |of: &dyn Fn(&SearchResult) -> f64| {
            100.0 * self.0.iter().map(of).sum::<f64>() / count as f64
        };
        let mut evaluations: Vec<usize> = self.0.iter().map(|result| result.evaluations).collect();
        evaluations.sort_unstable();
        println!(
            "{label:44} {count:4} searches: evaluations median {} max {}, within 1 % {:5.1} %, mean regret {:.2} % (expected {:.2} %), max {:.2} %",
            evaluations[count / 2],
            evaluations[count - 1],
            mean(&|result| f64::from(u8::from(result.regret <= 0.01))),
            mean(&|result| result.regret),
            mean(&|result| result.expected_regret),
            100.0
                * self
                    .0
                    .iter()
                    .map(|result| result.regret)
                    .fold(0.0, f64::max),
        );
    }
}
