//! Decides when to read the energy counter: rarely, because a read keeps a core busy for milliseconds.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use crate::math::{Span, UpdateSchedule};

/// The interval between counter reads while no measurement window begins or ends.
const IDLE_INTERVAL: Seconds = Seconds::new(12.0);
/// The interval between counter reads while its update times are learnt: short enough to locate an update.
const LEARNING_INTERVAL: Seconds = Seconds::new(0.016);
/// The usual duration of a counter read.
const CALL_DURATION: Seconds = Seconds::new(0.003);
/// The time after an update of the counter until a read shows it.
const VISIBLE_AFTER: Seconds = Seconds::new(0.002);
/// The number of recent counter steps to which the update schedule is fitted.
const FITTED_STEPS: usize = 64;
/// With a smaller uncertainty, the counter's update times are known well enough.
const GOOD_UNCERTAINTY: Seconds = Seconds::new(0.0025);
/// With a larger uncertainty, the counter's update times must be searched for.
const POOR_UNCERTAINTY: Seconds = Seconds::new(0.012);
/// The longest search for the counter's update times, in update periods.
const SEARCH_PERIODS: f64 = 6.0;
/// Of marks that may share reads, at most two in this time are followed by reads.
const TWO_SHARED_MARKS: Seconds = Seconds::new(8.0);
/// Marks that may share reads are followed by reads only if they are this far apart: a mean over a shorter time would
/// say little about the gain of the driver's buffer.
const SHARED_MARKS_APART: Seconds = Seconds::new(1.0);

/// Decides when the energy counter is read next.
#[derive(Debug)]
pub(crate) struct CounterPlan {
    period: Seconds,
    /// The moments at which reads are due, in order.
    due: Vec<Moment>,
    /// The end of the search for the counter's update times; `None` if no search is under way.
    search_until: Option<Moment>,
    schedule: Option<UpdateSchedule>,
    /// The moments of the last two marks that may share reads and were followed by some, the older one first.
    shared_marks: [Option<Moment>; 2],
    steps: Vec<Span>,
    last: Option<(Span, Joules)>,
    begun: Moment,
}

impl CounterPlan {
    /// Creates a plan whose first read is due at once; `period` is the counter's update period.
    pub fn new(period: Seconds, now: Moment) -> Self {
        Self {
            period,
            due: vec![now],
            search_until: Some(now + period * SEARCH_PERIODS),
            schedule: None,
            shared_marks: [None; 2],
            steps: Vec::new(),
            last: None,
            begun: now,
        }
    }

    /// When the next read is due.
    pub fn due(&self) -> Moment {
        let last = self.last.map_or(self.begun, |(call, _)| call.end);
        let asked = self.due.first().copied();
        let search = self.search_until.map(|_| match self.rough_schedule(last) {
            Some(schedule) => self.next_around_step(schedule, last),
            None => last + LEARNING_INTERVAL,
        });
        let usual = match &self.schedule {
            // In the middle between two steps a read shows without doubt which of them was the last.
            Some(schedule) => schedule.next_after(last + IDLE_INTERVAL) + self.period * 0.5,
            None => last + IDLE_INTERVAL,
        };
        [asked, search]
            .into_iter()
            .flatten()
            .fold(usual, Moment::min)
    }

    /// When to read next to catch an update: reads start just before the expected update and end when it was
    /// seen.
    fn next_around_step(&self, schedule: &UpdateSchedule, last: Moment) -> Moment {
        let margin = schedule.uncertainty(last) + CALL_DURATION;
        let mut next = schedule.next_after(last + -margin);
        let seen = self.steps.last().map(|step| step.end);
        if seen.is_some_and(|seen| seen > next + -margin) {
            next = schedule.next_after(next + margin);
        }
        last.max(next + -margin)
    }

    /// The schedule of the counter's updates, if it is known at least roughly near a moment.
    fn rough_schedule(&self, moment: Moment) -> Option<&UpdateSchedule> {
        let schedule = self.schedule.as_ref();
        schedule.filter(|schedule| schedule.uncertainty(moment) < POOR_UNCERTAINTY)
    }

