//! The pump of real time: a command on leased GPUs, whose settings change while it runs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use sweetspot_backend_nvml::NvmlGpu;
use sweetspot_control::tune::{Action, Event, JobLength, Tuner, Tuning};
use sweetspot_device::{Clock, Descriptor, Device, Moment, MonotonicClock};
use sweetspot_guard::{Ended, GuardError, Message};
use sweetspot_link::{Reader, Tuning as Word};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::heard::Heard;
use super::meter::Meter;
use super::space::Places;
use super::{
    ChoiceStore, FollowTuning, TuneRequest, TunedCommand, TunedJob, fingerprint, recall, remember,
    terms,
};
use crate::SessionError;
use crate::gpus::{Slices, all_gpus, descriptors, open_nvml, select, visible};
use crate::lease::{GRACE, GuardProgram, Lease};
use crate::measure::{Attention, Machine, MeasureRequest, Said, Starter, Surroundings, Tail};

/// How often the command is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often somebody else's changes are looked for.
const CHECK: Duration = Duration::from_secs(1);

pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    follow: &mut dyn FollowTuning,
) -> Result<TunedJob, SessionError> {
    if command.read_only {
        return Err(SessionError::ReadOnly);
    }
    let gpus = select(
        all_gpus(open_nvml()?)?,
        command.device.as_deref(),
        Slices::No,
    )?;
    if let Some(lost) = gpus.iter().find(|gpu| gpu.is_lost()) {
        return Err(SessionError::Lost(lost.descriptor().name.clone()));
    }
    let devices = descriptors(&gpus);
    let places = Places::of(&devices, request.knob)?;
    let words = command.command.iter().map(|word| word.to_string_lossy());
    let workload = words.collect::<Vec<_>>().join(" ");
    let is_simulated = Machine::here(None).simulated;
    let print = fingerprint(request, &devices, &workload, is_simulated);
    let remembered = match command.fresh {
        true => None,
        false => recall(store, &print, follow),
    };
    let mut terms = terms(request, &devices, &places, remembered.as_ref());
    if let Some(choice) = &remembered {
        terms.job = JobLength::Time(Seconds::new(choice.time_s));
    }
    let mut tell = |note: &str| follow.tell(note);
    let mut lease = Lease::take(&devices, guard, &mut tell)?;
    let pump = Pump {
        set: None,
        tuner: Tuner::new(terms),
        command,
        devices: &devices,
        places: &places,
        gpus: &gpus,
        lease: &mut lease,
        follow,
        begun: MonotonicClock.now(),
        energy: None,
        power: Vec::new(),
        is_contested: false,
        failure: None,
        tuning: None,
    };
    let done = pump.run();
    let signal = lease.interrupted();
    let mut tell = |note: &str| follow.tell(note);
    let restored = lease.release(&mut tell);
    let done = match (signal, done) {
        (Some(signal), Err(_)) => return Err(SessionError::Interrupted(signal)),
        (_, done) => done?,
    };
    let tuned = TunedJob {
        workload,
        knob: request.knob,
        question: request.question.clone(),
        strategy: request.strategy,
        settings: places.settings.clone(),
        labels: places.labels.clone(),
        reference: places.space.reference(),
        tuned: done.tuner.finish(),
        time: done.time,
        energy: done.energy,
        items: done.items,
        begins: vec![Seconds::ZERO],
        power: done.power,
        ended: Some(match signal {
            Some(signal) => Ended::Signal(signal),
            None => done.ended,
        }),
        restored: restored?,
        devices,
    };
    if signal.is_none() && done.ended == Ended::Code(0) {
        remember(store, &print, &tuned, follow);
    }
    Ok(tuned)
}

struct Done {
    tuner: Tuner,
    ended: Ended,
    time: Seconds,
    energy: Option<Joules>,
    items: Option<f64>,
    power: Vec<(Seconds, Watts)>,
}

