//! A clusterset in which every kind of name exists, and the names of it: what hostile packets are thrown at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use namesake::answers::{Chaos, EndpointNames, Options, Store};
use namesake::feed::load;
use namesake::model::{
    Change, ClusterId, Endpoint, EndpointObjects, Import, ImportKind, Label, Port, Protocol, Readiness, ServiceKey,
    Slice, SliceKey,
};

/// Every kind of state and choice that changes what is answered, each with a word for messages.
pub(crate) fn stores() -> Vec<(&'static str, Arc<Store>)> {
    let plain = load(Options::default(), changes());
    let stale = load(Options { ttl: 3600, bufsize: 4096, ..Options::default() }, changes());
    stale.set_stale(true);
    let expired = load(Options::default(), changes());
    expired.set_expired(true);
    let everything = Options {
        zones: vec!["clusterset.local".into(), "local".into(), "a.b.c.example".into()],
        bufsize: 512,
        cluster_names: true,
        endpoint_names: EndpointNames::All,
        nameserver: vec![v4(1), v6(1), v4(2)],
        nsid: Some(b"dns-0".to_vec()),
        chaos: Some(Chaos { version: "namesake".into(), hostname: "dns-0".into() }),
        dns_version: "v".repeat(255),
        ..Options::default()
    };
    let few = Options { max_endpoints: Some(3), cluster_names: true, ..Options::default() };
    vec![
        ("plain", plain),
        ("stale", stale),
        ("expired", expired),
        ("unsynced", Arc::new(Store::new(Options::default()))),
        ("everything", load(everything, changes())),
        ("few", load(few, changes())),
    ]
}

/// Names that exist, or nearly: in front of each zone, and beside it.
pub(crate) fn names() -> Vec<String> {
    let services =
        ["web.shop", "dual.shop", "portless.shop", "db.shop", "big.shop", "huge.shop", "none.shop", "x.none"];
    let below = [
        "",
        "_tcp.",
        "_udp.",
        "_http._tcp.",
        "_dns._udp.",
        "_http._udp.",
        "_x._sctp.",
        "east.",
        "a.",
        "b.a.",
        "_tcp.east.",
        "_http._tcp.east.",
        "_http._tcp.b.a.",
        "db-0.east.",
        "db-0.b.a.",
        "db-1.east.",
        "10-1-0-5.east.",
        "2001-db8--5.east.",
        "10-0-0-7.east.",
        "pod-17.east.",
        "pod-599.east.",
        "pod-600.east.",
        "x.y.z.",
        "a.b.c.d.e.",
        "-.",
        "_.",
        "_._tcp.",
    ];
    let zones = ["clusterset.local", "local", "a.b.c.example", "xclusterset.local", "local.clusterset"];
    let mut names = vec![String::new(), ".".into(), "version.bind".into(), "id.server".into(), "hostname.bind".into()];
    for zone in zones {
        for own in [
            "",
            "svc.",
            "dns.",
            "ns.dns.",
            "dns-version.",
            "shop.svc.",
            "none.svc.",
            "x.dns-version.",
            "ns.",
            "x.ns.dns.",
        ] {
            names.push(format!("{own}{zone}"));
        }
        for service in services {
            names.extend(below.iter().map(|below| format!("{below}{service}.svc.{zone}")));
        }
        names.push(format!("{0}.{0}.{0}.svc.{zone}", "l".repeat(63)));
        names.push(format!("{}svc.{zone}", "a.".repeat(100)));
    }
    names
}

