//! Rows about services, their endpoints and ports (1.4 to 1.7).

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::names::exists_without_data;
use super::{DATA, Row, both};
use crate::compare::{Case, Part};
use crate::reply::{Reply, Rr};
use crate::support::*;
use crate::world::{Import, Kind, Port, Slice, is_address, is_forbidden};

/// The name exists for us alone: with the right addresses, with SRV records, or without data of this type.
fn exists(c: &Case<'_>) -> impl Fn(&Reply) -> bool {
    let without = exists_without_data(c);
    let addresses = c.world.addresses(&c.place, c.node, c.options);
    let qtype = c.qtype();
    move |o| match qtype {
        A | AAAA => {
            let of_type = addresses.iter().filter(|ip| ip.contains(':') == (qtype == AAAA));
            let found: BTreeSet<_> = o.data(qtype).map(str::to_owned).collect();
            found.iter().eq(of_type) && (o.is_data() || found.is_empty() && o.is_nodata())
        }
        SRV => o.is_data_of(&[SRV]) || o.is_nodata(),
        _ => without(o),
    }
}

fn coredns_finds(k: &Reply) -> bool {
    k.is_data() || k.is_nodata()
}

/// What an address is to CoreDNS: an IPv4-mapped one is IPv4.
fn canonical(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// Addresses in `spec.ips` that nobody may have (C16).
fn forbidden(import: &Import) -> BTreeSet<String> {
    let bad = import.ips.iter().filter(|ip| is_forbidden(ip));
    bad.filter_map(|text| canonical(text)).map(|ip| ip.to_string()).collect()
}

/// A reply's records without weights: an SRV's depends on how many there are.
fn weightless(records: &[Rr]) -> BTreeSet<(String, u16, String)> {
    let data = |rr: &Rr| match rr.data.split(' ').collect::<Vec<_>>()[..] {
        [priority, _, port, target] if rr.rtype == SRV => format!("{priority} {port} {target}"),
        _ => rr.data.clone(),
    };
    records.iter().map(|rr| (rr.owner.clone(), rr.rtype, data(rr))).collect()
}

/// Ours is CoreDNS's reply without what `gone` says; a NODATA where nothing is left of the answer.
fn is_without(k: &Reply, o: &Reply, gone: impl Fn(&Rr) -> bool) -> bool {
    let rest = |records: &[Rr]| {
        let kept: Vec<_> = records.iter().filter(|rr| !gone(rr)).cloned().collect();
        weightless(&kept)
    };
    let answers = rest(&k.answers);
    if answers.is_empty() {
        return o.is_nodata();
    }
    o.is_data() && weightless(&o.answers) == answers && weightless(&o.additional) == rest(&k.additional)
}

/// Asked for `<host>` and `<cluster>` as CoreDNS reads them, and a ready endpoint is that.
fn coredns_host(c: &Case<'_>, slices: &[Slice], host: &str, cluster: &str) -> bool {
    slices.iter().any(|s| s.cluster == cluster && s.ready().any(|e| e.coredns_label(c.options) == host))
}

/// Whether one of the ports CoreDNS looks at fits; `""` is any.
fn coredns_port(import: &Import, slices: &[Slice], port: &str, protocol: &str) -> bool {
    let fits = |p: &Port| (port.is_empty() || p.name == port) && (protocol.is_empty() || p.protocol == protocol);
    // A slice without ports has one without name, protocol and number.
    let none = port.is_empty() && protocol.is_empty();
    let of_slice = |s: &Slice| s.ready().count() > 0 && (s.ports.iter().any(fits) || s.ports.is_empty() && none);
    if import.headless { slices.iter().any(of_slice) } else { import.ports.iter().any(fits) }
}

fn unlabelled(slices: &[Slice]) -> bool {
    slices.iter().any(|s| s.cluster.is_empty() && s.ready().count() > 0)
}

/// `spec.ips` with a text that is no address and for which `this` holds.
fn has_text(c: &Case<'_>, this: impl Fn(&str) -> bool) -> bool {
    c.import().is_some_and(|(_, import, _)| !import.headless && import.ips.iter().any(|ip| !is_address(ip) && this(ip)))
}

/// CoreDNS's CNAME and its chase are left out by us.
fn cname_left_out(c: &Case<'_>) -> bool {
    let (Some(k), Some(o)) = (&c.coredns, &c.ours) else { return false };
    let owner = k.answers.iter().find(|rr| rr.rtype == CNAME).map(|rr| rr.owner.clone());
    let Some(owner) = owner else { return false };
    matches!(c.qtype(), A | AAAA | CNAME | TXT)
        && k.is_data()
        && if matches!(c.node, Some(Kind::Service)) {
            is_without(k, o, |rr| rr.rtype == CNAME || rr.owner != owner)
        } else if c.node.is_some() {
            o.is_nodata()
        } else {
            o.is_nxdomain()
        }
}

pub(super) const ROWS: &[Row] = &[
    Row {
        id: "C7",
        says: "`ports: []` NXDOMAIN; the name and its addresses (D13)",
        parts: DATA,
        holds: |c| {
            let Some((_, import, _)) = c.import() else { return false };
            let portless = !import.headless && import.ports.is_empty() && c.node == Some(Kind::Service);
            // Without an address either there is nothing for the HINFO to stand for.
            let ours = |o: &Reply| if import.ips.is_empty() { o.is_nodata() } else { exists(c)(o) };
            portless && both(c, Reply::is_nxdomain, ours)
        },
    },
    Row {
        id: "C6",
        says: "no address yet: TXT NXDOMAIN; NODATA (D9)",
        parts: DATA,
        holds: |c| {
            let none = c.import().is_some_and(|(_, import, _)| !import.headless && import.ips.is_empty());
            none && c.qtype() == TXT && c.node.is_some() && both(c, Reply::is_nxdomain, Reply::is_nodata)
        },
    },
    Row {
        id: "C8",
        says: "a text among the IPs is a CNAME; it is skipped",
        parts: DATA,
        holds: |c| has_text(c, |text| !["none", "."].contains(&text)) && cname_left_out(c),
    },
    Row {
        id: "C14",
        says: "`None` among the IPs is a CNAME; it is skipped",
        parts: DATA,
        holds: |c| has_text(c, |text| ["none", "."].contains(&text)) && cname_left_out(c),
    },
    Row {
        id: "C16",
        says: "an address nobody may have is answered; it is skipped",
        parts: DATA,
        holds: |c| {
            let (Some((_, import, _)), Some(k), Some(o)) = (c.import(), &c.coredns, &c.ours) else { return false };
            let bad = forbidden(import);
            let gone = |rr: &Rr| bad.contains(&rr.data);
            let usable = import.ips.iter().filter_map(|ip| canonical(ip)).any(|ip| !bad.contains(&ip.to_string()));
            match (c.qtype(), c.node) {
                _ if import.headless || bad.is_empty() || !k.is_data() => false,
                (A | AAAA, Some(Kind::Service)) => is_without(k, o, gone),
                (SRV, Some(Kind::Service | Kind::Port)) if usable => is_without(k, o, gone),
                (SRV, Some(Kind::Service | Kind::Port)) => o.is_nodata(),
                _ => false,
            }
        },
    },
    Row {
        id: "E5",
        says: "endpoint names of a ClusterSetIP import; NXDOMAIN (D6)",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let [host, cluster] = left else { return false };
            let named = !import.headless && coredns_host(c, slices, host, cluster) && c.node.is_none();
            named && both(c, coredns_finds, Reply::is_nxdomain)
        },
    },
    Row {
        id: "E6",
        says: "hosts of two-label clusters NXDOMAIN; they resolve (D7)",
        parts: DATA,
        holds: |c| {
            let Some((left, import, _)) = c.import() else { return false };
            import.headless && left.len() == 3 && c.node == Some(Kind::Host) && both(c, Reply::is_nxdomain, exists(c))
        },
    },
    Row {
        id: "E7",
        says: "`<cluster>.<svc>` NXDOMAIN; NODATA, an empty non-terminal (D5)",
        parts: DATA,
        holds: |c| {
            let Some((left, _, slices)) = c.import() else { return false };
            let [cluster] = left else { return false };
            let known = slices.iter().any(|s| s.cluster == *cluster);
            known && c.node == Some(Kind::Empty) && both(c, Reply::is_nxdomain, Reply::is_nodata)
        },
    },
    Row {
        id: "E8",
        says: "parts of a two-label cluster id NXDOMAIN; NODATA (D8)",
        parts: DATA,
        holds: |c| {
            let Some((left, _, slices)) = c.import() else { return false };
            let end = left.join(".");
            let part = slices.iter().any(|s| s.cluster == end || s.cluster.ends_with(&format!(".{end}")));
            part && c.node == Some(Kind::Empty) && both(c, Reply::is_nxdomain, Reply::is_nodata)
        },
    },
    Row {
        id: "H10",
        says: "an FQDN slice is a CNAME; it is ignored",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let fqdn = import.headless && slices.iter().any(|s| s.fqdn && s.ready().count() > 0);
            let only = slices.iter().all(|s| s.fqdn);
            // With nothing else the import has no names for us, whatever CoreDNS finds; and its names are no hosts.
            let host = matches!(left, [host, cluster] if coredns_host(c, slices, host, cluster));
            fqdn && (cname_left_out(c)
                || (only || host) && c.node.is_none() && both(c, coredns_finds, Reply::is_nxdomain))
        },
    },
    Row {
        id: "H12",
        says: "`<host>.<svc>` and `_port._proto` without a source cluster; NXDOMAIN",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let named = match left {
                [host] => coredns_host(c, slices, host, ""),
                [port, protocol] if slices.iter().all(|s| s.cluster.is_empty()) => {
                    let names = port.strip_prefix('_').zip(protocol.strip_prefix('_'));
                    names.is_some_and(|(port, protocol)| coredns_port(import, slices, port, protocol))
                }
                _ => false,
            };
            import.headless && named && c.node.is_none() && both(c, coredns_finds, Reply::is_nxdomain)
        },
    },
    Row {
        id: "H18",
        says: "an endpoint at an address nobody may have is answered; it is absent",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let (Some(k), Some(o)) = (&c.coredns, &c.ours) else { return false };
            let bad: Vec<_> = slices.iter().flat_map(Slice::ready).filter(|e| is_forbidden(&e.address)).collect();
            let targets: Vec<_> = bad.iter().map(|e| format!(" {}.", e.coredns_label(c.options))).collect();
            let gone = |rr: &Rr| {
                let address = bad.iter().any(|e| rr.data == e.address);
                address || rr.rtype == SRV && targets.iter().any(|target| rr.data.contains(target))
            };
            let host = matches!(left, [host, cluster] if coredns_host(c, slices, host, cluster));
            import.headless
                && !bad.is_empty()
                && match c.node {
                    Some(Kind::Service | Kind::Port) => k.is_data_of(&[A, AAAA, SRV]) && is_without(k, o, gone),
                    None => host && coredns_finds(k) && o.is_nxdomain(),
                    _ => false,
                }
        },
    },
    Row {
        id: "V26",
        says: "SRV without a source cluster: no reply at all; that endpoint is left out",
        parts: &[Part::Silence],
        holds: |c| {
            let hit = c.import().is_some_and(|(_, import, slices)| import.headless && unlabelled(slices));
            hit && c.qtype() == SRV && c.coredns.is_none() && c.ours.as_ref().is_some_and(|o| !o.tc())
        },
    },
    Row {
        id: "1.6",
        says: "a dashed IP may begin with `-`; a 0 goes in front (D3)",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let (Some(k), Some(o)) = (&c.coredns, &c.ours) else { return false };
            let dashed = import.headless
                && slices.iter().flat_map(Slice::ready).any(|e| e.coredns_label(c.options).starts_with('-'));
            let mended = |records: &[Rr]| {
                let mend =
                    |text: &str| if text.starts_with('-') { format!("0{text}") } else { text.replace(" -", " 0-") };
                weightless(
                    &records
                        .iter()
                        .map(|rr| Rr { owner: mend(&rr.owner), data: mend(&rr.data), ..rr.clone() })
                        .collect::<Vec<_>>(),
                )
            };
            let host = left.first().is_some_and(|l| left.len() == 2 && l.starts_with('-'));
            let zero = left.first().is_some_and(|l| left.len() == 2 && l.starts_with("0-"));
            dashed
                && if host {
                    coredns_finds(k) && o.is_nxdomain()
                } else if zero {
                    k.is_nxdomain() && exists(c)(o)
                } else {
                    c.qtype() == SRV
                        && k.is_data()
                        && mended(&k.answers) == weightless(&o.answers)
                        && mended(&k.additional) == weightless(&o.additional)
                }
        },
    },
    Row {
        id: "V8",
        says: "an empty port or protocol is wild; NXDOMAIN",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let [port, protocol] = left else { return false };
            let (bare_port, bare_protocol) = (port.trim_start_matches('_'), protocol.trim_start_matches('_'));
            let wild = port == "_" || protocol == "_";
            wild && c.node.is_none()
                && coredns_port(import, slices, bare_port, bare_protocol)
                && both(c, coredns_finds, Reply::is_nxdomain)
        },
    },
    Row {
        id: "V14",
        says: "one underscore is enough; NXDOMAIN",
        parts: DATA,
        holds: |c| {
            let Some((left, import, slices)) = c.import() else { return false };
            let [port, protocol] = left else { return false };
            let one = port.starts_with('_') != protocol.starts_with('_');
            let (port, protocol) = (port.trim_start_matches('_'), protocol.trim_start_matches('_'));
            one && c.node.is_none()
                && coredns_port(import, slices, port, protocol)
                && both(c, coredns_finds, Reply::is_nxdomain)
        },
    },
    Row {
        id: "V16",
        says: "addresses at `_port._proto`; NODATA (D14)",
        parts: DATA,
        holds: |c| {
            let addresses = matches!(c.qtype(), A | AAAA) && c.node == Some(Kind::Port);
            addresses && both(c, |k| k.is_data_of(&[A, AAAA]), Reply::is_nodata)
        },
    },
    Row {
        id: "V17",
        says: "`_proto` NXDOMAIN; NODATA, an empty non-terminal (D8)",
        parts: DATA,
        holds: |c| {
            let protocol = matches!(&c.left()[..], ["_tcp" | "_udp" | "_sctp"]);
            protocol && c.node == Some(Kind::Empty) && both(c, Reply::is_nxdomain, Reply::is_nodata)
        },
    },
    Row {
        id: "V29",
        says: "a port without protocol has no name; it is TCP",
        parts: DATA,
        holds: |c| {
            let Some((left, import, _)) = c.import() else { return false };
            let [port, protocol] = left else { return false };
            let bare = import.ports.iter().any(|p| p.protocol.is_empty() && port.strip_prefix('_') == Some(&p.name));
            bare && protocol == "_tcp" && c.node == Some(Kind::Port) && both(c, Reply::is_nxdomain, exists(c))
        },
    },
    Row {
        id: "T22",
        says: "a name longer than 255 octets is sent; its record is left out",
        parts: DATA,
        holds: |c| {
            let (Some(k), Some(o)) = (&c.coredns, &c.ours) else { return false };
            // Over UDP theirs may be cut before the long one.
            let k = c.whole.as_ref().map_or(k, |(whole, _)| whole);
            let (theirs, ours) = (weightless(&k.answers), weightless(&o.answers));
            c.qtype() == SRV
                && k.longest_name > 255
                && o.longest_name <= 255
                && o.is_data()
                && ours.is_subset(&theirs)
                && ours.len() < theirs.len()
        },
    },
];
