//! The pure half of the controller against its contract (`controller.md` chapter 2): one test per rule that is a
//! decision, named after it, on clusters in memory that plans are applied to.
#![allow(dead_code, reason = "the support of these tests is more than each of them uses")]

mod cases;
mod cases_clusters;
mod corrections;
mod deletion;
mod derived;
mod dirtiness;
mod example;
mod fields;
mod generate;
mod gist;
mod hostile;
mod oracle;
mod outage;
mod ports;
mod precedence;
mod properties;
mod set;
mod shuffle;
mod slices;
mod status;
mod values;
mod who;
mod world;
