//! The battery: names near and far from existing ones × types × flags × EDNS shapes × case × classes and opcodes, the
//! same in every run.

use std::collections::BTreeSet;

use fastrand::Rng;

use crate::support::*;
use crate::world::{Kind, World, ZONE};

/// Names as labels.
type Name = Vec<Vec<u8>>;

/// Types asked of every name.
const ALWAYS: [u16; 4] = [A, AAAA, SRV, TXT];

/// Types of which every name gets some.
const OTHERS: [u16; 22] = [
    NS, SOA, PTR, CNAME, MX, ANY, HTTPS, SVCB, CAA, HINFO, DS, DNSKEY, RRSIG, NSEC, UNKNOWN, ANY, SOA, CNAME, MAILA,
    TSIG, 0, IXFR,
];

/// All queries, without duplicates.
pub fn all(world: &World, seed: u64) -> Vec<Ask> {
    let mut rng = Rng::with_seed(seed);
    let mut asks = Vec::new();
    for name in names(world, &mut rng) {
        let mut types = ALWAYS.to_vec();
        if name.len() <= 4 {
            // The zone's own names: everything, also plainly.
            types.extend(OTHERS);
            asks.extend(types.iter().map(|qtype| Ask::labels(name.clone(), *qtype)));
        } else {
            types.extend((0..4).map(|_| OTHERS[rng.usize(..OTHERS.len())]));
        }
        for qtype in types {
            asks.push(dressed(Ask::labels(name.clone(), qtype), &mut rng));
        }
    }
    asks.extend(shapes(world, &mut rng));
    let mut seen = BTreeSet::new();
    asks.retain(|ask| seen.insert((ask.wire(), ask.transport == namesake::dns::Transport::Tcp)));
    asks
}

/// Random flags, EDNS, case and transport, most often plain ones.
fn dressed(mut ask: Ask, rng: &mut Rng) -> Ask {
    ask.recursion_desired = rng.u8(..4) > 0;
    ask.checking_disabled = rng.u8(..8) == 0;
    ask.authentic_data = rng.u8(..8) == 0;
    ask.edns = match rng.u8(..10) {
        0..=3 => None,
        4 | 5 => Some(Edns::size(1232)),
        6 => Some(Edns::size(4096).dnssec_ok()),
        7 => Some(Edns::size(512)),
        8 => Some(Edns::size(1232).option(OPTION_COOKIE, &[rng.u8(..); 8])),
        _ => Some(Edns::size([0, 511, 1231, 1233, 65535][rng.usize(..5)])),
    };
    if rng.u8(..4) == 0 {
        ask = ask.tcp();
    }
    if rng.u8(..5) == 0 { ask.random_case(rng) } else { ask }
}

/// Every shape of query, for some names of each sort.
fn shapes(world: &World, rng: &mut Rng) -> Vec<Ask> {
    let names = [
        "",
        "c4.demo.svc",
        "h4.demo.svc",
        "many.demo.svc",
        "_http._tcp.many.demo.svc",
        "nope.demo.svc",
        "db-0.east.db.demo.svc",
        "_sql._tcp.db.demo.svc",
        "svc",
        "dns-version",
    ];
    let mut names: Vec<_> = names.iter().map(|name| inside(name)).collect();
    names.extend([labels("example.org."), labels("."), labels("local."), labels("xclusterset.local.")]);
    let mut asks = Vec::new();
    for name in names {
        for qtype in [A, SRV, TXT, AXFR, IXFR, ANY, OPT, TKEY, MAILB] {
            let ask = Ask::labels(name.clone(), qtype);
            for edns in edns_shapes(rng) {
                asks.push(ask.clone().edns(edns.clone()));
                asks.push(ask.clone().edns(edns).tcp());
            }
            asks.push(ask.clone().other_flags());
            asks.push(Ask { trailing: vec![0xFF; 7], ..ask.clone() });
            asks.extend([CH, HS, 0, 254, 255].map(|class| ask.clone().class(class)));
            asks.extend([1, 2, 3, 4, 5, 6, 15].map(|opcode| ask.clone().opcode(opcode)));
            asks.push(ask.clone().opcode(4).edns(Edns::size(1232)));
            // Two OPTs, an OPT below a name, and more records than a query may have.
            let (opt, a) = (Edns::size(1232).wire(), record(&[b"x"], A, IN, 0, &[10, 0, 0, 1]));
            asks.push(Ask { additionals: vec![opt.clone()], ..ask.clone().edns(Edns::size(4096)) });
            asks.push(Ask { additionals: vec![record(&[b"x"], OPT, 1232, 0, &[])], ..ask.clone() });
            asks.push(Ask { additionals: vec![a.clone()], ..ask.clone().edns(Edns::size(1232)) });
            asks.push(Ask { additionals: vec![a.clone(), a.clone(), a.clone()], ..ask.clone() });
            asks.push(Ask { answers: vec![a.clone()], ..ask.clone() });
            asks.push(Ask { answers: vec![a.clone(), a.clone()], ..ask.clone() });
            asks.push(Ask { authorities: vec![a.clone(), a], ..ask.clone() });
        }
    }
    // 0x20: the same name in many spellings.
    let existing: Vec<_> = world.nodes.keys().collect();
    for _ in 0..200 {
        let name = inside(existing[rng.usize(..existing.len())]);
        asks.push(Ask::labels(name, ALWAYS[rng.usize(..4)]).random_case(rng));
    }
    asks
}

