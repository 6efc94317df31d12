//! From what was typed to what it means: every check, and nothing but checks.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::duration;
use super::error::{ConfigError, Problem};
use super::keys::{Key, Shape};
use super::parse::{self, Refusal};
use super::raw::{Given, Place, Raw, resolve, split};
use super::settings::{Admin, Log, Machine, Settings, Source, TcpLimits};
use crate::answers::{Chaos, EmptyHeadless, EndpointNames, EndpointPolicy, Options};
use crate::telemetry::LogFormat;

impl Settings {
    /// Checks everything that was typed.
    ///
    /// # Errors
    ///
    /// Every problem that was found.
    pub fn check(raw: &Raw, machine: &Machine) -> Result<Self, ConfigError> {
        let mut check = Checker { raw, machine, problems: Vec::new() };
        let source = check.source();
        let settings = check.settings(source.clone().unwrap_or(Source::InCluster));
        if source.is_none() && check.problems.is_empty() {
            check.problems.push(Problem {
                place: "no source".to_owned(),
                why: "nothing says where ServiceImports come from".to_owned(),
                remedy: "give --from DIR or --kubeconfig FILE, or run in a pod".to_owned(),
            });
        }
        if check.problems.is_empty() { Ok(settings) } else { Err(ConfigError { problems: check.problems }) }
    }
}

