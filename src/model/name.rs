//! Labels and keys: what may become part of a name.

use std::fmt;
use std::net::IpAddr;

use smol_str::SmolStr;

/// One DNS label in lower case: 1 to 63 bytes of letters, digits, `-` and `_` (RFC 1035 §2.3.4, RFC 2181 §11).
///
/// Names from Kubernetes are narrower still (RFC 1123 without `_`); what is refused here could not be asked for.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(SmolStr);

impl Label {
    /// The label of `text` in lower case, or `None` where it can't be one: empty, longer than 63 bytes, or with
    /// bytes other than ASCII letters, digits, `-` and `_`.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        Self::fits(text).then(|| Self(lower_case(text)))
    }

    fn fits(text: &str) -> bool {
        (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    }

    /// The text, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Nearly all text is in lower case already, and most of it is short enough to need no memory of its own.
fn lower_case(text: &str) -> SmolStr {
    if text.bytes().any(|b| b.is_ascii_uppercase()) { text.to_ascii_lowercase().into() } else { text.into() }
}

/// The id of a member cluster: one label, or two joined by a dot (KEP-1645, Terminology: the cluster's name, or
/// `name.context`), in lower case.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(SmolStr);

impl ClusterId {
    /// The id of `text`, or `None` where it is not one or two labels.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut labels = text.split('.');
        let (first, second, rest) = (labels.next()?, labels.next(), labels.next());
        let valid = rest.is_none() && Label::fits(first) && second.is_none_or(Label::fits);
        valid.then(|| Self(lower_case(text)))
    }

    /// The text, in lower case, with a dot between two labels.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its one or two labels, the leftmost first.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A service of the clusterset: its namespace and name, which are the same in every cluster (namespace sameness).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: Label,
    /// The name of the import, and of the Services behind it.
    pub name: Label,
}

impl ServiceKey {
    /// The key of these two, or `None` where either can't be a label.
    #[must_use]
    pub fn new(namespace: &str, name: &str) -> Option<Self> {
        Some(Self { namespace: Label::new(namespace)?, name: Label::new(name)? })
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An EndpointSlice: its namespace and object name (a DNS subdomain, never part of a name that is served).
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SliceKey {
    /// The namespace.
    pub namespace: Label,
    /// The object's name.
    pub name: Box<str>,
}

impl fmt::Display for SliceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for SliceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The label that stands for an endpoint without a hostname: its address in canonical text with dashes.
///
/// CoreDNS's rule, with a `0` where the label would end (or begin) with a dash, since RFC 1123 forbids it:
/// `10.1.0.5` → `10-1-0-5`, `2001:db8::` → `2001-db8--0`, `::5` → `0--5`.
#[must_use]
pub fn dashed_address(address: IpAddr) -> String {
    let mut label = address.to_string().replace(['.', ':'], "-");
    if label.ends_with('-') {
        label.push('0');
    }
    if label.starts_with('-') {
        label.insert(0, '0');
    }
    label
}
