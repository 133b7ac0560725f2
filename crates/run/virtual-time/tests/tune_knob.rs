//! `tune --knob auto` in virtual time: the knob that is chosen, judged by the same job without noise at every power cap
//! and every core clock.

use sweetspot_control::limit::{CapEffect, Limit};
use sweetspot_control::tune::{
    GiveUpReason, SettingsScope, TuneKnob, TuneNotice, TuneRequest, TunedJob,
};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Objective, Outcome};
use sweetspot_device::Settings;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{Fault, Knob, UnitUseFault, Variant, Workload, find_gpu, find_workload};
use sweetspot_virtual_time::{JobSequence, tune};

const JOB: Seconds = Seconds::new(600.0);

fn request(knob: TuneKnob, objective: Objective) -> TuneRequest {
    TuneRequest {
        knob,
        settings: SettingsScope::default(),
        criteria: objective.into(),
        strategy: StrategyName::Guided,
        budget: Ratio::new(0.05),
        retune_every: None,
        seed: 1,
    }
}

/// A workload whose kernels wait for the memory or for the cores most of the time.
fn workload(gpu: &str, core: f64, memory: f64, switching: f64) -> Workload {
    let mut workload =
        find_workload("resnet50", Some("power_capping_2022"), &Variant::default()).unwrap();
    workload.profile.memory.per_item = workload.profile.memory.per_item * 0.1;
    let on = &mut workload.profile.on[0];
    on.gpu = find_gpu(gpu).unwrap().0;
    on.host = Seconds::new(0.02e-3);
    on.core = Seconds::new(core * 1e-3);
    on.memory = Seconds::new(memory * 1e-3);
    on.switching = Ratio::new(switching);
    workload
}

/// The workload with so little power for the memory that no power cap of a V100 binds.
fn quiet(mut workload: Workload) -> Workload {
    workload.profile.on[0].memory_activity = Ratio::new(0.3);
    workload
}

fn job(gpu: &str, faults: &[Fault], workloads: Vec<Workload>) -> JobSequence {
    let (name, mut profile) = find_gpu(gpu).unwrap();
    profile.faults.extend(faults.iter().cloned());
    let time = JOB * (1.0 / workloads.len() as f64);
    JobSequence::from_profiles((name, profile), workloads, time).unwrap()
}

fn auto(job: &JobSequence, objective: Objective) -> TunedJob {
    let request = request(TuneKnob::Auto, objective);
    tune(&request, job, None, &mut |_, _| {}).unwrap()
}

/// The energy of the first workload at a setting.
fn energy(job: &JobSequence, settings: Settings) -> f64 {
    job.outcome_at(0, settings).unwrap().1.get()
}

/// By how much more energy than the best cap or clock a choice needs.
fn regret(job: &JobSequence, tuned: &TunedJob) -> f64 {
    let all = tuned.settings.iter().map(|settings| energy(job, *settings));
    let best = all.fold(f64::INFINITY, f64::min);
    let choice = tuned.choice().unwrap_or(tuned.reference);
    energy(job, tuned.settings[choice]) / best - 1.0
}