fn edns_shapes(rng: &mut Rng) -> Vec<Edns> {
    let cookie: Vec<u8> = (0..8).map(|_| rng.u8(..)).collect();
    let subnet = [0, 1, 24, 0, 192, 0, 2];
    vec![
        Edns::size(0),
        Edns::size(512),
        Edns::size(1232),
        Edns::size(1232).dnssec_ok(),
        Edns::size(4096),
        Edns::size(65535),
        Edns::size(1232).option(65001, b"unknown"),
        Edns::size(1232).option(OPTION_COOKIE, &cookie),
        Edns::size(1232).option(OPTION_NSID, b""),
        Edns::size(1232).option(OPTION_EXPIRE, b""),
        Edns::size(1232).option(OPTION_KEEPALIVE, b""),
        Edns::size(1232).option(8, &subnet).option(OPTION_PADDING, &[0; 24]),
        Edns::size(1232).option(OPTION_PADDING, &[0; 600]),
        Edns::size(1232).version(1),
        Edns::size(4096).version(255).dnssec_ok(),
    ]
}

/// Every name to ask: those that exist, their neighbours, and what never was.
fn names(world: &World, rng: &mut Rng) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    let nodes: Vec<_> = world.nodes.iter().collect();
    for (name, kind) in &nodes {
        names.insert(inside(name));
        // Of large sets a part is enough.
        if !name.contains("many.demo") || rng.u8(..8) == 0 {
            names.extend(neighbours(name, **kind, rng));
        }
    }
    for ((namespace, name), import) in &world.imports {
        let service = format!("{name}.{namespace}.svc");
        names.extend(SERVICE_PREFIXES.iter().map(|left| inside(&format!("{left}{service}"))));
        let slices = world.slices(&(namespace.clone(), name.clone()));
        let ports: BTreeSet<_> =
            import.ports.iter().chain(slices.iter().flat_map(|s| &s.ports)).map(|p| p.name.clone()).collect();
        for port in ports {
            let forms =
                ["_P._tcp.", "P._tcp.", "_P.tcp.", "P.tcp.", "_P._udp.", "_P._.", "_P.", "_P._tcp.east.", "_P._sctp."];
            names.extend(forms.iter().map(|form| inside(&(form.replace('P', &port) + &service))));
        }
        for slice in slices.iter().filter(|_| name != "many" || rng.u8(..4) == 0) {
            let options = namesake::answers::Options::default();
            for endpoint in &slice.endpoints {
                for host in
                    [endpoint.coredns_label(&options), endpoint.label(&options), endpoint.address.replace('.', "-")]
                {
                    let cluster = &slice.cluster;
                    let forms = [
                        format!("{host}.{cluster}."),
                        format!("{host}."),
                        format!("{host}.north."),
                        format!("x.{host}.{cluster}."),
                        format!("{cluster}."),
                    ];
                    names.extend(
                        forms.iter().filter(|f| !f.contains("..")).map(|form| inside(&(form.to_owned() + &service))),
                    );
                }
            }
        }
    }
    for namespace in &world.namespaces {
        for left in ["", "x.", "1-2-3-4.", "_tcp.", "*."] {
            names.insert(inside(&format!("{left}{namespace}.svc")));
            names.insert(inside(&format!("{left}{namespace}.pod")));
        }
    }
    names.extend(ELSEWHERE.iter().map(|name| inside(name)));
    names.extend(OUTSIDE.iter().map(|name| labels(name)));
    // Labels that are no host names.
    for odd in [&b"\0"[..], b"c1.demo", b"c\\1", b"caf\xc3\xa9", b" ", b"\xff", b"a b"] {
        names.insert([vec![odd.to_vec()], inside("demo.svc")].concat());
        names.insert([vec![odd.to_vec()], inside("c1.demo.svc")].concat());
    }
    names.retain(|name| {
        name.iter().map(|l| l.len() + 1).sum::<usize>() < 255 && name.iter().all(|l| (1..64).contains(&l.len()))
    });
    names
}