struct Pump<'a, 'b> {
    tuner: Tuner,
    command: &'a TunedCommand,
    devices: &'a [Descriptor],
    places: &'a Places,
    gpus: &'a [NvmlGpu],
    lease: &'a mut Lease<'b>,
    follow: &'a mut dyn FollowTuning,
    begun: Moment,
    /// The place that is set.
    set: Option<usize>,
    energy: Option<(Moment, Joules)>,
    power: Vec<(Seconds, Watts)>,
    /// Whether somebody else sets the same devices.
    is_contested: bool,
    failure: Option<GuardError>,
    /// What the workload is to be told.
    tuning: Option<Tuning>,
}

impl Pump<'_, '_> {
    fn run(mut self) -> Result<Done, SessionError> {
        // A device that cannot be set at all is no reason to begin.
        self.bring_to(self.places.space.reference())?;
        let mut devices: Vec<Box<dyn Device + Send>> = Vec::new();
        for gpu in self.gpus {
            devices.push(Box::new(gpu.reopen()?));
        }
        let clock = Arc::new(MonotonicClock);
        let sampler = Sampler::start(devices, MethodChoice::Auto, clock.clone())?;
        let request = MeasureRequest {
            progress: self.command.progress.clone(),
            keep_stdout: self.command.keep_stdout,
            // The command is to work on those GPUs that are tuned.
            environment: match self.command.device {
                Some(_) => visible(self.gpus).to_vec(),
                None => Vec::new(),
            },
            ..MeasureRequest::of(self.command.command.clone())
        };
        let mut nobody = ();
        let around = Surroundings {
            request: &request,
            sampler: &sampler,
            clock: clock.as_ref(),
            attention: Attention::Noted(self.lease.flag()),
            watch: &mut nobody,
        };
        let link = Reader::create()?;
        let outlets = {
            let (_, outlets) = self.lease.guard().start(around.launch(&link))?;
            outlets
        };
        let said = around.listen(outlets, &Tail::default());
        let meter = Meter::start(sampler)?;
        self.begun = meter.begun();
        let mut heard = Heard::new(link, self.command.progress.is_some());
        let (ended, at) = self.until_its_end(&mut heard, &said, &meter)?;
        for event in heard.rest(&said, self.begun) {
            self.tell(event);
        }
        for (at, total) in meter.stop() {
            self.drew(at, total);
        }
        self.tell(Event::Ended);
        Ok(Done {
            tuner: self.tuner,
            ended,
            time: (at - self.begun).max(Seconds::ZERO),
            energy: self.energy.map(|(_, total)| total),
            items: heard.items(),
            power: self.power,
        })
    }

    fn until_its_end(
        &mut self,
        heard: &mut Heard,
        said: &Receiver<(Moment, Said)>,
        meter: &Meter,
    ) -> Result<(Ended, Moment), SessionError> {
        let mut give_up: Option<Instant> = None;
        let mut check = Instant::now() + CHECK;
        self.tell(Event::Tick);
        loop {
            match self.lease.guard().wait_for(LOOK)? {
                Some(Message::Ended(end)) => return Ok((end.ended, end.at)),
                Some(Message::Released(problems)) => self.lease.guard().keep(problems),
                None => {}
            }
            if self.lease.interrupted().is_some() {
                // The devices are back, and the command has a while to end.
                let at = *give_up.get_or_insert(Instant::now() + GRACE);
                if Instant::now() > at {
                    self.lease.guard().end_workload()?;
                    return Ok((Ended::Signal(0), MonotonicClock.now()));
                }
                continue;
            }
            for (at, total) in meter.came() {
                self.drew(at, total);
            }
            for event in heard.listen(said, self.begun) {
                self.tell(event);
            }
            if Instant::now() >= check {
                check = Instant::now() + CHECK;
                self.look_for_others()?;
            }
            self.tell(Event::Tick);
            if let Some(tuning) = self.tuning.take() {
                heard.tell(word(tuning));
            }
            if let Some(failure) = self.failure.take() {
                return Err(failure.into());
            }
        }
    }

