//! Compares tuned jobs with the true optimum.

use anyhow::Result;
use sweetspot_control::tune::{LoadOutcome, RatioInterval, TunedJob};
use sweetspot_decide::{Objective, Outcome};
use sweetspot_quantity::{Joules, Seconds};

/// One tuned load, and the true outcomes of all settings.
pub struct Case<'a> {
    pub name: &'a str,
    pub objective: Objective,
    pub tuned: &'a TunedJob,
    pub load: &'a LoadOutcome,
    pub outcomes: &'a [Outcome],
    /// The true outcomes of every power cap and every core clock.
    pub caps_and_clocks: &'a [Outcome],
}

impl Case<'_> {
    /// The setting that was chosen.
    fn choice(&self) -> usize {
        self.load.choice.unwrap_or(self.tuned.reference)
    }

    fn reference(&self) -> &Outcome {
        &self.outcomes[self.tuned.reference]
    }

    /// How much worse than the best setting each setting is.
    fn regrets(&self) -> Result<(usize, Vec<f64>)> {
        let values = self
            .outcomes
            .iter()
            .map(|outcome| self.objective.value(outcome, self.reference()))
            .collect::<Result<Vec<f64>, _>>()?;
        let optimum = (0..values.len())
            .min_by(|a, b| values[*a].total_cmp(&values[*b]))
            .unwrap_or(0);
        let regrets = values.iter().map(|value| value / values[optimum] - 1.0);
        Ok((optimum, regrets.collect()))
    }

    /// How much worse than the best power cap or core clock the choice is.
    fn regret_over_both(&self) -> Result<f64> {
        let value = |outcome: &Outcome| self.objective.value(outcome, self.reference());
        let own = value(&self.outcomes[self.choice()])?;
        let all = self.caps_and_clocks.iter().map(value);
        let best = all.collect::<Result<Vec<f64>, _>>()?.into_iter();
        Ok(own / best.fold(own, f64::min) - 1.0)
    }

    /// How much worse the whole tuned job is, exploring included, than the same job at the best setting from start to
    /// end.
    fn regret_of_job(&self, optimum: usize) -> Result<f64> {
        let value = |outcome: &Outcome| self.objective.value(outcome, self.reference());
        let mut own = self.outcomes[optimum].clone();
        own.time = self.tuned.time;
        own.energy = self.tuned.energy;
        Ok(value(&own)? / value(&self.outcomes[optimum])? - 1.0)
    }

    fn print_miss(&self, optimum: usize, regrets: &[f64]) {
        println!(
            "{} {}: chose {}, best {}, regret {:.2} %, {} evaluations, reference {:.4}, found {:?}",
            self.name,
            self.objective,
            self.tuned.labels[self.choice()],
            self.tuned.labels[optimum],
            regrets[self.choice()] * 100.0,
            self.load.evaluations,
            regrets[self.tuned.reference],
            self.load.found_at,
        );
        if verbosity() > 1 {
            self.print_windows(regrets);
        }
    }

    /// Prints the windows of the first search.
    fn print_windows(&self, regrets: &[f64]) {
        let windows = self.tuned.tuned.windows.iter();
        for window in windows.filter(|window| window.begin < Seconds::new(70.0)) {
            let rate = window.items_per_second.unwrap_or(f64::NAN);
            let truth = &self.outcomes[window.point];
            let items = truth.items.unwrap_or(f64::NAN);
            let energy = window.power.get() * items / rate;
            println!(
                "    {:?} {} {:.1} to {:.1}: time {:+.2} %, energy {:+.2} % off, noise {:.2} %, {:.2} %, true regret {:.4}",
                window.purpose,
                self.tuned.labels[window.point],
                window.begin.get(),
                window.end.get(),
                100.0 * (items / rate / truth.time.get() - 1.0),
                100.0 * (energy / joules(truth) - 1.0),
                100.0 * window.noise.time,
                100.0 * window.noise.energy,
                regrets[window.point],
            );
        }
    }
}