/// What is put in front of every service's name.
const SERVICE_PREFIXES: [&str; 22] = [
    "",
    "east.",
    "west.",
    "north.",
    "prod.",
    "east.prod.",
    "b.",
    "a.",
    "a.b.",
    "_tcp.",
    "_udp.",
    "_sctp.",
    "_http._tcp.",
    "_._tcp.",
    "_http._.",
    "_._.",
    "*.",
    "_*._tcp.",
    "any.any.",
    "a.east.",
    "a.b.c.d.",
    "db-0.east.",
];

const ELSEWHERE: [&str; 24] = [
    "hostmaster",
    "foo",
    "foo.bar",
    "dns",
    "ns",
    "x.ns.dns",
    "x.dns",
    "x.dns-version",
    "dns-version.dns",
    "svc.svc",
    "svc.svc.svc",
    "pod",
    "demo",
    "demo.pod",
    "svc.pod",
    "pod.svc",
    "demo.svc.svc",
    "nope.svc",
    "c1.nope.svc",
    "1-2-3-4.nope.pod",
    "*",
    "*.svc",
    "clusterset.local",
    "c1.demo.svc.clusterset.local",
];

const OUTSIDE: [&str; 12] = [
    ".",
    "local.",
    "example.org.",
    "cluster.local.",
    "c1.demo.svc.cluster.local.",
    "xclusterset.local.",
    "clusterset.local.demo.svc.cluster.local.",
    "c1.demo.svc.clusterset.local.demo.svc.cluster.local.",
    "1.1.9.10.in-addr.arpa.",
    "3.0.0.0.ip6.arpa.",
    "clusterset.",
    "version.bind.",
];

/// Names one slip away from an existing one.
fn neighbours(name: &str, kind: Kind, rng: &mut Rng) -> Vec<Name> {
    let exact = inside(name);
    let mut near = vec![[vec![b"x".to_vec()], exact.clone()].concat()];
    if kind == Kind::Port {
        near.push([vec![b"_x".to_vec()], exact.clone()].concat());
    }
    let own = exact.len() - 2; // labels in front of the zone
    if own == 0 {
        return near;
    }
    for _ in 0..2 {
        let (mut other, at) = (exact.clone(), rng.usize(..own));
        match rng.u8(..6) {
            0 => other[at].push(b'x'),
            1 => other[at].insert(0, b'x'),
            2 => drop(other[at].pop()),
            3 => drop(other.remove(at)),
            4 => other.insert(at, other[at].clone()),
            _ => other[at] = [&b"demo"[..], b"svc", b"east", b"_tcp", b"shop"][rng.usize(..5)].to_vec(),
        }
        near.push(other);
    }
    near
}

fn inside(name: &str) -> Name {
    let mut all = labels(name);
    all.extend(labels(ZONE));
    all
}
