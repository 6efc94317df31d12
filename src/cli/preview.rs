//! What `plan` and `sandbox` take of the controller's settings: the policies, and clusters to look at.

use std::time::Duration;

use clap::{Arg, ArgMatches, FromArgMatches};

use super::controller::machine;
use super::settings::{self, Flags};
use crate::config::controller::{Key, POLICIES, Preview};
use crate::config::{ConfigError, Keyed, Section, Spec};

/// The controller's settings file, where `--config` is another one.
const FILE: &str = "controller-config";

/// How long clusters may take to send their lists.
const PATIENCE: Duration = Duration::from_secs(15);

/// The policies alone.
#[derive(Debug, Clone)]
pub(super) struct Policies {
    flags: Flags<Key>,
}

impl Policies {
    /// Their flags.
    pub(super) fn augment(command: clap::Command) -> clap::Command {
        let help =
            format!("Read the policies from this settings file of the controller [variable: {}]", Key::file_variable());
        settings::flags::<Key>(command.arg(settings::file(FILE, help)), POLICIES, &[])
    }

    /// What was typed.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        Self { flags: Flags::among(matches, FILE, |spec| POLICIES.contains(&spec.section)) }
    }

    /// What they mean.
    pub(super) fn checked(&self) -> Result<crate::reconcile::Settings, ConfigError> {
        Ok(Preview::check(&self.flags.layers()?, &machine())?.policy)
    }
}

/// The policies, and clusters to look at.
#[derive(Debug, Clone)]
pub(super) struct Look {
    flags: Flags<Key>,
    timeout: Option<String>,
}

impl Look {
    fn takes(spec: &Spec<Key>) -> bool {
        matches!(spec.section, Section::Members) || matches!(spec.key, Key::Kubeconfig | Key::Hub | Key::Namespace)
    }

    /// What was typed, and all layers.
    pub(super) fn checked(&self) -> Result<Preview, ConfigError> {
        Preview::check(&self.flags.layers()?, &machine())
    }

    /// A flag that names clusters, if any was typed.
    pub(super) fn named(&self) -> Option<String> {
        let specs = Key::TABLE.iter().filter(|spec| Self::takes(spec));
        specs.filter(|spec| self.flags.raw().get(spec.key).is_some()).map(Spec::flag).next()
    }

    /// How long clusters may take, or what is wrong with what was typed.
    pub(super) fn patience(&self) -> Result<Duration, String> {
        let Some(text) = &self.timeout else { return Ok(PATIENCE) };
        let why = match crate::config::duration(text) {
            Ok(time) if time.is_zero() => "no time at all",
            Ok(time) => return Ok(time),
            Err(why) => why,
        };
        Err(format!("--timeout {text}: {why}; write it as 15s or 1m"))
    }
}

impl FromArgMatches for Look {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = Flags::of(matches);
        Ok(Self { flags, timeout: matches.get_one::<String>("timeout").cloned() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Look {
    fn augment_args(command: clap::Command) -> clap::Command {
        let command = settings::augment::<Key>(command, &[]);
        let looking = Key::TABLE.iter().filter(|spec| Self::takes(spec));
        let command = command.args(looking.map(|spec| settings::flag(spec, spec.default))).arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("DURATION")
                .help("How long the clusters may take to send their lists [default: 15s]")
                .help_heading(Section::Members.title()),
        );
        settings::flags::<Key>(command, POLICIES, &[])
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
