//! Kinds of queries, and the shares that clusters ask them in: of the counted figures and of the comparison in
//! `benches/load` alike.

use fastrand::Rng;

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A of a ClusterSetIP service: one record.
    ServiceA,
    /// A of a headless service: all its endpoints.
    HeadlessA,
    /// A of one endpoint.
    EndpointA,
    /// SRV of a ClusterSetIP service's port: one record.
    ServiceSrv,
    /// A of a service that is not there.
    NxDomain,
    /// AAAA of a service that has IPv4 alone.
    NoData,
    /// SRV of a headless service's port. Not in the mix: over UDP it is mostly cut short.
    HeadlessSrv,
}

/// The kinds of the mix, and the share of each in percent.
pub const MIX: [(Kind, u32); 6] = [
    (Kind::ServiceA, 60),
    (Kind::HeadlessA, 12),
    (Kind::EndpointA, 3),
    (Kind::ServiceSrv, 10),
    (Kind::NxDomain, 10),
    (Kind::NoData, 5),
];

impl Kind {
    /// A kind, as often as the mix says.
    pub fn of_the_mix(rng: &mut Rng) -> Self {
        let mut left = rng.u32(0..100);
        for (kind, share) in MIX {
            match left.checked_sub(share) {
                None => return kind,
                Some(rest) => left = rest,
            }
        }
        unreachable!("the shares are 100 together")
    }
}
