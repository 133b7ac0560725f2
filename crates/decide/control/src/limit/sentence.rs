//! The sentence that tells a user what limits a load and which knob works.

use std::fmt::{Display, Formatter, Result};

use sweetspot_quantity::Ratio;

use super::{CapEffect, EffectiveKnob, Limit, LoadLimit};

impl Display for LoadLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.cap_text())?;
        f.write_str(&self.limit_text())?;
        f.write_str(self.advice())
    }
}

impl LoadLimit {
    /// Says whether the power cap has an effect and what limits the load, without a recommendation; empty if neither is
    /// known.
    pub fn finding(&self) -> String {
        let limit = match self.limit {
            Limit::Unknown => String::new(),
            _ => self.limit_text(),
        };
        let text = self.cap_text() + &limit;
        text.trim_end_matches([' ', ':', ';']).to_owned()
    }

    /// Says whether the power cap has an effect; empty if that is unknown.
    fn cap_text(&self) -> String {
        let evidence = &self.evidence;
        let cap = match evidence.power_cap {
            Some(cap) => format!("the power cap of {cap:.0}"),
            None => "the power cap".to_owned(),
        };
        let draw = evidence
            .power
            .map(|power| format!("which draws {power:.0}"));
        match (self.cap, draw) {
            (CapEffect::Unknown, _) => String::new(),
            (CapEffect::Binds, None) => format!("{cap} limits this load: "),
            (CapEffect::Binds, Some(draw)) => format!("{cap} limits this load, {draw}: "),
            (CapEffect::DoesNotBind, None) => format!("{cap} does not limit this load: "),
            (CapEffect::DoesNotBind, Some(draw)) => {
                format!("{cap} does not limit this load, {draw}: ")
            }
        }
    }

    /// Says what limits the load.
    fn limit_text(&self) -> String {
        let evidence = &self.evidence;
        let percent = |share: Option<Ratio>| match share {
            Some(share) => format!(" ({:.0} %)", 100.0 * share.get()),
            None => String::new(),
        };
        match self.limit {
            Limit::PowerCap => match evidence.throttled_by_cap {
                Some(share) => format!(
                    "it was throttled for {:.0} % of the time; ",
                    100.0 * share.get()
                ),
                None => "its power is at the cap; ".to_owned(),
            },
            Limit::Temperature => format!(
                "it is limited by its temperature{}; ",
                percent(evidence.throttled_by_heat)
            ),
            Limit::PowerBrake => format!(
                "it is limited by the server's power supply{}; ",
                percent(evidence.throttled_by_brake)
            ),
            Limit::Memory => format!(
                "it is limited by memory bandwidth{}; ",
                percent(evidence.units.memory)
            ),
            Limit::Compute => format!(
                "it is limited by the cores{}; ",
                percent(evidence.units.cores)
            ),
            Limit::Host => format!(
                "the GPU waits for the program: its cores are little used{}; ",
                percent(evidence.units.cores.or(evidence.utilisation))
            ),
            Limit::Idle => "no work runs on the GPU".to_owned(),
            Limit::Unknown => "what limits it is unknown; ".to_owned(),
        }
    }

    /// Whether the power is so low that the device may have been idle.
    fn draws_little(&self) -> bool {
        /// GPUs without work draw less than this share of their power cap.
        const MAX_IDLE_POWER_SHARE: f64 = 0.25;
        let powers = self.evidence.power.zip(self.evidence.power_cap);
        powers.is_some_and(|(power, cap)| (power / cap).get() < MAX_IDLE_POWER_SHARE)
    }

    /// Says which knob works.
    fn advice(&self) -> &'static str {
        match (self.limit, self.knob) {
            (Limit::Temperature, _) => "better cooling or a lower core clock helps",
            (Limit::PowerBrake, _) => "check the server's power supply",
            (Limit::Compute, _) => "a lower core clock saves energy and costs time",
            (Limit::Idle, _) => "",
            (Limit::Unknown, EffectiveKnob::CoreClock) if self.draws_little() => {
                "perhaps no work ran on the GPU"
            }
            (Limit::Unknown, EffectiveKnob::CoreClock) => "a lower core clock may save energy",
            (_, EffectiveKnob::PowerCap) => "a lower cap saves energy",
            (_, EffectiveKnob::CoreClock) => "a lower core clock saves energy",
            (_, EffectiveKnob::BatchOrInput) => {
                "a larger batch or a faster input pipeline saves energy"
            }
            (_, EffectiveKnob::None) => "so no knob can be recommended",
        }
    }
}
