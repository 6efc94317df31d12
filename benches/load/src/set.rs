//! What is served: sets of services that differ in nothing but their size, by the naming of `tests/support/mix.rs`.
//!
//! * `svc-<i>.ns-<j>`: ClusterSetIP, one address, a port `http`.
//! * `db-<i>.ns-<j>`: headless, endpoints `pod-<n>` in `cluster-<i mod 5>`, in slices of at most 100, a port `http`.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The zone of every set.
pub const ZONE: &str = "clusterset.local";

/// The most endpoints in a slice, as Kubernetes' own controllers write them.
pub const SLICE: u32 = 100;

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Set {
    /// ClusterSetIP services.
    pub services: u32,
    /// Headless services.
    pub headless: u32,
    /// Endpoints of each headless service.
    pub endpoints: u32,
    /// Namespaces that they are spread over.
    pub namespaces: u32,
}

/// The named sets.
const NAMED: [(&str, Set); 4] = [
    // The set of `performance.md`.
    ("small", Set { services: 5_000, headless: 500, endpoints: 20, namespaces: 100 }),
    // 20,600 imports with 100,000 endpoints: where CoreDNS's memory and start were measured.
    ("20k", Set { services: 19_600, headless: 1_000, endpoints: 100, namespaces: 200 }),
    // Where caches are cold.
    ("100k", Set { services: 100_000, headless: 5_000, endpoints: 20, namespaces: 1_000 }),
    // A million endpoints.
    ("1m", Set { services: 90_000, headless: 10_000, endpoints: 100, namespaces: 1_000 }),
];

impl Set {
    /// So many services, of which every eleventh is headless with 20 endpoints: the shares of `small`.
    #[must_use]
    pub fn of(services: u32) -> Self {
        let headless = (services / 11).max(1);
        Self { services: (services - headless).max(1), headless, endpoints: 20, namespaces: (services / 50).max(1) }
    }

    /// Services of both kinds: so many ServiceImports there are.
    #[must_use]
    pub fn imports(self) -> u32 {
        self.services + self.headless
    }

    /// Endpoints of all services together.
    #[must_use]
    pub fn all_endpoints(self) -> u32 {
        self.headless * self.endpoints
    }

    /// The namespace of the service with this number.
    #[must_use]
    pub fn namespace(self, i: u32) -> u32 {
        i % self.namespaces
    }

    /// `svc-7.ns-7`, without the zone.
    #[must_use]
    pub fn service(self, i: u32) -> String {
        format!("svc-{i}.ns-{}", self.namespace(i))
    }

    /// `db-7.ns-7`, without the zone.
    #[must_use]
    pub fn headless(self, i: u32) -> String {
        format!("db-{i}.ns-{}", self.namespace(i))
    }

    /// The one address of a ClusterSetIP service.
    #[must_use]
    pub fn service_address(self, i: u32) -> Ipv4Addr {
        let [_, a, b, c] = i.to_be_bytes();
        Ipv4Addr::new(10, a, b, c)
    }

    /// The address of an endpoint.
    #[must_use]
    pub fn endpoint_address(self, headless: u32, endpoint: u32) -> Ipv4Addr {
        let [_, a, b, c] = (headless * self.endpoints + endpoint).to_be_bytes();
        Ipv4Addr::new(100, a, b, c)
    }
}

/// The cluster that exports the service with this number.
#[must_use]
pub fn cluster(i: u32) -> u32 {
    i % 5
}

impl FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, set)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*set);
        }
        match text.parse() {
            Ok(n @ 2..=1_000_000) => Ok(Self::of(n)),
            _ => Err("a set is small, 20k, 100k, 1m, or a number of services from 2 to 1000000".to_owned()),
        }
    }
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, set)| set == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.imports()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_so_many_services_and_a_name_comes_back_as_itself() {
        assert_eq!("1000".parse::<Set>().map(Set::imports), Ok(1000));
        assert_eq!("small".parse::<Set>().map(|set| set.to_string()), Ok("small".to_owned()));
        assert_eq!("20k".parse::<Set>().map(|set| (set.imports(), set.all_endpoints())), Ok((20_600, 100_000)));
        assert!("1".parse::<Set>().is_err() && "many".parse::<Set>().is_err());
    }

    #[test]
    fn no_two_addresses_are_one_in_the_largest_set() {
        let set: Set = "1m".parse().unwrap();
        assert_eq!(set.endpoint_address(9_999, 99), Ipv4Addr::new(100, 15, 66, 63));
        assert_eq!(set.service_address(89_999), Ipv4Addr::new(10, 1, 95, 143));
    }
}
