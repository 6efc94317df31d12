//! The name that is asked for, as bytes: in lower case, with the places of its labels.

/// A name as it is on the wire, in lower case: length octets and labels, the root's zero octet at the end.
///
/// Length octets are below `A`, so lower-casing the whole of it is safe. Only ASCII letters fold (RFC 4343).
#[derive(Debug, Clone, Copy)]
pub struct QueryName {
    lower: [u8; 255],
    /// Where each label's length octet stands.
    offsets: [u8; 127],
    len: u8,
    labels: u8,
}

impl QueryName {
    /// Reads the uncompressed name at the start of `bytes`. `None`: compressed, cut short, or longer than 255 octets
    /// (RFC 1035 §2.3.4).
    #[must_use]
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut name = Self { lower: [0; 255], offsets: [0; 127], len: 0, labels: 0 };
        let (mut at, mut labels) = (0usize, 0usize);
        loop {
            let len = usize::from(*bytes.get(at)?);
            if len == 0 {
                break;
            }
            if len > 63 || at + len + 1 > 254 {
                return None;
            }
            *name.offsets.get_mut(labels)? = at as u8;
            labels += 1;
            at += len + 1;
        }
        let len = at + 1;
        let (lower, source) = (name.lower.get_mut(..len)?, bytes.get(..len)?);
        lower.copy_from_slice(source);
        lower.make_ascii_lowercase();
        name.len = len as u8;
        name.labels = labels as u8;
        Some(name)
    }

    /// The name of dotted text, for `explain` and tests; a label is what stands between dots. `None` where it can't
    /// be a name.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::read(&wire(text)?)
    }

    /// Its length on the wire, in octets.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether it is the root.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels == 0
    }

    /// How many labels it has, the root not counted.
    #[must_use]
    pub fn labels(&self) -> usize {
        usize::from(self.labels)
    }

    /// Where the `i`th label (from the left) begins; for `labels()`, where the root's octet stands.
    #[inline]
    pub(super) fn offset(&self, i: usize) -> usize {
        if i < self.labels() { usize::from(self.offsets[i]) } else { self.len().saturating_sub(1) }
    }

    /// The wire form of the labels from `from` up to but not including `to`, without the root's octet.
    #[inline]
    pub(super) fn range(&self, from: usize, to: usize) -> &[u8] {
        self.lower.get(self.offset(from)..self.offset(to)).unwrap_or_default()
    }

    /// The text of the `i`th label from the left, without its length octet.
    #[inline]
    pub(super) fn label(&self, i: usize) -> &[u8] {
        self.range(i, i + 1).get(1..).unwrap_or_default()
    }

    /// The whole name in lower case, the root's octet included.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        self.lower.get(..self.len()).unwrap_or_default()
    }
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
