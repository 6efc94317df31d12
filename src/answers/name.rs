//! The name that is asked for, as bytes: in lower case, with the places of its labels.

/// A name as it is on the wire, in lower case: length octets and labels, the root's zero octet at the end.
///
/// It borrows the message where that is in lower case already, as it most often is; else [`Folded`] holds the copy.
#[derive(Debug, Clone, Copy)]
pub struct QueryName<'a> {
    lower: &'a [u8],
    /// Where the first labels' length octets stand, and behind the last one the root's. Further ones are walked to:
    /// names that exist have fewer.
    starts: [u8; STARTS],
    labels: u8,
}

/// How many places of labels are kept.
const STARTS: usize = 16;

/// Room for a name in lower case, where it is not asked for in lower case.
#[derive(Debug, Default)]
pub struct Folded(Option<[u8; 255]>);

impl<'a> QueryName<'a> {
    /// Reads the uncompressed name at the start of `bytes`. `None`: compressed, cut short, or longer than 255 octets
    /// (RFC 1035 §2.3.4).
    ///
    /// Length octets are below `A`, so lower-casing the whole of it is safe. Only ASCII letters fold (RFC 4343).
    #[must_use]
    #[inline]
    pub fn read(bytes: &'a [u8], folded: &'a mut Folded) -> Option<Self> {
        let name = Self::read_lower(bytes)?;
        if may_have_upper(name.lower) { Some(Self { lower: folded.fold(name.lower)?, ..name }) } else { Some(name) }
    }

    /// Reads a name that is in lower case already.
    #[inline]
    pub(super) fn read_lower(bytes: &'a [u8]) -> Option<Self> {
        let mut starts = [0; STARTS];
        let (mut at, mut labels) = (0usize, 0u8);
        let bytes = bytes.get(..255).unwrap_or(bytes);
        loop {
            if let Some(start) = starts.get_mut(usize::from(labels)) {
                *start = at as u8;
            }
            match *bytes.get(at)? {
                0 => break,
                len @ 1..=63 => at += usize::from(len) + 1,
                _ => return None,
            }
            labels += 1;
        }
        Some(Self { lower: bytes.get(..=at)?, starts, labels })
    }

    /// Its length on the wire, in octets.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.lower.len()
    }

    /// Whether it is the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels == 0
    }

    /// How many labels it has, the root not counted.
    #[must_use]
    #[inline]
    pub fn labels(&self) -> usize {
        usize::from(self.labels)
    }

    /// Where the `i`th label (from the left) begins; for `labels()`, where the root's octet stands.
    #[inline]
    fn offset(&self, i: usize) -> usize {
        self.starts.get(i).map_or_else(|| self.far(i), |start| usize::from(*start))
    }

    #[cold]
    #[inline(never)]
    fn far(&self, i: usize) -> usize {
        let next = |at: usize| at + 1 + self.lower.get(at).map_or(0, |len| usize::from(*len));
        (STARTS - 1..i).fold(usize::from(self.starts[STARTS - 1]), |at, _| next(at))
    }

    /// The wire form of the labels from `from` up to but not including `to`, without the root's octet.
    #[inline(always)]
    pub(super) fn range(&self, from: usize, to: usize) -> &'a [u8] {
        self.lower.get(self.offset(from)..self.offset(to)).unwrap_or_default()
    }

    /// The wire form of the labels from `from` on, with the root's octet.
    #[inline]
    pub(super) fn from(&self, from: usize) -> &'a [u8] {
        self.lower.get(self.offset(from)..).unwrap_or_default()
    }

    /// The text of the `i`th label from the left, without its length octet.
    #[inline]
    pub(super) fn label(&self, i: usize) -> &'a [u8] {
        self.range(i, i + 1).get(1..).unwrap_or_default()
    }

    /// The whole name in lower case, the root's octet included.
    #[must_use]
    pub fn wire(&self) -> &'a [u8] {
        self.lower
    }
}

impl Folded {
    fn fold(&mut self, name: &[u8]) -> Option<&[u8]> {
        let room = self.0.insert([0; 255]).get_mut(..name.len())?;
        room.copy_from_slice(name);
        room.make_ascii_lowercase();
        Some(room)
    }
}

/// Whether there may be a letter from `A` to `Z`: an octet from 0x40 to 0x5E, eight at a time. Names have none of the
/// others among these.
#[inline]
fn may_have_upper(name: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    /// Bit 7 of each octet: whether it is at least 0x40, and less than 0x5F. Carries of octets that are no letters
    /// may mark one too many, and never hide one.
    #[inline]
    fn marked(found: u64, octets: &[u8; 8]) -> u64 {
        let word = u64::from_ne_bytes(*octets);
        found | (word << 1 & !word.wrapping_add((0x80 - 0x5F) * ONES))
    }
    let (words, rest) = name.as_chunks::<8>();
    // The last eight once more, rather than the rest one by one.
    match name.last_chunk::<8>() {
        Some(last) => words.iter().fold(marked(0, last), marked) & (0x80 * ONES) != 0,
        None => rest.iter().any(u8::is_ascii_uppercase),
    }
}

/// Whether dotted text can be a name; a label is what stands between dots.
#[must_use]
pub fn is_name(text: &str) -> bool {
    wire(text).is_some()
}

/// The wire form of dotted text in lower case, with the root's octet; `None` where a label is empty or longer than
/// 63 bytes, or the whole is longer than 255.
pub(super) fn wire(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + 2);
    let text = text.strip_suffix('.').unwrap_or(text);
    for label in text.split('.').filter(|_| !text.is_empty()) {
        out.push(u8::try_from(label.len()).ok().filter(|len| (1..=63).contains(len))?);
        out.extend(label.bytes().map(|b| b.to_ascii_lowercase()));
    }
    out.push(0);
    (out.len() <= 255).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::{Folded, QueryName, may_have_upper, wire};

    #[test]
    fn upper_case_is_found_wherever_it_stands() {
        for len in 0..40 {
            for (at, octet) in (0..len).flat_map(|at| (0..=255u8).map(move |octet| (at, octet))) {
                // Beside octets of every sort: what carries must not hide a letter.
                for beside in [b'-', b'_', b'z', 0xFF, 0xDF, 0x80, 0] {
                    let mut name = vec![beside; len];
                    name[at] = octet;
                    assert!(may_have_upper(&name) || !octet.is_ascii_uppercase(), "{octet} at {at} of {len}");
                }
                let mut name = vec![b'_'; len];
                name[at] = octet;
                let usual = octet.is_ascii_lowercase() || octet.is_ascii_digit() || b"-_\x01\x3F".contains(&octet);
                assert!(!usual || !may_have_upper(&name), "{octet} at {at} of {len} is taken for a letter");
            }
        }
    }

    #[test]
    fn labels_are_found_also_behind_those_that_are_kept() {
        let text = (0..60).map(|i| format!("l{i}")).collect::<Vec<_>>().join(".").to_uppercase();
        let upper: Vec<u8> = wire(&text).expect("a name").to_ascii_uppercase();
        let mut folded = Folded::default();
        let name = QueryName::read(&upper, &mut folded).expect("a name");
        assert_eq!(name.labels(), 60);
        for i in 0..60 {
            assert_eq!(name.label(i), format!("l{i}").as_bytes());
        }
        assert_eq!(name.from(60), [0]);
        assert_eq!(name.range(58, 60), b"\x03l58\x03l59");
    }
}