/// The objects.
pub(crate) fn changes() -> Vec<Change> {
    let http = port("http", Protocol::Tcp, 80);
    let admin = port("admin", Protocol::Tcp, 9090);
    let dns = port("dns", Protocol::Udp, 53);
    let unnamed = Port { name: None, protocol: Protocol::Tcp, number: 80 };
    let mut all = vec![
        service("web", &[v4(10)], std::slice::from_ref(&http)),
        service("dual", &[v4(11), v6(11)], &[http.clone(), admin.clone(), dns.clone(), unnamed]),
        service("portless", &[v6(12)], &[]),
        headless("db"),
        headless("big"),
        headless("huge"),
        headless("none"),
    ];
    let five = |n: u8, hostname: Option<&str>| [endpoint(IpAddr::from([10, 1, 0, n]), hostname)];
    all.push(slice("db-1", "db", Some("east"), &[http.clone(), dns.clone()], five(5, None)));
    all.push(slice("db-2", "db", Some("east"), std::slice::from_ref(&admin), five(6, Some("db-0"))));
    all.push(slice("db-3", "db", Some("b.a"), std::slice::from_ref(&http), five(7, Some("db-0"))));
    all.push(slice(
        "db-4",
        "db",
        Some("east"),
        std::slice::from_ref(&http),
        [endpoint(v6(5), None), endpoint(v6(6), Some("db-0"))],
    ));
    all.push(slice("db-5", "db", None, std::slice::from_ref(&http), five(8, Some("lost"))));
    all.push(slice("web-1", "web", Some("east"), std::slice::from_ref(&http), five(9, None)));
    for part in 0..6u16 {
        let pods = (part * 100..part * 100 + 100).map(|n| {
            let [hi, lo] = n.to_be_bytes();
            endpoint(IpAddr::from([10, 2, hi, lo]), Some(&format!("pod-{n}")))
        });
        all.push(slice(&format!("big-{part}"), "big", Some("east"), std::slice::from_ref(&http), pods));
    }
    // More than even TCP holds, in both families: with long names, so that targets lie behind 16 KiB.
    for part in 0..60u16 {
        let ends = |family: u8| {
            (part * 100..part * 100 + 100).map(move |n| {
                let address = if family == 4 { IpAddr::from([10, 3, (n >> 8) as u8, n as u8]) } else { v6(n) };
                endpoint(address, Some(&format!("a-rather-long-host-name-of-number-{n}")))
            })
        };
        for family in [4, 6] {
            let name = format!("huge-{family}-{part}");
            all.push(slice(&name, "huge", Some("east"), &[http.clone(), admin.clone()], ends(family)));
        }
    }
    all
}

fn v4(n: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, n).into()
}

fn v6(n: u16) -> IpAddr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n).into()
}

fn port(name: &str, protocol: Protocol, number: u16) -> Port {
    Port { name: Label::new(name), protocol, number }
}

fn import(name: &str, kind: ImportKind, ips: &[IpAddr], ports: &[Port]) -> Change {
    let import = Import {
        kind,
        ips: ips.into(),
        ports: ports.into(),
        clusters: [].into(),
        endpoint_objects: EndpointObjects::Unknown,
        skipped: Box::default(),
    };
    Change::Import(ServiceKey::new("shop", name).expect("a key"), Some(import))
}

fn service(name: &str, ips: &[IpAddr], ports: &[Port]) -> Change {
    import(name, ImportKind::ClusterSetIp, ips, ports)
}

fn headless(name: &str) -> Change {
    import(name, ImportKind::Headless, &[], &[])
}

fn endpoint(address: IpAddr, hostname: Option<&str>) -> Endpoint {
    Endpoint { address, hostname: hostname.and_then(Label::new), pod: None, readiness: Readiness::Ready }
}

fn slice(
    name: &str,
    service: &str,
    cluster: Option<&str>,
    ports: &[Port],
    endpoints: impl IntoIterator<Item = Endpoint>,
) -> Change {
    let slice = Slice {
        service: Label::new(service).expect("a label"),
        cluster: cluster.and_then(ClusterId::new),
        ports: ports.into(),
        endpoints: endpoints.into_iter().collect(),
        triggered: None,
        skipped: Box::default(),
    };
    let namespace = Label::new("shop").expect("a label");
    Change::Slice(SliceKey { namespace, name: name.into() }, Some(slice))
}
