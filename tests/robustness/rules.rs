//! What is true of every reply, whatever was asked: judged by a parser that is not ours.

use hickory_proto::op::{Message, MessageType};
use namesake::answers::Store;
use namesake::dns::{DropReason, Outcome, Transport, respond};

use crate::packets::Packets;
use crate::{Failures, in_two_threads, plan, rich};

/// How many packets `respond` is given.
const PACKETS: u64 = 10_000_000;

#[test]
fn no_packet_makes_respond_panic_or_speak_nonsense() {
    let (seed, count) = plan(PACKETS);
    let stores = rich::stores();
    in_two_threads(seed, count, |mut rng, count| {
        let (mut packets, mut failures, mut out) = (Packets::new(), Failures::default(), vec![0; 65535]);
        let mut answered = 0u64;
        for _ in 0..count {
            let (which, store) = &stores[rng.usize(0..stores.len())];
            let transport = if rng.u8(0..8) == 0 { Transport::Tcp } else { Transport::Udp };
            let packet = packets.hostile(&mut rng).to_vec();
            failures.check(&packet, || {
                let outcome = respond(store, &packet, transport, &mut out, &mut rng);
                answered += u64::from(matches!(outcome, Outcome::Reply(_)));
                obeyed(store, &packet, transport, outcome, &out).map_err(|e| format!("{which}, {transport:?}: {e}"))
            });
        }
        // Were the packets all refused at the door, nothing would be shown.
        assert!(answered > count / 2, "{answered} of {count} were answered");
        failures
    })
    .none();
}

/// The rules.
fn obeyed(store: &Store, query: &[u8], transport: Transport, outcome: Outcome, out: &[u8]) -> Result<(), String> {
    let reply = match outcome {
        Outcome::Drop(reason) => {
            let due = match reason {
                DropReason::Short => query.len() < 12,
                DropReason::Response => query.len() >= 12 && query[2] & 0x80 != 0,
            };
            return ensure(due, || format!("dropped as {reason:?}"));
        }
        Outcome::Reply(reply) => reply,
    };
    ensure(query.len() >= 12 && query[2] & 0x80 == 0, || "an answer to what is no query".into())?;
    let bytes = out.get(..reply.len).ok_or("a length beyond the buffer")?;
    let message = Message::from_vec(bytes).map_err(|e| format!("hickory refuses the reply: {e}"))?;
    ensure(bytes[..2] == query[..2], || "another id".into())?;
    ensure(message.metadata.message_type == MessageType::Response, || "no response".into())?;
    ensure((bytes[2] ^ query[2]) & 0x79 == 0, || "another opcode or RD".into())?;
    ensure(bytes[3] & 0xE0 == 0, || "RA, Z or AD is set".into())?;
    ensure((bytes[2] & 2 != 0) == reply.truncated, || "TC and the facts differ".into())?;
    ensure(!(reply.truncated && transport == Transport::Tcp), || "TC over TCP".into())?;

    let rcode = u16::from(message.metadata.response_code);
    ensure(rcode == reply.rcode, || format!("rcode {rcode}, facts {}", reply.rcode))?;
    ensure(matches!(rcode, 0..=5 | 16), || format!("rcode {rcode}"))?;
    ensure(message.answers.is_empty() || rcode == 0, || format!("answers with rcode {rcode}"))?;
    // What was written is all there is: a count that is too small would hide bytes.
    let end = end_of(bytes).ok_or("a record beyond the end")?;
    ensure(end == bytes.len(), || format!("{} bytes behind the last record", bytes.len() - end))?;

    match message.queries.len() {
        0 => ensure(matches!(rcode, 1 | 2 | 4) && bytes.len() == 12, || format!("rcode {rcode} without question"))?,
        1 => ensure(query[4..6] == [0, 1], || "one question for several".into())?,
        n => return Err(format!("{n} questions")),
    }
    let request = Message::from_vec(query).ok();
    let parsed = request.as_ref().filter(|request| request.queries.len() == 1);
    if let (Some(request), Some(question)) = (parsed, message.queries.first()) {
        let same = request.queries[0].name().eq_case(question.name())
            && request.queries[0].query_type() == question.query_type()
            && request.queries[0].query_class() == question.query_class();
        ensure(same, || "another question".into())?;
        ensure(request.edns.is_some() == message.edns.is_some(), || "an OPT where none was, or none".into())?;
    }
    let bufsize = store.options().bufsize;
    let stated =
        request.as_ref().and_then(|request| request.edns.as_ref()).map_or(512, hickory_proto::op::Edns::max_payload);
    let limit = match transport {
        Transport::Tcp => 65535,
        Transport::Udp if request.is_some() => stated.min(bufsize).max(512),
        Transport::Udp => bufsize,
    };
    ensure(bytes.len() <= usize::from(limit), || format!("{} bytes, and {limit} allowed", bytes.len()))?;
    Ok(())
}

fn ensure(right: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if right { Ok(()) } else { Err(otherwise()) }
}

/// Where the last record that the header counts ends.
fn end_of(message: &[u8]) -> Option<usize> {
    let count = |at: usize| Some(usize::from(u16::from_be_bytes([*message.get(at)?, *message.get(at + 1)?])));
    let name = |mut at: usize| loop {
        match usize::from(*message.get(at)?) {
            0 => return Some(at + 1),
            0xC0.. => return Some(at + 2),
            len => at += len + 1,
        }
    };
    let mut at = 12;
    for _ in 0..count(4)? {
        at = name(at)? + 4;
    }
    for _ in 0..count(6)? + count(8)? + count(10)? {
        at = name(at)? + 10;
        at += count(at - 2)?;
    }
    Some(at)
}
