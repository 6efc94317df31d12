//! `namesake dns`: arguments → [`Settings`](crate::config::dns::Settings) → the server.

use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};

use super::settings::{self, Flags};
use super::{Exit, complain};
use crate::config::Keyed;
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

/// The arguments.
#[derive(Debug, Clone)]
pub(super) struct Args {
    flags: Flags,
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { flags: Flags::of(matches) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.flags = Flags::of(matches);
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: clap::Command) -> clap::Command {
        settings::augment::<Key>(command, Key::SECTIONS)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// Checks the settings and runs the server.
pub(super) fn command(args: &Args) -> ExitCode {
    match args.flags.settings(None) {
        Ok(settings) => match serve::run(settings) {
            Ok(()) => Exit::Ok.into(),
            Err(error) => {
                complain(&error);
                Exit::Failure.into()
            }
        },
        Err(error) => {
            complain(&error);
            Exit::Usage.into()
        }
    }
}
