//! From what was typed to what it means: every check, and nothing but checks.

use std::collections::HashSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Duration;

use super::Key;
use super::settings::{Machine, Settings, Source, TcpLimits};
use crate::answers::{Chaos, EmptyHeadless, EndpointNames, EndpointPolicy, Options};
use crate::config::check::{Checker, Ports};
use crate::config::error::{ConfigError, Problem};
use crate::config::raw::{Given, Raw, resolve};
use crate::config::{duration, parse};

impl Settings {
    /// Checks everything that was typed.
    ///
    /// # Errors
    ///
    /// Every problem that was found.
    pub fn check(raw: &Raw<Key>, machine: &Machine) -> Result<Self, ConfigError> {
        let mut check = Checker::new(raw, machine);
        let source = check.source();
        let settings = check.settings(source.clone().unwrap_or(Source::InCluster));
        if source.is_none() && check.problems.is_empty() {
            check.problems.push(Problem {
                place: "no source".to_owned(),
                why: "nothing says where ServiceImports come from".to_owned(),
                remedy: "give --from DIR or --kubeconfig FILE, or run in a pod".to_owned(),
            });
        }
        check.end(settings)
    }
}

/// Where routes are when they are served apart from the others.
const PORTS: Ports = Ports { admin: 8053, health: 8080, ready: 8181, metrics: 9153 };

impl Checker<'_, Key, Machine> {
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
            admin: self.admin([Key::Admin, Key::Health, Key::Ready, Key::Metrics], &PORTS, self.machine.ipv6),
            log: self.log(Key::LogFormat, Key::LogLevel, Some(Key::QueryLog)),
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

    fn listen(&mut self) -> Vec<SocketAddr> {
        let ipv6 = self.machine.ipv6;
        self.many(Key::Listen, |text| parse::bind(text, 53).map(|bind| bind.each_family(ipv6)))
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
