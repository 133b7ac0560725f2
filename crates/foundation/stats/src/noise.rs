//! Random numbers that depend only on a name, not on how many were drawn before.
//!
//! A [`Seed`] is derived from a root seed by a path of labels and numbers. Therefore a resumed study, several
//! threads and other machines get bit-identical random numbers.

/// A seed: the hash of a path of labels and numbers, from which one random number is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// Creates the root seed of a study.
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x5357_4545_5453_504f))
    }

    /// Derives a seed from this one and a text. Different texts give independent random numbers.
    pub fn label(self, label: &str) -> Self {
        let folded = label.bytes().fold(self.0, |state, byte| {
            mix(state ^ u64::from(byte).wrapping_add(0x100))
        });
        Self(mix(folded ^ label.len() as u64))
    }

    /// Derives a seed from this one and a number. Different numbers give independent random numbers.
    pub const fn number(self, number: u64) -> Self {
        Self(mix(mix(self.0) ^ number))
    }

    /// The seed as a number, to initialise other random generators.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The uniformly distributed random number of this seed, between 0 and 1, both excluded.
    pub fn uniform(self) -> f64 {
        ((mix(self.0) >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// The normally distributed random number of this seed, with mean 0 and standard deviation 1 (Box-Muller).
    pub fn normal(self) -> f64 {
        let (radius, angle) = self.radius_and_angle();
        radius * libm::cos(angle)
    }

    /// Two independent normal random numbers of this seed; the first equals [`normal`](Self::normal).
    pub fn normals(self) -> [f64; 2] {
        let (radius, angle) = self.radius_and_angle();
        let (sine, cosine) = libm::sincos(angle);
        [radius * cosine, radius * sine]
    }

    /// The random radius and angle of the Box-Muller method.
    fn radius_and_angle(self) -> (f64, f64) {
        let radius = libm::sqrt(-2.0 * libm::log(self.number(0).uniform()));
        (radius, std::f64::consts::TAU * self.number(1).uniform())
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) after one step of its sequence.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
