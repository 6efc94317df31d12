//! What is not served, and why: counted by reason, logged once, shown by `explain`.

use std::fmt;

/// Why a part of an object (or the whole of it) is not served. Each is a value of the metric
/// `namesake_records_skipped`'s label `reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipReason {
    /// The object does not decode; the last readable version of it, if any, is served.
    Unreadable,
    /// A name or namespace that can't be a DNS label.
    BadName,
    /// Text that is no IP address, or an address of the other family (`dns.md` C8, C14).
    BadAddress,
    /// An address nobody may have as a service or an endpoint (`dns.md` C16, H18).
    ForbiddenAddress,
    /// A slice of type FQDN (`dns.md` H10).
    FqdnSlice,
    /// No usable `source-cluster` label: no endpoint names, no SRV (`dns.md` H12).
    NoCluster,
    /// A hostname that can't be a label, or begins with `_` (`dns.md` E12).
    BadHostname,
    /// A port with an unknown protocol, no number, or a name that can't be a label.
    BadPort,
    /// A `spec.type` that is neither ClusterSetIP nor Headless (`dns.md` C15).
    UnknownType,
    /// A name longer than 255 bytes in an answer (`dns.md` T22).
    NameTooLong,
}

impl SkipReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 10] = [
        Self::Unreadable,
        Self::BadName,
        Self::BadAddress,
        Self::ForbiddenAddress,
        Self::FqdnSlice,
        Self::NoCluster,
        Self::BadHostname,
        Self::BadPort,
        Self::UnknownType,
        Self::NameTooLong,
    ];

    /// The label value.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::BadName => "bad_name",
            Self::BadAddress => "bad_address",
            Self::ForbiddenAddress => "forbidden_address",
            Self::FqdnSlice => "fqdn_slice",
            Self::NoCluster => "no_cluster",
            Self::BadHostname => "bad_hostname",
            Self::BadPort => "bad_port",
            Self::UnknownType => "unknown_type",
            Self::NameTooLong => "name_too_long",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is not served.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Skipped {
    /// Why.
    pub reason: SkipReason,
    /// What and where, for a person: `spec.ips[1]: "not-an-ip" is no IP address`.
    pub what: Box<str>,
}
