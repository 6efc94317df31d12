//! `namesake join` and `namesake leave`: a cluster becomes a member of a clusterset, or is one no longer.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{Exit, complain};
use crate::controller::enrol::manifests::{self, Grant};
use crate::controller::enrol::{self, Cluster, EnrolError, Join, Leave};
use crate::controller::members::IdRules;
use crate::source::kube::{Access, default_kubeconfig};

pub(super) const JOIN: &str = "\
Make a cluster a member: installs the CRDs of the Multi-Cluster Services API in it where they are absent or older, makes
an account with no more rights than the controller needs, and registers the cluster in the hub by a labelled Secret with
the account's token. Says what it does; may be repeated.

CONTEXT and the hub's context are contexts of your own kubeconfig, of somebody who may do this.";

pub(super) const JOIN_EXAMPLES: &str = "\
Examples:
  namesake join east --hub hub --id east         the context `east` becomes the cluster `east`
  namesake join kind-a --hub kind-hub --id a --server https://172.18.0.3:6443
                                                 the hub reaches it at another address than you
  namesake join west --hub east --id west --read-only
                                                 one controller per cluster: that of east reads west's exports

Exit codes:
  0  it is a member
  1  a step could not be done: the message says which and why
  2  flags are wrong";

pub(super) const LEAVE: &str = "\
Take a cluster out of the clusterset: deletes its Secret in the hub, its account, and everything that the controller has
written into it: ServiceImports, derived Services, EndpointSlices, conditions. Your Services and ServiceExports stay, and
so do the CRDs. The controller takes the cluster's endpoints out of the other members. May be repeated.";

pub(super) const LEAVE_EXAMPLES: &str = "\
Examples:
  namesake leave east --hub hub
  namesake leave east --member-only              the hub is gone: clean up the member alone
  namesake leave west --hub east --read-only     east's controller shall read west no more; west stays as it is

Exit codes:
  0  it is a member no longer, and nothing of ours is left in it
  1  a step could not be done: the message says which and why
  2  flags are wrong";

/// The arguments of `join`.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct JoinArgs {
    #[command(flatten)]
    common: Common,
    /// The context of the hub, where the controller runs
    #[arg(long, value_name = "CONTEXT")]
    hub: String,
    /// The cluster's id, one DNS label; without it, its ClusterProperty cluster.clusterset.k8s.io says it
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The URL at which the controller reaches the cluster, where it is not yours
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Take an id of two labels, `name.context`; only Namesake's own DNS can serve it
    #[arg(long)]
    allow_two_label_cluster_id: bool,
    /// The hub's controller only reads here: for one controller per cluster (--write-only-to), of which another one
    /// writes into this cluster
    #[arg(long)]
    read_only: bool,
    /// Allow the controller what a policy needs that is off by default (repeatable)
    #[arg(long, value_name = "POLICY", conflicts_with = "read_only")]
    grant: Vec<Policy>,
}

/// Policies that need rights of their own.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Policy {
    /// Make ServiceExports of labelled Services (--auto-export)
    AutoExport,
    /// Make namespaces that are missing (--create-namespaces)
    CreateNamespaces,
    /// And delete those that nothing is in any more: to know that, everything in the cluster may be listed
    RemoveNamespaces,
    /// Renew Leases that say who is heard, in our own namespace (--source-leases)
    SourceLeases,
}

impl Policy {
    fn grant(self) -> Grant {
        match self {
            Self::AutoExport => Grant::AutoExport,
            Self::CreateNamespaces => Grant::CreateNamespaces,
            Self::RemoveNamespaces => Grant::RemoveNamespaces,
            Self::SourceLeases => Grant::SourceLeases,
        }
    }
}

/// The arguments of `leave`.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct LeaveArgs {
    #[command(flatten)]
    common: Common,
    /// The context of the hub, where the controller runs
    #[arg(long, value_name = "CONTEXT", required_unless_present = "member_only")]
    hub: Option<String>,
    /// Leave the hub alone: it is gone, or not to be had
    #[arg(long, conflicts_with = "hub")]
    member_only: bool,
    /// The cluster's id, where its Secret in the hub was not made by `join`
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Undo `join --read-only`: what the cluster's own controller wrote stays
    #[arg(long)]
    read_only: bool,
}

#[derive(Debug, Clone, ClapArgs)]
struct Common {
    /// The context of the cluster
    #[arg(value_name = "CONTEXT")]
    context: String,
    /// The kubeconfig with the contexts [default: kubectl's choice]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Our namespace in both clusters
    #[arg(long, value_name = "NAME", default_value = manifests::NAMESPACE)]
    namespace: String,
}

impl Common {
    fn access(&self, context: &str) -> Access {
        let file = self.kubeconfig.clone().unwrap_or_else(|| default_kubeconfig(Some(context)));
        Access::Kubeconfig { file, context: Some(context.to_owned()) }
    }

    async fn connect(&self, context: &str) -> Result<Cluster, EnrolError> {
        Cluster::connect(context, &self.access(context)).await
    }
}

/// Makes a member.
pub(super) fn join(args: &JoinArgs) -> Exit {
    run(async {
        let common = &args.common;
        let wanted = Join {
            access: common.access(&common.context),
            id: args.id.clone(),
            server: args.server.clone(),
            namespace: common.namespace.clone(),
            rules: IdRules { two_labels: args.allow_two_label_cluster_id, clusterset: None },
            read_only: args.read_only,
            grants: args.grant.iter().map(|policy| policy.grant()).collect(),
        };
        let member = common.connect(&common.context).await?;
        let hub = common.connect(&args.hub).await?;
        enrol::join(&member, &hub, &wanted, &mut say).await?;
        Ok(())
    })
}

/// Takes a member out.
pub(super) fn leave(args: &LeaveArgs) -> Exit {
    run(async {
        let common = &args.common;
        let wanted = Leave { id: args.id.clone(), namespace: common.namespace.clone(), read_only: args.read_only };
        let member = common.connect(&common.context).await?;
        let hub = match &args.hub {
            Some(hub) => Some(common.connect(hub).await?),
            None => None,
        };
        enrol::leave(&member, hub.as_ref(), &wanted, &mut say).await
    })
}

/// Each step as it is done. Whoever reads no more has seen enough.
fn say(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

fn run(task: impl Future<Output = Result<(), EnrolError>>) -> Exit {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format_args!("no runtime: {error}; raise the limits of this process"));
            return Exit::Failure;
        }
    };
    match runtime.block_on(task) {
        Ok(()) => Exit::Ok,
        Err(error) => {
            complain(&error);
            Exit::Failure
        }
    }
}
