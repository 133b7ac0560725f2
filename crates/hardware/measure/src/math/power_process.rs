//! Power as a random process that varies about a mean.
//!
//! The state is an Ornstein-Uhlenbeck process `p`, its integral `E` and its first-order response `f` (what the
//! driver's buffer shows). All three advance over any span in closed form.

/// Parameters of the random process of power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PowerProcess {
    /// The mean power, in watts.
    pub mean: f64,
    /// The standard deviation of power, in watts.
    pub deviation: f64,
    /// The correlation time of power, in seconds.
    pub correlation_time: f64,
    /// The time constant of the driver buffer's first-order response, in seconds.
    pub response: f64,
}

/// How `(E, p, f)` advance over a time span; `p` and `f` are differences from the mean power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transition {
    /// The energy of the mean power over the span, in joules.
    pub energy: f64,
    /// The coefficient of the old `p` in the new `E`.
    pub energy_by_power: f64,
    /// The coefficient of the old `p` in the new `p`.
    pub power: f64,
    /// The coefficient of the old `p` in the new `f`.
    pub filtered_by_power: f64,
    /// The coefficient of the old `f` in the new `f`.
    pub filtered: f64,
    /// The covariance of the process noise over the span: EE, Ep, Ef, pp, pf, ff.
    pub noise: [f64; 6],
}

/// The four points and weights of Gauss-Legendre quadrature on (0, 1).
const QUADRATURE_POINTS: [(f64, f64); 4] = [
    (0.069_431_844_202_973_71, 0.173_927_422_568_726_93),
    (0.330_009_478_207_571_9, 0.326_072_577_431_273_07),
    (0.669_990_521_792_428_1, 0.326_072_577_431_273_07),
    (0.930_568_155_797_026_3, 0.173_927_422_568_726_93),
];

impl PowerProcess {
    /// The decay rates, per second, of power's correlation and of the buffer's response; made slightly
    /// different if they are equal.
    fn rates(&self) -> (f64, f64) {
        let a = 1.0 / self.correlation_time;
        let mut b = 1.0 / self.response;
        // The closed form is singular where both rates are equal.
        if (b - a).abs() < 1e-3 * a {
            b = a * 1.001;
        }
        (a, b)
    }

    /// In the stationary state: the variance of `p`, the covariance of `p` and `f`, and the variance of `f`.
    pub fn stationary(&self) -> (f64, f64, f64) {
        let (a, b) = self.rates();
        let variance = self.deviation * self.deviation;
        (variance, variance * b / (a + b), variance * b / (a + b))
    }

    /// The transition over `span` seconds; `scale` multiplies the process's standard deviation.
    pub fn transition(&self, span: f64, scale: f64) -> Transition {
        let (a, b) = self.rates();
        let c = b / (b - a);
        let (ea, eb) = ((-a * span).exp(), (-b * span).exp());
        let intensity = 2.0 * a * (self.deviation * scale).powi(2);
        let noise = if span * a.max(b) < 0.5 {
            let mut noise = [0.0; 6];
            for (point, weight) in QUADRATURE_POINTS {
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
            // The integrals of exponentials with these rates over the span.
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
        Transition {
            energy: self.mean * span,
            energy_by_power: -(-a * span).exp_m1() / a,
            power: ea,
            filtered_by_power: c * (ea - eb),
            filtered: eb,
            noise: noise.map(|value| value * intensity),
        }
    }
}
