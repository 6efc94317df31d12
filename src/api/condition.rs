//! Conditions, with the limits of `metav1.Condition`.

use super::schema::{choice, object};

choice! {
    /// Whether a condition holds.
    pub enum ConditionStatus {
        /// Nobody knows (yet).
        Unknown ("Unknown"),
        /// It holds.
        True ("True"),
        /// It does not.
        False ("False"),
    }
}

object! {
    /// One aspect of the state of an object.
    pub struct Condition {
        /// What it is about, in CamelCase.
        kind ("type"): String {
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
        },
        /// Whether it holds.
        status ("status"): ConditionStatus,
        /// Why, for programs: one word, or several joined by commas.
        reason ("reason"): String {
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        },
        /// Why, for people. It may be empty.
        message ("message"): String {"maxLength": 32768},
        /// When the status last changed.
        last_transition_time ("lastTransitionTime"): String {"format": "date-time"},
        /// The generation of the object that it was said of; an older one than the object has means that it is out of
        /// date.
        observed_generation ("observedGeneration"): Option<i64> {"minimum": 0},
    }
}