#[test]
fn the_knob_that_works_is_tuned_close_to_the_best_cap_or_clock() {
    // On an H200 the counters of units tell the loads apart, on the older GPUs their power does.
    // The caps of the H200 are 15 W apart here, and its curve is steep below the best one.
    let table = [
        (
            "nvidia_h200",
            workload("h200", 0.2, 0.8, 0.7),
            Knob::CoreClock,
            0.02,
        ),
        (
            "v100",
            quiet(workload("v100", 0.2, 0.8, 0.3)),
            Knob::CoreClock,
            0.02,
        ),
        (
            "nvidia_h200",
            workload("h200", 0.95, 0.05, 1.3),
            Knob::PowerCap,
            0.04,
        ),
        (
            "v100",
            workload("v100", 0.95, 0.05, 1.2),
            Knob::PowerCap,
            0.02,
        ),
        (
            "quadro_rtx_6000",
            workload("quadro_rtx_6000", 0.95, 0.05, 1.2),
            Knob::PowerCap,
            0.02,
        ),
    ];
    for (gpu, workload, knob, most) in table {
        let job = job(gpu, &[], vec![workload]);
        let tuned = auto(&job, Objective::Energy);
        let load = &tuned.tuned.loads[0];
        let name = format!("{gpu} {knob}: {:?}", tuned.tuned.notices);
        assert_eq!(load.knob, Some(knob), "{name}");
        assert!(tuned.is_settled(), "{name}");
        let regret = regret(&job, &tuned);
        assert!(regret < most, "{name}: {regret}");
        let choice = tuned.settings[tuned.choice().unwrap()];
        assert_eq!(
            choice.core_clock.is_some(),
            knob == Knob::CoreClock,
            "{name}"
        );
        if knob == Knob::CoreClock {
            // No power cap is as good as the clock that was chosen.
            let caps = tuned.settings.iter();
            let caps = caps.filter(|settings| settings.core_clock.is_none());
            let best = caps.map(|settings| energy(&job, *settings));
            let best = best.fold(f64::INFINITY, f64::min);
            assert!(energy(&job, choice) < best, "{name}");
        }
    }
}

#[test]
fn what_limits_the_load_is_that_of_the_simulated_gpu() {
    let memory = job("nvidia_h200", &[], vec![workload("h200", 0.1, 0.9, 0.7)]);
    let tuned = auto(&memory, Objective::Energy);
    let limit = tuned.tuned.loads[0].limit.unwrap();
    assert_eq!(
        (limit.limit, limit.cap),
        (Limit::Memory, CapEffect::DoesNotBind)
    );
    let used = limit.evidence.units.memory.unwrap() / limit.evidence.units.cores.unwrap();
    assert!((used.get() - 0.9).abs() < 0.01, "{limit}");
    let capped = job("nvidia_h200", &[], vec![workload("h200", 0.95, 0.05, 1.3)]);
    let tuned = auto(&capped, Objective::Energy);
    let limit = tuned.tuned.loads[0].limit.unwrap();
    assert_eq!(
        (limit.limit, limit.cap),
        (Limit::PowerCap, CapEffect::Binds)
    );
}

#[test]
fn each_load_has_the_knob_that_works_for_it() {
    let workloads = vec![
        workload("h200", 0.95, 0.05, 1.3),
        workload("h200", 0.2, 0.8, 0.7),
    ];
    let tuned = auto(&job("nvidia_h200", &[], workloads), Objective::Energy);
    let knobs: Vec<Option<Knob>> = tuned.tuned.loads.iter().map(|load| load.knob).collect();
    assert_eq!(
        knobs,
        [Some(Knob::PowerCap), Some(Knob::CoreClock)],
        "{:?}",
        tuned.tuned.notices
    );
    let last = tuned.settings[tuned.choice().unwrap()];
    assert!(last.core_clock.is_some());
    assert_eq!(last.power_cap, tuned.settings[tuned.reference].power_cap);
}

#[test]
fn spoilt_counters_lead_to_no_wrong_claim() {
    let faults = [
        Fault::no_throttle_times(),
        Fault::throttle_times_reset(Seconds::new(2.5)),
        Fault::unit_use(UnitUseFault::Unsupported),
        Fault::unit_use(UnitUseFault::InUse),
        Fault::unit_use(UnitUseFault::NoData),
        Fault::unit_use(UnitUseFault::NotANumber),
    ];
    // The first load waits for the memory, the second one is at the cap.
    for (core, switching, truth) in [(0.2, 0.7, Limit::Memory), (0.95, 1.3, Limit::PowerCap)] {
        for fault in &faults {
            let load = workload("h200", core, 1.0 - core, switching);
            let job = job("nvidia_h200", std::slice::from_ref(fault), vec![load]);
            let tuned = auto(&job, Objective::Energy);
            let limit = tuned.tuned.loads[0].limit.unwrap();
            let name = format!("{fault:?}, {truth:?}: {limit}");
            assert!([truth, Limit::Unknown].contains(&limit.limit), "{name}");
            let binds = truth == Limit::PowerCap;
            let wrong = if binds {
                CapEffect::DoesNotBind
            } else {
                CapEffect::Binds
            };
            assert_ne!(limit.cap, wrong, "{name}");
            assert!(tuned.is_settled(), "{name}: {:?}", tuned.tuned.notices);
            // Without the counters another knob may be tuned, but much is saved all the same.
            let saved = regret(&job, &tuned);
            assert!(saved < 0.1, "{name}: {saved}");
        }
    }
}

