//! Jobs on several GPUs, and GPUs that are lost, not read or not settable.

use sweetspot_quantity::{Ratio, Seconds, Watts};

use super::Budgeter;
use crate::budget::{
    BudgetAction, BudgetConfig, BudgetEvent, BudgetNotice, BudgetedDevice, GpuReading,
};

const TICK: f64 = 0.1;

/// GPUs whose programs take all the power that they may, up to a demand.
struct TestGpus {
    budgeter: Budgeter,
    demands: Vec<f64>,
    caps: Vec<f64>,
    /// The power of each GPU; `None` if its sensor gives no values.
    is_read: Vec<bool>,
    now: f64,
    notices: Vec<BudgetNotice>,
}

impl TestGpus {
    fn new(budget: f64, devices: Vec<BudgetedDevice>, demands: &[f64]) -> Self {
        let caps = devices.iter().map(|device| device.max_cap.get()).collect();
        let config = BudgetConfig {
            budget: Watts::new(budget),
            gpus: devices,
        };
        Self {
            budgeter: Budgeter::new(&config).unwrap(),
            demands: demands.to_vec(),
            caps,
            is_read: vec![true; demands.len()],
            now: 0.0,
            notices: Vec::new(),
        }
    }

    fn send(&mut self, event: BudgetEvent) {
        for action in self.budgeter.step(Seconds::new(self.now), event) {
            match action {
                BudgetAction::Set { gpu, cap } => {
                    self.caps[gpu] = cap.get();
                    self.send(BudgetEvent::Applied { gpu, cap });
                }
                BudgetAction::Notify(notice) => self.notices.push(notice),
            }
        }
    }

    fn run(&mut self, time: f64) {
        let end = self.now + time;
        while self.now < end {
            self.now += TICK;
            for gpu in 0..self.demands.len() {
                let demand = self.demands[gpu];
                let is_busy = demand > 0.0;
                let reading = GpuReading {
                    power: Watts::new(if is_busy {
                        demand.min(self.caps[gpu])
                    } else {
                        40.0
                    }),
                    limited: Some(Ratio::new(f64::from(u8::from(demand > self.caps[gpu])))),
                    is_busy,
                };
                self.send(match self.is_read[gpu] {
                    true => BudgetEvent::Read { gpu, reading },
                    false => BudgetEvent::Unread { gpu, is_busy },
                });
            }
            self.send(BudgetEvent::Tick);
        }
    }

    fn start_job(&mut self, gpus: &[usize]) {
        for gpu in gpus {
            self.send(BudgetEvent::Program {
                gpu: *gpu,
                program: Some(7),
            });
        }
    }

    fn sum(&self) -> f64 {
        self.caps.iter().sum()
    }
}

fn v100() -> BudgetedDevice {
    BudgetedDevice::new(Watts::new(150.0), Watts::new(300.0))
}

#[test]
fn like_gpus_of_a_job_get_the_same_cap() {
    let mut gpus = TestGpus::new(600.0, vec![v100(); 3], &[300.0, 230.0, 300.0]);
    gpus.start_job(&[0, 1]);
    gpus.run(30.0);
    let difference = gpus.caps[0] - gpus.caps[1];
    assert!(difference.abs() < 2.0, "{:?}", gpus.caps);
    assert!(gpus.sum() < 600.5, "{:?}", gpus.caps);
}

#[test]
fn a_floor_holds_in_a_job_on_several_gpus() {
    let floored = BudgetedDevice {
        floor: Some(Watts::new(250.0)),
        ..v100()
    };
    let mut gpus = TestGpus::new(420.0, vec![floored, v100()], &[300.0, 300.0]);
    gpus.start_job(&[0, 1]);
    gpus.run(30.0);
    assert!(gpus.caps[0] > 249.0, "{:?}", gpus.caps);
    assert!(gpus.caps[1] > 160.0, "{:?}", gpus.caps);
    assert!(gpus.sum() < 420.5, "{:?}", gpus.caps);
}

#[test]
fn a_lost_gpu_leaves_its_power_to_the_others() {
    let mut gpus = TestGpus::new(450.0, vec![v100(); 2], &[300.0; 2]);
    gpus.run(20.0);
    assert!(gpus.caps[1] < 260.0, "{:?}", gpus.caps);
    gpus.send(BudgetEvent::Lost { gpu: 0 });
    gpus.demands[0] = 0.0;
    gpus.is_read[0] = false;
    gpus.run(20.0);
    assert!(gpus.caps[1] > 290.0, "{:?}", gpus.caps);
}

#[test]
fn a_gpu_that_cannot_be_set_counts_with_its_power_until_it_can() {
    let mut gpus = TestGpus::new(420.0, vec![v100(); 2], &[240.0, 300.0]);
    gpus.send(BudgetEvent::Rejected { gpu: 0 });
    gpus.run(20.0);
    assert_eq!(gpus.caps[0], 300.0);
    assert!((150.0..175.0).contains(&gpus.caps[1]), "{:?}", gpus.caps);
    // Its own program has lowered its cap meanwhile; that cap is now the highest one.
    gpus.caps[0] = 280.0;
    gpus.send(BudgetEvent::Settable {
        gpu: 0,
        max_cap: Watts::new(280.0),
    });
    gpus.run(20.0);
    assert!(gpus.caps[0] < 260.0, "{:?}", gpus.caps);
    assert!(gpus.sum() < 420.5, "{:?}", gpus.caps);
}

#[test]
fn an_uncapped_gpu_that_is_not_read_counts_with_its_cap() {
    let mut gpus = TestGpus::new(600.0, vec![v100(); 2], &[0.0, 300.0]);
    gpus.send(BudgetEvent::Rejected { gpu: 0 });
    gpus.is_read[0] = false;
    gpus.run(20.0);
    // It may draw 300 W, with a margin.
    assert!(gpus.caps[1] < 295.0, "{:?}", gpus.caps);
    gpus.is_read[0] = true;
    gpus.run(20.0);
    assert!(gpus.caps[1] > 297.0, "{:?}", gpus.caps);
}

#[test]
fn no_mean_is_judged_while_a_gpu_is_not_read() {
    let mut gpus = TestGpus::new(400.0, vec![v100(); 2], &[300.0; 2]);
    gpus.is_read[1] = false;
    gpus.run(10.0);
    assert_eq!(gpus.budgeter.statistics().above_share(), None);
    gpus.is_read[1] = true;
    gpus.run(10.0);
    let above = gpus.budgeter.statistics().above_share();
    assert_eq!(above, Some(Ratio::new(0.0)));
}

#[test]
fn a_budget_that_uncapped_gpus_exceed_is_reported_once() {
    let mut gpus = TestGpus::new(360.0, vec![v100(); 2], &[230.0, 0.0]);
    gpus.send(BudgetEvent::Rejected { gpu: 0 });
    for _ in 0..6 {
        gpus.run(3.0);
        gpus.demands[0] = 430.0 - gpus.demands[0];
    }
    let below = gpus.notices.iter().filter_map(|notice| match notice {
        BudgetNotice::BelowFloor {
            uncapped,
            has_floors,
            ..
        } => Some((uncapped.get(), *has_floors)),
        _ => None,
    });
    let below: Vec<(f64, bool)> = below.collect();
    assert_eq!(below.len(), 1, "{:?}", gpus.notices);
    assert!(below[0].0 > 210.0 && !below[0].1, "{below:?}");
}
