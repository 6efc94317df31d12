//! What the checks of every command share: values of the layers, one setting of a kind, probes and logs.

use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::duration;
use super::error::{ConfigError, Problem};
use super::keys::{Keyed, Shape};
use super::parse::{self, Refusal};
use super::raw::{Place, Raw, split};
use super::shared::{Admin, Log};
use crate::telemetry::LogFormat;

/// Checks what was typed for a command, on a machine.
pub(super) struct Checker<'a, K, M> {
    pub(super) raw: &'a Raw<K>,
    pub(super) machine: &'a M,
    pub(super) problems: Vec<Problem>,
}

/// The ports that remedies name.
pub(super) struct Ports {
    pub(super) admin: u16,
    pub(super) health: u16,
    pub(super) ready: u16,
    pub(super) metrics: u16,
}

impl<'a, K: Keyed, M> Checker<'a, K, M> {
    pub(super) fn new(raw: &'a Raw<K>, machine: &'a M) -> Self {
        Self { raw, machine, problems: Vec::new() }
    }

    /// The settings, if nothing was wrong.
    pub(super) fn end<T>(self, settings: T) -> Result<T, ConfigError> {
        if self.problems.is_empty() { Ok(settings) } else { Err(ConfigError { problems: self.problems }) }
    }

    // --- what every command has

    /// The addresses of the admin routes: of all, and of those that are moved away.
    pub(super) fn admin(&mut self, [all, health, ready, metrics]: [K; 4], ports: &Ports, ipv6: bool) -> Admin {
        let raw = self.raw;
        let mut address = |key, port| {
            self.one(key, |text| match text {
                "none" => Ok(None),
                _ => parse::bind(text, port).map(|bind| Some(bind.one_socket(ipv6))),
            })
            .flatten()
        };
        let all = address(all, ports.admin);
        let mut moved = |key, port| if raw.get(key).is_some() { address(key, port) } else { all };
        Admin {
            explain: all,
            health: moved(health, ports.health),
            ready: moved(ready, ports.ready),
            metrics: moved(metrics, ports.metrics),
        }
    }

    /// How things are logged.
    pub(super) fn log(&mut self, format: K, level: K, queries: Option<K>) -> Log {
        Log {
            format: self.word(format, &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
            filter: self.filter(level),
            queries: queries.is_some_and(|key| self.switch(key)),
        }
    }

    /// What [`telemetry::init`](crate::telemetry::init) will understand.
    fn filter(&mut self, key: K) -> String {
        const REMEDY: &str = "give error, warn, info, debug or trace, or a filter such as info,namesake::source=debug";
        self.one(key, |text| {
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

    // --- one setting of a kind

    pub(super) fn number(&mut self, key: K, least: u64, most: u64, unit: &str) -> u64 {
        self.one(key, |text| parse::number(text, least, most, unit)).unwrap_or(least)
    }

    pub(super) fn count(&mut self, key: K, least: u64, most: u64) -> usize {
        self.number(key, least, most, "") as usize
    }

    pub(super) fn switch(&mut self, key: K) -> bool {
        self.one(key, parse::switch).unwrap_or_default()
    }

    pub(super) fn word<T: Copy + Default>(&mut self, key: K, words: &[(&str, T)]) -> T {
        self.one(key, |text| parse::word(text, words)).unwrap_or_default()
    }

    pub(super) fn duration(&mut self, key: K, most: Duration) -> Duration {
        self.one(key, |text| match duration::parse(text) {
            Ok(time) if time <= most => Ok(time),
            Ok(_) => Err(("too long".to_owned(), format!("give at most {}s", most.as_secs()))),
            Err(why) => Err((why.to_owned(), format!("write it as 5s, 100ms or 1m30s{}", hint(text, why)))),
        })
        .unwrap_or_default()
    }

    /// A duration that can't be nothing.
    pub(super) fn wait(&mut self, key: K) -> Duration {
        let time = self.duration(key, Duration::from_secs(3600));
        if time.is_zero() && self.problems.is_empty() {
            self.refuse(key, "0s", ("no time at all".to_owned(), "give 100ms or more".to_owned()));
        }
        time
    }

    // --- values of the layers

    /// The values that count, and their place.
    pub(super) fn values(&self, key: K) -> (Vec<String>, Place) {
        match self.raw.get(key) {
            Some(given) => (given.values.clone(), given.place.clone()),
            None => {
                let default = key.spec().default;
                let many = key.spec().shape == Shape::Many;
                (if many { split(default) } else { vec![default.to_owned()] }, Place::Default)
            }
        }
    }

    pub(super) fn refuse(&mut self, key: K, value: &str, (why, remedy): Refusal) {
        let place = self.values(key).1.of(key.spec());
        let place = if value.is_empty() { place } else { format!("{place} {value}") };
        self.problems.push(Problem { place, why, remedy });
    }

    /// A value that always is there, by default if not else.
    pub(super) fn one<T>(&mut self, key: K, parse: impl FnOnce(&str) -> Result<T, Refusal>) -> Option<T> {
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
    pub(super) fn maybe<T>(&mut self, key: K, parse: impl FnOnce(&str) -> Result<Option<T>, Refusal>) -> Option<T> {
        if self.raw.get(key).is_none() && key.spec().default.is_empty() {
            return None;
        }
        self.one(key, parse).flatten()
    }

    /// Any number of values, each once.
    pub(super) fn many<T: PartialEq>(&mut self, key: K, parse: impl Fn(&str) -> Result<Vec<T>, Refusal>) -> Vec<T> {
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