struct Checker<'a> {
    raw: &'a Raw,
    machine: &'a Machine,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn settings(&mut self, source: Source) -> Settings {
        let listen = self.listen();
        if listen.is_empty() && self.problems.is_empty() {
            self.refuse(Key::Listen, "", ("no address".to_owned(), "give one, such as :53".to_owned()));
        }
        let answers = self.answers(&listen);
        Settings {
            warnings: warnings(&answers),
            source,
            answers,
            listen,
            udp_workers: self.maybe(Key::UdpWorkers, |text| match text {
                "auto" => Ok(None),
                _ => parse::number(text, 1, 256, "threads").map(|n| NonZeroUsize::new(n as usize)),
            }),
            tcp: TcpLimits {
                connections: self.count(Key::TcpConnections, 1, 1_000_000),
                per_client: self.count(Key::TcpConnectionsPerClient, 1, 1_000_000),
                read: self.wait(Key::TcpRead),
                write: self.wait(Key::TcpWrite),
                idle: self.wait(Key::TcpIdle),
            },
            admin: self.admin(),
            log: Log {
                format: self.word(Key::LogFormat, &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
                filter: self.filter(),
                queries: self.switch(Key::QueryLog),
            },
            startup_timeout: self.duration(Key::StartupTimeout, Duration::from_secs(3600)),
            max_stale: self.max_stale(),
            lameduck: self.duration(Key::Lameduck, Duration::from_secs(3600)),
            grace: self.duration(Key::Grace, Duration::from_secs(3600)),
        }
    }

    fn answers(&mut self, listen: &[SocketAddr]) -> Options {
        let ttl = self.number(Key::Ttl, 0, 3600, "seconds") as u32;
        let nsid = self.maybe(Key::Nsid, |text| match text.len() {
            1..=128 => Ok(Some(text.to_owned())),
            long => Err((format!("{long} bytes"), "give 1 to 128 bytes".to_owned())),
        });
        Options {
            zones: self.zones(),
            ttl,
            negttl: self
                .maybe(Key::Negttl, |text| parse::number(text, 0, 3600, "seconds").map(|n| Some(n as u32)))
                .unwrap_or(ttl.min(5)),
            bufsize: self.number(Key::Bufsize, 512, 4096, "bytes") as u16,
            cluster_names: self.switch(Key::ClusterNames),
            endpoint_names: self
                .word(Key::EndpointNames, &[("headless", EndpointNames::Headless), ("all", EndpointNames::All)]),
            endpoint_pod_names: self.switch(Key::EndpointPodNames),
            empty_headless: self
                .word(Key::EmptyHeadless, &[("nxdomain", EmptyHeadless::Nxdomain), ("nodata", EmptyHeadless::Nodata)]),
            ignore_empty_service: self.switch(Key::IgnoreEmptyService),
            endpoints: self.word(
                Key::Endpoints,
                &[("ready", EndpointPolicy::Ready), ("serving-fallback", EndpointPolicy::ServingFallback)],
            ),
            no_endpoints: self.switch(Key::NoEndpoints),
            max_endpoints: self.maybe(Key::MaxEndpoints, |text| {
                parse::number(text, 1, 1_000_000, "endpoints").map(|n| Some(n as usize))
            }),
            namespaces: self.many(Key::Namespaces, |text| parse::namespace(text).map(|ns| vec![ns])),
            dns_version: self.one(Key::DnsVersion, parse::txt).unwrap_or_default(),
            nameserver: self.nameserver(listen),
            chaos: self
                .maybe(Key::Chaos, |text| parse::txt(text).map(Some))
                .map(|version| Chaos { version, hostname: nsid.clone().unwrap_or_else(|| self.machine.host.clone()) }),
            nsid: nsid.map(String::into_bytes),
        }
    }

    /// The zones, in the order given.
    fn zones(&mut self) -> Vec<String> {
        // The zone's place in the list goes through replies and counters as one byte.
        const MOST: usize = 255;
        let zones = self.many(Key::Zone, |text| parse::zone(text).map(|zone| vec![zone]));
        if zones.is_empty() && self.problems.is_empty() {
            self.refuse(Key::Zone, "", ("no zone".to_owned(), "give one, such as clusterset.local".to_owned()));
        }
        if zones.len() > MOST {
            let why = format!("{} zones", zones.len());
            self.refuse(Key::Zone, "", (why, format!("give at most {MOST}")));
        }
        zones
    }

    /// What was given; else the listen addresses that are no wildcard, those that others reach before loopback
    /// (`dns.md` A2).
    fn nameserver(&mut self, listen: &[SocketAddr]) -> Vec<IpAddr> {
        if self.raw.get(Key::Nameserver).is_some() {
            return self.many(Key::Nameserver, |text| parse::nameserver(text).map(|ip| vec![ip]));
        }
        let mut seen = HashSet::new();
        let specific = listen.iter().map(SocketAddr::ip).filter(|ip| !ip.is_unspecified());
        let specific: Vec<_> = specific.filter(|ip| seen.insert(*ip)).collect();
        let reachable: Vec<_> = specific.iter().copied().filter(|ip| !ip.is_loopback()).collect();
        if reachable.is_empty() { specific } else { reachable }
    }

    fn source(&mut self) -> Option<Source> {
        let folder = self.raw.get(Key::From);
        let kube = [Key::Kubeconfig, Key::Context].map(|key| self.raw.get(key));
        let layer = |given: Option<&Given>| given.map_or(0, |given| given.place.layer());
        let above = kube.into_iter().map(layer).max().unwrap_or(0);
        if let Some(folder) = folder {
            if layer(Some(folder)) == above {
                let other = if kube[0].is_some() { "--kubeconfig" } else { "--context" };
                let why = format!("{other} is given too, and both say where imports come from");
                self.refuse(Key::From, &folder.to_string(), (why, "keep one of them".to_owned()));
                return None;
            }
            if layer(Some(folder)) > above {
                return Some(Source::Folder(resolve(&folder.place, &folder.to_string())));
            }
        }
        match kube {
            [None, None] => self.machine.source.clone(),
            [kubeconfig, context] => Some(Source::Kube {
                kubeconfig: kubeconfig.map(|given| resolve(&given.place, &given.to_string())),
                context: context.map(ToString::to_string),
            }),
        }
    }

    fn admin(&mut self) -> Admin {
        let (raw, ipv6) = (self.raw, self.machine.ipv6);
        let mut address = |key, port| {
            self.one(key, |text| match text {
                "none" => Ok(None),
                _ => parse::bind(text, port).map(|bind| Some(bind.one_socket(ipv6))),
            })
            .flatten()
        };
        let all = address(Key::Admin, 8053);
        let mut moved = |key, port| if raw.get(key).is_some() { address(key, port) } else { all };
        Admin {
            explain: all,
            health: moved(Key::Health, 8080),
            ready: moved(Key::Ready, 8181),
            metrics: moved(Key::Metrics, 9153),
        }
    }

    fn listen(&mut self) -> Vec<SocketAddr> {
        let ipv6 = self.machine.ipv6;
        self.many(Key::Listen, |text| parse::bind(text, 53).map(|bind| bind.each_family(ipv6)))
    }

    /// What [`telemetry::init`](crate::telemetry::init) will understand.
    fn filter(&mut self) -> String {
        const REMEDY: &str = "give error, warn, info, debug or trace, or a filter such as info,namesake::source=debug";
        self.one(Key::LogLevel, |text| {
            // A word that is no level would be taken for a module, and nothing of it be seen.
            let level = |part: &str| part == "off" || part.parse::<tracing::Level>().is_ok();
            match text.split(',').find(|part| !part.contains('=') && !level(part)) {
                Some(part) => Err((format!("{part:?} is no level"), REMEDY.to_owned())),
                None => match EnvFilter::try_new(text) {
                    Ok(_) => Ok(text.to_owned()),
                    Err(error) => Err((error.to_string(), REMEDY.to_owned())),
                },
            }
        })
        .unwrap_or_default()
    }

    fn max_stale(&mut self) -> Option<Duration> {
        // A quiet watch is renewed about every 50 s (`dns.md` L9): less would expire healthy data.
        const LEAST: Duration = Duration::from_secs(60);
        self.maybe(Key::MaxStale, |text| match (text, duration::parse(text)) {
            ("never", _) => Ok(None),
            (_, Ok(time)) if time < LEAST => {
                Err(("shorter than the silence of a healthy watch".to_owned(), "give 60s or more, or never".to_owned()))
            }
            (_, Ok(time)) => Ok(Some(time)),
            (_, Err(why)) => Err((why.to_owned(), "write it as 10m, or never".to_owned())),
        })
    }

    // --- one setting of a kind

    fn number(&mut self, key: Key, least: u64, most: u64, unit: &str) -> u64 {
        self.one(key, |text| parse::number(text, least, most, unit)).unwrap_or(least)
    }

    fn count(&mut self, key: Key, least: u64, most: u64) -> usize {
        self.number(key, least, most, "") as usize
    }

    fn switch(&mut self, key: Key) -> bool {
        self.one(key, parse::switch).unwrap_or_default()
    }

    fn word<T: Copy + Default>(&mut self, key: Key, words: &[(&str, T)]) -> T {
        self.one(key, |text| parse::word(text, words)).unwrap_or_default()
    }

    fn duration(&mut self, key: Key, most: Duration) -> Duration {
        self.one(key, |text| match duration::parse(text) {
            Ok(time) if time <= most => Ok(time),
            Ok(_) => Err(("too long".to_owned(), format!("give at most {}s", most.as_secs()))),
            Err(why) => Err((why.to_owned(), format!("write it as 5s, 100ms or 1m30s{}", hint(text, why)))),
        })
        .unwrap_or_default()
    }

    /// A duration that can't be nothing.
    fn wait(&mut self, key: Key) -> Duration {
        let time = self.duration(key, Duration::from_secs(3600));
        if time.is_zero() && self.problems.is_empty() {
            self.refuse(key, "0s", ("no time at all".to_owned(), "give 100ms or more".to_owned()));
        }
        time
    }

    // --- values of the layers

    /// The values that count, and their place.
    fn values(&self, key: Key) -> (Vec<String>, Place) {
        match self.raw.get(key) {
            Some(given) => (given.values.clone(), given.place.clone()),
            None => {
                let default = key.spec().default;
                let many = key.spec().shape == Shape::Many;
                (if many { split(default) } else { vec![default.to_owned()] }, Place::Default)
            }
        }
    }

    fn refuse(&mut self, key: Key, value: &str, (why, remedy): Refusal) {
        let place = self.values(key).1.of(key.spec());
        let place = if value.is_empty() { place } else { format!("{place} {value}") };
        self.problems.push(Problem { place, why, remedy });
    }

    /// A value that always is there, by default if not else.
    fn one<T>(&mut self, key: Key, parse: impl FnOnce(&str) -> Result<T, Refusal>) -> Option<T> {
        let (values, _) = self.values(key);
        let text = values.first().map_or("", |text| text.trim());
        match parse(text) {
            Ok(value) => Some(value),
            Err(refusal) => {
                self.refuse(key, if text.is_empty() { "\"\"" } else { text }, refusal);
                None
            }
        }
    }

    /// A value that may be absent.
    fn maybe<T>(&mut self, key: Key, parse: impl FnOnce(&str) -> Result<Option<T>, Refusal>) -> Option<T> {
        if self.raw.get(key).is_none() && key.spec().default.is_empty() {
            return None;
        }
        self.one(key, parse).flatten()
    }

    /// Any number of values, each once.
    fn many<T: PartialEq>(&mut self, key: Key, parse: impl Fn(&str) -> Result<Vec<T>, Refusal>) -> Vec<T> {
        let (values, _) = self.values(key);
        let mut all: Vec<T> = Vec::new();
        for text in &values {
            match parse(text.trim()) {
                Ok(found) if found.iter().any(|value| all.contains(value)) => {
                    self.refuse(key, text, ("given twice".to_owned(), "keep one of them".to_owned()));
                }
                Ok(found) => all.extend(found),
                Err(refusal) => self.refuse(key, text, refusal),
            }
        }
        all
    }
}

fn hint(text: &str, why: &str) -> String {
    if why == "has no unit" { format!(", so {text}s for seconds") } else { String::new() }
}

/// What is allowed but probably not meant.
fn warnings(answers: &Options) -> Vec<String> {
    let mut warnings = Vec::new();
    for zone in &answers.zones {
        if zone == "cluster.local" || zone.ends_with(".cluster.local") {
            warnings.push(format!(
                "zone {zone}: only ServiceImports are served here, the cluster's own Services are not; \
                 forward clusterset.local to this server and leave cluster.local to the cluster's DNS"
            ));
        }
        if let Some(inner) = answers.zones.iter().find(|other| other.ends_with(&format!(".{zone}"))) {
            warnings.push(format!("zone {inner} lies inside zone {zone} and hides the names there"));
        }
    }
    for (name, ttl) in [("ttl", answers.ttl), ("negttl", answers.negttl)] {
        if ttl < 5 {
            warnings.push(format!("{name} {ttl} has no effect behind CoreDNS's cache, which raises it to 5"));
        }
    }
    warnings
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
