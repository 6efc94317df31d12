//! A zone that is served: its name in the forms that answering needs.

use super::name::{QueryName, wire};

/// A zone.
#[derive(Debug, Clone)]
pub struct Zone {
    /// Its name without final dot, in lower case.
    pub name: String,
    /// Its place in `Options::zones`.
    pub index: u8,
    wire: Box<[u8]>,
    labels: usize,
}

impl Zone {
    /// The zone of `name`; `None` where it can't be a name, is the root, or is so long that nothing fits below it.
    #[must_use]
    pub fn new(name: &str, index: u8) -> Option<Self> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let wire = wire(&name)?.into_boxed_slice();
        let labels = QueryName::read_lower(&wire)?.labels();
        // `ns.dns.` and `hostmaster.` must fit in front of it.
        (labels > 0 && wire.len() <= 240).then_some(Self { name, index, wire, labels })
    }

    /// Its wire form in lower case, the root's octet included.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// How many labels it has.
    #[must_use]
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many labels of `name` stand in front of this zone, if it is at or below it. Whole labels are compared
    /// (`xclusterset.local` is not below `clusterset.local`).
    #[inline]
    pub(super) fn labels_in_front(&self, name: &QueryName<'_>) -> Option<usize> {
        let front = name.labels().checked_sub(self.labels)?;
        (name.from(front) == &*self.wire).then_some(front)
    }
}
