//! Power as a random process: it wanders about a mean and forgets where it was.
//!
//! An Ornstein-Uhlenbeck process `p`, its integral `E` and its first-order response `f` (what the driver's
//! buffer shows). All three move on over any span in closed form.

/// Parameters of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Process {
    /// Watts about which power wanders.
    pub mean: f64,
    /// Watts.
    pub deviation: f64,
    /// Seconds after which power has mostly forgotten where it was.
    pub memory: f64,
    /// Seconds of the buffer's response.
    pub response: f64,
}

/// How `(E, p, f)` move over a span: `p` and `f` count from the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Move {
    pub energy: f64,
    /// Of `E` by `p`; of `p` by itself; of `f` by `p`; of `f` by itself.
    pub energy_by_power: f64,
    pub power: f64,
    pub filtered_by_power: f64,
    pub filtered: f64,
    /// Covariance of what is new: EE, Ep, Ef, pp, pf, ff.
    pub noise: [f64; 6],
}

/// Gauss and Legendre's four points on (0, 1).
const POINTS: [(f64, f64); 4] = [
    (0.069_431_844_202_973_71, 0.173_927_422_568_726_93),
    (0.330_009_478_207_571_9, 0.326_072_577_431_273_07),
    (0.669_990_521_792_428_1, 0.326_072_577_431_273_07),
    (0.930_568_155_797_026_3, 0.173_927_422_568_726_93),
];

impl Process {
    fn rates(&self) -> (f64, f64) {
        let a = 1.0 / self.memory;
        let mut b = 1.0 / self.response;
        // The closed form is singular where both are the same.
        if (b - a).abs() < 1e-3 * a {
            b = a * 1.001;
        }
        (a, b)
    }

    /// Variance of `p`, covariance with `f`, variance of `f`, after a long time.
    pub fn stationary(&self) -> (f64, f64, f64) {
        let (a, b) = self.rates();
        let variance = self.deviation * self.deviation;
        (variance, variance * b / (a + b), variance * b / (a + b))
    }

    /// Over `span` seconds, with the deviation scaled by `scale`.
    pub fn over(&self, span: f64, scale: f64) -> Move {
        let (a, b) = self.rates();
        let c = b / (b - a);
        let (ea, eb) = ((-a * span).exp(), (-b * span).exp());
        let intensity = 2.0 * a * (self.deviation * scale).powi(2);
        let noise = if span * a.max(b) < 0.5 {
            let mut noise = [0.0; 6];
            for (point, weight) in POINTS {
                let u = point * span;
                let (xa, xb) = ((-a * u).exp(), (-b * u).exp());
                let (e, p, f) = (-(-a * u).exp_m1() / a, xa, c * (xa - xb));
                for (sum, product) in
                    noise
                        .iter_mut()
                        .zip([e * e, e * p, e * f, p * p, p * f, f * f])
                {
                    *sum += weight * span * product;
                }
            }
            noise
        } else {
            // Integrals of exponentials with these rates over the span.
            let (ia, ib) = ((1.0 - ea) / a, (1.0 - eb) / b);
            let (iaa, ibb) = ((1.0 - ea * ea) / (2.0 * a), (1.0 - eb * eb) / (2.0 * b));
            let iab = (1.0 - ea * eb) / (a + b);
            [
                (span - 2.0 * ia + iaa) / (a * a),
                (ia - iaa) / a,
                c * (ia - ib - iaa + iab) / a,
                iaa,
                c * (iaa - iab),
                c * c * (iaa - 2.0 * iab + ibb),
            ]
        };
        Move {
            energy: self.mean * span,
            energy_by_power: -(-a * span).exp_m1() / a,
            power: ea,
            filtered_by_power: c * (ea - eb),
            filtered: eb,
            noise: noise.map(|value| value * intensity),
        }
    }
}