#[test]
fn a_knob_that_may_not_be_changed_is_replaced_by_the_other() {
    let resnet = || find_workload("alexnet", Some("power_capping_2022"), &Variant::default());
    let clocks = job(
        "v100",
        &[Fault::write_denied(Knob::CoreClock)],
        vec![resnet().unwrap()],
    );
    let tuned = auto(&clocks, Objective::Energy);
    let replaced = |(_, notice): &(Seconds, TuneNotice)| matches!(notice, TuneNotice::OtherKnob { rejected, tuned, .. } if (*rejected, *tuned) == (Knob::CoreClock, Knob::PowerCap));
    assert!(
        tuned.tuned.notices.iter().any(replaced),
        "{:?}",
        tuned.tuned.notices
    );
    let choice = tuned.settings[tuned.choice().unwrap()];
    assert_eq!(choice.core_clock, None);
    assert!(choice.power_cap < tuned.settings[tuned.reference].power_cap);
    let caps = job(
        "v100",
        &[Fault::write_denied(Knob::PowerCap)],
        vec![workload("v100", 0.95, 0.05, 1.2)],
    );
    let tuned = auto(&caps, Objective::Energy);
    let choice = tuned.settings[tuned.choice().unwrap()];
    assert!(choice.core_clock.is_some(), "{:?}", tuned.tuned.notices);
    assert_eq!(choice.power_cap, None);
    // Nothing can be set: the job runs on, and the reason is given.
    let denied = [Knob::PowerCap, Knob::CoreClock].map(Fault::write_denied);
    let neither = job("v100", &denied, vec![workload("v100", 0.95, 0.05, 1.2)]);
    let tuned = auto(&neither, Objective::Energy);
    assert!(
        matches!(tuned.tuned.gave_up, Some(GiveUpReason::SettingsRejected(_))),
        "{:?}",
        tuned.tuned.notices
    );
}

/// At a twentieth of its clock a GPU is many times slower, and a look at it can cost more than tuning gains.
#[test]
fn settings_that_would_cost_a_short_job_more_than_they_may_gain_are_not_tried() {
    for (gpu, core, switching) in [("titan_x_pascal", 0.85, 0.9), ("v100", 0.7, 1.1)] {
        let (name, profile) = find_gpu(gpu).unwrap();
        let workloads = vec![workload(gpu, 4.0 * core, 4.0 * (1.0 - core), switching)];
        let time = Seconds::new(120.0);
        let job = JobSequence::from_profiles((name, profile), workloads, time).unwrap();
        for objective in [Objective::Energy, Objective::Edp, Objective::Eds(1.5)] {
            let request = request(TuneKnob::CoreClock, objective);
            let tuned = tune(&request, &job, None, &mut |_, _| {}).unwrap();
            let outcome_at = |settings: &Settings| {
                let (time, energy, _) = job.outcome_at(0, *settings).unwrap();
                Outcome::new(time, energy)
            };
            let reference = outcome_at(&tuned.settings[tuned.reference]);
            let value = |outcome: &Outcome| objective.value(outcome, &reference).unwrap();
            let all = tuned.settings.iter().map(|own| value(&outcome_at(own)));
            let best = all.fold(f64::INFINITY, f64::min);
            let own = value(&Outcome::new(tuned.time, tuned.energy.unwrap()));
            let context = format!("{gpu} {objective}: {:.3}", own / best - 1.0);
            assert_eq!(tuned.tuned.loads.len(), 1, "{context}");
            assert!(own / best < 1.06, "{context}");
        }
    }
}
