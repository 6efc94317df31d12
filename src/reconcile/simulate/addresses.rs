//! Cluster IPs that follow from names, so that every run gives the same.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::model::{ClusterId, ServiceKey};
use crate::reconcile::World;
use crate::reconcile::objects::Family;

/// How many addresses are tried before one is given twice.
const MOST_TRIED: u32 = 1 << 20;

/// Which Service was given an address. It is free again when that Service does not have it any more.
#[derive(Debug, Clone, Default)]
pub(super) struct Addresses(HashMap<(ClusterId, IpAddr), ServiceKey>);

impl Addresses {
    /// A Service has an address by itself.
    pub(super) fn hold(&mut self, cluster: &ClusterId, key: &ServiceKey, ip: IpAddr) {
        self.0.insert((cluster.clone(), ip), key.clone());
    }

    /// An address for a Service: the wished one if it is free, else one that follows from its name.
    pub(super) fn give(
        &mut self,
        world: &World,
        cluster: &ClusterId,
        key: &ServiceKey,
        family: Family,
        wish: Option<IpAddr>,
    ) -> IpAddr {
        let text = format!("{cluster}/{key}");
        let seed = text.bytes().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
        let nth = |n: u32| {
            let [_, a, b, c] = seed.wrapping_add(n).to_be_bytes();
            let (a, bc) = (a & 15, u16::from_be_bytes([b, c]));
            match family {
                Family::V4 => IpAddr::V4(Ipv4Addr::new(10, 96 | a, b, c)),
                Family::V6 => IpAddr::V6(Ipv6Addr::new(0xfd00, 0x96, 0, 0, 0, 0, u16::from(a), bc)),
            }
        };
        let free = |ip: &IpAddr| {
            let holder = self.0.get(&(cluster.clone(), *ip));
            let service = holder.and_then(|holder| world.members().get(cluster)?.local(holder)?.service.as_ref());
            service.is_none_or(|service| !service.spec.ips.contains(ip))
        };
        let given = wish.into_iter().chain((0..MOST_TRIED).map(nth)).find(free).unwrap_or_else(|| nth(0));
        self.hold(cluster, key, given);
        given
    }
}
