//! Durations, and what is said of many of them.

use std::fmt;
use std::time::Duration;

/// Durations of one kind.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<Duration>);

impl Figures {
    pub fn add(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest duration that so many in a hundred do not exceed.
    fn percentile(sorted: &[Duration], percent: usize) -> Duration {
        sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sorted = self.0.clone();
        sorted.sort();
        let Some(most) = sorted.last() else { return f.write_str("none") };
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let (half, nearly_all) = (Self::percentile(&sorted, 50), Self::percentile(&sorted, 95));
        write!(
            f,
            "{:.0} / {:.0} / {:.0} ms (median, 95 %, most of {})",
            ms(half),
            ms(nearly_all),
            ms(*most),
            sorted.len()
        )
    }
}
