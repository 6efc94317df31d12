//! A walk over a message's records, without reading what is in them: what hickory-proto does not tell.

/// What a walk finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scan {
    /// Where the question ends.
    question_end: usize,
    /// How many OPT records there are (RFC 6891 §6.1.1: more than one is FORMERR).
    pub(super) opts: usize,
    /// Whether an OPT's owner is not the root (§6.1.2).
    pub(super) named_opt: bool,
    /// Where the length of the last OPT's options stands.
    pub(super) opt_length: Option<usize>,
    /// Whether NSID is asked for (RFC 5001).
    pub(super) nsid: bool,
}

impl Scan {
    /// Walks a message with one question; `None` where a record or an EDNS option ends too early.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let question_end = skip_name(message, 12)? + 4;
        message.get(question_end - 4..question_end)?;
        let mut scan = Self { question_end, opts: 0, named_opt: false, opt_length: None, nsid: false };
        let records = u32::from(number(message, 6)?) + u32::from(number(message, 8)?) + u32::from(number(message, 10)?);
        let mut at = question_end;
        for _ in 0..records {
            let fixed = skip_name(message, at)?;
            let end = fixed + 10 + usize::from(number(message, fixed + 8)?);
            let data = message.get(fixed + 10..end)?;
            if number(message, fixed)? == 41 {
                scan.opts += 1;
                scan.named_opt |= message.get(at) != Some(&0);
                scan.opt_length = Some(fixed + 8);
                scan.nsid |= has_nsid(data)?;
            }
            at = end;
        }
        Some(scan)
    }

    /// The message as hickory-proto should see it: without EDNS options, of which we have taken note (it would refuse
    /// the whole message for one that it can't read), and of one with two OPTs the question and an empty OPT alone.
    pub(super) fn readable(&self, message: &[u8]) -> Vec<u8> {
        const EMPTY_OPT: [u8; 11] = [0, 0, 41, 2, 0, 0, 0, 0, 0, 0, 0];
        let Some(length_at) = self.opt_length else { return message.to_vec() };
        if self.opts > 1 {
            let question = message.get(..self.question_end).unwrap_or_default();
            let mut readable = [question, &EMPTY_OPT].concat();
            if let Some(counts) = readable.get_mut(6..12) {
                counts.copy_from_slice(&[0, 0, 0, 0, 0, 1]);
            }
            return readable;
        }
        let options_end = length_at + 2 + usize::from(number(message, length_at).unwrap_or(0));
        let (before, after) = (message.get(..length_at), message.get(options_end..));
        [before.unwrap_or_default(), &[0, 0], after.unwrap_or_default()].concat()
    }
}

/// The number of two octets at `at`.
fn number(message: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?]))
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

/// Walks an OPT's options: code 2, length 2, data (RFC 6891 §6.1.2). `None` where one runs past the end.
fn has_nsid(mut options: &[u8]) -> Option<bool> {
    let mut nsid = false;
    while !options.is_empty() {
        let (&[code_hi, code_lo, length_hi, length_lo], rest) = options.split_first_chunk::<4>()?;
        nsid |= [code_hi, code_lo] == [0, 3];
        options = rest.get(usize::from(u16::from_be_bytes([length_hi, length_lo]))..)?;
    }
    Some(nsid)
}
