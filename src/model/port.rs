//! Ports of imports and slices.

use super::Label;

/// A transport protocol of Kubernetes' Service API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// `_tcp`
    Tcp,
    /// `_udp`
    Udp,
    /// `_sctp`
    Sctp,
}

impl Protocol {
    /// The protocol of Kubernetes' spelling; absent means TCP (the API's default).
    #[must_use]
    pub fn new(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("" | "TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some("SCTP") => Some(Self::Sctp),
            Some(_) => None,
        }
    }

    /// The label of an SRV owner name (RFC 2782): `_tcp`, `_udp`, `_sctp`.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Tcp => "_tcp",
            Self::Udp => "_udp",
            Self::Sctp => "_sctp",
        }
    }
}

/// A port of an import (what clients ask for) or of a slice (what the endpoints listen on).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port {
    /// The name; an unnamed port has no `_port._protocol` name, but is listed at the bare service name.
    pub name: Option<Label>,
    /// The protocol.
    pub protocol: Protocol,
    /// The number.
    pub number: u16,
}
