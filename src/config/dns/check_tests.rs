//! From what was typed to what it means.

use std::path::Path;

use super::*;
use crate::config::keys::{Keyed, Shape, Spec};
use crate::config::raw::{Place, split};
use crate::config::{Admin, Log, Raw, example};
use crate::telemetry::LogFormat;

const KEYS: &[Spec<Key>] = Key::TABLE;

/// What these flags mean, over `--from x`.
fn settings(flags: &[(&str, &str)]) -> Result<Settings, String> {
    let mut raw = Raw::default();
    let from = [("from", "x")];
    let given = flags.iter().any(|(name, _)| ["from", "kubeconfig", "context"].contains(name));
    for (name, value) in from.iter().filter(|_| !given).chain(flags) {
        let spec = Key::named(name).unwrap();
        let values = if spec.shape == Shape::Many { split(value) } else { vec![(*value).to_owned()] };
        raw.set(spec.key, Given { values, place: Place::Flag });
    }
    Settings::check(&raw, &machine(false)).map_err(|error| error.to_string())
}

fn machine(in_pod: bool) -> Machine {
    Machine { source: in_pod.then_some(Source::InCluster), ipv6: true, host: "host".to_owned() }
}

fn complaint(flags: &[(&str, &str)]) -> String {
    settings(flags).unwrap_err()
}

