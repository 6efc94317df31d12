//! The SOA serial: it grows on every change of the record set, and never runs ahead of the clock.

use std::sync::atomic::{AtomicU32, Ordering};

/// The serial of all zones (they change together).
///
/// A change takes `max(previous + 1, now)` at most once a second, in RFC 1982 arithmetic: so a secondary sees every
/// state, a burst does not run the serial ahead of the clock, and a restart does not fall back behind what was
/// served. `now` is Unix time in seconds.
#[derive(Debug)]
pub struct Serial {
    current: AtomicU32,
}

impl Serial {
    /// A serial that starts at `now`.
    #[must_use]
    pub fn new(now: u32) -> Self {
        Self { current: AtomicU32::new(now) }
    }

    /// Starts over at `now`; for whoever brings the clock.
    pub fn start(&self, now: u32) {
        self.current.store(now, Ordering::Relaxed);
    }

    /// The serial to answer with.
    #[must_use]
    pub fn get(&self) -> u32 {
        self.current.load(Ordering::Relaxed)
    }

    /// Takes a new serial for a changed record set; `false` where that has to wait for the next second.
    ///
    /// One writer calls it (the feed), so load and store need not be one step.
    pub fn advance(&self, now: u32) -> bool {
        let current = self.get();
        // RFC 1982 §3.2: `now` is newer if it is less than half the number space ahead.
        let ahead = now.wrapping_sub(current);
        if ahead == 0 || ahead > u32::MAX / 2 {
            return false; // this second is taken, or the clock was set back: wait rather than run ahead of it
        }
        self.current.store(now, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Serial;

    #[test]
    fn dns_d20_serial_grows_once_a_second_and_waits_for_the_clock() {
        let serial = Serial::new(100);
        assert!(!serial.advance(100), "the second of the start is taken");
        assert!(serial.advance(101));
        assert_eq!(serial.get(), 101);
        assert!(!serial.advance(101));
        assert!(!serial.advance(90), "a clock that was set back never lowers it");
        assert_eq!(serial.get(), 101);
        assert!(serial.advance(5000));
        let wrapping = Serial::new(u32::MAX);
        assert!(wrapping.advance(3), "RFC 1982: 3 is newer than 2^32 - 1");
    }
}