    /// Schedules reads around a moment at which a measurement window begins or ends.
    pub fn mark(&mut self, at: Moment) {
        self.due.push(at);
        match &self.schedule {
            Some(schedule) if schedule.uncertainty(at) <= GOOD_UNCERTAINTY => {
                let uncertainty = schedule.uncertainty(at);
                let next = schedule.next_after(at + -uncertainty);
                self.due.push(next + uncertainty + VISIBLE_AFTER);
                // If a step may fall into the first read, it is unclear which value that shows: one more read
                // resolves it.
                if next < at + CALL_DURATION + uncertainty {
                    self.due.push(
                        schedule.next_after(next + CALL_DURATION) + uncertainty + VISIBLE_AFTER,
                    );
                }
            }
            _ => self.search_until = Some(at + self.period * SEARCH_PERIODS),
        }
        self.due.sort();
    }

    /// Schedules reads around a moment as [`Self::mark`] does, unless earlier marks make them dispensable: where many
    /// clients mark moments, a few reads correct the driver's buffer, which tells the energies in between.
    pub fn mark_sharing_reads(&mut self, at: Moment) {
        let [last_but_one, last] = self.shared_marks;
        let is_far =
            |from: Option<Moment>, least: Seconds| from.is_none_or(|from| at - from >= least);
        if is_far(last, SHARED_MARKS_APART) && is_far(last_but_one, TWO_SHARED_MARKS) {
            self.shared_marks = [last, Some(at)];
            self.mark(at);
        }
    }

    /// Whether no read for a marked moment is outstanding.
    pub fn is_settled(&self) -> bool {
        self.due.is_empty() && self.search_until.is_none()
    }

    /// Records a read: the time of the call and the counter's value.
    pub fn read(&mut self, call: Span, value: Joules) {
        self.due.retain(|due| *due > call.begin);
        if let Some((before, shown)) = self.last
            && value != shown
            && call.end - before.begin < self.period
        {
            if self.steps.len() == FITTED_STEPS {
                self.steps.remove(0);
            }
            self.steps.push(Span::new(before.begin, call.end));
            self.schedule = UpdateSchedule::fit(&self.steps, self.period);
        }
        self.last = Some((call, value));
        let is_known = self
            .schedule
            .is_some_and(|schedule| schedule.uncertainty(call.end) <= GOOD_UNCERTAINTY);
        self.search_until = self
            .search_until
            .filter(|until| !is_known && call.end < *until);
    }

    /// Records a failed read, and schedules the next one for `again`.
    pub fn failed(&mut self, again: Moment) {
        self.due.retain(|due| *due > again);
        self.due.insert(0, again);
        self.search_until = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the plan's due reads until `end`, marking moments at an interval, and returns how many reads there were in
    /// the last `counted` seconds. The counter steps every 100 ms by an energy; a read takes 2.8 ms.
    fn reads(
        end: f64,
        counted: f64,
        marks: impl Fn(&mut CounterPlan, Moment),
        every: f64,
    ) -> usize {
        let at = |seconds: f64| Moment::from_nanos((seconds * 1e9) as u64);
        let seconds = |moment: Moment| moment.nanos() as f64 * 1e-9;
        let mut plan = CounterPlan::new(Seconds::new(0.1), at(0.0));
        let (mut now, mut next_mark, mut count) = (0.0, every, 0);
        while now < end {
            let due = seconds(plan.due()).max(now);
            if next_mark <= due {
                now = next_mark;
                next_mark += every;
                marks(&mut plan, at(now));
                continue;
            }
            // The period of the crystal is not exactly the nominal one.
            let value = ((due + 0.0014 + 0.037) / 0.100_003).floor();
            plan.read(
                Span::new(at(due), at(due + 0.0028)),
                Joules::new(25.0 * value),
            );
            now = due + 0.0028;
            count += usize::from(now > end - counted);
        }
        count
    }

    #[test]
    fn many_marks_share_reads() {
        let each = reads(60.0, 40.0, CounterPlan::mark, 0.2);
        let shared = reads(60.0, 40.0, CounterPlan::mark_sharing_reads, 0.2);
        // There are ten pairs of marks with reads in eight seconds each; a search may add some.
        assert!(each > 3 * shared, "{each} {shared}");
        // Rare marks have reads of their own.
        let rare = reads(60.0, 40.0, CounterPlan::mark_sharing_reads, 4.0);
        assert!(rare >= 18, "{rare}");
    }
}
