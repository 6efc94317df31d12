//! Numbers of the DNS parameters registry, by their names.

pub const A: u16 = 1;
pub const NS: u16 = 2;
pub const CNAME: u16 = 5;
pub const SOA: u16 = 6;
pub const PTR: u16 = 12;
pub const HINFO: u16 = 13;
pub const MX: u16 = 15;
pub const TXT: u16 = 16;
pub const AAAA: u16 = 28;
pub const SRV: u16 = 33;
pub const OPT: u16 = 41;
pub const DS: u16 = 43;
pub const RRSIG: u16 = 46;
pub const NSEC: u16 = 47;
pub const DNSKEY: u16 = 48;
pub const SVCB: u16 = 64;
pub const HTTPS: u16 = 65;
pub const TKEY: u16 = 249;
pub const TSIG: u16 = 250;
pub const IXFR: u16 = 251;
pub const AXFR: u16 = 252;
pub const MAILB: u16 = 253;
pub const MAILA: u16 = 254;
pub const ANY: u16 = 255;
pub const CAA: u16 = 257;
/// A type nobody has assigned.
pub const UNKNOWN: u16 = 65280;

/// Types that no name of the zone has data for, apart from the apex and `dns-version`.
pub const OTHER_TYPES: [u16; 15] =
    [NS, CNAME, SOA, PTR, HINFO, MX, TXT, SVCB, HTTPS, CAA, DS, RRSIG, DNSKEY, NSEC, UNKNOWN];

/// Every type that asks for data of a name: one rcode for all of them.
pub const DATA_TYPES: [u16; 19] =
    [A, AAAA, SRV, ANY, NS, CNAME, SOA, PTR, HINFO, MX, TXT, SVCB, HTTPS, CAA, DS, RRSIG, DNSKEY, NSEC, UNKNOWN];

pub const NOERROR: u16 = 0;
pub const FORMERR: u16 = 1;
pub const SERVFAIL: u16 = 2;
pub const NXDOMAIN: u16 = 3;
pub const NOTIMP: u16 = 4;
pub const REFUSED: u16 = 5;
pub const BADVERS: u16 = 16;

pub const IN: u16 = 1;
pub const CH: u16 = 3;
pub const HS: u16 = 4;

/// EDNS option codes.
pub const OPTION_NSID: u16 = 3;
pub const OPTION_EXPIRE: u16 = 9;
pub const OPTION_COOKIE: u16 = 10;
pub const OPTION_KEEPALIVE: u16 = 11;
pub const OPTION_PADDING: u16 = 12;
pub const OPTION_EDE: u16 = 15;

/// Extended DNS errors (RFC 8914).
pub const STALE_ANSWER: u16 = 3;
pub const NOT_READY: u16 = 14;
pub const PROHIBITED: u16 = 18;
pub const NOT_AUTHORITATIVE: u16 = 20;
