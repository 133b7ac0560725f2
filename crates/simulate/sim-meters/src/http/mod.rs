//! Stand-ins for meters that answer over HTTP with JSON: Shelly and Tasmota plugs, and a Redfish board controller.
//!
//! Each answers the endpoints of the real device in their layout, with its units, resolution and timing. They have no
//! thread and no clock: the caller passes the time in.

mod redfish;
mod shelly;
mod tasmota;
mod text;

use serde_json::Value;
use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_stats::Seed;

use crate::fault::{Delivery, Faults};
use crate::{MeterFault, MeterKind, NodeEnergy};

/// A request to a meter.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The path with its query, as in the first line of the request.
    pub target: &'a str,
    /// The value of the header `Authorization`.
    pub authorization: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// A request for this path and query, without a password.
    pub fn get(target: &'a str) -> Self {
        Self {
            target,
            authorization: None,
        }
    }

    /// The path without its query.
    fn path(&self) -> &'a str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// The decoded value of a parameter of the query.
    fn parameter(&self, name: &str) -> Option<String> {
        let (_, query) = self.target.split_once('?')?;
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.into_iter().find(|pair| pair.0 == name)?;
        Some(text::decode(found.1))
    }
}

/// The response of a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The body; `None` if the meter sends nothing at all.
    pub body: Option<String>,
    /// The value of the header `WWW-Authenticate`.
    pub authenticate: Option<String>,
    /// The moment at which the meter sends the response.
    pub ready_at: Moment,
    /// Whether the meter ends the connection instead of a response.
    pub ends_connection: bool,
}

/// A status and a JSON body.
type Page = (u16, Value);

/// A stand-in for a meter that answers over HTTP.
#[derive(Debug)]
pub struct HttpMeter {
    kind: MeterKind,
    /// The first moment of the meter.
    origin: Moment,
    /// The Unix time at the origin of the clock.
    unix_origin: Seconds,
    seed: Seed,
    /// The factor on every power and energy that the meter shows.
    gain: f64,
    faults: Faults,
}

/// How a meter takes its samples.
struct Sampling {
    /// The time between two samples.
    period: Seconds,
    /// The time over which power is averaged.
    average: Seconds,
    /// The time from the end of the averaging until the sample is shown.
    delay: Seconds,
}

/// What a meter shows at a moment.
struct Shown {
    power: Watts,
    /// The energy since the meter was made, including what it had counted before it measured this node.
    total: Joules,
    /// The Unix time on the meter's clock.
    unix: Seconds,
}

impl HttpMeter {
    /// Creates a meter of this kind at a moment. `unix_origin` is the Unix time at which `now` was zero. The seed
    /// determines the meter's constant error and what it had counted before.
    pub fn new(
        kind: MeterKind,
        now: Moment,
        unix_origin: Seconds,
        seed: Seed,
        faults: Vec<MeterFault>,
    ) -> Self {
        /// The largest constant error, relative to the reading (assumed: makers name 0.5 to 1 %).
        const READING_ERROR: f64 = 0.005;
        let seed = seed.label(kind.name());
        Self {
            kind,
            origin: now,
            unix_origin,
            seed,
            gain: 1.0 + READING_ERROR * (2.0 * seed.label("gain").uniform() - 1.0),
            faults: Faults::new(faults),
        }
    }

    /// Answers a request.
    pub fn handle(
        &mut self,
        request: &Request<'_>,
        now: Moment,
        node: &dyn NodeEnergy,
    ) -> Response {
        let authenticate = self.refusal(request);
        let (status, page) = match (&authenticate, self.kind) {
            (Some(_), _) => (401, self.unauthorised()),
            (None, MeterKind::Shelly | MeterKind::ShellyGen1) => self.shelly(request, now, node),
            (None, MeterKind::Tasmota | MeterKind::TasmotaOld) => self.tasmota(request, now, node),
            (None, _) => self.redfish(request, now, node),
        };
        let (delivery, late) = self.faults.deliver();
        Response {
            status,
            body: match delivery {
                Delivery::Good => Some(page.to_string()),
                Delivery::Rubbish => Some("<html><b>7#?!</b>{\"power\":".to_owned()),
                Delivery::Silent | Delivery::Disconnect => None,
            },
            authenticate,
            ready_at: now + late,
            ends_connection: delivery == Delivery::Disconnect,
        }
    }

    /// What the meter asks for if a request lacks the right password; `None` if the request is allowed. Tasmota takes
    /// the password from the query, and a Shelly of the second generation takes none in clear.
    fn refusal(&self, request: &Request<'_>) -> Option<String> {
        let (user, secret) = self.faults.password()?;
        match self.kind {
            MeterKind::Tasmota | MeterKind::TasmotaOld => None,
            MeterKind::Shelly => Some(format!(
                "Digest qop=\"auth\", realm=\"shellyplus1pm-{}\", nonce=\"60dc59c6\", algorithm=SHA-256",
                self.mac()
            )),
            _ if self.kind != MeterKind::ShellyGen1
                && matches!(request.path(), "/redfish" | "/redfish/v1" | "/redfish/v1/") =>
            {
                None
            }
            _ => {
                let expected = format!("Basic {}", text::base64(&format!("{user}:{secret}")));
                let is_right = request.authorization == Some(expected.as_str());
                (!is_right).then(|| "Basic realm=\"meter\"".to_owned())
            }
        }
    }

    /// The body of a response to a request without the right password.
    fn unauthorised(&self) -> Value {
        match self.kind {
            MeterKind::Redfish | MeterKind::RedfishOld => redfish::error(
                "Base.1.8.NoValidSession",
                "There is no valid session established with the implementation.",
            ),
            _ => serde_json::json!({"code": 401, "message": "Unauthorized"}),
        }
    }

    /// What the meter shows at a moment.
    fn shown(&self, sampling: &Sampling, now: Moment, node: &dyn NodeEnergy) -> Shown {
        let average = self.faults.average().unwrap_or(sampling.average);
        let period = sampling.period.nanos() as u64;
        let age = now.nanos().saturating_sub(self.origin.nanos());
        let sampled_at = Moment::from_nanos(now.nanos() - age % period);
        let until = sampled_at + -sampling.delay;
        let before = Joules::new(3.6e6 * (5.0 + 90.0 * self.seed.label("before").uniform()));
        let counted = node.energy_until(until) - node.energy_until(self.origin + -sampling.delay);
        Shown {
            power: node.mean_power(until + -average, until) * self.gain,
            total: before + counted * self.gain,
            unix: self.unix(now),
        }
    }

    /// The Unix time on the meter's clock at a moment.
    fn unix(&self, now: Moment) -> Seconds {
        self.unix_origin + (now - Moment::default()) + self.faults.clock_jump()
    }

    /// The hardware address of the meter, which is part of its names.
    fn mac(&self) -> String {
        let digits = self.seed.label("mac").get() & 0xff_ffff;
        format!("a8032a{digits:06x}")
    }
}

/// Plugs show the mean of a second, one second late.
const PLUG: Sampling = Sampling {
    period: Seconds::new(1.0),
    average: Seconds::new(1.0),
    delay: Seconds::new(1.0),
};

/// The voltage of the mains.
const MAINS: f64 = 230.0;

/// Rounds to this number of decimal places.
fn round(value: f64, places: i32) -> f64 {
    let factor = 10f64.powi(places);
    (value * factor).round() / factor
}