/// The level of VERBOSE: 1 lists the misses, 2 also shows their windows, 3 also the regret of
/// every job over caps and clocks.
fn verbosity() -> u32 {
    match std::env::var_os("VERBOSE") {
        None => 0,
        Some(level) if level == "2" => 2,
        Some(level) if level == "3" => 3,
        Some(_) => 1,
    }
}

fn joules(outcome: &Outcome) -> f64 {
    outcome.energy.unwrap_or_default().get()
}

fn contains(interval: RatioInterval, value: f64) -> bool {
    interval.low.get() <= value && value <= interval.high.get()
}

/// The results of many cases.
#[derive(Default)]
pub struct TuneStatistics {
    cases: usize,
    within_1_percent: usize,
    /// How much worse than the best power cap or core clock the choices are.
    regrets_over_both: Vec<f64>,
    /// How much worse the whole jobs are, exploring included, than at the best setting.
    regrets_of_jobs: Vec<f64>,
    /// Seconds from a steady load to the choice.
    search_times: Vec<f64>,
    evaluations: Vec<f64>,
    /// The energy that exploring cost, as a share of the job's energy.
    costs_against_reference: Vec<f64>,
    costs_against_choice: Vec<f64>,
    /// The number of claimed savings, and of intervals that contain the true saving.
    claims: usize,
    energies_right: usize,
    times_right: usize,
    interval_widths: Vec<f64>,
    total_claims: usize,
    totals_right: usize,
    gave_up: usize,
    /// Jobs with a steady load that were tuned again.
    pub false_alarms: usize,
    /// Changes of load that were not noticed.
    pub missed_changes: usize,
    /// Seconds from a change of load to the new choice.
    pub times_after_change: Vec<f64>,
}

impl TuneStatistics {
    pub fn add(&mut self, case: &Case<'_>) -> Result<()> {
        self.cases += 1;
        let (optimum, regrets) = case.regrets()?;
        if regrets[case.choice()] <= 0.01 {
            self.within_1_percent += 1;
        } else if verbosity() > 0 {
            case.print_miss(optimum, &regrets);
        }
        let over_both = case.regret_over_both()?;
        self.regrets_over_both.push(over_both);
        if case.tuned.begins.len() < 2 {
            let of_job = case.regret_of_job(optimum)?;
            self.regrets_of_jobs.push(of_job);
            if of_job > 0.05 && verbosity() > 0 {
                println!(
                    "{} {}: the whole job is {:.1} % worse",
                    case.name,
                    case.objective,
                    100.0 * of_job
                );
                case.print_miss(optimum, &regrets);
            }
        }
        if verbosity() > 2 {
            println!(
                "over caps and clocks: {} {} {} {:.3}",
                case.name,
                case.objective,
                case.tuned.labels[case.choice()],
                over_both * 100.0
            );
        }
        if case.tuned.tuned.gave_up.is_some() {
            self.gave_up += 1;
        }
        if let (Some(since), Some(at)) = (case.load.steady_since, case.load.found_at) {
            self.search_times.push((at - since).get());
        }
        self.evaluations.push(case.load.evaluations as f64);
        let energy = case.tuned.energy.unwrap_or_default();
        self.add_costs(case, energy);
        self.add_claims(case, energy);
        Ok(())
    }

    fn add_costs(&mut self, case: &Case<'_>, energy: Joules) {
        if let Some(cost) = case.load.exploring_cost {
            let share = (cost.energy / energy).get();
            self.costs_against_reference.push(share);
        }
        if let Some(cost) = case.load.exploring_cost_against_choice {
            let share = (cost.energy / energy).get();
            self.costs_against_choice.push(share);
            if share > 0.03 && verbosity() > 0 {
                println!(
                    "{} {}: exploring cost {:.2} %, {} evaluations, chose {}",
                    case.name,
                    case.objective,
                    share * 100.0,
                    case.load.evaluations,
                    case.tuned.labels[case.choice()]
                );
            }
        }
    }

