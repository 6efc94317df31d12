//! What was typed, and where. Nothing here knows what a value means.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::nearest;
use super::keys::{Keyed, Shape, Spec};
use super::{controller, dns};

/// Where a value was written. Its order is the order of the layers: a later one wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Nowhere: the default of the table.
    Default,
    /// A line of the settings file.
    File(Arc<Path>, u64),
    /// The environment variable of the key.
    Variable,
    /// The flag of the key.
    Flag,
}

impl Place {
    /// Its layer; places of the same layer differ in their line only.
    #[must_use]
    pub fn layer(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File(..) => 1,
            Self::Variable => 2,
            Self::Flag => 3,
        }
    }

    /// The place of a value of `spec`, as an error message names it.
    #[must_use]
    pub fn of<K: Keyed>(&self, spec: &Spec<K>) -> String {
        match self {
            Self::Default => format!("{} (default)", spec.flag()),
            Self::File(path, line) => format!("{}:{line}: {}", path.display(), spec.name),
            Self::Variable => spec.variable(),
            Self::Flag => spec.flag(),
        }
    }
}

/// What one layer says about one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The values, one unless the setting is a list.
    pub values: Vec<String>,
    /// Where they were written.
    pub place: Place,
}

/// What was typed for each setting: later layers over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw<K> {
    given: BTreeMap<K, Given>,
}

impl<K> Default for Raw<K> {
    fn default() -> Self {
        Self { given: BTreeMap::new() }
    }
}

impl<K: Keyed> Raw<K> {
    /// Puts a value in, over one of an earlier layer.
    pub fn set(&mut self, key: K, given: Given) {
        match self.given.get(&key) {
            Some(old) if old.place.layer() > given.place.layer() => {}
            _ => {
                self.given.insert(key, given);
            }
        }
    }

    /// What was given for a setting, if anything.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&Given> {
        self.given.get(&key)
    }

    /// Puts in whatever `lookup` knows of the variables of the command. An empty variable counts as not set, since that
    /// is what an optional value in a manifest becomes.
    pub fn read_variables(&mut self, lookup: impl Fn(&str) -> Option<String>) {
        for spec in K::TABLE {
            let Some(text) = lookup(&spec.variable()).filter(|text| !text.trim().is_empty()) else { continue };
            let values = match spec.shape {
                Shape::Many => split(&text),
                Shape::One | Shape::Switch => vec![text],
            };
            self.set(spec.key, Given { values, place: Place::Variable });
        }
    }

    /// Puts a settings file under what is there.
    ///
    /// # Errors
    ///
    /// Every problem of the file: not readable, no YAML, another version, unknown keys, wrong shapes.
    pub fn read_file(&mut self, path: &Path) -> Result<(), super::ConfigError> {
        for (key, given) in super::file::read::<K>(path)? {
            self.set(key, given);
        }
        Ok(())
    }
}

/// A warning for each of these variables that begins like one of ours and is none. Kubernetes makes some of its own for
/// every Service (`NAMESAKE_DNS_SERVICE_HOST`, `NAMESAKE_DNS_PORT_53_UDP`), which are left alone.
pub fn unknown_variables(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let ours: Vec<String> = variables::<dns::Key>().chain(variables::<controller::Key>()).collect();
    let link = |name: &str| {
        name.contains("_SERVICE_HOST")
            || name.contains("_SERVICE_PORT")
            || name.ends_with("_PORT")
            || name.split_once("_PORT_").is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let mut strangers: Vec<String> = names
        .into_iter()
        .filter(|name| name.starts_with("NAMESAKE_") && !ours.contains(name) && !link(name))
        .map(|name| match nearest(&name, ours.iter().map(String::as_str)) {
            Some(near) => format!("{name}: no such variable; did you mean {near}?"),
            None => {
                let command = if name.starts_with(controller::Key::PREFIX) { "controller" } else { "dns" };
                format!("{name}: no such variable; `namesake {command} --help` has the flags they are named after")
            }
        })
        .collect();
    strangers.sort();
    strangers
}

/// Every variable of a command.
fn variables<K: Keyed>() -> impl Iterator<Item = String> {
    K::TABLE.iter().map(Spec::variable).chain([K::file_variable()])
}

/// The parts of a list written in one string.
pub(super) fn split(text: &str) -> Vec<String> {
    text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A path in the file counts from the file's folder, elsewhere from the working directory.
pub(super) fn resolve(place: &Place, path: &str) -> PathBuf {
    match place {
        Place::File(file, _) => file.parent().map_or_else(|| PathBuf::from(path), |folder| folder.join(path)),
        _ => PathBuf::from(path),
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.values.join(","))
    }
}
