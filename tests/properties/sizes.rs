//! No answer exceeds its limit, and every one can be read, whatever the set and the client.

use namesake::dns::{Outcome, Transport, respond};
use namesake::feed::load;
use proptest::prelude::*;

use crate::support::{A, AAAA, Ask, Edns, Message, SRV, Zone, changes, headless, options, slice};

/// A headless service of so many endpoints with hostnames of these lengths, in both families where `dual`.
fn service(endpoints: usize, lengths: (usize, usize), ports: usize, dual: bool) -> String {
    let ports: Vec<_> = (0..ports).map(|p| format!("p{p}/{}", 1000 + p)).collect();
    let ports: Vec<_> = ports.iter().map(String::as_str).collect();
    let mut manifests = headless("shop/db", &ports);
    let host = |n: usize| {
        let length = lengths.0 + n % (lengths.1 - lengths.0 + 1);
        format!("{n:0>length$}")
    };
    for v6 in [false, true].into_iter().take(1 + usize::from(dual)) {
        let address =
            |n: usize| if v6 { format!("fd00::{:x}", n + 1) } else { format!("10.1.{}.{}", n / 200, n % 200 + 1) };
        let all: Vec<_> = (0..endpoints).map(|n| format!("h{}={}", host(n), address(n))).collect();
        for (number, part) in all.chunks(1000).enumerate() {
            let part: Vec<_> = part.iter().map(String::as_str).collect();
            manifests += &slice(&format!("shop/db#{}{number}", u8::from(v6)), "east", &ports, &part);
        }
    }
    manifests
}

proptest! {
    #![proptest_config(crate::cases(120))]

    #[test]
    fn answers_never_exceed_the_limit_and_can_be_read(
        endpoints in prop_oneof![4 => 0_usize..120, 1 => 120_usize..1500],
        lengths in (4_usize..40, 0_usize..20).prop_map(|(least, more)| (least, least + more)),
        ports in 0_usize..4,
        dual in any::<bool>(),
        bufsize in 512_u16..=4096,
        max in prop_oneof![3 => Just(None), 1 => (1_usize..40).prop_map(Some)],
        clients in prop::collection::vec(prop_oneof![1 => Just(None), 3 => (0_u16..6000).prop_map(Some)], 8),
    ) {
        let options = options(|o| (o.bufsize, o.max_endpoints) = (bufsize, max));
        let changes = changes(&options, &service(endpoints, lengths, ports, dual));
        let zone = Zone::new(load(options, changes));
        for name in ["db.shop.svc", "_p0._tcp.db.shop.svc", "east.db.shop.svc"] {
            for qtype in [A, AAAA, SRV] {
                let plain = Ask::new(&zone.absolute(name), qtype);
                let whole = zone.send(&plain.clone().tcp());
                for client in &clients {
                    let mut ask = plain.clone();
                    ask.edns = client.map(Edns::size);
                    // `send` holds the limit, the sections, the OPT and the flags.
                    let answer = zone.send(&ask);
                    if max.is_none() && !whole.reply.cut {
                        prop_assert_eq!(answer.message.truncated(), answer.count() < whole.count(), "TC\n{}", answer);
                    }
                    prop_assert!(answer.count() > 0 || whole.count() == 0, "some records fit\n{}", answer);
                }
            }
        }
    }

    #[test]
    fn any_bytes_get_a_readable_reply_or_none(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        header in any::<bool>(),
    ) {
        let options = options(|_| ());
        let changes = changes(&options, &service(3, (4, 4), 1, true));
        let store = load(options, changes);
        let mut query = bytes;
        if header && query.len() >= 12 {
            query[2] &= 0x01;
            query[4..12].copy_from_slice(&[0, 1, 0, 0, 0, 0, 0, 0]);
        }
        let mut out = vec![0; 65535];
        for transport in [Transport::Udp, Transport::Tcp] {
            if let Outcome::Reply(reply) = respond(&store, &query, transport, &mut out, &mut fastrand::Rng::with_seed(1)) {
                let message = Message::read(&out[..reply.len]);
                prop_assert!(message.is_response() && message.bytes.len() <= query.len() + 200);
            }
        }
    }
}
