//! The settings of a [`Keyed::TABLE`] as flags, and the three layers put together.

use std::net::{Ipv6Addr, UdpSocket};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, FromArgMatches};

use crate::config::dns::{Key, Machine, Settings, Source};
use crate::config::{ConfigError, Given, Keyed, Place, Raw, Section, Shape, Spec, unknown_variables};

/// The id of the flag that names the settings file.
const FILE: &str = "config";

/// The flags of these sections, and `--config`.
pub(super) fn augment<K: Keyed>(command: clap::Command, sections: &[Section]) -> clap::Command {
    augment_with::<K>(command, sections, &[])
}

/// The same for a command that has defaults of its own.
pub(super) fn augment_with<K: Keyed>(
    command: clap::Command,
    sections: &[Section],
    defaults: &[(K, &str)],
) -> clap::Command {
    let help = format!(
        "Read settings from this YAML file; config/{}.example.yaml shows every key [variable: {}]",
        K::COMMAND,
        K::file_variable()
    );
    flags(command.arg(file(FILE, help)), sections, defaults)
}

/// The flag that names a settings file.
pub(super) fn file(name: &'static str, help: String) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help(help)
        .help_heading("Settings")
}

/// The flags of these sections.
pub(super) fn flags<K: Keyed>(command: clap::Command, sections: &[Section], defaults: &[(K, &str)]) -> clap::Command {
    let specs = K::TABLE.iter().filter(|spec| sections.contains(&spec.section));
    let args = specs.map(|spec| {
        let own = defaults.iter().find(|(key, _)| *key == spec.key);
        flag(spec, own.map_or(spec.default, |(_, default)| default))
    });
    command.args(args)
}

/// The flag of one setting.
pub(super) fn flag<K: Keyed>(spec: &Spec<K>, default: &str) -> Arg {
    let mut help = spec.help.to_owned();
    if spec.shape == Shape::Many {
        help.push_str(" (repeatable)");
    }
    if !default.is_empty() && spec.shape != Shape::Switch {
        help.push_str(&format!(" [default: {default}]"));
    }
    let arg = Arg::new(spec.name)
        .long(spec.name.replace('_', "-"))
        .value_name(spec.value)
        .help(help)
        .help_heading(spec.section.title());
    match spec.shape {
        Shape::One => arg.action(ArgAction::Set),
        Shape::Many => arg.action(ArgAction::Append).value_delimiter(','),
        Shape::Switch => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .hide_possible_values(true),
    }
}

/// What was typed on the command line.
#[derive(Debug, Clone)]
pub(super) struct Flags<K = Key> {
    file: Option<PathBuf>,
    raw: Raw<K>,
}

impl<K> Default for Flags<K> {
    fn default() -> Self {
        Self { file: None, raw: Raw::default() }
    }
}

/// A command whose arguments are all of its settings and nothing else has these.
impl<K: Keyed> FromArgMatches for Flags<K> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self::of(matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::of(matches);
        Ok(())
    }
}

impl<K: Keyed> clap::Args for Flags<K> {
    fn augment_args(command: clap::Command) -> clap::Command {
        augment::<K>(command, K::SECTIONS)
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<K: Keyed> Flags<K> {
    /// The flags among `matches`.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        Self::among(matches, FILE, |_| true)
    }

    /// The flags of `wanted` settings, and the file that the flag `file` names.
    pub(super) fn among(matches: &ArgMatches, file: &str, wanted: impl Fn(&Spec<K>) -> bool) -> Self {
        let mut raw = Raw::default();
        for spec in K::TABLE.iter().filter(|spec| wanted(spec)) {
            if let Ok(Some(values)) = matches.try_get_many::<String>(spec.name) {
                raw.set(spec.key, Given { values: values.cloned().collect(), place: Place::Flag });
            }
        }
        Self { file: matches.get_one::<PathBuf>(file).cloned(), raw }
    }

    /// What was typed.
    pub(super) fn raw(&self) -> &Raw<K> {
        &self.raw
    }

    /// The file, the variables and the flags, as one.
    pub(super) fn layers(&self) -> Result<Raw<K>, ConfigError> {
        let mut raw = self.raw.clone();
        let variable = |name: &str| std::env::var(name).ok();
        raw.read_variables(variable);
        let named = variable(&K::file_variable()).filter(|name| !name.is_empty()).map(PathBuf::from);
        if let Some(file) = self.file.clone().or(named) {
            raw.read_file(&file)?;
        }
        Ok(raw)
    }
}

impl Flags {
    /// The settings of all layers. Outside pods, `source` is where imports come from when nobody says.
    pub(super) fn settings(&self, source: Option<Source>) -> Result<Settings, ConfigError> {
        self.settings_with(source, &[])
    }

    /// The same for a command that has defaults of its own.
    pub(super) fn settings_with(
        &self,
        source: Option<Source>,
        defaults: &[(Key, &str)],
    ) -> Result<Settings, ConfigError> {
        let machine = Machine { source: in_pod().then_some(Source::InCluster).or(source), ipv6: ipv6(), host: host() };
        let mut raw = self.layers()?;
        for (key, default) in defaults {
            raw.set(*key, Given { values: vec![(*default).to_owned()], place: Place::Default });
        }
        let mut settings = Settings::check(&raw, &machine)?;
        settings.warnings.extend(strangers());
        Ok(settings)
    }
}

/// Warnings about variables that look like ours and are none.
pub(super) fn strangers() -> Vec<String> {
    // `vars` would panic at a name that is no UTF-8; ours are.
    unknown_variables(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
}

/// Whether IPv6 sockets can be had.
pub(super) fn ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

/// The machine's name.
pub(super) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "namesake".to_owned() } else { name.to_owned() }
}

/// Whether this is a pod's process: Kubernetes gives every container this variable.
pub(super) fn in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}
