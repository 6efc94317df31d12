//! `namesake dns`: arguments → [`Settings`](crate::config::dns::Settings) → the server.

use super::settings::Flags;
use super::{Exit, run};
use crate::config::dns::Key;
use crate::serve;

pub(super) const ABOUT: &str = "\
Serve clusterset.local from ServiceImports and EndpointSlices.

An authoritative DNS server for the zone of the Multi-Cluster Services API (KEP-1645). It watches what any controller
writes, in a cluster or in a folder of YAML, and answers A, AAAA and SRV. It never resolves and never forwards: point
your cluster's DNS at it for this one zone.";

pub(super) const EXAMPLES: &str = "\
Examples:
  namesake dns --from config/example --listen 127.0.0.1:1053     no cluster at all
  namesake dns --kubeconfig ~/.kube/config --context east        a cluster, from outside
  namesake dns --listen :1053 --admin :8080                      in a pod
  namesake dns --config dns.yaml                                 settings from a file

Every flag is also a variable (--log-format: NAMESAKE_LOG_FORMAT) and a key of the file (log_format). A variable wins
over the file, a flag over both. Durations are written 100ms, 5s, 1m30s.

Exit codes:
  0  ended by a signal, after all queries were answered
  1  it could not start, or could not go on: the message says why
  2  flags, variables or settings file are wrong";

/// The arguments: every setting.
pub(super) type Args = Flags<Key>;

/// Checks the settings and runs the server.
pub(super) fn command(args: &Args) -> Exit {
    run(args.settings(None), serve::run)
}