    fn now(&self) -> Seconds {
        MonotonicClock.now() - self.begun
    }

    fn drew(&mut self, at: Moment, total: Joules) {
        let (before, was) = self.energy.unwrap_or((self.begun, Joules::ZERO));
        if at > before {
            let power = (total - was) / (at - before);
            self.power.push((at - self.begun, power));
        }
        self.energy = Some((at, total));
        let at = at - self.begun;
        self.tell(Event::Energy { at, total });
    }

    fn tell(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.tuner.step(self.now(), event) {
                match action {
                    Action::Set(place) => events.extend(self.set(place)),
                    Action::Say(notice) => self.follow.tell(&notice.to_string()),
                    Action::Tell(tuning) => self.tuning = Some(tuning),
                }
            }
        }
    }

    /// Nothing where it is too late to set anything.
    fn set(&mut self, place: usize) -> Option<Event> {
        if self.lease.interrupted().is_some() || self.is_contested {
            return None;
        }
        match self.bring_to(place) {
            Ok(()) => Some(Event::Applied(place)),
            // Between the look above and the answer a signal may have come.
            Err(GuardError::Refused(_)) if self.lease.interrupted().is_some() => None,
            Err(GuardError::Refused(why)) => Some(Event::Refused {
                place,
                why: why.to_string(),
            }),
            Err(error) => {
                self.failure = Some(error);
                None
            }
        }
    }

    /// The same setting on every GPU, or on none.
    fn bring_to(&mut self, place: usize) -> Result<(), GuardError> {
        let before = self.set;
        for index in 0..self.devices.len() {
            let Err(error) = self.bring_one_to(index, before, place) else {
                continue;
            };
            if let Some(before) = before {
                for index in 0..=index {
                    let _ = self.bring_one_to(index, Some(place), before);
                }
            }
            return Err(error);
        }
        self.set = Some(place);
        Ok(())
    }

    fn bring_one_to(
        &mut self,
        index: usize,
        before: Option<usize>,
        place: usize,
    ) -> Result<(), GuardError> {
        let id = &self.devices[index].id;
        let mut settings = self.places.settings[place];
        let was_locked =
            before.is_some_and(|place| self.places.settings[place].core_clock.is_some());
        if was_locked && settings.core_clock.is_none() {
            self.lease.put_back(id)?;
        }
        // What is set already needs no right to set it.
        let limits = self.gpus[index].reopen().ok();
        let limits = limits.and_then(|mut gpu| gpu.power_limits().ok());
        if limits.is_some_and(|limits| Some(limits.requested) == settings.power_cap) {
            settings.power_cap = None;
        }
        if settings.knobs().is_empty() {
            return Ok(());
        }
        self.lease.apply(id, &settings).map(drop)
    }

    /// Whether somebody else has changed a cap.
    fn look_for_others(&mut self) -> Result<(), SessionError> {
        let Some(place) = self.set.filter(|_| !self.is_contested) else {
            return Ok(());
        };
        let Some(cap) = self.places.settings[place].power_cap else {
            return Ok(());
        };
        for gpu in self.gpus {
            if let Ok(limits) = gpu.reopen()?.power_limits()
                && limits.requested != cap
            {
                self.is_contested = true;
                self.tell(Event::Changed(format!(
                    "the cap of {} is {}, and {cap} was set: somebody else changed it",
                    gpu.descriptor().id,
                    limits.requested
                )));
                break;
            }
        }
        Ok(())
    }
}

/// What the workload is told.
fn word(tuning: Tuning) -> Word {
    match tuning {
        Tuning::Off => Word::Off,
        Tuning::Exploring => Word::Exploring,
        Tuning::Settled => Word::Settled,
    }
}
