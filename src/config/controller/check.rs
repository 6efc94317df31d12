//! From what was typed to what it means: every check, and nothing but checks.

use std::net::SocketAddr;
use std::time::Duration;

use super::members::is_id;
use super::{Key, LiveClusters, Machine, Preview, Settings, policy};
use crate::config::check::{Checker, Ports};
use crate::config::error::{ConfigError, Problem};
use crate::config::parse::{self, Refusal};
use crate::config::{Admin, Raw};
use crate::controller::members::MemberSettings;
use crate::controller::settings::MIN_LEASE;
use crate::controller::{ControllerSettings, LeaseSettings, SourceLeases, WriteLimits};
use crate::reconcile::settings::Shard;

/// What names a cluster.
const CLUSTERS: [Key; 5] = [Key::Kubeconfig, Key::Hub, Key::Member, Key::MemberFolder, Key::Inventory];

/// The ports that remedies name.
const PORTS: Ports = Ports { admin: 8081, health: 8080, ready: 8181, metrics: 9153 };

impl Settings {
    /// Checks everything that was typed.
    ///
    /// # Errors
    ///
    /// Every problem that was found.
    pub fn check(raw: &Raw<Key>, machine: &Machine) -> Result<Self, ConfigError> {
        let mut check = Checker::new(raw, machine);
        let settings = check.settings();
        check.end(settings)
    }
}

impl Preview {
    /// Checks what was typed for a command that only looks: the policies and, where any cluster is named, the clusters.
    ///
    /// # Errors
    ///
    /// Every problem that was found.
    pub fn check(raw: &Raw<Key>, machine: &Machine) -> Result<Self, ConfigError> {
        let mut check = Checker::new(raw, machine);
        let policy = check.policy();
        let named = CLUSTERS.iter().any(|key| raw.get(*key).is_some());
        let clusters = named.then(|| {
            let hub = check.hub();
            let namespace = check.namespace();
            let members = check.members(hub.is_some(), &namespace);
            check.somebody(&members);
            // Nothing is looked for in it otherwise.
            let hub = hub.filter(|_| !members.inventories.is_empty());
            LiveClusters { hub, members }
        });
        check.end(Self { policy, clusters })
    }
}

impl Checker<'_, Key, Machine> {
    fn settings(&mut self) -> Settings {
        let hub = self.hub();
        let namespace = self.namespace();
        let members = self.members(hub.is_some(), &namespace);
        self.somebody(&members);
        let rules = members.rules.clone();
        let mut policy = self.policy();
        policy.shard = self.one(Key::Shard, shard).unwrap_or_default();
        policy.write_only_to = self.maybe(Key::WriteOnlyTo, |text| is_id(text, &rules).map(Some));
        let (part, only) = (policy.shard, policy.write_only_to.as_ref());
        let lease = self.lease(hub.is_some(), namespace.clone());
        let lease = lease.map(|lease| lease.of_cluster(only).of_shard(part.index, part.count));
        // Of several shards one is enough.
        let source_leases = (self.switch(Key::SourceLeases) && policy.shard.index == 0)
            .then_some(SourceLeases { namespace, duration: policy.unreachable.ttl });
        let writes = WriteLimits {
            per_second: self.number(Key::WritesPerSecond, 1, 100_000, "requests") as u32,
            concurrent: self.number(Key::ConcurrentWrites, 1, 1000, "services") as usize,
        };
        let mut warnings = policy::warnings(&policy);
        if hub.is_none() && !self.switch(Key::NoHub) {
            warnings.push(
                "there is no hub, so no lease: make sure that no second controller writes to these clusters, and say \
                 --no-hub"
                    .to_owned(),
            );
        }
        Settings {
            controller: ControllerSettings { hub, members, policy, lease, source_leases, writes },
            admin: self.routes(),
            log: self.log(Key::LogFormat, Key::LogLevel, None),
            warnings,
        }
    }

    /// There is something to look at for members.
    fn somebody(&mut self, members: &MemberSettings) {
        let MemberSettings { contexts, folder, inventories, .. } = members;
        if contexts.is_empty() && folder.is_none() && inventories.is_empty() && self.problems.is_empty() {
            self.problems.push(Problem {
                place: "no members".to_owned(),
                why: "nothing says where member clusters are".to_owned(),
                remedy: "give --hub CONTEXT, --member CONTEXT or --member-folder DIR, or run in a pod of the hub"
                    .to_owned(),
            });
        }
    }

    fn lease(&mut self, hub: bool, namespace: String) -> Option<LeaseSettings> {
        const LONGEST: Duration = Duration::from_secs(600);
        let none = self.switch(Key::NoLease);
        let name = self.one(Key::Lease, lease_name).unwrap_or_default();
        let duration = self.duration(Key::LeaseDuration, LONGEST);
        if duration < MIN_LEASE && self.problems.is_empty() {
            let why = "too short for a hub that hesitates".to_owned();
            let value = self.values(Key::LeaseDuration).0.concat();
            self.refuse(Key::LeaseDuration, &value, (why, "give 1s or more".to_owned()));
        }
        if none {
            self.contradiction(Key::Lease, Key::NoLease);
        }
        let identity = self.machine.identity.clone();
        (hub && !none).then_some(LeaseSettings { namespace, name, identity, duration })
    }

    /// Nobody outside a pod can ask for its loopback.
    fn routes(&mut self) -> Admin {
        let machine = self.machine;
        let mut admin = self.admin([Key::Admin, Key::Health, Key::Ready, Key::Metrics], &PORTS, machine.ipv6);
        if machine.in_pod && self.raw.get(Key::Admin).is_none() {
            let everywhere = parse::Bind::Everywhere(PORTS.admin).one_socket(machine.ipv6);
            let moved = |key| self.raw.get(key).is_some();
            let widen = |key, address: &mut Option<SocketAddr>| {
                if !moved(key) {
                    *address = Some(everywhere);
                }
            };
            admin.explain = Some(everywhere);
            widen(Key::Health, &mut admin.health);
            widen(Key::Ready, &mut admin.ready);
            widen(Key::Metrics, &mut admin.metrics);
        }
        admin
    }
}

/// `I/N`.
fn shard(text: &str) -> Result<Shard, Refusal> {
    let refuse = |why: &str| Err((why.to_owned(), "write I/N with I from 0 to N-1, such as 0/3".to_owned()));
    let parts = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
    match parts {
        None => refuse("no part of a number"),
        Some((_, 0)) => refuse("there is no part of nothing"),
        Some((_, 1001..)) => refuse("more parts than anybody can run"),
        Some((index, count)) if index >= count => refuse("there is no such part"),
        Some((index, count)) => Ok(Shard { index, count }),
    }
}

/// The name of a Lease, to which the shard may be added.
fn lease_name(text: &str) -> Result<String, Refusal> {
    let fits = text.len() <= 200 && text.split('.').all(|label| parse::namespace(label).is_ok());
    if fits {
        Ok(text.to_owned())
    } else {
        Err(("no name of a Lease".to_owned(), "give a-z, 0-9, - and dots, such as namesake-controller".to_owned()))
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
