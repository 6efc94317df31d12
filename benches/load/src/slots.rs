//! Outstanding queries of one socket or connection, found again by the id of their answer.
//!
//! An id is a slot's number and, above it, how often the slot was used: an answer that comes after its query was given
//! up is not taken for that of the next.

use std::time::Duration;

/// How long an answer may take before it counts as lost, in what is measured.
pub const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
struct Slot {
    /// When the query was due, in nanoseconds of the caller's clock.
    due: u64,
    query: u32,
    uses: u16,
    open: bool,
}

/// The table.
#[derive(Debug)]
pub struct Slots {
    slots: Box<[Slot]>,
    free: Vec<u16>,
    bits: u32,
}

impl Slots {
    /// Room for so many queries, a power of two and at most 4,096.
    ///
    /// # Panics
    /// Where it is not.
    #[must_use]
    pub fn new(room: usize) -> Self {
        assert!(room.is_power_of_two() && room <= 4096, "{room} queries outstanding a socket");
        Self {
            slots: vec![Slot { due: 0, query: 0, uses: 0, open: false }; room].into(),
            free: (0..room as u16).rev().collect(),
            bits: room.ilog2(),
        }
    }

    /// How many more may be sent now.
    #[must_use]
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// How many are outstanding.
    #[must_use]
    pub fn open(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes a slot for this query: the id to send it with.
    pub fn take(&mut self, query: usize, due: u64) -> Option<u16> {
        let number = self.free.pop()?;
        let slot = &mut self.slots[usize::from(number)];
        *slot = Slot { due, query: query as u32, uses: slot.uses.wrapping_add(1), open: true };
        Some(number | slot.uses << self.bits)
    }

    /// Settles the query of an answer: which one it was, and when it was due.
    pub fn settle(&mut self, id: u16) -> Option<(usize, u64)> {
        let number = id & (self.slots.len() - 1) as u16;
        let slot = &mut self.slots[usize::from(number)];
        if !slot.open || number | slot.uses << self.bits != id {
            return None;
        }
        slot.open = false;
        self.free.push(number);
        Some((slot.query as usize, slot.due))
    }

    /// Gives up what was due before this time: how many.
    pub fn expire(&mut self, before: u64) -> u64 {
        let mut lost = 0;
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if slot.open && slot.due < before {
                slot.open = false;
                self.free.push(number as u16);
                lost += 1;
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_settles_its_query_once_and_a_late_one_settles_nothing() {
        let mut slots = Slots::new(2);
        let (first, second) = (slots.take(10, 100).unwrap(), slots.take(11, 200).unwrap());
        assert_eq!(slots.take(12, 300), None);
        assert_eq!(slots.settle(first), Some((10, 100)));
        assert_eq!(slots.settle(first), None);
        assert_eq!(slots.expire(201), 1);
        let third = slots.take(13, 400).unwrap();
        assert_eq!(slots.settle(second), None, "the slot is used again: {second} {third}");
        assert_eq!(slots.settle(third), Some((13, 400)));
        assert_eq!((slots.open(), slots.free()), (0, 2));
    }
}
