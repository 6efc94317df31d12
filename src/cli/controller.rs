//! `namesake controller`: arguments → [`Settings`] → the controller.

use super::settings::{self, Flags};
use super::{Exit, run};
use crate::config::ConfigError;
use crate::config::controller::{Key, Machine, Settings};
use crate::controller::LeaseSettings;
use crate::serve;
use crate::source::kube::default_kubeconfig;

pub(super) const ABOUT: &str = "\
Make ServiceImports of ServiceExports, in every member cluster.

The controller of the Multi-Cluster Services API (KEP-1645). It follows the ServiceExports, Services and EndpointSlices
of all members, merges the exports of each name, and writes ServiceImport, derived Service, EndpointSlices and conditions
into every member that has the namespace. Members are registered in the hub, by `namesake join` or by what you use
already, or are given here. It writes nothing else, and deletes only what it made.";

pub(super) const EXAMPLES: &str = "\
Examples:
  namesake controller                                            in a pod of the hub, for the clusters that joined
  namesake controller --hub hub                                  the same from outside
  namesake controller --hub hub --inventory cluster-api          the members are the clusters of Cluster API
  namesake controller --no-hub --member a --member kind-b=b      two contexts of your kubeconfig
  namesake controller --write-only-to east                       one controller per cluster
  namesake plan --member a=a --member kind-b=b                   what it would write, without writing it

Every flag is also a variable (--log-format: NAMESAKE_CONTROLLER_LOG_FORMAT) and a key of the file (log_format). A
variable wins over the file, a flag over both. Durations are written 100ms, 5s, 1m30s.

Exit codes:
  0  ended by a signal
  1  it could not start, or could not go on: the message says why
  2  flags, variables or settings file are wrong";

/// Where Kubernetes tells a pod its namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The arguments: every setting.
pub(super) type Args = Flags<Key>;

/// Checks the settings and runs the controller.
pub(super) fn command(args: &Args) -> Exit {
    run(settings(args), serve::run_controller)
}

fn settings(flags: &Flags<Key>) -> Result<Settings, ConfigError> {
    let mut settings = Settings::check(&flags.layers()?, &machine())?;
    settings.warnings.extend(settings::strangers());
    Ok(settings)
}

/// What can be seen of the machine.
pub(super) fn machine() -> Machine {
    let in_pod = settings::in_pod();
    let namespace = std::fs::read_to_string(NAMESPACE_FILE).ok().filter(|_| in_pod);
    let namespace = namespace.map(|text| text.trim().to_owned()).filter(|name| !name.is_empty());
    Machine {
        in_pod,
        namespace,
        identity: LeaseSettings::fresh_identity(),
        ipv6: settings::ipv6(),
        kubeconfig: default_kubeconfig,
    }
}
