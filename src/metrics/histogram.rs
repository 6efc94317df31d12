//! Buckets: CoreDNS's bounds, and finding the bucket of a value without a search where every query does it.

use std::time::Duration;

/// `0.00025·2^k`, k = 0..15: CoreDNS's `TimeBuckets`.
pub(super) const TIME: &[f64] = &[
    0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192,
];

/// CoreDNS's `SlimTimeBuckets`.
pub(super) const SLIM: &[f64] = &[0.00025, 0.0025, 0.025, 0.25, 2.5];

/// Sizes of messages, in bytes.
pub(super) const SIZE: &[f64] =
    &[0.0, 100.0, 200.0, 300.0, 400.0, 511.0, 1023.0, 2047.0, 4095.0, 8291.0, 16000.0, 32000.0, 48000.0, 64000.0];

/// `0.001·2^k`, k = 0..19: how long a change took to be served.
pub(super) const PROGRAMMING: &[f64] = &[
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384, 32.768,
    65.536, 131.072, 262.144, 524.288,
];

/// Prometheus's default buckets, for requests to the API server.
pub(super) const REQUEST: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// How many buckets a duration has, with the one without bound.
pub(super) const TIME_BUCKETS: usize = TIME.len() + 1;

/// How many buckets a size has, with the one without bound.
pub(super) const SIZE_BUCKETS: usize = SIZE.len() + 1;

/// The first bound above 511.
const FIRST_COARSE: usize = 6;

/// The bucket of a duration. The bounds double, so the position of the highest bit says it.
#[inline]
pub(super) fn time_bucket(nanos: u64) -> usize {
    let units = nanos.saturating_sub(1) / 250_000;
    ((u64::BITS - units.leading_zeros()) as usize).min(TIME.len())
}

/// The bucket of a size. Nearly all messages are at most 511 bytes long, where the bounds are hundreds.
#[inline]
pub(super) fn size_bucket(bytes: usize) -> usize {
    if bytes <= 511 {
        return bytes.div_ceil(100).min(FIRST_COARSE - 1);
    }
    FIRST_COARSE + SIZE.iter().skip(FIRST_COARSE).filter(|bound| bytes as f64 > **bound).count()
}

/// A histogram as plain numbers.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    /// The upper bounds, without the infinite one.
    pub(super) bounds: &'static [f64],
    /// How many values fell between each bound and the one before; the last has no bound.
    pub(super) counts: Vec<u64>,
    /// The sum of all values.
    pub(super) sum: f64,
}

impl Histogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(super) fn observe(&mut self, value: f64) {
        let bucket = self.bounds.iter().take_while(|bound| value > **bound).count();
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += value;
    }

    pub(super) fn observe_duration(&mut self, duration: Duration) {
        self.observe(duration.as_secs_f64());
    }

    pub(super) fn add(&mut self, counts: impl Iterator<Item = u64>, sum: f64) {
        for (own, more) in self.counts.iter_mut().zip(counts) {
            *own += more;
        }
        self.sum += sum;
    }

    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bucket by definition: the first whose bound is not below the value.
    fn by_search(bounds: &[f64], value: f64) -> usize {
        bounds.iter().position(|bound| value <= *bound).unwrap_or(bounds.len())
    }

    #[test]
    fn every_size_falls_into_the_bucket_that_its_bound_says() {
        for bytes in 0..=70_000 {
            assert_eq!(size_bucket(bytes), by_search(SIZE, bytes as f64), "{bytes} bytes");
        }
    }

    #[test]
    fn durations_at_and_beside_every_bound_fall_into_the_right_bucket() {
        for (index, bound) in TIME.iter().enumerate() {
            let nanos = (bound * 1e9).round() as u64;
            assert_eq!(time_bucket(nanos), index, "at {bound}");
            assert_eq!(time_bucket(nanos + 1), index + 1, "above {bound}");
            assert_eq!(time_bucket(nanos - 1), if index == 0 { 0 } else { index }, "below {bound}");
        }
        assert_eq!(time_bucket(0), 0);
        assert_eq!(time_bucket(u64::MAX), TIME.len());
    }

    #[test]
    fn a_value_on_a_bound_belongs_to_it() {
        let mut histogram = Histogram::new(SLIM);
        for value in [0.0, 0.00025, 0.0026, 3.0] {
            histogram.observe(value);
        }
        assert_eq!(histogram.counts, [2, 0, 1, 0, 0, 1]);
        assert_eq!(histogram.count(), 4);
    }
}
