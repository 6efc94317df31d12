//! The sum of all shards, as CoreDNS's `coredns_dns_*` families.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus::proto::MetricFamily;

use super::family::Family;
use super::histogram::{Histogram, SIZE, TIME};
use super::shard::{DnsShard, Drop, RCODES, TYPE_SLOTS, TYPES, ZoneCounters};
use super::table::{
    DO_REQUESTS, DROPS, REQUEST_DURATION, REQUEST_SIZE, REQUESTS, RESPONSE_SIZE, RESPONSES, TRUNCATED_SETS,
};

/// A shard, and what it counts.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) server: String,
    pub(super) tcp: bool,
    pub(super) shard: Arc<DnsShard>,
}

/// The sums of one server, zone and protocol.
struct Sum {
    requests: [[u64; TYPE_SLOTS]; 2],
    responses: [u64; RCODES + 1],
    dnssec_ok: u64,
    duration: Histogram,
    query_size: Histogram,
    reply_size: Histogram,
}

impl Sum {
    fn new() -> Self {
        Self {
            requests: [[0; TYPE_SLOTS]; 2],
            responses: [0; RCODES + 1],
            dnssec_ok: 0,
            duration: Histogram::new(TIME),
            query_size: Histogram::new(SIZE),
            reply_size: Histogram::new(SIZE),
        }
    }

    fn add(&mut self, counters: &ZoneCounters) {
        fn loads(counters: &[AtomicU64]) -> impl Iterator<Item = u64> {
            counters.iter().map(|counter| counter.load(Relaxed))
        }
        for (own, more) in self.requests.iter_mut().flatten().zip(counters.requests.iter().flat_map(|row| loads(row))) {
            *own += more;
        }
        for (own, more) in self.responses.iter_mut().zip(loads(&counters.responses)) {
            *own += more;
        }
        self.dnssec_ok += counters.dnssec_ok.load(Relaxed);
        self.duration.add(loads(&counters.duration), counters.duration_nanos.load(Relaxed) as f64 / 1e9);
        self.query_size.add(loads(&counters.query_size), counters.query_bytes.load(Relaxed) as f64);
        self.reply_size.add(loads(&counters.reply_size), counters.reply_bytes.load(Relaxed) as f64);
    }
}

/// The families of all shards. `zones` are label values, `dropped` the last.
pub(super) fn collect(listeners: &[Listener], zones: &[String], plugin: &str, queue_drops: u64) -> Vec<MetricFamily> {
    let mut sums: BTreeMap<(&str, usize), [Sum; 2]> = BTreeMap::new();
    let mut cut = 0;
    let mut drops = [0; Drop::ALL.len()];
    for listener in listeners {
        for (zone, counters) in listener.shard.zones.iter().enumerate() {
            let [udp, tcp] = sums.entry((&listener.server, zone)).or_insert_with(|| [Sum::new(), Sum::new()]);
            if listener.tcp { tcp } else { udp }.add(counters);
        }
        cut += listener.shard.cut.load(Relaxed);
        for (sum, count) in drops.iter_mut().zip(&listener.shard.drops) {
            *sum += count.load(Relaxed);
        }
    }

    let mut requests = Family::new(&REQUESTS);
    let mut duration = Family::new(&REQUEST_DURATION);
    let mut request_size = Family::new(&REQUEST_SIZE);
    let mut response_size = Family::new(&RESPONSE_SIZE);
    let mut dnssec_ok = Family::new(&DO_REQUESTS);
    let mut responses = Family::new(&RESPONSES);
    for ((server, zone), protocols) in &sums {
        let dropped = zone + 1 == zones.len();
        let Some(zone) = zones.get(*zone) else { continue };
        let mut both = Sum::new();
        for (proto, sum) in ["udp", "tcp"].into_iter().zip(protocols) {
            for (family, types) in ["1", "2"].into_iter().zip(&sum.requests) {
                let names = TYPES.iter().map(|(_, name)| *name).chain(["other"]);
                for (name, count) in names.zip(types) {
                    requests.nonzero(&[server, zone, "", proto, family, name], *count);
                }
            }
            if sum.query_size.count() > 0 {
                request_size.histogram(&[server, zone, "", proto], &sum.query_size);
                response_size.histogram(&[server, zone, "", proto], &sum.reply_size);
            }
            both.duration.add(sum.duration.counts.iter().copied(), sum.duration.sum);
            both.dnssec_ok += sum.dnssec_ok;
            for (own, more) in both.responses.iter_mut().zip(&sum.responses) {
                *own += more;
            }
        }
        if both.duration.count() > 0 {
            duration.histogram(&[server, zone, ""], &both.duration);
        }
        dnssec_ok.nonzero(&[server, zone, ""], both.dnssec_ok);
        let mut other = 0;
        for (rcode, count) in (0u16..).zip(&both.responses) {
            let plugin = if dropped || by_the_server(rcode) { "" } else { plugin };
            match rcode_name(rcode) {
                Some(name) => responses.nonzero(&[server, zone, "", name, plugin], *count),
                None => other += count,
            }
        }
        responses.nonzero(&[server, zone, "", "other", ""], other);
    }

    let mut lost = Family::new(&DROPS);
    for (why, count) in Drop::ALL.into_iter().zip(drops) {
        lost.value(&[why.as_str()], count as f64);
    }
    lost.value(&["queue"], queue_drops as f64);
    let families = [requests, duration, request_size, response_size, dnssec_ok, responses, lost];
    let mut families: Vec<MetricFamily> = families.into_iter().map(Family::finish).collect();
    families.push(Family::single(&TRUNCATED_SETS, cut as f64));
    families
}

/// Whether CoreDNS's server, not a plugin, gives answers of this rcode: the label `plugin` is empty then.
fn by_the_server(rcode: u16) -> bool {
    // FORMERR, NOTIMP, REFUSED, BADVERS
    matches!(rcode, 1 | 4 | 5 | 16)
}

/// The rcode's name, as in miekg/dns, save that 16 in a reply of ours is BADVERS and never BADSIG.
#[must_use]
pub fn rcode_name(rcode: u16) -> Option<&'static str> {
    const NAMES: [&str; RCODES] = [
        "NOERROR",
        "FORMERR",
        "SERVFAIL",
        "NXDOMAIN",
        "NOTIMP",
        "REFUSED",
        "YXDOMAIN",
        "YXRRSET",
        "NXRRSET",
        "NOTAUTH",
        "NOTZONE",
        "DSOTYPENI",
        "",
        "",
        "",
        "",
        "BADVERS",
        "BADKEY",
        "BADTIME",
        "BADMODE",
        "BADNAME",
        "BADALG",
        "BADTRUNC",
        "BADCOOKIE",
    ];
    NAMES.get(usize::from(rcode)).copied().filter(|name| !name.is_empty())
}
