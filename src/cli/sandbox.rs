//! `namesake sandbox`: a folder of clusters → the simulated clusterset, and DNS as seen from one of them.

use std::io;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, FromArgMatches};

use super::preview::Policies;
use super::settings::{self, Flags};
use super::{Exit, complain};
use crate::config::Section;
use crate::config::dns::{Key, Source};
use crate::preview::Sandbox;
use crate::serve;

pub(super) const ABOUT: &str = "\
Run a clusterset from a folder of YAML, without a cluster.

Each sub-folder of DIR is a cluster: Services, Pods or EndpointSlices, ServiceExports, Namespaces. The real merge makes
ServiceImports of the ServiceExports, in every cluster, and the real DNS answers for them, as seen from one cluster.
Edit the files: every edit is picked up, and told in words.";

pub(super) const EXAMPLES: &str = "\
Examples:
  namesake sandbox config/sandbox                                the example, on 127.0.0.1:1053
  namesake sandbox clusters --view east --listen 127.0.0.1:5353  your own, as seen from the cluster east

What API servers and kubelets would fill in may be missing: clusterset and pod IPs, uids and defaults are made up, always
the same. A pod without status is ready. A ServiceExport without creationTimestamp is younger than those that have one.

The policies of the controller are flags, variables (NAMESAKE_CONTROLLER_*) and keys of its settings file here too.

A line that begins with + says that something is new, with ~ that it changed, with - that it is gone, with ! that it is
wrong; one that begins with # says which manifest was edited.

Exit codes:
  0  ended by a signal
  1  it could not start, or could not go on: the message says why
  2  flags, variables or settings file are wrong";

/// The folder when nobody says.
pub(super) const DEFAULT_DIR: &str = "config/sandbox";

const SECTIONS: [Section; 7] = [
    Section::Zone,
    Section::Names,
    Section::Identity,
    Section::Serving,
    Section::Tcp,
    Section::Admin,
    Section::Lifecycle,
];

/// No privileges, and no port that something else may have.
const DEFAULTS: [(Key, &str); 1] = [(Key::Listen, "127.0.0.1:1053")];

/// The arguments.
#[derive(Debug, Clone)]
pub(super) struct Args {
    dir: PathBuf,
    view: Option<String>,
    flags: Flags,
    policies: Policies,
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            dir: matches.get_one::<PathBuf>("dir").cloned().unwrap_or_default(),
            view: matches.get_one::<String>("view").cloned(),
            flags: Flags::of(matches),
            policies: Policies::of(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = command.arg(dir()).arg(
            Arg::new("view")
                .long("view")
                .value_name("CLUSTER")
                .help("Answer as seen from this cluster; clusterset IPs differ from cluster to cluster [default: the first by name]")
                .help_heading("The clusterset"),
        );
        Policies::augment(settings::augment_with(command, &SECTIONS, &DEFAULTS))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// The argument that names the folder.
pub(super) fn dir() -> Arg {
    Arg::new("dir")
        .value_name("DIR")
        .value_parser(clap::value_parser!(PathBuf))
        .default_value(DEFAULT_DIR)
        .help("The folder with a sub-folder for each cluster")
}

/// Checks the settings and runs the sandbox.
pub(super) fn command(args: &Args) -> Exit {
    let checked = args.flags.settings_with(Some(Source::Folder(args.dir.clone())), &DEFAULTS);
    let (settings, policies) = match (checked, args.policies.checked()) {
        (Ok(settings), Ok(policies)) => (settings, policies),
        (settings, policies) => {
            for error in settings.err().iter().chain(policies.err().iter()) {
                complain(error);
            }
            return Exit::Usage;
        }
    };
    let sandbox = Sandbox::open(&args.dir, args.view.as_deref(), policies, Box::new(io::stdout()));
    let ended = match sandbox {
        Ok(sandbox) => serve::run_sandbox(settings, sandbox).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    match ended {
        Ok(()) => Exit::Ok,
        Err(error) => {
            complain(&error);
            Exit::Failure
        }
    }
}
