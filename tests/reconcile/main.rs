//! The pure half of the controller against its contract (`controller.md` chapter 2): one test per rule that is a
//! decision, named after it, on clusters in memory that plans are applied to.
#![allow(dead_code, reason = "the support of these tests is more than each of them uses")]

mod cases;
mod corrections;
mod deletion;
mod derived;
mod example;
mod fields;
mod outage;
mod ports;
mod set;
mod slices;
mod status;
mod who;
