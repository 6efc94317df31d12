//! `namesake explain`: what a name answers, and why.

use std::sync::PoisonError;
use std::time::Duration;

use clap::{Arg, ArgMatches, FromArgMatches};

use super::settings::{self, Flags};
use super::{Exit, complain, expand, http, print};
use crate::answers;
use crate::config::dns::{Key, Source};
use crate::config::{Keyed, Section};
use crate::serve;

pub(super) const ABOUT: &str = "\
Say what a name answers, and why: from the import to the slice, endpoint, condition and source cluster. For a negative
answer: what is missing, and the nearest names that exist.

NAME may be short: web.shop is web.shop.svc.clusterset.local. A final dot keeps it as it is.";

pub(super) const EXAMPLES: &str = "\
Examples:
  namesake explain web.shop --from config/example                the data of a folder
  namesake explain web.shop AAAA --server 127.0.0.1:8053         a running server, at its --admin address
  namesake explain _http._tcp.web.shop SRV --context east        a cluster, with its kubeconfig

Without --server and --from, the cluster is the one kubectl would ask, or in a pod the pod's own.

Exit codes:
  0  explained, whatever the answer is
  1  it could not be: the folder, cluster or server does not answer
  2  flags, variables or settings file are wrong";

/// The sections whose settings decide what is answered.
const SECTIONS: [Section; 4] = [Section::Source, Section::Zone, Section::Names, Section::Identity];

/// The arguments.
#[derive(Debug, Clone)]
pub(super) struct Args {
    name: String,
    qtype: String,
    server: Option<String>,
    flags: Flags,
}

impl FromArgMatches for Args {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let text = |id: &str| matches.get_one::<String>(id).cloned();
        Ok(Self {
            name: text("name").unwrap_or_default(),
            qtype: text("type").unwrap_or_default(),
            server: text("server"),
            flags: Flags::of(matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Args {
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = command
            .arg(Arg::new("name").value_name("NAME").required(true).help("The name to explain"))
            .arg(
                Arg::new("type")
                    .value_name("TYPE")
                    .default_value("A")
                    .hide_default_value(true)
                    .help("The type to ask for: A, AAAA, SRV, TXT, … [default: A]"),
            )
            .arg(
                Arg::new("server")
                    .long("server")
                    .value_name("ADDR:PORT")
                    .conflicts_with_all(["from", "kubeconfig", "context"])
                    .help("Ask a running server, at its --admin address")
                    .help_heading(Section::Source.title()),
            );
        settings::augment::<Key>(command, &SECTIONS)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

/// Explains.
pub(super) fn command(args: &Args) -> Exit {
    if let Some(server) = &args.server {
        return ask(server, args);
    }
    // Looking is harmless: so, unlike the server, this takes the cluster that kubectl would take.
    let kubectl = Source::Kube { kubeconfig: None, context: None };
    let settings = match args.flags.settings(Some(kubectl)) {
        Ok(settings) => settings,
        Err(error) => {
            complain(&error);
            return Exit::Usage;
        }
    };
    let Some(qtype) = answers::type_number(&args.qtype) else {
        complain(&format_args!("{:?} is no record type; give A, AAAA, SRV, TXT or TYPE<number>", args.qtype));
        return Exit::Usage;
    };
    let zone = settings.answers.zones.first().cloned().unwrap_or_default();
    let Some(name) = full_name(&args.name, &zone) else {
        return Exit::Usage;
    };
    match serve::look(&settings.source, settings.answers, PATIENCE) {
        Ok((index, store)) => {
            let index = index.read().unwrap_or_else(PoisonError::into_inner);
            print(&answers::explain(&index, &store, &name, qtype))
        }
        Err(error) => {
            complain(&error);
            Exit::Failure
        }
    }
}

/// The whole of a name that may be short, or a complaint.
fn full_name(typed: &str, zone: &str) -> Option<String> {
    let name = expand::expand(typed, zone);
    let valid = answers::is_name(&name);
    if !valid {
        complain(&format_args!(
            "{typed:?} is no DNS name: a label is empty or longer than 63 bytes, or the whole too long; \
             give one such as web.shop or web.shop.svc.{zone}"
        ));
    }
    valid.then_some(name)
}

/// How long a cluster may take to send its lists.
const PATIENCE: Duration = Duration::from_secs(15);

/// Lets a running server explain.
fn ask(server: &str, args: &Args) -> Exit {
    let zone = args.flags.raw().get(Key::Zone).and_then(|given| given.values.first().cloned());
    let zone = zone.unwrap_or_else(|| Key::Zone.spec().default.to_owned());
    let Some(name) = full_name(&args.name, zone.trim_end_matches('.')) else {
        return Exit::Usage;
    };
    let path = format!("/explain?name={}&type={}", http::encode(&name), http::encode(&args.qtype));
    match http::get(server, &path) {
        Ok(answer) if answer.status == 200 => print(&answer.body),
        Ok(answer) => {
            let body = answer.body.trim();
            let why = if body.is_empty() { "no reason given" } else { body };
            complain(&format_args!(
                "{server}: HTTP status {}: {why}; is it the --admin address of `namesake dns`?",
                answer.status
            ));
            Exit::Failure
        }
        Err(error) => {
            complain(&format_args!("{server}: {error}"));
            Exit::Failure
        }
    }
}
