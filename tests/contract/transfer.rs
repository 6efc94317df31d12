//! 1.9, X1 to X3: zone transfer is refused.

use crate::support::*;

#[test]
fn dns_x1_transfers_are_prohibited() {
    let zone = zone(F1);
    for qtype in [AXFR, IXFR] {
        zone.ask("", qtype).refused().ede(PROHIBITED);
        zone.send(&Ask::new("clusterset.local.", qtype).tcp()).refused();
    }
}

#[test]
fn dns_x2_axfr_over_udp_is_refused() {
    zone(F1).send(&Ask::new("clusterset.local.", AXFR).edns(Edns::size(1232))).refused().ede(PROHIBITED);
    zone(F1).send(&Ask::new("clusterset.local.", AXFR)).refused();
}

#[test]
fn dns_x3_ixfr_over_udp_is_refused() {
    let mut soa = vec![0, 0];
    soa.extend([0; 20]);
    let mut ask = Ask::new("clusterset.local.", IXFR);
    zone(F1).send(&ask).refused();
    ask.authorities = vec![record(&[b"clusterset", b"local"], SOA, IN, 5, &soa)];
    zone(F1).send(&ask).refused();
    zone(F1).send(&ask.edns(Edns::size(1232))).refused().ede(PROHIBITED);
}

#[test]
fn dns_x12_transfer_of_a_name_below_the_apex_or_of_another_zone_is_refused() {
    let zone = zone(F1);
    for name in ["web.shop.svc", "svc", "nope"] {
        zone.ask(name, AXFR).refused();
        zone.ask(name, IXFR).refused();
    }
    zone.ask("example.org.", AXFR).refused().ede(NOT_AUTHORITATIVE);
}
