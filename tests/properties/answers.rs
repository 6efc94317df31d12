//! Names are a tree, and what an answer points to is there.

use std::collections::BTreeMap;

use namesake::feed::load;
use proptest::prelude::*;

use crate::support::{A, AAAA, ANY, Ask, HTTPS, NOERROR, NXDOMAIN, SOA, SRV, TXT, Zone};
use crate::world;

/// The rcode of every name, the same for every type.
fn rcodes(zone: &Zone) -> Result<BTreeMap<String, u16>, TestCaseError> {
    let mut rcodes = BTreeMap::new();
    for name in world::names() {
        let rcode = |qtype| zone.send(&Ask::new(&zone.absolute(&name), qtype)).message.rcode();
        let first = rcode(A);
        for qtype in [AAAA, SRV, TXT, ANY, SOA, HTTPS] {
            prop_assert_eq!(rcode(qtype), first, "{} type {}", &name, qtype);
        }
        rcodes.insert(name, first);
    }
    Ok(rcodes)
}

proptest! {
    #![proptest_config(crate::cases(60))]

    /// D9, RFC 8020: one rcode per name, and nothing exists below a name that does not.
    #[test]
    fn a_name_exists_for_all_types_and_so_do_its_ancestors(options in world::options(), world in world::world()) {
        let zone = Zone::new(load(options, world));
        for (name, rcode) in rcodes(&zone)? {
            prop_assert!(matches!(rcode, NOERROR | NXDOMAIN), "{} says {}", name, rcode);
            let mut ancestor = &*name;
            while let Some((_, parent)) = ancestor.split_once('.').filter(|_| rcode == NOERROR) {
                let above = zone.send(&Ask::new(&zone.absolute(parent), TXT)).message.rcode();
                prop_assert_eq!(above, NOERROR, "{} exists, {} above it does not", &name, parent);
                ancestor = parent;
            }
        }
    }

    /// ANY says HINFO exactly where some type has data.
    #[test]
    fn any_tells_whether_a_name_has_data(options in world::options(), world in world::world()) {
        let zone = Zone::new(load(options, world));
        for name in world::names() {
            let count = |qtype| zone.send(&Ask::new(&zone.absolute(&name), qtype)).count();
            let has_data = [A, AAAA, SRV, TXT, SOA].into_iter().any(|qtype| count(qtype) > 0);
            prop_assert_eq!(count(ANY) > 0, has_data, "{}", name);
        }
    }

    /// Case SRV-01: every target of any answer resolves to an address from the same data, and the glue is that address.
    #[test]
    fn every_srv_target_resolves(options in world::options(), world in world::world()) {
        let zone = Zone::new(load(options, world));
        for name in world::names() {
            let answer = zone.send(&Ask::new(&zone.absolute(&name), SRV).tcp());
            for record in &answer.message.answers {
                let target = record.data.rsplit(' ').next().unwrap_or_default();
                let addresses = [zone.data(target, A), zone.data(target, AAAA)].concat();
                prop_assert!(!addresses.is_empty(), "{} does not resolve\n{}", target, answer);
                let mut glue: Vec<_> =
                    answer.message.additionals.iter().filter(|r| r.owner == target).map(|r| r.data.clone()).collect();
                let mut addresses = addresses;
                glue.sort();
                addresses.sort();
                prop_assert_eq!(glue, addresses, "glue of {}\n{}", target, answer);
            }
        }
    }

    /// The addresses of a headless service are those of its endpoints' names, and the other way round.
    #[test]
    fn a_headless_service_is_the_sum_of_its_endpoints(world in world::world()) {
        let zone = Zone::new(load(Default::default(), world));
        for name in world::names().into_iter().filter(|name| name.split('.').count() == 3) {
            let targets = zone.data(&name, SRV);
            let targets: Vec<_> = targets.iter().filter_map(|r| r.rsplit(' ').next()).collect();
            let all = [zone.data(&name, A), zone.data(&name, AAAA)].concat();
            for target in targets {
                for address in [zone.data(target, A), zone.data(target, AAAA)].concat() {
                    prop_assert!(all.contains(&address), "{} of {} is not in {}", address, target, name);
                }
            }
        }
    }
}
