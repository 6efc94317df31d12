//! What a setting is: its name in all three layers, its shape and its texts. The settings themselves are in the tables of
//! the commands.

use std::fmt::Debug;
use std::hash::Hash;

/// The settings of a command: one table is their only definition.
pub trait Keyed: Debug + Copy + Ord + Hash + Sized + 'static {
    /// The command whose settings these are.
    const COMMAND: &'static str;
    /// How the variables of the command begin.
    const PREFIX: &'static str;
    /// Every setting, in the order of the help.
    const TABLE: &'static [Spec<Self>];
    /// The headings under which they stand, in reading order.
    const SECTIONS: &'static [Section];

    /// Its texts.
    #[must_use]
    fn spec(self) -> &'static Spec<Self> {
        Self::TABLE.iter().find(|spec| spec.key == self).unwrap_or(&Self::TABLE[0])
    }

    /// The setting of this name in the file.
    #[must_use]
    fn named(name: &str) -> Option<&'static Spec<Self>> {
        Self::TABLE.iter().find(|spec| spec.name == name)
    }

    /// The variable that names the settings file.
    #[must_use]
    fn file_variable() -> String {
        format!("{}CONFIG", Self::PREFIX)
    }
}

/// How a setting is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One value.
    One,
    /// Any number of values: a repeated flag, a list in the file, commas in a variable.
    Many,
    /// On or off: a bare flag, `true` or `false` elsewhere.
    Switch,
}

/// What a setting is about: the headings of `--help` and of the example files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the titles say it")]
pub enum Section {
    Source,
    Zone,
    Names,
    Identity,
    Serving,
    Tcp,
    Admin,
    Lifecycle,
    Hub,
    Members,
    Sharing,
    Merge,
    Namespaces,
    Written,
    Absence,
}

impl Section {
    /// The heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Source => "Where imports and slices come from",
            Self::Zone => "What is answered",
            Self::Names => "Which names exist",
            Self::Identity => "What the server says of itself",
            Self::Serving => "Where DNS is served",
            Self::Tcp => "TCP limits",
            Self::Admin => "Probes, metrics and logs",
            Self::Lifecycle => "Start, stop and old data",
            Self::Hub => "Where the hub is",
            Self::Members => "Which clusters are members",
            Self::Sharing => "Who writes, and how much",
            Self::Merge => "What exports become",
            Self::Namespaces => "Which namespaces take part",
            Self::Written => "What is written into the members",
            Self::Absence => "Clusters that leave or can't be reached",
        }
    }
}

/// The texts of one setting.
#[derive(Debug, Clone, Copy)]
pub struct Spec<K> {
    /// Which.
    pub key: K,
    /// Its key in the file. The flag is `--` and the name with `-` for `_`; the variable is the command's prefix and the
    /// name in capitals.
    pub name: &'static str,
    /// How it is written.
    pub shape: Shape,
    /// What it is about.
    pub section: Section,
    /// What stands for its value in the help.
    pub value: &'static str,
    /// Its default as it would be written, or empty where there is none.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

impl<K: Keyed> Spec<K> {
    /// The flag, with its dashes.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// The environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{}{}", K::PREFIX, self.name.to_ascii_uppercase())
    }
}

pub(super) const fn one<K>(
    key: K,
    name: &'static str,
    section: Section,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Spec<K>
where
    K: Copy,
{
    Spec { key, name, shape: Shape::One, section, value, default, help }
}

pub(super) const fn many<K>(
    key: K,
    name: &'static str,
    section: Section,
    value: &'static str,
    default: &'static str,
    help: &'static str,
) -> Spec<K>
where
    K: Copy,
{
    Spec { key, name, shape: Shape::Many, section, value, default, help }
}

pub(super) const fn switch<K>(key: K, name: &'static str, section: Section, help: &'static str) -> Spec<K>
where
    K: Copy,
{
    Spec { key, name, shape: Shape::Switch, section, value: "true|false", default: "false", help }
}
