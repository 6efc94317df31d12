//! A walk over a message's records, without reading what is in them: what hickory-proto does not tell.

/// What a walk finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scan {
    /// Where the question ends.
    pub(super) question_end: usize,
    /// How many OPT records there are (RFC 6891 §6.1.1: more than one is FORMERR).
    pub(super) opts: usize,
    /// Whether an OPT's owner is not the root (§6.1.2).
    pub(super) named_opt: bool,
}

impl Scan {
    /// Walks a message with one question; `None` where it ends too early.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let count = |at: usize| Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]));
        let question_end = skip_name(message, 12)? + 4;
        message.get(question_end - 4..question_end)?;
        let mut scan = Self { question_end, opts: 0, named_opt: false };
        let records = u32::from(count(6)?) + u32::from(count(8)?) + u32::from(count(10)?);
        let mut at = question_end;
        for _ in 0..records {
            let fixed = skip_name(message, at)?;
            if count(fixed)? == 41 {
                scan.opts += 1;
                scan.named_opt |= message.get(at) != Some(&0);
            }
            at = fixed + 10 + usize::from(count(fixed + 8)?);
            message.get(fixed..at)?;
        }
        Some(scan)
    }
}

/// Where the name at `at` ends: behind its root octet, or behind its first pointer (RFC 1035 §4.1.4).
fn skip_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            len @ 1..=63 => at += usize::from(len) + 1,
            0xC0..=0xFF => return message.get(at + 1).map(|_| at + 2),
            _ => return None,
        }
    }
}
