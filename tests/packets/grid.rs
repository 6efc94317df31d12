//! What is played where: the scenarios, down, and the families and arrangements, across.

use testbed::Arrangement;

use crate::scenarios::{self, Scenario};

/// The addresses that a bed's clusters have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4 alone.
    Ipv4,
    /// IPv4 and IPv6.
    DualStack,
}

impl Family {
    /// Both, in the order of the table.
    pub const ALL: [Family; 2] = [Family::Ipv4, Family::DualStack];

    /// As it stands in the names of trials and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Family::Ipv4 => "ipv4",
            Family::DualStack => "dual-stack",
        }
    }
}

/// One column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Of which bed.
    pub family: Family,
    /// What a pod asks there.
    pub arrangement: Arrangement,
}

/// All columns.
pub fn columns() -> impl Iterator<Item = Column> {
    Family::ALL.into_iter().flat_map(|family| Arrangement::ALL.map(|arrangement| Column { family, arrangement }))
}

/// One cell: a scenario in a column.
#[derive(Clone, Copy)]
pub struct Cell {
    pub scenario: &'static Scenario,
    pub column: Column,
}

impl Cell {
    /// The name of its trial, such as `ipv4/forward/c02_…`.
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.column.family.name(), self.column.arrangement.name(), self.scenario.name)
    }
}

/// All cells that are played: every scenario by way of CoreDNS that forwards to Namesake, and those about names in the
/// other arrangements too. The longest come first, so that the run does not end with waiting for one of them; then those
/// with more addresses.
pub fn cells() -> Vec<Cell> {
    let numbers: Vec<_> = scenarios::ALL.iter().map(Scenario::id).collect();
    let wanted: Vec<_> = (1..=27).map(|number| format!("C{number}")).collect();
    assert_eq!(numbers, wanted, "the list of scenarios is the suite's");
    let all = columns().flat_map(|column| scenarios::ALL.iter().map(move |scenario| Cell { scenario, column }));
    let is_played = |cell: &Cell| cell.column.arrangement == Arrangement::Forward || cell.scenario.looks_up();
    let mut cells: Vec<_> = all.filter(is_played).collect();
    let is_long = |cell: &Cell| cell.scenario.takes_long() && cell.column.family == Family::DualStack;
    cells.sort_by_key(|cell| (!is_long(cell), cell.column.family == Family::Ipv4));
    cells
}