    /// Compares the claimed savings with the true ones.
    fn add_claims(&mut self, case: &Case<'_>, energy: Joules) {
        let Some(claim) = case.load.savings else {
            return;
        };
        let (choice, reference) = (&case.outcomes[case.choice()], case.reference());
        let saved = 1.0 - joules(choice) / joules(reference);
        let lost = (choice.time / reference.time).get() - 1.0;
        self.claims += 1;
        let is_right = contains(claim.energy_saved, saved);
        self.energies_right += usize::from(is_right);
        self.times_right += usize::from(contains(claim.time_lost, lost));
        if !is_right && verbosity() > 0 {
            println!(
                "{} {}: claims {:?}, true {saved:.4}",
                case.name, case.objective, claim.energy_saved
            );
        }
        let width = claim.energy_saved.high - claim.energy_saved.low;
        self.interval_widths.push(width.get());
        if let (Some(total), 1) = (case.load.total_savings, case.tuned.tuned.loads.len()) {
            let true_saved = 1.0 - energy.get() / joules(reference);
            self.total_claims += 1;
            self.totals_right += usize::from(contains(total.energy_saved, true_saved));
        }
    }

    pub fn print(&self, title: &str) {
        let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        println!("{title}: {} jobs", self.cases);
        println!(
            "  within 1 % of the optimum    {:.1} %",
            share(self.within_1_percent, self.cases)
        );
        let within = self.regrets_over_both.iter();
        let within = within.filter(|regret| **regret <= 0.01).count();
        let mean = self.regrets_over_both.iter().sum::<f64>() / self.cases.max(1) as f64;
        println!(
            "  regret over caps and clocks  within 1 % in {:.1} %, mean {:.3} %, {} %",
            share(within, self.cases),
            100.0 * mean,
            spread(&self.regrets_over_both, 100.0)
        );
        if !self.regrets_of_jobs.is_empty() {
            let count = self.regrets_of_jobs.len() as f64;
            println!(
                "  whole job, with exploring    mean {:.3} % worse than the best setting, {} %",
                100.0 * self.regrets_of_jobs.iter().sum::<f64>() / count,
                spread(&self.regrets_of_jobs, 100.0)
            );
        }
        println!(
            "  evaluations                  {}",
            spread(&self.evaluations, 1.0)
        );
        println!(
            "  found after [s]              {}",
            spread(&self.search_times, 1.0)
        );
        println!("  exploring, of the job's energy [%]");
        println!(
            "    against the reference      {}",
            spread(&self.costs_against_reference, 100.0)
        );
        println!(
            "    against the choice         {}",
            spread(&self.costs_against_choice, 100.0)
        );
        // A job with several loads has no claim for the whole job.
        let whole = match self.total_claims {
            0 => String::new(),
            claims => format!("whole job {:.1} %, ", share(self.totals_right, claims)),
        };
        println!(
            "  intervals that contain the true saving: energy {:.1} %, time {:.1} %, {}width {} points",
            share(self.energies_right, self.claims),
            share(self.times_right, self.claims),
            whole,
            spread(&self.interval_widths, 100.0)
        );
        if !self.times_after_change.is_empty() || self.missed_changes > 0 {
            println!(
                "  tuned again after the change [s]  {}; changes not noticed {}",
                spread(&self.times_after_change, 1.0),
                self.missed_changes
            );
        }
        println!(
            "  gave up {}, tuned again without a change of load {}",
            self.gave_up, self.false_alarms
        );
    }
}

/// The median, the 95th percentile and the maximum.
fn spread(values: &[f64], scale: f64) -> String {
    let mut sorted: Vec<f64> = values.iter().map(|value| value * scale).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (share * (sorted.len().max(1) - 1) as f64).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    };
    format!(
        "median {:.2}, 95 % {:.2}, max {:.2}",
        at(0.5),
        at(0.95),
        at(1.0)
    )
}
