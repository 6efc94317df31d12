//! The settings of [`KEYS`] as flags, and the three layers put together.

use std::net::{Ipv6Addr, UdpSocket};
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches};

use crate::config::{
    ConfigError, FILE_VARIABLE, Given, KEYS, Machine, Place, Raw, Section, Settings, Shape, Source, unknown_variables,
};

/// The flags of these sections, and `--config`.
pub(super) fn augment(command: clap::Command, sections: &[Section]) -> clap::Command {
    let file = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("Read settings from this YAML file; config/dns.example.yaml shows every key [variable: NAMESAKE_CONFIG]")
        .help_heading("Settings");
    let flags = KEYS.iter().filter(|spec| sections.contains(&spec.section)).map(|spec| {
        let mut help = spec.help.to_owned();
        if spec.shape == Shape::Many {
            help.push_str(" (repeatable)");
        }
        if !spec.default.is_empty() && spec.shape != Shape::Switch {
            help.push_str(&format!(" [default: {}]", spec.default));
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
    });
    command.arg(file).args(flags)
}

/// What was typed on the command line.
#[derive(Debug, Clone, Default)]
pub(super) struct Flags {
    file: Option<PathBuf>,
    raw: Raw,
}

impl Flags {
    /// The flags among `matches`.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let mut raw = Raw::default();
        for spec in KEYS {
            if let Ok(Some(values)) = matches.try_get_many::<String>(spec.name) {
                raw.set(spec.key, Given { values: values.cloned().collect(), place: Place::Flag });
            }
        }
        Self { file: matches.get_one::<PathBuf>("config").cloned(), raw }
    }

    /// Whether nothing was typed that says where imports come from.
    pub(super) fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The file, the variables and the flags, as one.
    pub(super) fn layers(&self) -> Result<Raw, ConfigError> {
        let mut raw = self.raw.clone();
        let variable = |name: &str| std::env::var(name).ok();
        raw.read_variables(variable);
        let named = variable(FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
        if let Some(file) = self.file.clone().or(named) {
            raw.read_file(&file)?;
        }
        Ok(raw)
    }

    /// The settings of all layers. Outside pods, `source` is where imports come from when nobody says.
    pub(super) fn settings(&self, source: Option<Source>) -> Result<Settings, ConfigError> {
        let mut machine = machine();
        machine.source = machine.source.or(source);
        let mut settings = Settings::check(&self.layers()?, &machine)?;
        // `vars` would panic at a name that is no UTF-8; ours are.
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        settings.warnings.extend(unknown_variables(names));
        Ok(settings)
    }
}

/// What can be seen of the machine.
fn machine() -> Machine {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    Machine {
        source: in_pod().then_some(Source::InCluster),
        ipv6: UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok(),
        host: if name.is_empty() { "namesake".to_owned() } else { name.to_owned() },
    }
}

/// Whether this is a pod's process: Kubernetes gives every container this variable.
fn in_pod() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}
