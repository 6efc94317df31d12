//! Latencies: counted in buckets that are a 64th of their value wide.

use std::time::Duration;

/// Buckets of each power of two.
const STEPS: u32 = 64;

/// Counts of durations.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    total: u64,
    longest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        // Up to 2^40 ns, some 18 minutes.
        Self { counts: vec![0; (STEPS * 36) as usize].into(), total: 0, longest: 0 }
    }
}

impl Histogram {
    /// Counts one of so many nanoseconds.
    pub fn add(&mut self, nanos: u64) {
        let last = self.counts.len() - 1;
        self.counts[bucket(nanos).min(last)] += 1;
        self.total += 1;
        self.longest = self.longest.max(nanos);
    }

    /// How many were counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// What this share of them took at most, to a 64th; nothing if there are none.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (i, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(upper(i).min(self.longest));
            }
        }
        Duration::from_nanos(self.longest)
    }

    /// The longest one.
    #[must_use]
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }
}

fn bucket(nanos: u64) -> usize {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(STEPS.ilog2() + 1);
    // Below 2 x STEPS every value has a bucket of its own.
    ((nanos >> shift) + u64::from(shift * STEPS)) as usize
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let steps = u64::from(STEPS);
    let shift = (bucket / steps).saturating_sub(1);
    ((bucket - shift * steps + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_at_most_its_buckets_end_and_within_a_64th_of_it() {
        for nanos in (0..5_000).chain((5_000..1 << 39).step_by(7_777_777_777)) {
            let end = upper(bucket(nanos));
            assert!(end >= nanos && end - nanos <= nanos / 64, "{nanos} ends in {end}");
        }
    }

    #[test]
    fn quantiles_of_a_row_of_numbers() {
        let mut histogram = Histogram::default();
        (1..=10_000).for_each(|n| histogram.add(n * 1_000));
        let us = |share| histogram.quantile(share).as_micros();
        assert!((5_000..5_100).contains(&us(0.5)) && (9_900..10_001).contains(&us(0.99)), "{} {}", us(0.5), us(0.99));
        assert_eq!(histogram.quantile(1.0), histogram.longest());
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    }
}
