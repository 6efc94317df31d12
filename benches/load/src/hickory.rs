//! A peer: hickory-server, the DNS server of Rust's ecosystem, in its strongest fair form.
//!
//! Its own `InMemoryZoneHandler` goes through every name of the zone for each negative answer (a third of a millisecond
//! a query in the mix), which nobody would serve such a zone from. So its sockets, tasks and codec are measured with a
//! handler of ours that looks up in a hash map: one thread (several make it slower on one core), no log of queries
//! (nothing subscribes to its events), receive buffers as large as the others'.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use hickory_proto::op::{Edns, Header, HeaderCounts, MessageType, Metadata, OpCode, ResponseCode};
use hickory_proto::rr::{DNSClass, LowerName, Record, RecordType};
use hickory_proto::serialize::txt::Parser;
use hickory_server::Server;
use hickory_server::net::runtime::Time;
use hickory_server::server::{Request, RequestHandler, ResponseHandler, ResponseInfo};
use hickory_server::zone_handler::MessageResponseBuilder;
use socket2::SockRef;
use tokio::net::{TcpListener, UdpSocket};

use crate::echo::Bound;
use crate::set::Set;
use crate::zone;

/// The largest answer over UDP, as of the others.
const LARGEST: u16 = 1232;

/// A connection on which nothing is asked for so long is closed; none of ours is.
const IDLE: Duration = Duration::from_secs(30);

/// Answers that may wait on a connection: more than the client leaves unread.
const WAITING: usize = 64;

/// What one name has, by type; nothing for a name that only has others below it.
type Name = Vec<(RecordType, Vec<Record>)>;

/// A set's zone in a hash map.
pub struct Zone {
    origin: LowerName,
    soa: Option<Record>,
    names: HashMap<LowerName, Name>,
}

impl Zone {
    /// Reads the same zone file as the other servers do, by hickory's own parser.
    ///
    /// # Errors
    /// Where that does not take it.
    pub fn of(set: Set) -> io::Result<Self> {
        let mut text = Vec::new();
        zone::write(set, &mut text)?;
        let text = String::from_utf8(text).map_err(io::Error::other)?;
        let (origin, records) = Parser::new(text, None, None).parse().map_err(io::Error::other)?;
        let origin = LowerName::from(origin);
        let mut names: HashMap<LowerName, Name> = HashMap::new();
        let mut soa = None;
        for (key, records) in records {
            let records: Vec<Record> = records.records_without_rrsigs().cloned().collect();
            if key.record_type == RecordType::SOA {
                soa = records.first().cloned();
            }
            // Names between it and the zone exist as well: they have no data, which is not the same as no name.
            let mut above = key.name.base_name();
            while origin.zone_of(&above) && !names.contains_key(&above) {
                names.insert(above.clone(), Name::new());
                above = above.base_name();
            }
            names.entry(key.name).or_default().push((key.record_type, records));
        }
        Ok(Self { origin, soa, names })
    }

    /// What is said to a request: a code, and the records.
    fn answer(&self, request: &Request) -> (ResponseCode, &[Record]) {
        if request.metadata.op_code != OpCode::Query {
            return (ResponseCode::NotImp, &[]);
        }
        if request.edns.as_ref().is_some_and(|edns| edns.version() > 0) {
            return (ResponseCode::BADVERS, &[]);
        }
        let [query] = request.queries.queries() else { return (ResponseCode::FormErr, &[]) };
        if query.query_class() != DNSClass::IN || !self.origin.zone_of(query.name()) {
            return (ResponseCode::Refused, &[]);
        }
        let Some(name) = self.names.get(query.name()) else { return (ResponseCode::NXDomain, &[]) };
        let records = name.iter().find(|(record_type, _)| *record_type == query.query_type());
        (ResponseCode::NoError, records.map_or(&[], |(_, records)| records))
    }
}

#[async_trait]
impl RequestHandler for Zone {
    async fn handle_request<R: ResponseHandler, T: Time>(&self, request: &Request, mut reply: R) -> ResponseInfo {
        let (code, answers) = self.answer(request);
        let mut metadata = Metadata::response_from_request(&request.metadata);
        metadata.response_code = code;
        metadata.authoritative = matches!(code, ResponseCode::NoError | ResponseCode::NXDomain);
        let soa = self.soa.as_ref().filter(|_| metadata.authoritative && answers.is_empty());
        let edns = request.edns.as_ref().map(|theirs| {
            let mut edns = Edns::new();
            edns.set_max_payload(theirs.max_payload().clamp(512, LARGEST)).set_rcode_high(code.high());
            edns
        });
        let response =
            MessageResponseBuilder::new(&request.queries, edns.as_ref()).build(metadata, answers, [], soa, []);
        // What can't be sent is that client's loss, and counted there.
        reply.send_response(response).await.unwrap_or_else(|_| {
            let mut metadata = Metadata::new(request.metadata.id, MessageType::Response, request.metadata.op_code);
            metadata.response_code = ResponseCode::ServFail;
            ResponseInfo::from(Header { metadata, counts: HeaderCounts::default() })
        })
    }
}

/// Serves a set on these sockets until the process ends, from this thread alone.
///
/// # Errors
/// Where a socket breaks.
pub fn serve(bound: Bound, zone: Zone) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut server = Server::new(zone);
        for (_, socket, listener) in bound.sockets {
            socket.set_nonblocking(true)?;
            server.register_socket(UdpSocket::from_std(socket.into())?);
            // Connections take it over from the listener; each answer is a write of its own, and would wait for the client.
            SockRef::from(&listener).set_tcp_nodelay(true)?;
            server.register_listener(TcpListener::from_std(listener)?, IDLE, WAITING);
        }
        server.block_until_done().await.map_err(io::Error::other)
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hickory_server::net::xfer::Protocol;

    use super::*;
    use crate::query::packet;

    #[test]
    fn a_name_above_others_exists_without_data_and_one_outside_is_refused() {
        let zone = Zone::of(Set { services: 2, headless: 1, endpoints: 3, namespaces: 1 }).unwrap();
        let from: SocketAddr = ([127, 0, 0, 1], 53).into();
        let asked = |name: &str, qtype: u16| {
            let request = Request::from_bytes(packet(name, qtype), from, Protocol::Udp).unwrap();
            let (code, records) = zone.answer(&request);
            (code, records.len())
        };
        assert_eq!(asked("svc-1.ns-0.svc.clusterset.local", 1), (ResponseCode::NoError, 1));
        assert_eq!(asked("DB-0.ns-0.svc.ClusterSet.local", 1), (ResponseCode::NoError, 3));
        assert_eq!(asked("_tcp.svc-1.ns-0.svc.clusterset.local", 33), (ResponseCode::NoError, 0));
        assert_eq!(asked("ns-0.svc.clusterset.local", 1), (ResponseCode::NoError, 0));
        assert_eq!(asked("ns-1.svc.clusterset.local", 1), (ResponseCode::NXDomain, 0));
        assert_eq!(asked("svc-1.ns-0.svc.cluster.local", 1), (ResponseCode::Refused, 0));
    }
}