fn addresses<const N: usize>(texts: [&str; N]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn the_defaults_are_those_of_the_answers() {
    let settings = settings(&[]).unwrap();
    assert_eq!(settings.answers, Options::default());
    assert_eq!(settings.listen, addresses(["0.0.0.0:53", "[::]:53"]));
    assert_eq!(settings.startup_timeout, Duration::from_secs(5));
    assert_eq!((settings.max_stale, settings.lameduck, settings.grace), (None, Duration::ZERO, Duration::from_secs(5)));
    assert_eq!(settings.tcp.idle, Duration::from_secs(10));
    assert_eq!(settings.udp_workers, None);
    assert_eq!(settings.log, Log { format: LogFormat::Text, filter: "info".to_owned(), queries: false });
    assert_eq!(settings.warnings, Vec::<String>::new());
}

#[test]
fn every_key_has_one_spec_and_the_example_says_the_defaults() {
    for (i, spec) in KEYS.iter().enumerate() {
        assert_eq!(spec.key as usize, i, "{} is not where Key has it", spec.name);
        assert_eq!(spec.key.spec().name, spec.name);
        assert_eq!(Key::named(spec.name).map(|found| found.key), Some(spec.key));
    }
    let mut raw = Raw::default();
    for (key, given) in crate::config::file::parse::<Key>(Path::new("example"), &example::<Key>()).unwrap() {
        raw.set(key, given);
    }
    let written = KEYS.iter().filter(|spec| raw.get(spec.key).is_some()).count();
    assert_eq!(written, KEYS.iter().filter(|spec| !spec.default.is_empty()).count());
    for spec in KEYS {
        assert!(example::<Key>().contains(&format!("{}: ", spec.name)), "{} is not in the example", spec.name);
    }
    let from = Given { values: vec!["x".to_owned()], place: Place::Flag };
    raw.set(Key::From, from);
    assert_eq!(Settings::check(&raw, &machine(false)).unwrap(), settings(&[]).unwrap());
}

#[test]
fn each_wrong_value_names_its_place_its_reason_and_a_remedy() {
    for (name, value, said) in [
        ("ttl", "3601", "--ttl 3601: more than 3600; give 0 to 3600 seconds"),
        ("ttl", "5s", "--ttl 5s: not a whole number; give 0 to 3600 seconds"),
        ("negttl", "-1", "--negttl -1: not a whole number; give 0 to 3600 seconds"),
        ("bufsize", "511", "--bufsize 511: less than 512; give 512 to 4096 bytes"),
        ("bufsize", "65535", "--bufsize 65535: more than 4096; give 512 to 4096 bytes"),
        ("endpoints", "all", "--endpoints all: no such choice; give ready or serving-fallback"),
        ("empty_headless", "x", "--empty-headless x: no such choice; give nxdomain or nodata"),
        ("endpoint_names", "x", "--endpoint-names x: no such choice; give headless or all"),
        ("log_format", "xml", "--log-format xml: no such choice; give text or json"),
        (
            "log_level",
            "loud",
            "--log-level loud: \"loud\" is no level; give error, warn, info, debug or trace, or a filter such as info,namesake::source=debug",
        ),
        ("cluster_names", "yes", "--cluster-names yes: neither true nor false; give one of them"),
        ("lameduck", "5", "--lameduck 5: has no unit; write it as 5s, 100ms or 1m30s, so 5s for seconds"),
        ("grace", "soon", "--grace soon: is no duration; write it as 5s, 100ms or 1m30s"),
        ("startup_timeout", "2h", "--startup-timeout 2h: too long; give at most 3600s"),
        ("max_stale", "5s", "--max-stale 5s: shorter than the silence of a healthy watch; give 60s or more, or never"),
        ("tcp_idle", "0s", "--tcp-idle 0s: no time at all; give 100ms or more"),
        ("tcp_connections", "0", "--tcp-connections 0: less than 1; give 1 to 1000000"),
        ("udp_workers", "many", "--udp-workers many: not a whole number; give 1 to 256 threads"),
        ("max_endpoints", "0", "--max-endpoints 0: less than 1; give 1 to 1000000 endpoints"),
        ("zone", ".", "--zone .: the root can't be served; give a domain such as clusterset.local"),
        (
            "zone",
            "a..b",
            "--zone a..b: \"\" is no DNS label (1 to 63 letters, digits and dashes); give a domain such as clusterset.local",
        ),
        ("zone", "a.test,A.test.", "--zone A.test.: given twice; keep one of them"),
        (
            "namespaces",
            "Shop",
            "--namespaces Shop: no name of a namespace; give 1 to 63 of a-z, 0-9 and -, as `kubectl get namespaces` shows it",
        ),
        (
            "nameserver",
            "0.0.0.0",
            "--nameserver 0.0.0.0: not an address of one server; give an address that clients reach this server at, such as its Service's cluster IP",
        ),
        (
            "nameserver",
            "ns1",
            "--nameserver ns1: no IP address; give an address that clients reach this server at, such as its Service's cluster IP",
        ),
        ("listen", "127.0.0.1", "--listen 127.0.0.1: no port; write 127.0.0.1:53"),
        ("listen", "::1", "--listen ::1: no port; write [::1]:53"),
        (
            "listen",
            "localhost:53",
            "--listen localhost:53: \"localhost\" is no IP address; write ADDR:PORT, such as 127.0.0.1:53, [::1]:53 or :53",
        ),
        (
            "listen",
            "none",
            "--listen none: \"none\" is no IP address; write ADDR:PORT, such as 127.0.0.1:53, [::1]:53 or :53",
        ),
        (
            "listen",
            "[::ffff:10.0.0.1]:53",
            "--listen [::ffff:10.0.0.1]:53: an IPv4 address inside an IPv6 one; write the IPv4 address itself",
        ),
        ("listen", ":53,[::]:53", "--listen [::]:53: given twice; keep one of them"),
        (
            "admin",
            ":99999",
            "--admin :99999: no address with a port; write ADDR:PORT, such as 127.0.0.1:8053, [::1]:8053 or :8053",
        ),
        ("nsid", "", "--nsid \"\": 0 bytes; give 1 to 128 bytes"),
        ("chaos", "a\u{7}", "--chaos a\u{7}: a control character; give printable text"),
    ] {
        assert_eq!(complaint(&[(name, value)]), said);
    }
}

#[test]
fn all_problems_are_reported_at_once() {
    let said = complaint(&[("ttl", "x"), ("bufsize", "1"), ("lameduck", "1")]);
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn values_that_depend_on_others() {
    assert_eq!(settings(&[("ttl", "30")]).unwrap().answers.negttl, 5);
    assert_eq!(settings(&[("ttl", "0")]).unwrap().answers.negttl, 0);
    assert_eq!(settings(&[("ttl", "0"), ("negttl", "9")]).unwrap().answers.negttl, 9);
    let chaos = |flags: &[(&str, &str)]| settings(flags).unwrap().answers.chaos.unwrap();
    assert_eq!(chaos(&[("chaos", "v1")]), Chaos { version: "v1".to_owned(), hostname: "host".to_owned() });
    assert_eq!(chaos(&[("chaos", "v1"), ("nsid", "dns-0")]).hostname, "dns-0");
    assert_eq!(settings(&[("max_stale", "10m")]).unwrap().max_stale, Some(Duration::from_secs(600)));
    assert_eq!(settings(&[("udp_workers", "3")]).unwrap().udp_workers, NonZeroUsize::new(3));
}

#[test]
fn dns_a2_name_server_addresses_are_the_specific_listen_addresses_unless_given() {
    let given = |flags: &[(&str, &str)]| {
        settings(flags).unwrap().answers.nameserver.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(given(&[]), Vec::<String>::new());
    assert_eq!(given(&[("listen", "127.0.0.1:53")]), ["127.0.0.1"]);
    assert_eq!(given(&[("listen", "127.0.0.1:53,10.0.0.1:53,10.0.0.1:54,[fd00::1]:53")]), ["10.0.0.1", "fd00::1"]);
    assert_eq!(given(&[("listen", "127.0.0.1:53"), ("nameserver", "10.9.9.9,fd00::9")]), ["10.9.9.9", "fd00::9"]);
}

#[test]
fn routes_follow_admin_unless_moved_or_turned_off() {
    let admin = |flags: &[(&str, &str)]| {
        let Admin { explain, health, ready, metrics } = settings(flags).unwrap().admin;
        [explain, health, ready, metrics].map(|address| address.map_or("none".to_owned(), |a| a.to_string()))
    };
    assert_eq!(admin(&[]), ["127.0.0.1:8053"; 4]);
    assert_eq!(
        admin(&[("admin", ":8080"), ("metrics", "127.0.0.1:9153")]),
        ["[::]:8080", "[::]:8080", "[::]:8080", "127.0.0.1:9153"]
    );
    assert_eq!(admin(&[("admin", "none"), ("ready", ":2")]), ["none", "none", "[::]:2", "none"]);
    assert_eq!(admin(&[("metrics", "none")])[3], "none");
}

#[test]
fn a_machine_without_ipv6_is_served_without_it() {
    let mut raw = Raw::default();
    raw.set(Key::Admin, Given { values: vec![":8080".to_owned()], place: Place::Flag });
    let settings = Settings::check(&raw, &Machine { ipv6: false, ..machine(true) }).unwrap();
    assert_eq!(settings.listen, addresses(["0.0.0.0:53"]));
    assert_eq!(settings.admin.health, "0.0.0.0:8080".parse().ok());
}

#[test]
fn the_source_is_one_and_a_later_layer_replaces_an_earlier_one() {
    let kube = |kubeconfig: Option<&str>, context: Option<&str>| Source::Kube {
        kubeconfig: kubeconfig.map(Into::into),
        context: context.map(Into::into),
    };
    assert_eq!(settings(&[("kubeconfig", "k"), ("context", "c")]).unwrap().source, kube(Some("k"), Some("c")));
    assert_eq!(settings(&[("context", "c")]).unwrap().source, kube(None, Some("c")));
    assert_eq!(
        complaint(&[("from", "x"), ("kubeconfig", "k")]),
        "--from x: --kubeconfig is given too, and both say where imports come from; keep one of them"
    );
    assert_eq!(
        Settings::check(&Raw::default(), &machine(false)).unwrap_err().to_string(),
        "no source: nothing says where ServiceImports come from; give --from DIR or --kubeconfig FILE, or run in a pod"
    );
    assert_eq!(Settings::check(&Raw::default(), &machine(true)).unwrap().source, Source::InCluster);

    // The file says --from, relative to itself; a flag says --kubeconfig.
    let given = |value: &str, place| Given { values: vec![value.to_owned()], place };
    let mut raw = Raw::default();
    raw.set(Key::From, given("data", Place::File(Path::new("/etc/namesake/dns.yaml").into(), 2)));
    assert_eq!(Settings::check(&raw, &machine(true)).unwrap().source, Source::Folder("/etc/namesake/data".into()));
    raw.set(Key::Kubeconfig, given("k", Place::Flag));
    assert_eq!(Settings::check(&raw, &machine(true)).unwrap().source, kube(Some("k"), None));
}

#[test]
fn variables_win_over_the_file_and_flags_over_both() {
    let file = |value: &str| Given { values: vec![value.to_owned()], place: Place::File(Path::new("f").into(), 1) };
    let flag = |value: &str| Given { values: vec![value.to_owned()], place: Place::Flag };
    let mut raw = Raw::default();
    raw.set(Key::Ttl, flag("3"));
    raw.read_variables(|name| match name {
        "NAMESAKE_TTL" => Some("2".to_owned()),
        "NAMESAKE_NEGTTL" => Some("2".to_owned()),
        "NAMESAKE_LISTEN" => Some("127.0.0.1:53, [::1]:53".to_owned()),
        "NAMESAKE_BUFSIZE" => Some(String::new()),
        _ => None,
    });
    for key in [Key::Ttl, Key::Negttl, Key::Bufsize] {
        raw.set(key, file("1"));
    }
    let value = |key| raw.get(key).map(|given| given.values.join(" "));
    assert_eq!(value(Key::Ttl).as_deref(), Some("3"));
    assert_eq!(value(Key::Negttl).as_deref(), Some("2"));
    assert_eq!(value(Key::Listen).as_deref(), Some("127.0.0.1:53 [::1]:53"));
    assert_eq!(value(Key::Bufsize).as_deref(), Some("1"), "an empty variable counts as not set");
    let said = Settings::check(&raw, &machine(true)).unwrap_err().to_string();
    assert_eq!(said, "f:1: bufsize 1: less than 512; give 512 to 4096 bytes");
}

#[test]
fn variables_that_are_none_of_ours_are_warned_about_but_not_those_of_kubernetes() {
    let names = [
        "NAMESAKE_TLL",
        "NAMESAKE_TTL",
        "NAMESAKE_CONFIG",
        "NAMESAKE_DNS_SERVICE_HOST",
        "NAMESAKE_DNS_SERVICE_PORT_DNS_TCP",
        "NAMESAKE_DNS_PORT",
        "NAMESAKE_DNS_PORT_53_UDP_ADDR",
        "NAMESAKE_SOMETHING_ELSE",
        "PATH",
    ];
    assert_eq!(
        crate::config::unknown_variables(names.map(str::to_owned)),
        [
            "NAMESAKE_SOMETHING_ELSE: no such variable; `namesake dns --help` has the flags they are named after",
            "NAMESAKE_TLL: no such variable; did you mean NAMESAKE_TTL?",
        ]
    );
}

#[test]
fn cfg_04_a_misunderstood_zone_is_warned_about() {
    let warnings = settings(&[("zone", "Cluster.Local.")]).unwrap().warnings;
    assert!(warnings.len() == 1 && warnings[0].starts_with("zone cluster.local: only ServiceImports"), "{warnings:?}");
    let warnings = settings(&[("zone", "a.test,b.a.test")]).unwrap().warnings;
    assert_eq!(warnings, ["zone b.a.test lies inside zone a.test and hides the names there"]);
    assert_eq!(settings(&[("zone", "x.a.test,b-a.test")]).unwrap().warnings, Vec::<String>::new());
}

#[test]
fn dns_f3_a_ttl_below_five_is_warned_about() {
    let warnings = settings(&[("ttl", "1")]).unwrap().warnings;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert_eq!(warnings[0], "ttl 1 has no effect behind CoreDNS's cache, which raises it to 5");
}
