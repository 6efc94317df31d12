//! What the controller needs to know besides the policies of the merge.

use super::members::MemberSettings;
use crate::model::ClusterId;
use crate::reconcile;
use crate::source::kube::Access;

/// All that the controller needs to know.
#[derive(Debug, Clone)]
pub struct ControllerSettings {
    /// The hub: where inventories and the lease are.
    pub hub: Option<Access>,
    /// Where members are looked for.
    pub members: MemberSettings,
    /// The policies.
    pub policy: reconcile::Settings,
    /// The lease, where there may be several controllers.
    pub lease: Option<LeaseSettings>,
    /// Leases in every member that say which clusters are heard, where they are wanted.
    pub source_leases: Option<SourceLeases>,
    /// How much is written at a time.
    pub writes: WriteLimits,
}

/// Leases in every member that say which source clusters are heard (R84).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLeases {
    /// Their namespace in the members: that of ours, which `namesake join` has made.
    pub namespace: String,
    /// How long one lasts: the TTL of a cluster that can't be reached.
    pub duration: std::time::Duration,
}

/// A Lease in the hub that says who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Its namespace.
    pub namespace: String,
    /// Its name. Each shard has its own, which is called `<name>-<index>-of-<count>`; so has a controller that writes to
    /// one cluster alone: `<name>-<cluster>`.
    pub name: String,
    /// Who we are: unlike every other holder.
    pub identity: String,
    /// How long a holder that is not heard keeps it.
    pub duration: std::time::Duration,
}

/// The shortest duration of a Lease: below it a busy machine would lose it all the time.
pub const MIN_LEASE: std::time::Duration = std::time::Duration::from_secs(1);

impl LeaseSettings {
    /// The same for one of several shards, which has a Lease of its own.
    #[must_use]
    pub fn of_shard(self, index: u32, count: u32) -> Self {
        if count <= 1 {
            return self;
        }
        Self { name: format!("{}-{index}-of-{count}", self.name), ..self }
    }

    /// The same for a controller that writes to one cluster alone: others may write to the other clusters meanwhile.
    #[must_use]
    pub fn of_cluster(self, only: Option<&ClusterId>) -> Self {
        match only {
            Some(id) => Self { name: format!("{}-{id}", self.name), ..self },
            None => self,
        }
    }

    /// A name for this process that no other one has: the pod's or the host's, and something random, since a container
    /// that is started anew in its pod does not hold what the one before it held.
    #[must_use]
    pub fn fresh_identity() -> String {
        let pod = std::env::var("POD_NAME").ok().filter(|name| !name.is_empty());
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = pod.unwrap_or_else(host);
        let name = name.trim();
        format!("{}_{:08x}", if name.is_empty() { "namesake" } else { name }, fastrand::u32(..))
    }
}

/// Limits of the writes to one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteLimits {
    /// Requests a second, in the long run.
    pub per_second: u32,
    /// Services that are written at a time.
    pub concurrent: usize,
}

impl Default for WriteLimits {
    fn default() -> Self {
        Self { per_second: 100, concurrent: 8 }
    }
}
